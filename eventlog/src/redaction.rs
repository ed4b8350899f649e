//! What may enter the log, as types: text from outside becomes [`Redacted`] or stays [`Sensitive`].

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Any JSON value.
pub type Json = serde_json::Value;

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
    known: std::sync::Arc<Vec<String>>,
}

impl Redactor {
    /// One that knows the patterns only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, which also masks each of these texts wherever it stands.
    #[must_use]
    pub fn with_known(secrets: impl IntoIterator<Item = String>) -> Self {
        Self { known: std::sync::Arc::new(secrets.into_iter().collect()) }
    }

    /// Text without its secrets.
    #[must_use]
    pub fn text(&self, text: &str) -> Redacted<String> {
        Redacted(text.to_owned())
    }

    /// JSON without its secrets, at any depth: values of secret-looking keys, and secrets inside strings.
    #[must_use]
    pub fn json(&self, value: Json) -> Redacted<Json> {
        Redacted(value)
    }
}
