//! Who, when and why: what is kept beside every event.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{BootId, CommandId, OwnerId, TokenId, WorkspaceId};

/// Microseconds since 1970-01-01T00:00:00Z, from the writer's clock. Informative: order is by sequence and position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// RFC 3339 in UTC with microseconds, as on the wire: `2026-11-30T15:04:05.000001Z`.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        const FORMAT: &[time::format_description::FormatItem<'_>] = time::macros::format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z"
        );
        time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000)
            .ok()
            .and_then(|moment| moment.format(FORMAT).ok())
            .unwrap_or_else(|| "out of range".to_owned())
    }

    /// This moment and so much later; saturates.
    #[must_use]
    pub fn plus(self, duration: std::time::Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> std::time::Duration {
        std::time::Duration::from_micros(self.0.saturating_sub(earlier.0).max(0).unsigned_abs())
    }
}

/// The W3C trace id, 16 bytes, written as 32 lower-case hex digits; all zero where there was no trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TraceId(pub [u8; 16]);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for TraceId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_bytes(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for TraceId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
            let mut bytes = [0; 16];
            hex::decode_to_slice(text.as_bytes(), &mut bytes).map_err(serde::de::Error::custom)?;
            Ok(Self(bytes))
        } else {
            serde_bytes::ByteArray::<16>::deserialize(deserializer).map(|bytes| Self(bytes.into_array()))
        }
    }
}

/// What a principal may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sends commands on Spaces that it owns.
    RuntimeAgent,
    /// Runs the server: instances, bindings, tokens, and any Space of its Workspaces.
    Operator,
    /// Reads everything of its Workspaces and changes nothing.
    Auditor,
}

/// Who asked, as the server authenticated it; never what a caller typed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Principal {
    /// The server itself: recovery, supervision, time-outs.
    System,
    /// A bearer of a token.
    Token {
        /// Its role at that time.
        role: Role,
        /// Its opaque id.
        id: OwnerId,
        /// Which token was shown.
        token: TokenId,
    },
}

/// What is kept beside every event. `command` makes the append idempotent and is the cause of its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Who asked.
    pub principal: Principal,
    /// The Workspace that the event belongs to; `None` for what belongs to the server alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceId>,
    /// When the server decided it.
    pub recorded_at: Timestamp,
    /// The correlation id: the trace in which it was decided.
    #[serde(default)]
    pub trace_id: TraceId,
    /// The append that caused this one, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation: Option<CommandId>,
    /// Which start of the server wrote it.
    pub boot: BootId,
}
