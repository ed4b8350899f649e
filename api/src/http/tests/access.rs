//! Who may do what: 401, then 403 for the Workspace, then 404 for the id, then 403 for the owner.

use super::*;

#[tokio::test]
async fn s02_another_workspace_and_another_owner_reach_nothing() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let stranger = server.token("/api/v1/workspaces/other", "runtime_agent", "agent-a").await;
    let neighbour = server.token(WORKSPACE, "runtime_agent", "agent-b").await;
    let foreign = space.replace("/team/", "/other/");
    let tasks = |space: &str| format!("{space}/tasks");
    for (get, post) in
        [("", "/cancel"), ("/events", "/close"), ("/tasks", "/tasks"), ("/artifacts", "/close")]
    {
        let body = || if post == "/tasks" { navigate("r-1", "") } else { json!({}) };
        server.get(&stranger, &format!("{space}{get}")).await.refused(403, "forbidden");
        server.post(&stranger, &format!("{space}{post}"), body()).await.refused(403, "forbidden");
        server.get(&stranger, &format!("{foreign}{get}")).await.refused(404, "space_not_found");
        server.post(&stranger, &format!("{foreign}{post}"), body()).await.refused(404, "space_not_found");
        server.get(&neighbour, &format!("{space}{get}")).await.refused(403, "forbidden");
        server.post(&neighbour, &format!("{space}{post}"), body()).await.refused(403, "forbidden");
    }
    // A wrong body does not tell who may not know that the Space is there.
    server.post(&stranger, &tasks(&foreign), json!({ "x": 1 })).await.refused(404, "space_not_found");
    server.post(&neighbour, &tasks(&space), json!({ "x": 1 })).await.refused(403, "forbidden");
    server.post(&agent, &tasks(&space), json!({ "x": 1 })).await.refused(422, "invalid_request");

    let list = format!("{WORKSPACE}/browser-spaces");
    let seen = |reply: Reply| reply.expect(StatusCode::OK).as_array().expect("a list").len();
    assert_eq!(seen(server.get(&agent, &list).await), 1);
    assert_eq!(seen(server.get(&neighbour, &list).await), 0);
    assert_eq!(seen(server.get(&server.operator, &list).await), 1);
    assert_eq!(server.get(&agent, &space).await.expect(StatusCode::OK)["status"], "idle");
}

#[tokio::test]
async fn c14_a_space_that_is_not_there_and_one_of_another_workspace_are_answered_alike() {
    let server = Server::start().await;
    let (_, space) = server.agent_with_space().await;
    let foreign = space.replace("/team/", "/other/");
    let missing = format!("{}/spc_00000000000000000000000001", foreign.rsplit_once('/').expect("a path").0);
    let operator = server.token("/api/v1/workspaces/other", "operator", "olga").await;
    for rest in ["", "/events", "/events?after_sequence=5", "/tasks", "/artifacts"] {
        let (a, b) = (format!("{foreign}{rest}"), format!("{missing}{rest}"));
        let (a, b) = (server.get(&operator, &a).await, server.get(&operator, &b).await);
        a.refused(404, "space_not_found");
        assert_eq!(a.text, b.text, "{rest}");
    }
}

#[tokio::test]
async fn an_auditor_reads_everything_of_its_workspace_and_changes_nothing() {
    let server = Server::start().await;
    let (_, space) = server.agent_with_space().await;
    let auditor = server.token(WORKSPACE, "auditor", "anna").await;
    let instance = server.instance("team").await;
    for path in ["", "/events", "/tasks", "/artifacts"] {
        server.get(&auditor, &format!("{space}{path}")).await.expect(StatusCode::OK);
    }
    for path in ["/bindings", "/tokens", "/browser-spaces"] {
        server.get(&auditor, &format!("{WORKSPACE}{path}")).await.expect(StatusCode::OK);
    }
    let bodies = [
        (format!("{WORKSPACE}/browser-spaces"), create(&instance, "agent-a")),
        (format!("{space}/tasks"), navigate("r-1", "")),
        (format!("{space}/cancel"), json!({})),
        (format!("{space}/close"), json!({})),
        (format!("{WORKSPACE}/bindings"), json!({ "browser_instance_id": instance })),
        (format!("{WORKSPACE}/tokens"), json!({ "role": "operator", "owner_id": "anna" })),
        ("/api/v1/browser-instances".to_owned(), json!({ "kind": "scripted", "bundle": "standard" })),
        (format!("/api/v1/browser-instances/{instance}/retire"), json!({})),
        ("/api/v1/server/drain".to_owned(), json!({})),
    ];
    for (path, body) in bodies {
        server.post(&auditor, &path, body).await.refused(403, "forbidden");
    }
}

