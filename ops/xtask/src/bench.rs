//! `bench`: builds the release programs once and runs the measurements of `ops/bench`.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::{
    run::{command, root, run, target},
    setup,
};

/// What `bench` can be told.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only this part; all of them where none is named.
    part: Option<Part>,
    /// One JSON object a line for each figure, on the standard output, and nothing else there.
    #[arg(long)]
    json: bool,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Durable appends and replay, against a bare file.
    Log,
    /// From the submit over HTTP to the result, on a runtime that does nothing.
    Task,
    /// Our own cost on top of the browser's.
    Browser,
    /// Memory of the server, and the size of the program.
    Memory,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Task => "task",
            Self::Browser => "browser",
            Self::Memory => "memory",
        }
    }
}

/// Builds and measures; fails when a figure misses its bar.
pub(crate) fn bench(options: &Options) -> Result<()> {
    if !root().join("ops/bench/Cargo.toml").exists() {
        bail!("ops/bench is not part of this checkout");
    }
    if matches!(options.part, None | Some(Part::Browser)) {
        setup::chromium()?;
    }
    run("cargo", &["build", "--locked", "--release", "-p", "api", "-p", "bench"])?;
    let program = target().join("release/bench").to_string_lossy().into_owned();
    let server = target().join("release/browserspace");
    let mut args = Vec::from_iter(options.part.map(Part::name));
    if options.json {
        args.push("--json");
    }
    let status = command(&program, &args).env("BROWSERSPACE_BIN", server).status()?;
    if !status.success() {
        bail!("a measurement failed or missed its bar ({status})");
    }
    Ok(())
}
