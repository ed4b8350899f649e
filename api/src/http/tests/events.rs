//! Events: pages, streams, what is in them and what is not.

use axum::body::BodyDataStream;
use futures::StreamExt as _;

use super::*;

/// A Space with some tasks behind it.
async fn with_history(server: &Server, tasks: usize) -> (String, String) {
    let (agent, space) = server.agent_with_space().await;
    for number in 0..tasks {
        let path = format!("{space}/tasks");
        let body = navigate(&format!("r-{number}"), "password=SECRET");
        server.send(Ask::post(&path, body).by(&agent).with("prefer", "wait=10")).await.expect(StatusCode::OK);
    }
    (agent, space)
}

fn sequences(data: &Value) -> Vec<u64> {
    data.as_array()
        .expect("a list")
        .iter()
        .map(|event| event["sequence"].as_u64().expect("a number"))
        .collect()
}

#[tokio::test]
async fn s13_a_page_of_events_is_ascending_bounded_and_resumes() {
    let server = Server::start().await;
    let (agent, space) = with_history(&server, 2).await;
    let events = format!("{space}/events");
    let all = server.get(&agent, &events).await;
    let found = sequences(&all.expect(StatusCode::OK));
    assert_eq!(found, (1..=found.len() as u64).collect::<Vec<_>>(), "without a gap");
    assert_eq!(all.json()["next"], Value::Null);
    let first = server.get(&agent, &format!("{events}?limit=2")).await;
    assert_eq!(sequences(&first.expect(StatusCode::OK)), [1, 2]);
    assert_eq!(first.json()["next"], "2");
    let rest = server.get(&agent, &format!("{events}?after_sequence=2")).await;
    assert_eq!(sequences(&rest.expect(StatusCode::OK)), found[2..]);
    let head = found.len();
    for bad in [
        format!("{}", head + 1),
        "-1".to_owned(),
        "x".to_owned(),
        "1.0".to_owned(),
        "99999999999999999999".to_owned(),
    ] {
        let query = format!("{events}?after_sequence={bad}");
        let live = || Ask::get(&events).by(&agent).with("accept", "text/event-stream");
        let log = format!("/api/v1/log?after_position={}", bad.replace(&(head + 1).to_string(), "99999"));
        for (ask, field) in [
            (Ask::get(&query).by(&agent), "after_sequence"),
            (live().with("last-event-id", bad), "Last-Event-ID"),
            (Ask::get(&log).by(&server.operator), "after_position"),
        ] {
            let reply = server.send(ask).await;
            assert_eq!(reply.refused(422, "invalid_cursor")["field"], field);
            let error = &reply.json()["error"];
            assert!(error["message"].as_str().is_some_and(|said| said.starts_with(field)), "{error}");
        }
    }
    server.get(&agent, &format!("{events}?limit=101")).await.refused(422, "invalid_request");
}

#[tokio::test]
async fn s12_no_event_shows_args_hashes_or_keys() {
    let server = Server::start().await;
    with_history(&server, 1).await;
    let mut seen = String::new();
    let mut after = "0".to_owned();
    loop {
        let page = server.get(&server.operator, &format!("/api/v1/log?limit=3&after_position={after}")).await;
        page.expect(StatusCode::OK);
        seen.push_str(&page.text);
        let Some(next) = page.json()["next"].as_str().map(str::to_owned) else { break };
        after = next;
    }
    for kind in ["opened", "queued", "completed", "token_issued", "registered", "reserved", "booted"] {
        assert!(seen.contains(&format!("\"kind\":\"{kind}\"")), "{kind}: {seen}");
    }
    for hidden in ["SECRET", "fingerprint", "sealed", "hash", "ciphertext", "idempotency", "nonce", "bst_"] {
        assert!(!seen.contains(hidden), "{hidden}: {seen}");
    }
}

#[tokio::test]
async fn the_log_shows_each_overseer_its_own_workspaces() {
    let server = Server::start().await;
    with_history(&server, 1).await;
    let theirs = server.token("/api/v1/workspaces/other", "auditor", "anna").await;
    let page = server.get(&theirs, "/api/v1/log").await;
    let events = page.expect(StatusCode::OK);
    let events = events.as_array().expect("a list");
    assert!(!events.is_empty());
    for event in events {
        assert_eq!(event["workspace_id"], "other", "{event}");
    }
    assert!(!page.text.contains("booted"));
}

/// A stream that is being read.
struct Reader(BodyDataStream, String);

