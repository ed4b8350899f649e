//! Embeds the web console, where it has been built (`cargo xtask console`).
//!
//! Node is not needed to build the server: without `console/dist/site` the list is empty, and `/` says how to get the
//! console. `console/dist` itself is always there, so cargo sees it change in both directions.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=console/dist");
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it for build scripts"));
    let site = manifest.join("console/dist/site");
    let mut files = Vec::new();
    // A half-built site has no page, and is not taken for a whole one.
    if site.join("index.html").is_file() {
        collect(&site, &mut files)?;
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let address =
            file.strip_prefix(&site).expect("it was found below").to_string_lossy().replace('\\', "/");
        writeln!(list, "    (\"/{address}\", include_bytes!({file:?}).as_slice()),")
            .expect("a String takes all");
    }
    list.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it for build scripts"));
    fs::write(out.join("console_files.rs"), list)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
