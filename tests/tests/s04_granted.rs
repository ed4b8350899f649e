//! Acceptance 4: a granted capability runs in a real browser and returns a bounded, redacted result.

use browserspace_tests::{Page, Pages, Script, Server, ServerOptions, SpaceRequest};
use serde_json::json;

const RESULT_BYTES_MAX: usize = 64 * 1024;

#[tokio::test]
async fn s04_a_real_browser_runs_a_granted_capability() {
    let pages = Pages::serve([("/shop", Page::html("<title>Shop</title><h1>Welcome</h1>"))]).await;
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let result = space.complete("r1", "navigate", json!({ "url": pages.url("/shop") })).await;
    assert_eq!(result["title"], "Shop");
    assert_eq!(result["url"], pages.url("/shop").as_str());
    assert_eq!(result["http_status"], 200);
    assert_eq!(pages.hits("/shop"), 1, "the page was really asked for, once");
}

#[tokio::test]
async fn s04_a_real_result_is_redacted_and_bounded() {
    let long = format!("<title>Long</title><p>{}</p>", "word ".repeat(100_000));
    let titled =
        "<title>token=PLANTED-title-0123456789</title><a href='/?code=PLANTED-link-0123456789'>in</a>";
    let pages = Pages::serve([("/long", Page::html(long)), ("/secret", Page::html(titled))]).await;
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let url = pages.url("/secret?access_token=PLANTED-query-0123456789&lang=en");
    let result = space.complete("r1", "navigate", json!({ "url": url })).await.to_string();
    assert!(!result.contains("PLANTED"), "{result}");
    assert!(result.contains("lang=en"), "only the secret is masked: {result}");
    assert!(pages.requests()[0].contains("PLANTED-query-0123456789"), "the browser itself was given it");
    let result = space.complete("r2", "snapshot", json!({ "urls": true })).await.to_string();
    assert!(!result.contains("PLANTED"), "{result}");
    space.complete("r3", "navigate", json!({ "url": pages.url("/long") })).await;
    for (request_id, capability) in [("r4", "snapshot"), ("r5", "get_content")] {
        let result = space.complete(request_id, capability, json!({})).await;
        assert!(result.to_string().len() <= RESULT_BYTES_MAX, "{capability} is bounded");
    }
}

#[tokio::test]
async fn s04_a_real_picture_is_an_artifact_with_its_hash() {
    let pages = Pages::serve([("/", Page::html("<title>P</title><h1>Picture</h1>"))]).await;
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    space.complete("r1", "navigate", json!({ "url": pages.url("/") })).await;
    let result = space.complete("r2", "screenshot", json!({ "format": "png" })).await;
    let listed = operator.get(&space.path("/artifacts")).await.expect(200);
    let artifact = &listed.list()[0];
    let id = artifact["artifact_id"].as_str().expect("an artifact has an id");
    assert!(result.to_string().contains(id), "the result holds the artifact's id: {result}");
    let file = space.artifact(id).await.expect(200);
    assert_eq!(file.bytes.len() as u64, artifact["bytes"]);
    assert_eq!(&file.bytes[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(file.header("content-type"), Some("image/png"));
    assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    assert!(file.header("content-disposition").is_some_and(|kind| kind.starts_with("attachment")));
    assert_eq!(artifact["sha256"].as_str().map(str::len), Some(64));
    assert!(artifact["sha256"].as_str().is_some_and(|hash| result.to_string().contains(hash)));
}

#[tokio::test]
async fn s04_a_result_over_64_kib_says_that_it_was_cut() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let script = Script::ok().and("result_bytes", "100000");
    let answer = space.play_out("r1", &script).await.expect(200);
    assert_eq!(answer.data()["result"], json!({ "truncated": true, "reason": "result_too_large" }));
    let script = Script::ok().and("result_bytes", "30000");
    let answer = space.play_out("r2", &script).await.expect(200);
    assert_eq!(answer.data()["result"]["title"].as_str().map(str::len), Some(30_000));
    for event in space.events().await {
        assert!(event["payload"].to_string().len() <= RESULT_BYTES_MAX, "an event's payload is bounded too");
    }
}

#[tokio::test]
async fn s04_args_are_never_given_back_only_their_names() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let args = json!({ "ref": "e1", "text": "PLANTED-typed-text" });
    let answer = space.run("r1", "fill", args).await.expect(200);
    assert_eq!(answer.data()["arg_keys"], json!(["ref", "text"]));
    let contract = [
        "arg_keys",
        "cancel_requested",
        "capability",
        "created_at",
        "error",
        "finished_at",
        "operation_id",
        "request_id",
        "result",
        "space_id",
        "started_at",
        "status",
        "task_id",
    ];
    let mut fields: Vec<_> =
        answer.data().as_object().expect("a task is an object").keys().cloned().collect();
    fields.sort_unstable();
    assert_eq!(fields, contract, "the shape is the contract's, no more and no less");
    let shown = format!("{:?}{:?}", space.events().await, space.tasks().await);
    assert!(!shown.contains("PLANTED"), "{shown}");
}
