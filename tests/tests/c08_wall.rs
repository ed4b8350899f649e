//! C8: whatever way a page or an agent takes, nothing inside is reached, and what was tried is recorded.
//!
//! Each way leads to a listener of its own on this machine's loopback, which counts who connects: not a request has to
//! be read for it, and no answer can hide it.

use std::{
    collections::BTreeMap,
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use browserspace_tests::{Page, Pages, Server, ServerOptions, Space, SpaceRequest, eventually};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

const CAPABILITIES: [&str; 6] = ["navigate", "snapshot", "click", "get_content", "get_url", "tab_new"];

/// How a page tries to get inside. `{}` is the address; what is thrown or fails becomes a line of the page's text.
const WAYS: [(&str, &str); 17] = [
    ("image", "image.onerror = () => done('failed'); image.onload = () => done('LOADED'); image.src = '{}'"),
    ("fetch", "fetch('{}').then(() => done('LOADED'), () => done('failed'))"),
    ("fetch_opaque", "fetch('{}', { mode: 'no-cors' }).then(() => done('LOADED'), () => done('failed'))"),
    (
        "fetch_post",
        "fetch('{}', { method: 'POST', mode: 'no-cors', body: 'x' }).then(() => done('LOADED'), () => done('failed'))",
    ),
    (
        "xhr",
        "let r = new XMLHttpRequest(); r.onerror = () => done('failed'); r.onload = () => done('LOADED'); r.open('GET', '{}'); r.send()",
    ),
    (
        "websocket",
        "let s = new WebSocket('{}'.replace('http', 'ws')); s.onerror = () => done('failed'); s.onopen = () => done('LOADED')",
    ),
    (
        "event_stream",
        "let e = new EventSource('{}'); e.onerror = () => { e.close(); done('failed') }; e.onopen = () => done('LOADED')",
    ),
    (
        "script",
        "let n = add('script'); n.onerror = () => done('failed'); n.onload = () => done('LOADED'); n.src = '{}'",
    ),
    (
        "style",
        "let n = add('link'); n.rel = 'stylesheet'; n.onerror = () => done('failed'); n.onload = () => done('LOADED'); n.href = '{}'",
    ),
    (
        "prefetch",
        "let n = add('link'); n.rel = 'prefetch'; n.onerror = () => done('failed'); n.onload = () => done('LOADED'); n.href = '{}'",
    ),
    (
        "redirect",
        "fetch('/to?' + encodeURIComponent('{}'), { mode: 'no-cors' }).then(() => done('LOADED'), () => done('failed'))",
    ),
    ("beacon", "navigator.sendBeacon('{}', 'x'); done('failed')"),
    ("iframe", "let n = add('iframe'); n.onload = () => done('failed'); n.src = '{}'"),
    (
        "popup",
        "link.onclick = event => { event.preventDefault(); open('{}', '', 'popup'); open('{}', '', 'noopener'); done('failed') }",
    ),
    (
        "form",
        "let n = add('form'); n.method = 'post'; n.action = '{}'; n.target = 'form'; let f = document.createElement('iframe'); f.name = 'form'; document.body.append(f); n.submit(); done('failed')",
    ),
    (
        "worker",
        "let w = new Worker(URL.createObjectURL(new Blob([`fetch('{}').then(() => postMessage('LOADED'), () => postMessage('failed'))`]))); w.onmessage = e => done(e.data)",
    ),
    (
        "service_worker",
        "navigator.serviceWorker.register('/sw.js?' + encodeURIComponent('{}')); navigator.serviceWorker.onmessage = e => done(e.data)",
    ),
];

/// A listener that counts connections.
struct Trap {
    port: u16,
    caught: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Trap {
    async fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("an address").port();
        let caught = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&caught);
        let task = tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { port, caught, task }
    }

    fn url(&self, host: &str) -> String {
        format!("http://{host}:{}/inside", self.port)
    }

    #[track_caller]
    fn is_empty(&self, way: &str) {
        assert_eq!(self.caught.load(Ordering::SeqCst), 0, "{way} came through");
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn scene(pages: &Pages) -> (Server, Space) {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance).granting(&CAPABILITIES)).await;
    (server, space)
}

/// What was blocked: target → rule.
async fn blocked(space: &Space) -> BTreeMap<String, String> {
    let events = space.events().await;
    let blocked = events.iter().filter(|event| event["kind"] == "blocked");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    blocked.map(|event| (text(&event["payload"]["target"]), text(&event["payload"]["rule"]))).collect()
}

