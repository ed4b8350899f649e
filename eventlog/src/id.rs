//! Names of things: one newtype each, so that no bare string or number crosses a function boundary.
//!
//! Server-made ids are UUIDv7 (sortable by time), written as a prefix and 26 characters of Crockford base32
//! (`spc_01jdz…`); in MessagePack they are 16 bytes. Names that a caller chooses (`WorkspaceId`, `OwnerId`,
//! `RequestId`, …) are bounded strings, checked once when they are parsed.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ENCODED_LENGTH: usize = 26;

/// Why a text is not an id or name of the wanted kind. Never quotes the text: it may hold a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseIdError {
    /// The prefix or the body is not of this kind of id.
    #[error("not an id of the form {0}…")]
    Form(&'static str),
    /// A caller-chosen name is empty, too long, or has a character outside its alphabet.
    #[error("not a valid {what}: it has 1 to {bytes_max} {alphabet}")]
    Name {
        /// What it should name.
        what: &'static str,
        /// The longest such name, in bytes.
        bytes_max: usize,
        /// What it is made of, in words.
        alphabet: &'static str,
    },
    /// No stream is named so.
    #[error("not the name of a stream")]
    Stream,
}

fn encode(uuid: Uuid) -> String {
    let mut value = uuid.as_u128();
    let mut text = [0u8; ENCODED_LENGTH];
    for slot in text.iter_mut().rev() {
        *slot = ALPHABET[(value & 31) as usize];
        value >>= 5;
    }
    text.iter().map(|byte| char::from(*byte)).collect()
}

fn decode(text: &str) -> Option<Uuid> {
    // 26 characters carry 130 bits; the first may only use its low three, or two texts would be one id.
    if text.len() != ENCODED_LENGTH || text.as_bytes()[0] > b'7' {
        return None;
    }
    text.bytes()
        .try_fold(0u128, |value, byte| {
            let digit = ALPHABET.iter().position(|letter| *letter == byte)?;
            Some((value << 5) | digit as u128)
        })
        .map(Uuid::from_u128)
}

struct IdVisitor {
    prefix: &'static str,
}

impl de::Visitor<'_> for IdVisitor {
    type Value = Uuid;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an id of the form {}…, or its 16 bytes", self.prefix)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Uuid, E> {
        text.strip_prefix(self.prefix)
            .and_then(decode)
            .ok_or_else(|| E::custom(ParseIdError::Form(self.prefix)))
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Uuid, E> {
        Uuid::from_slice(bytes).map_err(|_| E::invalid_length(bytes.len(), &self))
    }
}

macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// What every id of this kind begins with.
            pub const PREFIX: &'static str = $prefix;

            /// The id made of these 128 bits; randomness and time come from the caller.
            #[must_use]
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The 128 bits behind the text.
            #[must_use]
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix($prefix)
                    .and_then(decode)
                    .map(Self)
                    .ok_or(ParseIdError::Form($prefix))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    serializer.serialize_bytes(self.0.as_bytes())
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                // Both forms are taken whatever the format says of itself: inside an internally tagged enum serde
                // buffers the value and forgets that the format is binary.
                let visitor = IdVisitor { prefix: $prefix };
                if deserializer.is_human_readable() {
                    deserializer.deserialize_str(visitor).map(Self)
                } else {
                    deserializer.deserialize_bytes(visitor).map(Self)
                }
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": concat!("^", $prefix, "[0-7][0-9a-hjkmnp-tv-z]{25}$")
                })
            }
        }
    )*};
}

uuid_id! {
    /// A Browser Space.
    SpaceId = "spc_";
    /// A task of a Space.
    TaskId = "tsk_";
    /// One dispatch of a task, for matching an outcome with what was asked.
    OperationId = "op_";
    /// A browser instance.
    InstanceId = "ins_";
    /// A binding: a Workspace's right to reserve an instance.
    BindingId = "bnd_";
    /// A file that a task made.
    ArtifactId = "art_";
    /// An API token; names it, never is it.
    TokenId = "tok_";
    /// One append; the same id appended again is answered with the first result.
    CommandId = "cmd_";
    /// One start of the server.
    BootId = "boot_";
}

