//! The catalogue through the server: what only the whole can keep of what each row promises.

use std::os::unix::fs::symlink;

use browserspace_tests::{Page, Pages, Server, ServerOptions, Space, SpaceRequest, eventually};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

const ROWS: [&str; 16] = [
    "navigate",
    "snapshot",
    "select",
    "check",
    "uncheck",
    "scroll",
    "drag",
    "mouse",
    "upload",
    "get",
    "get_html",
    "pdf",
    "screenshot",
    "screenshot_annotate",
    "get_title",
    "tab_new",
];

const FORM: &str = "<title>form</title><select aria-label=Tea><option>green</option><option>black</option></select>\
    <input type=checkbox aria-label=Milk><input type=password aria-label=Pass value=SECRET-PREFILLED>\
    <input type=file multiple aria-label=Files onchange=\"document.title=[...this.files].map(f=>f.size).join()\">\
    <button>Go</button><div style='height:3000px'></div>";

async fn open(server: &Server, pages: &Pages) -> Space {
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
    operator.open(&SpaceRequest::new("default", &instance).granting(&ROWS)).await
}

/// The ref on the snapshot's line that holds a name.
fn ref_of(snapshot: &Value, name: &str) -> String {
    let text = snapshot["text"].as_str().expect("a snapshot is text");
    let line = text.lines().map(str::trim_start).find(|line| line.contains(name) && line.starts_with('e'));
    let line = line.unwrap_or_else(|| panic!("{name} is not in\n{text}"));
    line.split(' ').next().expect("a line has a word").to_owned()
}

async fn artifact(space: &Space, request: &str, capability: &str, args: Value) -> (String, u64, Value) {
    let result = space.complete(request, capability, args).await;
    let kept = &result["artifact"];
    let id = kept["artifact_id"].as_str().expect("an artifact has an id").to_owned();
    (id, kept["bytes"].as_u64().expect("and a size"), result)
}

#[tokio::test]
async fn every_row_of_the_catalogue_answers_in_its_shape_and_its_bad_args_are_refused_at_the_door() {
    let pages = Pages::serve([("/", Page::html(FORM))]).await;
    let server = Server::start(ServerOptions::default());
    let space = open(&server, &pages).await;
    space.complete("n", "navigate", json!({ "url": pages.url("/") })).await;
    let snapshot = space.complete("s", "snapshot", json!({})).await;
    let named = |name: &str| ref_of(&snapshot, name);
    let chosen = space.complete("1", "select", json!({ "ref": named("Tea"), "values": ["black"] })).await;
    assert_eq!((&chosen["selected"][0]["label"], &chosen["title"]), (&json!("black"), &json!("form")));
    let checked = space.complete("2", "check", json!({ "ref": named("Milk") })).await;
    assert_eq!((&checked["checked"], &checked["effect"]), (&json!(true), &json!("done")));
    assert_eq!(space.complete("3", "uncheck", json!({ "ref": named("Milk") })).await["checked"], false);
    let scrolled = space.complete("4", "scroll", json!({ "dy": 300 })).await;
    assert_eq!(scrolled["position"]["y"], 300.0);
    space.complete("5", "mouse", json!({ "action": "move", "x": 5, "y": 5 })).await;
    space.complete("6", "drag", json!({ "from": named("Go"), "to": named("Tea") })).await;
    let value = space.complete("7", "get", json!({ "ref": named("Pass"), "what": "value" })).await;
    assert_eq!((&value["value"], &value["hidden"]), (&Value::Null, &json!(16)), "C13");
    let html = space.complete("8", "get_html", json!({ "outer": true })).await;
    assert!(html["html"].as_str().is_some_and(|html| html.contains("<select") && !html.contains("SECRET")));
    for (index, (capability, args)) in [
        ("select", json!({ "ref": "e1", "values": [] })),
        ("check", json!({ "ref": "#box" })),
        ("uncheck", json!({})),
        ("scroll", json!({})),
        ("scroll", json!({ "dy": 20_001 })),
        ("drag", json!({ "from": "e1" })),
        ("mouse", json!({ "action": "jump", "x": 1, "y": 1 })),
        ("get", json!({ "ref": "e1", "what": "cookie" })),
        ("get_html", json!({ "selector": "body" })),
        ("pdf", json!({ "paper": "b9" })),
        ("pdf", json!({ "ranges": "1-" })),
        ("screenshot_annotate", json!({ "format": "gif" })),
        ("upload", json!({ "ref": "e1", "files": [] })),
    ]
    .into_iter()
    .enumerate()
    {
        let refused = space.submit(&format!("bad-{index}"), capability, args).await;
        refused.expect_error(422, "invalid_args");
    }
    assert_eq!(space.tasks().await.len(), 10, "bad args record no task");
    assert!(!server.operator().log_after(0).await.iter().any(|event| event.to_string().contains("SECRET")));
}

