//! The first promises: a browser starts walled off, shows a page, is clicked, and leaves nothing.

#![allow(clippy::unwrap_used)]

mod common;

use browser::args::PageArgs;
use browser::results::Effect;
use browser::{Browser, LaunchError};
use common::{call, spec, world};

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_opened_read_and_clicked_in_a_sandboxed_browser_that_leaves_nothing() {
    let world = world(&[(
        "/",
        "<title>start</title><h1>Hello</h1><p>Some text</p>
         <button onclick=\"document.title='clicked ' + event.isTrusted\">Press me</button><a href=/next>Next</a>",
    ), ("/next", "<title>next</title>")])
    .await;
    let opened = world.open("/").await;
    assert_eq!((opened.page.title.as_str(), opened.http_status, opened.loaded), ("start", Some(200), true));
    let clicked = world.click_named("\"Press me\"").await;
    assert_eq!((clicked.title.as_str(), clicked.effect), ("clicked true", Effect::Done));
    let followed = world.click_named("\"Next\"").await;
    assert!(followed.navigated);
    assert_eq!(followed.title, "next");
    assert_eq!(world.browser.observe_sandbox().await, Some(true));
    let url = world.browser.get_url(&PageArgs::default(), &call()).await.unwrap().url;
    assert_eq!(url, world.site.url("127.0.0.1", "/next"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_never_run_as_root_nor_on_a_profile_that_is_there() {
    let folder = tempfile::Builder::new().prefix("bs").tempdir().unwrap();
    let mut as_root = spec(&folder);
    as_root.uid = Some((0, 0));
    assert!(matches!(Browser::launch(as_root).await, Err(LaunchError::Root)));
    let used = spec(&folder);
    std::fs::create_dir(&used.profile_dir).unwrap();
    assert!(matches!(Browser::launch(used.clone()).await, Err(LaunchError::Profile(_))));
    assert!(used.profile_dir.exists(), "what was there before is left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_run_tells_version_and_sandbox_and_leaves_nothing() {
    browser::adopt_orphans().unwrap();
    let folder = tempfile::Builder::new().prefix("bs").tempdir().unwrap();
    let probe = browser::probe(spec(&folder)).await.unwrap();
    assert!(probe.sandbox_ok && probe.version.contains('/'), "{probe:?}");
    assert!(!common::profile(&folder).exists());
}
