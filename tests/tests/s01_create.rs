//! Acceptance 1: an authorized create returns a Space scoped to the Workspace and owner asked for.

use browserspace_tests::{Server, ServerOptions, SpaceRequest};
use serde_json::json;

#[tokio::test]
async fn s01_a_created_space_is_the_workspaces_and_owners_asked_for() {
    let server = Server::start(ServerOptions::default());
    let agent = server.agent("team-a", "agent-1").await;
    let instance = server.operator().scripted_instance(&["team-a"]).await;
    let request = SpaceRequest::new("team-a", &instance)
        .agent("agent-1")
        .granting(&["navigate", "get_url"])
        .with("idle_timeout_seconds", json!(120));
    let created = agent.post(&request.path(), &request.body()).await.expect(201);
    let space = created.data();
    let expected = [
        ("workspace_id", json!("team-a")),
        ("browser_instance_id", json!(instance)),
        ("binding_id", json!(null)),
        ("owner_type", json!("runtime_agent")),
        ("owner_id", json!("agent-1")),
        ("status", json!("idle")),
        ("granted_capabilities", json!(["navigate", "get_url"])),
        ("active_task", json!(null)),
        ("last_error_code", json!(null)),
        ("idle_timeout_seconds", json!(120)),
    ];
    for (field, value) in expected {
        assert_eq!(space[field], value, "{field}");
    }
    assert!(created.field("space_id").starts_with("spc_"));
    let fields: Vec<&str> =
        space.as_object().expect("a Space is an object").keys().map(String::as_str).collect();
    let contract = [
        "space_id",
        "workspace_id",
        "browser_instance_id",
        "binding_id",
        "owner_type",
        "owner_id",
        "status",
        "granted_capabilities",
        "active_task",
        "revision",
        "last_error_code",
        "idle_timeout_seconds",
        "created_at",
        "updated_at",
    ];
    assert_eq!(sorted(&fields), sorted(&contract), "the shape is the contract's, no more and no less");
}

#[tokio::test]
async fn s01_a_created_space_is_shown_and_listed_at_once() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let shown = space.show().await.expect(200);
    let listed = operator.get("/workspaces/default/browser-spaces").await.expect(200);
    assert_eq!(listed.list(), std::slice::from_ref(shown.data()));
    let instances = operator.get("/browser-instances").await.expect(200);
    let held = instances.list().iter().find(|one| one["browser_instance_id"] == instance.as_str());
    assert_eq!(held.expect("it is listed")["reserved"], true);
}

#[tokio::test]
async fn s01_every_answer_says_its_request_trace_and_position() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let request = SpaceRequest::new("default", &instance);
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let created =
        operator.post_with(&request.path(), &request.body(), "traceparent", trace).await.expect(201);
    let refused = operator.get("/workspaces/default/browser-spaces/spc_nonsense").await;
    let unknown = operator.anonymous().get("/nowhere").await;
    for answer in [&created, &refused, &unknown] {
        assert!(answer.header("x-request-id").is_some_and(|id| !id.is_empty()), "{}", answer.text());
        assert!(answer.header("traceparent").is_some_and(|trace| trace.len() == 55), "{}", answer.text());
        assert!(answer.position() > 0);
    }
    let ours = "0af7651916cd43dd8448eb211c80319c";
    assert!(
        created.header("traceparent").is_some_and(|trace| trace.contains(ours)),
        "the caller's trace goes on"
    );
    let path = format!("{}/{}/events", request.path(), created.field("space_id"));
    let events = operator.get(&path).await.expect(200);
    assert_eq!(events.list()[0]["trace_id"], ours, "an event names the trace it was asked in");
}

#[tokio::test]
async fn s01_a_retried_create_returns_the_first_space() {
    let mut server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let request = SpaceRequest::new("default", &instance);
    let ask = async |body| operator.post_with(&request.path(), &body, "idempotency-key", "create-1").await;
    let first = ask(request.body()).await.expect(201);
    let again = ask(request.body()).await.expect(200);
    assert_eq!(again.field("space_id"), first.field("space_id"));
    let other = request.clone().granting(&["get_url"]);
    ask(other.body()).await.expect_error(409, "request_id_conflict");
    server.restart();
    let later = ask(request.body()).await.expect(200);
    assert_eq!(later.field("space_id"), first.field("space_id"), "a restart forgets no key");
}

fn sorted<'a>(fields: &[&'a str]) -> Vec<&'a str> {
    let mut fields = fields.to_vec();
    fields.sort_unstable();
    fields
}