#[tokio::test]
async fn files_that_steps_make_are_artifacts_of_their_kind() {
    let pages = Pages::serve([("/", Page::html(FORM))]).await;
    let server = Server::start(ServerOptions::default());
    let space = open(&server, &pages).await;
    space.complete("n", "navigate", json!({ "url": pages.url("/") })).await;
    let (pdf, bytes, _) = artifact(&space, "p", "pdf", json!({ "landscape": true })).await;
    let file = space.artifact(&pdf).await.expect(200);
    assert!(file.bytes.starts_with(b"%PDF-") && file.bytes.len() as u64 == bytes);
    assert_eq!(file.header("content-type"), Some("application/pdf"));
    let (picture, _, result) = artifact(&space, "a", "screenshot_annotate", json!({})).await;
    assert!(space.artifact(&picture).await.expect(200).bytes.starts_with(b"\x89PNG"));
    let legend = result["legend"].as_array().expect("a legend");
    assert!(legend.len() >= 4 && legend[0]["box"]["width"].as_f64().is_some(), "{result}");
    let listed = server.operator().get(&space.path("/artifacts")).await.expect(200);
    let kinds: Vec<_> = listed.list().iter().map(|artifact| artifact["kind"].clone()).collect();
    assert!(kinds.contains(&json!("pdf")) && kinds.contains(&json!("screenshot")), "{kinds:?}");
}

#[tokio::test]
async fn c11_only_whole_artifacts_of_the_space_are_uploaded_and_the_page_is_not_touched_before() {
    let pages = Pages::serve([("/", Page::html(FORM))]).await;
    let server = Server::start(ServerOptions::default());
    let (space, other) = (open(&server, &pages).await, open(&server, &pages).await);
    for space in [&space, &other] {
        space.complete("n", "navigate", json!({ "url": pages.url("/") })).await;
    }
    let (picture, bytes, _) = artifact(&space, "a", "screenshot", json!({})).await;
    let (pdf, pdf_bytes, _) = artifact(&space, "b", "pdf", json!({})).await;
    let (foreign, ..) = artifact(&other, "a", "screenshot", json!({})).await;
    let field = ref_of(&space.complete("s", "snapshot", json!({})).await, "Files");
    let upload = |files: Value| json!({ "ref": field, "files": files });
    let given = space.complete("u", "upload", upload(json!([picture, pdf]))).await;
    assert_eq!(given["accepted"][0]["bytes"], bytes);
    assert_eq!(given["accepted"][1], json!({ "name": format!("{pdf}.pdf"), "bytes": pdf_bytes }));
    assert_eq!(given["title"], format!("{bytes},{pdf_bytes}"), "the size that the page sees");
    space.complete("n2", "navigate", json!({ "url": pages.url("/") })).await;
    let field = ref_of(&space.complete("s2", "snapshot", json!({})).await, "Files");
    let upload = |files: Value| json!({ "ref": field, "files": files });
    let outside = ["/etc/passwd", "../../operator.token", "https://a.example/x", "file:///etc/passwd", "."];
    for (index, path) in outside.into_iter().enumerate() {
        let refused = space.submit(&format!("o{index}"), "upload", upload(json!([path]))).await;
        refused.expect_error(422, "invalid_args");
    }
    let kept = server.data_dir().join("artifacts").join(&space.id);
    std::fs::remove_file(kept.join(&picture)).expect("it is there");
    symlink("/etc/passwd", kept.join(&picture)).expect("a link is made");
    std::fs::remove_file(kept.join(&pdf)).expect("it is there");
    std::fs::create_dir(kept.join(&pdf)).expect("a folder is made");
    let missing = "art_00000000000000000000000000".to_owned();
    for (index, id) in [missing, foreign, picture, pdf].into_iter().enumerate() {
        let task = space.run(&format!("m{index}"), "upload", upload(json!([id]))).await.expect(200);
        let error = &task.data()["error"];
        assert_eq!(
            (&error["code"], &error["may_have_run"]),
            (&json!("invalid_args"), &json!(false)),
            "{error}"
        );
        assert!(error["message"].as_str().is_some_and(|said| said.starts_with("/files/0: ")), "{error}");
    }
    assert_eq!(
        space.complete("t", "get_title", json!({})).await["title"],
        "form",
        "the page heard of nothing"
    );
}

