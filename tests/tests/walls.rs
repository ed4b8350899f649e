//! The walls around a Space's browser, seen from outside (C5, C9, C17, C18).

use std::{collections::BTreeSet, fs, path::PathBuf};

use browserspace_tests::{Page, Pages, Server, ServerOptions, Space, SpaceRequest, eventually};
use serde_json::json;

async fn scene(pages: &Pages) -> (Server, Space) {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    (server, space)
}

/// The inodes of the sockets that a process holds.
fn sockets(pid: u32) -> BTreeSet<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    let inode = |target: std::path::PathBuf| {
        Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    };
    targets.filter_map(inode).collect()
}

/// The inodes of all listening TCP sockets (state 0A).
fn listening() -> BTreeSet<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines());
    let fields = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let listeners = fields.filter(|fields| fields.get(3) == Some(&"0A"));
    listeners.filter_map(|fields| fields.get(9).map(|inode| (*inode).to_owned())).collect()
}

#[tokio::test]
async fn c05_c18_a_working_browser_listens_nowhere_and_runs_sandboxed_without_rights() {
    let pages = Pages::serve([("/", Page::html("<title>T</title>")), ("/never", Page::silent())]).await;
    let (server, space) = scene(&pages).await;
    space.complete("r1", "navigate", json!({ "url": pages.url("/") })).await;
    space.submit("r2", "navigate", json!({ "url": pages.url("/never") })).await.expect(202);
    eventually("the browser is at work", || async { (pages.hits("/never") == 1).then_some(()) }).await;
    let browsers = server.browsers();
    assert!(!browsers.is_empty());
    let open = listening();
    for pid in browsers {
        assert!(sockets(pid).is_disjoint(&open), "no debugging port, and no other");
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        assert!(!line.contains("no-sandbox") && !line.contains("remote-debugging-port"), "{line}");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or("1");
        assert!(uids.split_whitespace().all(|uid| uid != "0"), "{uids}");
    }
    let operator = server.operator();
    for path in ["/json", "/json/version", "/devtools/browser", "/cdp"] {
        operator.get(path).await.expect(404);
    }
}

#[tokio::test]
async fn c09_only_web_pages_are_reached_and_no_local_file_is_read() {
    let page = "<title>Links</title><a href='file:///etc/passwd'>file</a><a href='view-source:/'>source</a>
        <script>setTimeout(() => { location = 'file:///etc/passwd' })</script>";
    let pages = Pages::serve([("/", Page::html(page))]).await;
    let (_server, space) = scene(&pages).await;
    let schemes = [
        "file:///etc/passwd",
        "chrome://version",
        "devtools://devtools/bundled/inspector.html",
        "view-source:http://x/",
        "javascript:alert(1)",
        "filesystem:http://x/temporary/a",
        "mailto:a@example",
        "about:version",
        "FILE:///etc/passwd",
        " file:///etc/passwd",
        "ftp://127.0.0.1/",
    ];
    for (number, url) in schemes.into_iter().enumerate() {
        let answer = space.run(&format!("r{number}"), "navigate", json!({ "url": url })).await;
        let code = answer.data()["error"]["code"].as_str().or_else(|| answer.json["error"]["code"].as_str());
        assert!(matches!(code, Some("blocked_by_policy" | "invalid_args")), "{url}: {}", answer.text());
    }
    space.complete("page", "navigate", json!({ "url": pages.url("/") })).await;
    for (request_id, capability) in [("s", "snapshot"), ("c", "get_content"), ("u", "get_url")] {
        let answer = space.run(request_id, capability, json!({})).await.expect(200);
        assert!(!answer.text().contains("root:"), "no local text: {}", answer.text());
        assert!(!answer.text().contains("/etc/passwd\""), "{}", answer.text());
    }
}

#[tokio::test]
async fn c17_a_closed_space_leaves_no_process_and_no_profile() {
    let pages = Pages::serve([("/", Page::html("<title>T</title>"))]).await;
    let (server, space) = scene(&pages).await;
    space.complete("r1", "navigate", json!({ "url": pages.url("/") })).await;
    let runtime = server.data_dir().join("runtime");
    let is_folder = |entry: &fs::DirEntry| entry.path().is_dir();
    let profiles = || fs::read_dir(&runtime).into_iter().flatten().flatten().filter(is_folder).count();
    assert!(profiles() > 0, "a profile is below the folder's runtime part");
    space.close().await.expect(200);
    space.becomes("closed").await;
    server.no_browser_left().await;
    eventually("the profile is gone", || async { (profiles() == 0).then_some(()) }).await;
}

/// The network that a process is in.
fn network(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

/// The lines of a table of a process's network, without its head; none where it has gone meanwhile.
fn table(pid: u32, name: &str, head: usize) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    text.lines().skip(head).map(str::to_owned).collect()
}

/// Sockets that a process holds in networks that are not its own.
fn foreign_sockets(pid: u32) -> BTreeSet<String> {
    let tables = ["tcp", "tcp6", "udp", "udp6", "unix", "netlink", "packet", "raw", "raw6"];
    let known: BTreeSet<String> = tables
        .iter()
        .flat_map(|name| table(pid, name, 0))
        .flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    sockets(pid).difference(&known).cloned().collect()
}

/// Whether something but a process or a socket keeps a namespace (mount_namespaces(7)).
fn keeps_namespaces(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default().contains(" nsfs ")
}

