//! A Space: the rules and the actor that runs them.

pub mod summary;
