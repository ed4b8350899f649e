//! What the tests share: a browser of an unprivileged user in a temporary folder, and a small web server.

#![allow(dead_code, clippy::unwrap_used, unreachable_pub, missing_docs)]

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use browser::args::*;
use browser::results::*;
use browser::{Browser, Call, Error, LaunchSpec};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The user that the browsers of the tests run as, when the tests run as root.
const UID: u32 = 64_321;

pub struct World {
    pub browser: Arc<Browser>,
    pub site: Site,
    pub folder: TempDir,
}

pub fn spec(folder: &TempDir) -> LaunchSpec {
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let is_root = nix::unistd::geteuid().is_root();
    LaunchSpec::new(profile(folder), is_root.then_some((UID, UID)))
}

pub fn profile(folder: &TempDir) -> PathBuf {
    folder.path().join("p")
}

/// A browser and a site with these pages (path → document).
pub async fn world(pages: &[(&str, &str)]) -> World {
    browser::adopt_orphans().unwrap();
    let folder = tempfile::Builder::new().prefix("bs").tempdir().unwrap();
    let site = Site::start(pages).await;
    let browser = Browser::launch(spec(&folder)).await.unwrap();
    World { browser: Arc::new(browser), site, folder }
}

pub fn call() -> Call {
    Call::within(Duration::from_secs(60))
}

pub fn args<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

impl World {
    pub async fn open(&self, path: &str) -> NavigateResult {
        let url = self.site.url("127.0.0.1", path);
        self.browser.navigate(&args(json!({ "url": url })), &call()).await.unwrap()
    }

    pub async fn snapshot(&self) -> String {
        self.browser.snapshot(&SnapshotArgs::default(), &call()).await.unwrap().text
    }

    pub async fn click(&self, reference: &str) -> Result<PageState, Error> {
        self.browser.click(&args(json!({ "ref": reference })), &call()).await
    }

    pub async fn title(&self) -> String {
        self.browser.get_title(&PageArgs::default(), &call()).await.unwrap().title
    }

    /// Clicks what is so named and reads the page's title after it.
    pub async fn click_named(&self, name: &str) -> PageState {
        let reference = ref_of(&self.snapshot().await, name);
        self.click(&reference).await.unwrap()
    }

    pub async fn end(self) {
        self.browser.shutdown(Duration::from_secs(3)).await;
        let profile = profile(&self.folder);
        assert!(!profile.exists(), "the profile is deleted");
        assert_eq!(browser::leftovers(&profile), []);
        assert_eq!(zombies_of(UID), 0);
    }
}

/// The ref on the first line that holds `text`.
#[track_caller]
pub fn ref_of(snapshot: &str, text: &str) -> String {
    let line = snapshot.lines().find(|line| line.contains(text));
    let line = line.unwrap_or_else(|| panic!("no line with {text} in\n{snapshot}"));
    line.split_whitespace().next().filter(|word| word.starts_with('e')).unwrap().to_owned()
}

/// Zombies of a user whose parent is this process.
pub fn zombies_of(uid: u32) -> usize {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let status = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok());
    status
        .filter(|status| {
            let field = |name: &str| {
                status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("").trim().to_owned()
            };
            field("State:").starts_with('Z')
                && field("PPid:") == own
                && field("Uid:").split_whitespace().next() == Some(&uid.to_string())
        })
        .count()
}

/// A small web server on a free port of the loopback.
pub struct Site {
    pub port: u16,
    hits: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    /// A page whose text begins with `HTTP/` is sent as it is; `SLOW` keeps the connection open without an answer.
    /// `{PORT}` stands for the port.
    pub async fn start(pages: &[(&str, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let pages: HashMap<String, String> = pages
            .iter()
            .map(|(path, page)| ((*path).to_owned(), page.replace("{PORT}", &port.to_string())))
            .collect();
        let pages = Arc::new(pages);
        let hits = Arc::new(Mutex::new(Vec::new()));
        let counted = hits.clone();
        let task = tokio::spawn(async move {
            loop {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let (pages, hits) = (pages.clone(), counted.clone());
                tokio::spawn(async move {
                    let mut request = vec![0; 16 * 1024];
                    let count = stream.read(&mut request).await.unwrap_or(0);
                    let text = String::from_utf8_lossy(&request[..count]).into_owned();
                    let path = text.split_whitespace().nth(1).unwrap_or("/").to_owned();
                    hits.lock().unwrap().push(path.clone());
                    let answer = match pages.get(path.split('?').next().unwrap_or("/")).map(String::as_str) {
                        Some("SLOW") => {
                            let _ = stream.read(&mut request).await;
                            return;
                        }
                        Some(raw) if raw.starts_with("HTTP/") => raw.to_owned(),
                        Some(page) => answer("200 OK", page),
                        None => answer("404 Not Found", "<title>none</title>"),
                    };
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { port, hits, task }
    }

    pub fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    /// How often a path was asked for.
    pub fn hits(&self, path: &str) -> usize {
        self.hits.lock().unwrap().iter().filter(|asked| *asked == path).count()
    }
}

fn answer(status: &str, page: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    )
}
