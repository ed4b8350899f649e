//! Ctrl-C, and what else asks this program to end.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Result, bail};

/// Whether somebody has asked for the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches Ctrl-C, SIGTERM and the end of the terminal from now on.
    pub(crate) fn catch() -> Result<Self> {
        let come = Arc::<AtomicBool>::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            signal_hook::flag::register(signal, Arc::clone(&come))?;
        }
        Ok(Self(come))
    }

    /// Whether it has come.
    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails once it has come.
    pub(crate) fn check(&self) -> Result<()> {
        if self.has_come() {
            bail!("interrupted");
        }
        Ok(())
    }
}
