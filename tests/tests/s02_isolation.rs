//! Acceptance 2: another Workspace, or a principal that is not the owner, can do nothing with a Space.

use browserspace_tests::{Answer, Client, Server, ServerOptions, Space, SpaceRequest};
use reqwest::Method;
use serde_json::{Value, json};

struct Scene {
    server: Server,
    space: Space,
    owner: Client,
}

async fn scene() -> Scene {
    let server = Server::start(ServerOptions::default());
    let owner = server.agent("team-a", "agent-1").await;
    let instance = server.operator().scripted_instance(&["team-a"]).await;
    let space = owner.open(&SpaceRequest::new("team-a", &instance).agent("agent-1")).await;
    space.complete("r1", "get_url", json!({})).await;
    Scene { server, space, owner }
}

/// Every route of a Space: method, path and body.
fn routes(space: &str, task: &str) -> Vec<(Method, String, Value)> {
    let task_body = json!({ "request_id": "r9", "capability": "get_url", "args": {} });
    let one = |rest: &str| format!("/browser-spaces/{space}{rest}");
    vec![
        (Method::GET, one(""), Value::Null),
        (Method::GET, one("/tasks"), Value::Null),
        (Method::GET, one(&format!("/tasks/{task}")), Value::Null),
        (Method::GET, one("/events?after_sequence=0"), Value::Null),
        (Method::GET, one("/artifacts"), Value::Null),
        (Method::POST, one("/tasks"), task_body),
        (Method::POST, one("/cancel"), json!({})),
        (Method::POST, one("/close"), json!({})),
    ]
}

async fn ask(client: &Client, workspace: &str, route: &(Method, String, Value)) -> Answer {
    let (method, path, body) = route;
    let request = client.request(method.clone(), &format!("/workspaces/{workspace}{path}"));
    let request = if body.is_null() { request } else { request.json(body) };
    client.send(request).await
}

async fn unchanged_by(scene: &Scene, deeds: impl AsyncFnOnce()) {
    let before = scene.space.through(&scene.owner).events().await;
    deeds().await;
    assert_eq!(scene.space.through(&scene.owner).events().await, before, "a refusal leaves nothing behind");
    assert_eq!(scene.space.status().await, "idle");
}

#[tokio::test]
async fn s02_another_workspace_may_not_enter() {
    let scene = scene().await;
    let stranger = scene.server.agent("team-b", "agent-1").await;
    let task = scene.space.tasks().await[0]["task_id"].as_str().expect("a task has an id").to_owned();
    unchanged_by(&scene, async || {
        for route in routes(&scene.space.id, &task) {
            ask(&stranger, "team-a", &route).await.expect_error(403, "forbidden");
            // Through its own Workspace the Space is not there, whatever its id.
            ask(&stranger, "team-b", &route).await.expect_error(404, "space_not_found");
        }
        stranger.get("/workspaces/team-a/browser-spaces").await.expect_error(403, "forbidden");
        stranger.get("/workspaces/no-such-team/browser-spaces").await.expect_error(403, "forbidden");
        let create = SpaceRequest::new("team-a", &scene.space.instance).agent("agent-1");
        stranger.post(&create.path(), &create.body()).await.expect_error(403, "forbidden");
        let own = SpaceRequest::new("team-b", &scene.space.instance).agent("agent-1");
        stranger.post(&own.path(), &own.body()).await.expect_error(404, "instance_not_found");
        assert!(stranger.get("/workspaces/team-b/browser-spaces").await.expect(200).list().is_empty());
    })
    .await;
}

#[tokio::test]
async fn s02_an_agent_that_is_not_the_owner_is_refused() {
    let scene = scene().await;
    let neighbour = scene.server.agent("team-a", "agent-2").await;
    let task = scene.space.tasks().await[0]["task_id"].as_str().expect("a task has an id").to_owned();
    unchanged_by(&scene, async || {
        for route in routes(&scene.space.id, &task) {
            ask(&neighbour, "team-a", &route).await.expect_error(403, "forbidden");
        }
        assert!(neighbour.get("/workspaces/team-a/browser-spaces").await.expect(200).list().is_empty());
        let other = SpaceRequest::new("team-a", &scene.space.instance).agent("agent-1");
        neighbour.post(&other.path(), &other.body()).await.expect_error(403, "forbidden");
    })
    .await;
}

#[tokio::test]
async fn s02_an_auditor_reads_everything_and_changes_nothing() {
    let scene = scene().await;
    let auditor = scene.server.auditor("team-a").await;
    let task = scene.space.tasks().await[0]["task_id"].as_str().expect("a task has an id").to_owned();
    unchanged_by(&scene, async || {
        for route in routes(&scene.space.id, &task) {
            let answer = ask(&auditor, "team-a", &route).await;
            if route.0 == Method::GET {
                assert_eq!(answer.status, 200, "{} {}", route.1, answer.text());
            } else {
                answer.expect_error(403, "forbidden");
            }
        }
        assert_eq!(auditor.get("/workspaces/team-a/browser-spaces").await.expect(200).list().len(), 1);
        let create = SpaceRequest::new("team-a", &scene.space.instance);
        auditor.post(&create.path(), &create.body()).await.expect_error(403, "forbidden");
        auditor
            .post("/browser-instances", &json!({ "kind": "scripted", "bundle": "standard" }))
            .await
            .expect_error(403, "forbidden");
        auditor.post("/server/drain", &json!({})).await.expect_error(403, "forbidden");
    })
    .await;
}

#[tokio::test]
async fn s02_an_operator_of_the_workspace_may_act_on_any_of_its_spaces() {
    let scene = scene().await;
    let token = scene.server.operator().issue_token("team-a", "operator", "lead").await;
    let operator = scene.server.client(&token);
    let space = scene.space.through(&operator);
    space.complete("r2", "get_url", json!({})).await;
    space.close().await.expect(200);
    assert_eq!(space.status().await, "closed");
    let foreign = scene.server.operator().scripted_instance(&["team-b"]).await;
    let elsewhere = SpaceRequest::new("team-b", &foreign);
    operator.post(&elsewhere.path(), &elsewhere.body()).await.expect_error(403, "forbidden");
}

#[tokio::test]
async fn s02_a_foreign_task_or_cursor_answers_like_one_that_does_not_exist() {
    let scene = scene().await;
    let instance = scene.server.operator().scripted_instance(&["team-a"]).await;
    let other = scene.owner.open(&SpaceRequest::new("team-a", &instance).agent("agent-1")).await;
    let task = scene.space.tasks().await[0]["task_id"].as_str().expect("a task has an id").to_owned();
    let foreign = other.task(&task).await;
    let absent = other.task("tsk_00000000000000000000000000").await;
    foreign.expect_error(404, "task_not_found");
    assert_eq!(foreign.json["error"], absent.json["error"], "no difference to tell them by");
}
