//! What went into fields that hide it. Kept in memory only, so that it can be masked wherever the page shows it.

use std::collections::VecDeque;

/// So many are remembered by one browser; the oldest go first.
const SECRETS_MAX: usize = 256;

/// Shorter values of a field that is filled key by key say too little: they would mask any letter.
const VALUE_CHARS_MIN: usize = 3;

/// The texts, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    texts: VecDeque<String>,
    version: u64,
    /// The last text is a value that may still grow, key by key.
    grows: bool,
}

impl Secrets {
    /// Notes a text that goes into such a field at once.
    pub(crate) fn note(&mut self, text: &str) {
        self.grows = false;
        if text.is_empty() || self.texts.iter().any(|known| known == text) {
            return;
        }
        self.push(text);
    }

    /// Notes what such a field holds after a key was pressed.
    pub(crate) fn note_value(&mut self, value: &str) {
        if value.chars().count() < VALUE_CHARS_MIN || self.texts.iter().any(|known| known == value) {
            return;
        }
        if self.grows && self.texts.back().is_some_and(|last| value.starts_with(last.as_str())) {
            self.texts.pop_back();
        }
        self.push(value);
        self.grows = true;
    }

    fn push(&mut self, text: &str) {
        if self.texts.len() >= SECRETS_MAX {
            self.texts.pop_front();
        }
        self.texts.push_back(text.to_owned());
        self.version += 1;
    }

    /// All of them with the number of their last change, if that is not `version`.
    pub(crate) fn since(&self, version: u64) -> Option<(Vec<String>, u64)> {
        (self.version != version).then(|| (self.texts.iter().cloned().collect(), self.version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_grows_key_by_key_is_one_secret_and_each_is_told_once() {
        let mut secrets = Secrets::default();
        for value in ["h", "hu", "hun", "hunt", "hunter2"] {
            secrets.note_value(value);
        }
        secrets.note("other");
        secrets.note_value("othe");
        secrets.note("other");
        let (texts, version) = secrets.since(0).expect("it has changed");
        assert_eq!(texts, ["hunter2", "other", "othe"]);
        assert_eq!(secrets.since(version), None);
    }
}
