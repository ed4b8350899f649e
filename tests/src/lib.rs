//! What the whole promises. Tests lie in `tests/`, one file per promise; what they share will stand here.
