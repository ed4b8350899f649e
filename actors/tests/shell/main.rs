//! What the actors promise, on the log in memory, on paused time, with scripted runtimes.

mod crash;
mod harness;
mod lifecycle;
mod linearizable;
mod tasks;
