//! `check` and `test`: what must be clean, and what must hold.

use anyhow::Result;
use clap::Args;

use crate::{
    console, mutants,
    run::{Steps, run, run_with},
    setup,
};

const ADVISORIES: &str = "advisories";
const ADVISORIES_SKIPPED: &str =
    "needs the advisory database from the network: cargo xtask check --advisories";

/// What `check` can be told.
#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Also asks the public advisory database; needs the network.
    #[arg(long)]
    advisories: bool,
}

/// What `test` can be told.
#[derive(Debug, Args)]
pub(crate) struct TestOptions {
    /// Only tests whose name holds this text; leaves formatting, lints and dependencies out.
    filter: Option<String>,
    /// Then the long ones as well: 2 000 simulated servers, more kills and power cuts, and all mutants. Takes hours.
    #[arg(long, conflicts_with = "filter")]
    deep: bool,
}

/// How much more the long run tries, and of what. The tests print how many cases there were.
const DEEP: &[(&str, &str)] = &[
    ("BROWSERSPACE_SIM_SEEDS", "2000"),
    ("BROWSERSPACE_POWER_CUT_SEEDS", "40"),
    ("BROWSERSPACE_EXPLORE_DEPTH", "20"),
    ("BROWSERSPACE_CRASH_ROUNDS", "200"),
    ("CRASH_ROUNDS", "200"),
];

/// The tests that try more when they are told to.
const DEEP_TESTS: &str =
    "package(simulation) | binary(power_cut) | binary(crash) | binary(s15_crash) | test(explore)";

/// Format, lints, dependencies.
pub(crate) fn check(options: &CheckOptions) -> Result<()> {
    let mut steps = Steps::default();
    let outcome = check_steps(&mut steps).and_then(|()| {
        if options.advisories {
            return steps.step(ADVISORIES, || deny(&["advisories"]));
        }
        steps.skip(ADVISORIES, ADVISORIES_SKIPPED);
        Ok(())
    });
    steps.summary();
    outcome
}

/// Everything.
pub(crate) fn test(options: &TestOptions) -> Result<()> {
    let mut steps = Steps::default();
    let outcome = test_steps(&mut steps, options)
        .and_then(|()| if options.deep { deep_steps(&mut steps) } else { Ok(()) });
    steps.summary();
    outcome
}

fn check_steps(steps: &mut Steps) -> Result<()> {
    steps.step("format", || run("cargo", &["fmt", "--all", "--check"]))?;
    steps.step("lints", || {
        run("cargo", &["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"])
    })?;
    steps.step("dependencies", || deny(&["bans", "licenses", "sources"]))
}

fn test_steps(steps: &mut Steps, options: &TestOptions) -> Result<()> {
    steps.step("setup", || {
        setup::chromium().and_then(|()| setup::postgres()).and_then(|()| setup::nextest())
    })?;
    if options.filter.is_none() {
        check_steps(steps)?;
        steps.skip(ADVISORIES, ADVISORIES_SKIPPED);
    }
    // Before the build, which embeds it. A filter names tests of the server.
    let with_console = options.filter.is_none() && console::has_node();
    if with_console {
        console::build_and_test(steps)?;
    } else if options.filter.is_none() {
        steps.skip("console", console::WITHOUT_NODE);
    }
    // The same targets and features as the test run, so that nothing is built twice; it also links the program that
    // the acceptance tests start.
    steps.step("build", || run("cargo", &["build", "--locked", "--workspace", "--all-targets"]))?;
    // Before the tests: who reads the end of the output wants their count, not that of the crates without an example.
    if options.filter.is_none() {
        steps.step("doc tests", || run("cargo", &["test", "--locked", "--workspace", "--doc", "--quiet"]))?;
    }
    let mut args = vec!["nextest", "run", "--locked", "--workspace", "--all-targets"];
    args.extend(options.filter.as_deref());
    steps.step("tests", || {
        // One for the whole run, gone at its end; a test alone makes its own.
        let cluster = own_postgres::Cluster::start()?;
        let shared = (own_postgres::SHARED, &*cluster.url());
        run_with("cargo", &args, &[("RUST_BACKTRACE", "1"), shared])
    })?;
    if with_console {
        steps.step("console: tests in a browser", console::test_in_browser)?;
    }
    Ok(())
}

fn deep_steps(steps: &mut Steps) -> Result<()> {
    let args = [
        &["nextest", "run", "--locked", "--workspace", "--all-targets", "--profile", "deep"],
        &["--success-output", "final", "-E", DEEP_TESTS][..],
    ]
    .concat();
    steps.step("deep: seeds, power cuts, kills", || run_with("cargo", &args, DEEP))?;
    steps.step("deep: mutants", mutants::all)
}

fn deny(checks: &[&str]) -> Result<()> {
    let program = setup::deny()?;
    let graph = ["--all-features", "--locked", "--workspace", "--config", "ops/deny.toml"];
    let mut args = [&graph[..], &["check", "--hide-inclusion-graph", "--show-stats"]].concat();
    args.extend(checks);
    run(&program, &args)
}
