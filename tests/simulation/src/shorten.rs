//! Makes a failing plan short: leaves steps out, in ever smaller pieces, as long as the same promise is broken.

use crate::{
    has_views,
    plan::Step,
    run::{Broken, run},
};

/// So many runs at most.
const RUNS_MAX: usize = 300;

/// The shortest plan found that breaks the same promise, and how it does.
#[must_use]
pub fn shortened(seed: u64, steps: &[Step], broken: Broken) -> (Vec<Step>, Broken) {
    // What follows the break had no part in it.
    let mut steps = steps[..(broken.step + 1).min(steps.len())].to_vec();
    let mut broken = broken;
    let mut piece = (steps.len() / 2).max(1);
    let mut runs = 0;
    loop {
        let mut at = 0;
        while at < steps.len() && runs < RUNS_MAX {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + piece).min(steps.len()));
            runs += 1;
            match run(seed, &fewer, has_views(seed)) {
                Err(again) if promise(&again) == promise(&broken) => (steps, broken) = (fewer, again),
                _ => at += piece,
            }
        }
        if piece == 1 || runs >= RUNS_MAX {
            return (steps, broken);
        }
        piece = piece.div_ceil(2).min(piece - 1).max(1);
    }
}

/// `I3` of `I3: a task ends twice`.
fn promise(broken: &Broken) -> &str {
    broken.what.split(':').next().unwrap_or_default()
}
