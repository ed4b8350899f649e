//! Running the real program: found, started, its output captured, ended by its own pid.

use std::{
    env,
    ffi::OsString,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// How long a command that should end by itself may take.
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long an ended program's outputs are waited for.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// Where the program is: `BROWSERSPACE_BIN`, else beside the profile folder that this test was built into.
///
/// # Panics
/// When it is in neither place, with what to do.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(path) = env::var_os("BROWSERSPACE_BIN") {
        return PathBuf::from(path);
    }
    let here = env::current_exe().expect("a running program knows its own path");
    let found =
        here.ancestors().skip(1).take(3).map(|folder| folder.join("browserspace")).find(|at| at.is_file());
    found.expect("build the program first (cargo build -p api), or name it in BROWSERSPACE_BIN")
}

/// What a program left when it ended.
#[derive(Debug, Clone)]
pub struct Exit {
    /// How it ended.
    pub status: ExitStatus,
    /// Everything that it wrote to its standard output.
    pub stdout: String,
    /// Everything that it wrote to its standard error.
    pub stderr: String,
}

impl Exit {
    /// Checks that it ended well, and gives its standard output.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn ok(self) -> String {
        assert!(self.status.success(), "the program failed: {self:#?}");
        self.stdout
    }

    /// Checks that it refused, and gives both outputs together in lower case.
    ///
    /// # Panics
    /// When it ended well, or by a signal, or with a panic's message.
    #[track_caller]
    pub fn refused(self) -> String {
        let code = self.status.code();
        assert!(code.is_some_and(|code| code != 0), "expected a refusal: {self:#?}");
        assert!(!self.stderr.contains("panicked at"), "a refusal is no panic: {self:#?}");
        format!("{}\n{}", self.stdout, self.stderr).to_lowercase()
    }
}

#[derive(Default)]
struct Output {
    text: Mutex<Vec<u8>>,
    grown: Condvar,
}

impl Output {
    fn text(&self) -> String {
        let bytes = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn drain(self: Arc<Self>, mut from: impl Read + Send + 'static) -> JoinHandle<()> {
        std::thread::spawn(move || {
            let mut chunk = [0; 8192];
            while let Ok(length) = from.read(&mut chunk) {
                let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
                text.extend_from_slice(&chunk[..length]);
                self.grown.notify_all();
                if length == 0 {
                    return;
                }
            }
        })
    }
}

/// One running program. Dropping it kills it.
pub struct Program {
    child: Child,
    stdout: Arc<Output>,
    stderr: Arc<Output>,
    readers: Vec<JoinHandle<()>>,
}

impl Program {
    /// Starts `browserspace` with these arguments, in an environment without this machine's own settings.
    ///
    /// # Panics
    /// When it can not be started at all.
    pub fn start<A: Into<OsString>>(args: impl IntoIterator<Item = A>, env: &[(String, String)]) -> Self {
        Self::spawn(args, env, Stdio::piped())
    }

    /// Starts it with a standard output that nobody reads: as after the end of `| head -1`.
    ///
    /// # Panics
    /// When it can not be started at all.
    pub fn unread<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Self {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        drop(reader);
        Self::spawn(args, &[], writer.into())
    }

    fn spawn<A: Into<OsString>>(
        args: impl IntoIterator<Item = A>,
        env: &[(String, String)],
        output: Stdio,
    ) -> Self {
        let mut command = Command::new(binary());
        command.args(args.into_iter().map(Into::into));
        for (name, _) in env::vars_os().filter(|(name, _)| is_setting(name)) {
            command.env_remove(name);
        }
        command.envs(env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let (stdout, stderr) = (Arc::<Output>::default(), Arc::<Output>::default());
        let mut readers = Vec::from_iter(child.stdout.take().map(|output| Arc::clone(&stdout).drain(output)));
        readers.push(Arc::clone(&stderr).drain(child.stderr.take().expect("stderr is piped")));
        Self { child, stdout, stderr, readers }
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it does not end in a minute.
    pub fn run<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Exit {
        Self::start(args, &[]).exit_within(EXIT_TIMEOUT)
    }

    /// Runs one of its commands on a data folder.
    pub fn on(data_dir: &Path, args: &[&str]) -> Exit {
        let folder = [OsString::from("--data-dir"), data_dir.into()];
        Self::run(args.iter().map(OsString::from).chain(folder))
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote so far, standard output first.
    #[must_use]
    pub fn output(&self) -> String {
        format!("{}\n{}", self.stdout.text(), self.stderr.text())
    }

    /// Waits until one of its outputs has a line with `needle`, and gives the rest of that line.
    pub fn line_after(&mut self, needle: &str, within: Duration) -> Option<String> {
        let begun = Instant::now();
        loop {
            let ended = self.child.try_wait().ok().flatten().is_some();
            if ended {
                self.join_readers();
            }
            if let Some(rest) = find_rest(&self.output(), needle) {
                return Some(rest);
            }
            if ended || begun.elapsed() > within {
                return None;
            }
            let text = self.stdout.text.lock().unwrap_or_else(PoisonError::into_inner);
            // Both outputs may carry it; the time-out bounds how late the other one is looked at.
            drop(self.stdout.grown.wait_timeout(text, Duration::from_millis(10)));
        }
    }

    /// Sends it a signal; one that has ended is left alone.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a pid fits");
        // One that has ended since can't be told anything.
        let _ = kill(Pid::from_raw(pid), signal);
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end in time; it is killed then.
    #[track_caller]
    pub fn exit_within(mut self, timeout: Duration) -> Exit {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                self.join_readers();
                return Exit { status, stdout: self.stdout.text(), stderr: self.stderr.text() };
            }
            assert!(begun.elapsed() < timeout, "did not end within {timeout:?}:\n{}", self.output());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn join_readers(&mut self) {
        // Bounded: a browser that outlives its server may hold the other end of an output for a moment.
        let begun = Instant::now();
        while self.readers.iter().any(|reader| !reader.is_finished()) && begun.elapsed() < OUTPUT_TIMEOUT {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

fn is_setting(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    (name.starts_with("BROWSERSPACE_") && name != "BROWSERSPACE_BIN")
        || name.starts_with("OTEL_")
        || name == "RUST_LOG"
        || name.to_lowercase().ends_with("_proxy")
}

fn find_rest(text: &str, needle: &str) -> Option<String> {
    // Only whole lines: the end of a half-written one is not known yet.
    let (whole, _) = text.rsplit_once('\n')?;
    whole.lines().find_map(|line| line.split_once(needle)).map(|(_, rest)| rest.trim().to_owned())
}
