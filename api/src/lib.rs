//! Who may ask, and how: HTTP, identity, and the program that ties it together.
//!
//! | module | holds |
//! |---|---|
//! | [`cli`] | the program as a person types it |
//! | [`server`] | start and stop, in order: telemetry → log → recovery → projector → HTTP |
//! | [`audit`] | the log and everything beside it, checked |
//! | [`checkpoints`] | signed statements of the log, and where they are carried |
//! | [`offline`] | what can be done to a data folder without a server |
//! | [`config`], [`telemetry`] | what an operator sets, and what an operator sees |
//! | [`http`] | every route, and the layers around them |
//! | [`identity`] | who calls, from which page and under which name of ours |
//! | [`limits`] | what an operator may set about HTTP, and the counters that keep it |
//! | [`problem`] | every error: code, status, retry advice |
//! | [`openapi`] | the same surface as a document |

pub mod audit;
pub mod checkpoints;
pub mod cli;
pub mod config;
pub mod http;
pub mod identity;
pub mod limits;
pub mod offline;
pub mod openapi;
pub mod problem;
pub mod server;
pub mod telemetry;

#[cfg(test)]
mod generated;
