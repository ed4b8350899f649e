//! Acceptance 9: cancel is idempotent and never says `cancelled` before acknowledgement and cleanup.

use browserspace_tests::{Script, Server, ServerOptions, Space, SpaceRequest, eventually};

async fn scene() -> (Server, Space) {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    (server, space)
}

async fn at_work(server: &Server, task: &str) {
    eventually("the runtime is at work", || async { server.journal().of_task(task).first().map(|_| ()) })
        .await;
}

#[tokio::test]
async fn s09_cancelled_is_said_only_after_the_runtime_has_cleaned_up() {
    let (server, space) = scene().await;
    let script = Script::outcome("slow_cancel").and("delay_ms", "60000").and("cancel_ms", "700");
    let task = space.play("r1", &script).await.expect(202).field("task_id");
    at_work(&server, &task).await;
    let asked = space.cancel().await.expect(200);
    assert_eq!(asked.field("status"), "running");
    let mut seen_waiting = false;
    loop {
        let shown = space.task(&task).await.expect(200);
        // The journal is read after the status: if it says `cancelled`, the end was there before.
        let acknowledged = server.journal().of_task(&task)[0].end.is_some();
        if shown.field("status") == "cancelled" {
            assert!(acknowledged, "said cancelled before the runtime did");
            break;
        }
        assert_eq!(shown.field("status"), "running", "until then it keeps its old status");
        assert_eq!(shown.data()["cancel_requested"], true);
        seen_waiting = true;
    }
    assert!(seen_waiting, "there was something to wait for");
    assert_eq!(space.kinds().await, ["opened", "queued", "started", "cancel_requested", "cancelled"]);
    let call = server.journal().of_task(&task)[0].clone();
    assert_eq!(call.end.expect("it ended").outcome, "cancelled");
    assert_eq!(space.status().await, "idle");
}

#[tokio::test]
async fn s09_cancel_is_idempotent() {
    let (server, space) = scene().await;
    let script = Script::outcome("slow_cancel").and("delay_ms", "60000").and("cancel_ms", "200");
    let task = space.play("r1", &script).await.expect(202).field("task_id");
    at_work(&server, &task).await;
    for _ in 0..5 {
        space.cancel().await.expect(200);
    }
    assert_eq!(space.ended(&task).await["status"], "cancelled");
    for _ in 0..2 {
        let again = space.cancel().await.expect(200);
        assert_eq!(again.field("status"), "idle");
    }
    let asked = space.kinds().await.iter().filter(|kind| *kind == "cancel_requested").count();
    assert_eq!(asked, 1, "one wish, one event");
}

#[tokio::test]
async fn s09_a_terminal_task_keeps_its_state() {
    let (_server, space) = scene().await;
    let done = space.play_out("r1", &Script::ok()).await.expect(200);
    let failed = space.play_out("r2", &Script::outcome("fail")).await.expect(200);
    space.cancel().await.expect(200);
    for (task, status) in [(done, "completed"), (failed, "failed")] {
        let shown = space.task(&task.field("task_id")).await.expect(200);
        assert_eq!(shown.field("status"), status);
        assert_eq!(shown.data()["cancel_requested"], false);
    }
}

#[tokio::test]
async fn s09_a_completion_that_wins_the_race_stays_completed() {
    let (server, space) = scene().await;
    // `late` works on to its end whatever it is told.
    let script = Script::outcome("late").and("delay_ms", "300");
    let task = space.play("r1", &script).await.expect(202).field("task_id");
    at_work(&server, &task).await;
    space.cancel().await.expect(200);
    assert_eq!(space.ended(&task).await["status"], "completed");
    assert_eq!(space.kinds().await, ["opened", "queued", "started", "cancel_requested", "completed"]);
}

#[tokio::test]
async fn s09_a_runtime_that_never_acknowledges_is_ended_and_the_task_says_so() {
    let (server, space) = scene().await;
    let task = space.play("r1", &Script::outcome("hang")).await.expect(202).field("task_id");
    at_work(&server, &task).await;
    space.cancel().await.expect(200);
    let ended = space.ended(&task).await;
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&"failed".into(), &"cancel_timeout".into()));
    space.becomes("idle").await;
    space.play_out("r2", &Script::ok()).await.expect(200);
    assert_eq!(server.journal().starts[&space.id], 2, "a runtime that does not listen is replaced");
}

#[tokio::test]
async fn s09_a_timeout_is_a_failure_after_the_runtime_stopped() {
    let (server, space) = scene().await;
    let mut body = serde_json::json!({ "request_id": "r1", "capability": "navigate", "timeout_seconds": 1 });
    body["args"] = Script::delay_ms(60_000).args();
    let answer =
        space.client().post_with(&space.path("/tasks"), &body, "prefer", "wait=30").await.expect(200);
    assert_eq!(answer.field("status"), "failed");
    assert_eq!(answer.data()["error"]["code"], "task_timeout");
    assert!(server.journal().of_task(&answer.field("task_id"))[0].end.is_some());
    space.becomes("idle").await;
}

#[tokio::test]
async fn s09_a_queued_task_is_cancelled_without_ever_being_called() {
    let (server, space) = scene().await;
    space.becomes("idle").await;
    let instance = server.operator().scripted_instance(&["default"]).await;
    server.script_starts("delay_ms=60000");
    let waiting = server.operator().open(&SpaceRequest::new("default", &instance)).await;
    let submitted = waiting.play("r1", &Script::ok()).await.expect(202);
    assert_eq!(submitted.field("status"), "queued");
    waiting.cancel().await.expect(200);
    assert_eq!(waiting.ended(&submitted.field("task_id")).await["status"], "cancelled");
    assert_eq!(waiting.kinds().await, ["opened", "queued", "cancel_requested", "cancelled"]);
    assert!(server.journal().calls.is_empty());
}