#[tokio::test]
async fn an_agent_runs_nothing_of_the_server_and_names_only_itself() {
    let server = Server::start().await;
    let (agent, _) = server.agent_with_space().await;
    let instance = server.instance("team").await;
    for path in ["/api/v1/log", &format!("{WORKSPACE}/tokens"), "/metrics"] {
        server.get(&agent, path).await.refused(403, "forbidden");
    }
    let other = create(&instance, "agent-b");
    server.post(&agent, &format!("{WORKSPACE}/browser-spaces"), other).await.refused(403, "forbidden");
    let role = json!({ "role": "operator", "owner_id": "agent-a" });
    server.post(&agent, &format!("{WORKSPACE}/tokens"), role).await.refused(403, "forbidden");
}

#[tokio::test]
async fn an_operator_of_one_workspace_reaches_no_further() {
    let server = Server::start().await;
    let operator = server.token("/api/v1/workspaces/other", "operator", "olga").await;
    let instance = server.instance("team").await;
    server.post(&operator, "/api/v1/server/drain", json!({})).await.refused(403, "forbidden");
    let everywhere = json!({ "role": "operator", "owner_id": "olga", "all_workspaces": true });
    server.post(&operator, "/api/v1/workspaces/other/tokens", everywhere).await.refused(403, "forbidden");
    let theirs = json!({ "kind": "scripted", "bundle": "standard", "workspaces": ["team"] });
    server.post(&operator, "/api/v1/browser-instances", theirs).await.refused(403, "forbidden");
    let retire = format!("/api/v1/browser-instances/{instance}/retire");
    server.post(&operator, &retire, json!({})).await.refused(404, "instance_not_found");
    let bind = json!({ "browser_instance_id": instance });
    server
        .post(&operator, "/api/v1/workspaces/other/bindings", bind)
        .await
        .refused(404, "instance_not_found");
    let seen = server.get(&operator, "/api/v1/browser-instances").await.expect(StatusCode::OK);
    assert_eq!(seen, json!([]));
    // Of a Workspace that is not there it learns as little as of one that is.
    for workspace in ["team", "nowhere", "no%20slug"] {
        let path = format!("/api/v1/workspaces/{workspace}/browser-spaces");
        server.get(&operator, &path).await.refused(403, "forbidden");
    }
    server
        .get(&server.operator, "/api/v1/workspaces/nowhere/browser-spaces")
        .await
        .refused(404, "workspace_not_found");
}

#[tokio::test]
async fn an_id_that_does_not_parse_is_one_that_does_not_exist() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    for (path, code) in [
        (format!("{WORKSPACE}/browser-spaces/x"), "space_not_found"),
        (format!("{WORKSPACE}/browser-spaces/tsk_00000000000000000000000001"), "space_not_found"),
        (format!("{space}/tasks/x"), "task_not_found"),
        (format!("{space}/tasks/tsk_00000000000000000000000001"), "task_not_found"),
        (format!("{space}/artifacts/%ff"), "route_not_found"),
        (format!("{space}/artifacts/art_00000000000000000000000001"), "artifact_not_found"),
    ] {
        server.get(&agent, &path).await.refused(404, code);
    }
}

