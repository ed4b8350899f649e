//! Workers of a page run, though every target is held until it is prepared.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use serde_json::json;

fn script(text: &str) -> String {
    let length = text.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}

#[tokio::test]
async fn the_workers_of_a_page_and_of_its_workers_run() {
    let page = "<title>w</title><p id=out></p><script>
        const say = text => { out.textContent += ' ' + text };
        const url = URL.createObjectURL(new Blob([`postMessage('blob')`]));
        new Worker(url).onmessage = e => say(e.data);
        new Worker('/w.js').onmessage = e => say(e.data);
        const shared = new SharedWorker('/shared.js');
        shared.port.onmessage = e => say(e.data);
        navigator.serviceWorker.onmessage = e => say(e.data);
        navigator.serviceWorker.register('/sw.js');
        </script>";
    let nested =
        script("const n = new Worker('/nested.js'); n.onmessage = e => postMessage('url ' + e.data)");
    let service = script(
        "oninstall = () => skipWaiting(); onactivate = e => e.waitUntil(clients.claim().then(async () => {
         for (const client of await clients.matchAll()) client.postMessage('service') }))",
    );
    let world = world(&[
        ("/", page),
        ("/w.js", &nested),
        ("/nested.js", &script("postMessage('nested')")),
        ("/shared.js", &script("onconnect = e => e.ports[0].postMessage('shared')")),
        ("/sw.js", &service),
    ])
    .await;
    world.open("/").await;
    for text in ["blob", "url nested", "shared", "service"] {
        let wait = args(json!({ "text": text, "timeout_ms": 10_000 }));
        world.browser.wait(&wait, &call()).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    world.end().await;
}
