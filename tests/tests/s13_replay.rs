//! Acceptance 13: replay is ascending, bounded, and resumes with `after_sequence` and with `Last-Event-ID`.

use std::time::Duration;

use browserspace_tests::{Script, Server, ServerOptions, Space, SpaceRequest};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
};

async fn scene(tasks: usize) -> (Server, Space) {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    for number in 0..tasks {
        space.play_out(&format!("r{number}"), &Script::ok()).await.expect(200);
    }
    (server, space)
}

fn sequences(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["sequence"].as_u64().expect("an event has a sequence")).collect()
}

#[tokio::test]
async fn s13_pages_are_ascending_bounded_and_without_a_gap() {
    let (_server, space) = scene(70).await;
    let first = space.events_page("").await.expect(200);
    assert_eq!(sequences(first.list()), (1..=100).collect::<Vec<_>>(), "at most 100 a page, from 1");
    let huge = space.events_page("limit=1000").await;
    assert!(huge.status == 422 || huge.list().len() <= 100, "{}", huge.text());
    let some = space.events_page("after_sequence=97&limit=5").await.expect(200);
    assert_eq!(sequences(some.list()), [98, 99, 100, 101, 102]);
    let all = space.events().await;
    let revision = space.show().await.expect(200).data()["revision"].as_u64().expect("a revision");
    assert_eq!(sequences(&all), (1..=revision).collect::<Vec<_>>());
    let positions: Vec<_> = all.iter().map(|event| event["position"].as_u64()).collect();
    assert!(positions.is_sorted_by(|one, next| one < next), "positions rise too");
    let end = space.events_page(&format!("after_sequence={revision}")).await.expect(200);
    assert!(end.list().is_empty(), "nothing follows the head, and that is no error");
}

#[tokio::test]
async fn s13_an_event_has_the_contracts_shape() {
    let (_server, space) = scene(1).await;
    for event in space.events().await {
        let contract =
            ["sequence", "position", "kind", "task_id", "payload", "principal", "recorded_at", "trace_id"];
        for field in event.as_object().expect("an event is an object").keys() {
            assert!(contract.contains(&field.as_str()), "{field} is not in the contract: {event}");
        }
        assert!(event["recorded_at"].as_str().is_some_and(|time| time.ends_with('Z')), "{event}");
        assert_eq!(event["trace_id"].as_str().map(str::len), Some(32), "{event}");
        assert!(event["principal"].is_object(), "{event}");
        assert_eq!(event["task_id"].is_string(), event["kind"] != "opened", "{event}");
    }
}

#[tokio::test]
async fn s13_a_bad_cursor_is_an_error_and_never_an_empty_page() {
    let (_server, space) = scene(1).await;
    for cursor in ["-1", "x", "1.5", "99999", "18446744073709551616", "%00"] {
        space.events_page(&format!("after_sequence={cursor}")).await.expect_error(422, "invalid_cursor");
    }
    let client = space.client();
    for path in ["/tasks?cursor=nonsense", "/tasks?cursor=%00"] {
        client.get(&space.path(path)).await.expect_error(422, "invalid_cursor");
    }
    client
        .get("/workspaces/default/browser-spaces?cursor=nonsense")
        .await
        .expect_error(422, "invalid_cursor");
    client.get("/log?after_position=99999999").await.expect_error(422, "invalid_cursor");
    for id in ["-1", "x", "99999"] {
        let request = client.request(reqwest::Method::GET, &space.path("/events"));
        let request = request.header("accept", "text/event-stream").header("last-event-id", id);
        client.send(request).await.expect_error(422, "invalid_cursor");
    }
}

#[tokio::test]
async fn s13_a_stream_replays_then_stays_live_and_resumes_without_gap_or_repeat() {
    let (_server, space) = scene(3).await;
    let mut stream = space.follow(None).await;
    let replayed = stream.take(10).await;
    let ids: Vec<u64> = replayed.iter().map(browserspace_tests::SseEvent::number).collect();
    assert_eq!(ids, (1..=10).collect::<Vec<_>>(), "replayed from the start, the id is the sequence");
    let bodies: Vec<Value> = replayed.iter().map(|event| event.data.clone()).collect();
    assert_eq!(bodies, space.events().await, "the same events as on the pages");
    space.play_out("live", &Script::ok()).await.expect(200);
    let live = stream.take(3).await;
    assert_eq!(
        live.iter().map(|event| event.data["kind"].clone()).collect::<Vec<_>>(),
        ["queued", "started", "completed"]
    );
    drop(stream);
    space.play_out("away", &Script::ok()).await.expect(200);
    let mut resumed = space.follow(Some(live[2].number())).await;
    let missed = resumed.take(3).await;
    assert_eq!(missed.iter().map(browserspace_tests::SseEvent::number).collect::<Vec<_>>(), [14, 15, 16]);
    let mut middle = space.client().stream(&space.path("/events?after_sequence=5"), None).await;
    assert_eq!(middle.next().await.expect("an event").number(), 6);
}

