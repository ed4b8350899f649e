//! What happened to the server itself: the stream `server`.

use super::events;
use crate::{id::BootId, number::Position};

events! {
    /// A fact of the server's stream.
    ServerEvent {
        /// The server started on this data folder.
        Booted = "booted" {
            boot: BootId,
            version: String,
        }
        /// New Spaces and tasks are refused from here on.
        DrainStarted = "drain_started" {
            boot: BootId,
        }
        /// The server ended in order. A boot without one was a crash.
        Stopped = "stopped" {
            boot: BootId,
        }
        /// An operator accepted that events are lost, and had the log cut before the first bad place. The positions
        /// from there on are given to other events; this one is the first of them.
        Repaired = "repaired" {
            boot: BootId,
            /// What was wrong, as `verify` names it.
            damage: String,
            /// The segment that was cut, and its new length.
            file: String,
            offset: u64,
            /// The lost events, as far as is known; `last_lost` is one less than `first_lost` if none is known.
            first_lost: Position,
            last_lost: Position,
            /// The files in the log's folder that hold what was cut off.
            kept: Vec<String>,
        }
    }
}
