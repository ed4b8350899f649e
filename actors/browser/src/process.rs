//! The process tree of one browser: who belongs to it, ending it, and reaping what it leaves.
//!
//! A process is known by pid, start time and profile, never by its name: pids are used again, and other people's
//! browsers have the same names. Signals go through a pidfd that was opened before the identity was checked, so
//! they cannot reach a successor of the pid.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Marks every process of a browser with its profile, whatever its command line says.
pub(crate) const PROFILE_VARIABLE: &str = "BROWSERSPACE_PROFILE";

/// How long the end of a killed process may take.
const DEATH_WAIT: Duration = Duration::from_secs(3);

/// How soon a profile that could not be removed is tried again.
const SWEEP_PAUSE: Duration = Duration::from_millis(20);

/// Which process, beyond doubt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: i32,
    /// When it started, in clock ticks since boot (proc(5), `stat`, field 22).
    pub start_ticks: u64,
    /// The profile folder that it runs with.
    pub profile_dir: PathBuf,
}

/// One line of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    session: i32,
    pub(crate) start_ticks: u64,
    zombie: bool,
}

/// The tree of one browser, as it was when last looked at.
#[derive(Debug)]
pub(crate) struct Tree {
    main: ProcessIdentity,
    uid: u32,
    /// Everything that was ever seen to belong: a zombie no longer shows why it did.
    seen: BTreeMap<i32, u64>,
}

impl Tree {
    pub(crate) fn new(main: ProcessIdentity, uid: u32) -> Self {
        let seen = BTreeMap::from([(main.pid, main.start_ticks)]);
        Self { main, uid, seen }
    }

    /// Looks at the process table and returns what belongs to the tree now.
    pub(crate) fn look(&mut self) -> Vec<Entry> {
        let table = table();
        let mut members: Vec<Entry> = table.iter().copied().filter(|entry| self.belongs(entry)).collect();
        // Children of members are members; the table is small, so repeat until nothing is added.
        loop {
            let more: Vec<Entry> = table
                .iter()
                .copied()
                .filter(|entry| !members.contains(entry) && members.iter().any(|m| m.pid == entry.parent))
                .collect();
            if more.is_empty() {
                break;
            }
            members.extend(more);
        }
        self.seen.extend(members.iter().map(|entry| (entry.pid, entry.start_ticks)));
        members
    }

    fn belongs(&self, entry: &Entry) -> bool {
        if self.seen.get(&entry.pid) == Some(&entry.start_ticks) {
            return true;
        }
        // The session number alone could be used again after the tree has ended; its uid and age could not.
        let in_session = entry.session == self.main.pid
            && entry.start_ticks >= self.main.start_ticks
            && uid_of(entry.pid) == Some(self.uid);
        in_session || runs_with(entry.pid, &self.main.profile_dir)
    }

    /// Kills everything of the tree and reaps what became ours, until nothing is left or time is up.
    ///
    /// The main process is reaped by whoever started it.
    pub(crate) fn end(&mut self) -> bool {
        let until = Instant::now() + DEATH_WAIT;
        loop {
            let members = self.look();
            let left = members.iter().filter(|entry| !(entry.zombie && entry.pid == self.main.pid));
            let mut count = 0;
            for entry in left {
                count += 1;
                if entry.zombie {
                    reap(entry);
                } else {
                    // Gone in the meantime is what we want; the next look tells.
                    let _ = kill(entry.pid, entry.start_ticks);
                }
            }
            if count == 0 {
                return true;
            }
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the sandbox confines the renderers of the tree; `None` while there is no renderer.
    pub(crate) fn is_sandboxed(&mut self) -> Option<bool> {
        let renderers: Vec<i32> =
            self.look().into_iter().map(|entry| entry.pid).filter(|pid| is_renderer(*pid)).collect();
        let status = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/status")).ok();
        let confined: Vec<bool> =
            renderers.iter().filter_map(status).map(|status| crate::sandbox::is_sandboxed(&status)).collect();
        (!confined.is_empty()).then(|| confined.iter().all(|confined| *confined))
    }
}

/// Makes orphans of our browsers ours, so that they can be reaped. For the whole server process, once.
pub fn adopt_orphans() -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true).map_err(io::Error::from)
}

/// The identity of a running process.
pub(crate) fn identify(pid: i32, profile_dir: &Path) -> Option<ProcessIdentity> {
    let entry = entry(pid)?;
    Some(ProcessIdentity { pid, start_ticks: entry.start_ticks, profile_dir: profile_dir.to_owned() })
}

/// Finds the processes that run with `profile_dir`: what an earlier server may have left behind.
pub fn leftovers(profile_dir: &Path) -> Vec<ProcessIdentity> {
    table()
        .into_iter()
        .filter(|entry| !entry.zombie && runs_with(entry.pid, profile_dir))
        .map(|entry| ProcessIdentity {
            pid: entry.pid,
            start_ticks: entry.start_ticks,
            profile_dir: profile_dir.to_owned(),
        })
        .collect()
}

