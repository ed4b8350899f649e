//! The programs that the bench compares us with: npm packages of pinned versions, below `target`, never part of the
//! product, and needed by nothing else.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::{
    console::has_node,
    run::{root, run, tool_folder},
};

/// Where their names and versions stand.
const FOLDER: &str = "ops/bench/peers";
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs them, if that was not done yet; gives their folder. Where they can not be had that is an error if they are
/// `needed`, and otherwise it is said.
pub(crate) fn install(needed: bool) -> Result<Option<String>> {
    match packages() {
        Ok(folder) => Ok(Some(folder)),
        Err(error) if needed => Err(error.context("the others to compare with can not be installed")),
        Err(error) => {
            eprintln!("bench: nobody is compared with; the others can not be installed: {error:#}");
            Ok(None)
        }
    }
}

fn packages() -> Result<String> {
    if !has_node() {
        bail!("it needs Node 20.19 or later, with npm");
    }
    let folder = tool_folder("peers");
    let name = folder.to_string_lossy().into_owned();
    let read =
        |file: &str| fs::read(root().join(FOLDER).join(file)).with_context(|| format!("{FOLDER}/{file}"));
    // A copy of the lock file is written last: where it is there and the same, the packages are there too.
    let lock = read(FILES[1])?;
    if fs::read(folder.join("installed.json")).is_ok_and(|installed| installed == lock) {
        eprintln!("peers: {name}");
        return Ok(name);
    }
    fs::create_dir_all(&folder)?;
    for file in FILES {
        fs::write(folder.join(file), read(file)?)?;
    }
    // No script of a package runs, and no browser is downloaded: all of them drive the one that is here.
    run("npm", &["--prefix", &name, "ci", "--ignore-scripts", "--no-audit", "--no-fund"])?;
    fs::write(folder.join("installed.json"), lock)?;
    Ok(name)
}
