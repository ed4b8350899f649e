//! `bench`: measures, prints, and fails when a figure misses its bar.

mod browser;
mod disk;
mod figure;
mod keepalive;
mod memory;
mod raw;
mod task;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use crate::figure::Figure;

/// What to measure.
#[derive(Debug, Parser)]
struct Options {
    /// Only this part; all of them where none is named
    part: Option<Part>,
    /// One JSON object a line for each figure
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Task,
    Browser,
    Memory,
}

impl Part {
    fn figures(self) -> Result<Vec<Figure>> {
        match self {
            Self::Task => task::figures(),
            Self::Browser => browser::figures(),
            Self::Memory => memory::figures(),
        }
    }
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let mut met = true;
    for part in Part::value_variants() {
        if options.part.is_some_and(|only| only != *part) {
            continue;
        }
        for figure in part.figures()? {
            met &= figure.is_met();
            println!("{}", if options.json { figure.json() } else { figure.line() });
        }
    }
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
