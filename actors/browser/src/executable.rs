//! Finding the browser: the real binary, never a distribution's start script.
//!
//! A start script reads system configuration, adds flags and extensions and exports keys; none of that may decide
//! how a Space's browser runs.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::launch::LaunchError;

/// Where browsers live, in order of preference. Bare names are looked up in `PATH`.
const CANDIDATES: [&str; 9] = [
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium-browser/chromium-browser",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "/opt/chromium.org/chromium/chromium-browser",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
];

/// Finds the real binary: of `configured` if given, else the first of the usual places.
///
/// # Errors
/// [`LaunchError::NoExecutable`]: install a browser or configure its path.
pub fn find_executable(configured: Option<&Path>) -> Result<PathBuf, LaunchError> {
    if let Some(path) = configured {
        return resolve(path).ok_or(LaunchError::NoExecutable);
    }
    let mut found = CANDIDATES.iter().filter_map(|candidate| locate(candidate));
    found.find_map(|path| resolve(&path)).ok_or(LaunchError::NoExecutable)
}

fn locate(candidate: &str) -> Option<PathBuf> {
    let path = Path::new(candidate);
    if path.is_absolute() {
        return path.is_file().then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| path.is_file())
}

/// Follows links and, for a start script, looks for the binary that it starts.
fn resolve(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    if is_binary(&path) {
        return Some(path);
    }
    let beside = ["chrome", "chromium"].map(|name| path.with_file_name(name));
    let library = path.file_name().map(|name| Path::new("/usr/lib").join(name).join(name));
    beside.into_iter().chain(library).find(|path| is_binary(path))
}

fn is_binary(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && (magic == *b"\x7fELF" || magic == *b"\xcf\xfa\xed\xfe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_script_is_resolved_to_the_binary_beside_it_and_never_run() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = folder.path().join("google-chrome");
        std::fs::write(&script, "#!/bin/sh\nexec something\n").expect("written");
        assert!(matches!(find_executable(Some(&script)), Err(LaunchError::NoExecutable)));
        let binary = folder.path().join("chrome");
        std::fs::write(&binary, b"\x7fELF....").expect("written");
        let found = find_executable(Some(&script)).expect("the binary is there");
        assert_eq!(found, binary.canonicalize().expect("it exists"));
    }
}
