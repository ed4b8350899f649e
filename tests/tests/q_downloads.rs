//! Q1 to Q8: what a page made the browser download, from its first byte to its release, on a real Chromium.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use browserspace_tests::{
    Answer, Client, Page, Pages, Server, ServerOptions, Space, SpaceRequest, eventually, eventually_within,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

const CAPABILITIES: [&str; 6] = ["navigate", "snapshot", "click", "downloads", "upload", "tab_new"];
const REPORT: &str = "%PDF-1.7 what was asked for";
/// How long a download may take to be captured on a busy machine.
const CAPTURE_TIMEOUT: Duration = Duration::from_secs(60);

/// A site whose answers end otherwise than they should: `/cut`, `/chunked` and `/slow`.
struct Rough {
    port: u16,
    task: JoinHandle<()>,
}

impl Rough {
    async fn serve() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a loopback port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut head = [0; 4096];
                    let count = stream.read(&mut head).await.unwrap_or(0);
                    let asked = String::from_utf8_lossy(&head[..count]).into_owned();
                    let kind = "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-disposition: attachment; filename=a.bin\r\n";
                    if asked.starts_with("GET /cut") {
                        let _ =
                            stream.write_all(format!("{kind}content-length: 1000\r\n\r\n").as_bytes()).await;
                        let _ = stream.write_all(&[7; 500]).await;
                    } else if asked.starts_with("GET /chunked") {
                        let _ = stream
                            .write_all(format!("{kind}transfer-encoding: chunked\r\n\r\n").as_bytes())
                            .await;
                        let chunk = vec![7; 1 << 20];
                        for _ in 0..24 {
                            if stream.write_all(b"100000\r\n").await.is_err()
                                || stream.write_all(&chunk).await.is_err()
                            {
                                return;
                            }
                            let _ = stream.write_all(b"\r\n").await;
                        }
                        let _ = stream.write_all(b"0\r\n\r\n").await;
                    } else {
                        // Chromium looks at the first KiB of such a body before it takes it for a download.
                        let _ =
                            stream.write_all(format!("{kind}content-length: 8000\r\n\r\n").as_bytes()).await;
                        let _ = stream.write_all(&[7; 4000]).await;
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Self { port, task }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Rough {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn attachment(body: &str, name: &str) -> Page {
    Page::html("")
        .body(body)
        .header("content-disposition", &format!("attachment; filename=\"{name}\""))
        .header("content-type", "application/pdf")
}

async fn scene(options: ServerOptions, pages: &Pages, more: &[String]) -> (Server, Space) {
    let server = Server::start(options);
    let operator = server.operator();
    let allow: Vec<_> = std::iter::once(pages.host()).chain(more.iter().cloned()).collect();
    let instance = operator.chromium_instance(&["default"], &allow).await;
    let space = operator.open(&SpaceRequest::new("default", &instance).granting(&CAPABILITIES)).await;
    space.becomes("idle").await;
    (server, space)
}

async fn downloads(space: &Space, query: &str) -> Vec<Value> {
    space.client().get(&space.path(&format!("/downloads{query}"))).await.expect(200).list().to_vec()
}

/// Waits until so many downloads have come to an end, and gives them, newest first.
async fn settled(space: &Space, count: usize) -> Vec<Value> {
    let last = std::sync::Mutex::new(Vec::new());
    let waited = tokio::time::timeout(
        CAPTURE_TIMEOUT,
        eventually_within(2 * CAPTURE_TIMEOUT, "downloads come to their end", || async {
            let all = downloads(space, "?limit=100").await;
            last.lock().expect("nobody panicked").clone_from(&all);
            let is_under_way = |download: &Value| download["state"] == "started";
            (all.len() == count && !all.iter().any(is_under_way)).then_some(all)
        }),
    );
    waited
        .await
        .unwrap_or_else(|_| panic!("not {count} have ended: {:#?}", last.lock().expect("nobody panicked")))
}

async fn captured(space: &Space, pages: &Pages) -> String {
    space.run("get", "navigate", json!({ "url": pages.url("/report") })).await.expect(200);
    let all = settled(space, 1).await;
    assert_eq!(all[0]["state"], "captured", "{all:?}");
    all[0]["guid"].as_str().expect("a guid").to_owned()
}

async fn release(client: &Client, space: &Space, guid: &str, name: &str) -> Answer {
    let path = space.path(&format!("/downloads/{guid}/release"));
    client.post(&path, &json!({ "declared_operator": name })).await
}

async fn content(space: &Space, guid: &str, range: Option<&str>) -> Answer {
    let request = space.client().request(Method::GET, &space.path(&format!("/downloads/{guid}/content")));
    let request = match range {
        Some(range) => request.header("range", range),
        None => request,
    };
    space.client().send(request).await
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("it lists").path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn q2_q4_q5_q6_from_a_click_to_a_released_file_and_the_first_approval_stands() {
    let pages = Pages::serve([("/report", attachment(REPORT, "../../report.pdf"))]).await;
    let (server, space) = scene(ServerOptions::default(), &pages, &[]).await;
    let answer = space.run("get", "navigate", json!({ "url": pages.url("/report") })).await.expect(200);
    let begun = answer.data()["result"]["downloads"].clone();
    let receipt = settled(&space, 1).await.remove(0);
    let guid = receipt["guid"].as_str().expect("a guid").to_owned();
    // The agent saw it begin, under the same id, and its receipt says what it is and not where.
    assert_eq!(begun[0]["download_id"], guid.as_str(), "{begun}");
    assert_eq!((&receipt["state"], &receipt["bytes"]), (&json!("captured"), &json!(REPORT.len())));
    assert_eq!(receipt["sniffed_media_type"], "application/pdf");
    assert!(!receipt["suggested_filename"].as_str().expect("a name").contains('/'), "{receipt}");
    let listed = space.complete("list", "downloads", json!({})).await;
    assert_eq!(listed["downloads"][0]["sha256"], receipt["sha256"]);
    let data_dir = server.data_dir().display().to_string();
    assert!(!receipt.to_string().contains(&data_dir) && !listed.to_string().contains(&data_dir));
    // Nobody has its bytes before a person lets it out, and no agent or auditor does.
    content(&space, &guid, None).await.expect_error(404, "download_gone");
    let agent = server.agent("default", "agent-1").await;
    let auditor = server.auditor("default").await;
    for client in [&agent, &auditor] {
        release(client, &space, &guid, "Mallory").await.expect_error(403, "forbidden");
    }
    let operator = server.operator();
    release(&operator, &space, "report.pdf", "Alice").await.expect_error(422, "invalid_request");
    let unknown = "0191d2f4-7c1e-7a5b-8c3d-1f2e3d4c5b6a";
    release(&operator, &space, unknown, "Alice").await.expect_error(404, "download_gone");
    let released = release(&operator, &space, &guid, "Alice").await.expect(200).data().clone();
    assert_eq!(released["approval"]["declared_operator"], "Alice");
    // The three files, and nothing in the quarantine any more.
    let folder = server.data_dir().join("artifacts/downloads").join(&space.id);
    let mut published = files(&folder);
    published.sort();
    assert_eq!(published.len(), 3, "{published:?}");
    let stamp = |path: &PathBuf| {
        let meta = fs::metadata(path).expect("it is there");
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        (meta.ino(), meta.mtime(), meta.mtime_nsec())
    };
    let before: Vec<_> = published.iter().map(stamp).collect();
    assert!(files(&server.data_dir().join("quarantine")).is_empty());
    let token = server.operator_token();
    for path in &published {
        assert!(!String::from_utf8_lossy(&fs::read(path).expect("it reads")).contains(&token));
    }
    // Bob repeats: the answer is Alice's, and nothing is written.
    let bob = operator.bearing(&operator.issue_token("default", "operator", "bob").await);
    let repeated = release(&bob, &space, &guid, "Bob").await.expect(200).data().clone();
    assert_eq!(repeated["approval"], released["approval"]);
    assert_eq!(before, published.iter().map(stamp).collect::<Vec<_>>());
    let bytes = content(&space, &guid, None).await.expect(200);
    assert_eq!(bytes.bytes, REPORT.as_bytes());
    assert_eq!(bytes.header("x-content-type-options"), Some("nosniff"));
    assert!(bytes.header("content-disposition").is_some_and(|value| value.starts_with("attachment")));
    let part = content(&space, &guid, Some("bytes=1-3")).await.expect(206);
    assert_eq!(
        (part.bytes.as_slice(), part.header("content-range").map(str::to_owned)),
        (&b"PDF"[..], Some(format!("bytes 1-3/{}", REPORT.len())))
    );
    // Q8: the log tells the same, in its own order.
    let log = operator.log_after(0).await;
    let kinds: Vec<_> = log
        .iter()
        .filter(|event| event["stream"].as_str().is_some_and(|stream| stream.starts_with("downloads/")))
        .map(|event| event["kind"].as_str().expect("a kind").to_owned())
        .collect();
    assert_eq!(kinds, ["download_started", "download_captured", "download_approved", "download_released"]);
    // It outlives its Space.
    space.close().await.expect(200);
    assert_eq!(content(&space, &guid, None).await.expect(200).bytes, REPORT.as_bytes());
}

#[tokio::test]
async fn q3_what_was_tampered_with_or_is_gone_is_not_released_and_what_is_published_is_not_overwritten() {
    let pages = Pages::serve([("/report", attachment(REPORT, "report.pdf"))]).await;
    let (server, space) = scene(ServerOptions::default(), &pages, &[]).await;
    let guid = captured(&space, &pages).await;
    let operator = server.operator();
    let waiting = server.data_dir().join("quarantine").join(&space.id).join(&guid);
    let (kept, evil) = (fs::read(&waiting).expect("it waits"), REPORT.replace('w', "W"));
    fs::write(&waiting, &evil).expect("we are root");
    release(&operator, &space, &guid, "Alice").await.expect_error(409, "download_tampered");
    fs::remove_file(&waiting).expect("we are root");
    release(&operator, &space, &guid, "Alice").await.expect_error(404, "download_gone");
    std::os::unix::fs::symlink("/etc/hostname", &waiting).expect("we are root");
    let refused = release(&operator, &space, &guid, "Alice").await;
    refused.expect_error(404, "download_gone");
    assert!(!refused.text().contains("quarantine"), "{}", refused.text());
    assert!(files(&server.data_dir().join("artifacts/downloads")).is_empty());
    fs::remove_file(&waiting).expect("we are root");
    fs::write(&waiting, &kept).expect("we are root");
    // Something else has its name: the approval stands, nothing is overwritten, and later the same release succeeds.
    let folder = server.data_dir().join("artifacts/downloads").join(&space.id);
    fs::create_dir_all(&folder).expect("we are root");
    fs::write(folder.join(&guid), "mine").expect("we are root");
    release(&operator, &space, &guid, "Alice").await.expect_error(409, "download_conflict");
    assert_eq!(fs::read(folder.join(&guid)).expect("it is there"), b"mine");
    fs::remove_file(folder.join(&guid)).expect("we are root");
    let released = release(&operator, &space, &guid, "Bob").await.expect(200);
    assert_eq!(released.data()["approval"]["declared_operator"], "Alice", "the first approval stands");
    fs::write(folder.join(&guid), evil).expect("we are root");
    content(&space, &guid, None).await.expect_error(409, "download_conflict");
}

#[tokio::test]
async fn q1_f05_each_way_to_end_is_told_and_nothing_beyond_the_limit_is_kept() {
    let rough = Rough::serve().await;
    let pages = Pages::serve([
        ("/empty", attachment("", "empty.txt")),
        ("/big", attachment(&"7".repeat((16 << 20) + 1), "big.bin")),
        ("/most", attachment(&"7".repeat(16 << 20), "most.bin")),
        (
            "/made",
            Page::html(
                "<title>made</title><script>
                const link = (href, name) => { const a = document.createElement('a'); a.href = href; a.download = name; a.click() };
                link(URL.createObjectURL(new Blob(['made by a script'])), 'CON');
                link('data:text/plain,SECRET', '\u{202e}fdp.exe');
                </script>",
            ),
        ),
    ])
    .await;
    let options = ServerOptions::default().env("BROWSERSPACE_DOWNLOAD_STALL_SECONDS", "2");
    let (server, space) = scene(options, &pages, &[format!("127.0.0.1:{}", rough.port)]).await;
    let mut count = 0;
    for (url, state, reason) in [
        (pages.url("/empty"), "captured", Value::Null),
        (pages.url("/big"), "refused", json!("too_large")),
        (pages.url("/most"), "captured", Value::Null),
        (rough.url("/cut"), "refused", json!("interrupted")),
        (rough.url("/chunked"), "refused", json!("too_large")),
        (rough.url("/slow"), "refused", json!("stalled")),
    ] {
        space.run(&format!("n{count}"), "navigate", json!({ "url": url })).await.expect(200);
        count += 1;
        let newest = settled(&space, count).await.remove(0);
        assert_eq!(
            (&newest["state"], &newest["refused_because"]),
            (&json!(state), &reason),
            "{url}: {newest}"
        );
    }
    space.complete("made", "navigate", json!({ "url": pages.url("/made") })).await;
    let all = settled(&space, count + 2).await;
    let made: Vec<_> = all.iter().take(2).collect();
    assert!(made.iter().all(|download| download["state"] == "captured"), "{made:?}");
    assert!(!made.iter().any(|download| download["url"].to_string().contains("SECRET")), "{made:?}");
    // What is on the disk is what is captured, under opaque names, and the landing folder is empty.
    let kept = files(&server.data_dir().join("quarantine"));
    assert_eq!(kept.len(), 4, "{kept:?}");
    for path in kept {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(all.iter().any(|download| download["guid"] == name.as_str()), "{name}");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
    }
    let runtime = server.data_dir().join("runtime");
    let landed = |path: &PathBuf| path.parent().and_then(Path::extension).is_some_and(|end| end == "in");
    eventually("the landing folder is empty", || async {
        (!files(&runtime).iter().any(landed)).then_some(())
    })
    .await;
    space.close().await.expect(200);
    server.no_browser_left().await;
    eventually("the landing folder is gone", || async {
        let names = fs::read_dir(&runtime).expect("it is there").map(|entry| entry.expect("it lists").path());
        (!names.into_iter().any(|path| path.extension().is_some_and(|end| end == "in"))).then_some(())
    })
    .await;
}

#[tokio::test]
async fn q1_fifty_at_once_are_fifty_receipts_and_the_budget_of_a_space_is_one() {
    // Chromium drops what a page clicks beyond ten in a burst.
    let page = "<title>many</title><script>
        let n = 0;
        const one = () => { const a = document.createElement('a');
            a.href = URL.createObjectURL(new Blob(['file ' + n++])); a.download = 'twin.txt'; a.click() };
        const some = () => { for (let at = 0; at < 5 && n < 55; at++) one(); if (n < 55) setTimeout(some, 1100) };
        some()</script>";
    let pages = Pages::serve([("/many", Page::html(page))]).await;
    let options = ServerOptions::default().env("BROWSERSPACE_DOWNLOAD_SPACE_FILES_MAX", "50");
    let (server, space) = scene(options, &pages, &[]).await;
    space.complete("many", "navigate", json!({ "url": pages.url("/many") })).await;
    let all = settled(&space, 55).await;
    let (captured, refused): (Vec<_>, Vec<_>) = all.iter().partition(|one| one["state"] == "captured");
    assert_eq!((captured.len(), refused.len()), (50, 5));
    assert!(refused.iter().all(|one| one["refused_because"] == "space_files"), "{refused:?}");
    let hashes: std::collections::BTreeSet<_> =
        captured.iter().map(|one| one["sha256"].to_string()).collect();
    assert_eq!(hashes.len(), 50, "each its own bytes");
    assert_eq!(files(&server.data_dir().join("quarantine")).len(), 50);
}

#[tokio::test]
async fn q7_a_killed_server_ends_what_was_under_way_and_releases_what_was_captured() {
    let rough = Rough::serve().await;
    let pages = Pages::serve([("/report", attachment(REPORT, "report.pdf"))]).await;
    let (mut server, space) =
        scene(ServerOptions::default(), &pages, &[format!("127.0.0.1:{}", rough.port)]).await;
    let guid = captured(&space, &pages).await;
    space.run("slow", "navigate", json!({ "url": rough.url("/slow") })).await.expect(200);
    eventually("the second has begun", || async {
        (downloads(&space, "?state=started").await.len() == 1).then_some(())
    })
    .await;
    let stray = server.data_dir().join("quarantine").join(&space.id).join(".half");
    fs::write(&stray, "half").expect("we are root");
    server.kill9();
    server.again();
    let all = settled(&space, 2).await;
    assert_eq!((&all[0]["state"], &all[0]["refused_because"]), (&json!("refused"), &json!("browser_ended")));
    assert!(!stray.exists(), "what nobody accounts for is deleted");
    let mounts = fs::read_to_string("/proc/self/mounts").expect("it reads");
    let runtime = server.data_dir().join("runtime").display().to_string();
    let landings = mounts.lines().filter(|line| line.contains(&runtime)).count();
    assert!(landings <= 1, "the old browser's landing folder is gone: {mounts}");
    release(&server.operator(), &space, &guid, "Alice").await.expect(200);
    assert_eq!(content(&space, &guid, None).await.expect(200).bytes, REPORT.as_bytes());
}

#[tokio::test]
async fn a_rejected_download_is_really_gone_and_is_never_released() {
    let pages = Pages::serve([("/report", attachment(REPORT, "report.pdf"))]).await;
    let (server, space) = scene(ServerOptions::default(), &pages, &[]).await;
    let guid = captured(&space, &pages).await;
    let operator = server.operator();
    let path = space.path(&format!("/downloads/{guid}/reject"));
    let body = json!({ "declared_operator": "Alice", "reason": "not what was asked for" });
    let agent = server.agent("default", "agent-1").await;
    agent.post(&path, &body).await.expect_error(403, "forbidden");
    for _ in 0..2 {
        assert_eq!(operator.post(&path, &body).await.expect(200).field("state"), "rejected");
    }
    assert!(files(&server.data_dir().join("quarantine")).is_empty());
    release(&operator, &space, &guid, "Alice").await.expect_error(404, "download_gone");
}
