//! A Space: the rules and the actor that runs them.
//!
//! ```text
//!            Opened           TaskQueued            TaskStarted
//!  Absent ──────────► Idle ───────────────► Queued ─────────────► Running
//!                      ▲ ▲                    │ cancelled, failed    │ completed, failed, cancelled
//!                      │ └────────────────────┴──────────────────────┘
//!            Recovered │        Faulted (a queued task stays queued)
//!                      └───────────────► Faulted ◄── from any of them; a running task fails first
//!
//!  any of them ──Closed──► Closed: nothing follows
//! ```
//!
//! [`command`] is what can be asked, [`decide`](decide()) answers with events or a [rejection](crate::Rejection),
//! [`evolve`](evolve()) folds events into a [`SpaceState`], and [`due`](due()) says what the world still owes to it. All
//! of them are pure: time, ids, keys and facts come in as arguments. Who appends, waits and carries out is the actor.

pub(crate) mod actor;
pub mod command;
pub mod decide;
pub mod effect;
pub mod evolve;
pub(crate) mod failure;
pub mod open;
#[cfg(any(test, feature = "testing"))]
pub mod scenario;
pub(crate) mod slot;
pub mod start_fault;
pub mod state;
mod submit;
pub mod summary;
pub mod task_history;
#[cfg(test)]
mod tests;

pub use self::{
    command::{Asker, Command, Facts, Notice, Report, RuntimeStatus, Submit},
    decide::{Decision, Reply, decide},
    effect::{Effect, InHand, due},
    evolve::{evolve, evolve_all, evolve_recorded},
    open::{Open, OpenFacts, Opening, open},
    start_fault::StartFault,
    state::SpaceState,
    task_history::TaskHistory,
};

use std::time::Duration;

/// So many request ids are remembered in a Space's state; the repeat of an older one is found by its append's id.
pub const REQUEST_IDS_KEPT: usize = 1_000;
/// The shortest idle time-out of a Space.
pub const IDLE_TIMEOUT_MIN: Duration = Duration::from_secs(10);
/// The longest idle time-out of a Space.
pub const IDLE_TIMEOUT_MAX: Duration = Duration::from_secs(86_400);
/// The idle time-out of a Space that named none.
pub const IDLE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(1_800);
/// The shortest time-out of a task.
pub const TASK_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// The longest time-out of a task.
pub const TASK_TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// The largest result of a task, as JSON text (S13).
pub const RESULT_BYTES_MAX: usize = 64 * 1024;
/// So many notices (dialogs, blocked requests) are recorded between two tasks; a hostile page can't fill the log.
pub const NOTICES_PER_TASK_MAX: u32 = 64;
