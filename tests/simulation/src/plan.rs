//! What happens in a run, step by step: told by the seed, and nothing in it depends on how the steps before it went. So
//! any part of a plan is a plan as well, which is how a failing one is made short.

use actors::runtime::scripted::StartScript;
use eventlog::sim_disk::DiskFault;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::time::Duration;

/// So many browser instances.
pub(crate) const INSTANCES: usize = 3;
/// At most so many steps.
const STEPS_MAX: usize = 70;
const STEPS_MIN: usize = 25;

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A client asks, and does not wait.
    Ask(Asked),
    /// So many milliseconds pass.
    Pass(u64),
    /// The operation of the disk with this number from now meets this.
    Disk(u64, DiskFault),
    /// So much is free on the disk from now on.
    Free(u64),
    /// The next starts of browsers go so.
    Starts(Vec<StartScript>),
    /// The browsers of this instance end by themselves.
    Lose(usize),
    /// The process is killed, and the next one begins.
    Kill,
    /// The power fails now, and the next process begins.
    PowerCut,
    /// The server is stopped in order, and the next one begins.
    Restart,
}

/// What a client asks. Everything is named by numbers, so that it can be asked again.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// A Space under this key, on this instance.
    Create {
        /// The idempotency key.
        key: u64,
        /// Which instance.
        instance: usize,
    },
    /// A task on the Space that is known under this number.
    Submit {
        /// Which Space.
        space: usize,
        /// Its request id.
        request: u64,
        /// What the browser shall do.
        script: String,
    },
    /// A task on the newest of the open Spaces.
    SubmitNewest {
        /// Its request id.
        request: u64,
        /// What the browser shall do.
        script: String,
    },
    /// The same as a request before it, word for word.
    Again(usize),
    /// The request id of a request before it, for another task.
    Otherwise(usize),
    /// A cancel of what runs there.
    Cancel(usize),
    /// A cancel of what runs in the newest Space.
    CancelNewest,
    /// A close.
    Close(usize),
}

/// The steps of a seed.
#[must_use]
pub fn plan(seed: u64) -> Vec<Step> {
    let mut maker = Maker { random: StdRng::seed_from_u64(seed), keys: 0, requests: 0 };
    // Some runs know no faults, so that there is time for long tales.
    let faulty = !seed.is_multiple_of(8);
    let count = maker.random.random_range(STEPS_MIN..=STEPS_MAX);
    let mut steps = vec![maker.create(), Step::Pass(20)];
    for _ in 0..count {
        steps.push(maker.step(faulty));
        if maker.random.random_bool(0.5) {
            steps.push(maker.pass());
        }
    }
    steps
}

struct Maker {
    random: StdRng,
    keys: u64,
    requests: u64,
}

impl Maker {
    fn step(&mut self, faulty: bool) -> Step {
        let number = self.random.random_range(0..100_usize);
        match self.random.random_range(0..100) {
            0..12 => self.create(),
            12..42 => self.submit(),
            42..50 => Step::Ask(Asked::Again(number)),
            50..54 => Step::Ask(Asked::Otherwise(number)),
            54..58 => Step::Ask(Asked::Cancel(number)),
            58..66 => Step::Ask(Asked::CancelNewest),
            66..72 => Step::Ask(Asked::Close(number)),
            72..75 => Step::Lose(number % INSTANCES),
            75..78 => Step::Starts(self.starts()),
            78..80 => Step::Restart,
            _ if !faulty => self.pass(),
            80..84 => Step::Kill,
            84..88 => Step::PowerCut,
            88..95 => Step::Disk(self.random.random_range(1..20), DiskFault::PowerCut),
            95..97 => Step::Disk(self.random.random_range(1..20), DiskFault::Full),
            97 => Step::Disk(self.random.random_range(1..20), DiskFault::Broken),
            98 => Step::Free(10),
            _ => Step::Free(u64::MAX),
        }
    }

    fn create(&mut self) -> Step {
        self.keys += 1;
        Step::Ask(Asked::Create { key: self.keys, instance: self.random.random_range(0..INSTANCES) })
    }

    fn submit(&mut self) -> Step {
        self.requests += 1;
        let (request, script) = (self.requests, self.script());
        if self.random.random_bool(0.75) {
            return Step::Ask(Asked::SubmitNewest { request, script });
        }
        Step::Ask(Asked::Submit { space: self.random.random_range(0..100), request, script })
    }

    fn script(&mut self) -> String {
        let delay = [0, 2, 20, 200, 5_000][self.random.random_range(0..5)];
        let outcome = match self.random.random_range(0..20) {
            0..10 => "ok",
            10..12 => "fail",
            12..14 => "hang",
            14..16 => "crash",
            16..18 => "late",
            _ => "slow_cancel",
        };
        format!("delay_ms={delay}&outcome={outcome}")
    }

    fn starts(&mut self) -> Vec<StartScript> {
        let count = self.random.random_range(1..=5);
        let mut start = || match self.random.random_range(0..6) {
            0..2 => StartScript::Fail,
            2 => StartScript::Unusable,
            3 => StartScript::After(Duration::from_secs(50)),
            _ => StartScript::After(Duration::from_millis(self.random.random_range(0..3_000))),
        };
        (0..count).map(|_| start()).collect()
    }

    fn pass(&mut self) -> Step {
        let most = [2, 20, 300, 4_000, 70_000][self.random.random_range(0..5)];
        Step::Pass(self.random.random_range(0..most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_tells_its_plan_and_two_seeds_tell_two() {
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
    }
}
