//! A browser that nobody asks for anything asks nobody for anything: what it reaches is what its pages reach.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use browser::{Browser, LaunchSpec, Network};
use common::{args, call, spec};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// How long it is listened to: without the flags that silence it, a browser calls seven times in its first 17 s.
const LISTENED: Duration = Duration::from_secs(30);

/// A proxy that refuses every request; the first line of each comes out of the receiver.
async fn refusing_proxy() -> (u16, mpsc::UnboundedReceiver<String>) {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = proxy.local_addr().unwrap().port();
    let (asked, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        // All at once: a connection that is opened ahead and says nothing holds no other one up.
        while let Ok((stream, _)) = proxy.accept().await {
            tokio::spawn(refuse(stream, asked.clone()));
        }
    });
    (port, requests)
}

async fn refuse(mut stream: TcpStream, asked: mpsc::UnboundedSender<String>) {
    let mut request = vec![0; 4096];
    let Ok(count @ 1..) = stream.read(&mut request).await else { return };
    let line = String::from_utf8_lossy(&request[..count]).lines().next().unwrap_or_default().to_owned();
    // Who asked, or who listens, may be gone already.
    let _ = asked.send(line);
    let _ =
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c08_a_fresh_browser_asks_for_nothing_by_itself() {
    browser::adopt_orphans().unwrap();
    let folder = tempfile::Builder::new().prefix("bs").tempdir().unwrap();
    let (port, mut requests) = refusing_proxy().await;
    let browser =
        Browser::launch(LaunchSpec { network: Network::Proxy(port), ..spec(&folder) }).await.unwrap();
    let by_itself = timeout(LISTENED, requests.recv()).await.ok();
    // It has had nothing to say, and not no way to say it; and what it is kept from asking, its pages may.
    let to_sign_in = args(json!({ "url": "http://accounts.google.com/" }));
    let whole = call();
    let of_page = tokio::select! {
        biased;
        of_page = requests.recv() => of_page,
        // What becomes of the page is not waited for: that it asked is all that counts.
        () = async { drop(browser.navigate(&to_sign_in, &whole).await); std::future::pending().await } => None,
        () = sleep(LISTENED) => None,
    };
    browser.shutdown(Duration::from_secs(3)).await;
    assert_eq!(by_itself, None);
    let of_page = of_page.unwrap_or_default();
    assert!(of_page.contains("accounts.google.com"), "{of_page}");
}
