//! Whatever is asked, the answer is in the envelope and has its headers.

use axum::{Router, middleware::from_fn_with_state, routing::get};
use proptest::prelude::*;

use super::*;
use futures::StreamExt as _;

use crate::openapi::routes;

#[tokio::test]
async fn every_operation_of_the_document_is_a_route_and_asks_for_a_token_first() {
    let server = Server::start().await;
    for (method, path, needs_token) in routes() {
        let path = path.replace(['{', '}'], "");
        let method: Method = method.to_uppercase().parse().expect("a method");
        let ask = Ask { method, ..Ask::get(&path) };
        let reply = server.send(ask).await;
        if needs_token {
            reply.refused(401, "unauthenticated");
            assert!(
                reply.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")),
                "{path}"
            );
        } else {
            assert_eq!(reply.status, StatusCode::OK, "{path}: {}", reply.text);
        }
    }
}

#[tokio::test]
async fn every_answer_carries_its_ids_and_keeps_itself_harmless() {
    let server = Server::start().await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for path in ["/healthz", "/nowhere", "/api/v1/capabilities", "/docs", "/api/v1/log?token=x"] {
        let ask =
            Ask::get(path).by(&server.operator).with("x-request-id", "job-1").with("traceparent", trace);
        let reply = server.send(ask).await;
        assert_eq!(reply.header("x-request-id"), Some("job-1"), "{path}");
        let answered = reply.header("traceparent").expect("a traceparent");
        assert!(answered.starts_with("00-0af7651916cd43dd8448eb211c80319c-"), "{path}: {answered}");
        assert!(!answered.contains("b7ad6b7169203331"), "{path}: the span is the server's own");
        assert!(reply.header("x-log-position").and_then(|text| text.parse::<u64>().ok()).is_some(), "{path}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(
            reply.header("content-security-policy").is_some_and(|csp| csp.starts_with("default-src 'none'"))
        );
    }
}

#[tokio::test]
async fn unknown_routes_and_methods_are_told_in_the_envelope() {
    let server = Server::start().await;
    for path in ["/nowhere", "/assets/nowhere", "/api/v1/nowhere"] {
        let reply = server.send(Ask::get(path)).await;
        reply.refused(404, "route_not_found");
        assert!(reply.text.contains("GET /docs shows those that exist"), "{}", reply.text);
    }
    let reply = server.send(Ask { method: Method::DELETE, ..Ask::get("/healthz") }).await;
    reply.refused(405, "method_not_allowed");
    assert!(reply.header("allow").is_some_and(|allow| allow.contains("GET")), "{:?}", reply.headers);
}

#[tokio::test]
async fn c01_c02_f10_names_pages_and_tokens_in_addresses_are_refused_on_every_route() {
    let server = Server::start().await;
    for path in ["/healthz", "/api/v1/log", "/docs", "/nowhere"] {
        let ask = || Ask::get(path).by(&server.operator).with("accept", "text/event-stream");
        server.send(ask().with("host", "evil.example:7000")).await.refused(403, "forbidden");
        server.send(ask().with("origin", "http://127.0.0.1.evil.example")).await.refused(403, "forbidden");
        let query = format!("{path}?access_token={}", server.operator);
        let reply = server.send(Ask::get(&query)).await;
        reply.refused(401, "unauthenticated");
        assert!(
            !reply.text.contains(&server.operator)
                && !format!("{:?}", reply.headers).contains(&server.operator)
        );
    }
}

#[tokio::test]
async fn bodies_headers_and_addresses_beyond_their_bounds_are_refused() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let tasks = format!("{space}/tasks");
    let post = |body: String, kind: &str| {
        let ask = Ask { body: Body::from(body), method: Method::POST, ..Ask::get(&tasks) };
        server.send(ask.by(&agent).with("content-type", kind))
    };
    post(format!("{{\"request_id\": \"{}\"}}", "x".repeat(2_100_000)), "application/json")
        .await
        .refused(413, "invalid_request");
    post("{}".to_owned(), "text/plain").await.refused(415, "invalid_request");
    post("{".to_owned(), "application/json; charset=utf-8").await.refused(400, "invalid_request");
    let huge = Ask::get("/healthz").with("x-filler", "x".repeat(20_000));
    server.send(huge).await.refused(431, "invalid_request");
    let long = format!("/healthz?{}", "x".repeat(9_000));
    server.send(Ask::get(&long)).await.refused(414, "invalid_request");
}

