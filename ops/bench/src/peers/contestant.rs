//! What every side can do, each in its own way: the shortest that its own interface offers.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use clap::ValueEnum;
use tokio::runtime::Handle;

use super::{
    agent_browser::AgentBrowser, floor::Floor, mcp::Mcp, ours::Ours, site::Site, tree::Tree, watch::Watch,
};

/// Who takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Side {
    /// browserspace, over HTTP.
    Ours,
    /// agent-browser, by its command line and its daemon.
    AgentBrowser,
    /// chrome-devtools-mcp, by MCP over stdio.
    Devtools,
    /// @playwright/mcp, by MCP over stdio.
    Playwright,
    /// Bare calls of the protocol, which check nothing and know nothing: what the browser itself takes.
    Floor,
}

impl Side {
    /// All of them, in the order of the tables.
    pub(crate) const ALL: [Self; 5] =
        [Self::Ours, Self::AgentBrowser, Self::Devtools, Self::Playwright, Self::Floor];
    /// Who we compare with.
    pub(crate) const PEERS: [Self; 3] = [Self::AgentBrowser, Self::Devtools, Self::Playwright];
    /// Those of them that are Node programs.
    pub(crate) const NODE: [Self; 2] = [Self::Devtools, Self::Playwright];

    /// Its name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "browserspace",
            Self::AgentBrowser => "agent-browser",
            Self::Devtools => "chrome-devtools-mcp",
            Self::Playwright => "@playwright/mcp",
            Self::Floor => "bare CDP",
        }
    }

    /// Its npm package, if it has one.
    pub(crate) const fn package(self) -> Option<&'static str> {
        match self {
            Self::AgentBrowser | Self::Devtools | Self::Playwright => Some(self.name()),
            Self::Ours | Self::Floor => None,
        }
    }
}

/// A side at work, with one browser and one page.
pub(crate) trait Contestant {
    /// Opens an address, and knows the title of what it has opened.
    fn navigate(&mut self, url: &str, title: &str) -> Result<()>;

    /// Reads the page, whole: everything that an agent is given for it.
    fn snapshot(&mut self) -> Result<String>;

    /// Another reading of the page, for a side that has one worth showing, and how it is asked for.
    fn other_snapshot(&mut self) -> Option<Result<(String, &'static str)>> {
        None
    }

    /// Fills fields, by their names in the last snapshot.
    fn fill(&mut self, fields: &[(String, String)]) -> Result<()>;

    /// Clicks a button, by its name in the last snapshot; where `seen` is given, until that text is seen in the page.
    fn click(&mut self, button: &str, seen: Option<&str>) -> Result<()>;

    /// Where its processes are.
    fn tree(&self) -> &Tree;

    /// Opens one more browser of its own in a server that runs, reads `url` in it, and closes it again; gives the time
    /// until the page was read. Only for a side that is a server.
    fn create_and_read(&mut self, _url: &str) -> Option<Result<f64>> {
        None
    }
}

/// What the start of a side needs.
pub(crate) struct Start<'a> {
    /// The run's own folder; each side has one below it.
    pub(crate) folder: &'a Path,
    /// Where the packages of the peers are installed.
    pub(crate) packages: &'a Path,
    /// The program of the browser.
    pub(crate) browser: &'a Path,
    /// The pages.
    pub(crate) site: &'a Site,
    /// Who watches over what blocks.
    pub(crate) watch: &'a Watch,
    /// For what is asynchronous.
    pub(crate) handle: &'a Handle,
}

impl Start<'_> {
    /// Starts a side. Some begin to work only with their first call.
    pub(crate) fn start(&self, side: Side) -> Result<Box<dyn Contestant>> {
        Ok(match side {
            Side::Ours => Box::new(Ours::start(self)?),
            Side::AgentBrowser => Box::new(AgentBrowser::start(self)?),
            Side::Devtools => Box::new(Mcp::devtools(self)?),
            Side::Playwright => Box::new(Mcp::playwright(self)?),
            Side::Floor => Box::new(Floor::start(self)?),
        })
    }

    /// A fresh folder of a peer, which everything that it writes goes to.
    pub(crate) fn own_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = (0..).map(|number| self.folder.join(format!("{name}{number}")));
        let folder = folder.into_iter().find(|folder| !folder.exists()).context("numbers do not end")?;
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        Ok(folder)
    }

    /// A program of a peer: nothing of this machine's own settings, and everything that it writes below `folder`.
    pub(crate) fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for name in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, folder);
        }
        // A group of its own: who presses Ctrl-C wants us to end it in order.
        command.process_group(0).current_dir(folder).stderr(Stdio::null());
        command
    }

    /// Whether the peers' browsers must do without their sandbox: Chromium refuses to run as root with it.
    pub(crate) fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }
}

/// The version of an installed package.
pub(crate) fn version(packages: &Path, package: &str) -> Result<String> {
    let manifest = packages.join("node_modules").join(package).join("package.json");
    let text = fs::read_to_string(&manifest).with_context(|| format!("{} is there", manifest.display()))?;
    let manifest: serde_json::Value = serde_json::from_str(&text)?;
    Ok(manifest["version"].as_str().context("a package has a version")?.to_owned())
}
