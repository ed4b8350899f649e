//! Looks whether browsers can be run here, by running one.

use std::path::PathBuf;
use std::time::Duration;

use crate::browser::Browser;
use crate::executable::find_executable;
use crate::launch::{LaunchError, LaunchSpec};

/// What a trial run showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The binary that was run.
    pub path: PathBuf,
    /// Its product and version.
    pub version: String,
    /// Whether Chromium's sandbox confines its renderers.
    pub sandbox_ok: bool,
}

/// Starts a browser as `spec` says, looks at it, and ends it.
///
/// # Errors
/// Every [`LaunchError`].
pub async fn probe(spec: LaunchSpec) -> Result<Probe, LaunchError> {
    let path = find_executable(spec.executable.as_deref())?;
    let browser = Browser::launch(spec).await?;
    let confined = browser.observe_sandbox().await;
    let version = browser.version().to_owned();
    browser.shutdown(Duration::from_secs(2)).await;
    Ok(Probe { path, version, sandbox_ok: confined == Some(true) })
}
