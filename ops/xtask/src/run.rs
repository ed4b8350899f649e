//! Running commands: from the root of the project, shown before they run, an error when they fail.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable for `cargo xtask`; the program started by hand takes the folder that it stands in.
    std::env::var_os("CARGO_MANIFEST_DIR")
        .map(PathBuf::from)
        .and_then(|xtask| xtask.ancestors().nth(2).map(Path::to_path_buf))
        .unwrap_or_else(|| PathBuf::from("."))
}

/// Where build results lie.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Where `setup` puts a tool that the machine does not have.
///
/// One folder each: pip replaces the whole `bin` of the folder that it installs into.
pub(crate) fn tool_folder(name: &str) -> PathBuf {
    target().join("tools").join(name)
}

/// A command that runs from the root, with our own tools on its path.
pub(crate) fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root()).env("PATH", path());
    // What cargo says about xtask itself would make build scripts of others run again.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Shows the command, runs it, and fails when it fails.
pub(crate) fn run(program: &str, args: &[&str]) -> Result<()> {
    run_with(program, args, &[])
}

/// As [`run`], with more environment.
pub(crate) fn run_with(program: &str, args: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let settings: String = environment.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    eprintln!("$ {settings}{program} {}", args.join(" "));
    let status = command(program, args)
        .envs(environment.iter().copied())
        .status()
        .with_context(|| format!("{program} could not be started"))?;
    if !status.success() {
        bail!("{program} {} ended with {status}", args.join(" "));
    }
    Ok(())
}

/// Whether the command runs and succeeds; shows nothing.
pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    command(program, args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// What the command prints, if it runs and succeeds.
pub(crate) fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = command(program, args).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn path() -> OsString {
    let ours = ["cargo-nextest", "cargo-deny"].map(|name| tool_folder(name).join("bin"));
    let theirs = std::env::var_os("PATH").unwrap_or_default();
    // An entry with a colon can not be joined; then the given path is better than none.
    std::env::join_paths(ours.into_iter().chain(std::env::split_paths(&theirs))).unwrap_or(theirs)
}

/// Steps with their times, and the summary of them.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<(String, Duration, Ended)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Well,
    Badly,
    Skipped,
}

impl Steps {
    /// Runs one step; remembers how it ended and how long it took.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        eprintln!("\n== {name}");
        let begun = Instant::now();
        let outcome = work().with_context(|| name.to_owned());
        let ended = if outcome.is_ok() { Ended::Well } else { Ended::Badly };
        self.done.push((name.to_owned(), begun.elapsed(), ended));
        outcome
    }

    /// Says that something was left out, and why.
    pub(crate) fn skip(&mut self, name: &str, why: &str) {
        eprintln!("\n== {name}: skipped; {why}");
        self.done.push((format!("{name} ({why})"), Duration::ZERO, Ended::Skipped));
    }

    /// Prints the summary; call it however the steps ended.
    pub(crate) fn summary(&self) {
        eprintln!("\nSummary");
        for (name, took, ended) in &self.done {
            let word = match ended {
                Ended::Well => "ok",
                Ended::Badly => "FAILED",
                Ended::Skipped => "skipped",
            };
            eprintln!("  {word:<8}{:>7.1} s  {name}", took.as_secs_f64());
        }
    }
}
