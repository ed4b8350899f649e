//! Who is not known, may not, or comes from the wrong place is refused (C1, C2, C4, C14).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use browserspace_tests::{Answer, Client, Server, ServerOptions, SpaceRequest, eventually};
use reqwest::Method;
use serde_json::json;

const SPACES: &str = "/workspaces/default/browser-spaces";

#[tokio::test]
async fn c04_no_or_a_forged_token_is_401() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let token = server.operator_token();
    let forged = [
        String::new(),
        "bst_".to_owned(),
        format!("{token}x"),
        token[..token.len() - 1].to_owned(),
        token.to_uppercase(),
        format!("bst_{}", "A".repeat(43)),
        "x".repeat(4000),
    ];
    for forged in &forged {
        let answer = operator.bearing(forged).get(SPACES).await;
        answer.expect_error(401, "unauthenticated");
        assert!(
            answer.header("www-authenticate").is_some_and(|how| how.starts_with("Bearer")),
            "{}",
            answer.text()
        );
    }
    operator.anonymous().get(SPACES).await.expect_error(401, "unauthenticated");
    let anonymous = operator.anonymous();
    for (name, value) in [
        ("authorization", format!("Basic {token}")),
        ("authorization", token.clone()),
        ("cookie", format!("token={token}")),
        ("x-api-key", token.clone()),
        ("sec-websocket-protocol", token.clone()),
    ] {
        let request = anonymous.request(Method::GET, SPACES).header(name, value);
        anonymous.send(request).await.expect_error(401, "unauthenticated");
    }
    operator.get(SPACES).await.expect(200);
}

#[tokio::test]
async fn c04_a_token_in_a_query_is_refused_and_not_printed() {
    let server = Server::start(ServerOptions::default().arg("--log-filter").arg("trace"));
    let operator = server.operator();
    let token = server.operator_token();
    for name in ["token", "access_token", "api_key"] {
        for client in [operator.anonymous(), operator.clone()] {
            let answer = client.get(&format!("{SPACES}?{name}={token}")).await;
            answer.expect_error(401, "unauthenticated");
            assert!(!answer.text().contains(&token), "{}", answer.text());
        }
    }
    assert!(!server.output().contains(&token));
}

#[tokio::test]
async fn c04_a_revoked_token_is_refused_at_once_and_after_a_restart() {
    let mut server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let path = "/workspaces/default/tokens";
    let body = json!({ "role": "runtime_agent", "owner_id": "agent-1" });
    let made = operator.post(path, &body).await.expect(201);
    let agent = server.client(&made.field("token"));
    agent.get(SPACES).await.expect(200);
    let listed = operator.get(path).await.expect(200);
    assert!(!listed.text().contains(&made.field("token")), "shown once");
    let revoke = format!("{path}/{}/revoke", made.field("token_id"));
    agent.post(&revoke, &json!({})).await.expect_error(403, "forbidden");
    for _ in 0..2 {
        operator.post(&revoke, &json!({})).await.expect(200);
    }
    agent.get(SPACES).await.expect_error(401, "unauthenticated");
    server.restart();
    agent.get(SPACES).await.expect_error(401, "unauthenticated");
    let absent = format!("{path}/tok_00000000000000000000000000/revoke");
    operator.post(&absent, &json!({})).await.expect_error(404, "token_not_found");
}

#[tokio::test]
async fn c04_an_expired_token_is_refused() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let path = "/workspaces/default/tokens";
    let in_two_seconds = rfc3339(SystemTime::now() + Duration::from_secs(2));
    let body = json!({ "role": "runtime_agent", "owner_id": "agent-1", "expires_at": in_two_seconds });
    let agent = server.client(&operator.post(path, &body).await.expect(201).field("token"));
    agent.get(SPACES).await.expect(200);
    eventually("the token ends", || async { (agent.get(SPACES).await.status == 401).then_some(()) }).await;
    agent.get(SPACES).await.expect_error(401, "unauthenticated");
    for past in ["2001-01-01T00:00:00Z", "tomorrow", ""] {
        let body = json!({ "role": "runtime_agent", "owner_id": "agent-1", "expires_at": past });
        operator.post(path, &body).await.expect_error(422, "invalid_request");
    }
}

/// RFC 3339 in UTC, by days since the epoch (civil-from-days).
fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[tokio::test]
async fn c14_a_role_is_no_more_than_the_token_says() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let agent = server.agent("default", "agent-1").await;
    let lead = server.client(&operator.issue_token("default", "operator", "lead").await);
    let instance = json!({ "kind": "scripted", "bundle": "standard", "workspaces": ["default"] });
    let token = json!({ "role": "operator", "owner_id": "agent-1" });
    let binding = json!({ "browser_instance_id": operator.scripted_instance(&["default"]).await });
    for (path, body) in [
        ("/browser-instances", &instance),
        ("/workspaces/default/tokens", &token),
        ("/workspaces/default/bindings", &binding),
        ("/server/drain", &json!({})),
    ] {
        agent.post(path, body).await.expect_error(403, "forbidden");
    }
    let everywhere = json!({ "role": "operator", "owner_id": "lead", "all_workspaces": true });
    lead.post("/workspaces/default/tokens", &everywhere).await.expect_error(403, "forbidden");
    lead.post("/workspaces/team-z/tokens", &token).await.expect_error(403, "forbidden");
    lead.post("/workspaces/default/tokens", &token).await.expect(201);
    let claimed = SpaceRequest::new("default", binding["browser_instance_id"].as_str().expect("an id"));
    agent.post(&claimed.path(), &claimed.body()).await.expect_error(403, "forbidden");
}