impl Reader {
    async fn open(server: &Server, token: &str, path: &str, last: Option<u64>) -> Self {
        let mut ask = Ask::get(path).by(token).with("accept", "text/event-stream");
        if let Some(last) = last {
            ask = ask.with("last-event-id", last.to_string());
        }
        let response = server.raw(ask.request()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self(response.into_body().into_data_stream(), String::new())
    }

    /// Reads until the text holds this, or the stream ends.
    async fn until(&mut self, text: &str) -> &str {
        while !self.1.contains(text) {
            let chunk = tokio::time::timeout(Duration::from_secs(10), self.0.next());
            match chunk.await.expect("the stream says something in time") {
                Some(Ok(bytes)) => self.1.push_str(&String::from_utf8_lossy(&bytes)),
                _ => break,
            }
        }
        &self.1
    }

    async fn rest(mut self) -> String {
        self.until("\0").await;
        self.1
    }
}

fn ids(text: &str) -> Vec<u64> {
    text.lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .map(|id| id.parse().expect("a number"))
        .collect()
}

#[tokio::test]
async fn s13_a_stream_replays_goes_live_resumes_and_ends_with_its_space() {
    let server = Server::start().await;
    let (agent, space) = with_history(&server, 1).await;
    let events = format!("{space}/events");
    let mut first = Reader::open(&server, &agent, &events, None).await;
    first.until("\"kind\":\"completed\"").await;
    let mut second = Reader::open(&server, &agent, &format!("{events}?after_sequence=1"), Some(2)).await;
    server.post(&agent, &format!("{space}/close"), json!({})).await.expect(StatusCode::OK);
    let (first, second) = (first.rest().await, {
        second.until("\0").await;
        second.1
    });
    let all = ids(&first);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>(), "{first}");
    assert_eq!(ids(&second), all[2..], "no gap, no repeat");
    assert!(first.contains("\"kind\":\"closed\""));
    let end = "event: end\ndata: {\"reason\":\"complete\",";
    assert!(first.contains(end), "{first}");
    assert!(!first.split(end).last().expect("a rest").contains("id:"), "the end has no id");
    let again = Ask::get(&events).by(&agent).with("accept", "text/event-stream");
    let again = server.send(again.with("last-event-id", all.len().to_string())).await;
    assert_eq!(again.status, StatusCode::NO_CONTENT, "there is nothing to come back for");
}

#[tokio::test]
async fn f11_an_open_stream_ends_with_its_token() {
    // A heartbeat that comes too late: nothing but the revocation ends the stream.
    let server = Server::with(HttpConfig { heartbeat_seconds: 300, ..HttpConfig::default() }).await;
    let (agent, space) = server.agent_with_space().await;
    let mut reader = Reader::open(&server, &agent, &format!("{space}/events"), None).await;
    reader.until("\"kind\":\"opened\"").await;
    revoke(&server, "agent-a").await;
    let text = reader.rest().await;
    assert!(text.contains("\"reason\":\"token_ended\""), "{text}");
}

#[tokio::test]
async fn f11_a_stream_shows_nothing_that_came_after_its_token_ended() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let other = server.token(WORKSPACE, "auditor", "anna").await;
    let mut theirs = Reader::open(&server, &other, &format!("{space}/events"), None).await;
    theirs.until("\"kind\":\"opened\"").await;
    let mut reader = Reader::open(&server, &agent, &format!("{space}/events"), None).await;
    reader.until("\"kind\":\"opened\"").await;
    revoke(&server, "agent-a").await;
    server.post(&server.operator, &format!("{space}/close"), json!({})).await.expect(StatusCode::OK);
    let text = reader.rest().await;
    assert!(text.contains("\"reason\":\"token_ended\"") && !text.contains("closed"), "{text}");
    assert!(theirs.rest().await.contains("\"kind\":\"closed\""), "another's stream goes on");
}

async fn revoke(server: &Server, owner: &str) {
    let tokens = server.get(&server.operator, &format!("{WORKSPACE}/tokens")).await.expect(StatusCode::OK);
    let own = tokens.as_array().expect("a list").iter().find(|token| token["owner_id"] == owner);
    let id = own.expect("it is there")["token_id"].as_str().expect("an id");
    let revoke = format!("{WORKSPACE}/tokens/{id}/revoke");
    server.post(&server.operator, &revoke, json!({})).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn c16_a_slow_reader_is_cut_where_it_can_go_on() {
    let config =
        HttpConfig { stream_stall_seconds: 1, streams_per_principal_max: 1, ..HttpConfig::default() };
    let server = Server::with(config).await;
    with_history(&server, 30).await;
    let slow = Reader::open(&server, &server.operator, "/api/v1/log", None).await;
    let ask = || Ask::get("/api/v1/log").by(&server.operator).with("accept", "text/event-stream");
    let second = server.raw(ask().request()).await;
    // Asked before its body is read: of a stream it would not end.
    assert_eq!(second.status(), StatusCode::SERVICE_UNAVAILABLE);
    Reply::of(second).await.refused(503, "overloaded");
    // The stream's place is free again once it was cut; nothing of it was read meanwhile.
    let cut = async {
        while server.raw(ask().request()).await.status() != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), cut).await.expect("the slow reader is cut");
    let text = slow.rest().await;
    let read = ids(&text);
    assert_eq!(read, (1..=read.len() as u64).collect::<Vec<_>>(), "nothing was skipped");
    let end = format!("event: end\ndata: {{\"reason\":\"slow_reader\",\"last_id\":{}}}", read.len());
    assert!(text.contains(&end), "{text}");
}

#[tokio::test]
async fn a_stopping_server_ends_its_streams() {
    let server = Server::start().await;
    let reader = Reader::open(&server, &server.operator, "/api/v1/log", None).await;
    server.stopping.cancel();
    assert!(reader.rest().await.contains("\"reason\":\"server_stopping\""));
}
