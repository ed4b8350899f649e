//! The closed lists of facts, past tense, one file per kind of stream.
//!
//! An event is never edited once released: a new shape gets a new schema number and an upcast (`upcast.rs`), and
//! its golden bytes stay in `tests/golden/`.

pub mod download;
pub mod environment;
pub mod instance;
pub mod server;
pub mod space;
pub mod workspace;

use serde::Serialize;

pub use self::{
    download::DownloadEvent, instance::InstanceEvent, server::ServerEvent, space::SpaceEvent,
    workspace::WorkspaceEvent,
};
use crate::stream::StreamKind;

/// Any fact that the log can hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// Of a Space's stream.
    Space(SpaceEvent),
    /// Of an instance's stream.
    Instance(InstanceEvent),
    /// Of a Workspace's stream.
    Workspace(WorkspaceEvent),
    /// Of the server's own stream.
    Server(ServerEvent),
    /// Of the stream of a Space's downloads.
    Download(DownloadEvent),
    /// A kind that this program does not know: written by a newer one. Kept as it is, never dropped.
    Unknown(UnknownEvent),
}

/// An event of a kind or schema newer than this program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownEvent {
    /// Its kind, as recorded.
    pub kind: String,
    /// Its schema number, as recorded.
    pub schema: u16,
    /// Its payload, MessagePack as recorded.
    #[serde(skip)]
    pub payload: bytes::Bytes,
}

impl Event {
    /// Which kind of stream this event belongs to; `None` for an unknown one.
    #[must_use]
    pub const fn stream_kind(&self) -> Option<StreamKind> {
        match self {
            Self::Space(_) => Some(StreamKind::Space),
            Self::Instance(_) => Some(StreamKind::Instance),
            Self::Workspace(_) => Some(StreamKind::Workspace),
            Self::Server(_) => Some(StreamKind::Server),
            Self::Download(_) => Some(StreamKind::Downloads),
            Self::Unknown(_) => None,
        }
    }

    /// The stable name of this kind of event, as on the wire: `queued`, `reserved`, …
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Space(event) => event.kind(),
            Self::Instance(event) => event.kind(),
            Self::Workspace(event) => event.kind(),
            Self::Server(event) => event.kind(),
            Self::Download(event) => event.kind(),
            Self::Unknown(event) => &event.kind,
        }
    }
}

macro_rules! into_event {
    ($($variant:ident($inner:ident)),*) => {$(
        impl From<$inner> for Event {
            fn from(event: $inner) -> Self {
                Self::$variant(event)
            }
        }
    )*};
}

into_event!(
    Space(SpaceEvent),
    Instance(InstanceEvent),
    Workspace(WorkspaceEvent),
    Server(ServerEvent),
    Download(DownloadEvent)
);

/// Declares one stream kind's events: the enum, and for each variant its wire name.
///
/// The names here are the only spelling of an event's kind; serde's tag, `kind()` and the codec use them.
macro_rules! events {
    ($(#[$meta:meta])* $enum:ident { $($(#[$doc:meta])* $variant:ident = $kind:literal { $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)? })* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "kind", content = "payload")]
        #[allow(missing_docs, reason = "a field's name and type say what it is; the variant's doc says the rest")]
        pub enum $enum {
            $($(#[$doc])* #[serde(rename = $kind)] $variant { $($(#[$field_meta])* $field: $type),* },)*
        }

        impl $enum {
            /// The kinds of this stream, in the order of their declaration.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The stable name of this kind of event.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $kind,)* }
            }
        }
    };
}
pub(crate) use events;
