//! Acceptance 12: a planted secret appears in no response, event, view row, log line or trace.

use std::sync::{Arc, Mutex, PoisonError};

use browserspace_tests::{
    Page, Pages, Planted, Program, Script, Server, ServerOptions, Space, SpaceRequest, eventually,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// A secret for one place, of a length and look that nothing else has.
fn secret(place: &str) -> String {
    format!("PLANTED{}0123456789abcdef", place.replace('-', ""))
}

fn planted(places: &[&'static str]) -> Vec<Planted> {
    places.iter().map(|place| Planted::new(place, &secret(place))).collect()
}

/// A collector of traces that keeps every byte it is sent.
struct Collector {
    address: String,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a loopback port is free");
        let address = format!("http://{}", listener.local_addr().expect("a listener has an address"));
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let kept = Arc::clone(&bytes);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                tokio::spawn(async move {
                    let mut chunk = [0; 16 * 1024];
                    while let Ok(length @ 1..) = stream.read(&mut chunk).await {
                        kept.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .extend_from_slice(&chunk[..length]);
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                        if stream.write_all(answer).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, bytes }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// Looks everywhere: answers and streams, the outputs of the program, the folder, `replay`, and traces.
fn search_everywhere(server: &Server, planted: &[Planted]) {
    Planted::none_in_text(planted, "an answer", &server.transcript().text());
    Planted::none_in_text(planted, "an output of the server", &server.output());
    Planted::none_in_folder(planted, server.data_dir());
    for args in [&["replay"][..], &["replay", "--json"]] {
        let replayed = Program::on(server.data_dir(), args).ok();
        assert!(replayed.lines().count() > 3, "there is something to replay: {replayed}");
        Planted::none_in_text(planted, "the replay", &replayed);
    }
}

/// Reads everything that can be read of a Space, so that it is in the transcript.
async fn read_all(server: &Server, space: &Space) {
    let operator = server.operator();
    space.show().await.expect(200);
    space.tasks().await;
    space.events().await;
    operator.log_after(0).await;
    for path in
        ["/metrics", "/readyz", "/healthz", "/browser-instances", "/workspaces/default/browser-spaces"]
    {
        operator.get(path).await;
    }
    let artifacts = operator.get(&space.path("/artifacts")).await.expect(200);
    drop(artifacts);
    let count = space.events().await.len();
    space.follow(None).await.take(count).await;
    operator.stream("/log", None).await.take(count).await;
}

/// Runs a step whose success does not matter here.
async fn try_step(space: &Space, number: &mut u32, capability: &str, args: Value) -> Value {
    *number += 1;
    let answer = space.run(&format!("r{number}"), capability, args).await;
    assert!(answer.status == 200 || answer.status == 422, "{}", answer.text());
    answer.data().clone()
}

const PLACES: [&str; 14] = [
    "title",
    "text-bearer",
    "url-token",
    "url-user",
    "cookie",
    "download",
    "error",
    "redirect-code",
    "fragment",
    "password",
    "echo",
    "script-title",
    "devtools",
    "json",
];

fn pages() -> [(&'static str, Page); 6] {
    let s = secret;
    let speaking = format!(
        "<title>token={title}</title><h1>Keys</h1>
         <p>Authorization: Bearer {bearer}</p><p>Cookie: session={cookie}</p>
         <p>ws://127.0.0.1:9222/devtools/browser/{devtools}</p><p>{{\"api_key\": \"{json}\"}}</p>
         <a href='/callback?code={code}'>in</a>",
        title = s("title"),
        bearer = s("text-bearer"),
        cookie = s("cookie"),
        devtools = s("devtools"),
        json = s("json"),
        code = s("redirect-code"),
    );
    let form = "<title>Sign in</title><label>Password <input type=password id=p></label>
         <p id=echo></p><script>p.oninput = () => { echo.textContent = p.value; document.title = p.value }</script>";
    let scripted =
        format!("<title>x</title><script>document.title = 'password={}'</script>", s("script-title"));
    let callback = format!("/done?code={}#id_token={}", s("redirect-code"), s("fragment"));
    let name = format!("attachment; filename=\"token={}.txt\"", s("download"));
    [
        ("/", Page::html(speaking).header("set-cookie", &format!("session={}", s("cookie")))),
        ("/form", Page::html(form)),
        ("/scripted", Page::html(scripted)),
        ("/redirect", Page::html("").status("302 Found").header("location", &callback)),
        ("/done", Page::html("<title>Done</title>")),
        ("/download", Page::html("file").header("content-disposition", &name)),
    ]
}

fn reference(snapshot: &Value, what: &str) -> Option<String> {
    let text = snapshot["result"]["text"].as_str()?;
    let line = text.lines().find(|line| line.contains(what))?;
    let mut words = line.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_ref = |word: &&str| {
        word.len() > 1 && word.starts_with('e') && word[1..].bytes().all(|b| b.is_ascii_digit())
    };
    words.rfind(is_ref).map(str::to_owned)
}

#[tokio::test]
async fn s12_secrets_of_real_pages_appear_nowhere() {
    let pages = Pages::serve(pages()).await;
    let collector = Collector::start().await;
    let options = ServerOptions::default()
        .arg("--otlp-endpoint")
        .arg(&collector.address)
        .arg("--log-filter")
        .arg("debug");
    let mut server = Server::start(options);
    let operator = server.operator();
    let closed = Pages::serve([]).await.host();
    let instance = operator.chromium_instance(&["default"], &[pages.host(), closed.clone()]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let mut number = 0;
    let urls = [
        pages.url(&format!("/?token={}", secret("url-token"))),
        format!("http://user:{}@{}/", secret("url-user"), pages.host()),
        pages.url("/redirect"),
        pages.url("/scripted"),
        pages.url("/download"),
        format!("http://{closed}/?access_token={}", secret("error")),
    ];
    for url in urls {
        try_step(&space, &mut number, "navigate", json!({ "url": url })).await;
        for capability in ["snapshot", "get_content", "get_url", "get_title", "tab_list"] {
            try_step(&space, &mut number, capability, json!({})).await;
        }
    }
    try_step(&space, &mut number, "navigate", json!({ "url": pages.url("/form") })).await;
    let form = try_step(&space, &mut number, "snapshot", json!({})).await;
    let field = reference(&form, "textbox").unwrap_or_else(|| panic!("no field in {form}"));
    let typed =
        try_step(&space, &mut number, "fill", json!({ "ref": field, "text": secret("password") })).await;
    assert_eq!(typed["status"], "completed", "{typed}");
    for capability in ["snapshot", "get_content", "get_title", "tab_list"] {
        try_step(&space, &mut number, capability, json!({})).await;
    }
    let seen = pages.requests().join("\n");
    for place in ["url-token", "cookie", "redirect-code"] {
        assert!(seen.contains(&secret(place)), "{place} was really in play");
    }
    read_all(&server, &space).await;
    space.close().await.expect(200);
    space.becomes("closed").await;
    server.no_browser_left().await;
    eventually("traces were exported", || async { (!collector.text().is_empty()).then_some(()) }).await;
    let planted = planted(&PLACES);
    search_everywhere(&server, &planted);
    server.sigterm().ok();
    search_everywhere(&server, &planted);
    Planted::none_in_text(&planted, "a trace", &collector.text());
}

#[tokio::test]
async fn s12_args_at_rest_are_unreadable_while_the_task_runs_and_after() {
    let mut server = Server::start(ServerOptions::default().arg("--log-filter").arg("trace"));
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let planted = planted(&["url-arg", "typed-arg"]);
    let script = Script::delay_ms(60_000).and("token", secret("url-arg"));
    let task = space.play("r1", &script).await.expect(202).field("task_id");
    space.runs(&task).await;
    Planted::none_in_folder(&planted, server.data_dir());
    space.cancel().await.expect(200);
    space.ended(&task).await;
    space.complete("r2", "type", json!({ "ref": "e1", "text": secret("typed-arg") })).await;
    let odd = json!({ "url": [secret("url-arg")] });
    space.submit("r3", "navigate", odd).await.expect_error(422, "invalid_args");
    read_all(&server, &space).await;
    search_everywhere(&server, &planted);
    server.kill9();
    server.again();
    search_everywhere(&server, &planted);
}

#[tokio::test]
async fn s12_a_secret_in_a_request_is_not_told_back() {
    let server = Server::start(ServerOptions::default().arg("--log-filter").arg("trace"));
    let operator = server.operator();
    let instance = operator.scripted_instance(&["default"]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let planted = planted(&["query", "bearer", "basic", "cookie", "body", "path", "header"]);
    let get = |path: String| operator.anonymous().request(Method::GET, &path);
    let spaces = "/workspaces/default/browser-spaces";
    let requests = [
        get(format!("{spaces}?token={}", secret("query"))),
        get(format!("{spaces}?access_token={}", secret("query"))),
        get(spaces.to_owned()).bearer_auth(secret("bearer")),
        get(spaces.to_owned()).bearer_auth(format!("bst_{}{}", secret("bearer"), "x".repeat(10))),
        get(spaces.to_owned()).basic_auth("user", Some(secret("basic"))),
        get(spaces.to_owned()).header("cookie", format!("token={}", secret("cookie"))),
        get(format!("/nowhere/{}", secret("path"))),
    ];
    for request in requests {
        let answer = operator.send(request).await;
        assert!(answer.status.is_client_error(), "{}", answer.text());
    }
    let tasks = space.path("/tasks");
    let bodies = [
        format!("{{\"request_id\": \"{}", secret("body")),
        format!("{{\"request_id\": [\"{}\"]}}", secret("body")),
        json!({ "extra": secret("body"), "request_id": "r1", "capability": "get_url", "args": {} })
            .to_string(),
        json!({ "request_id": "r1", "capability": secret("body"), "args": {} }).to_string(),
    ];
    for body in bodies {
        let request = operator.request(Method::POST, &tasks).header("content-type", "application/json");
        let answer = operator.send(request.header("x-api-key", secret("header")).body(body)).await;
        assert!(answer.status.is_client_error(), "{}", answer.text());
    }
    read_all(&server, &space).await;
    search_everywhere(&server, &planted);
    drop(server);
}

#[tokio::test]
async fn s12_the_operators_token_stands_in_its_own_file_only() {
    let mut server = Server::start(ServerOptions::default().arg("--log-filter").arg("trace"));
    let operator = server.operator();
    let made = operator.issue_token("default", "runtime_agent", "agent-1").await;
    server.client(&made).get("/workspaces/default/browser-spaces").await.expect(200);
    let token = server.operator_token();
    server.restart();
    let planted = [Planted::new("the operator's token", &token), Planted::new("a made token", &made)];
    Planted::none_in_text(&planted, "an output of the server", &server.output());
    let file = server.data_dir().join("operator.token");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(&file).expect("it is there").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    server.sigterm().ok();
    std::fs::remove_file(file).expect("it can be removed");
    Planted::none_in_folder(&planted, server.data_dir());
}
