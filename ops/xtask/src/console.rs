//! `console`: builds the web console, and tests it. It needs Node; the server does not need the console.
//!
//! The order is given by what each part needs: the types need `docs/openapi.json`, the server embeds the built site, and
//! the tests in a browser run over the server.

use std::path::Path;

use anyhow::{Result, bail};

use crate::run::{self, Steps, root, run, run_with, target};

/// Where the console lives.
const FOLDER: &str = "api/console";
/// The oldest Node that the tools of the console run on: major and minor version.
const NODE_MIN: (u32, u32) = (20, 19);

/// What is said where the console is left out.
pub(crate) const WITHOUT_NODE: &str =
    "needs Node 20.19 or later, with npm; nothing of the console was built or tested";

/// Builds the site that the next build of the server embeds.
pub(crate) fn console() -> Result<()> {
    if !has_node() {
        let (major, minor) = NODE_MIN;
        bail!(
            "the console needs Node {major}.{minor} or later, with npm; the server builds and runs without it"
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
    version.as_deref().and_then(node_version).is_some_and(|version| version >= NODE_MIN)
        && run::succeeds("npm", &["--version"])
}

/// `v20.19.2` → (20, 19).
fn node_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim_start_matches('v').split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_new_enough_or_it_is_not() {
        for (text, good) in [("v20.19.0", true), ("v22.1.0", true), ("v20.18.3", false), ("v18.20.1", false)]
        {
            assert_eq!(node_version(text).is_some_and(|version| version >= NODE_MIN), good, "{text}");
        }
        assert_eq!(node_version("not found"), None);
    }
}
