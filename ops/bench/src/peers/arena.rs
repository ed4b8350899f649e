//! Turns: each side does the same job after the other has come to rest, and who begins goes round. A side that fails has
//! that said in its row; it is started anew for its next turn, a few times.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{
    contestant::{Contestant, Side, Start},
    results::{Job, Results, Sample},
    tree::Memory,
};
use crate::{browser::rest, disk::milliseconds};

/// How often a side may be started, cold starts that are measured aside.
const STARTS_MAX: u32 = 4;

struct Seat {
    side: Side,
    contestant: Option<Box<dyn Contestant>>,
    starts: u32,
}

/// All sides, and what they did.
pub(crate) struct Arena<'a> {
    /// What a start needs.
    pub(crate) start: Start<'a>,
    /// What was measured so far.
    pub(crate) results: Results,
    seats: Vec<Seat>,
    turns: usize,
}

impl<'a> Arena<'a> {
    /// With these sides; each starts with its first turn.
    pub(crate) fn new(start: Start<'a>, sides: &[Side]) -> Self {
        let seat = |side: &Side| Seat { side: *side, contestant: None, starts: 0 };
        Self { start, results: Results::default(), seats: sides.iter().map(seat).collect(), turns: 0 }
    }

    /// The sides, in the order of this round.
    pub(crate) fn order(&self, round: usize) -> Vec<Side> {
        let mut sides: Vec<Side> = self.seats.iter().map(|seat| seat.side).collect();
        let first = round % sides.len().max(1);
        sides.rotate_left(first);
        sides
    }

    /// One side does one job, which is measured. What the work gives, or nothing where it failed.
    ///
    /// # Errors
    /// Only if the run is interrupted.
    pub(crate) fn turn<T>(
        &mut self,
        side: Side,
        job: Job,
        limit: Duration,
        work: impl FnOnce(&mut dyn Contestant) -> Result<T>,
    ) -> Result<Option<T>> {
        if let Err(error) = self.seated(side) {
            return self.failed(side, job, &error);
        }
        let watch = self.start.watch;
        let seat = self.seats.iter_mut().find(|seat| seat.side == side).context("the side takes part")?;
        let contestant = seat.contestant.as_deref_mut().context("it was seated")?;
        let tree = contestant.tree().clone();
        let before = tree.cpu();
        let begun = Instant::now();
        let outcome = watch.over(&tree, limit, || work(contestant));
        let ms = milliseconds(begun.elapsed());
        match outcome {
            Ok(value) => {
                let cpu = tree.cpu().since(before);
                self.results.add(job, side, Sample { ms, cpu });
                Ok(Some(value))
            }
            Err(error) => {
                seat.contestant = None;
                self.failed(side, job, &error)
            }
        }
    }

    /// A side starts, opens a page and reads it, beside the one that plays; then it ends.
    ///
    /// # Errors
    /// Only if the run is interrupted.
    pub(crate) fn cold(&mut self, side: Side, url: &str, title: &str, limit: Duration) -> Result<()> {
        let children = super::tree::ended_children_ms();
        let begun = Instant::now();
        let outcome = self.start.start(side).and_then(|mut contestant| {
            let tree = contestant.tree().clone();
            let read = self.start.watch.over(&tree, limit, || {
                contestant.navigate(url, title)?;
                contestant.snapshot()
            });
            let ms = milliseconds(begun.elapsed());
            let mut cpu = tree.cpu();
            cpu.own_ms -= children;
            read.map(|_| Sample { ms, cpu })
        });
        match outcome {
            Ok(sample) => self.results.add(Job::Cold, side, sample),
            Err(error) => drop(self.failed::<()>(side, Job::Cold, &error)?),
        }
        Ok(())
    }

    /// What a side takes up; nothing where it does not run.
    pub(crate) fn memory(&self, side: Side) -> Option<Memory> {
        let seat = self.seats.iter().find(|seat| seat.side == side)?;
        Some(seat.contestant.as_ref()?.tree().memory())
    }

    /// Time for all browsers to come to rest.
    pub(crate) fn rest(&mut self) {
        self.turns += 1;
        thread::sleep(rest(self.turns));
    }

    fn seated(&mut self, side: Side) -> Result<()> {
        let seat = self.seats.iter_mut().find(|seat| seat.side == side).context("the side takes part")?;
        if seat.contestant.is_none() {
            if seat.starts == STARTS_MAX {
                bail!("it failed too often");
            }
            seat.starts += 1;
            seat.contestant = Some(self.start.start(side)?);
        }
        Ok(())
    }

    fn failed<T>(&mut self, side: Side, job: Job, error: &anyhow::Error) -> Result<Option<T>> {
        if self.start.watch.is_interrupted() {
            bail!("interrupted");
        }
        eprintln!("  {}: {job} failed: {error:#}", side.name());
        self.results.fail(job, side, format!("{error:#}"));
        Ok(None)
    }
}
