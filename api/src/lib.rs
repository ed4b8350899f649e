//! Who may ask, and how: HTTP, identity, sockets, and the program that ties it together.

pub mod config;
pub mod telemetry;
