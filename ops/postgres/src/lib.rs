//! A PostgreSQL of one's own, for tests and measurements: a fresh cluster in a temporary folder, on a unix socket and no
//! port, as an unprivileged user; gone with its holder, also where that one is killed.
//!
//! ```text
//!   holder ── the end of a pipe ──► sh (a group of its own) ──► postgres
//!      dropped, ended or killed: the pipe ends ──► sh stops postgres and removes the folder
//! ```

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

/// Names the URL of a cluster that is there already, so that not each test makes one.
pub const SHARED: &str = "BROWSERSPACE_TEST_POSTGRES";
/// Users that a server may run as which was started by root: PostgreSQL refuses root.
const USERS: [&str; 2] = ["postgres", "nobody"];

/// Starts the cluster, says so, waits until the holder is gone, and leaves nothing behind. `$1`: the folder, `$2`: the
/// folder of the programs.
const KEEPER: &str = r#"
data="$1/data"
if "$2/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale=C -N >"$1/log" 2>&1; then
  # A child of ours, so that nobody else has to reap it.
  "$2/postgres" -D "$data" -k "$1" -c listen_addresses= -c fsync=off -c max_connections=400 >>"$1/log" 2>&1 </dev/null &
  postgres=$!
  until "$2/pg_isready" -q -h "$1"; do kill -0 "$postgres" 2>/dev/null || break; sleep 0.05; done
fi
if "$2/pg_isready" -q -h "$1"; then echo ready; else tail -n 20 "$1/log"; fi
exec >/dev/null 2>&1
cat >/dev/null
if [ -n "$postgres" ]; then kill -QUIT "$postgres"; wait "$postgres"; fi
rm -rf "$1"
"#;

/// A running cluster. Dropping it ends it.
pub struct Cluster {
    keeper: Child,
    folder: PathBuf,
}

impl Cluster {
    /// Starts one.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or does not start; its own words are in the text.
    pub fn start() -> Result<Self> {
        let programs = programs().context("PostgreSQL is not installed: run `cargo xtask setup`")?;
        let folder = tempfile::Builder::new().prefix("own-postgres-").tempdir()?.keep();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o711))?;
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "keeper"]).args([&folder, &programs]);
        if is_root(&folder)? {
            let (uid, gid) = user().context("there is neither a user postgres nor nobody")?;
            std::os::unix::fs::chown(&folder, Some(uid), Some(gid))?;
            keeper.uid(uid).gid(gid);
        }
        // A signal for the holder's group is none for the keeper, who has yet to clean up.
        keeper.current_dir("/").process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = keeper.stderr(Stdio::null()).spawn()?;
        let mut said = String::new();
        let mut out = BufReader::new(keeper.stdout.take().expect("it is piped"));
        while out.read_line(&mut said)? > 0 && said != "ready\n" {}
        let cluster = Self { keeper, folder };
        if said != "ready\n" {
            bail!("PostgreSQL did not start: {said}");
        }
        Ok(cluster)
    }

    /// The URL of its database, as its superuser.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres:///postgres?host={}&user=postgres", self.folder.display())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The folder of `initdb` and `postgres`: of the newest version that Debian has put somewhere, or on the path.
#[must_use]
pub fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok().into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort_by_key(|folder| {
        let version = folder.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        std::cmp::Reverse(version.parse::<u32>().unwrap_or_default())
    });
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&on_path));
    folders
        .into_iter()
        .find(|folder| ["initdb", "postgres", "pg_isready"].iter().all(|name| folder.join(name).is_file()))
}

/// Whether we are root, told by whose our new folder is.
fn is_root(folder: &Path) -> Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(fs::metadata(folder)?.uid() == 0)
}

fn user() -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    USERS.iter().find_map(|name| {
        let line = users.lines().find(|line| line.split(':').next() == Some(*name))?;
        let mut fields = line.split(':').skip(2).map(str::parse);
        Some((fields.next()?.ok()?, fields.next()?.ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_runs_as_nobody_of_rank_and_leaves_nothing_behind() {
        let cluster = Cluster::start().expect("it starts");
        let folder = cluster.folder.clone();
        let pid = fs::read_to_string(folder.join("data/postmaster.pid")).expect("it has a pid");
        let pid: u32 = pid.lines().next().and_then(|line| line.parse().ok()).expect("a number");
        let process = PathBuf::from(format!("/proc/{pid}"));
        assert!(process.exists() && !is_root(&process).expect("it is there"));
        drop(cluster);
        assert!(!folder.exists() && !process.exists());
    }
}
