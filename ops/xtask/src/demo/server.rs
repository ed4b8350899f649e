//! The server of the demo: the built program on a fresh data folder, ended in order however the demo ends.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::run::{command, target};

const STOP_PATIENCE: Duration = Duration::from_secs(45);
const TICK: Duration = Duration::from_millis(100);

/// A running server; dropping it ends it and removes its folder.
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    address: String,
}

impl Server {
    /// Starts it; returns once it listens.
    pub(crate) fn start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("browserspace-demo-").tempdir()?;
        let data = folder.path().join("data");
        let log = File::create(folder.path().join("server.log"))?;
        let program = target().join("debug/browserspace");
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--instances", "0", "--data-dir"];
        let mut child = command(&program.to_string_lossy(), &arguments)
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("the server could not be started")?;
        let output = child.stdout.take().context("the server has an output")?;
        let mut lines = BufReader::new(output).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
        // The rest is read away, so that the server never waits for a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let mut server = Self { child, folder, address: String::new() };
        let Some(address) = address else {
            let log = std::fs::read_to_string(server.log()).unwrap_or_default();
            let status = server.child.wait()?;
            bail!("the server ended before it listened ({status}):\n{log}");
        };
        server.address = address;
        Ok(server)
    }

    /// `http://…`
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The data folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The file with the operator's token.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.data().join("operator.token")
    }

    /// What the server logs.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Ends it in order.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.end();
        let folder = self.folder.path();
        std::fs::remove_dir_all(folder).with_context(|| format!("{} could not be removed", folder.display()))
    }

    fn end(&mut self) {
        if self.has_ended() {
            return;
        }
        if let Ok(pid) = i32::try_from(self.child.id()).map(rustix::process::Pid::from_raw)
            && let Some(pid) = pid
        {
            // It has not been waited for, so the number is still its own.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let begun = Instant::now();
        while !self.has_ended() && begun.elapsed() < STOP_PATIENCE {
            std::thread::sleep(TICK);
        }
        if !self.has_ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