#[tokio::test]
async fn c04_a_revoked_token_is_no_token_and_failures_are_limited() {
    let server = Server::with(HttpConfig { failures_per_minute: 3, ..HttpConfig::default() }).await;
    let body = json!({ "role": "auditor", "owner_id": "anna" });
    let made =
        server.post(&server.operator, &format!("{WORKSPACE}/tokens"), body).await.expect(StatusCode::CREATED);
    let token = made["token"].as_str().expect("a token").to_owned();
    server.get(&token, "/api/v1/capabilities").await.expect(StatusCode::OK);
    let list = server.get(&server.operator, &format!("{WORKSPACE}/tokens")).await;
    assert!(!list.text.contains(&token) && !list.text.contains("hash"), "{}", list.text);
    let revoke = format!("{WORKSPACE}/tokens/{}/revoke", made["token_id"].as_str().expect("an id"));
    let revoked = server.post(&server.operator, &revoke, json!({})).await.expect(StatusCode::OK);
    assert!(revoked["revoked_at"].is_string());
    server.post(&server.operator, &revoke, json!({})).await.expect(StatusCode::OK);
    for _ in 0..3 {
        server.get(&token, "/api/v1/capabilities").await.refused(401, "unauthenticated");
    }
    let limited = server.get("bst_forged", "/api/v1/capabilities").await;
    limited.refused(429, "rate_limited");
    assert!(limited.header("retry-after").is_some());
    // Who has a good token is not locked out by a neighbour who has not.
    server.get(&server.operator, "/api/v1/capabilities").await.expect(StatusCode::OK);
}

#[tokio::test]
async fn a_token_over_its_rate_is_told_to_wait() {
    let server = Server::with(HttpConfig { rate_per_second: 1, burst: 2, ..HttpConfig::default() }).await;
    for _ in 0..2 {
        server.get(&server.operator, "/api/v1/capabilities").await.expect(StatusCode::OK);
    }
    let limited = server.get(&server.operator, "/api/v1/capabilities").await;
    limited.refused(429, "rate_limited");
    assert!(limited.header("retry-after").is_some());
}

#[tokio::test]
async fn bindings_are_granted_seen_and_revoked() {
    let server = Server::start().await;
    let instance = server.instance("other").await;
    let agent = server.token(WORKSPACE, "runtime_agent", "agent-a").await;
    let bindings = format!("{WORKSPACE}/bindings");
    let grant = |owner: &str| json!({ "browser_instance_id": instance, "owner_id": owner });
    let mine = server.post(&server.operator, &bindings, grant("agent-a")).await.expect(StatusCode::CREATED);
    server.post(&server.operator, &bindings, grant("agent-b")).await.expect(StatusCode::CREATED);
    let seen = server.get(&agent, &bindings).await.expect(StatusCode::OK);
    assert_eq!(seen, json!([mine]), "an agent sees what is for it");
    let instances = server.get(&agent, "/api/v1/browser-instances").await.expect(StatusCode::OK);
    assert_eq!(instances[0]["browser_instance_id"], json!(instance));
    assert_eq!(instances[0]["workspaces"], json!([]), "the other Workspace is not named");
    let revoke = format!("{bindings}/{}/revoke", mine["binding_id"].as_str().expect("an id"));
    let revoked = server.post(&server.operator, &revoke, json!({})).await.expect(StatusCode::OK);
    assert!(revoked["revoked_at"].is_string());
    let foreign = revoke.replace("/team/", "/other/");
    server.post(&server.operator, &foreign, json!({})).await.refused(404, "binding_not_found");
}

