//! Acceptance 16: the views can be dropped and rebuilt from the log, and come out equal.

use std::fs;

use browserspace_tests::{Client, Program, Script, Server, ServerOptions, SpaceRequest};
use serde_json::{Value, json};

/// A server whose history holds something of every view.
async fn lived_in() -> Server {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let mut instances = Vec::new();
    for _ in 0..3 {
        instances.push(operator.scripted_instance(&["default", "team-a"]).await);
    }
    let agent = server.agent("team-a", "agent-1").await;
    let binding = json!({ "browser_instance_id": instances[0], "owner_id": "agent-1" });
    operator.post("/workspaces/team-a/bindings", &binding).await.expect(201);
    let space = agent.open(&SpaceRequest::new("team-a", &instances[0]).agent("agent-1")).await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    space.play_out("r2", &Script::outcome("fail")).await.expect(200);
    space.play_out("r3", &Script::outcome("crash")).await.expect(200);
    space.becomes("idle").await;
    space.complete("r4", "screenshot", json!({})).await;
    let open = operator.open(&SpaceRequest::new("default", &instances[1]).granting(&["navigate"])).await;
    open.submit("r1", "get_url", json!({})).await.expect_error(422, "capability_not_granted");
    operator.post(&format!("/browser-instances/{}/retire", instances[2]), &json!({})).await.expect(200);
    let _ = space.close().await;
    space.becomes("closed").await;
    server
}

/// Everything that the views answer.
async fn seen(operator: &Client) -> Value {
    let mut seen = serde_json::Map::new();
    let mut paths = vec!["/browser-instances".to_owned()];
    for workspace in ["default", "team-a"] {
        let one = |rest: &str| format!("/workspaces/{workspace}{rest}");
        paths.extend([one("/browser-spaces?limit=100"), one("/bindings"), one("/tokens")]);
        let spaces = operator.get(&one("/browser-spaces?limit=100")).await.expect(200);
        for space in spaces.list() {
            let id = space["space_id"].as_str().expect("a Space has an id");
            let of = |rest: &str| one(&format!("/browser-spaces/{id}{rest}"));
            paths.extend([of(""), of("/tasks?limit=100"), of("/artifacts")]);
        }
    }
    for path in paths {
        let answer = operator.get(&path).await.expect(200);
        seen.insert(path, answer.json);
    }
    Value::Object(seen)
}

#[tokio::test]
async fn s16_rebuilt_views_are_equal() {
    let mut server = lived_in().await;
    // A first restart, so that what a drain and a boot add is in both pictures.
    server.restart();
    let before = seen(&server.operator()).await;
    let spaces = before["/workspaces/team-a/browser-spaces?limit=100"]["data"].as_array().map(Vec::len);
    assert_eq!(spaces, Some(1), "there is something to compare: {before}");
    server.sigterm().ok();
    Program::on(server.data_dir(), &["rebuild"]).ok();
    server.again();
    assert_eq!(seen(&server.operator()).await, before);
}

#[tokio::test]
async fn s16_dropped_views_come_back_by_themselves() {
    let mut server = lived_in().await;
    server.restart();
    let before = seen(&server.operator()).await;
    server.sigterm().ok();
    let entries = fs::read_dir(server.data_dir()).expect("the data folder is there");
    let names = entries.flatten().map(|entry| entry.path());
    let views: Vec<_> = names.filter(|path| path.to_string_lossy().contains("views")).collect();
    assert!(!views.is_empty(), "the views lie in the data folder");
    for path in views {
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
            .expect("they can be dropped");
    }
    server.again();
    assert_eq!(seen(&server.operator()).await, before);
}

#[tokio::test]
async fn s16_rebuild_beside_a_running_server_is_refused() {
    let server = lived_in().await;
    let before = seen(&server.operator()).await;
    let said = Program::on(server.data_dir(), &["rebuild"]).refused();
    assert!(said.contains("a server runs"), "{said}");
    assert_eq!(seen(&server.operator()).await, before);
}
