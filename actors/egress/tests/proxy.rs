//! The proxy over real sockets: what goes through, what does not, and how a refusal looks.

#![allow(clippy::unwrap_used, missing_docs)]

use std::{
    io,
    net::{IpAddr, TcpListener as StdListener},
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use egress::{Door, Limits, Meter, Policy, Proxy, Report, Resolver, Rule, Why};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc::Receiver,
    time::timeout,
};

/// Every name is this machine.
struct Inward;

#[async_trait]
impl Resolver for Inward {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        match name {
            "nowhere.example" => Err(io::Error::other("no such name")),
            _ => Ok(vec![[127, 0, 0, 1].into()]),
        }
    }
}

struct Scene {
    proxy: Proxy,
    reports: Receiver<Report>,
    door: std::net::SocketAddr,
    meter: Arc<Meter>,
}

fn scene(allow: &[String], limits: Limits) -> Scene {
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let door = listener.local_addr().unwrap();
    let meter = Arc::new(Meter::default());
    let policy = Policy::parse(allow, [""; 0], limits).unwrap();
    let (proxy, reports) =
        Proxy::serve(Door::secluded(listener).unwrap(), policy, Arc::new(Inward), Arc::clone(&meter));
    Scene { proxy, reports, door, meter }
}

/// An origin that gives each connection to `serve`.
async fn origin<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> u16
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    port
}

/// Answers each request with its own head.
async fn mirror(mut stream: TcpStream) {
    while let Some(head) = read_head(&mut stream).await {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}", head.len());
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0; 1]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).await.ok()?;
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}

