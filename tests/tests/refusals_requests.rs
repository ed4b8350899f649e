//! What is not a request of ours is refused clearly, in the envelope, and leaves nothing behind.

use browserspace_tests::{Client, Server, ServerOptions, Space, SpaceRequest, USUAL_CAPABILITIES};
use reqwest::Method;
use serde_json::{Value, json};

async fn scene() -> (Server, Client, Space) {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    (server, operator, space)
}

/// The Space has lived through nothing, and still works.
async fn untouched(space: &Space) {
    assert_eq!(space.kinds().await, ["opened"], "a refusal leaves nothing behind");
    space.complete("after", "get_url", json!({})).await;
}

fn task(field: &str, value: Value) -> Value {
    let mut body = json!({ "request_id": "r1", "capability": "get_url", "args": {} });
    body[field] = value;
    body
}

#[tokio::test]
async fn a_body_that_is_not_json_is_400() {
    let (_server, operator, space) = scene().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for body in ["", "{", "not json", "{\"request_id\": \"r1\",}", "\u{0}", &deep, "{\"a\": 1e}"] {
        let request = operator.request(Method::POST, &space.path("/tasks"));
        let answer =
            operator.send(request.header("content-type", "application/json").body(body.to_owned())).await;
        // An empty body and one that is too deep may also be told what is missing or too much.
        assert!([400, 422].contains(&answer.status.as_u16()), "{body:.20}: {}", answer.text());
        answer.expect_error(answer.status.as_u16(), "invalid_request");
    }
    let request =
        operator.request(Method::POST, &space.path("/tasks")).header("content-type", "application/json");
    operator.send(request.body("{not json")).await.expect_error(400, "invalid_request");
    let bytes =
        operator.request(Method::POST, &space.path("/tasks")).header("content-type", "application/json");
    operator.send(bytes.body(vec![b'"', 0xff, 0xfe, b'"'])).await.expect_error(400, "invalid_request");
    untouched(&space).await;
}

#[tokio::test]
async fn another_media_type_is_refused() {
    let (_server, operator, space) = scene().await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let request = operator.request(Method::POST, &space.path("/tasks")).header("content-type", kind);
        let answer = operator.send(request.body(task("args", json!({})).to_string())).await;
        assert!(answer.status.is_client_error(), "{}", answer.text());
        answer.expect_error(answer.status.as_u16(), "invalid_request");
    }
    untouched(&space).await;
}

#[tokio::test]
async fn a_field_that_is_unknown_missing_or_of_the_wrong_type_is_named() {
    let (_server, operator, space) = scene().await;
    let bad = [
        ("extra", task("extra", json!(1))),
        ("request_id", task("request_id", json!(7))),
        ("request_id", task("request_id", json!(""))),
        ("request_id", task("request_id", json!("x".repeat(65)))),
        ("request_id", task("request_id", json!("line\nbreak"))),
        ("request_id", json!({ "capability": "get_url", "args": {} })),
        ("capability", task("capability", json!(""))),
        ("capability", task("capability", json!("x".repeat(256)))),
        ("capability", task("capability", json!({}))),
        ("args", task("args", json!([]))),
        ("args", task("args", json!("{}"))),
        ("timeout_seconds", task("timeout_seconds", json!(0))),
        ("timeout_seconds", task("timeout_seconds", json!(601))),
        ("timeout_seconds", task("timeout_seconds", json!(-1))),
        ("timeout_seconds", task("timeout_seconds", json!(1.5))),
        ("timeout_seconds", task("timeout_seconds", json!("60"))),
    ];
    for (field, body) in bad {
        let answer = operator.post(&space.path("/tasks"), &body).await;
        let error = answer.expect_error(422, "invalid_request");
        assert!(error.to_string().contains(field), "{field} is named: {error}");
    }
    for body in [json!([]), json!(null), json!("text"), json!(7)] {
        operator.post(&space.path("/tasks"), &body).await.expect_error(422, "invalid_request");
    }
    untouched(&space).await;
}

#[tokio::test]
async fn a_create_with_a_bad_field_is_refused() {
    let (_server, operator, space) = scene().await;
    let free = operator.scripted_instance(&["default"]).await;
    let request = SpaceRequest::new("default", &free);
    let bad = [
        ("owner_type", json!("auditor")),
        ("owner_type", json!(1)),
        ("owner_id", json!("")),
        ("owner_id", json!("with space")),
        ("granted_capabilities", json!("navigate")),
        ("granted_capabilities", json!([1])),
        ("idle_timeout_seconds", json!(9)),
        ("idle_timeout_seconds", json!(86_401)),
        ("role", json!("operator")),
        ("workspace_id", json!("team-b")),
    ];
    for (field, value) in bad {
        let body = request.clone().with(field, value).body();
        let answer = operator.post(&request.path(), &body).await;
        let error = answer.expect_error(422, "invalid_request");
        assert!(error.to_string().contains(field), "{field} is named: {error}");
    }
    let unknown = request.clone().granting(&["navigate", "no_such_thing"]);
    assert_eq!(operator.post(&request.path(), &unknown.body()).await.status, 422);
    let listed = operator.get(&request.path()).await.expect(200);
    assert_eq!(listed.list().len(), 1, "no Space was made");
    operator.open(&request).await;
    untouched(&space).await;
}