/// Ends a process of an earlier server; blocking. True if it is gone, false if it still runs.
///
/// A process that has the pid but not the start time or the profile is somebody else's: it is left alone, and the
/// one that was meant counts as gone.
pub fn end_orphan(identity: &ProcessIdentity) -> io::Result<bool> {
    let is_there = || {
        entry(identity.pid).is_some_and(|entry| entry.start_ticks == identity.start_ticks && !entry.zombie)
            && runs_with(identity.pid, &identity.profile_dir)
    };
    if !is_there() {
        return Ok(true);
    }
    kill(identity.pid, identity.start_ticks)?;
    let until = Instant::now() + DEATH_WAIT;
    while is_there() {
        if Instant::now() > until {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(true)
}

/// Removes the profile of a browser that was ended; blocking.
///
/// A helper that was being born when its browser was ended may write into it for a moment yet, so `end` is called before
/// each try, for as long as a process may take to die.
///
/// # Errors
/// What `end` says, or why the folder is still there.
pub fn remove_profile(profile_dir: &Path, mut end: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let until = Instant::now() + DEATH_WAIT;
    loop {
        end()?;
        match std::fs::remove_dir_all(profile_dir) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() > until => return Err(error),
            Err(_) => std::thread::sleep(SWEEP_PAUSE),
        }
    }
}

fn kill(pid: i32, start_ticks: u64) -> io::Result<()> {
    let Some(raw) = rustix::process::Pid::from_raw(pid) else { return Ok(()) };
    let handle = match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if entry(pid).is_none_or(|entry| entry.start_ticks != start_ticks) {
        return Ok(());
    }
    match pidfd_send_signal(&handle, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn reap(entry: &Entry) {
    if i64::from(entry.parent) == i64::from(std::process::id()) {
        // Not a zombie of ours any more is as good.
        let _ = waitpid(Pid::from_raw(entry.pid), Some(WaitPidFlag::WNOHANG));
    }
}

fn table() -> Vec<Entry> {
    let Ok(folders) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = folders.flatten().filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    pids.filter(|pid: &i32| *pid != own).filter_map(entry).collect()
}

/// Reads `/proc/pid/stat` (proc(5)): the name in parentheses may hold anything, so fields count from its end.
pub(crate) fn entry(pid: i32) -> Option<Entry> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Entry {
        pid,
        zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
    })
}

fn uid_of(pid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A forked renderer writes its whole command line into one argument.
fn is_renderer(pid: i32) -> bool {
    let marked = |part: &[u8]| part == b"--type=renderer";
    arguments(pid).iter().any(|argument| argument.as_bytes().split(|byte| *byte == b' ').any(marked))
}

fn arguments(pid: i32) -> Vec<OsString> {
    strings(&format!("/proc/{pid}/cmdline"))
}

fn strings(path: &str) -> Vec<OsString> {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|part| OsString::from_vec(part.to_vec())).collect()
}

fn runs_with(pid: i32, profile_dir: &Path) -> bool {
    let named = |prefix: &str, value: &OsString| {
        value.as_bytes().strip_prefix(prefix.as_bytes()) == Some(profile_dir.as_os_str().as_bytes())
    };
    let argument = "--user-data-dir=";
    let variable = format!("{PROFILE_VARIABLE}=");
    arguments(pid).iter().any(|value| named(argument, value))
        || strings(&format!("/proc/{pid}/environ")).iter().any(|value| named(&variable, value))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper(profile: &str) -> Child {
        Command::new("sleep")
            .arg("60")
            .env_clear()
            .env(PROFILE_VARIABLE, profile)
            .spawn()
            .expect("sleep starts")
    }

    #[test]
    fn an_orphan_is_ended_only_if_pid_start_time_and_profile_agree() {
        let mut ours = sleeper("/nowhere/ours");
        let mut foreign = sleeper("/nowhere/foreign");
        let found = leftovers(Path::new("/nowhere/ours"));
        assert_eq!(found.len(), 1, "{found:?}");
        let mut wrong_time = found[0].clone();
        wrong_time.start_ticks += 1;
        let wrong_profile = ProcessIdentity { profile_dir: "/nowhere/other".into(), ..found[0].clone() };
        assert!(end_orphan(&wrong_time).expect("looked"));
        assert!(end_orphan(&wrong_profile).expect("looked"));
        assert!(ours.try_wait().expect("asked").is_none(), "it runs on");
        assert!(end_orphan(&found[0]).expect("killed"));
        assert!(!ours.wait().expect("reaped").success());
        assert!(foreign.try_wait().expect("asked").is_none(), "the foreign one runs on");
        foreign.kill().expect("killed");
        foreign.wait().expect("reaped");
    }

    #[test]
    fn a_profile_that_resists_is_tried_again_after_its_processes_are_ended_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let profile = folder.path().join("profile");
        // A file in its place can not be removed as a folder: the first try fails.
        std::fs::write(&profile, "").expect("a file");
        let mut ends = 0;
        let removed = super::remove_profile(&profile, || {
            ends += 1;
            if ends == 2 {
                std::fs::remove_file(&profile)?;
                std::fs::create_dir(&profile)?;
            }
            Ok(())
        });
        assert!(removed.is_ok() && !profile.exists(), "{removed:?}");
        assert_eq!(ends, 2);
    }
}
