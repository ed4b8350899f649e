//! No page and no death of a process can hang a call, and nothing is left of a browser.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use browser::args::*;
use browser::{Call, Error};
use common::{args, call, ref_of, world};
use serde_json::json;

const LOOP: &str = "<title>loop</title><button onclick=\"while (true);\">Loop</button><button onclick=\"setInterval(() => { while (true); }, 1)\">Again</button><button onclick=\"document.title='alive'\">Live</button>";

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_loop_is_stopped_by_cancel_and_the_page_lives_on() {
    let world = world(&[("/", LOOP)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let bounds = call();
    let cancel = bounds.cancel.clone();
    let click = args::<ClickArgs>(json!({ "ref": ref_of(&text, "Loop"), "timeout_ms": 30_000 }));
    let browser = world.browser.clone();
    let clicking = tokio::spawn(async move { browser.click(&click, &bounds).await });
    tokio::time::sleep(Duration::from_millis(800)).await;
    let began = Instant::now();
    cancel.cancel();
    let cancelled = clicking.await.unwrap().unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!((cancelled.code(), cancelled.may_have_run()), ("cancelled", true));
    assert_eq!(world.click(&ref_of(&text, "Live")).await.unwrap().title, "alive");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_loops_again_and_again_costs_its_tab_and_no_other() {
    let world = world(&[("/", LOOP)]).await;
    world.open("/").await;
    let other: TabNewArgs = args(json!({ "url": world.site.url("localhost", "/"), "background": true }));
    world.browser.tab_new(&other, &call()).await.unwrap();
    let text = world.snapshot().await;
    // The click itself arrives; the loop begins after it.
    let _ = world.click(&ref_of(&text, "Again")).await;
    let began = Instant::now();
    let late = world.browser.snapshot(&args(json!({ "timeout_ms": 800 })), &call()).await.unwrap_err();
    assert!(matches!(late.code(), "task_timeout" | "tab_closed"), "{late:?}");
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    let other = world.browser.snapshot(&args(json!({ "tab": "t2" })), &call()).await.unwrap();
    assert_eq!(other.title, "loop");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_navigation_that_never_answers_ends_in_time_and_the_tab_stays_usable() {
    let world = world(&[("/slow", "SLOW"), ("/", "<title>ok</title>")]).await;
    let slow: NavigateArgs = args(json!({ "url": world.site.url("127.0.0.1", "/slow"), "timeout_ms": 700 }));
    let began = Instant::now();
    let late = world.browser.navigate(&slow, &call()).await.unwrap_err();
    assert_eq!((late.code(), late.may_have_run()), ("task_timeout", true));
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(world.open("/").await.page.title, "ok");
    let past = Call::within(Duration::ZERO);
    assert_eq!(
        world.browser.snapshot(&SnapshotArgs::default(), &past).await.unwrap_err().code(),
        "task_timeout"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_page_is_told_and_a_navigation_revives_its_tab() {
    let world = world(&[("/", LOOP)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let browser = world.browser.clone();
    let click = args::<ClickArgs>(json!({ "ref": ref_of(&text, "Loop"), "timeout_ms": 30_000 }));
    let clicking = tokio::spawn(async move { browser.click(&click, &call()).await });
    tokio::time::sleep(Duration::from_millis(600)).await;
    kill_renderers(world.browser.identity().pid);
    let began = Instant::now();
    let crashed = clicking.await.unwrap().unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!((crashed.code(), crashed.may_have_run()), ("tab_crashed", true));
    assert_eq!(
        world.browser.snapshot(&SnapshotArgs::default(), &call()).await.unwrap_err().code(),
        "tab_crashed"
    );
    assert_eq!(world.open("/").await.page.title, "loop");
    assert!(world.snapshot().await.contains("Live"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_too_large_to_be_read_in_time_is_not_taken_for_a_stuck_one() {
    let page = "<title>large</title><script>document.write('<button>b</button>'.repeat(20000))</script>";
    let world = world(&[("/", page)]).await;
    world.open("/").await;
    let late = world.browser.snapshot(&args(json!({ "timeout_ms": 300 })), &call()).await.unwrap_err();
    assert_eq!((late.code(), late.may_have_run()), ("task_timeout", false));
    let patient = world.browser.snapshot(&args(json!({ "timeout_ms": 60_000 })), &call()).await.unwrap();
    assert_eq!((patient.title.as_str(), patient.node_count), ("large", 20_000));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_in_which_every_page_crashes_is_ended() {
    let world = world(&[("/", LOOP)]).await;
    let mut exit = world.browser.exited();
    let navigate: NavigateArgs = args(json!({ "url": world.site.url("127.0.0.1", "/") }));
    let main = world.browser.identity().pid;
    for _ in 0..6 {
        world.open("/").await;
        kill_renderers(main);
        let crashed = world.browser.snapshot(&SnapshotArgs::default(), &call()).await.unwrap_err();
        assert_eq!(crashed.code(), "tab_crashed", "a page that loads in between begins a new count");
    }
    // No renderer can be started any more.
    kill_zygotes(main);
    kill_renderers(main);
    let mut codes = Vec::new();
    while codes.len() < 12 && codes.last() != Some(&"runtime_crashed") {
        codes.push(world.browser.navigate(&navigate, &call()).await.unwrap_err().code());
    }
    assert_eq!(codes.last(), Some(&"runtime_crashed"), "{codes:?}");
    assert!(exit.wait_for(Option::is_some).await.is_ok());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_browser_is_noticed_within_a_second_and_nothing_of_it_is_left() {
    let world = world(&[("/", LOOP)]).await;
    world.open("/").await;
    let mut exited = world.browser.exited();
    let browser = world.browser.clone();
    let waiting = tokio::spawn(async move {
        browser.wait(&args(json!({ "text": "never", "timeout_ms": 60_000 })), &call()).await
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let began = Instant::now();
    signal(world.browser.identity().pid);
    let failed = waiting.await.unwrap().unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!((failed.code(), failed.retryable(), failed.may_have_run()), ("runtime_crashed", true, false));
    tokio::time::timeout(Duration::from_secs(1), exited.wait_for(Option::is_some)).await.unwrap().unwrap();
    assert_eq!(world.browser.tab_list().await.unwrap_err().code(), "runtime_crashed");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_after_shutdown_says_so_and_a_dropped_browser_ends_by_itself() {
    let world = world(&[]).await;
    world.browser.shutdown(Duration::from_secs(2)).await;
    let stopped = world.browser.snapshot(&SnapshotArgs::default(), &call()).await.unwrap_err();
    assert!(matches!(stopped, Error::RuntimeStopped), "{stopped:?}");
    world.end().await;
    let world = common::world(&[]).await;
    let (folder, mut exited) = (world.folder, world.browser.exited());
    drop(world.browser);
    tokio::time::timeout(Duration::from_secs(5), exited.wait_for(Option::is_some)).await.unwrap().unwrap();
    for _ in 0..200 {
        if !common::profile(&folder).exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the profile is still there");
}

fn signal(pid: i32) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
}

/// Kills the renderers of one browser, found by their parents.
fn kill_renderers(main: i32) {
    kill_below(main, "--type=renderer");
}

fn kill_zygotes(main: i32) {
    kill_below(main, "--type=zygote");
}

fn kill_below(main: i32, kind: &str) {
    let parent = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let is_below = |mut pid: i32| {
        while let Some(above) = parent(pid).filter(|above| *above > 1) {
            if above == main {
                return true;
            }
            pid = above;
        }
        false
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    for pid in pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if is_below(pid) && String::from_utf8_lossy(&command).contains(kind) {
            signal(pid);
        }
    }
}