/// Opening a window takes a press that the browser believes in.
async fn click_link(space: &Space, request: &str) {
    let snapshot = space.complete(&format!("{request}-look"), "snapshot", json!({ "tab": "t1" })).await;
    let text = snapshot["text"].as_str().expect("a text");
    let line = text.lines().find(|line| line.contains("Go inside")).expect("the link is there");
    let link = line.split_whitespace().next().expect("a ref");
    space.run(&format!("{request}-press"), "click", json!({ "tab": "t1", "ref": link })).await.expect(200);
}

fn way_page(way: &str, script: &str, url: &str) -> Page {
    Page::html(format!(
        "<title>{way}</title><p id=out>waiting</p><a href='{url}' id=link>Go inside</a><script>
        const image = new Image(), add = name => document.body.appendChild(document.createElement(name));
        const done = text => {{ out.textContent = 'way ' + text }};
        onload = () => {{ {} }};
        </script>",
        script.replace("{}", url)
    ))
}

#[tokio::test]
async fn c08_no_way_of_a_page_leads_inside_and_each_fails_at_once_and_is_recorded() {
    let mut traps = Vec::new();
    let mut served: Vec<(String, Page)> = Vec::new();
    for (way, script) in WAYS {
        let trap = Trap::set().await;
        served.push((format!("/{way}"), way_page(way, script, &trap.url("127.0.0.1"))));
        traps.push((way, trap));
    }
    let worker = "onactivate = e => e.waitUntil(clients.claim().then(async () => {
        const url = decodeURIComponent(location.search.slice(1));
        const said = await fetch(url, { mode: 'no-cors' }).then(() => 'LOADED', () => 'failed');
        for (const client of await clients.matchAll()) client.postMessage(said);
    })); oninstall = () => skipWaiting()";
    served.push(("/sw.js".to_owned(), Page::script(worker)));
    served.push(("/to".to_owned(), Page::redirect_to_query()));
    let pages = Pages::serve_all(served).await;
    let (_server, space) = scene(&pages).await;
    for (number, (way, trap)) in traps.iter().enumerate() {
        space
            .complete(
                &format!("n{number}"),
                "navigate",
                json!({ "tab": "t1", "url": pages.url(&format!("/{way}")) }),
            )
            .await;
        if *way == "popup" {
            click_link(&space, "popup").await;
        }
        let began = Instant::now();
        let said = eventually(&format!("{way} ends"), || async {
            let request = format!("c{number}-{}", began.elapsed().as_millis());
            let content = space.complete(&request, "get_content", json!({ "tab": "t1" })).await;
            let text = content["text"].as_str().expect("a text").to_owned();
            text.contains("way ").then_some(text)
        })
        .await;
        assert!(said.contains("way failed") && !said.contains("LOADED"), "{way}: {said}");
        let target = format!("127.0.0.1:{}", trap.port);
        eventually(&format!("{way} is recorded"), || async {
            (blocked(&space).await.get(&target).map(String::as_str) == Some("loopback")).then_some(())
        })
        .await;
        trap.is_empty(way);
    }
}

#[tokio::test]
async fn c08_a_navigation_inside_is_refused_with_its_rule_however_it_is_begun_and_spelled() {
    let trap = Trap::set().await;
    let inside = trap.url("127.0.0.1");
    let moved = format!("<title>m</title><script>location = '{inside}'</script>");
    let pages = Pages::serve_all(vec![
        ("/".to_owned(), way_page("home", "", &inside)),
        ("/to".to_owned(), Page::redirect_to_query()),
        ("/moves".to_owned(), Page::html(moved)),
    ])
    .await;
    let (_server, space) = scene(&pages).await;
    let port = trap.port;
    let spellings = [
        (inside.clone(), "loopback"),
        (format!("http://2130706433:{port}/"), "loopback"),
        (format!("http://0x7f.1:{port}/"), "loopback"),
        (format!("http://017700000001:{port}/"), "loopback"),
        (format!("http://localhost:{port}/"), "loopback"),
        (format!("http://x.localhost:{port}/"), "loopback"),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), "loopback"),
        (format!("http://[::1]:{port}/"), "loopback"),
        (format!("http://0.0.0.0:{port}/"), "unspecified"),
        (format!("https://127.0.0.1:{port}/"), "loopback"),
        ("http://169.254.169.254/latest/meta-data/".to_owned(), "metadata"),
        ("http://[fd00:ec2::254]/".to_owned(), "metadata"),
        ("http://metadata.google.internal/".to_owned(), "metadata"),
        ("http://100.100.100.200/".to_owned(), "metadata"),
        ("http://10.0.0.1/".to_owned(), "private"),
        ("http://192.168.1.1:8080/".to_owned(), "private"),
        ("http://[fe80::1]/".to_owned(), "link_local"),
        ("http://100.64.0.1/".to_owned(), "cgnat"),
        ("http://224.0.0.251/".to_owned(), "multicast"),
        ("http://8.8.8.8:8081/".to_owned(), "port"),
        (pages.url(&format!("/to?{}", inside.replace(':', "%3A").replace('/', "%2F"))), "loopback"),
    ];
    for (number, (url, rule)) in spellings.iter().enumerate() {
        let began = Instant::now();
        let (request, capability) =
            (format!("r{number}"), if number % 3 == 2 { "tab_new" } else { "navigate" });
        let answer = space.run(&request, capability, json!({ "url": url })).await.expect(200);
        let error = &answer.data()["error"];
        assert_eq!(
            (&error["code"], &error["details"]["rule"]),
            (&json!("blocked_by_policy"), &json!(rule)),
            "{capability} {url}: {}",
            answer.text()
        );
        assert_eq!(error["retryable"], false);
        assert!(began.elapsed() < Duration::from_secs(10), "{url} hangs");
    }
    trap.is_empty("a navigation");
    // By the page itself: the agent sees that it did not arrive.
    space.complete("home", "navigate", json!({ "tab": "t1", "url": pages.url("/") })).await;
    click_link(&space, "click").await;
    space
        .run(
            "moves",
            "navigate",
            json!({ "tab": "t1", "url": pages.url("/moves"), "wait": "domcontentloaded" }),
        )
        .await
        .expect(200);
    eventually("it is recorded", || async {
        blocked(&space).await.contains_key(&format!("127.0.0.1:{port}")).then_some(())
    })
    .await;
    trap.is_empty("a click");
}

