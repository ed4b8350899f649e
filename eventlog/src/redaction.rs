//! What may enter the log, as types: text from outside becomes [`Redacted`] or stays [`Sensitive`].
//!
//! Only the secret part of a text is masked, so that the rest stays useful:
//! `https://u:p@shop.example/cb?code=abc&page=2` becomes `https://[redacted]@shop.example/cb?code=[redacted]&page=2`.
//!
//! | module | finds |
//! |---|---|
//! | `field` | values by the name beside them: `token=…`, `password: …`, keys of JSON objects |
//! | `pattern` | what is a secret by its form: headers, userinfo, endpoints, tokens, private keys |
//! | `known` | texts that the caller knows to be secret, also in their encoded forms |
//!
//! Redacting twice gives the same as once, takes time linear in the text, and never fails: a text that does not
//! settle within a few passes (it was made to confuse) is masked as a whole.

mod field;
mod known;
mod outline;
mod pattern;
#[cfg(test)]
mod tests;

use std::{fmt, io, ops::Range, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::known::Known;

/// Any JSON value.
pub type Json = serde_json::Value;

/// What stands in place of a secret.
pub const MASK: &str = "[redacted]";
/// At most so many bytes of JSON in a result or an event's payload (S13).
pub const RESULT_BYTES_MAX: usize = 64 * 1024;
/// What ends a text that was cut at its limit.
const CUT_MARK: &str = " [truncated]";
/// Masking can uncover a second secret beside the first, but hardly a third.
const PASSES_MAX: usize = 4;
/// Deeper JSON is masked as a whole: the walk over it must not exhaust the stack.
const DEPTH_MAX: usize = 128;

/// Text or JSON from outside that has been through the [`Redactor`]: the only way into an event, a result, a span or
/// a log line. Reading it back from the log is the other source: there it was redacted before.
#[derive(Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    /// The redacted value.
    pub fn get(&self) -> &T {
        &self.0
    }

    /// The redacted value, owned.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl Redacted<String> {
    /// Text that this program wrote itself; it holds nothing from outside.
    #[must_use]
    pub fn own(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

impl<T: fmt::Debug> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value that must not be printed, logged or serialized: args, tokens, keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Sensitive<T>(T);

impl<T> Sensitive<T> {
    /// Marks a value as sensitive.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value; the name makes each use easy to find.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// The value, owned.
    pub fn into_exposed(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Sensitive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<sensitive>")
    }
}

/// Takes secrets out of text and JSON. Cheap to clone; `known` secrets (typed passwords) are masked besides patterns.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Option<Arc<Known>>,
}

impl Redactor {
    /// One that knows the patterns only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, which also masks each of these texts wherever it stands, also percent-encoded, as form text, in
    /// base64, escaped for JSON, or escaped for HTML.
    ///
    /// A secret of fewer than 4 characters is masked only where it stands alone, or it would shred every text.
    #[must_use]
    pub fn with_known(secrets: impl IntoIterator<Item = String>) -> Self {
        Self { known: Known::new(secrets).map(Arc::new) }
    }

    /// Text without its secrets.
    #[must_use]
    pub fn text(&self, text: &str) -> Redacted<String> {
        Redacted(self.mask(text.to_owned()))
    }

    /// The same in at most `bytes_max` bytes: a longer one is cut between two characters, and says so at its end.
    #[must_use]
    pub fn bounded_text(&self, text: &str, bytes_max: usize) -> Redacted<String> {
        let mut masked = self.mask(text.to_owned());
        if masked.len() > bytes_max {
            let mark = if bytes_max >= CUT_MARK.len() { CUT_MARK } else { "" };
            let mut cut = masked.floor_char_boundary(bytes_max - mark.len());
            // Half a mask reads like a part of the secret.
            let around = masked.floor_char_boundary(cut.saturating_sub(MASK.len() - 1));
            if let Some(at) = masked[around..].find(MASK).map(|at| around + at)
                && at < cut
                && at + MASK.len() > cut
            {
                cut = at;
            }
            masked.truncate(cut);
            masked.push_str(mark);
        }
        Redacted(masked)
    }

    /// JSON without its secrets, at any depth: values of secret-looking keys, and secrets inside strings.
    #[must_use]
    pub fn json(&self, value: Json) -> Redacted<Json> {
        Redacted(self.walk(value, false, 0))
    }

    /// The same in at most `bytes_max` bytes when written: a larger one becomes
    /// `{"truncated": true, "reason": "result_too_large"}`. For results and payloads, [`RESULT_BYTES_MAX`].
    #[must_use]
    pub fn bounded_json(&self, value: Json, bytes_max: usize) -> Redacted<Json> {
        let redacted = self.json(value);
        if is_within(&redacted.0, bytes_max) {
            return redacted;
        }
        Redacted(serde_json::json!({ "truncated": true, "reason": "result_too_large" }))
    }

    fn walk(&self, value: Json, under_secret_key: bool, depth: usize) -> Json {
        if depth > DEPTH_MAX {
            return Json::from(MASK);
        }
        match value {
            Json::Null | Json::Bool(_) => value,
            Json::Number(number) => self.number(number, under_secret_key),
            Json::String(text) if under_secret_key && !text.is_empty() => Json::from(MASK),
            Json::String(text) => Json::String(self.mask(text)),
            Json::Array(items) => {
                items.into_iter().map(|item| self.walk(item, under_secret_key, depth + 1)).collect()
            }
            Json::Object(fields) => self.object(fields, under_secret_key, depth),
        }
    }

    fn object(&self, fields: serde_json::Map<String, Json>, under_secret_key: bool, depth: usize) -> Json {
        let mut masked = serde_json::Map::with_capacity(fields.len());
        for (key, value) in fields {
            let secret = under_secret_key || field::is_secret(&key, &value);
            let value = self.walk(value, secret, depth + 1);
            // Two keys can become one; neither value may get lost by it.
            let key = self.mask(key);
            let mut name = key.clone();
            let mut count = 1;
            while masked.contains_key(&name) {
                count += 1;
                name = format!("{key} {count}");
            }
            masked.insert(name, value);
        }
        Json::Object(masked)
    }

    fn number(&self, number: serde_json::Number, under_secret_key: bool) -> Json {
        let known = self.known.as_ref().is_some_and(|known| !known.find(&number.to_string()).is_empty());
        if under_secret_key || known { Json::from(MASK) } else { Json::Number(number) }
    }

    fn mask(&self, text: String) -> String {
        let mut current = text;
        for _ in 0..PASSES_MAX {
            match mask_spans(&current, self.find(&current)) {
                None => return current,
                Some(masked) => current = masked,
            }
        }
        if mask_spans(&current, self.find(&current)).is_none() { current } else { MASK.to_owned() }
    }

    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans = field::find(text);
        pattern::find(text, &mut spans);
        outline::find(text, &mut spans);
        if let Some(known) = &self.known {
            spans.extend(known.find(text));
        }
        spans
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// `text` with each span masked; `None` if that changes nothing. Spans that touch become one mask, and a mask that is
/// already there is never split: both keep a second pass from finding anything new.
fn mask_spans(text: &str, mut spans: Vec<Range<usize>>) -> Option<String> {
    if spans.is_empty() {
        return None;
    }
    spans.extend(text.match_indices(MASK).map(|(at, mask)| at..at + mask.len()));
    spans.sort_unstable_by_key(|span| span.start);
    let mut masked = String::with_capacity(text.len());
    let mut end = 0;
    let mut in_mask = false;
    for span in spans.into_iter().filter(|span| !span.is_empty()) {
        if in_mask && span.start <= end {
            end = end.max(span.end);
            continue;
        }
        masked.push_str(&text[end..span.start]);
        masked.push_str(MASK);
        end = span.end;
        in_mask = true;
    }
    masked.push_str(&text[end..]);
    (masked != text).then_some(masked)
}

/// Whether the value is at most `bytes_max` bytes when written; stops counting there.
fn is_within(value: &Json, bytes_max: usize) -> bool {
    struct Budget(usize);
    impl io::Write for Budget {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Budget(bytes_max), value).is_ok()
}
