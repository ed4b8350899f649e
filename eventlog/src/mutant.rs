//! Broken variants of the rules, one at a time, to show that the tests would notice: feature `mutants`.
//!
//! Without the feature [`is`] is `false` at compile time and leaves nothing behind. With it, the environment variable
//! `BROWSERSPACE_MUTANT` names the one rule that is broken. `cargo xtask mutants` runs them all; each must be caught.

/// Whether the rule of this name is broken.
#[cfg(not(feature = "mutants"))]
#[must_use]
#[inline(always)]
pub const fn is(_name: &str) -> bool {
    false
}

/// Whether the rule of this name is broken.
#[cfg(feature = "mutants")]
#[must_use]
pub fn is(name: &str) -> bool {
    static BROKEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    BROKEN.get_or_init(|| std::env::var("BROWSERSPACE_MUTANT").ok()).as_deref() == Some(name)
}
