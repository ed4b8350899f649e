//! Raw CDP over the debugging pipe, as plain as it can be: the baseline that our own cost stands on.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The usual places of the real program (not of a wrapper script around it).
const PLACES: [&str; 4] = [
    "/usr/lib/chromium/chromium",
    "/opt/google/chrome/chrome",
    "/usr/bin/chromium",
    "/usr/bin/google-chrome",
];

/// An unprivileged id that no Space of a test server has.
const UID: u32 = 39_999;

/// What a browser of ours is started with too, as far as it matters for speed.
const FLAGS: [&str; 12] = [
    "--remote-debugging-pipe",
    "--headless=new",
    "--no-first-run",
    "--no-startup-window",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-renderer-backgrounding",
    "--disable-features=Translate,MediaRouter,OptimizationHints,HttpsUpgrades,PaintHolding",
];

/// The program of the browser.
pub(crate) fn program() -> Result<PathBuf> {
    let named = std::env::var_os("BROWSERSPACE_CHROMIUM").map(PathBuf::from);
    let places = named.into_iter().chain(PLACES.map(PathBuf::from));
    places.into_iter().find(|place| place.is_file()).context("no Chromium")
}

/// A browser of the measurement's own, with one tab.
pub(crate) struct RawBrowser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    next_id: u64,
    line: Vec<u8>,
    // Last, so that the browser is gone before its profile is.
    profile: TempDir,
}

impl RawBrowser {
    /// Starts one.
    pub(crate) fn start() -> Result<Self> {
        let program = program()?;
        let profile = tempfile::tempdir()?;
        let is_root = fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own))? == 0;
        // The pipe is on descriptors 3 and 4; a shell can put ours there without code that is not safe.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"#]).arg(program);
        command.args(FLAGS).arg(format!("--user-data-dir={}", profile.path().display()));
        command.env_clear().env("HOME", profile.path()).current_dir("/");
        if is_root {
            chown(profile.path(), Some(UID), Some(UID))?;
            command.uid(UID).gid(UID);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn()?;
        let input = child.stdin.take().context("stdin is piped")?;
        let output = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let mut browser = Self { child, input, output, session: None, next_id: 0, line: Vec::new(), profile };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", &attach)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "DOM", "Runtime", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(browser)
    }

    /// Where its profile lies.
    pub(crate) fn profile(&self) -> &Path {
        self.profile.path()
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// One call, whose answer is not decoded; its size in bytes, 0 for an error.
    pub(crate) fn call_unread(&mut self, method: &str, params: &Value) -> Result<usize> {
        let id = self.send(method, params)?;
        let (answer, refusal) = (format!("{{\"id\":{id},"), format!("{{\"id\":{id},\"error\""));
        loop {
            self.read_line()?;
            if self.line.starts_with(answer.as_bytes()) {
                let is_refused = self.line.starts_with(refusal.as_bytes());
                return Ok(if is_refused { 0 } else { self.line.len() });
            }
        }
    }

    /// One call and its answer; events in between are passed over.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.send(method, params)?;
        loop {
            let mut answer = self.read()?;
            if answer["id"] == id {
                if answer["error"].is_object() {
                    bail!("{method}: {}", answer["error"]);
                }
                return Ok(answer["result"].take());
            }
        }
    }

    fn send(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message)?;
        bytes.push(0);
        self.input.write_all(&bytes)?;
        Ok(id)
    }

    /// Reads until an event comes.
    pub(crate) fn wait_for(&mut self, method: &str) -> Result<()> {
        while self.read()?["method"] != method {}
        Ok(())
    }

    fn read(&mut self) -> Result<Value> {
        self.read_line()?;
        Ok(serde_json::from_slice(&self.line)?)
    }

    fn read_line(&mut self) -> Result<()> {
        self.line.clear();
        self.output.read_until(0, &mut self.line)?;
        if self.line.pop() != Some(0) {
            bail!("the browser is gone");
        }
        Ok(())
    }
}

impl Drop for RawBrowser {
    fn drop(&mut self) {
        // Nothing is left to do for one that has ended by itself.
        let _ = self.call("Browser.close", &json!({}));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