const TRUSTED: &str = "BROWSERSPACE_ALLOW_TRUSTED_BUNDLE";

fn trusted(pages: &Pages) -> Value {
    let policy = json!({ "allow": [pages.host()] });
    json!({ "kind": "chromium", "workspaces": ["default"], "bundle": "trusted", "network_policy": policy })
}

#[tokio::test]
async fn s03_a_script_runs_only_where_the_operator_lets_it_and_not_once_the_switch_is_off() {
    let pages = Pages::serve([("/", Page::html("<title>S</title>"))]).await;
    let mut server = Server::start(ServerOptions::default().env(TRUSTED, "true"));
    let operator = server.operator();
    let usual = operator.chromium_instance(&["default"], &[]).await;
    let granted = ["navigate", "evaluate"];
    let refused = SpaceRequest::new("default", &usual).granting(&granted);
    operator.post(&refused.path(), &refused.body()).await.expect_error(422, "capability_not_granted");
    let instance = operator.instance(&trusted(&pages)).await;
    let space = operator.open(&SpaceRequest::new("default", &instance).granting(&granted)).await;
    space.complete("n", "navigate", json!({ "url": pages.url("/") })).await;
    let run = |expression: &str| json!({ "expression": expression });
    assert_eq!(space.complete("1", "evaluate", run("document.title + 1")).await["value"], "S1");
    let failed = space.run("2", "evaluate", run("throw new Error('token=PLANTED-0123456789')")).await;
    let error = failed.data()["error"].clone();
    assert_eq!((&error["code"], &error["may_have_run"]), (&json!("script_failed"), &json!(true)));
    assert!(!error.to_string().contains("PLANTED"), "{error}");
    let queued = space.kinds().await.iter().filter(|kind| *kind == "queued").count();
    assert_eq!(queued, 3, "each use is an event");

    server.kill9();
    let later = Server::start(ServerOptions::default().data_dir(server.data_dir()));
    let operator = later.client(&later.operator_token());
    let space = space.through(&operator);
    let task = space.run("3", "evaluate", run("1")).await.expect(200);
    let error = &task.data()["error"];
    assert_eq!((&error["code"], &error["may_have_run"]), (&json!("capability_not_granted"), &json!(false)));
    assert!(error["message"].as_str().is_some_and(|said| said.contains("configuration")), "{error}");
    let body = trusted(&pages);
    operator.post("/browser-instances", &body).await.expect_error(422, "invalid_request");
}

const TELLS: &str = "<title>?</title><script>document.title = [Intl.DateTimeFormat().resolvedOptions().timeZone, \
    (1.5).toLocaleString(), navigator.language, innerWidth, innerHeight, devicePixelRatio, \
    matchMedia('(prefers-color-scheme: dark)').matches, navigator.userAgent].join('|')</script>";