#[tokio::test]
async fn s13_a_stream_goes_on_where_it_was_after_a_crash_of_the_server() {
    let (mut server, space) = scene(2).await;
    let mut stream = space.follow(None).await;
    let seen = stream.take(7).await.last().expect("seven events").number();
    server.kill9();
    while stream.next().await.is_some() {}
    server.again();
    let mut resumed = space.follow(Some(seen)).await;
    space.becomes("idle").await;
    space.play_out("after", &Script::ok()).await.expect(200);
    let mut next = seen;
    loop {
        let event = resumed.next().await.expect("the stream goes on");
        next += 1;
        assert_eq!(event.number(), next, "no gap and no repeat");
        if event.data["kind"] == "completed" {
            break;
        }
    }
}

#[tokio::test]
async fn s13_the_whole_log_is_read_by_position_within_the_callers_workspaces() {
    let (server, space) = scene(2).await;
    let operator = server.operator();
    let all = operator.log_after(0).await;
    let positions: Vec<_> = all.iter().map(|event| event["position"].as_u64().expect("a position")).collect();
    assert_eq!(
        positions,
        (1..=positions.len() as u64).collect::<Vec<_>>(),
        "without a gap for who may see all"
    );
    let mut stream = operator.stream("/log", None).await;
    for position in &positions {
        assert_eq!(stream.next().await.expect("an event").number(), *position);
    }
    let foreign = server.auditor("team-z").await;
    let seen = foreign.log_after(0).await;
    let text = json!(seen).to_string();
    assert!(!text.contains(&space.id), "another Workspace's events are not shown: {text}");
    assert!(!text.contains("booted"), "nor the server's own: {text}");
    let agent = server.agent("default", "agent-1").await;
    agent.get("/log?after_position=0").await.expect_error(403, "forbidden");
}

#[tokio::test]
async fn s13_a_quiet_stream_has_heartbeats_without_an_id() {
    let server = Server::start(ServerOptions::default().env("BROWSERSPACE_HTTP__HEARTBEAT_SECONDS", "1"));
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let mut stream = space.follow(None).await;
    stream.take(1).await;
    stream.heartbeat().await;
    space.play_out("r1", &Script::ok()).await.expect(200);
    assert_eq!(stream.next().await.expect("an event").number(), 2, "a heartbeat takes no number");
}

/// How long the slow reader takes nothing: more than twice what it is allowed to.
const STALL: Duration = Duration::from_millis(2_500);

#[tokio::test]
async fn c16_a_slow_reader_is_cut_and_resumes_without_a_gap() {
    let server = Server::start(ServerOptions::default().env("BROWSERSPACE_HTTP__STREAM_STALL_SECONDS", "1"));
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let authority = server.address().replace("http://", "");
    let socket = TcpSocket::new_v4().expect("a socket can be made");
    socket.set_recv_buffer_size(16 * 1024).expect("its buffer can be small");
    let mut slow = socket.connect(authority.parse().expect("an address")).await.expect("the server listens");
    let path = space.path("/events");
    let request = format!(
        "GET /api/v1{path} HTTP/1.1\r\nhost: {authority}\r\naccept: text/event-stream\r\nconnection: close\r\nauthorization: Bearer {}\r\n\r\n",
        server.operator_token()
    );
    slow.write_all(request.as_bytes()).await.expect("the server listens");
    // More than both sides' socket buffers together hold.
    let large = Script::ok().and("result_bytes", "60000");
    for number in 0..200 {
        space.play_out(&format!("r{number}"), &large).await.expect(200);
    }
    // Taking nothing for a while is what this reader does; nothing is waited for.
    tokio::time::sleep(STALL).await;
    let mut seen = Vec::new();
    let cut = tokio::time::timeout(Duration::from_secs(20), slow.read_to_end(&mut seen)).await;
    assert!(cut.is_ok(), "it was cut, and not left to catch up");
    let seen = String::from_utf8_lossy(&seen);
    let whole = &seen[..seen.rfind("\n\n").expect("whole events came")];
    let ids: Vec<u64> =
        whole.lines().filter_map(|line| line.strip_prefix("id: ")?.trim().parse().ok()).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>(), "nothing was skipped silently");
    assert!(ids.len() < 600, "it did not get everything");
    let last = *ids.last().expect("something came");
    let mut resumed = space.follow(Some(last)).await;
    assert_eq!(resumed.next().await.expect("an event").number(), last + 1);
}
