//! What may happen: the rules of a Space, the actors that run them, the runtimes that do the work.
//!
//! [`Spaces`] is the one door; no kameo type leaves this crate.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test that can't go on says so"))]

mod artifact;
pub mod audit;
pub mod caller;
pub mod capability;
pub mod clock;
pub mod config;
mod create;
mod directory;
pub mod download;
mod drain;
mod environment;
mod execution;
pub mod fleet;
mod history;
mod idle;
pub mod instance;
pub mod place;
mod recovery;
pub mod rejection;
mod repeat;
mod request;
pub mod runtime;
mod screencast;
pub mod space;
pub mod spaces;
pub mod supervisor;
#[cfg(test)]
mod tests;
pub mod tokens;
pub mod workspace;
mod world;

pub use self::{
    caller::{Caller, Context, Scope},
    config::Config,
    environment::plain as plain_text,
    rejection::{Denial, Rejection},
    spaces::{Parts, Spaces},
};

/// Why the actors did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log could not be read back.
    #[error("the log could not be read back")]
    Read(#[from] eventlog::ReadError),
    /// The log took no boot event.
    #[error("the log takes no writes")]
    Append(#[from] eventlog::AppendError),
    /// The data folder refused.
    #[error("the data folder could not be used")]
    Io(#[from] std::io::Error),
    /// The key store could not be opened.
    #[error("the key store could not be opened")]
    Keys(#[from] eventlog::sealing::KeyError),
}
