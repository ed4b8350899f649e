//! The walls around a Space's browser, seen from outside (C5, C9, C17, C18).

use std::{collections::BTreeSet, fs};

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
