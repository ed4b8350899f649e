//! The audit trail over HTTP: who reads it, what it says, and what an export looks like.

use axum::http::StatusCode;

use super::{Ask, Server, WORKSPACE, navigate};

const TRAIL: &str = "/api/v1/workspaces/team/audit-trail";

/// A server on which an agent ran two tasks, one of which was refused; with the agent's and an auditor's token.
async fn lived_in() -> (Server, String, String) {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let run = |body| server.send(Ask::post(space_tasks(&space), body).by(&agent).with("prefer", "wait=20"));
    run(navigate("1", "")).await;
    let refused = serde_json::json!({ "request_id": "2", "capability": "click", "args": {} });
    assert_eq!(run(refused).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let auditor = server.token(WORKSPACE, "auditor", "=HYPERLINK(1)").await;
    (server, agent, auditor)
}

fn space_tasks(space: &str) -> &'static str {
    Box::leak(format!("{space}/tasks").into_boxed_str())
}

#[tokio::test]
async fn an_auditor_reads_who_did_what_and_how_it_ended() {
    let (server, _, auditor) = lived_in().await;
    let tasks = server.get(&auditor, &format!("{TRAIL}?action=task")).await;
    let tasks = tasks.json()["data"].as_array().expect("a list").clone();
    let shown: Vec<_> = tasks
        .iter()
        .map(|task| (task["capability"].as_str(), task["outcome"].as_str(), task["error_code"].as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (Some("click"), Some("failed"), Some("capability_not_granted")),
            (Some("navigate"), Some("completed"), None),
        ]
    );
    assert_eq!((&tasks[0]["owner_id"], &tasks[0]["role"]), (&"agent-a".into(), &"runtime_agent".into()));
    assert_eq!(tasks[1]["site"], "scripted.invalid");
    assert!(tasks[1]["duration_ms"].is_u64() && tasks[1]["browser_ms"].is_u64(), "{}", tasks[1]);
    assert!(tasks[0]["browser_ms"].is_null(), "no browser saw it");
    let issued = server.get(&auditor, &format!("{TRAIL}?action=token_issued&owner_id=root&limit=1")).await;
    assert!(issued.json()["data"][0]["subject_id"].as_str().is_some_and(|id| id.starts_with("tok_")));
    for misspelt in ["outcome=fail", "action=tasks"] {
        server.get(&auditor, &format!("{TRAIL}?{misspelt}")).await.refused(422, "invalid_request");
    }
    let failed = server.get(&auditor, &format!("{TRAIL}?outcome=failed")).await;
    assert_eq!(failed.json()["data"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn c14_an_agent_reads_no_audit_trail_and_nobody_that_of_another_workspace() {
    let (server, agent, auditor) = lived_in().await;
    assert_eq!(server.get(&agent, TRAIL).await.status, StatusCode::FORBIDDEN);
    let other = server.get(&auditor, "/api/v1/workspaces/other/audit-trail").await;
    assert_eq!(other.status, server.get(&auditor, "/api/v1/workspaces/no-such/audit-trail").await.status);
    let of_other = server.get(&server.operator, "/api/v1/workspaces/other/audit-trail").await;
    assert!(!of_other.text.contains("agent-a"), "{}", of_other.text);
}

#[tokio::test]
async fn an_export_holds_every_entry_once_and_no_cell_that_a_spreadsheet_would_run() {
    let (server, agent, auditor) = lived_in().await;
    server.post(&agent, &format!("{WORKSPACE}/browser-spaces"), serde_json::json!({})).await;
    let rows = server.get(&auditor, &format!("{TRAIL}?limit=100")).await.json()["data"].clone();
    let count = rows.as_array().expect("a list").len();
    let ndjson = server.get(&auditor, &format!("{TRAIL}?format=ndjson")).await;
    let lines: Vec<serde_json::Value> =
        ndjson.text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    assert_eq!(rows, serde_json::Value::Array(lines));
    let csv = server.get(&auditor, &format!("{TRAIL}?format=csv")).await;
    assert_eq!(csv.text.lines().count(), count + 1, "a header and a line each");
    assert!(csv.text.starts_with("entry_id,position,recorded_at,"), "{}", csv.text);
    assert!(csv.headers["content-disposition"].to_str().is_ok_and(|value| value.starts_with("attachment")));
    let by_formula = server.token(WORKSPACE, "operator", "@SUM(1)").await;
    server.post(&by_formula, &format!("{WORKSPACE}/tokens"), token_of("x")).await;
    let csv = server.get(&auditor, &format!("{TRAIL}?format=csv")).await;
    assert!(csv.text.contains(",'@SUM(1),") && !csv.text.contains(",@SUM(1),"), "{}", csv.text);
    assert_eq!(
        server.get(&auditor, &format!("{TRAIL}?format=xml")).await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
}

fn token_of(owner: &str) -> serde_json::Value {
    serde_json::json!({ "role": "auditor", "owner_id": owner })
}
