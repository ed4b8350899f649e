//! The baseline of everything durable: how long one `fdatasync` takes on the disk that the server writes to.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Result;
use tempfile::TempDir;

use crate::{Options, figure::median};

/// About what one small append writes.
const APPEND_BYTES: usize = 1024;

/// A file that is appended to and synced.
pub(crate) struct Disk {
    file: File,
    samples: Vec<f64>,
}

impl Disk {
    /// A fresh file in `folder`.
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        Ok(Self { file: File::create(folder.join("fdatasync"))?, samples: Vec::new() })
    }

    /// Appends and syncs `times` times.
    pub(crate) fn measure(&mut self, times: usize) -> Result<()> {
        let bytes = [7; APPEND_BYTES];
        for _ in 0..times {
            self.file.write_all(&bytes)?;
            let begun = Instant::now();
            self.file.sync_data()?;
            self.samples.push(milliseconds(begun.elapsed()));
        }
        Ok(())
    }

    /// The median so far, in milliseconds.
    pub(crate) fn p50_ms(&self) -> f64 {
        median(self.samples.clone())
    }
}

/// A folder for a server on the disk that is to be measured, removed when it is dropped.
pub(crate) struct Place(TempDir);

impl Place {
    /// A fresh one below the folder that the options name.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        Ok(Self(tempfile::tempdir_in(&options.folder)?))
    }

    /// Beside the data folder.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The data folder; the server makes it.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.0.path().join("data")
    }
}

/// A duration in milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
