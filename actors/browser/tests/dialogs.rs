//! A dialog is state, never a hang.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use browser::TabState;
use browser::args::*;
use browser::results::Effect;
use common::{World, args, call, ref_of, world};
use serde_json::json;

async fn until_dialog(world: &World) {
    for _ in 0..200 {
        if world.browser.tab_list().await.unwrap().tabs[0].state == TabState::Dialog {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no dialog came");
}

async fn answer(world: &World, action: &str) -> browser::results::PageState {
    world.browser.dialog(&args(json!({ "action": action })), &call()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirm_from_a_timer_is_told_within_a_second_and_its_answer_arrives_once() {
    let page = "<title>t</title><button>B</button><script>setTimeout(() => { document.title = 'said ' + confirm('Sure\\n e9 button?'); }, 300)</script>";
    let world = world(&[("/", page)]).await;
    world.open("/").await;
    until_dialog(&world).await;
    let began = Instant::now();
    let refused = world.browser.snapshot(&SnapshotArgs::default(), &call()).await.unwrap_err();
    assert_eq!((refused.code(), refused.may_have_run()), ("dialog_open", false));
    assert!(refused.details().unwrap().to_string().contains("Sure"));
    for refused in [
        world.browser.get_title(&PageArgs::default(), &call()).await.unwrap_err(),
        world.browser.screenshot(&ScreenshotArgs::default(), &call()).await.unwrap_err(),
    ] {
        assert_eq!(refused.code(), "dialog_open");
    }
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(answer(&world, "dismiss").await.dialog, None);
    assert_eq!(world.title().await, "said false");
    let none = world.browser.dialog(&args(json!({ "action": "accept" })), &call()).await.unwrap_err();
    assert_eq!(none.code(), "invalid_args");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alert_during_load_lets_navigate_return_and_ten_alerts_can_be_answered() {
    let page = "<head><script>for (let i = 0; i < 10; i++) alert('n' + i)</script></head><title>done</title><p>body</p>";
    let world = world(&[("/", page)]).await;
    let began = Instant::now();
    let opened = world.open("/").await;
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(opened.page.dialog.unwrap().message, "n0");
    for number in 1..10 {
        assert_eq!(answer(&world, "accept").await.dialog.unwrap().message, format!("n{number}"));
    }
    assert_eq!(answer(&world, "accept").await.dialog, None);
    assert!(world.snapshot().await.contains("body"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_that_opens_a_dialog_returns_at_once_with_it() {
    let page = "<title>t</title><button onclick=\"document.title = prompt('Name?', 'nobody')\">Ask</button>";
    let world = world(&[("/", page)]).await;
    world.open("/").await;
    let began = Instant::now();
    let clicked = world.click_named("Ask").await;
    assert!(began.elapsed() < Duration::from_secs(3));
    let dialog = clicked.dialog.unwrap();
    assert_eq!((dialog.kind.as_str(), dialog.default_prompt.as_deref()), ("prompt", Some("nobody")));
    assert_eq!(clicked.effect, Effect::Done);
    let said: DialogArgs = args(json!({ "action": "accept", "prompt_text": "Änne" }));
    world.browser.dialog(&said, &call()).await.unwrap();
    assert_eq!(world.title().await, "Änne");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_a_page_that_asks_to_stay_works_and_is_told() {
    let page = "<title>a</title><button onclick=\"onbeforeunload = (e) => e.preventDefault()\">Edit</button>";
    let world = world(&[("/", page), ("/b", "<title>b</title>")]).await;
    world.open("/").await;
    world.click_named("Edit").await;
    let left = world.open("/b").await.page;
    assert_eq!(left.title, "b");
    let dialog = left.dialog.unwrap();
    assert!(dialog.kind == "beforeunload" && dialog.answered);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_of_a_popup_does_not_hang_its_opener() {
    let page = "<title>opener</title><button onclick=\"window.open('/popup')\">Open</button>";
    let popup = "<title>popup</title><script>setTimeout(() => alert('from popup'), 200)</script>";
    let world = world(&[("/", page), ("/popup", popup)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    world.click(&ref_of(&text, "Open")).await.unwrap();
    for _ in 0..200 {
        if world.browser.tab_list().await.unwrap().tabs.iter().any(|tab| tab.state == TabState::Dialog) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let began = Instant::now();
    // Whether the two share a thread is the browser's choice; hanging is no choice.
    match world.browser.snapshot(&SnapshotArgs::default(), &call()).await {
        Ok(snapshot) => assert_eq!(snapshot.title, "opener"),
        Err(error) => assert_eq!(error.code(), "dialog_open"),
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    world.end().await;
}
