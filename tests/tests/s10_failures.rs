//! Acceptance 10: a runtime failure leaves a failed task, an ordered failure event and a stable code; a killed browser
//! is restarted and the Space is usable again.

use std::time::{Duration, Instant};

use browserspace_tests::{Page, Pages, Script, Server, ServerOptions, Space, SpaceRequest, eventually};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;

async fn scripted() -> (Server, Space) {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    (server, space)
}

#[tokio::test]
async fn s10_a_failure_is_a_failed_task_with_a_stable_code() {
    let (_server, space) = scripted().await;
    for (number, code) in ["navigation_failed", "element_not_found", "dialog_open"].into_iter().enumerate() {
        let script = Script::outcome("fail").and("code", code);
        let answer = space.play_out(&format!("r{number}"), &script).await.expect(200);
        assert_eq!(answer.field("status"), "failed");
        let error = &answer.data()["error"];
        assert_eq!(error["code"], code);
        assert!(error["message"].is_string() && error["retryable"].is_boolean(), "{error}");
        assert!(answer.data()["result"].is_null(), "a failure has no result");
        assert_eq!(space.show().await.expect(200).data()["last_error_code"], code);
        assert_eq!(space.status().await, "idle", "the runtime is still usable");
    }
    let events = space.events().await;
    let failed: Vec<_> = events.iter().filter(|event| event["kind"] == "failed").collect();
    assert_eq!(failed.len(), 3);
    assert!(failed[0]["payload"].to_string().contains("navigation_failed"));
}

#[tokio::test]
async fn s10_a_crashed_runtime_is_restarted_and_the_space_goes_on() {
    let (server, space) = scripted().await;
    let script = Script::outcome("crash").and("delay_ms", "20");
    let answer = space.play_out("r1", &script).await.expect(200);
    assert_eq!(answer.data()["error"]["code"], "runtime_crashed");
    space.becomes("idle").await;
    space.play_out("r2", &Script::ok()).await.expect(200);
    let kinds = space.kinds().await;
    let expected =
        ["opened", "queued", "started", "failed", "faulted", "recovered", "queued", "started", "completed"];
    assert_eq!(kinds, expected, "in this order");
    let journal = server.journal();
    journal.at_most_once();
    assert_eq!(journal.starts[&space.id], 2);
    assert!(
        journal.calls[1].generation > journal.calls[0].generation,
        "each start is a generation of its own"
    );
    assert_eq!(space.show().await.expect(200).data()["last_error_code"], "runtime_crashed");
}

#[tokio::test]
async fn s10_a_submit_during_the_restart_is_refused_and_a_later_one_is_not() {
    let (_server, space) = scripted().await;
    let mut script = space.follow(None).await;
    space.play("r1", &Script::outcome("crash")).await.expect(202);
    while script.next().await.expect("the stream goes on").data["kind"] != "faulted" {}
    let answer = space.play("r2", &Script::ok()).await;
    match answer.status.as_u16() {
        409 => drop(answer.expect_error(409, "space_in_error").clone()),
        // The restart was quicker than this test.
        status => assert_eq!(status, 202, "{}", answer.text()),
    }
    eventually("a new task is taken", || async {
        let answer = space.play("r3", &Script::ok()).await;
        [200, 202].contains(&answer.status.as_u16()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn s10_a_killed_browser_fails_its_task_at_once_and_comes_back() {
    let pages = Pages::serve([("/", Page::html("<title>T</title>")), ("/never", Page::silent())]).await;
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    space.complete("r1", "navigate", json!({ "url": pages.url("/") })).await;
    let task = space.submit("r2", "navigate", json!({ "url": pages.url("/never") })).await.expect(202);
    eventually("the browser asks for the page", || async { (pages.hits("/never") == 1).then_some(()) }).await;
    let before = server.browsers();
    assert!(!before.is_empty(), "a real browser runs");
    let killed = Instant::now();
    for pid in &before {
        let _ = kill(Pid::from_raw(i32::try_from(*pid).expect("a pid fits")), Signal::SIGKILL);
    }
    let ended = space.ended(&task.field("task_id")).await;
    let took = killed.elapsed();
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&"failed".into(), &"runtime_crashed".into()));
    assert!(took < Duration::from_secs(1), "noticed after {took:?}");
    space.becomes("idle").await;
    space.complete("r3", "navigate", json!({ "url": pages.url("/") })).await;
    assert!(
        server.browsers().iter().all(|pid| !before.contains(pid)),
        "a new browser, nothing of the old one"
    );
    let kinds = space.kinds().await;
    let after: Vec<&str> = kinds.iter().skip_while(|kind| *kind != "failed").map(String::as_str).collect();
    assert_eq!(after, ["failed", "faulted", "recovered", "queued", "started", "completed"]);
}

#[tokio::test]
async fn s10_a_failed_navigation_in_a_real_browser_has_its_code() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    // Nothing listens there: the port was free a moment ago.
    let free = Pages::serve([]).await.host();
    let instance = operator.chromium_instance(&["default"], std::slice::from_ref(&free)).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let answer = space.run("r1", "navigate", json!({ "url": format!("http://{free}/") })).await.expect(200);
    assert_eq!(answer.data()["error"]["code"], "navigation_failed", "{}", answer.text());
    assert_eq!(space.status().await, "idle");
}
