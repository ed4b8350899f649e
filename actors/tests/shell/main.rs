//! What the actors promise, on the log in memory, on paused time, with scripted runtimes.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod chromium;
mod crash;
mod harness;
mod lifecycle;
mod linearizable;
mod tasks;
mod wall;
