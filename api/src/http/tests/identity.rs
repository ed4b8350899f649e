//! What a token is told about itself is what the routes then do.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Ask, Server, WORKSPACE};

const IDENTITY: &str = "/api/v1/identity";

/// One request for each act; it is refused as `forbidden`, or for another reason, or not at all.
fn attempts(space: &str) -> Vec<(&'static str, Ask<'static>)> {
    let leak = |path: String| -> &'static str { Box::leak(path.into_boxed_str()) };
    let at = |rest: &str| leak(format!("{WORKSPACE}{rest}"));
    let in_space = |rest: &str| leak(format!("{space}{rest}"));
    vec![
        ("open_spaces", Ask::post(at("/browser-spaces"), super::create("ins_none", "agent-a"))),
        ("act_on_spaces", Ask::post(in_space("/cancel"), json!({}))),
        ("read_log", Ask::get("/api/v1/log")),
        ("audit", Ask::get(at("/audit-trail"))),
        ("manage_instances", Ask::post("/api/v1/browser-instances", json!({}))),
        ("manage_bindings", Ask::post(at("/bindings"), json!({}))),
        ("list_tokens", Ask::get(at("/tokens"))),
        ("manage_tokens", Ask::post(at("/tokens"), json!({}))),
        ("manage_server", Ask::post("/api/v1/server/drain", json!({ "deadline_seconds": 600 }))),
    ]
}

async fn identity(server: &Server, token: &str) -> Value {
    server.get(token, IDENTITY).await.expect(StatusCode::OK)
}

fn may(identity: &Value) -> Vec<String> {
    let acts = identity["may"].as_array().expect("a list");
    acts.iter().map(|act| act.as_str().expect("a word").to_owned()).collect()
}

#[tokio::test]
async fn a_token_is_told_who_it_is_and_where_it_may_go() {
    let server = Server::start().await;
    let agent = server.token(WORKSPACE, "runtime_agent", "agent-a").await;
    let told = identity(&server, &agent).await;
    assert_eq!(told["role"], "runtime_agent");
    assert_eq!((&told["owner_id"], &told["all_workspaces"]), (&json!("agent-a"), &json!(false)));
    assert_eq!(told["workspaces"], json!(["team"]));
    assert_eq!(told["expires_at"], Value::Null);
    assert!(told["token_id"].as_str().is_some_and(|id| id.starts_with("tok_")));
    server.token("/api/v1/workspaces/another", "auditor", "x").await;
    let operator = identity(&server, &server.operator).await;
    let workspaces: Vec<String> = serde_json::from_value(operator["workspaces"].clone()).expect("names");
    assert!(workspaces.iter().any(|name| name == "another") && workspaces.is_sorted(), "{workspaces:?}");
    assert_eq!(operator["all_workspaces"], true);
    assert_eq!(server.send(Ask::get(IDENTITY)).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn what_a_role_is_told_that_it_may_is_what_is_not_forbidden_to_it() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let auditor = server.token(WORKSPACE, "auditor", "eve").await;
    let operator = server.token(WORKSPACE, "operator", "op").await;
    // The operator of every Workspace comes last: it drains the server.
    for token in [&agent, &auditor, &operator, &server.operator] {
        let told = identity(&server, token).await;
        let may = may(&told);
        for (act, ask) in attempts(&space) {
            let refused = server.send(ask.by(token)).await.status == StatusCode::FORBIDDEN;
            assert_eq!(may.iter().any(|one| one == act), !refused, "{act} by {told}");
        }
    }
    let told = may(&identity(&server, &auditor).await);
    assert_eq!(told, ["read_all_spaces", "read_log", "audit", "list_tokens"], "an auditor changes nothing");
}
