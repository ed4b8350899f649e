//! The server of the demo: the built program on a fresh data folder, ended in order however the demo ends.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::Interrupt;
use crate::run::command;

const STOP_PATIENCE: Duration = Duration::from_secs(45);
/// How long something that is just ending may go on to write below the folder.
const REMOVE_PATIENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(50);
/// What a step may still take once the demo is interrupted.
const DRAIN_SECONDS: &str = "2";

/// A running server; dropping it ends it and removes its folder.
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    address: String,
}

impl Server {
    /// Starts `program`; returns once it listens.
    pub(crate) fn start(program: &Path, interrupt: &Interrupt) -> Result<Self> {
        // Short: a browser's profile lies below it, and its path is bounded by that of a Unix socket.
        let folder = tempfile::Builder::new().prefix("browserspace-").tempdir()?;
        let data = folder.path().join("data");
        let log = File::create(folder.path().join("server.log"))?;
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--instances", "0"];
        let child = command(&program.to_string_lossy(), &arguments)
            .args(["--drain-seconds", DRAIN_SECONDS, "--data-dir"])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            // A terminal's Ctrl-C goes to our group only: it is this program that ends the server, once and in order.
            .process_group(0)
            .spawn()
            .context("the server could not be started")?;
        let mut server = Self { child, folder, address: String::new() };
        let output = server.child.stdout.take().context("the server has an output")?;
        server.address = server.listening(&address_in(output), interrupt)?;
        Ok(server)
    }

    fn listening(&mut self, address: &Receiver<String>, interrupt: &Interrupt) -> Result<String> {
        loop {
            match address.recv_timeout(TICK) {
                Ok(address) => return Ok(address),
                Err(RecvTimeoutError::Timeout) => interrupt.check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait()?;
                    bail!("the server ended before it listened ({status}):\n{}", self.log_text());
                }
            }
        }
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

    /// What it has logged.
    pub(crate) fn log_text(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Ends it in order, and removes its folder.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.end();
        let folder = self.folder.path();
        remove(folder).with_context(|| format!("{} could not be removed", folder.display()))
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
            thread::sleep(TICK);
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
        // What `stop` has removed is not there any more, and of the rest nobody is left to tell.
        let _ = remove(self.folder.path());
    }
}

/// The address, once the server prints it; the rest is read away, so that the server never waits for a full pipe.
fn address_in(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(address) = line.strip_prefix("listening on ") {
                let _ = sender.send(address.to_owned());
            }
        }
    });
    receiver
}

/// Removes a folder; a browser whose server had to be killed may need a moment to leave it.
fn remove(folder: &Path) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) if begun.elapsed() < REMOVE_PATIENCE => thread::sleep(TICK),
            outcome => return outcome,
        }
    }
}