#[tokio::test]
async fn c08_the_network_of_a_browser_has_one_listener_and_nothing_else_and_is_nobody_elses() {
    let pages = Pages::serve([("/", Page::html("<title>T</title>"))]).await;
    let (server, space) = scene(&pages).await;
    let other = server.operator().chromium_instance(&["default"], &[]).await;
    let other = server.operator().open(&SpaceRequest::new("default", &other)).await;
    space.complete("r1", "navigate", json!({ "url": pages.url("/") })).await;
    other.complete("r1", "navigate", json!({ "url": "about:blank" })).await;
    let machine = network(std::process::id()).expect("we have one");
    let mut of_main = BTreeSet::new();
    let browsers = server.browsers();
    assert!(browsers.len() >= 2);
    for pid in browsers {
        let Some(own) = network(pid) else { continue };
        assert_ne!(own, machine, "it is not the machine's");
        let interfaces = table(pid, "dev", 2);
        let is_dead = |line: &&str| matches!(line.trim().split(':').next(), Some("lo" | "nowhere"));
        let known = interfaces.iter().map(String::as_str).filter(is_dead).count();
        assert!(known >= 1 && known == interfaces.len(), "{interfaces:?}");
        assert_eq!(table(pid, "route", 1), Vec::<String>::new(), "no way out");
        let listening: Vec<String> = [table(pid, "tcp", 1), table(pid, "tcp6", 1)].concat();
        let listening: Vec<&str> = listening
            .iter()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|fields| fields.get(3) == Some(&"0A"))
            .filter_map(|fields| fields.get(1).copied())
            .collect();
        // Renderers are in networks of Chromium's own, in which there is nothing at all.
        assert!(
            matches!(listening[..], [] | ["0100007F:0C38"]),
            "127.0.0.1:3128 and no other: {listening:?}"
        );
        if !listening.is_empty() {
            of_main.insert(own);
        }
    }
    assert_eq!(of_main.len(), 2, "each Space has its own");
    assert!(!foreign_sockets(server.pid()).is_empty(), "the listeners are the server's");
}

#[tokio::test]
async fn c17_a_wall_leaves_no_socket_and_no_network_after_a_close_and_after_a_kill() {
    let pages = Pages::serve([("/", Page::html("<title>T</title>"))]).await;
    let (mut server, space) = scene(&pages).await;
    space.complete("r1", "navigate", json!({ "url": pages.url("/") })).await;
    let before = server.browsers();
    assert!(!before.is_empty());
    server.kill9();
    server.again();
    space.becomes("idle").await;
    space.complete("r2", "navigate", json!({ "url": pages.url("/") })).await;
    // A network goes with its last process and its last socket; its number is soon another's.
    eventually("the browsers of the dead server are gone", || async {
        let browsers = server.browsers();
        before.iter().all(|pid| !browsers.contains(pid)).then_some(())
    })
    .await;
    assert!(!foreign_sockets(server.pid()).is_empty(), "a new wall stands");
    space.close().await.expect(200);
    space.becomes("closed").await;
    server.no_browser_left().await;
    eventually("no socket is left", || async { foreign_sockets(server.pid()).is_empty().then_some(()) })
        .await;
    assert!(!keeps_namespaces(server.pid()));
}

#[tokio::test]
async fn c09_frames_show_inline_documents_only_where_the_policy_says_so_and_nothing_else_is_started() {
    let page = "<title>F</title><p>outer</p><iframe src='data:text/html,inner-of-data'></iframe><script>
        const blob = new Blob(['inner-of-blob'], { type: 'text/html' });
        document.body.appendChild(document.createElement('iframe')).src = URL.createObjectURL(blob);
        for (const address of ['mailto:a@a.example', 'web+x:y', 'filesystem:http://x/temporary/a', 'file:///etc/passwd'])
            document.body.appendChild(document.createElement('iframe')).src = address;
        navigator.registerProtocolHandler?.('web+x', location.origin + '/handled?%s');
        </script><a href='web+x:z'>Custom</a>";
    let pages = Pages::serve([("/", Page::html(page))]).await;
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    for (allow, shown) in
        [(vec![pages.host()], false), (vec![pages.host(), "data:".into(), "blob:".into()], true)]
    {
        let instance = operator.chromium_instance(&["default"], &allow).await;
        let space = operator.open(&SpaceRequest::new("default", &instance)).await;
        space.complete("1", "navigate", json!({ "url": pages.url("/") })).await;
        let snapshot = space.complete("2", "snapshot", json!({ "full": true })).await;
        let text = snapshot["text"].as_str().expect("a text").to_owned();
        for inner in ["inner-of-data", "inner-of-blob"] {
            assert_eq!(text.contains(inner), shown, "{inner}: {text}");
        }
        assert!(text.contains("outer") && !text.contains("root:"), "{text}");
        let line = text.lines().find(|line| line.contains("Custom")).expect("the link is there");
        let link = line.split_whitespace().find(|word| word.starts_with('e')).expect("a ref");
        space.run("3", "click", json!({ "ref": link })).await.expect(200);
        let stays = space.complete("4", "get_url", json!({})).await;
        assert_eq!(stays["url"], pages.url("/"), "no handler takes it");
        if !shown {
            eventually("it is recorded", || async {
                let events = space.events().await;
                let is_it = |event: &&serde_json::Value| {
                    event["kind"] == "blocked" && event["payload"]["rule"] == "scheme"
                };
                events.iter().find(is_it).map(|_| ())
            })
            .await;
        }
        space.close().await.expect(200);
    }
    assert_eq!(pages.hits("/handled"), 0);
}
