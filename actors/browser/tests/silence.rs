//! A browser that nobody asks for anything asks nobody for anything: what it reaches is what its pages reach.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use browser::{Browser, LaunchSpec, Network};
use common::{args, call, spec};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// How long it is listened to: without the flags that silence it, a browser calls six times in its first 17 s.
const LISTENED: Duration = Duration::from_secs(30);

/// The first line of the next request that comes to the proxy, which is refused.
async fn asked(proxy: &TcpListener) -> String {
    let (mut stream, _) = proxy.accept().await.unwrap();
    let mut request = vec![0; 4096];
    let count = stream.read(&mut request).await.unwrap();
    // Who asked may be gone already; what was asked is known.
    let _ =
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    String::from_utf8_lossy(&request[..count]).lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn c08_a_fresh_browser_asks_for_nothing_by_itself() {
    browser::adopt_orphans().unwrap();
    let folder = tempfile::Builder::new().prefix("bs").tempdir().unwrap();
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = proxy.local_addr().unwrap().port();
    let browser =
        Browser::launch(LaunchSpec { network: Network::Proxy(port), ..spec(&folder) }).await.unwrap();
    let by_itself = timeout(LISTENED, asked(&proxy)).await.ok();
    // It has had nothing to say, and not no way to say it; and what it is kept from asking, its pages may.
    let to_sign_in = args(json!({ "url": "http://accounts.google.com/" }));
    let whole = call();
    let (opened, of_page) = tokio::join!(browser.navigate(&to_sign_in, &whole), async {
        timeout(LISTENED, asked(&proxy)).await.unwrap_or_default()
    });
    drop(opened);
    browser.shutdown(Duration::from_secs(3)).await;
    assert_eq!(by_itself, None);
    assert!(of_page.contains("accounts.google.com"), "{of_page}");
}
