//! agent-browser: a command line, and a daemon behind it that keeps the browser. What can be told in one call is told in
//! one: `batch` takes several commands.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    answer::{Control, Refs},
    contestant::{Contestant, Start},
    tree::Tree,
};

/// How long the daemon may take to end, its browser included.
const GRACE: Duration = Duration::from_secs(5);

/// A session of it.
pub(crate) struct AgentBrowser {
    /// As every command begins.
    program: Command,
    snapshot: String,
    tree: Tree,
}

impl AgentBrowser {
    /// Prepares a session; the daemon starts with the first command.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self> {
        let folder = start.own_folder("ab")?;
        let mut program = start.command(&native(start.packages)?, &folder);
        program.env("AGENT_BROWSER_EXECUTABLE_PATH", start.browser);
        program.env("AGENT_BROWSER_SOCKET_DIR", &folder).env("AGENT_BROWSER_NO_VERSION_CHECK", "1");
        if Start::is_root() {
            program.env("AGENT_BROWSER_ARGS", "--no-sandbox");
        }
        let tree = Tree::new(None, &folder, start.browser);
        Ok(Self { program, snapshot: String::new(), tree })
    }

    /// Runs one command to its end; what it prints.
    fn run(&mut self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(self.program.get_program());
        command.env_clear().args(args).stdin(Stdio::null());
        command.envs(self.program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(self.program.get_current_dir().unwrap_or(Path::new("/")));
        let output = command.output().context("agent-browser can be run")?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            let said: String = String::from_utf8_lossy(&said).chars().take(300).collect();
            bail!("{} {}: {said}", args.first().unwrap_or(&""), output.status);
        }
        String::from_utf8(output.stdout).context("its output is text")
    }

    fn of(&self, control: Control, name: &str) -> Result<String> {
        Ok(format!("@{}", Refs::Bracketed.of(&self.snapshot, control, name)?))
    }
}

impl Contestant for AgentBrowser {
    fn navigate(&mut self, url: &str, title: &str) -> Result<()> {
        let answer = self.run(&["open", url])?;
        ensure!(answer.contains(title), "the page is another one: {answer}");
        Ok(())
    }

    fn snapshot(&mut self) -> Result<String> {
        self.snapshot = self.run(&["snapshot"])?;
        Ok(self.snapshot.clone())
    }

    fn other_snapshot(&mut self) -> Option<Result<(String, &'static str)>> {
        // What can be acted on and what is named: smaller, but plain text is left out.
        Some(self.run(&["snapshot", "-i"]).map(|answer| (answer, "`-i`")))
    }

    fn fill(&mut self, fields: &[(String, String)]) -> Result<()> {
        let fill = |(name, text): &(String, String)| {
            Ok(format!("fill {} \"{text}\"", self.of(Control::Field, name)?))
        };
        let commands = fields.iter().map(fill).collect::<Result<Vec<String>>>()?;
        let args = ["batch", "--bail"].into_iter().chain(commands.iter().map(String::as_str));
        self.run(&Vec::from_iter(args)).map(drop)
    }

    fn click(&mut self, button: &str, seen: Option<&str>) -> Result<()> {
        let target = self.of(Control::Button, button)?;
        match seen {
            None => self.run(&["click", &target]).map(drop),
            Some(text) => {
                let commands = [format!("click {target}"), format!("wait --text \"{text}\"")];
                self.run(&["batch", "--bail", &commands[0], &commands[1]]).map(drop)
            }
        }
    }

    fn tree(&self) -> &Tree {
        &self.tree
    }
}

impl Drop for AgentBrowser {
    fn drop(&mut self) {
        // It may never have started, or be gone; whatever is left is ended.
        let _ = self.run(&["close"]);
        self.tree.end(GRACE);
    }
}

/// The program itself: what its own installer puts in the place of the script that its package has.
fn native(packages: &Path) -> Result<PathBuf> {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let libc = if cfg!(target_env = "musl") { "linux-musl" } else { "linux" };
    let program = packages.join(format!("node_modules/agent-browser/bin/agent-browser-{libc}-{arch}"));
    // The script of the package that would do this is not run: no script of a package is.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("{} is there", program.display()))?;
    Ok(program)
}
