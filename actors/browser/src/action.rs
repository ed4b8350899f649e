//! The capabilities: one args shape, one result shape and one method of [`crate::Browser`] each.

mod annotate;
pub mod args;
mod choose;
mod content;
mod dialog;
mod drag;
mod evaluate;
mod fill;
mod get;
mod html;
mod keyboard;
mod keys;
mod mouse;
mod navigate;
mod page_state;
mod paint;
mod pdf;
mod place;
mod pointer;
mod press;
pub mod results;
mod screenshot;
mod scroll;
mod tabs;
mod upload;
mod wait;
