//! Acceptance 8: a repeated `request_id` gives one task and one runtime call.

use std::collections::BTreeSet;

use browserspace_tests::{Script, Server, ServerOptions, Space, SpaceRequest};
use futures::future::join_all;
use serde_json::json;

const REPEATS: usize = 50;

async fn scene() -> (Server, Space) {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    (server, space)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s08_fifty_repeats_at_once_are_one_task_and_one_call() {
    let (server, space) = scene().await;
    let submits = (0..REPEATS).map(|_| {
        let space = space.clone();
        tokio::spawn(async move { space.play("same", &Script::delay_ms(50)).await })
    });
    let answers: Vec<_> =
        join_all(submits).await.into_iter().map(|done| done.expect("no task panics")).collect();
    assert!(answers.iter().all(|answer| [200, 202].contains(&answer.status.as_u16())), "{answers:#?}");
    assert_eq!(
        answers.iter().filter(|answer| answer.status == 202).count(),
        1,
        "one was new, the rest are replays"
    );
    let tasks: BTreeSet<String> = answers.iter().map(|answer| answer.field("task_id")).collect();
    assert_eq!(tasks.len(), 1);
    let task = tasks.first().expect("one task");
    assert_eq!(space.ended(task).await["status"], "completed");
    assert_eq!(server.journal().of_task(task).len(), 1);
    assert_eq!(space.kinds().await, ["opened", "queued", "started", "completed"]);
}

#[tokio::test]
async fn s08_a_repeat_after_the_end_answers_with_the_first_task() {
    let (mut server, space) = scene().await;
    let first = space.play_out("r1", &Script::ok()).await.expect(200);
    let again = space.play("r1", &Script::ok()).await.expect(200);
    assert_eq!(again.data(), first.data());
    server.restart();
    let later = space.play("r1", &Script::ok()).await;
    // A drained server closed the Space; the repeat is still known, and still does nothing.
    assert_eq!(later.expect(200).data(), first.data());
    assert_eq!(server.journal().calls.len(), 1);
}

#[tokio::test]
async fn s08_the_same_id_with_another_meaning_is_a_conflict() {
    let (server, space) = scene().await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    space.play("r1", &Script::delay_ms(1)).await.expect_error(409, "request_id_conflict");
    space.submit("r1", "get_url", json!({})).await.expect_error(409, "request_id_conflict");
    assert_eq!(server.journal().calls.len(), 1);
    assert_eq!(space.tasks().await.len(), 1);
}

#[tokio::test]
async fn s08_the_order_of_args_is_no_other_meaning() {
    let (server, space) = scene().await;
    let path = space.path("/tasks");
    let client = space.client();
    let send = async |args: &str| {
        let body = format!(r#"{{"request_id":"r1","capability":"navigate","args":{args}}}"#);
        let request = client.request(reqwest::Method::POST, &path).header("content-type", "application/json");
        client.send(request.body(body).header("prefer", "wait=30")).await.expect(200)
    };
    let first = send(r#"{"url":"http://scripted.invalid/","wait":"load"}"#).await;
    let again = send(r#"{ "wait": "load", "url": "http://scripted.invalid/" }"#).await;
    assert_eq!(again.field("task_id"), first.field("task_id"));
    assert_eq!(server.journal().calls.len(), 1);
}