#[tokio::test]
async fn a_panic_is_a_500_in_the_envelope() {
    async fn boom() -> &'static str {
        panic!("a bug")
    }
    let server = Server::start().await;
    // The same outermost layer, around a route that no server has.
    let app = server.app();
    let router = Router::new()
        .route("/boom", get(boom))
        .layer(from_fn_with_state(app.clone(), crate::http::exchange::surround))
        .with_state(app);
    let response = router.oneshot(Ask::get("/boom").request()).await.expect("an answer");
    let reply = Reply::of(response).await;
    reply.refused(500, "internal");
    assert!(reply.header("x-request-id").is_some() && !reply.text.contains("a bug"));
}

/// For each body of the document: a route that takes it, and one that is accepted.
fn samples(space: &str, instance: &str) -> Vec<(&'static str, String, Value)> {
    vec![
        ("CreateSpace", format!("{WORKSPACE}/browser-spaces"), create(instance, "agent-a")),
        ("SubmitTask", format!("{space}/tasks"), navigate("r-1", "")),
        (
            "RegisterInstance",
            "/api/v1/browser-instances".to_owned(),
            json!({ "kind": "scripted", "bundle": "standard" }),
        ),
        ("GrantBinding", format!("{WORKSPACE}/bindings"), json!({ "browser_instance_id": instance })),
        ("IssueToken", format!("{WORKSPACE}/tokens"), json!({ "role": "auditor", "owner_id": "eve" })),
        ("Drain", "/api/v1/server/drain".to_owned(), json!({})),
        ("Nothing", format!("{space}/cancel"), json!({})),
    ]
}

#[tokio::test]
async fn the_fields_of_the_document_are_the_fields_of_the_routes() {
    let server = Server::start().await;
    let (_, space) = server.agent_with_space().await;
    let instance = server.instance("team").await;
    let document: Value = serde_json::from_str(&crate::openapi::json()).expect("the document");
    for (name, path, sample) in samples(&space, &instance) {
        let schema = &document["components"]["schemas"][name];
        for field in schema["properties"].as_object().expect("properties").keys() {
            let mut body = sample.clone();
            body[field] = if field == "args" { json!("SECRET") } else { json!({ "SECRET": ["SECRET"] }) };
            let details = server.post(&server.operator, &path, body).await.refused(422, "invalid_request");
            let told = details["field"].as_str().expect("a field");
            assert_eq!(told.split('.').next(), Some(field.as_str()), "{name}.{field}");
        }
        for field in schema["required"].as_array().expect("required").iter().filter_map(Value::as_str) {
            let mut body = sample.clone();
            body.as_object_mut().expect("an object").shift_remove(field);
            let details = server.post(&server.operator, &path, body).await.refused(422, "invalid_request");
            assert_eq!(details["field"], field, "{name}");
        }
        let mut body = sample.clone();
        body["surplus"] = json!("SECRET");
        let reply = server.post(&server.operator, &path, body).await;
        assert_eq!(reply.refused(422, "invalid_request")["field"], "surplus", "{name}");
        assert!(!reply.text.contains("SECRET"));
    }
}

#[test]
fn no_body_makes_a_route_panic_or_leave_the_envelope() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (server, routes) = runtime.block_on(async {
        let server = Server::start().await;
        let (_, space) = server.agent_with_space().await;
        let instance = server.instance("team").await;
        (server, samples(&space, &instance))
    });
    let bodies = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        "[\\[\\]{}\":,0-9a-z\\\\ ]{0,80}".prop_map(String::into_bytes),
        r#"\{"(kind|role|request_id|args|bundle)": ("[a-z]{0,8}"|-?[0-9]{1,25}|null|\[\]|\{\}|true)\}"#
            .prop_map(String::into_bytes),
    ];
    proptest!(ProptestConfig::with_cases(200), |(body in bodies, index in 0..6usize)| {
        let (_, path, _) = &routes[index];
        // An empty body, and one that says nothing, begin a drain; every other route needs fields.
        prop_assume!(index != 5 || (!body.is_empty() && !matches!(serde_json::from_slice(&body), Ok(Value::Object(_)))));
        let ask = Ask { body: Body::from(body), method: Method::POST, ..Ask::get(path) };
        let ask = ask.by(&server.operator).with("content-type", "application/json");
        let reply = runtime.block_on(server.send(ask));
        prop_assert!(reply.status.is_client_error(), "{} {}", reply.status, reply.text);
        prop_assert!(reply.json()["error"]["code"].is_string(), "{}", reply.text);
    });
}