#[tokio::test]
async fn c08_a_host_that_is_allowed_works_and_its_neighbours_do_not() {
    let (pages, other) = (
        Pages::serve([("/", Page::html("<title>T</title>"))]).await,
        Pages::serve([("/", Page::html("<title>O</title>"))]).await,
    );
    let (_server, space) = scene(&pages).await;
    let done = space.complete("1", "navigate", json!({ "url": pages.url("/") })).await;
    assert_eq!(done["http_status"], 200);
    let by_name = pages.url("/").replace("127.0.0.1", "localhost");
    for (request, url) in [("2", other.url("/")), ("3", by_name)] {
        let answer = space.run(request, "navigate", json!({ "url": url })).await.expect(200);
        assert_eq!(answer.data()["error"]["code"], "blocked_by_policy", "{}", answer.text());
    }
    assert_eq!(other.hits("/"), 0);
}

#[tokio::test]
async fn c08_no_datagram_leaves_the_browser() {
    let trap = UdpSocket::bind("0.0.0.0:0").expect("a port is free");
    trap.set_read_timeout(Some(Duration::from_millis(500))).expect("set");
    let port = trap.local_addr().expect("an address").port();
    let page = format!(
        "<title>rtc</title><p id=out>waiting</p><script>
        const peer = new RTCPeerConnection({{ iceServers: [{{ urls: 'stun:127.0.0.1:{port}' }}] }});
        peer.createDataChannel('x');
        // It may wait for its server, for long, once it has asked.
        setTimeout(() => {{ out.textContent = 'way complete' }}, 4000);
        peer.onicegatheringstatechange = () => {{
            if (peer.iceGatheringState === 'complete') out.textContent = 'way complete';
        }};
        peer.createOffer().then(offer => peer.setLocalDescription(offer));
        </script>"
    );
    let pages = Pages::serve([("/", Page::html(page))]).await;
    let (_server, space) = scene(&pages).await;
    space.complete("1", "navigate", json!({ "url": pages.url("/") })).await;
    let began = Instant::now();
    eventually("the candidates are gathered", || async {
        let request = format!("c{}", began.elapsed().as_millis());
        let content = space.complete(&request, "get_content", json!({})).await;
        content["text"].as_str().expect("a text").contains("way complete").then_some(())
    })
    .await;
    let mut into = [0; 64];
    assert!(trap.recv_from(&mut into).is_err(), "nothing comes");
}

#[tokio::test]
async fn c08_what_a_spaces_environment_allows_opens_the_wall_for_that_space_and_no_other() {
    let pages = Pages::serve([("/", Page::html("<title>T</title>"))]).await;
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    for (request, hosts) in [("with", json!([pages.host()])), ("without", json!([]))] {
        let instance = operator.chromium_instance(&["default"], &[]).await;
        let asked =
            SpaceRequest::new("default", &instance).with("environment", json!({ "allowed_hosts": hosts }));
        let space = operator.open(&asked).await;
        let answer = space.run(request, "navigate", json!({ "url": pages.url("/") })).await.expect(200);
        let shown = &answer.data()["error"]["code"];
        let expected = if request == "with" { json!(null) } else { json!("blocked_by_policy") };
        assert_eq!(*shown, expected, "{request}: {}", answer.text());
    }
}
