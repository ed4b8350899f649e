//! `bench`: builds the release programs once and runs the measurements of `ops/bench`.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::{
    peers,
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
    /// Writes the tables of the comparison with others into this document too, between its markers.
    #[arg(long, value_name = "FILE")]
    write: Option<String>,
    /// For the bench itself, after `--`: `--quick`, `--rows 200`, `--only ours,floor`, `--rounds 5`, `--jobs 100`.
    #[arg(last = true, value_name = "ARGS")]
    rest: Vec<String>,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Durable appends and replay, against a bare file.
    Log,
    /// From the submit over HTTP to the result, on a runtime that does nothing.
    Task,
    /// Our own cost on top of the browser's, and the comparison with others where they can be installed.
    Browser,
    /// Memory of the server, and the size of the program.
    Memory,
    /// The comparison with others alone.
    Peers,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Task => "task",
            Self::Browser => "browser",
            Self::Memory => "memory",
            Self::Peers => "peers",
        }
    }
}

/// Builds and measures; fails when a figure misses its bar.
pub(crate) fn bench(options: &Options) -> Result<()> {
    if !root().join("ops/bench/Cargo.toml").exists() {
        bail!("ops/bench is not part of this checkout");
    }
    let compares = matches!(options.part, Some(Part::Browser | Part::Peers));
    if compares || options.part.is_none() {
        setup::chromium()?;
    }
    let peers = if compares { peers::install(options.part == Some(Part::Peers))? } else { None };
    run("cargo", &["build", "--locked", "--release", "-p", "api", "-p", "bench"])?;
    let program = target().join("release/bench").to_string_lossy().into_owned();
    let server = target().join("release/browserspace");
    let mut args = Vec::from_iter(options.part.map(Part::name));
    args.extend(options.json.then_some("--json"));
    args.extend(peers.iter().flat_map(|folder| ["--peers", folder]));
    args.extend(options.write.iter().flat_map(|file| ["--write", file]));
    args.extend(options.rest.iter().map(String::as_str));
    let status = command(&program, &args).env("BROWSERSPACE_BIN", server).status()?;
    if !status.success() {
        bail!("a measurement failed or missed its bar ({status})");
    }
    Ok(())
}
