//! `mutants`: breaks one rule at a time and looks whether the tests notice.
//!
//! All of them are built once, into programs of their own (feature `mutants`); an environment variable says which rule
//! is broken. A rule whose break nothing notices is a promise that nothing tests.

use std::process::Stdio;

use anyhow::{Result, bail};

use crate::run::{command, run};

/// The environment variable that names the broken rule.
const MUTANT: &str = "BROWSERSPACE_MUTANT";

/// How cargo-nextest ends when it has run the tests and one has failed.
const TESTS_FAILED: i32 = 100;

/// A rule that can be broken, the promise that falls with it, and the tests that must notice.
struct Mutant {
    name: &'static str,
    promise: &'static str,
    suite: Suite,
}

/// Which tests must notice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suite {
    /// The simulated server.
    Simulation,
    /// The log by itself: its contract and its crashes.
    Log,
    /// What `verify` says of a log that somebody has changed.
    Verify,
}

impl Suite {
    const fn filter(self) -> &'static str {
        match self {
            Self::Simulation => "binary(seeds) & test(no_seed_breaks_a_promise)",
            Self::Log => "binary(segment_conformance) | binary(power_cut) | binary(disk_faults)",
            Self::Verify => "binary(tampering)",
        }
    }
}

const fn mutant(name: &'static str, promise: &'static str, suite: Suite) -> Mutant {
    Mutant { name, promise, suite }
}

/// Every rule that can be broken.
const MUTANTS: &[Mutant] = &[
    mutant("two_tasks_at_once", "I1", Suite::Simulation),
    mutant("starts_before_the_last_is_gone", "I1", Suite::Simulation),
    mutant("tells_a_browser_twice", "I2", Suite::Simulation),
    mutant("forgets_what_was_interrupted", "I3", Suite::Simulation),
    mutant("forgets_the_queue", "I3", Suite::Simulation),
    mutant("waits_for_ever", "I3", Suite::Simulation),
    mutant("told_before_it_is_durable", "I4", Suite::Simulation),
    mutant("cancelled_before_it_stopped", "I5", Suite::Simulation),
    mutant("reserved_twice", "I6", Suite::Simulation),
    mutant("keeps_the_instance", "I6", Suite::Simulation),
    mutant("request_id_is_forgotten", "I7", Suite::Simulation),
    mutant("conflict_is_a_repeat", "I7", Suite::Simulation),
    mutant("closes_over_a_task", "I8", Suite::Simulation),
    mutant("closing_for_ever", "I8", Suite::Simulation),
    mutant("drains_without_closing", "I8", Suite::Simulation),
    mutant("sequences_have_gaps", "I9", Suite::Simulation),
    mutant("views_miss_the_end_of_a_batch", "I9", Suite::Simulation),
    mutant("recovery_trusts_the_cache", "C15", Suite::Log),
    mutant("a_new_segment_has_no_name", "C15", Suite::Log),
    mutant("a_torn_tail_stays", "C15", Suite::Log),
    mutant("half_a_batch_stays", "C15", Suite::Log),
    mutant("a_failed_sync_is_success", "C15", Suite::Log),
    mutant("a_repeat_is_stored_again", "C15", Suite::Log),
    mutant("expectations_are_ignored", "C15", Suite::Log),
    mutant("checksums_are_ignored", "verify", Suite::Verify),
    mutant("verify_skips_positions", "verify", Suite::Verify),
    mutant("verify_skips_sequences", "verify", Suite::Verify),
    mutant("verify_skips_the_stream_chain", "verify", Suite::Verify),
    mutant("verify_skips_commits", "verify", Suite::Verify),
    mutant("verify_skips_footers", "verify", Suite::Verify),
    mutant("verify_skips_missing_segments", "verify", Suite::Verify),
    mutant("verify_calls_damage_a_crash", "verify", Suite::Verify),
];

/// The same build each time: nothing is built between two mutants.
const NEXTEST: &[&str] =
    &["nextest", "run", "--locked", "-p", "simulation", "-p", "eventlog", "--features", "simulation/mutants"];

/// `cargo xtask mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these; all, if none is named.
    #[arg(value_parser = known)]
    names: Vec<String>,
}

fn known(name: &str) -> Result<String> {
    let is_known = MUTANTS.iter().any(|mutant| mutant.name == name);
    if is_known { Ok(name.to_owned()) } else { bail!("no rule can be broken under this name") }
}

/// Runs them all.
pub(crate) fn all() -> Result<()> {
    mutants(&Options { names: Vec::new() })
}

/// Runs those that are named.
pub(crate) fn mutants(options: &Options) -> Result<()> {
    let is_asked =
        |mutant: &&Mutant| options.names.is_empty() || options.names.iter().any(|name| name == mutant.name);
    let asked: Vec<&Mutant> = MUTANTS.iter().filter(is_asked).collect();
    run("cargo", &[NEXTEST, &["--no-run"]].concat())?;
    for suite in [Suite::Simulation, Suite::Log, Suite::Verify] {
        if asked.iter().any(|mutant| mutant.suite == suite) && notices(None, suite)? {
            bail!("{} fails with no rule broken", suite.filter());
        }
    }
    let mut missed = Vec::new();
    for Mutant { name, promise, suite } in &asked {
        let caught = notices(Some(name), *suite)?;
        eprintln!("  {:<8}{promise:<8}{name}", if caught { "caught" } else { "MISSED" });
        if !caught {
            missed.push(*name);
        }
    }
    eprintln!("{} of {} mutants caught", asked.len() - missed.len(), asked.len());
    if missed.is_empty() { Ok(()) } else { bail!("nothing noticed {}", missed.join(", ")) }
}

/// Whether a test of the suite fails. Whatever else may be wrong, a build for one, has noticed nothing.
fn notices(mutant: Option<&str>, suite: Suite) -> Result<bool> {
    let args = [NEXTEST, &["--fail-fast", "-E", suite.filter()]].concat();
    let mut command = command("cargo", &args);
    command.env_remove(MUTANT).env("BROWSERSPACE_SIM_FIRST", "1");
    if let Some(name) = mutant {
        command.env(MUTANT, name);
    }
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    match status.code() {
        Some(0) => Ok(false),
        Some(TESTS_FAILED) => Ok(true),
        _ => bail!("the tests did not run: cargo nextest ended with {status}"),
    }
}
