//! Workers of every kind run, though they are never looked into.

#![allow(clippy::unwrap_used)]

mod common;

use common::{args, call, world};
use serde_json::json;

const SCRIPT: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\nConnection: close\r\n\r\n\
    onconnect = (e) => e.ports[0].postMessage('shared'); onmessage = (e) => e.source && e.source.postMessage('service');\
    if (self.DedicatedWorkerGlobalScope) postMessage('dedicated');";

const PAGE: &str = r"<title>workers</title><script>
const made = (text) => new Worker(URL.createObjectURL(new Blob([text])));
const inner = 'postMessage(`nested`)';
window.say = {
  dedicated: () => new Promise((done) => { new Worker('/worker').onmessage = (e) => done(e.data); }),
  nested: () => new Promise((done) => {
    made('const w = new Worker(URL.createObjectURL(new Blob([' + JSON.stringify(inner) + ']))); w.onmessage = (e) => postMessage(e.data)')
      .onmessage = (e) => done(e.data);
  }),
  shared: () => new Promise((done) => { const w = new SharedWorker('/worker'); w.port.onmessage = (e) => done(e.data); }),
  service: () => new Promise((done) => {
    navigator.serviceWorker.onmessage = (e) => done(e.data);
    navigator.serviceWorker.register('/worker').then((r) => (r.installing || r.active).postMessage(1));
  }),
};</script>";

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_every_kind_run_in_pages_and_in_frames_of_another_process() {
    let outer = r#"<title>outer</title><iframe src="http://localhost:{PORT}/in"></iframe>
      <script>onmessage = (e) => document.title = e.data</script>"#;
    let inner = r"<script>new Worker('/worker').onmessage = (e) => parent.postMessage('a frame: ' + e.data, '*')</script>";
    let world = world(&[("/", PAGE), ("/outer", outer), ("/in", inner), ("/worker", SCRIPT)]).await;
    world.open("/").await;
    for kind in ["dedicated", "nested", "shared", "service"] {
        let ask = json!({ "expression": format!("say.{kind}()") });
        assert_eq!(
            world.browser.evaluate(&args(ask), &call()).await.unwrap().value,
            Some(json!(kind)),
            "{kind}"
        );
    }
    world.open("/outer").await;
    let title = "new Promise((done) => { const look = () => document.title === 'outer' ? setTimeout(look, 20) : done(document.title); look() })";
    let told = world.browser.evaluate(&args(json!({ "expression": title })), &call()).await.unwrap().value;
    assert_eq!(told, Some(json!("a frame: dedicated")));
    world.end().await;
}
