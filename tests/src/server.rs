//! A server of the test's own: the real program on a fresh folder and a free port, gone when the test ends.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

use crate::{
    Client, Exit, Journal, Program, Transcript,
    traces::processes_naming,
    wait::{DEADLINE, eventually},
};

/// How long a start may take, recovery included.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// How a server is started.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    data_dir: Option<PathBuf>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    limited: bool,
}

impl ServerOptions {
    /// On this folder instead of a fresh one. The caller removes it.
    #[must_use]
    pub fn data_dir(mut self, data_dir: &Path) -> Self {
        self.data_dir = Some(data_dir.to_owned());
        self
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// With one more variable in its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// With the rate limits that a server has by default. Without this they are lifted: fifty tests' worth of
    /// requests from one principal is not what they are for.
    #[must_use]
    pub fn with_rate_limits(mut self) -> Self {
        self.limited = true;
        self
    }

    fn arguments(&self, data_dir: &Path) -> Vec<String> {
        let folder = data_dir.to_str().expect("a temporary folder's path is UTF-8");
        let mut own = vec!["serve", "--allow-scripted-runtime", "--data-dir", folder];
        if !self.args.iter().any(|arg| arg == "--listen") {
            own.extend(["--listen", "127.0.0.1:0"]);
        }
        own.into_iter().map(str::to_owned).chain(self.args.iter().cloned()).collect()
    }

    fn environment(&self) -> Vec<(String, String)> {
        let lifted = [("RATE_PER_SECOND", "1000000"), ("BURST", "1000000")];
        let lifted = lifted.map(|(name, value)| (format!("BROWSERSPACE_HTTP__{name}"), value.to_owned()));
        lifted.into_iter().filter(|_| !self.limited).chain(self.env.iter().cloned()).collect()
    }
}

/// A running server. Dropping it ends it, its browsers and its folder, also when the test panics.
pub struct Server {
    // Declared before the folder, so that the program is gone before its files are.
    program: Option<Program>,
    options: ServerOptions,
    data_dir: PathBuf,
    address: Arc<RwLock<String>>,
    outputs: String,
    transcript: Transcript,
    folder: Option<TempDir>,
}

impl Server {
    /// Starts one and waits until it listens.
    ///
    /// # Panics
    /// When it does not; the message holds its output.
    #[track_caller]
    pub fn start(options: ServerOptions) -> Self {
        Self::try_start(options).unwrap_or_else(|exit| panic!("the server did not start: {exit:#?}"))
    }

    /// Starts one that may refuse to.
    ///
    /// # Errors
    /// How it ended, where it ended instead of listening.
    pub fn try_start(options: ServerOptions) -> Result<Self, Box<Exit>> {
        let folder = options.data_dir.is_none().then(fresh_folder);
        let data_dir = match (&options.data_dir, &folder) {
            (Some(given), _) => given.clone(),
            (None, Some(fresh)) => fresh.path().join("data"),
            (None, None) => unreachable!("one of the two is there"),
        };
        let address = Arc::new(RwLock::new(String::new()));
        let transcript = Transcript::default();
        let mut server =
            Self { program: None, options, data_dir, address, outputs: String::new(), transcript, folder };
        server.try_again()?;
        Ok(server)
    }

    /// Starts it again on the same folder, after [`Self::kill9`] or [`Self::sigterm`]. Clients follow to its new port.
    ///
    /// # Panics
    /// When it does not listen.
    #[track_caller]
    pub fn again(&mut self) {
        self.try_again().unwrap_or_else(|exit| panic!("the server did not start again: {exit:#?}"));
    }

    fn try_again(&mut self) -> Result<(), Box<Exit>> {
        assert!(self.program.is_none(), "it runs already");
        let args = self.options.arguments(&self.data_dir);
        let mut program = Program::start(args, &self.options.environment());
        match program.line_after("listening on http://", START_TIMEOUT) {
            Some(address) => {
                let address = address.split_whitespace().next().unwrap_or_default().to_owned();
                *self.address.write().expect("no holder of the address panics") = format!("http://{address}");
                self.program = Some(program);
                Ok(())
            }
            None => Err(Box::new(program.exit_within(Duration::from_secs(10)))),
        }
    }

    /// Ends it in order and starts it again.
    pub fn restart(&mut self) {
        self.sigterm().ok();
        self.again();
    }

    /// Ends it as a power cut would: nothing of it runs on.
    ///
    /// # Panics
    /// When it does not run.
    pub fn kill9(&mut self) {
        let program = self.program.take().expect("it runs");
        program.signal(Signal::SIGKILL);
        let exit = program.exit_within(DEADLINE);
        self.keep(&exit);
    }

