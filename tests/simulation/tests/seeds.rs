//! Seeds: the promises hold in each, and each can be repeated exactly.

use std::panic::{AssertUnwindSafe, catch_unwind};

use simulation::{FIRST, Outcome, SEED, SEEDS, has_views, plan, run, run_seed};

/// In the ordinary run.
const SEEDS_DEFAULT: u64 = 120;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

fn tried(seed: u64) -> Result<Outcome, String> {
    catch_unwind(AssertUnwindSafe(|| run_seed(seed))).unwrap_or_else(|_| {
        Err(format!("seed {seed} panics\nagain: {SEED}={seed} cargo nextest run -p simulation"))
    })
}

#[test]
fn no_seed_breaks_a_promise() {
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..number(SEEDS).unwrap_or(SEEDS_DEFAULT),
    };
    let count = seeds.end - seeds.start;
    let (mut all, mut broken) = (Outcome::default(), Vec::new());
    for seed in seeds {
        match tried(seed) {
            Ok(outcome) => all.add(&outcome),
            Err(report) => broken.push(report),
        }
        if broken.len() >= if std::env::var_os(FIRST).is_some() { 1 } else { 3 } {
            break;
        }
    }
    let Outcome { events, lives, kills, power_cuts, acknowledged, refused, calls, .. } = all;
    println!(
        "{count} seeds: {lives} lives, {kills} kills, {power_cuts} power cuts, {events} events, {calls} calls; \
         {acknowledged} acknowledged, 0 lost; {refused} refused; {} broken",
        broken.len()
    );
    assert!(broken.is_empty(), "\n{}", broken.join("\n\n"));
}

#[test]
fn the_same_seed_gives_the_same_log_byte_for_byte() {
    let seeds = number(SEED).map_or(0..8, |seed| seed..seed + 1);
    for seed in seeds {
        let steps = plan(seed);
        let [first, second] = [(); 2].map(|()| run(seed, &steps, has_views(seed)));
        assert_eq!(first, second, "{SEED}={seed}");
    }
}
