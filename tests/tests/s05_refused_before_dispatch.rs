//! Acceptance 5: an unknown or ungranted capability, or bad args, is refused before dispatch.

use browserspace_tests::{Server, ServerOptions, Space, SpaceRequest};
use serde_json::{Value, json};

async fn scene(granted: &[&str]) -> (Server, Space) {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance).granting(granted)).await;
    (server, space)
}

fn saw_no_call(server: &Server) {
    assert!(server.journal().calls.is_empty(), "the runtime saw no call: {:?}", server.journal().calls);
}

#[tokio::test]
async fn s05_an_unknown_capability_is_refused_and_recorded_nowhere() {
    let (server, space) = scene(&["navigate"]).await;
    for name in ["no_such_thing", "Navigate", "navigate ", "Page.navigate", "../navigate", "evaluate;"] {
        let answer = space.submit("r1", name, json!({})).await;
        assert_eq!(answer.status, 422, "{}", answer.text());
        assert!(
            ["capability_unknown", "invalid_request"]
                .contains(&answer.json["error"]["code"].as_str().expect("a code"))
        );
    }
    space.submit("r1", "no_such_thing", json!({})).await.expect_error(422, "capability_unknown");
    assert!(space.tasks().await.is_empty());
    saw_no_call(&server);
    space.complete("r1", "navigate", json!({ "url": "http://scripted.invalid/" })).await;
}

#[tokio::test]
async fn s05_an_ungranted_capability_is_refused_and_recorded_for_the_auditor() {
    let (server, space) = scene(&["navigate"]).await;
    let answer = space.submit("r1", "get_url", json!({})).await;
    let error = answer.expect_error(422, "capability_not_granted");
    let named = error["details"].to_string();
    let tasks = space.tasks().await;
    assert_eq!(tasks.len(), 1);
    let task = tasks[0]["task_id"].as_str().expect("a task has an id");
    assert!(named.contains(task), "the error names the task that records it: {named}");
    assert_eq!(tasks[0]["status"], "failed");
    assert_eq!(tasks[0]["error"]["code"], "capability_not_granted");
    assert_eq!(tasks[0]["started_at"], Value::Null);
    assert!(!space.kinds().await.contains(&"started".to_owned()));
    saw_no_call(&server);
    // Its request_id is used up: the same meaning finds the same task, another one is a conflict.
    let again = space.submit("r1", "get_url", json!({})).await;
    assert!(again.text().contains(task), "the repeat finds the first task: {}", again.text());
    space
        .submit("r1", "navigate", json!({ "url": "http://scripted.invalid/" }))
        .await
        .expect_error(409, "request_id_conflict");
    saw_no_call(&server);
}

#[tokio::test]
async fn s05_args_that_do_not_fit_the_schema_are_refused_without_their_values() {
    let (server, space) = scene(&["navigate", "click", "press", "snapshot", "wait"]).await;
    let marker = "PLANTED-args-value";
    let bad = [
        ("navigate", json!({})),
        ("navigate", json!({ "url": 7 })),
        ("navigate", json!({ "url": format!("http://x/{}", "a".repeat(9000)) })),
        ("navigate", json!({ "url": "http://scripted.invalid/", "script": marker })),
        ("navigate", json!({ "url": "http://scripted.invalid/", "wait": marker })),
        ("click", json!({ "ref": marker })),
        ("click", json!({ "ref": "e0" })),
        ("click", json!({ "selector": marker })),
        ("press", json!({ "key": "a", "count": 21 })),
        ("snapshot", json!({ "max_chars": 999 })),
        ("wait", json!({})),
    ];
    for (capability, args) in bad {
        let answer = space.submit("r1", capability, args.clone()).await;
        answer.expect_error(422, "invalid_args");
        assert!(!answer.text().contains(marker), "the value is not told back: {}", answer.text());
    }
    assert!(space.tasks().await.is_empty());
    assert_eq!(space.kinds().await, ["opened"]);
    saw_no_call(&server);
}

#[tokio::test]
async fn s05_arbitrary_script_is_not_in_the_standard_bundle() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let request = SpaceRequest::new("default", &instance).granting(&["navigate", "evaluate"]);
    let answer = operator.post(&request.path(), &request.body()).await;
    assert_eq!(answer.status, 422, "{}", answer.text());
    let trusted = json!({ "kind": "scripted", "bundle": "trusted", "workspaces": ["default"] });
    let answer = operator.post("/browser-instances", &trusted).await;
    assert_eq!(answer.status, 422, "the operator of the server did not allow it: {}", answer.text());
}