#[tokio::test]
async fn an_environment_is_told_to_every_page_and_survives_its_browser_and_the_server() {
    let pages = Pages::serve([("/", Page::html(TELLS)), ("/start", Page::html(TELLS))]).await;
    let mut server = Server::start(ServerOptions::default());
    let agent = server.agent("default", "agent-1").await;
    let instance = server.operator().chromium_instance(&["default"], &[pages.host()]).await;
    let environment = json!({
        "timezone": "Europe/Berlin", "locale": "de-DE", "viewport": { "width": 500, "height": 600 },
        "device_scale": 2, "colour_scheme": "dark", "user_agent": "Agent/1", "start_page": pages.url("/start"),
    });
    let request = SpaceRequest::new("default", &instance).agent("agent-1").granting(&ROWS);
    let space = agent.open(&request.clone().with("environment", environment.clone())).await;
    let told = "Europe/Berlin|1,5|de-DE|500|600|2|true|Agent/1";
    let title = async |request: &str| space.complete(request, "get_title", json!({})).await["title"].clone();
    assert_eq!(title("1").await, told, "the start page");
    space.complete("2", "tab_new", json!({ "url": pages.url("/") })).await;
    assert_eq!(title("3").await, told);
    let opened = space.events().await[0]["payload"]["environment"].clone();
    for (field, value) in environment.as_object().expect("an object") {
        let same = opened[field] == *value || opened[field].as_f64() == value.as_f64() && value.is_number();
        assert!(same, "{field}: {opened}");
    }
    let starts = || pages.hits("/start");
    let before = starts();
    for pid in server.browsers() {
        // It may have gone with its parent.
        let _ = kill(Pid::from_raw(i32::try_from(pid).expect("a pid fits")), Signal::SIGKILL);
    }
    eventually("the browser is started again", || async { (starts() > before).then_some(()) }).await;
    eventually("the Space is idle", || async { (space.status().await == "idle").then_some(()) }).await;
    assert_eq!(title("4").await, told);
    let before = starts();
    server.kill9();
    server.again();
    eventually("the browser is started again", || async { (starts() > before).then_some(()) }).await;
    assert_eq!(title("5").await, told);
}

#[tokio::test]
async fn an_environment_that_can_not_be_is_refused_at_the_door_by_its_field() {
    let server = Server::start(ServerOptions::default());
    let operator = server.operator();
    let agent = server.agent("default", "agent-1").await;
    let instance = operator.scripted_instance(&["default"]).await;
    let request = SpaceRequest::new("default", &instance).agent("agent-1");
    for (field, value) in [
        ("timezone", json!("Mars/Olympus")),
        ("locale", json!("de_DE")),
        ("viewport", json!({ "width": 500 })),
        ("viewport", json!({ "width": 500, "height": 5 })),
        ("device_scale", json!("2")),
        ("device_scale", json!(9)),
        ("colour_scheme", json!("sepia")),
        ("user_agent", json!("")),
        ("start_page", json!("file:///etc/passwd")),
        ("start_page", json!("https://a.example/?access_token=PLANTED-0123456789")),
        ("allowed_hosts", json!(["http://a.example"])),
        ("cookies", json!([])),
    ] {
        let mut environment = json!({});
        environment[field] = value;
        let asked = request.clone().with("environment", environment);
        let refused = agent.post(&asked.path(), &asked.body()).await;
        let error = refused.expect_error(422, "invalid_request");
        assert!(error.to_string().contains(&format!("environment.{field}")), "{error}");
        assert!(!error.to_string().contains("PLANTED"), "{error}");
    }
    let hosts = json!({ "allowed_hosts": ["a.example:8080"] });
    let asked = request.clone().with("environment", hosts.clone());
    agent.post(&asked.path(), &asked.body()).await.expect_error(403, "forbidden");
    let space = operator.open(&SpaceRequest::new("default", &instance).with("environment", hosts)).await;
    assert_eq!(space.events().await[0]["payload"]["environment"]["allowed_hosts"], json!(["a.example:8080"]));
    let keyed = async |asked: &SpaceRequest| {
        operator.post_with(&asked.path(), &asked.body(), "idempotency-key", "k").await
    };
    space.close().await.expect(200);
    let first = SpaceRequest::new("default", &instance).with("environment", json!({ "locale": "de-DE" }));
    keyed(&first).await.expect(201);
    keyed(&first).await.expect(200);
    let another = SpaceRequest::new("default", &instance).with("environment", json!({ "locale": "fr-FR" }));
    keyed(&another).await.expect_error(409, "request_id_conflict");
}
