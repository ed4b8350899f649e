//! Refs: the short names (`e12`) by which an agent points at an element of a snapshot.
//!
//! A ref stands for one node of one document. It is the same in every snapshot while the node lives, and its number
//! is never used again. Backend node ids are numbered per renderer process, so the session is part of the key.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Defines a number that is written with a letter before it.
macro_rules! lettered_id {
    ($(#[$meta:meta])* $name:ident, $letter:literal, $description:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}{}", $letter, self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let digits = text.strip_prefix($letter).unwrap_or_default();
                let plain = (1..=7).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
                match digits.parse() {
                    Ok(number) if plain && !digits.starts_with('0') => Ok(Self(number)),
                    _ => Err(format!("expected {} followed by a number, like {}12", $letter, $letter)),
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "pattern": concat!("^", $letter, "[1-9][0-9]{0,6}$"),
                    "description": $description,
                })
            }
        }
    };
}

lettered_id!(
    /// A handle to an element, bound to its document and node: `e12`.
    ElementRef,
    "e",
    "An element, by its ref from the latest snapshot, like e12."
);
lettered_id!(
    /// A tab of the browser: `t1`. Never used again after the tab is closed.
    TabId,
    "t",
    "A tab, by its id from tab_list, like t1."
);

/// The node that a ref stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct NodeKey {
    pub(crate) session: Arc<str>,
    pub(crate) frame: Arc<str>,
    /// The document: a frame that navigates gets another loader.
    pub(crate) loader: Arc<str>,
    pub(crate) node: i64,
}

/// What a ref leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Live(NodeKey),
    /// Was given out, and its document is gone.
    Stale,
    /// Was never given out.
    Unknown,
}

/// All refs of one browser.
#[derive(Debug, Default)]
pub(crate) struct References {
    last: u32,
    by_number: HashMap<u32, NodeKey>,
    by_key: HashMap<NodeKey, u32>,
}

impl References {
    /// The ref of a node: the one that it has, or the next number.
    pub(crate) fn intern(&mut self, key: NodeKey) -> ElementRef {
        if let Some(number) = self.by_key.get(&key) {
            return ElementRef(*number);
        }
        self.last += 1;
        self.by_number.insert(self.last, key.clone());
        self.by_key.insert(key, self.last);
        ElementRef(self.last)
    }

    pub(crate) fn find(&self, reference: ElementRef) -> Lookup {
        match self.by_number.get(&reference.0) {
            Some(key) => Lookup::Live(key.clone()),
            None if reference.0 <= self.last => Lookup::Stale,
            None => Lookup::Unknown,
        }
    }

    /// Forgets the nodes for which `is_gone` holds; their numbers stay used.
    pub(crate) fn forget(&mut self, mut is_gone: impl FnMut(&NodeKey) -> bool) {
        self.by_key.retain(|key, _| !is_gone(key));
        let by_key = &self.by_key;
        self.by_number.retain(|_, key| by_key.contains_key(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(session: &str, loader: &str, node: i64) -> NodeKey {
        NodeKey { session: session.into(), frame: "F".into(), loader: loader.into(), node }
    }

    #[test]
    fn a_ref_stays_while_its_document_lives_and_its_number_is_never_used_again() {
        let mut references = References::default();
        let first = references.intern(key("S", "L1", 2));
        assert_eq!(references.intern(key("S", "L1", 2)), first);
        assert_ne!(references.intern(key("S2", "L1", 2)), first, "node ids collide across processes");
        references.forget(|key| &*key.loader == "L1");
        assert_eq!(references.find(first), Lookup::Stale);
        let later = references.intern(key("S", "L2", 2));
        assert_eq!(later, ElementRef(3));
        assert_eq!(references.find(ElementRef(4)), Lookup::Unknown);
    }

    #[test]
    fn only_plain_refs_are_read() {
        assert_eq!("e12".parse(), Ok(ElementRef(12)));
        for text in ["", "e", "e0", "e012", "12", "e1 ", "e+1", "e12345678", "E1", "e١"] {
            assert!(text.parse::<ElementRef>().is_err(), "{text}");
        }
    }
}
