//! The whole server on one thread, on a simulated disk, clock and browser, all of them told by one seed.
//!
//! ```text
//!  seed ─► plan: asks, time, faults ─► life: the real actors, recovery, drain, log, over ─► sim disk, clock, browsers
//!               ▲                        │ events, calls, answers
//!               └── shortened ◄── broken ┴─► monitor: I1 to I9, after each step and each crash
//! ```
//!
//! The same seed gives the same log, byte for byte. A seed that breaks a promise is shortened to the steps that do it.

#![allow(clippy::expect_used, reason = "a simulation that can't go on says so")]

mod clients;
mod clock;
mod ledger;
mod life;
mod log;
mod monitor;
mod plan;
mod run;
mod runtime;
mod shorten;
mod views;

pub use self::{
    plan::{Asked, Step, plan},
    run::{Broken, Outcome, run},
    shorten::shortened,
};

/// Repeats one seed: `BROWSERSPACE_SIM_SEED=7`.
pub const SEED: &str = "BROWSERSPACE_SIM_SEED";
/// So many seeds: `BROWSERSPACE_SIM_SEEDS=2000`.
pub const SEEDS: &str = "BROWSERSPACE_SIM_SEEDS";

/// Stops at the first broken promise and does not shorten its plan: `BROWSERSPACE_SIM_FIRST=1`.
pub const FIRST: &str = "BROWSERSPACE_SIM_FIRST";
/// Keeps the data folder of each run that ends well, and says where: `BROWSERSPACE_SIM_KEEP=1`.
pub const KEEP: &str = "BROWSERSPACE_SIM_KEEP";

/// Whether the views are folded as well in the run of this seed.
#[must_use]
pub const fn has_views(seed: u64) -> bool {
    seed.is_multiple_of(4)
}

/// Runs a seed, and if it breaks a promise tells everything that is needed to repeat it.
///
/// # Errors
/// The report.
pub fn run_seed(seed: u64) -> Result<Outcome, String> {
    let steps = plan(seed);
    run(seed, &steps, has_views(seed)).map_err(|broken| {
        if std::env::var_os(FIRST).is_some() {
            return format!("seed {seed} breaks a promise: {}", broken.what);
        }
        let (steps, broken) = shortened(seed, &steps, broken);
        let list: String = steps.iter().map(|step| format!("  {step:?}\n")).collect();
        format!(
            "seed {seed} breaks a promise: {}\nat step {} of these {}:\n{list}\
             again: {SEED}={seed} cargo nextest run -p simulation",
            broken.what,
            broken.step + 1,
            steps.len()
        )
    })
}
