//! Popups are tracked, the active tab never changes by itself, and only web pages are shown.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use browser::args::*;
use browser::{DownloadState, TabInfo};
use common::{World, args, call, ref_of, world};
use serde_json::json;

async fn tabs(world: &World) -> Vec<TabInfo> {
    world.browser.tab_list().await.unwrap().tabs
}

async fn until(world: &World, what: impl Fn(&[TabInfo]) -> bool) -> Vec<TabInfo> {
    for _ in 0..150 {
        let tabs = tabs(world).await;
        if what(&tabs) {
            return tabs;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never came: {:?}", tabs(world).await);
}

const OPENER: &str = r#"<title>opener</title>
<button onclick="window.open('/popup')">Now</button><a href="/popup" target=_blank>Blank</a>
<a href="/popup" target=_blank rel=noopener>Noopener</a>
<button onclick="setTimeout(() => window.open('/popup'), 400)">Later</button>
<button onclick="const w = window.open('/popup'); setTimeout(() => w.close(), 200)">Short</button>
<button onclick="document.title='still here'">Check</button>"#;

#[tokio::test(flavor = "multi_thread")]
async fn popups_of_every_kind_are_listed_with_their_opener_and_the_opener_lives() {
    let world = world(&[("/", OPENER), ("/popup", "<title>popup</title>")]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let popup = world.site.url("127.0.0.1", "/popup");
    for (count, name) in (2..).zip(["\"Now\"", "\"Blank\"", "\"Noopener\"", "\"Later\""]) {
        world.click(&ref_of(&text, name)).await.unwrap();
        let tabs = until(&world, |tabs| tabs.len() == count && tabs[count - 1].title == "popup").await;
        let opened = &tabs[count - 1];
        assert_eq!((opened.url.as_str(), opened.active), (popup.as_str(), false), "{name}");
        if name != "\"Noopener\"" {
            assert_eq!(opened.opener, Some(tabs[0].tab), "{name}");
        }
    }
    let now = world.click(&ref_of(&text, "\"Now\"")).await.unwrap();
    assert_eq!(now.new_tabs.len(), 1);
    world.click(&ref_of(&text, "\"Short\"")).await.unwrap();
    until(&world, |tabs| tabs.len() == 6).await;
    assert_eq!(world.click(&ref_of(&text, "\"Check\"")).await.unwrap().title, "still here");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_active_tab_is_told_and_no_other_takes_its_place() {
    let world =
        world(&[("/", "<title>one</title><button onclick=\"document.title='hit'\">B</button>")]).await;
    world.open("/").await;
    let other: TabNewArgs = args(json!({ "url": world.site.url("localhost", "/") }));
    let opened = world.browser.tab_new(&other, &call()).await.unwrap().tabs;
    assert!(opened[1].active);
    world.browser.tab_close(&args(json!({ "tab": "t2" })), &call()).await.unwrap();
    let gone = world.click("e1").await.unwrap_err();
    assert_eq!((gone.code(), gone.may_have_run()), ("tab_closed", false));
    assert_eq!(gone.details().unwrap()["tabs"][0]["tab"], "t1");
    world.browser.tab_select(&args(json!({ "tab": "t1" }))).await.unwrap();
    assert_eq!(world.title().await, "one");
    let third = world.browser.tab_new(&args(json!({ "background": true })), &call()).await.unwrap().tabs;
    assert_eq!(third[1].tab.to_string(), "t3", "an id is never used again");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_popup_beyond_the_limit_is_closed_before_its_first_request_and_counted() {
    let world = world(&[("/", OPENER), ("/popup", "<title>popup</title>")]).await;
    world.open("/").await;
    for _ in 1..20 {
        world.browser.tab_new(&args(json!({ "background": true })), &call()).await.unwrap();
    }
    let clicked = world.click_named("\"Now\"").await;
    assert_eq!((clicked.popups_refused, clicked.new_tabs.len(), tabs(&world).await.len()), (1, 0, 20));
    assert_eq!(world.site.hits("/popup"), 0);
    assert_eq!(world.click_named("\"Check\"").await.title, "still here");
    let more = world.browser.tab_new(&args(json!({})), &call()).await.unwrap_err();
    assert_eq!(more.code(), "invalid_args");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_schemes_are_refused_for_agents_and_not_readable_when_a_page_goes_there() {
    let page = r#"<title>p</title><a href="file:///etc/passwd">File</a><a href="chrome://version">Chrome</a>
      <a href="view-source:http://127.0.0.1:{PORT}/">Source</a><a href="data:text/html,<title>d</title>leaked">Data</a>
      <button onclick="location = window.URL.createObjectURL(new Blob(['<title>b</title>leaked'], { type: 'text/html' }))">Blob</button>
      <button onclick="window.open(window.URL.createObjectURL(new Blob(['<title>b</title>leaked'], { type: 'text/html' })))">Popup</button>"#;
    let world = world(&[("/", page)]).await;
    for url in [
        "file:///etc/passwd",
        "chrome://version",
        "data:text/html,x",
        "javascript:1",
        "view-source:http://a/",
    ] {
        let refused = world.browser.navigate(&args(json!({ "url": url })), &call()).await.unwrap_err();
        assert_eq!((refused.code(), refused.may_have_run()), ("blocked_by_policy", false), "{url}");
    }
    for name in ["\"File\"", "\"Chrome\"", "\"Source\"", "\"Data\"", "\"Blob\"", "\"Popup\""] {
        world.open("/").await;
        let _ = world.click(&ref_of(&world.snapshot().await, name)).await;
        for tab in tabs(&world).await {
            let read: SnapshotArgs = args(json!({ "tab": tab.tab }));
            match world.browser.snapshot(&read, &call()).await {
                Ok(snapshot) => {
                    assert!(!snapshot.text.contains("leaked") && !snapshot.text.contains("root:"), "{name}");
                }
                Err(error) => assert_eq!(error.code(), "blocked_by_policy", "{name}"),
            }
        }
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attachment_is_no_failure_and_is_told_as_refused() {
    let attached = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=\"../../a.bin\"\r\nContent-Length: 4\r\nConnection: close\r\n\r\nabcd";
    let world = world(&[("/", "<title>here</title><a href=/file>File</a>"), ("/file", attached)]).await;
    world.open("/").await;
    let opened = world.open("/file").await.page;
    assert_eq!((opened.title.as_str(), opened.navigated), ("here", false));
    assert_eq!(opened.downloads.len(), 1);
    let note = &opened.downloads[0];
    assert_eq!(note.state, DownloadState::Refused);
    assert!(!note.suggested_name.contains('/'), "{}", note.suggested_name);
    let refused =
        world.browser.navigate(&args(json!({ "url": "http://127.0.0.1:1/" })), &call()).await.unwrap_err();
    assert_eq!(refused.code(), "navigation_failed");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_and_reload_work() {
    let world = world(&[("/a", "<title>a</title>"), ("/b", "<title>b</title>")]).await;
    world.open("/a").await;
    world.open("/b").await;
    let back = world.browser.go_back(&args(json!({})), &call()).await.unwrap();
    assert_eq!((back.page.title.as_str(), back.page.navigated, back.loaded), ("a", true, true));
    assert_eq!(back.http_status, Some(200));
    let forward = world.browser.go_forward(&args(json!({})), &call()).await.unwrap();
    assert_eq!((forward.page.title.as_str(), forward.loaded), ("b", true));
    let hits = world.site.hits("/b");
    world.browser.reload(&args(json!({ "ignore_cache": true })), &call()).await.unwrap();
    assert!(world.site.hits("/b") > hits);
    assert_eq!(
        world.browser.go_forward(&args(json!({})), &call()).await.unwrap_err().code(),
        "navigation_failed"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_http_status_is_that_of_the_document_that_is_shown() {
    let gone =
        "HTTP/1.1 410 Gone\r\nContent-Type: text/html\r\nContent-Length: 19\r\n\r\n<title>gone</title>";
    let away = "HTTP/1.1 302 Found\r\nLocation: http://localhost:{PORT}/gone\r\nContent-Length: 0\r\n\r\n";
    let framed = "<title>framed</title><iframe src=/gone></iframe><img src=/gone>";
    let world =
        world(&[("/", "<title>ok</title>"), ("/gone", gone), ("/away", away), ("/framed", framed)]).await;
    for (path, status) in [("/", 200), ("/gone", 410), ("/framed", 200), ("/away", 410), ("/#part", 200)] {
        assert_eq!(world.open(path).await.http_status, Some(status), "{path}");
    }
    assert_eq!(world.open("/gone").await.http_status, Some(410));
    let again = world.browser.reload(&args(json!({})), &call()).await.unwrap();
    assert_eq!(again.http_status, Some(410));
    let blank = world.browser.navigate(&args(json!({ "url": "about:blank" })), &call()).await.unwrap();
    assert_eq!((blank.http_status, blank.loaded), (None, true));
    world.end().await;
}
