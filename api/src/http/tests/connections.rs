//! Connections, on real sockets: how many, and how long one may stay on which nothing moves (C16).

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{Ask, HttpConfig, Server};

const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
/// Nothing here should take longer.
const LIMIT: Duration = Duration::from_secs(20);

/// The surface behind a port of its own.
struct Served {
    server: Server,
    address: std::net::SocketAddr,
    serving: tokio::task::JoinHandle<()>,
}

impl Served {
    async fn start(config: HttpConfig) -> Self {
        let server = Server::with(config).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = tokio::spawn(super::super::serve(listener, server.state.clone()));
        Self { server, address, serving }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("a connection")
    }

    /// A connection that has had an answer: it has a place.
    async fn served(&self) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(REQUEST).await.expect("sent");
        assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
        stream
    }
}

/// What comes next, up to the end of the first JSON body.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    while !text.ends_with('}') {
        let read = timeout(LIMIT, stream.read(&mut bytes)).await.expect("in time").expect("readable");
        if read == 0 {
            break;
        }
        text.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    text
}

/// Waits until the server has closed the connection; answers with how long that took.
async fn closed(mut stream: TcpStream) -> Duration {
    let began = Instant::now();
    let mut bytes = [0; 4096];
    while timeout(LIMIT, stream.read(&mut bytes))
        .await
        .expect("it is closed in time")
        .is_ok_and(|read| read > 0)
    {}
    began.elapsed()
}

#[tokio::test]
async fn c16_a_request_whose_head_does_not_come_is_cut_and_others_go_on() {
    let served = Served::start(HttpConfig {
        header_read_seconds: 1,
        keep_alive_seconds: 600,
        ..HttpConfig::default()
    })
    .await;
    let mut idle = served.served().await;
    let mut half = served.connect().await;
    half.write_all(&REQUEST[..20]).await.expect("sent");
    let mut second = served.served().await;
    second.write_all(&REQUEST[..20]).await.expect("sent");
    assert!(closed(half).await >= Duration::from_millis(900), "it had its time");
    closed(second).await;
    idle.write_all(REQUEST).await.expect("sent");
    assert!(answer(&mut idle).await.starts_with("HTTP/1.1 200"), "a connection that rests is not cut by it");
}

#[tokio::test]
async fn c16_a_connection_on_which_nothing_is_asked_is_closed_and_one_that_is_at_work_is_not() {
    let config = HttpConfig { keep_alive_seconds: 1, heartbeat_seconds: 1, ..HttpConfig::default() };
    let served = Served::start(config).await;
    let (token, space) = served.server.agent_with_space().await;
    let mut stream = served.connect().await;
    let ask = format!(
        "GET {space}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\
         Accept: text/event-stream\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await.expect("sent");
    closed(served.connect().await).await;
    closed(served.served().await).await;
    // Both were closed meanwhile. This one still lives: what happens now arrives.
    let closing =
        served.server.send(Ask::post(&format!("{space}/close"), serde_json::json!({})).by(&token)).await;
    closing.expect(axum::http::StatusCode::OK);
    let mut text = String::new();
    let mut bytes = [0; 4096];
    while !text.contains("event: end") {
        let read = timeout(LIMIT, stream.read(&mut bytes)).await.expect("in time").expect("readable");
        assert!(read > 0, "the stream was cut: {text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    assert!(text.contains("closed"), "{text}");
}

#[tokio::test]
async fn c16_a_connection_beyond_the_bound_hears_so_at_once_and_a_place_that_is_left_is_free() {
    let served = Served::start(HttpConfig { connections_max: 2, ..HttpConfig::default() }).await;
    let (first, mut second) = (served.served().await, served.served().await);
    let mut third = served.connect().await;
    third.write_all(REQUEST).await.expect("sent");
    let refused = answer(&mut third).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("\"overloaded\""), "{refused}");
    for header in ["retry-after", "x-request-id", "x-log-position"] {
        assert!(refused.contains(header), "{header}: {refused}");
    }
    closed(third).await;
    second.write_all(REQUEST).await.expect("sent");
    assert!(answer(&mut second).await.starts_with("HTTP/1.1 200"), "who has a place keeps it");
    drop(first);
    let again = async {
        loop {
            let mut next = served.connect().await;
            next.write_all(REQUEST).await.expect("sent");
            if answer(&mut next).await.starts_with("HTTP/1.1 200") {
                return;
            }
        }
    };
    timeout(LIMIT, again).await.expect("the place is free");
}

#[tokio::test]
async fn a_stop_ends_idle_connections_and_lets_what_is_under_way_be_answered() {
    let served = Served::start(HttpConfig::default()).await;
    let (token, space) = served.server.agent_with_space().await;
    let idle = served.served().await;
    let mut waiting = served.connect().await;
    let body = super::navigate("slow", "delay_ms=700").to_string();
    let ask = format!(
        "POST {space}/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nPrefer: wait=20\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    waiting.write_all(ask.as_bytes()).await.expect("sent");
    let running = async {
        loop {
            let shown = served.server.get(&token, &space).await;
            if shown.json()["data"]["status"] == "running" {
                return;
            }
        }
    };
    timeout(LIMIT, running).await.expect("it runs");
    served.server.stopping.cancel();
    closed(idle).await;
    assert!(answer(&mut waiting).await.contains("\"completed\""));
    timeout(LIMIT, served.serving).await.expect("in time").expect("it ends by itself");
}

#[tokio::test]
async fn c16_a_head_that_comes_a_byte_at_a_time_gets_no_more_time_than_one_that_does_not_come() {
    let served = Served::start(HttpConfig {
        header_read_seconds: 1,
        keep_alive_seconds: 600,
        ..HttpConfig::default()
    })
    .await;
    let mut stream = served.connect().await;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nX-Long: ").await.expect("sent");
    let cut = async {
        let mut pace = tokio::time::interval(Duration::from_millis(100));
        while stream.write_all(b"a").await.is_ok() {
            pace.tick().await;
        }
    };
    timeout(LIMIT, cut).await.expect("it is cut although bytes keep coming");
}

#[tokio::test]
async fn c16_a_connection_that_does_not_take_its_answers_loses_its_place() {
    let config = HttpConfig { connections_max: 1, keep_alive_seconds: 1, ..HttpConfig::default() };
    let served = Served::start(config).await;
    let (_unread, mut asks) = served.served().await.into_split();
    let many = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".repeat(10_000);
    // What the server does not take any more stays in this write.
    let asking = tokio::spawn(async move { asks.write_all(&many).await.map(|()| asks) });
    let freed = async {
        loop {
            let mut next = served.connect().await;
            next.write_all(REQUEST).await.expect("sent");
            if answer(&mut next).await.starts_with("HTTP/1.1 200") {
                return;
            }
        }
    };
    timeout(LIMIT, freed).await.expect("its place is free");
    asking.abort();
}