#[tokio::test]
async fn a_draining_server_is_alive_but_not_ready() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    server.get("x", "/readyz").await.expect(StatusCode::OK);
    let drain = json!({ "deadline_seconds": 0 });
    server.post(&server.operator, "/api/v1/server/drain", drain).await.expect(StatusCode::ACCEPTED);
    assert!(server.spaces.is_draining(), "it has begun when it is said that it has");
    server.spaces.drain(Duration::ZERO).await;
    server.get("x", "/healthz").await.expect(StatusCode::OK);
    server.get("x", "/readyz").await.refused(503, "shutting_down");
    let reply = server.post(&agent, &format!("{space}/tasks"), navigate("r-1", "")).await;
    assert!(
        reply.status == StatusCode::SERVICE_UNAVAILABLE || reply.status == StatusCode::CONFLICT,
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn metrics_are_for_overseers_or_where_configured_for_this_machine() {
    let server = Server::start().await;
    server.send(Ask::get("/metrics")).await.refused(401, "unauthenticated");
    server.get(&server.operator, "/metrics").await.expect(StatusCode::OK);
    let open = Server::with(HttpConfig { metrics_public: true, ..HttpConfig::default() }).await;
    open.send(Ask::get("/metrics")).await.expect(StatusCode::OK);
    // The peer is unknown here: not this machine, as far as anybody can tell.
    let response = open.router.clone().oneshot(Ask::get("/metrics").request()).await.expect("an answer");
    Reply::of(response).await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn who_is_refused_is_told_what_is_lacking() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let neighbour = server.token(WORKSPACE, "agent", "agent-b").await;
    let auditor = server.token(WORKSPACE, "auditor", "anna").await;
    let olga = server.token("/api/v1/workspaces/other", "operator", "olga").await;
    let spaces = format!("{WORKSPACE}/browser-spaces");
    let instance = server.instance("team").await;
    let for_other = || create(&instance, "agent-b");
    let theirs = || json!({ "kind": "scripted", "workspaces": ["team"] });
    let (operator, overseer) = ("this needs the role operator", "this needs the role operator or auditor");
    let (enter, owner) = ("your token does not enter this Workspace", "this Space belongs to another owner");
    let own_id = "owner_type must be runtime_agent and owner_id your own: agent-a";
    let every = "this needs a token that enters every Workspace";
    let each = "this needs a token that enters each of the instance's Workspaces";
    let cases = [
        (&agent, format!("{WORKSPACE}/tokens"), None, overseer),
        (&agent, "/api/v1/log".to_owned(), None, overseer),
        (&agent, "/api/v1/log/verify".to_owned(), Some(json!({})), overseer),
        (&agent, "/api/v1/log/checkpoint".to_owned(), Some(json!({})), overseer),
        (&agent, "/metrics".to_owned(), None, overseer),
        (&agent, spaces.clone(), Some(for_other()), own_id),
        (&neighbour, space.clone(), None, owner),
        (&neighbour, format!("{space}/events"), None, owner),
        (&neighbour, format!("{space}/close"), Some(json!({})), owner),
        (&neighbour, format!("{space}/close"), Some(json!({ "x": 1 })), owner),
        (
            &auditor,
            format!("{space}/close"),
            Some(json!({})),
            "this needs the role operator or runtime_agent",
        ),
        (&auditor, spaces, Some(for_other()), "this needs the role operator or runtime_agent"),
        (&auditor, format!("{WORKSPACE}/tokens"), Some(json!({})), operator),
        (&olga, space, None, enter),
        (&olga, "/api/v1/server/drain".to_owned(), Some(json!({})), every),
        (&olga, "/api/v1/browser-instances".to_owned(), Some(theirs()), each),
    ];
    for (token, path, body, message) in cases {
        let reply = match body {
            Some(body) => server.post(token, &path, body).await,
            None => server.get(token, &path).await,
        };
        reply.refused(403, "forbidden");
        assert_eq!(reply.json()["error"]["message"], message, "{path}");
    }
}

#[tokio::test]
async fn an_agent_is_one_role_whatever_it_is_called() {
    let server = Server::start().await;
    for role in ["agent", "runtime_agent"] {
        let body = json!({ "role": role, "owner_id": "agent-a" });
        let made = server.post(&server.operator, &format!("{WORKSPACE}/tokens"), body).await;
        let made = made.expect(StatusCode::CREATED);
        assert_eq!(made["role"], "runtime_agent");
        let mut body = create(&server.instance("team").await, "agent-a");
        body["owner_type"] = json!(role);
        let token = made["token"].as_str().expect("a token");
        let space = server.post(token, &format!("{WORKSPACE}/browser-spaces"), body).await;
        assert_eq!(space.expect(StatusCode::CREATED)["owner_type"], "runtime_agent");
    }
}

#[tokio::test]
async fn the_first_token_of_a_workspace_makes_it_if_it_has_a_name() {
    let server = Server::start().await;
    let body = || json!({ "role": "auditor", "owner_id": "anna" });
    server.post(&server.operator, "/api/v1/workspaces/new/tokens", body()).await.expect(StatusCode::CREATED);
    server.get(&server.operator, "/api/v1/workspaces/new/browser-spaces").await.expect(StatusCode::OK);
    let unnamed = server.post(&server.operator, "/api/v1/workspaces/no%20slug/tokens", body()).await;
    assert_eq!(unnamed.refused(422, "invalid_request")["field"], "workspace_id");
}

#[tokio::test]
async fn an_instance_is_standard_unless_it_is_said_otherwise() {
    let server = Server::start().await;
    let body = json!({ "kind": "scripted", "workspaces": ["team"] });
    let made = server.post(&server.operator, "/api/v1/browser-instances", body).await;
    assert_eq!(made.expect(StatusCode::CREATED)["bundle"], "standard");
}