async fn ask(stream: &mut TcpStream, request: &str) -> (String, String) {
    stream.write_all(request.as_bytes()).await.unwrap();
    let head = timeout(Duration::from_secs(20), read_head(stream)).await.unwrap().unwrap();
    let length = head.to_ascii_lowercase();
    let length = length.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap_or("0");
    let mut body = vec![0; length.trim().parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    (head, String::from_utf8(body).unwrap())
}

#[tokio::test]
async fn an_allowed_request_reaches_its_origin_without_what_was_for_the_proxy() {
    let port = origin(mirror).await;
    let scene = scene(&[format!("site.example:{port}")], Limits::default());
    let mut client = TcpStream::connect(scene.door).await.unwrap();
    for path in ["/a?b=c", "/second"] {
        let request = format!(
            "GET http://site.example:{port}{path} HTTP/1.1\r\nHost: other.example\r\nProxy-Connection: keep-alive\r\n\
             Connection: X-Hop\r\nX-Hop: 1\r\nX-Kept: 1\r\nProxy-Authorization: Basic eDp5\r\n\r\n"
        );
        let (head, seen) = ask(&mut client, &request).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let seen = seen.to_ascii_lowercase();
        assert!(seen.starts_with(&format!("get {path} http/1.1\r\n")), "{seen}");
        assert!(
            seen.contains(&format!("host: site.example:{port}\r\n")) && seen.contains("x-kept: 1"),
            "{seen}"
        );
        assert!(!seen.contains("proxy-") && !seen.contains("x-hop"), "{seen}");
    }
    assert!(scene.meter.sent() > 100 && scene.meter.received() > 100);
    scene.proxy.close().await;
}

#[tokio::test]
async fn c08_a_refused_request_is_a_network_error_at_once_and_is_told_once() {
    let mut scene = scene(&[], Limits::default());
    let began = Instant::now();
    let mut client = TcpStream::connect(scene.door).await.unwrap();
    for target in
        ["http://10.0.0.1/", "http://10.0.0.1/again", "http://2130706433:8080/", "http://localhost/x"]
    {
        let (head, body) = ask(&mut client, &format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        assert!(head.starts_with("HTTP/1.1 403") && body.is_empty(), "{head}");
        assert_eq!(head.to_ascii_lowercase().matches("location:").count(), 2, "no browser takes it: {head}");
    }
    let (head, _) = ask(&mut client, "CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    assert!(began.elapsed() < Duration::from_secs(5));
    let mut told = Vec::new();
    while let Ok(report) = scene.reports.try_recv() {
        told.push((report.host.unwrap().to_string(), report.port, report.rule, report.method));
    }
    let told: Vec<_> = told
        .iter()
        .map(|(host, port, rule, method)| (host.as_str(), *port, *rule, method.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("10.0.0.1", 80, Rule::Private, "GET"),
            ("127.0.0.1", 8080, Rule::Loopback, "GET"),
            ("localhost", 80, Rule::Loopback, "GET"),
            ("evil.example", 443, Rule::Loopback, "CONNECT"),
        ]
    );
    let why = scene.proxy.why(&"https://evil.example/p".parse().unwrap(), began);
    assert_eq!(why, Some(Why::Blocked(Rule::Loopback)));
    scene.proxy.close().await;
}

#[tokio::test]
async fn a_failure_is_told_as_the_browser_would() {
    let scene = scene(&["site.example".into(), "nowhere.example".into()], Limits::default());
    let silent = origin(|stream| async move { drop(stream) }).await;
    let asks = origin(|mut stream| async move {
        read_head(&mut stream).await;
        let answer = "HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n";
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await;
    let closed = StdListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (host, port, reason) in [
        ("site.example", closed, "net::ERR_CONNECTION_REFUSED"),
        ("nowhere.example", 80, "net::ERR_NAME_NOT_RESOLVED"),
        ("site.example", silent, "net::ERR_EMPTY_RESPONSE"),
        ("site.example", asks, "net::ERR_UNEXPECTED_PROXY_AUTH"),
    ] {
        let (began, url) = (Instant::now(), format!("http://{host}:{port}/"));
        let mut client = TcpStream::connect(scene.door).await.unwrap();
        let (head, _) = ask(&mut client, &format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        assert!(head.starts_with("HTTP/1.1 502"), "{head}");
        assert_eq!(scene.proxy.why(&url.parse().unwrap(), began), Some(Why::Failed(reason)), "{url}");
    }
    scene.proxy.close().await;
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_ends_with_the_proxy() {
    let echo = origin(|mut stream| async move {
        let (mut from, mut to) = stream.split();
        let _ = tokio::io::copy(&mut from, &mut to).await;
    })
    .await;
    let scene = scene(&[format!("site.example:{echo}")], Limits::default());
    let mut client = TcpStream::connect(scene.door).await.unwrap();
    let (head, _) =
        ask(&mut client, &format!("CONNECT site.example:{echo} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    client.write_all(b"ping").await.unwrap();
    let mut back = [0; 4];
    client.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"ping");
    timeout(Duration::from_secs(5), scene.proxy.close()).await.expect("nothing holds it up");
    assert!(matches!(client.read(&mut back).await, Ok(0) | Err(_)), "the tunnel is gone");
    assert!(TcpStream::connect(scene.door).await.is_err(), "and so is the door");
}

#[tokio::test]
async fn c16_the_bytes_of_a_policy_end_a_transfer_and_refuse_the_next() {
    let large = origin(|mut stream| async move {
        read_head(&mut stream).await;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1 << 20);
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(&vec![b'x'; 1 << 20]).await;
    })
    .await;
    let limits = Limits { bytes_max: Some(64 * 1024), connections_max: None };
    let mut scene = scene(&[format!("site.example:{large}")], limits);
    let mut client = TcpStream::connect(scene.door).await.unwrap();
    let request = format!("GET http://site.example:{large}/ HTTP/1.1\r\nHost: x\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut got = Vec::new();
    let _ = client.read_to_end(&mut got).await;
    assert!(got.len() < 200 * 1024, "cut at {}", got.len());
    let mut client = TcpStream::connect(scene.door).await.unwrap();
    let (head, _) = ask(&mut client, &request).await;
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    assert_eq!(scene.reports.recv().await.unwrap().rule, Rule::Bytes);
    scene.proxy.close().await;
}

#[tokio::test]
async fn c16_the_connections_of_a_policy_are_a_bound() {
    let echo = origin(|mut stream| async move {
        let (mut from, mut to) = stream.split();
        let _ = tokio::io::copy(&mut from, &mut to).await;
    })
    .await;
    let limits = Limits { bytes_max: None, connections_max: Some(1) };
    let mut scene = scene(&[format!("site.example:{echo}")], limits);
    let connect = format!("CONNECT site.example:{echo} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut first = TcpStream::connect(scene.door).await.unwrap();
    assert!(ask(&mut first, &connect).await.0.starts_with("HTTP/1.1 200"));
    let mut second = TcpStream::connect(scene.door).await.unwrap();
    assert!(ask(&mut second, &connect).await.0.starts_with("HTTP/1.1 403"));
    assert_eq!(scene.reports.recv().await.unwrap().rule, Rule::Connections);
    drop(first);
    let mut third = TcpStream::connect(scene.door).await.unwrap();
    assert!(ask(&mut third, &connect).await.0.starts_with("HTTP/1.1 200"), "it was given back");
    scene.proxy.close().await;
}
