//! What a watcher sees: the newest picture of the active tab, and nothing is drawn for nobody.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use browser::ScreencastFrame;
use browser::args::TabNewArgs;
use common::{args, call, world};
use serde_json::json;
use tokio::sync::watch;

type Frames = watch::Receiver<Option<ScreencastFrame>>;

/// The next frame for which `is_wanted` holds.
async fn frame(frames: &mut Frames, is_wanted: impl Fn(&ScreencastFrame) -> bool) -> ScreencastFrame {
    let wanted = frames.wait_for(|frame| frame.as_ref().is_some_and(&is_wanted));
    let found = tokio::time::timeout(Duration::from_secs(20), wanted).await.expect("a frame in time");
    found.unwrap().clone().unwrap()
}

const RED: &str = "<title>red</title><body style='background:red'><button onclick=\"document.body.style.background='blue'\">Blue</button>";

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_of_a_page_at_rest_sees_it_and_then_what_changes() {
    let world = world(&[("/", RED)]).await;
    world.open("/").await;
    let mut frames = world.browser.screencast();
    let red = frame(&mut frames, |_| true).await;
    assert_eq!(&red.jpeg[..2], &[0xff, 0xd8], "a JPEG");
    world.click_named("\"Blue\"").await;
    let blue = frame(&mut frames, |frame| frame.jpeg != red.jpeg).await;
    assert_eq!(blue.tab, red.tab);
    // Another one need not wait for the page to change.
    let mut second = world.browser.screencast();
    frame(&mut second, |_| true).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_never_rests_is_watched_without_an_end() {
    let busy = "<body><p id=n></p><script>let n = 0; (function f() { document.getElementById('n').textContent = n++; document.body.style.background = `rgb(${n % 256},0,0)`; requestAnimationFrame(f) })()</script>";
    let world = world(&[("/", busy)]).await;
    world.open("/").await;
    let mut frames = world.browser.screencast();
    let mut last = frame(&mut frames, |_| true).await;
    // More than the browser draws without an answer.
    for _ in 0..12 {
        let known = last.jpeg.clone();
        last = frame(&mut frames, move |frame| frame.jpeg != known).await;
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_picture_follows_the_active_tab_and_begins_anew_for_later_watchers() {
    let world = world(&[("/", RED), ("/green", "<body style='background:green'>")]).await;
    world.open("/").await;
    let mut frames = world.browser.screencast();
    let first = frame(&mut frames, |_| true).await;
    let url = world.site.url("127.0.0.1", "/green");
    let opened: TabNewArgs = args(json!({ "url": url }));
    world.browser.tab_new(&opened, &call()).await.unwrap();
    let second = frame(&mut frames, |frame| frame.tab != first.tab).await;
    assert_ne!(second.jpeg, first.jpeg);
    drop(frames);
    let mut later = world.browser.screencast();
    assert_eq!(frame(&mut later, |_| true).await.tab, second.tab);
    world.end().await;
}
