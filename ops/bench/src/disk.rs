//! The baseline of everything durable: how long one `fdatasync` takes on the disk that the server writes to.

use std::{
    fs::File,
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Result;

/// About what one small append writes.
const APPEND_BYTES: usize = 1024;

/// A file that is appended to and synced.
pub(crate) struct Disk {
    file: File,
    samples: Vec<Duration>,
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
            self.samples.push(begun.elapsed());
        }
        Ok(())
    }

    /// The median so far.
    pub(crate) fn p50(&self) -> Duration {
        median(&self.samples)
    }
}

/// The median of samples; zero where there is none.
pub(crate) fn median(samples: &[Duration]) -> Duration {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// A duration in milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
