//! What the whole promises: the harness of the acceptance tests.
//!
//! A test starts the real program ([`Server`]) on a folder of its own and a free loopback port, speaks HTTP to it
//! ([`Client`]), and proves what happened from the log, the views and the scripted runtime's own journal
//! ([`Journal`]). Nothing here knows the inside of the program.

mod client;
mod journal;
mod pages;
mod program;
mod server;
mod space;
mod stream;
mod traces;
mod wait;

pub use client::{Answer, Client, Transcript};
pub use journal::{Call, CallEnd, Journal, Script};
pub use pages::{Page, Pages};
pub use program::{Exit, Program, binary};
pub use server::{Server, ServerOptions};
pub use space::{Space, SpaceRequest, TASK_WAIT_SECONDS, USUAL_CAPABILITIES, is_terminal};
pub use stream::{Sse, SseEvent};
pub use traces::{Planted, processes_naming};
pub use wait::{DEADLINE, eventually, eventually_within};
