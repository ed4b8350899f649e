//! The processes of one side: found, measured, ended. A side is everything below one process, and everything that names
//! the side's own folder: a daemon leaves its parent, and yet it belongs to who started it.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// `USER_HZ`, in which Linux tells times of processes to programs, on every architecture that we run on.
const MS_PER_TICK: f64 = 10.0;
const KIB_PER_MIB: f64 = 1024.0;

/// How long killed processes may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Where the processes of a side are.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    root: Option<u32>,
    folder: PathBuf,
    browser: PathBuf,
}

/// What a side has used so far, in milliseconds of CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cpu {
    /// Everything that is not the browser.
    pub(crate) own_ms: f64,
    /// The browser.
    pub(crate) browser_ms: f64,
}

impl Cpu {
    /// What came on top of `before`. A browser that ended in between took its part with it: that is not negative work.
    pub(crate) fn since(self, before: Self) -> Self {
        let own_ms = (self.own_ms - before.own_ms).max(0.0);
        Self { own_ms, browser_ms: (self.browser_ms - before.browser_ms).max(0.0) }
    }
}

/// What a side takes up, in MiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// Resident memory of everything that is not the browser.
    pub(crate) own_rss: f64,
    /// The browser's proportional share: its processes share most pages, so that a sum of RSS would count them often.
    pub(crate) browser_pss: f64,
}

struct Process {
    pid: u32,
    parent: u32,
    ticks: u64,
}

impl Tree {
    /// Everything below `root`, and everything that names `folder`. What runs from the folder of the program `browser`
    /// is a browser.
    pub(crate) fn new(root: Option<u32>, folder: &Path, browser: &Path) -> Self {
        let browser = browser.parent().unwrap_or(browser).to_owned();
        Self { root, folder: folder.to_owned(), browser }
    }

    /// What it has used so far. Programs that ran and ended as children of ours count as its own: only one side works
    /// at a time.
    pub(crate) fn cpu(&self) -> Cpu {
        let mut cpu = Cpu { own_ms: ended_children_ms(), browser_ms: 0.0 };
        for process in self.processes() {
            #[expect(clippy::cast_precision_loss, reason = "ticks of a bench are far below 2^52")]
            let ms = process.ticks as f64 * MS_PER_TICK;
            if self.is_browser(process.pid) {
                cpu.browser_ms += ms;
            } else {
                cpu.own_ms += ms;
            }
        }
        cpu
    }

    /// What it takes up now.
    pub(crate) fn memory(&self) -> Memory {
        let mut memory = Memory { own_rss: 0.0, browser_pss: 0.0 };
        for Process { pid, .. } in self.processes() {
            if self.is_browser(pid) {
                memory.browser_pss += mib_of(pid, "smaps_rollup", "Pss:");
            } else {
                memory.own_rss += mib_of(pid, "status", "VmRSS:");
            }
        }
        memory
    }

    /// Kills all of it, and does not wait.
    pub(crate) fn kill(&self) {
        for process in self.processes() {
            let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
            // One that has ended since can't be told anything.
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }
    }

    /// Waits for its end, and kills what is left after `grace`.
    pub(crate) fn end(&self, grace: Duration) {
        if !self.is_gone_within(grace) {
            self.kill();
            self.is_gone_within(GONE_WITHIN);
        }
    }

    fn is_gone_within(&self, limit: Duration) -> bool {
        let begun = Instant::now();
        while !self.processes().is_empty() {
            if begun.elapsed() > limit {
                return false;
            }
            thread::sleep(Duration::from_millis(20));
        }
        true
    }

    fn is_browser(&self, pid: u32) -> bool {
        fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program.starts_with(&self.browser))
    }

    fn processes(&self) -> Vec<Process> {
        let mut all = all();
        let mut ours: HashSet<u32> =
            all.iter().map(|process| process.pid).filter(|pid| self.is_root(*pid)).collect();
        loop {
            let below = |process: &&Process| ours.contains(&process.parent) && !ours.contains(&process.pid);
            let more: Vec<u32> = all.iter().filter(below).map(|process| process.pid).collect();
            if more.is_empty() {
                break;
            }
            ours.extend(more);
        }
        all.retain(|process| ours.contains(&process.pid));
        all
    }

    fn is_root(&self, pid: u32) -> bool {
        let folder = self.folder.as_os_str().as_encoded_bytes();
        let names = |file: &str| {
            let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            text.windows(folder.len()).any(|part| part == folder)
        };
        self.root == Some(pid) || (pid != std::process::id() && (names("cmdline") || names("environ")))
    }
}

/// All processes that have not ended.
fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// proc_pid_stat(5): the fields after the name in parentheses, which may itself hold anything.
fn parse(pid: u32, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let is_zombie = matches!(*fields.first()?, "Z" | "X");
    let parent = fields.get(1)?.parse().ok()?;
    // utime, stime, and both of the children that were waited for: fields 14 to 17 of the whole line.
    let ticks = fields.get(11..15)?.iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    (!is_zombie).then_some(Process { pid, parent, ticks })
}

/// The CPU of our own children that have ended.
pub(crate) fn ended_children_ms() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or(vec![], |(_, rest)| rest.split(' ').collect());
    let ticks = fields.iter().skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() * MS_PER_TICK
}

fn mib_of(pid: u32, file: &str, field: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    // One that ended since takes up nothing.
    kib.unwrap_or(0.0) / KIB_PER_MIB
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_holds() {
        let line = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 2 0 0 10 20 30 40 20 0 1 0";
        let process = parse(7, line).expect("a process");
        assert_eq!((process.parent, process.ticks), (3, 100));
        assert!(parse(7, &line.replace(") S ", ") Z ")).is_none(), "one that has ended is none");
    }

    #[test]
    fn a_tree_is_found_by_its_folder_and_ended_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", "sleep 300 & sleep 300"]).env_clear().env("HOME", folder.path());
        let mut child = shell.spawn().expect("a shell");
        let tree = Tree::new(None, folder.path(), Path::new("/no/such/browser"));
        let begun = Instant::now();
        while tree.processes().len() < 3 && begun.elapsed() < GONE_WITHIN {
            thread::yield_now();
        }
        assert_eq!(tree.processes().len(), 3);
        assert!(tree.memory().own_rss > 0.0);
        tree.end(Duration::ZERO);
        assert!(tree.processes().is_empty());
        child.wait().expect("the shell is ours");
    }
}
