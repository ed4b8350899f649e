//! What the state of a thing does not allow is refused with its own code, and nothing is lost.

use browserspace_tests::{Script, Server, ServerOptions, SpaceRequest, eventually};
use serde_json::{Value, json};

async fn instance_of(server: &Server, instance: &str) -> Value {
    let listed = server.operator().get("/browser-instances").await.expect(200);
    let found = listed.list().iter().find(|one| one["browser_instance_id"] == instance).cloned();
    found.expect("the instance is listed")
}

#[tokio::test]
async fn a_retired_instance_takes_no_space_and_closes_the_one_it_has() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let request = SpaceRequest::new("default", &instance);
    let space = operator.open(&request).await;
    let retire = format!("/browser-instances/{instance}/retire");
    for _ in 0..2 {
        operator.post(&retire, &json!({})).await.expect(200);
    }
    space.becomes("closed").await;
    let closed = space.events().await.last().cloned().expect("an event");
    assert_eq!(closed["payload"]["reason"], "instance_retired");
    operator.post(&request.path(), &request.body()).await.expect_error(409, "instance_retired");
    let shown = instance_of(&server, &instance).await;
    assert_eq!((&shown["health"], &shown["reserved"]), (&json!("retired"), &json!(false)));
}

#[tokio::test]
async fn an_instance_shows_no_endpoint_path_or_pid() {
    let server = Server::start(ServerOptions::default());
    let instance = server.operator().scripted_instance(&["default"]).await;
    let contract = [
        "browser_instance_id",
        "kind",
        "name",
        "bundle",
        "capabilities",
        "health",
        "reserved",
        "network_policy",
        "created_at",
        "workspaces",
        "headless",
    ];
    let shown = instance_of(&server, &instance).await;
    for field in shown.as_object().expect("an instance is an object").keys() {
        assert!(contract.contains(&field.as_str()), "{field} is not in the contract: {shown}");
    }
    assert_eq!(shown["health"], "ready");
}

#[tokio::test]
async fn a_binding_lets_a_workspace_in_and_its_end_keeps_it_out() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let agent = server.agent("team-a", "agent-1").await;
    let other = server.agent("team-a", "agent-2").await;
    let plain = |owner: &str| SpaceRequest::new("team-a", &instance).agent(owner).granting(&["navigate"]);
    agent
        .post(&plain("agent-1").path(), &plain("agent-1").body())
        .await
        .expect_error(404, "instance_not_found");
    let grant =
        json!({ "browser_instance_id": instance, "owner_id": "agent-1", "capabilities": ["navigate"] });
    let binding = operator.post("/workspaces/team-a/bindings", &grant).await.expect(201).field("binding_id");
    let bound = |owner: &str| plain(owner).with("binding_id", json!(binding));
    let refused = other.post(&bound("agent-2").path(), &bound("agent-2").body()).await;
    refused.expect_error(404, "binding_not_found");
    let wide = bound("agent-1").granting(&["navigate", "get_url"]);
    assert_eq!(agent.post(&wide.path(), &wide.body()).await.status, 422, "the binding narrows");
    let space = agent.open(&bound("agent-1")).await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    let revoke = format!("/workspaces/team-a/bindings/{binding}/revoke");
    operator.post(&revoke, &json!({})).await.expect(200);
    space.play_out("r2", &Script::ok()).await.expect(200);
    space.close().await.expect(200);
    space.becomes("closed").await;
    let late = agent.post(&bound("agent-1").path(), &bound("agent-1").body()).await;
    late.expect_error(404, "binding_not_found");
}

#[tokio::test]
async fn a_runtime_that_can_not_start_is_503_and_the_refusal_is_recorded() {
    // A program, so that the server starts with it, but no browser.
    let server = Server::start(ServerOptions::default().arg("--chromium").arg("/usr/bin/true"));
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    eventually("the instance is known to be unavailable", || async {
        (instance_of(&server, &instance).await["health"] == "unavailable").then_some(())
    })
    .await;
    let answer = space.submit("r1", "get_url", json!({})).await;
    let error = answer.expect_error(503, "runtime_not_ready");
    let details = error["details"].to_string();
    assert_eq!(error["details"]["reason"], "ended_early");
    assert_eq!(error["retryable"], true);
    assert!(
        answer.header("retry-after").is_some_and(|text| text.parse::<u64>().is_ok()),
        "{}",
        answer.text()
    );
    let tasks = space.tasks().await;
    assert_eq!(tasks[0]["error"]["code"], "runtime_not_ready");
    assert!(details.contains(tasks[0]["task_id"].as_str().expect("an id")), "the error names it: {details}");
    assert!(!space.kinds().await.contains(&"started".to_owned()));
    assert!(!answer.text().contains("/usr/bin"), "no path is told: {}", answer.text());
    space.close().await.expect(200);
    space.becomes("closed").await;
}

