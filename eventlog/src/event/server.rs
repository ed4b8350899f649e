//! What happened to the server itself: the stream `server`.

use super::events;
use crate::id::BootId;

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
    }
}
