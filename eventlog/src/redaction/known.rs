//! Texts that the caller knows to be secret (typed passwords), in the forms in which they come back.

use std::{collections::BTreeSet, ops::Range};

use aho_corasick::AhoCorasick;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

/// Shorter ones are masked only where they stand alone.
const ANYWHERE_CHARS_MIN: usize = 4;
/// Shorter ones say too little in base64 to be told from chance.
const BASE64_BYTES_MIN: usize = 6;

/// The searcher for one set of secrets.
pub(super) struct Known {
    searcher: AhoCorasick,
    /// Per form, whether it counts only where it stands alone.
    alone: Vec<bool>,
}

impl Known {
    /// `None` if there is nothing to look for.
    pub(super) fn new(secrets: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut forms = BTreeSet::new();
        for secret in secrets {
            add_forms(&secret, &mut forms);
            let trimmed = secret.trim();
            if trimmed != secret {
                add_forms(trimmed, &mut forms);
            }
        }
        if forms.is_empty() {
            return None;
        }
        let alone = forms.iter().map(|form| form.chars().count() < ANYWHERE_CHARS_MIN).collect();
        let searcher = AhoCorasick::new(&forms).expect("a few bounded texts make a searcher");
        Some(Self { searcher, alone })
    }

    /// Where they stand. Overlapping ones are all found: of two secrets that share a part, neither may stay.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        // Looking for the first one is much faster than looking for all, and most texts hold none.
        if !self.searcher.is_match(text) {
            return Vec::new();
        }
        self.searcher
            .find_overlapping_iter(text)
            .filter(|found| !self.alone[found.pattern().as_usize()] || is_alone(text, &found.range()))
            .map(|found| found.range())
            .collect()
    }
}

fn is_alone(text: &str, span: &Range<usize>) -> bool {
    let before = text[..span.start].chars().next_back();
    let after = text[span.end..].chars().next();
    ![before, after].into_iter().flatten().any(char::is_alphanumeric)
}

fn add_forms(secret: &str, forms: &mut BTreeSet<String>) {
    if secret.trim().is_empty() {
        return;
    }
    let escaped = json_escaped(secret);
    forms.insert(json_escaped(&escaped));
    forms.insert(escaped);
    forms.insert(html_escaped(secret, "&#39;"));
    forms.insert(html_escaped(secret, "&#x27;"));
    for kept in ["-._~", "-_.!~*'()", "-._*", ""] {
        for upper in [true, false] {
            let encoded = percent_encoded(secret, kept, upper);
            forms.insert(encoded.replace("%20", "+"));
            forms.insert(encoded.replace('%', "%25"));
            forms.insert(encoded);
        }
    }
    if secret.len() >= BASE64_BYTES_MIN {
        add_base64(secret.as_bytes(), forms);
    }
    forms.insert(secret.to_owned());
}

/// The parts of its base64 that do not depend on what stands beside it, for each of the three alignments.
fn add_base64(secret: &[u8], forms: &mut BTreeSet<String>) {
    for offset in 0..3usize {
        let mut padded = vec![0; offset];
        padded.extend_from_slice(secret);
        let first = (offset * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            forms.insert(engine.encode(&padded)[first..last].to_owned());
        }
    }
}

fn json_escaped(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

fn html_escaped(text: &str, apostrophe: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', apostrophe)
}

fn percent_encoded(text: &str, kept: &str, upper: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let letter = char::from(byte);
        if letter.is_ascii_alphanumeric() || kept.contains(letter) {
            encoded.push(letter);
        } else if upper {
            encoded.push_str(&format!("%{byte:02X}"));
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    encoded
}