#[tokio::test]
async fn a_parameter_that_a_route_does_not_know_is_refused_on_every_route() {
    let server = Server::start().await;
    let (token, space) = server.agent_with_space().await;
    let space_id = space.rsplit('/').next().expect("an id");
    for (method, path, needs_token) in routes() {
        if !needs_token || !path.starts_with("/api/v1/") {
            continue;
        }
        let path = path.replace("{workspace_id}", "team").replace("{space_id}", space_id);
        // What has yet another id in it is refused for the parameter before that is looked at.
        let path = path.replace(['{', '}'], "");
        let caller = if path.contains("browser-spaces/") { &token } else { &server.operator };
        for query in ["surprise=1", "surprise"] {
            let method: Method = method.to_uppercase().parse().expect("a method");
            let address = format!("{path}?{query}");
            let reply = server.send(Ask { method, ..Ask::get(&address) }.by(caller)).await;
            reply.refused(422, "invalid_request");
            assert!(reply.text.contains("surprise"), "{address}: {}", reply.text);
        }
    }
    for query in ["limit=", "cursor=", "after_sequence="] {
        let route = if query.starts_with("after") { "events" } else { "tasks" };
        let reply = server.get(&token, &format!("{space}/{route}?{query}")).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}: {}", reply.text);
    }
}

#[tokio::test]
async fn a_body_that_is_compressed_or_of_another_charset_is_refused_and_plain_json_is_not() {
    let server = Server::start().await;
    let (token, space) = server.agent_with_space().await;
    let tasks = format!("{space}/tasks");
    let ask = |id: &str| Ask { headers: Vec::new(), ..Ask::post(&tasks, navigate(id, "")) }.by(&token);
    for (name, value) in [
        ("content-encoding", "gzip"),
        ("content-encoding", "identity, br"),
        ("content-type", "application/json; charset=utf-16"),
        ("content-type", "text/json"),
    ] {
        let mut asked = ask("r1").with(name, value);
        if name != "content-type" {
            asked = asked.with("content-type", "application/json");
        }
        server.send(asked).await.refused(415, "invalid_request");
    }
    let plain = ask("r2").with("content-type", "Application/JSON ; Charset=\"UTF-8\"");
    let reply = server.send(plain.with("content-encoding", "identity")).await;
    assert!(reply.status.is_success(), "{}", reply.text);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_in_time_is_told_so_and_nothing_is_recorded() {
    let config = HttpConfig { request_timeout_seconds: 1, ..HttpConfig::default() };
    let server = Server::with(config).await;
    let (token, space) = server.agent_with_space().await;
    let tasks = format!("{space}/tasks");
    let body = Body::from_stream(futures::stream::once(async { Ok::<_, std::io::Error>("{") }).chain(
        futures::stream::once(async { std::future::pending::<Result<&str, std::io::Error>>().await }),
    ));
    let ask = Ask { body, ..Ask::post(&tasks, json!({})) }.by(&token);
    server.send(ask).await.refused(408, "invalid_request");
    let kinds = server.get(&token, &format!("{space}/events")).await;
    assert_eq!(kinds.json()["data"].as_array().map(Vec::len), Some(1), "{}", kinds.text);
}

#[tokio::test]
async fn the_longest_text_that_a_capability_takes_fits_into_the_body_of_its_task() {
    let server = Server::start().await;
    let (token, space) = server.agent_with_space().await;
    for (number, letter) in [(1, "\u{6f22}"), (2, "\u{1f98a}"), (3, "\u{1}")] {
        let mut task = navigate(&format!("r{number}"), "");
        task["args"]["url"] = Value::from(letter.repeat(100_000));
        let reply = server
            .send(Ask::post(&format!("{space}/tasks"), task).by(&token).with("prefer", "wait=30"))
            .await;
        assert_eq!(reply.status, StatusCode::OK, "{letter:?}: {}", reply.text);
    }
    let long = json!({ "role": "auditor", "owner_id": "x".repeat(300 * 1024) });
    let refused = server.post(&server.operator, &format!("{WORKSPACE}/tokens"), long).await;
    refused.refused(413, "invalid_request");
}
