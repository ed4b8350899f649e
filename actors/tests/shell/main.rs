//! What the actors promise, on the log in memory, on paused time, with scripted runtimes.

mod harness;
mod tasks;
