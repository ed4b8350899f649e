//! What pages are told of the place that they are in: the same in every tab, popup, frame and worker.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use browser::args::*;
use browser::{Appearance, Browser, ColourScheme, LaunchSpec};
use common::{Site, World, args, call, ref_of, spec};
use serde_json::{Value, json};

const ASK: &str = r"({ zone: Intl.DateTimeFormat().resolvedOptions().timeZone, offset: new Date(2026, 6, 1).getTimezoneOffset(),
  locale: Intl.NumberFormat().resolvedOptions().locale, number: (1234.5).toLocaleString(), language: navigator.language,
  languages: navigator.languages.join(), agent: navigator.userAgent, dark: self.matchMedia ? matchMedia('(prefers-color-scheme: dark)').matches : null,
  scale: self.devicePixelRatio || null })";

async fn dressed(pages: &[(&str, &str)]) -> World {
    browser::adopt_orphans().unwrap();
    let folder = tempfile::Builder::new().prefix("bs").tempdir().unwrap();
    let site = Site::start(pages).await;
    let appearance = Appearance {
        timezone: Some("Asia/Kathmandu".to_owned()),
        locale: Some("de-DE".to_owned()),
        device_scale: 2.0,
        colour_scheme: Some(ColourScheme::Dark),
        user_agent: Some("Agent/1.0 (test)".to_owned()),
    };
    let browser =
        Browser::launch(LaunchSpec { viewport: (400, 700), appearance, ..spec(&folder) }).await.unwrap();
    World { browser: Arc::new(browser), site, folder }
}

async fn asked(world: &World, what: Value) -> Value {
    world.browser.evaluate(&args(what), &call()).await.unwrap().value.unwrap()
}

#[track_caller]
fn is_there(told: &Value, is_page: bool) {
    assert_eq!((&told["zone"], &told["offset"]), (&json!("Asia/Katmandu"), &json!(-345)), "{told}");
    assert_eq!((&told["locale"], &told["number"]), (&json!("de-DE"), &json!("1.234,5")), "{told}");
    assert_eq!((&told["language"], &told["languages"]), (&json!("de-DE"), &json!("de-DE,de")), "{told}");
    assert_eq!(told["agent"], "Agent/1.0 (test)");
    if is_page {
        assert_eq!((&told["dark"], &told["scale"]), (&json!(true), &json!(2)), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tab_popup_frame_and_worker_is_told_the_same_and_before_its_first_script() {
    let first = format!("<script>var first = {ASK}</script>");
    let page = format!(
        "<script>addEventListener('message', (e) => window.inside = (window.inside || []).concat(e.data));</script>
         {first}<title>main</title><iframe src='http://localhost:{{PORT}}/in'></iframe><iframe src='/in'></iframe>
         <button onclick=\"window.open('/popup')\">Popup</button>
         <script>const worker = new Worker('/worker');
         worker.onmessage = (e) => window.working = e.data; worker.onerror = (e) => window.working = e.message || 'error';</script>"
    );
    let inner = format!("{first}<script>parent.postMessage(first, '*')</script>");
    let worker = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\nConnection: close\r\n\r\npostMessage({ASK})"
    );
    let popup = format!("{first}<title>popup</title>");
    let world = dressed(&[("/", &page), ("/in", &inner), ("/popup", &popup), ("/worker", &worker)]).await;
    world.open("/").await;
    is_there(&asked(&world, json!({ "expression": "first" })).await, true);
    let inside = "new Promise((done) => { const look = () => (window.inside || []).length === 2 ? done(inside) : setTimeout(look, 20); look(); })";
    for told in asked(&world, json!({ "expression": inside })).await.as_array().unwrap() {
        is_there(told, true);
    }
    let working = "new Promise((done) => { const look = () => window.working ? done(working) : setTimeout(look, 20); look(); })";
    is_there(&asked(&world, json!({ "expression": working })).await, false);
    let size = asked(&world, json!({ "expression": "[innerWidth, innerHeight]" })).await;
    assert_eq!(size, json!([400, 700]));
    let text = world.snapshot().await;
    let opened = world.click(&ref_of(&text, "\"Popup\"")).await.unwrap();
    let tab = opened.new_tabs[0].tab;
    world.browser.wait(&args(json!({ "tab": tab, "load_state": "load" })), &call()).await.unwrap();
    is_there(&asked(&world, json!({ "expression": "first", "tab": tab })).await, true);
    // The popup shares its opener's process, and outlives it.
    world.browser.tab_close(&args(json!({ "tab": "t1" })), &call()).await.unwrap();
    is_there(&asked(&world, json!({ "expression": ASK, "tab": tab })).await, true);
    let url = world.site.url("127.0.0.1", "/popup");
    world.browser.navigate(&args(json!({ "url": url, "tab": tab })), &call()).await.unwrap();
    is_there(&asked(&world, json!({ "expression": "first", "tab": tab })).await, true);
    world.browser.tab_new(&args(json!({ "url": url })), &call()).await.unwrap();
    is_there(&asked(&world, json!({ "expression": "first" })).await, true);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_have_device_pixels_and_their_sizes_are_told_in_them() {
    let page = "<body style='margin:0'><button style='position:absolute;left:20px;top:30px;width:50px;height:20px'>B</button>";
    let world = dressed(&[("/", page)]).await;
    world.open("/").await;
    let button = ref_of(&world.snapshot().await, "\"B\"");
    let side = |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    for (what, size) in [
        (json!({}), (800, 1400)),
        (json!({ "max_width": 200 }), (200, 350)),
        (json!({ "ref": button }), (100, 40)),
    ] {
        let shot: ScreenshotArgs = args(what);
        let shot = world.browser.screenshot(&shot, &call()).await.unwrap();
        assert_eq!((shot.width, shot.height), size);
        assert_eq!((side(&shot.bytes, 16), side(&shot.bytes, 20)), size);
    }
    let annotated = world.browser.screenshot_annotate(&args(json!({})), &call()).await.unwrap();
    let area = annotated.legend[0].area;
    assert_eq!((area.x, area.y, area.width, area.height), (40.0, 60.0, 100.0, 40.0));
    assert_eq!(world.click(&button).await.unwrap().effect, browser::results::Effect::Done);
    world.end().await;
}
