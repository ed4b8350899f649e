//! Acceptance 11: close prevents new tasks and frees the instance for the next create.

use browserspace_tests::{Script, Server, ServerOptions, Space, SpaceRequest, eventually};

async fn scene() -> (Server, Space) {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    (server, space)
}

#[tokio::test]
async fn s11_a_closed_space_takes_no_task_and_its_instance_is_free() {
    let (server, space) = scene().await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    let closed = space.close().await.expect(200);
    assert_eq!(closed.field("status"), "closed");
    space.play("r2", &Script::ok()).await.expect_error(409, "space_closed");
    let next = server.operator().open(&SpaceRequest::new("default", &space.instance)).await;
    assert_ne!(next.id, space.id);
    next.play_out("r1", &Script::ok()).await.expect(200);
    assert_eq!(space.kinds().await.last().map(String::as_str), Some("closed"));
    assert_eq!(server.journal().of_space(&space.id).len(), 1);
    // Its history stays readable, and a repeat still finds its task.
    space.play("r1", &Script::ok()).await.expect(200);
}

#[tokio::test]
async fn s11_close_is_idempotent() {
    let (_server, space) = scene().await;
    space.close().await.expect(200);
    space.becomes("closed").await;
    let before = space.events().await;
    for _ in 0..3 {
        assert_eq!(space.close().await.expect(200).field("status"), "closed");
    }
    assert_eq!(space.events().await, before);
}

#[tokio::test]
async fn s11_closing_a_running_space_cancels_first() {
    let (server, space) = scene().await;
    let script = Script::outcome("slow_cancel").and("delay_ms", "60000").and("cancel_ms", "300");
    let task = space.play("r1", &script).await.expect(202).field("task_id");
    eventually("the runtime is at work", || async { server.journal().of_task(&task).first().map(|_| ()) })
        .await;
    let closing = space.close().await.expect(200);
    assert_ne!(closing.field("status"), "closed", "not before its task has ended");
    space.play("r2", &Script::ok()).await.expect_error(409, "space_closed");
    let again = SpaceRequest::new("default", &space.instance);
    let early = server.operator().post(&again.path(), &again.body()).await;
    if early.status != 201 {
        early.expect_error(409, "browser_instance_in_use");
    }
    space.becomes("closed").await;
    let kinds = space.kinds().await;
    let order: Vec<&str> = kinds.iter().skip(3).map(String::as_str).collect();
    assert_eq!(order, ["close_requested", "cancel_requested", "cancelled", "closed"]);
    let call = server.journal().of_task(&task)[0].clone();
    assert_eq!(call.end.expect("the runtime acknowledged").outcome, "cancelled");
}

#[tokio::test]
async fn s11_an_abandoned_space_is_closed_by_the_same_path() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let request = SpaceRequest::new("default", &instance);
    let short = request.clone().with("idle_timeout_seconds", 10.into());
    let space = operator.open(&short).await;
    // The log does not renew it, as a read of the Space by its owner would.
    let closed = eventually("the abandoned Space is closed", || async {
        let events = operator.log_after(0).await;
        let of_space = |event: &&serde_json::Value| event["kind"] == "closed";
        events.iter().find(of_space).cloned()
    })
    .await;
    assert_eq!(closed["payload"]["reason"], "idle_timeout");
    assert_eq!(space.kinds().await, ["opened", "close_requested", "closed"]);
    operator.open(&request).await;
}
