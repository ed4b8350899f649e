//! What it costs: `bench log`, `bench task`, `bench browser`, `bench memory`, or all of them; `bench peers` is
//! a part of `bench browser` that can be had alone. Every figure is measured
//! beside its baseline in the same run, so that it says something about the code and little about the machine.
//!
//! To add a bench: a module with `run(&Options) -> Result<Vec<Figure>>`, a variant of [`Bench`], a line in its `run`.

mod browser;
mod disk;
mod figure;
mod keepalive;
mod log;
mod memory;
mod peers;
mod raw;
mod script;
mod task;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Parser, ValueEnum};

use crate::figure::Figure;

/// Measures the project, each figure beside its baseline. Fails when one misses its bar.
#[derive(Parser)]
#[command(name = "bench", about)]
struct Arguments {
    /// Only this one; all of them where none is named.
    bench: Option<Bench>,
    #[command(flatten)]
    options: Options,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bench {
    /// Durable appends and replay of the event log.
    Log,
    /// From the submit over HTTP to the result, on a runtime that does nothing.
    Task,
    /// Our own cost on top of the browser's.
    Browser,
    /// Memory of the server, and the size of the program.
    Memory,
    /// We and others on the same pages; `browser` does it too where they are installed.
    Peers,
}

/// What all benches know.
#[derive(clap::Args)]
struct Options {
    /// One line of JSON per figure instead of a table.
    #[arg(long)]
    json: bool,
    /// Fewer and shorter rounds: a smoke test, not a measurement; no bar is held against it.
    #[arg(long)]
    quick: bool,
    /// Where to put the data of the run; it must be on the kind of disk that is to be measured, not in memory.
    #[arg(long, default_value = "target")]
    folder: PathBuf,
    #[command(flatten)]
    peers: peers::PeerOptions,
}

impl Bench {
    fn run(self, options: &Options) -> Result<Vec<Figure>> {
        match self {
            Self::Log => log::run(options),
            Self::Task => task::run(options),
            Self::Browser => browser::run(options),
            Self::Memory => memory::run(options),
            Self::Peers => peers::run(options),
        }
    }

    /// Whether it takes part where `only` was named, or nothing.
    fn is_asked_for(self, only: Option<Self>, options: &Options) -> bool {
        match (self, only) {
            (Self::Peers, Some(Self::Browser) | None) if !options.peers.are_installed() => {
                eprintln!("bench: --peers is not given, so nobody is compared with");
                false
            }
            (Self::Peers, Some(Self::Browser)) => true,
            (_, only) => only.is_none_or(|only| only == self),
        }
    }
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let options = &arguments.options;
    std::fs::create_dir_all(&options.folder)?;
    let mut figures = Vec::new();
    let mut failure = None;
    for bench in Bench::value_variants() {
        if failure.is_none() && bench.is_asked_for(arguments.bench, options) {
            match bench.run(options) {
                Ok(measured) => figures.extend(measured),
                Err(error) => failure = Some(error),
            }
        }
    }
    // What was measured before something failed is worth being told.
    figure::print(&figures, options.json);
    if let Some(error) = failure {
        return Err(error);
    }
    let met = options.quick || figures.iter().all(Figure::is_met);
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