    /// Sends it a signal, and does not wait.
    ///
    /// # Panics
    /// When it does not run.
    pub fn signal(&self, signal: Signal) {
        self.program.as_ref().expect("it runs").signal(signal);
    }

    /// Whether it has ended by itself.
    ///
    /// # Panics
    /// When it was ended through here.
    pub fn has_ended(&mut self) -> bool {
        self.program.as_mut().expect("it runs").has_ended()
    }

    /// Waits for its end, which somebody else brings about.
    ///
    /// # Panics
    /// When it does not run, or does not end in a minute.
    pub fn ended(&mut self) -> Exit {
        let exit = self.program.take().expect("it runs").exit_within(Duration::from_secs(60));
        self.keep(&exit);
        exit
    }

    /// Asks it to drain and end, and waits for that.
    ///
    /// # Panics
    /// When it does not run, or does not end in a minute.
    pub fn sigterm(&mut self) -> Exit {
        self.signal(Signal::SIGTERM);
        self.ended()
    }

    fn keep(&mut self, exit: &Exit) {
        self.outputs.push_str(&exit.stdout);
        self.outputs.push_str(&exit.stderr);
    }

    /// Its process id.
    ///
    /// # Panics
    /// When it does not run.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.as_ref().expect("it runs").pid()
    }

    /// Its data folder.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
    ///
    /// # Panics
    /// Never: no holder of the lock panics.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.read().expect("no holder of the address panics").clone()
    }

    /// Everything that it wrote to its outputs so far, over all its starts.
    #[must_use]
    pub fn output(&self) -> String {
        let running = self.program.as_ref().map(Program::output).unwrap_or_default();
        format!("{}{running}", self.outputs)
    }

    /// Every answer that clients of this server were given.
    #[must_use]
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The token that the first start wrote.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn operator_token(&self) -> String {
        let path = self.data_dir.join("operator.token");
        fs::read_to_string(path).expect("the first start wrote an operator token").trim().to_owned()
    }

    /// A client with that token.
    #[must_use]
    pub fn operator(&self) -> Client {
        self.client(&self.operator_token())
    }

    /// A client with any token.
    #[must_use]
    pub fn client(&self, token: &str) -> Client {
        Client::new(Arc::clone(&self.address), token, self.transcript.clone())
    }

    /// A client of an agent of `workspace`, with a token made for it.
    pub async fn agent(&self, workspace: &str, owner_id: &str) -> Client {
        let token = self.operator().issue_token(workspace, "runtime_agent", owner_id).await;
        self.client(&token)
    }

    /// A client of an auditor of `workspace`, with a token made for it.
    pub async fn auditor(&self, workspace: &str) -> Client {
        let token = self.operator().issue_token(workspace, "auditor", "auditor").await;
        self.client(&token)
    }

    /// What the scripted runtimes wrote down of their calls.
    #[must_use]
    pub fn journal(&self) -> Journal {
        Journal::read(&self.data_dir)
    }

    /// Says how the next starts of scripted runtimes go: `fail`, `unusable`, `delay_ms=N`, or nothing for at once.
    ///
    /// # Panics
    /// When the data folder can not be written.
    pub fn script_starts(&self, script: &str) {
        let control = self.data_dir.join("runtime/scripted-start");
        fs::write(control, script).expect("the data folder is ours");
    }

    /// The pids of the browsers that run on this server's folder.
    #[must_use]
    pub fn browsers(&self) -> Vec<u32> {
        processes_naming(&format!("--user-data-dir={}/", self.data_dir.display()))
    }

    /// Waits until no browser of this server is left.
    ///
    /// # Panics
    /// When one is left after the deadline.
    pub async fn no_browser_left(&self) {
        eventually("no browser of this server is left", || async {
            self.browsers().is_empty().then_some(())
        })
        .await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- output of the server ---\n{}", self.output());
        }
        self.program = None;
        // A killed server can't end its browsers; each names a profile in our folder, and nobody else's does.
        for pid in self.browsers() {
            let pid = Pid::from_raw(i32::try_from(pid).expect("a pid fits"));
            let _ = kill(pid, Signal::SIGKILL);
        }
        drop(self.folder.take());
    }
}

/// A temporary folder that a browser under an unprivileged uid can pass through.
fn fresh_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let passable = fs::Permissions::from_mode(0o711);
    fs::set_permissions(folder.path(), passable).expect("the folder is ours");
    folder
}
