//! Spaces and tasks over HTTP.

use super::*;

#[tokio::test]
async fn s01_a_create_answers_with_the_space_and_a_repeat_with_the_same_one() {
    let server = Server::start().await;
    let agent = server.token(WORKSPACE, "runtime_agent", "agent-a").await;
    let instance = server.instance("team").await;
    let path = format!("{WORKSPACE}/browser-spaces");
    let ask = |body: Value| server.send(Ask::post(&path, body).by(&agent).with("idempotency-key", "k-1"));
    let made = ask(create(&instance, "agent-a")).await;
    let space = made.expect(StatusCode::CREATED);
    let id = space["space_id"].as_str().expect("an id").to_owned();
    let expected = json!({
        "space_id": id,
        "workspace_id": "team",
        "browser_instance_id": instance,
        "binding_id": null,
        "owner_type": "runtime_agent",
        "owner_id": "agent-a",
        "status": "idle",
        "granted_capabilities": ["navigate", "get_url"],
        "active_task": null,
        "revision": 1,
        "last_error_code": null,
        "idle_timeout_seconds": 1800,
        "created_at": space["created_at"],
        "updated_at": space["updated_at"],
    });
    assert_eq!(space, expected);
    assert_eq!(ask(create(&instance, "agent-a")).await.expect(StatusCode::OK)["space_id"], json!(id));
    let mut different = create(&instance, "agent-a");
    different["idle_timeout_seconds"] = json!(60);
    ask(different).await.refused(409, "request_id_conflict");
    let second = server.post(&agent, &path, create(&instance, "agent-a")).await;
    second.refused(409, "browser_instance_in_use");
    // A client sees its own writes.
    let read = server.get(&agent, &format!("{path}/{id}")).await;
    assert_eq!(read.expect(StatusCode::OK)["space_id"], json!(id));
    let position = |reply: &Reply| reply.header("x-log-position").and_then(|text| text.parse::<u64>().ok());
    assert!(position(&read) >= position(&made) && position(&made) > Some(0));
}

#[tokio::test]
async fn a_submit_answers_202_and_with_a_wait_200_once_it_has_ended() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let tasks = format!("{space}/tasks");
    let submit = |id: &str, script: &str, prefer: &str| {
        let ask = Ask::post(&tasks, navigate(id, script)).by(&agent).with("prefer", prefer);
        server.send(ask)
    };
    let ended = submit("r-1", "delay_ms=20", "wait=10").await;
    let task = ended.expect(StatusCode::OK);
    assert_eq!((task["status"].as_str(), task["request_id"].as_str()), (Some("completed"), Some("r-1")));
    assert_eq!(task["arg_keys"], json!(["url"]));
    assert_eq!(ended.header("preference-applied"), Some("wait=10"));
    let id = task["task_id"].as_str().expect("an id");
    let read = server.get(&agent, &format!("{tasks}/{id}")).await.expect(StatusCode::OK);
    assert_eq!(read, task, "the views and the door show the same task");

    let running = submit("r-2", "outcome=hang", "wait=0").await.expect(StatusCode::ACCEPTED);
    assert!(["queued", "running"].contains(&running["status"].as_str().expect("a status")), "{running}");
    let details = submit("r-3", "", "wait=1").await.refused(409, "space_task_in_progress");
    assert_eq!(details["task_id"], running["task_id"]);
    submit("r-2", "outcome=hang", "wait=0").await.expect(StatusCode::OK);
    submit("r-2", "outcome=other", "wait=0").await.refused(409, "request_id_conflict");
    submit("r-4", "", "wait=soon").await.refused(422, "invalid_request");
    let active = server.get(&agent, &space).await.expect(StatusCode::OK);
    assert_eq!(active["active_task"]["task_id"], running["task_id"]);
}

#[tokio::test]
async fn s05_what_is_not_granted_or_does_not_fit_is_refused_by_its_code() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let tasks = format!("{space}/tasks");
    let ask = |id: &str, capability: &str, args: Value| {
        let body = json!({ "request_id": id, "capability": capability, "args": args });
        let (server, agent, tasks) = (&server, &agent, &tasks);
        async move { server.post(agent, tasks, body).await }
    };
    let unknown = ask("r-1", "teleport", json!({})).await;
    unknown.refused(422, "capability_unknown");
    assert!(unknown.text.contains("GET /api/v1/capabilities") && !unknown.text.contains("teleport"));
    let details = ask("r-2", "navigate", json!({ "url": 7, "SECRET": 1 })).await.refused(422, "invalid_args");
    assert!(details["problems"].as_array().is_some_and(|problems| !problems.is_empty()));
    let unfit = ask("r-2", "navigate", json!({})).await;
    assert_eq!(unfit.json()["error"]["message"], "the args do not fit: (args): \"url\" is required");
    let details = ask("r-3", "click", json!({})).await.refused(422, "capability_not_granted");
    assert_eq!(details["capability"], "click");
    let recorded =
        server.get(&agent, &format!("{tasks}/{}", details["task_id"].as_str().expect("an id"))).await;
    assert_eq!(recorded.expect(StatusCode::OK)["error"]["code"], "capability_not_granted");
}

#[tokio::test]
async fn cancel_and_close_are_idempotent_and_a_closed_space_takes_no_task() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    for _ in 0..2 {
        let cancelled =
            server.post(&agent, &format!("{space}/cancel"), json!({})).await.expect(StatusCode::OK);
        assert_eq!(cancelled["active_task"], Value::Null);
    }
    for _ in 0..2 {
        let ask = Ask { method: Method::POST, ..Ask::get("") };
        let path = format!("{space}/close");
        let closed = server.send(Ask { path: &path, ..ask }.by(&agent)).await.expect(StatusCode::OK);
        assert_eq!(closed["status"], "closed");
    }
    server.post(&agent, &format!("{space}/tasks"), navigate("r-1", "")).await.refused(409, "space_closed");
}

