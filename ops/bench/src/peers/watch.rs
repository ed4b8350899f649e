//! Deadlines of what blocks: a side that does not answer in time is killed, whole, so that whoever reads from it reads
//! its end. An interrupt does the same to the side at work; then the run unwinds, and everything is cleaned up.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use super::tree::Tree;

const LOOKS_EVERY: Duration = Duration::from_millis(50);

#[derive(Default)]
struct State {
    at_work: Mutex<Option<(Instant, Tree)>>,
    interrupted: AtomicBool,
}

/// The watch over the side that works.
#[derive(Clone, Default)]
pub(crate) struct Watch(Arc<State>);

impl Watch {
    /// Begins to watch.
    pub(crate) fn begin() -> Self {
        let watch = Self::default();
        let state = Arc::downgrade(&watch.0);
        thread::spawn(move || {
            while let Some(state) = state.upgrade() {
                state.look();
                drop(state);
                thread::sleep(LOOKS_EVERY);
            }
        });
        watch
    }

    /// Ends the side at work, and lets none begin.
    pub(crate) fn interrupt(&self) {
        self.0.interrupted.store(true, Ordering::SeqCst);
    }

    /// Whether somebody wants the run to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.0.interrupted.load(Ordering::SeqCst)
    }

    /// Does the work of a side within `limit`.
    pub(crate) fn over<T>(
        &self,
        tree: &Tree,
        limit: Duration,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if self.is_interrupted() {
            bail!("interrupted");
        }
        let deadline = Instant::now() + limit;
        *self.0.at_work.lock().unwrap_or_else(PoisonError::into_inner) = Some((deadline, tree.clone()));
        let done = work();
        let killed = self.0.at_work.lock().unwrap_or_else(PoisonError::into_inner).take().is_none();
        if killed && self.is_interrupted() {
            bail!("interrupted");
        } else if killed {
            bail!("no end within {} s", limit.as_secs());
        }
        done
    }
}

impl State {
    fn look(&self) {
        let mut at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |(deadline, _): &mut (Instant, Tree)| Instant::now() > *deadline;
        let late =
            if self.interrupted.load(Ordering::SeqCst) { at_work.take() } else { at_work.take_if(is_over) };
        if let Some((_, tree)) = late {
            tree.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    use super::*;

    #[test]
    fn a_side_that_does_not_answer_is_killed_and_said_to_be_late() {
        let mut child = Command::new("/bin/sleep").arg("300").spawn().expect("a process");
        let tree = Tree::new(Some(child.id()), Path::new("/no/such/folder"), Path::new("/no/such/browser"));
        let watch = Watch::begin();
        let outcome = watch.over(&tree, Duration::from_millis(100), || Ok(child.wait()?));
        assert_eq!(outcome.expect_err("it is late").to_string(), "no end within 0 s");
        assert!(watch.over(&tree, Duration::from_secs(60), || Ok(())).is_ok());
        watch.interrupt();
        let outcome = watch.over(&tree, Duration::from_secs(60), || Ok(()));
        assert_eq!(outcome.expect_err("nothing begins").to_string(), "interrupted");
    }
}