async fn from(client: &Client, method: Method, path: &str, name: &str, value: &str) -> Answer {
    client.send(client.request(method, path).header(name, value)).await
}

#[tokio::test]
async fn c01_another_host_name_is_refused_everywhere() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let address = server.address();
    let port = address.rsplit(':').next().expect("an address has a port");
    let paths = [SPACES.to_owned(), "/healthz".to_owned(), "/metrics".to_owned(), space.path("/events")];
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example@127.0.0.1"]
    {
        for path in &paths {
            let answer = from(&operator, Method::GET, path, "host", &format!("{host}:{port}")).await;
            assert!(answer.status.is_client_error(), "{host} {path}: {}", answer.text());
        }
        let stream =
            operator.request(Method::GET, &space.path("/events")).header("accept", "text/event-stream");
        let stream =
            stream.header("host", format!("{host}:{port}")).header("origin", format!("http://{host}:{port}"));
        assert!(operator.send(stream).await.status.is_client_error());
    }
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        from(&operator, Method::GET, SPACES, "host", &format!("{host}:{port}")).await.expect(200);
    }
}

#[tokio::test]
async fn c02_another_origin_is_refused_on_whatever_changes_or_streams() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let address = server.address();
    let port: u16 = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let foreign = [
        "http://127.0.0.1.evil.example".to_owned(),
        format!("http://127.0.0.1.evil.example:{port}"),
        "null".to_owned(),
        format!("http://127.0.0.1:{}", port ^ 1),
        format!("HTTP://127.0.0.1:{port}"),
        format!("https://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}/"),
        String::new(),
    ];
    for origin in &foreign {
        let close =
            operator.request(Method::POST, &space.path("/close")).header("origin", origin).json(&json!({}));
        operator.send(close).await.expect_error(403, "forbidden");
        let stream =
            operator.request(Method::GET, &space.path("/events")).header("accept", "text/event-stream");
        operator.send(stream.header("origin", origin)).await.expect_error(403, "forbidden");
    }
    assert_eq!(space.status().await, "idle");
    let own =
        operator.request(Method::POST, &space.path("/close")).header("origin", &address).json(&json!({}));
    operator.send(own).await.expect(200);
    let anonymous = operator.anonymous().post(&space.path("/close"), &json!({})).await;
    anonymous.expect_error(401, "unauthenticated");
}

#[tokio::test]
async fn a_caller_over_its_rate_is_told_when_to_come_back() {
    let options = ServerOptions::default().with_rate_limits();
    let options = options.env("BROWSERSPACE_HTTP__RATE_PER_SECOND", "5").env("BROWSERSPACE_HTTP__BURST", "5");
    let server = Server::start(options);
    let operator = server.operator();
    let answer = eventually("the rate is over", || async {
        let answer = operator.get(SPACES).await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    answer.expect_error(429, "rate_limited");
    let seconds: Option<u64> = answer.header("retry-after").and_then(|text| text.parse().ok());
    assert!(seconds.is_some_and(|seconds| (1..=60).contains(&seconds)), "{}", answer.text());
    eventually("it is let in again", || async { (operator.get(SPACES).await.status == 200).then_some(()) })
        .await;
}

#[tokio::test]
async fn c04_failed_authentications_are_rate_limited() {
    let options = ServerOptions::default().env("BROWSERSPACE_HTTP__FAILURES_PER_MINUTE", "10");
    let server = Server::start(options);
    let operator = server.operator();
    let mut limited = None;
    for _ in 0..50 {
        let answer = operator.bearing("bst_guess").get(SPACES).await;
        if answer.status == 429 {
            limited = Some(answer);
            break;
        }
        answer.expect_error(401, "unauthenticated");
    }
    let limited = limited.expect("guessing ends");
    limited.expect_error(429, "rate_limited");
    assert!(limited.header("retry-after").is_some());
}

#[tokio::test]
async fn c16_open_streams_are_bounded_per_principal() {
    let options = ServerOptions::default().env("BROWSERSPACE_HTTP__STREAMS_PER_PRINCIPAL_MAX", "2");
    let server = Server::start(options);
    let operator = server.operator();
    let first = operator.stream("/log", None).await;
    let _second = operator.stream("/log", None).await;
    let ask = || operator.request(Method::GET, "/log").header("accept", "text/event-stream");
    let answer = operator.send(ask()).await;
    answer.expect_error(answer.status.as_u16(), "overloaded");
    assert!(answer.status == 429 || answer.status == 503, "{}", answer.text());
    drop(first);
    eventually("a closed stream is given back", || async {
        let response = ask().send().await.expect("the server answers");
        (response.status() == 200).then_some(())
    })
    .await;
}
