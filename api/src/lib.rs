//! Who may ask, and how: HTTP, identity, and the program that ties it together.
//!
//! | module | holds |
//! |---|---|
//! | [`http`] | every route, and the layers around them |
//! | [`identity`] | who calls, from which page and under which name of ours |
//! | [`limits`] | what an operator may set, and the counters that keep it |
//! | [`problem`] | every error: code, status, retry advice |
//! | [`openapi`] | the same surface as a document |

pub mod http;
pub mod identity;
pub mod limits;
pub mod openapi;
pub mod problem;

#[cfg(test)]
mod generated;
