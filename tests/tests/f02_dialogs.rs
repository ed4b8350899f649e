//! Field report F2: a dialog is an event with id, type and text, also one that is answered by itself.

use browserspace_tests::{Page, Pages, Server, ServerOptions, Space, SpaceRequest, eventually};
use serde_json::{Value, json};

const CAPABILITIES: [&str; 4] = ["navigate", "snapshot", "click", "dialog"];

async fn dialogs(space: &Space) -> Vec<Value> {
    let events = space.events().await;
    events.into_iter().filter(|event| event["kind"] == "dialog_opened").collect()
}

#[tokio::test]
async fn f02_a_real_browser_tells_each_dialog_as_an_event_whether_or_not_a_task_waits() {
    let timer = "<title>t</title><script>setTimeout(() => confirm('Sure? token=SECRET-F2'), 300)</script>";
    let leaving =
        "<title>l</title><button onclick=\"onbeforeunload = e => e.preventDefault()\">Edit</button>";
    let pages = Pages::serve([
        ("/timer", Page::html(timer)),
        ("/leaving", Page::html(leaving)),
        ("/next", Page::html("<title>next</title>")),
    ])
    .await;
    let server = Server::start(ServerOptions::default());
    let agent = server.agent("default", "agent-1").await;
    let instance = server.operator().chromium_instance(&["default"], &[pages.host()]).await;
    let space =
        agent.open(&SpaceRequest::new("default", &instance).agent("agent-1").granting(&CAPABILITIES)).await;
    space.complete("r1", "navigate", json!({ "url": pages.url("/timer") })).await;
    // No task is under way any more when it opens.
    eventually("the dialog is told", || async { (!dialogs(&space).await.is_empty()).then_some(()) }).await;
    let told = dialogs(&space).await;
    let dialog = &told[0]["payload"]["dialog"];
    assert_eq!(
        (&dialog["id"], &dialog["tab"], &dialog["kind"]),
        (&json!(1), &json!("t1"), &json!("confirm"))
    );
    let message = dialog["message"].as_str().expect("a text");
    assert!(message.starts_with("Sure?") && !message.contains("SECRET-F2"), "{message}");
    assert_ne!(told[0]["trace_id"], "0".repeat(32), "{told:?}");
    space.complete("r2", "dialog", json!({ "action": "accept" })).await;

    space.complete("r3", "navigate", json!({ "url": pages.url("/leaving") })).await;
    let text = space.complete("r4", "snapshot", json!({})).await;
    let text = text["text"].as_str().expect("a snapshot is text");
    let button = text.split_whitespace().find_map(|word| {
        let word = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let word = word.strip_prefix("ref=").unwrap_or(word);
        word.strip_prefix('e').filter(|rest| rest.parse::<u32>().is_ok()).map(|_| word.to_owned())
    });
    let button = button.unwrap_or_else(|| panic!("no ref in\n{text}"));
    space.complete("r5", "click", json!({ "ref": button })).await;
    space.complete("r6", "navigate", json!({ "url": pages.url("/next") })).await;
    eventually("the automatic answer is told", || async { (dialogs(&space).await.len() == 2).then_some(()) })
        .await;
    let told = dialogs(&space).await;
    let dialog = &told[1]["payload"]["dialog"];
    assert_eq!((&dialog["kind"], &dialog["answered"]), (&json!("beforeunload"), &json!(true)));
    space.close().await.expect(200);
    server.no_browser_left().await;
}
