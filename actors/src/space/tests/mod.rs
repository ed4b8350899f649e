//! The rules of a Space, promise by promise; then all of them at once, by walking every state there is.

mod closing;
mod explore;
mod fold;
mod opening;
mod runtime;
mod submitting;
mod tasks;
