//! What it costs: `bench log`. Every figure is measured beside its baseline in the same run, so that it says
//! something about the code and little about the machine.
//!
//! To add a bench: a module with `run(&Options) -> Result<Vec<Figure>>`, a variant of [`Bench`], a line in `main`.

mod figure;
mod log;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Measures the project, each figure beside its baseline.
#[derive(Parser)]
#[command(name = "bench", about)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
    #[command(flatten)]
    options: Options,
}

#[derive(Subcommand)]
enum Bench {
    /// Durable appends and replay of the event log.
    Log,
}

/// What all benches know.
#[derive(clap::Args)]
struct Options {
    /// One line of JSON per figure instead of a table.
    #[arg(long, global = true)]
    json: bool,
    /// Fewer and shorter rounds: a smoke test, not a measurement.
    #[arg(long, global = true)]
    quick: bool,
    /// Where to put the data of the run; it must be on the kind of disk that is to be measured, not in memory.
    #[arg(long, global = true, default_value = "target")]
    folder: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let options = &arguments.options;
    std::fs::create_dir_all(&options.folder)?;
    let figures = match arguments.bench {
        Bench::Log => log::run(options)?,
    };
    figure::print(&figures, options.json);
    Ok(())
}
