//! A Space that was closed leaves nothing behind: round after round of real browsers, the machine stays as it was.
//! `BROWSERSPACE_ROUNDS` sets how many rounds are run (many need the time of `--profile deep`).

use std::{
    collections::BTreeSet,
    fs::{read_dir, read_link, read_to_string},
    ops::Range,
    path::{Path, PathBuf},
};

use browserspace_tests::{Server, ServerOptions, SpaceRequest, eventually};
use serde_json::json;

/// What an ordinary run does; a leak of one thing a round shows in it.
const ROUNDS: usize = 8;

/// Before the first look: what is opened once and kept is open by then.
const WARM_UP: usize = 2;

/// The client's connections and the log's files come and go; they do not grow with the rounds.
const DESCRIPTORS_SLACK: usize = 3;

/// How many users a server gives to its browsers, at most.
const UIDS: u32 = 1_000;

/// What can be left behind.
#[derive(Debug, Clone, Copy)]
struct Remains {
    processes: usize,
    descriptors: usize,
    files: usize,
    network_namespaces: usize,
}

impl Remains {
    fn of(server: &Server, uids: &Range<u32>) -> Self {
        let own = PathBuf::from(format!("/proc/{}", server.pid()));
        let processes: Vec<_> =
            entries("/proc".as_ref()).into_iter().filter(|it| has_uid(it, uids)).collect();
        let children = entries("/proc".as_ref()).into_iter().filter(|it| is_child(it, server.pid()));
        let descriptors: Vec<_> = entries(&own.join("fd"));
        let held = descriptors
            .iter()
            .filter_map(|it| read_link(it).ok())
            .filter(|it| it.to_string_lossy().starts_with("net:"));
        let lived_in =
            processes.iter().cloned().chain(children).filter_map(|it| read_link(it.join("ns/net")).ok());
        let mut namespaces: BTreeSet<_> = held.chain(lived_in).collect();
        namespaces.remove(&read_link(own.join("ns/net")).expect("the server is in one"));
        Self {
            processes: processes.len(),
            descriptors: descriptors.len(),
            files: below(&server.data_dir().join("runtime")),
            network_namespaces: namespaces.len(),
        }
    }

    fn is_flat(&self, first: &Self) -> bool {
        self.processes == 0
            && self.network_namespaces == 0
            && self.files <= first.files
            && self.descriptors <= first.descriptors + DESCRIPTORS_SLACK
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Folders and files, at any depth.
fn below(folder: &Path) -> usize {
    entries(folder).iter().map(|path| 1 + if path.is_symlink() { 0 } else { below(path) }).sum()
}

/// A zombie has a user as well: it is left behind until somebody reaps it.
fn has_uid(process: &Path, uids: &Range<u32>) -> bool {
    status(process, "Uid:").is_some_and(|uid| uids.contains(&uid))
}

fn is_child(process: &Path, parent: u32) -> bool {
    status(process, "PPid:") == Some(parent)
}

fn status(process: &Path, field: &str) -> Option<u32> {
    let status = read_to_string(process.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(field))?.split_whitespace().next()?.parse().ok()
}

#[tokio::test]
async fn s11_a_closed_space_leaves_nothing_of_its_real_browser_round_after_round() {
    let rounds = std::env::var("BROWSERSPACE_ROUNDS").ok().map(|text| text.parse().expect("a number"));
    let rounds: usize = rounds.unwrap_or(ROUNDS);
    // Users that no other server on this machine gives away.
    let first_uid = 1_000_000_000 + std::process::id() % 2_000_000 * UIDS;
    let uids = first_uid..first_uid + UIDS;
    let server =
        Server::start(ServerOptions::default().env("BROWSERSPACE_BROWSER_UID_BASE", first_uid.to_string()));
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[]).await;
    let mut first = None;
    for round in 1..=WARM_UP + rounds {
        let space = operator.open(&SpaceRequest::new("default", &instance)).await;
        space.complete("r1", "navigate", json!({ "url": "about:blank" })).await;
        let alive = Remains::of(&server, &uids);
        assert!(!server.browsers().is_empty(), "there is something to leave behind");
        if nix::unistd::geteuid().is_root() {
            assert!(alive.processes > 0, "it is looked for where it is: {alive:?}");
            assert!(alive.network_namespaces > 0, "it is looked for where it is: {alive:?}");
        }
        space.close().await.expect(200);
        space.becomes("closed").await;
        server.no_browser_left().await;
        if round == WARM_UP {
            let settled = eventually("the first rounds leave no process", || async {
                let now = Remains::of(&server, &uids);
                (now.processes == 0 && now.network_namespaces == 0).then_some(now)
            });
            let settled = settled.await;
            println!("after {round} rounds: {settled:?}");
            first = Some(settled);
        } else if let Some(first) = &first {
            let what = format!("round {round} leaves nothing behind beside {first:?}");
            let now = eventually(&what, || async {
                let now = Remains::of(&server, &uids);
                now.is_flat(first).then_some(now)
            });
            let now = now.await;
            println!("after {round} rounds: {now:?}");
        }
    }
}
