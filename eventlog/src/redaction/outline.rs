//! What is a secret only beside its label, in a text that tells a page in lines: `role "text"` each.
//!
//! A page that shows `Cookie: <b>sid=1</b>` is told as `text "Cookie:"` and, on the next line, `text "sid=1"`; the
//! patterns, which look at a line, see neither. So each such label is read together with the text that follows it.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::pattern;

/// The end of a label (a header's colon, or a scheme), and the text that begins on the next line.
static JOINT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)"((?:[^"\\\n]|\\.)*(?::|=|\b(?:bearer|basic)))\s*"[^"\n]*\n[^"\n]*"((?:[^"\\\n]|\\.)+)""#,
    )
    .expect("the pattern above is well formed")
});

/// Adds the spans of `text` that are secrets by the label on the line before.
pub(super) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut from = 0;
    while let Some(found) = JOINT.captures_at(text, from) {
        let (Some(label), Some(value)) = (found.get(1), found.get(2)) else { return };
        // The value may be the label of the next one.
        from = value.start() - 1;
        // One word beside a form's "Authorization:" is a choice in it, not a scheme with its credentials.
        if label.as_str().to_ascii_lowercase().ends_with("authorization:") && !value.as_str().contains(' ') {
            continue;
        }
        let joined = format!("{} {}", label.as_str(), value.as_str());
        let value_from = label.as_str().len() + 1;
        let mut secrets = Vec::new();
        pattern::find(&joined, &mut secrets);
        // What begins in the label is found without its value too.
        let in_value = secrets.into_iter().filter(|secret| secret.start >= value_from);
        spans.extend(in_value.map(|secret| {
            value.start() + secret.start - value_from..value.start() + secret.end - value_from
        }));
    }
}
