//! What builds, runs, checks and measures the project: `cargo xtask <command>`.
//!
//! Every command installs what it needs first (`setup.rs`), says what it runs, and ends with a summary.

mod bench;
mod check;
mod console;
mod demo;
mod generate;
mod mutants;
mod peers;
mod run;
mod setup;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Builds, runs, checks and measures browserspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Xtask {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the main job on a real browser and a real page, and shows each step.
    Demo(demo::Options),
    /// Everything: setup, format, lints, dependencies, build, and all tests with a real browser.
    Test(check::TestOptions),
    /// The quick part of `test`: format, lints, dependencies.
    Check(check::CheckOptions),
    /// Breaks one rule at a time and looks whether the tests notice; prints the catch rate.
    Mutants(mutants::Options),
    /// Measures, each figure with its baseline in the same run.
    Bench(bench::Options),
    /// Builds the web console, which the next build of the server embeds; needs Node.
    Console,
    /// Writes the generated files again: docs/openapi.json, docs/errors.md, new golden events and the console's types.
    Generate,
    /// Installs what is missing: Chromium, PostgreSQL, cargo-nextest, cargo-deny.
    Setup,
}

fn main() -> ExitCode {
    let outcome = match Xtask::parse().command {
        Command::Demo(options) => demo::demo(&options),
        Command::Test(options) => check::test(&options),
        Command::Check(options) => check::check(&options),
        Command::Mutants(options) => mutants::mutants(&options),
        Command::Bench(options) => bench::bench(&options),
        Command::Console => console::console(),
        Command::Generate => generate::generate(),
        Command::Setup => setup::everything(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