#[tokio::test]
async fn an_id_that_is_unknown_or_no_id_is_404() {
    let (_server, operator, space) = scene().await;
    let spaces = "/workspaces/default/browser-spaces";
    let absent = "00000000000000000000000000";
    for id in [
        format!("spc_{absent}"),
        "nonsense".to_owned(),
        "..".to_owned(),
        "%2e%2e%2f".to_owned(),
        "x".repeat(5000),
        space.id.to_uppercase(),
        "%00".to_owned(),
    ] {
        let answer = operator.get(&format!("{spaces}/{id}")).await;
        assert_eq!(answer.status, 404, "{}", answer.text());
        assert!(answer.json["error"]["code"].is_string(), "in the envelope: {}", answer.text());
    }
    operator.get(&format!("{spaces}/spc_{absent}")).await.expect_error(404, "space_not_found");
    for id in [format!("tsk_{absent}"), "nonsense".to_owned(), space.id.clone()] {
        space.task(&id).await.expect_error(404, "task_not_found");
    }
    for id in [format!("ins_{absent}"), "nonsense".to_owned()] {
        let path = format!("/browser-instances/{id}/retire");
        operator.post(&path, &json!({})).await.expect_error(404, "instance_not_found");
        let request = SpaceRequest::new("default", &id);
        let answer = operator.post(&request.path(), &request.body()).await;
        assert!([404, 422].contains(&answer.status.as_u16()), "{}", answer.text());
    }
    let revoke = format!("/workspaces/default/bindings/bnd_{absent}/revoke");
    operator.post(&revoke, &json!({})).await.expect_error(404, "binding_not_found");
    let request =
        SpaceRequest::new("default", &space.instance).with("binding_id", json!(format!("bnd_{absent}")));
    operator.post(&request.path(), &request.body()).await.expect_error(404, "binding_not_found");
    assert_eq!(space.artifact(&format!("art_{absent}")).await.status, 404);
    untouched(&space).await;
}

#[tokio::test]
async fn an_unknown_route_or_method_is_answered_in_the_envelope() {
    let (_server, operator, space) = scene().await;
    for path in ["/nowhere", "/workspaces", "/workspaces/default", "/workspaces/default/browser-spaces/"] {
        let answer = operator.get(path).await;
        assert_eq!(answer.status, 404, "{path} {}", answer.text());
        assert!(answer.json["error"]["message"].is_string(), "{}", answer.text());
    }
    for (method, path) in [(Method::DELETE, space.path("")), (Method::PUT, space.path("/tasks"))] {
        let answer = operator.send(operator.request(method, &path)).await;
        assert_eq!(answer.status, 405, "{}", answer.text());
        assert!(answer.header("allow").is_some(), "{}", answer.text());
        assert!(answer.json["error"]["code"].is_string(), "{}", answer.text());
    }
    untouched(&space).await;
}

#[tokio::test]
async fn what_is_too_large_is_refused_with_its_bound() {
    let (_server, operator, space) = scene().await;
    let huge = task("args", json!({ "text": "x".repeat(2100 * 1024) }));
    let answer = operator.post(&space.path("/tasks"), &huge).await;
    answer.expect_error(413, "invalid_request");
    let request = operator.request(Method::GET, &space.path("")).header("x-filler", "y".repeat(20_000));
    let answer = operator.send(request).await;
    assert!(answer.status.is_client_error(), "{}", answer.text());
    let answer = operator.get(&space.path(&format!("?filler={}", "z".repeat(20_000)))).await;
    assert!(answer.status.is_client_error(), "{}", answer.text());
    untouched(&space).await;
}

#[tokio::test]
async fn parameters_out_of_range_are_refused() {
    let (_server, operator, space) = scene().await;
    let list = "/workspaces/default/browser-spaces";
    for query in ["limit=0", "limit=x", "limit=-1", "status=nonsense"] {
        operator.get(&format!("{list}?{query}")).await.expect_error(422, "invalid_request");
    }
    for wait in ["wait=61", "wait=-1", "wait=x"] {
        let body = task("request_id", json!("p1"));
        let answer = operator.post_with(&space.path("/tasks"), &body, "prefer", wait).await;
        // A preference may also be ignored (RFC 7240, section 2); what it may not do is wait longer than a minute.
        assert!([200, 202, 422].contains(&answer.status.as_u16()), "{}", answer.text());
        space.becomes("idle").await;
    }
    let request = operator.request(Method::GET, &space.path("")).header("x-min-position", "99999999");
    let answer = operator.send(request).await;
    assert_eq!(
        answer.status,
        503,
        "a position that never comes is waited for at most 2 s: {}",
        answer.text()
    );
    assert!(answer.header("retry-after").is_some());
}

#[tokio::test]
async fn the_servers_own_pages_are_there() {
    let (_server, operator, _space) = scene().await;
    let anonymous = operator.anonymous();
    anonymous.get("/healthz").await.expect(200);
    anonymous.get("/readyz").await.expect(200);
    let document = anonymous.get("/openapi.json").await.expect(200);
    assert!(document.json["paths"].as_object().is_some_and(|paths| paths.len() >= 20), "{}", document.text());
    let page = anonymous.get("/docs").await.expect(200);
    assert!(
        page.header("content-security-policy").is_some_and(|policy| !policy.contains("unsafe")),
        "{}",
        page.text()
    );
    let metrics = operator.get("/metrics").await.expect(200);
    assert!(String::from_utf8_lossy(&metrics.bytes).contains("browserspace_"));
    anonymous.get("/metrics").await.expect_error(401, "unauthenticated");
    let catalogue = operator.get("/capabilities").await.expect(200);
    let names: Vec<_> = catalogue.list().iter().map(|one| one["name"].as_str().expect("a name")).collect();
    for name in USUAL_CAPABILITIES {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
}
