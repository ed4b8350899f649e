//! What may happen: the rules of a Space, the actors that run them, the runtimes that do the work.
//!
//! [`Spaces`] is the one door; no kameo type leaves this crate.

pub mod caller;
pub mod capability;
pub mod clock;
pub mod config;
mod idle;
pub mod instance;
pub mod place;
pub mod rejection;
pub mod runtime;
pub mod space;
pub mod spaces;
pub mod supervisor;
pub mod tokens;
pub mod workspace;

pub use self::{
    caller::{Caller, Context, Scope},
    rejection::Rejection,
    spaces::Spaces,
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
}
