//! The capabilities: one args shape, one result shape and one method of [`crate::Browser`] each.

pub mod args;
mod content;
mod dialog;
mod fill;
mod keyboard;
mod keys;
mod navigate;
mod page_state;
mod pointer;
mod press;
pub mod results;
mod screenshot;
mod tabs;
mod wait;
