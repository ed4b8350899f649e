//! What an operator may change about the actors; each with its unit, default and range.

use std::{path::PathBuf, time::Duration};

use crate::supervisor::RestartPolicy;

/// The limits and time-outs of the actors. Every field has a default that suits one machine.
#[derive(Debug, Clone)]
pub struct Config {
    /// How long a Space's actor stays in memory without a message. Default 120 s; at least 1 s.
    pub passivate_after: Duration,
    /// So many Space actors are in memory at once, about 7 KB each. Default 20 000.
    pub live_actors_max: usize,
    /// So many Spaces are read back from the log at once. Default 4.
    pub recoveries_max: usize,
    /// So many messages wait for one Space; the next is refused as `overloaded`. Default 64.
    pub mailbox_capacity: usize,
    /// How long a message may wait for a place in a mailbox. Default 250 ms.
    pub mailbox_timeout: Duration,
    /// How long a message may wait for its answer; beyond it the outcome is unknown. Default 10 s.
    pub reply_timeout: Duration,
    /// How long an append may take; beyond it the outcome is unknown. Default 5 s.
    pub append_timeout: Duration,
    /// How long reading one Space back may take. Default 10 s.
    pub recovery_timeout: Duration,
    /// How long a runtime may take to acknowledge a cancel before it counts as wedged. Default 10 s.
    pub cancel_timeout: Duration,
    /// How long after its deadline a runtime may still answer before it is cancelled. Default 1 s.
    pub deadline_grace: Duration,
    /// The idle time-out of a Space that names none. Default 1800 s.
    pub idle_timeout: Duration,
    /// How runtimes are restarted.
    pub restarts: RestartPolicy,
    /// Whether instances with the bundle `trusted` may be registered. Default no (S3).
    pub allow_trusted_bundle: bool,
    /// Whether instances of kind `scripted` may be registered: for tests. Default no.
    pub allow_scripted_runtime: bool,
    /// How Chromium is run.
    pub chromium: ChromiumConfig,
    /// How much pages may download.
    pub downloads: DownloadsConfig,
}

/// How much pages may download. One file has at most [`crate::download::FILE_BYTES_MAX`] bytes, whatever stands here.
#[derive(Debug, Clone)]
pub struct DownloadsConfig {
    /// So many files of one Space, over its life. Default 1000; range 1–100 000.
    pub space_files_max: u64,
    /// So many bytes of one Space, over its life. Default 512 MiB.
    pub space_bytes_max: u64,
    /// So many bytes of one Workspace in a day (UTC). Default 4 GiB.
    pub workspace_day_bytes_max: u64,
    /// How long nothing may come before a download is ended. Default 30 s; at least 1 s.
    pub stall: Duration,
    /// How long captured files wait for a person before they are deleted. Default 7 days; at least 1 s.
    pub quarantine_age: Duration,
}

impl Default for DownloadsConfig {
    fn default() -> Self {
        Self {
            space_files_max: 1_000,
            space_bytes_max: 512 << 20,
            workspace_day_bytes_max: 4 << 30,
            stall: Duration::from_secs(30),
            quarantine_age: Duration::from_secs(7 * 24 * 60 * 60),
        }
    }
}

/// How Chromium is run.
#[derive(Debug, Clone)]
pub struct ChromiumConfig {
    /// The executable; looked for in the usual places where `None`.
    pub executable: Option<PathBuf>,
    /// The first of the unprivileged uids that Spaces get while the server is root. Default 40 000.
    pub uid_first: u32,
    /// So many uids. Default 10 000.
    pub uid_count: u32,
    /// Whether Chromium may run without its own sandbox. Default no (C18).
    pub allow_no_sandbox: bool,
    /// Whether Chromium may run without a network namespace of its own, kept to the wall by its command line only.
    /// Default no.
    pub allow_no_network_namespace: bool,
    /// Whether capabilities of the trusted bundle are carried out. Default no (S3).
    pub allow_trusted: bool,
    /// The most bytes of one artifact. Default 32 MiB.
    pub artifact_bytes_max: u64,
    /// The most bytes of all artifacts of one Space. Default 512 MiB.
    pub space_artifact_bytes_max: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            passivate_after: Duration::from_secs(120),
            live_actors_max: 20_000,
            recoveries_max: 4,
            mailbox_capacity: 64,
            mailbox_timeout: Duration::from_millis(250),
            reply_timeout: Duration::from_secs(10),
            append_timeout: Duration::from_secs(5),
            recovery_timeout: Duration::from_secs(10),
            cancel_timeout: Duration::from_secs(10),
            deadline_grace: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(1800),
            restarts: RestartPolicy::default(),
            allow_trusted_bundle: false,
            allow_scripted_runtime: false,
            chromium: ChromiumConfig::default(),
            downloads: DownloadsConfig::default(),
        }
    }
}

impl Default for ChromiumConfig {
    fn default() -> Self {
        Self {
            executable: None,
            uid_first: 40_000,
            uid_count: 10_000,
            allow_no_sandbox: false,
            allow_no_network_namespace: false,
            allow_trusted: false,
            artifact_bytes_max: 32 << 20,
            space_artifact_bytes_max: 512 << 20,
        }
    }
}
