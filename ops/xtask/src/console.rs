//! `console`: builds the web console, and tests it. It needs Node; the server does not need the console.
//!
//! The order is given by what each part needs: the types need `docs/openapi.json`, the server embeds the built site, and
//! the tests in a browser run over the server.

use std::path::Path;

use anyhow::{Result, bail};

use crate::run::{self, Steps, root, run, run_with, target};

/// Where the console lives.
const FOLDER: &str = "api/console";
/// The oldest Node that the tools of the console run on.
const NODE_MAJOR_MIN: u32 = 20;

/// What is said where the console is left out.
pub(crate) const WITHOUT_NODE: &str =
    "needs Node 20 or later, with npm; nothing of the console was built or tested";

/// Builds the site that the next build of the server embeds.
pub(crate) fn console() -> Result<()> {
    if !has_node() {
        bail!(
            "the console needs Node {NODE_MAJOR_MIN} or later, with npm; the server builds and runs without it"
        );
    }
    let mut steps = Steps::default();
    let outcome = steps
        .step("packages of the console", install)
        .and_then(|()| steps.step("console", || npm(&["run", "build"])));
    steps.summary();
    outcome?;
    eprintln!("\nThe next build of the server embeds it: cargo build --release");
    Ok(())
}

/// Whether this machine can build the console.
pub(crate) fn has_node() -> bool {
    let version = run::output("node", &["--version"]);
    let major = version
        .as_deref()
        .and_then(|version| version.trim_start_matches('v').split('.').next()?.parse().ok());
    major.is_some_and(|major: u32| major >= NODE_MAJOR_MIN) && run::succeeds("npm", &["--version"])
}

/// Everything that needs no server: types, lints, tests of the logic, and the site.
pub(crate) fn build_and_test(steps: &mut Steps) -> Result<()> {
    steps.step("packages of the console", install)?;
    steps.step("console: types of docs/openapi.json", types_are_fresh)?;
    steps.step("console: lints", || npm(&["run", "check"]))?;
    steps.step("console: tests of the logic", || npm(&["test"]))?;
    steps.step("console: site", || npm(&["run", "build"]))
}

/// The tests in a browser, over the server that was just built.
pub(crate) fn test_in_browser() -> Result<()> {
    let program = target().join("debug/browserspace").to_string_lossy().into_owned();
    let args = ["--prefix", FOLDER, "run", "test:browser"];
    run_with("npm", &args, &[("BROWSERSPACE_BIN", &program)])
}

/// Writes the types anew.
pub(crate) fn generate_types() -> Result<()> {
    install()?;
    npm(&["run", "types"])
}

fn types_are_fresh() -> Result<()> {
    npm(&["run", "types:check"]).map_err(|error| {
        error
            .context("api/console/src/api/schema.ts is not what docs/openapi.json says: cargo xtask generate")
    })
}

/// Exactly what the lock file names; scripts of packages do not run.
fn install() -> Result<()> {
    if !Path::new(&root()).join(FOLDER).join("package-lock.json").exists() {
        bail!("{FOLDER}/package-lock.json is missing");
    }
    npm(&["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
}

fn npm(args: &[&str]) -> Result<()> {
    let args = [&["--prefix", FOLDER][..], args].concat();
    run("npm", &args)
}
