//! Which stream an event belongs to: all events of one thing.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::{InstanceId, ParseIdError, SpaceId, WorkspaceId};

/// The kinds of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamKind {
    /// One per Space.
    Space,
    /// One per instance.
    Instance,
    /// One per Workspace: bindings, tokens.
    Workspace,
    /// One: boots.
    Server,
    /// One per Space that downloaded something; it goes on when the Space is over.
    Downloads,
}

/// The name of a stream: `space/spc_…`, `instance/ins_…`, `workspace/default`, `server`,
/// `downloads/spc_…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamId {
    /// Of a Space.
    Space(SpaceId),
    /// Of an instance.
    Instance(InstanceId),
    /// Of a Workspace.
    Workspace(WorkspaceId),
    /// Of the server.
    Server,
    /// Of the downloads of a Space.
    Downloads(SpaceId),
}

impl StreamId {
    /// Which kind of stream it is.
    #[must_use]
    pub const fn kind(&self) -> StreamKind {
        match self {
            Self::Space(_) => StreamKind::Space,
            Self::Instance(_) => StreamKind::Instance,
            Self::Workspace(_) => StreamKind::Workspace,
            Self::Server => StreamKind::Server,
            Self::Downloads(_) => StreamKind::Downloads,
        }
    }
}

impl StreamId {
    /// The binary form, as in frames and index keys: one byte for the kind, then the id's 16 bytes or the name.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, id): (u8, &[u8]) = match self {
            Self::Space(id) => (1, &id.as_uuid().into_bytes()),
            Self::Instance(id) => (2, &id.as_uuid().into_bytes()),
            Self::Workspace(id) => (3, id.as_str().as_bytes()),
            Self::Server => (4, &[]),
            Self::Downloads(id) => (5, &id.as_uuid().into_bytes()),
        };
        [&[kind], id].concat()
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`ParseIdError`]: no stream has this form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseIdError> {
        let bad = ParseIdError::Stream;
        let (kind, id) = bytes.split_first().ok_or(bad)?;
        match kind {
            1 => Uuid::from_slice(id).map(|uuid| Self::Space(SpaceId::from_uuid(uuid))).map_err(|_| bad),
            2 => {
                Uuid::from_slice(id).map(|uuid| Self::Instance(InstanceId::from_uuid(uuid))).map_err(|_| bad)
            }
            3 => std::str::from_utf8(id).map_err(|_| bad)?.parse().map(Self::Workspace),
            4 if id.is_empty() => Ok(Self::Server),
            5 => Uuid::from_slice(id).map(|uuid| Self::Downloads(SpaceId::from_uuid(uuid))).map_err(|_| bad),
            _ => Err(bad),
        }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Space(id) => write!(f, "space/{id}"),
            Self::Instance(id) => write!(f, "instance/{id}"),
            Self::Workspace(id) => write!(f, "workspace/{id}"),
            Self::Server => f.write_str("server"),
            Self::Downloads(id) => write!(f, "downloads/{id}"),
        }
    }
}

impl FromStr for StreamId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        match text.split_once('/') {
            Some(("space", id)) => id.parse().map(Self::Space),
            Some(("instance", id)) => id.parse().map(Self::Instance),
            Some(("workspace", id)) => id.parse().map(Self::Workspace),
            Some(("downloads", id)) => id.parse().map(Self::Downloads),
            None if text == "server" => Ok(Self::Server),
            _ => Err(ParseIdError::Stream),
        }
    }
}

impl Serialize for StreamId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StreamId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