#[tokio::test]
async fn a_draining_server_takes_nothing_new_and_ends_everything() {
    let mut server = Server::start(ServerOptions::default().arg("--drain-seconds").arg("10"));
    let operator = server.operator();
    let (mut spaces, mut tasks) = (Vec::new(), Vec::new());
    for script in [Script::delay_ms(700), Script::delay_ms(600_000)] {
        let instance = operator.scripted_instance(&["default"]).await;
        let space = operator.open(&SpaceRequest::new("default", &instance)).await;
        tasks.push(space.play("r1", &script).await.expect(202).field("task_id"));
        spaces.push(space);
    }
    let free = operator.scripted_instance(&["default"]).await;
    let drain = operator.post("/server/drain", &json!({})).await;
    assert!(drain.status.is_success(), "{}", drain.text());
    let request = SpaceRequest::new("default", &free);
    let refused = operator.post(&request.path(), &request.body()).await;
    refused.expect_error(503, "shutting_down");
    assert!(refused.header("retry-after").is_some());
    let submit = spaces[0].play("r2", &Script::ok()).await;
    assert!([409, 503].contains(&submit.status.as_u16()), "{}", submit.text());
    operator.get("/readyz").await.expect(503);
    let exit = server.sigterm();
    assert!(exit.status.success(), "{exit:#?}");
    server.again();
    for (space, task) in spaces.iter().zip(&tasks) {
        assert_eq!(space.status().await, "closed");
        let ended = space.ended(task).await;
        assert!(["completed", "cancelled"].contains(&ended["status"].as_str().expect("a status")), "{ended}");
    }
    assert_eq!(spaces[0].ended(&tasks[0]).await["status"], "completed", "it got the time to finish");
    let instances = operator.get("/browser-instances").await.expect(200);
    assert!(instances.list().iter().all(|one| one["reserved"] == false), "reservations are released");
}

#[tokio::test]
async fn c17_sigterm_ends_a_server_with_a_wedged_runtime_within_its_drain_time() {
    let mut server = Server::start(ServerOptions::default().arg("--drain-seconds").arg("1"));
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let task = space.play("r1", &Script::outcome("hang")).await.expect(202).field("task_id");
    space.runs(&task).await;
    let begun = std::time::Instant::now();
    server.sigterm();
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "it took {:?}", begun.elapsed());
    server.again();
    let ended = space.ended(&task).await;
    assert_eq!(ended["status"], "failed", "an end was recorded: {ended}");
}

#[tokio::test]
async fn a_runtime_that_failed_to_start_once_is_started_again() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    server.script_starts("fail");
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    eventually("a start failed", || async {
        let log = operator.log_after(0).await;
        log.iter().any(|event| event["kind"] == "runtime_lost").then_some(())
    })
    .await;
    space.play("r1", &Script::ok()).await.expect_error(409, "space_in_error");
    server.script_starts("");
    space.becomes("idle").await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    server.journal().at_most_once();
}

#[tokio::test]
async fn a_browser_that_is_gone_is_named_as_the_reason_and_a_retry_is_not_advised() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let program = folder.path().join("chromium");
    std::fs::copy("/usr/bin/true", &program).expect("a program can be copied");
    let path = program.to_str().expect("UTF-8");
    let server = Server::start(ServerOptions::default().arg("--chromium").arg(path));
    std::fs::remove_file(&program).expect("it can be removed");
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    // Queued or refused at once: whichever it is, the task ends for the same reason.
    let answer = space.submit("r1", "get_url", json!({})).await;
    if answer.status == 503 {
        let refused = answer.expect_error(503, "runtime_not_ready");
        assert_eq!(
            (&refused["details"]["reason"], &refused["retryable"]),
            (&json!("no_executable"), &json!(false))
        );
    }
    let task = space.tasks().await[0]["task_id"].as_str().expect("an id").to_owned();
    let error = space.ended(&task).await["error"].clone();
    assert_eq!(error["code"], "runtime_not_ready");
    assert_eq!(error["details"], json!({ "reason": "no_executable" }));
    assert_eq!(error["message"], "the browser can not be started: no browser executable was found");
    assert_eq!((&error["retryable"], &error["may_have_run"]), (&json!(false), &json!(false)));
    let told = serde_json::to_string(&space.events().await).expect("JSON");
    assert!(!told.contains(path), "no path is told: {told}");
    space.close().await.expect(200);
}
