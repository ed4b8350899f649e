//! A browser instance: who holds it, how its runtime stands, whether it may be started.
//!
//! ```text
//!  Absent ──Registered──► Free ◄──Released── Held ──Retired──► retired: only releases and runtime ends follow
//!                           └───Reserved──────▲
//!
//!  its runtime:  Down ──RuntimeStarting(n+1)──► Starting(n+1) ──RuntimeReady──► Ready(n+1)
//!                  ▲────────── RuntimeLost, RuntimeStopped ────────┴───────────────┘
//! ```
//!
//! The same shape as [`crate::space`]: [`command`], [`decide`](decide()), [`evolve`](evolve()), [`due`](due()), all pure.
//! Back-off and the count of losses are the supervisor's; here is only what is recorded of them. The reservation
//! itself is decided with its Space, in [`crate::space::open()`].

pub mod command;
pub mod decide;
pub mod effect;
pub mod evolve;
pub(crate) mod keeper;
pub(crate) mod policy;
pub mod state;
#[cfg(test)]
mod tests;

pub use self::{
    command::{Allowed, Command, Facts, Register},
    decide::{Decision, decide},
    effect::{Effect, due},
    evolve::{evolve, evolve_all, evolve_recorded},
    state::{Circuit, Health, Holder, Instance, InstanceState, RuntimeState},
};

/// An instance names at most so many Workspaces.
pub const WORKSPACES_MAX: usize = 256;
/// A network policy names at most so many hosts, allowed and denied each.
pub const POLICY_HOSTS_MAX: usize = 256;