#[tokio::test]
async fn lists_are_paged_by_cursors_that_belong_to_their_list() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let tasks = format!("{space}/tasks");
    for number in 0..3 {
        let ask =
            Ask::post(&tasks, navigate(&format!("r-{number}"), "")).by(&agent).with("prefer", "wait=10");
        server.send(ask).await.expect(StatusCode::OK);
    }
    let first = server.get(&agent, &format!("{tasks}?limit=2")).await;
    let ids = |reply: &Reply| -> Vec<String> {
        let data = reply.expect(StatusCode::OK);
        let tasks = data.as_array().expect("a list").iter();
        tasks.map(|task| task["request_id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(ids(&first), ["r-2", "r-1"], "newest first");
    let next = first.json()["next"].as_str().expect("a cursor").to_owned();
    let last = server.get(&agent, &format!("{tasks}?limit=2&cursor={next}")).await;
    assert_eq!((ids(&last).as_slice(), &last.json()["next"]), (&["r-0".to_owned()][..], &Value::Null));
    for path in [format!("{tasks}?cursor=x"), format!("{WORKSPACE}/browser-spaces?cursor={next}")] {
        server.get(&agent, &path).await.refused(422, "invalid_cursor");
    }
    for bad in ["limit=0", "limit=101", "limit=x", "page=2", "limit=1&limit=2"] {
        server.get(&agent, &format!("{tasks}?{bad}")).await.refused(422, "invalid_request");
    }
    server
        .get(&agent, &format!("{WORKSPACE}/browser-spaces?status=asleep"))
        .await
        .refused(422, "invalid_request");
}

#[tokio::test]
async fn a_read_waits_for_the_position_it_names_and_no_longer() {
    let server = Server::with(HttpConfig { view_wait_ms: 50, ..HttpConfig::default() }).await;
    let (agent, space) = server.agent_with_space().await;
    for path in [space.clone(), format!("{space}/events")] {
        let ask = |position: &str| server.send(Ask::get(&path).by(&agent).with("x-min-position", position));
        ask("1").await.expect(StatusCode::OK);
        let late = ask("999999").await;
        late.refused(503, "overloaded");
        assert!(late.header("retry-after").is_some());
        ask("-1").await.refused(422, "invalid_request");
    }
}

#[tokio::test]
async fn an_event_carries_the_trace_of_the_request_that_led_to_it() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let trace_id = "0af7651916cd43dd8448eb211c80319c";
    let tasks = format!("{space}/tasks");
    let ask = Ask::post(&tasks, navigate("r-1", "")).by(&agent).with("prefer", "wait=10");
    let ask = ask.with("traceparent", format!("00-{trace_id}-b7ad6b7169203331-01"));
    server.send(ask).await.expect(StatusCode::OK);
    let events = server.get(&agent, &format!("{space}/events")).await.expect(StatusCode::OK);
    let queued = events.as_array().expect("a list").iter().find(|event| event["kind"] == "queued");
    assert_eq!(queued.expect("it was queued")["trace_id"], trace_id);
}

#[tokio::test]
async fn a_cancelled_task_says_whether_it_may_have_run() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let tasks = format!("{space}/tasks");
    // The runtime starts with the first task, so the second is known to run and not only to wait for it.
    let first = Ask::post(&tasks, navigate("r-1", "")).by(&agent).with("prefer", "wait=10");
    server.send(first).await.expect(StatusCode::OK);
    let running =
        server.post(&agent, &tasks, navigate("r-2", "delay_ms=60000")).await.expect(StatusCode::ACCEPTED);
    assert_eq!((&running["status"], &running["error"]), (&json!("running"), &Value::Null));
    server.post(&agent, &format!("{space}/cancel"), json!({})).await.expect(StatusCode::OK);
    let again = Ask::post(&tasks, navigate("r-2", "delay_ms=60000")).by(&agent).with("prefer", "wait=10");
    let task = server.send(again).await.expect(StatusCode::OK);
    assert_eq!(task["status"], "cancelled");
    let error = json!({
        "code": "cancelled",
        "message": "the task was cancelled while it ran",
        "retryable": false,
        "may_have_run": true,
    });
    assert_eq!(task["error"], error);
    let id = task["task_id"].as_str().expect("an id");
    let read = server.get(&agent, &format!("{tasks}/{id}")).await.expect(StatusCode::OK);
    assert_eq!(read["error"], error, "the views and the door say the same");
}

#[tokio::test]
async fn every_capability_is_shown_with_an_example() {
    let server = Server::start().await;
    let listed = server.get(&server.operator, "/api/v1/capabilities").await.expect(StatusCode::OK);
    let navigate = listed.as_array().expect("a list").iter().find(|one| one["name"] == "navigate");
    assert_eq!(navigate.expect("it is there")["example"], json!({ "url": "https://a.example" }));
    let page = server.get("x", "/docs").await.text;
    let document = server.get("x", "/openapi.json").await.json();
    let path = "/api/v1/workspaces/{workspace_id}/browser-spaces/{space_id}/tasks";
    let content = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"];
    for row in actors::capability::standard::standard().rows() {
        let example = &content["examples"][row.name.as_str()]["value"];
        assert_eq!(example["args"], row.example, "{}", row.name);
        let shown = example.to_string().replace('"', "&quot;");
        assert!(page.contains(&shown), "{shown}");
    }
}
