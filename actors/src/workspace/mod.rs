//! A Workspace: the tokens that may enter it, and the bindings by which it may reserve instances.
//!
//! The same shape as [`crate::space`]: [`command`], [`decide`](decide()), [`evolve`](evolve()), all pure. Nothing is due
//! to a Workspace: what it says takes effect by being read.

pub mod command;
pub mod decide;
pub mod evolve;
pub(crate) mod keeper;
pub mod state;
#[cfg(test)]
mod tests;

pub use self::{
    command::{Command, Facts, GrantBinding, IssueToken},
    decide::{Decision, decide},
    evolve::{evolve, evolve_all, evolve_recorded},
    state::{Binding, Token, Workspace, WorkspaceState},
};
