//! Acceptance 14: a real browser, end to end: create, navigate, snapshot, act, observe the result, close.

use browserspace_tests::{Page, Pages, Server, ServerOptions, SpaceRequest};
use serde_json::json;

const SHOP: &str = "<title>Shop</title><h1>Shop</h1>
    <label>Name <input id=name></label> <button id=buy>Buy</button> <p role=status id=out></p>
    <script>
      buy.onclick = event => { out.textContent = `Sold to ${name_of()}, trusted ${event.isTrusted}` };
      const name_of = () => document.getElementById('name').value;
    </script>";

fn reference_of(snapshot: &str, what: &str) -> String {
    let line = snapshot.lines().find(|line| line.contains(what));
    let line = line.unwrap_or_else(|| panic!("no {what} in\n{snapshot}"));
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let mut refs = line.match_indices('e').filter_map(|(at, _)| {
        let alone = !line[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let number = digits(&line[at + 1..]);
        (alone && !number.is_empty()).then(|| format!("e{number}"))
    });
    refs.next_back().unwrap_or_else(|| panic!("no ref in {line}"))
}

#[tokio::test]
async fn s14_an_agent_uses_a_page_from_create_to_close() {
    let pages = Pages::serve([("/", Page::html(SHOP))]).await;
    let server = Server::start(ServerOptions::default());
    let agent = server.agent("default", "agent-1").await;
    let instance = server.operator().chromium_instance(&["default"], &[pages.host()]).await;
    let space = agent.open(&SpaceRequest::new("default", &instance).agent("agent-1")).await;
    space.complete("r1", "navigate", json!({ "url": pages.url("/") })).await;
    let before = space.complete("r2", "snapshot", json!({})).await;
    let before = before["text"].as_str().expect("a snapshot is text");
    let field = reference_of(before, "textbox");
    space.complete("r3", "fill", json!({ "ref": field, "text": "Ada 🦊" })).await;
    let state = space.complete("r4", "click", json!({ "ref": reference_of(before, "button") })).await;
    assert_eq!(state["effect"], "done");
    let after = space.complete("r5", "snapshot", json!({})).await;
    let after = after["text"].as_str().expect("a snapshot is text");
    assert!(after.contains("Sold to Ada 🦊, trusted true"), "real input did it:\n{after}");
    let read = space.complete("r6", "get_title", json!({})).await;
    assert_eq!(read["title"], "Shop");
    let picture = space.complete("r7", "screenshot", json!({})).await;
    assert!(picture.to_string().contains("art_"), "{picture}");
    assert_eq!(space.close().await.expect(200).field("status"), "closed");
    let mut expected = vec!["opened"];
    expected.extend(["queued", "started", "completed"].repeat(7));
    expected.extend(["close_requested", "closed"]);
    assert_eq!(space.kinds().await, expected, "every step is an event");
    server.no_browser_left().await;
}

#[tokio::test]
async fn s14_two_agents_see_only_their_own_page() {
    let page = |name: &str| Page::html(format!("<title>{name}</title><h1>{name}</h1>"));
    let pages = Pages::serve([("/one", page("one")), ("/two", page("two"))]).await;
    let server = Server::start(ServerOptions::default());
    let mut spaces = Vec::new();
    for name in ["one", "two"] {
        let agent = server.agent("default", name).await;
        let instance = server.operator().chromium_instance(&["default"], &[pages.host()]).await;
        spaces.push((name, agent.open(&SpaceRequest::new("default", &instance).agent(name)).await));
    }
    let visit = async |(name, space): &(&str, browserspace_tests::Space)| {
        for turn in 0..5 {
            let url = pages.url(&format!("/{name}"));
            space.complete(&format!("n{turn}"), "navigate", json!({ "url": url })).await;
            let title = space.complete(&format!("t{turn}"), "get_title", json!({})).await;
            assert_eq!(title["title"], *name);
            let tabs = space.complete(&format!("l{turn}"), "tab_list", json!({})).await;
            assert_eq!(tabs["tabs"].as_array().map(Vec::len), Some(1), "{tabs}");
        }
    };
    futures::future::join_all(spaces.iter().map(visit)).await;
}

#[tokio::test]
async fn s14_a_browser_and_its_profile_end_with_the_server() {
    let pages = Pages::serve([("/", Page::html("<title>T</title>"))]).await;
    let mut server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    space.complete("r1", "navigate", json!({ "url": pages.url("/") })).await;
    assert!(!server.browsers().is_empty());
    server.sigterm().ok();
    server.no_browser_left().await;
    server.again();
    assert_eq!(space.status().await, "closed", "a drain closes");
    let closed = space.events().await.last().cloned().expect("an event");
    assert_eq!(closed["payload"]["reason"], "drained");
}
