//! Pages of the test's own on a loopback port: a few fixed answers, and a record of what was asked.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// The longest request that is read.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// One answer of the page server.
#[derive(Debug, Clone)]
pub struct Page {
    status: &'static str,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    silent: bool,
    redirects: bool,
}

impl Page {
    /// A document.
    #[must_use]
    pub fn html(body: impl Into<String>) -> Self {
        let body = format!("<!doctype html><meta charset=utf-8>{}", body.into()).into_bytes();
        let headers = vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())];
        Self { status: "200 OK", headers, body, silent: false, redirects: false }
    }

    /// A script, for a worker.
    #[must_use]
    pub fn script(body: impl Into<String>) -> Self {
        let headers = vec![("content-type".to_owned(), "text/javascript".to_owned())];
        Self { status: "200 OK", headers, body: body.into().into_bytes(), ..Self::html("") }
    }

    /// A redirect to the address that is the query.
    #[must_use]
    pub fn redirect_to_query() -> Self {
        Self { redirects: true, ..Self::html("").status("302 Found") }
    }

    /// Another status than 200.
    #[must_use]
    pub fn status(mut self, status: &'static str) -> Self {
        self.status = status;
        self
    }

    /// One more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(own, _)| name != "content-type" || own != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Another body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// An answer that never comes: the connection stays open.
    #[must_use]
    pub fn silent() -> Self {
        Self { silent: true, ..Self::html("") }
    }

    fn bytes(&self) -> Vec<u8> {
        let headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = self.body.len();
        let head = format!(
            "HTTP/1.1 {}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n",
            self.status
        );
        [head.into_bytes(), self.body.clone()].concat()
    }
}

/// A page server; it stops when it is dropped.
pub struct Pages {
    address: std::net::SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Pages {
    /// Serves these pages by their path (without query).
    ///
    /// # Panics
    /// When no loopback port is free.
    pub async fn serve<const N: usize>(pages: [(&str, Page); N]) -> Self {
        Self::serve_all(pages.into_iter().map(|(path, page)| (path.to_owned(), page)).collect()).await
    }

    /// As [`serve`](Self::serve), for pages that are made.
    ///
    /// # Panics
    /// When no loopback port is free.
    pub async fn serve_all(pages: Vec<(String, Page)>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a loopback port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let pages: HashMap<String, Page> = pages.into_iter().collect();
        let (pages, requests) = (Arc::new(pages), Arc::<Mutex<Vec<String>>>::default());
        let seen = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&pages), Arc::clone(&seen)));
            }
        });
        Self { address, requests, task }
    }

    /// `127.0.0.1:PORT`, as a network policy allows it.
    #[must_use]
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of all requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often a path was asked for.
    #[must_use]
    pub fn hits(&self, path: &str) -> usize {
        let asks = |head: &&String| target(head).split('?').next() == Some(path);
        self.requests().iter().filter(asks).count()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn target(head: &str) -> &str {
    head.split_whitespace().nth(1).unwrap_or_default()
}

async fn answer(mut stream: TcpStream, pages: Arc<HashMap<String, Page>>, seen: Arc<Mutex<Vec<String>>>) {
    let Some(head) = read_head(&mut stream).await else { return };
    let (path, query) = target(&head).split_once('?').unwrap_or((target(&head), ""));
    let mut page = pages.get(path).cloned();
    if let Some(page) = page.as_mut().filter(|page| page.redirects) {
        let address = query.replace("%3A", ":").replace("%2F", "/");
        page.headers.push(("location".to_owned(), address));
    }
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(head);
    let page = page.unwrap_or_else(|| Page::html("nothing here").status("404 Not Found"));
    if page.silent {
        std::future::pending::<()>().await;
    }
    // A browser may have gone away meanwhile; that is no failure of the page server.
    if stream.write_all(&page.bytes()).await.is_ok() {
        drop(stream.shutdown().await);
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < REQUEST_BYTES_MAX {
        let length = stream.read(&mut chunk).await.ok().filter(|length| *length > 0)?;
        head.extend_from_slice(&chunk[..length]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}