macro_rules! name {
    ($($(#[$doc:meta])* $name:ident($what:literal, $max:literal, $allowed:expr, $alphabet:expr);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// The longest such name, in bytes.
            pub const BYTES_MAX: usize = $max;

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let allowed: fn(char) -> bool = $allowed;
                if text.is_empty() || text.len() > $max || !text.chars().all(allowed) {
                    return Err(ParseIdError::Name { what: $what, bytes_max: $max, alphabet: $alphabet });
                }
                Ok(Self(text.into()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": $max })
            }
        }
    )*};
}

fn is_slug(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

fn is_printable(letter: char) -> bool {
    !letter.is_control()
}

const SLUG: &str = "ASCII letters, digits, `-`, `_` and `.`";
const GRAPHIC: &str = "ASCII characters without spaces and controls";
const PRINTABLE: &str = "bytes without control characters";

name! {
    /// The tenancy boundary. A slug that its operator chose.
    WorkspaceId("workspace id", 64, is_slug, SLUG);
    /// Who a Space belongs to, or who calls; opaque to the server.
    OwnerId("owner id", 128, |letter| letter.is_ascii_graphic(), GRAPHIC);
    /// A client's own id of one submit, for idempotency.
    RequestId("request id", 64, is_printable, PRINTABLE);
    /// A capability's name, as in the catalogue.
    CapabilityName("capability name", 255, |letter| letter.is_ascii_graphic(), GRAPHIC);
    /// A display name for people.
    DisplayName("name", 128, is_printable, PRINTABLE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_written_in_both_forms() {
        let id = SpaceId::from_uuid(Uuid::from_u128(0x0193_7a2b_1c3d_7e4f_8011_2233_4455_6677));
        assert_eq!(id.to_string().parse::<SpaceId>(), Ok(id));
        let json = serde_json::to_string(&id).expect("an id serializes");
        assert_eq!(serde_json::from_str::<SpaceId>(&json).expect("it parses"), id);
        let packed = rmp_serde::to_vec(&id).expect("an id serializes");
        assert_eq!(packed.len(), 18, "16 bytes and a bin header");
        assert_eq!(rmp_serde::from_slice::<SpaceId>(&packed).expect("it parses"), id);
    }

    #[test]
    fn an_id_of_another_kind_or_a_second_spelling_is_refused() {
        let task = TaskId::from_uuid(Uuid::max()).to_string();
        assert!(task.parse::<SpaceId>().is_err());
        assert_eq!(task, "tsk_7zzzzzzzzzzzzzzzzzzzzzzzzz");
        assert!("tsk_8zzzzzzzzzzzzzzzzzzzzzzzzz".parse::<TaskId>().is_err());
        assert!(task.to_uppercase().parse::<TaskId>().is_err());
    }

    #[test]
    fn a_name_is_bounded_and_keeps_to_its_alphabet() {
        assert!("team-a.prod_1".parse::<WorkspaceId>().is_ok());
        for bad in ["", "../x", "a b", "a/b", &"x".repeat(65)] {
            assert!(bad.parse::<WorkspaceId>().is_err(), "{bad:?}");
        }
        assert!("line\nbreak".parse::<RequestId>().is_err());
    }

    #[test]
    fn a_refused_name_is_told_its_rule_and_not_quoted() {
        let refused = |said: Result<(), ParseIdError>| said.expect_err("it is no such name").to_string();
        assert_eq!(
            refused("Team 2".parse::<WorkspaceId>().map(drop)),
            "not a valid workspace id: it has 1 to 64 ASCII letters, digits, `-`, `_` and `.`"
        );
        let owner = refused("two words".parse::<OwnerId>().map(drop));
        assert!(owner.contains("1 to 128") && owner.contains("without spaces"), "{owner}");
        assert!(!owner.contains("two"), "{owner}");
    }
}
