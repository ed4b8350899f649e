//! What users of tools like this one ran into, each on a page of our own: F1, F3, F4, F7, F8, F9, F11, F12, F13.
//! (F2 has a file of its own; F10 is kept by the tests of S12.)

use std::{
    fs,
    os::unix::fs::symlink,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use browserspace_tests::{
    Page, Pages, Planted, Program, Server, ServerOptions, Space, SpaceRequest, eventually, eventually_within,
};
use serde_json::{Value, json};

const ROWS: [&str; 16] = [
    "navigate",
    "snapshot",
    "click",
    "check",
    "fill",
    "type",
    "press",
    "get",
    "get_html",
    "get_content",
    "get_title",
    "screenshot",
    "screenshot_annotate",
    "tab_list",
    "wait",
    "scroll",
];

/// An agent of its own with a Space on a browser of its own.
async fn open(server: &Server, pages: &Pages, name: &str, more: Value) -> Space {
    let agent = server.agent("default", name).await;
    let instance = server.operator().chromium_instance(&["default"], &[pages.host()]).await;
    let mut request = SpaceRequest::new("default", &instance).agent(name).granting(&ROWS);
    for (field, value) in more.as_object().into_iter().flatten() {
        request = request.with(field, value.clone());
    }
    agent.open(&request).await
}

/// The ref on the snapshot's line that holds a name.
fn ref_of(snapshot: &Value, name: &str) -> String {
    let text = snapshot["text"].as_str().expect("a snapshot is text");
    let line = text.lines().map(str::trim_start).find(|line| line.contains(name) && line.starts_with('e'));
    let line = line.unwrap_or_else(|| panic!("{name} is not in\n{text}"));
    line.split(' ').next().expect("a line has a word").to_owned()
}

#[tokio::test]
async fn f01_a_killed_server_finds_its_browsers_again_and_a_stopped_one_leaves_none() {
    let busy = "<title>busy</title><canvas id=c></canvas><script>const g=c.getContext('2d');\
        (function draw(t){g.fillRect(t%300,0,9,9);requestAnimationFrame(draw)})(0)</script>";
    let pages = Pages::serve([("/", Page::html(busy))]).await;
    let mut server = Server::start(ServerOptions::default());
    let mut spaces = Vec::new();
    for name in ["one", "two", "three"] {
        let space = open(&server, &pages, name, json!({})).await;
        space.complete("n", "navigate", json!({ "url": pages.url("/") })).await;
        spaces.push(space);
    }
    let orphans = server.browsers();
    server.kill9();
    server.again();
    eventually_within(Duration::from_secs(10), "the orphans are ended", || async {
        server.browsers().iter().all(|pid| !orphans.contains(pid)).then_some(())
    })
    .await;
    for space in &spaces {
        space.becomes("idle").await;
        let page = space.complete("t", "get_title", json!({})).await;
        assert_eq!(page["title"], "about:blank", "a new browser, and it says so");
    }
    let asked = Instant::now();
    server.sigterm().ok();
    server.no_browser_left().await;
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn f03_frames_in_frames_and_shadow_roots_are_read_and_clicked_on_a_scrolled_page() {
    let deepest = Pages::serve([(
        "/",
        Page::html("<input aria-label=Deep oninput=\"parent.postMessage('deep','*')\">"),
    )])
    .await;
    let middle = format!(
        "<button onclick=\"parent.postMessage('button','*')\">Framed</button><iframe src='{}'></iframe>\
         <script>onmessage = (e) => parent.postMessage(e.data, '*')</script>",
        deepest.url("/").replace("127.0.0.1", "localhost")
    );
    let inner = Pages::serve([("/", Page::html(middle))]).await;
    let outer = format!(
        "<title>-</title><div style='height:900px'></div><iframe src='{}' style='width:500px;height:300px'></iframe>\
         <x-open></x-open><x-closed></x-closed><div style='height:900px'></div><script>\
         const said = new Set(); const say = (what) => {{ said.add(what); document.title = [...said].sort().join(); }};\
         onmessage = (e) => say(e.data);\
         for (const mode of ['open', 'closed']) {{ const root = document.querySelector('x-' + mode).attachShadow({{ mode }});\
           root.innerHTML = `<input type=checkbox aria-label=Box-${{mode}}>`; root.firstChild.onclick = () => say(mode); }}</script>",
        inner.url("/").replace("127.0.0.1", "localhost")
    );
    let pages = Pages::serve([("/", Page::html(outer))]).await;
    let server = Server::start(ServerOptions::default());
    let agent = server.agent("default", "one").await;
    let allow = [pages.host(), inner.host(), deepest.host()];
    let both = allow.iter().flat_map(|host| [host.clone(), host.replace("127.0.0.1", "localhost")]);
    let instance = server.operator().chromium_instance(&["default"], &both.collect::<Vec<_>>()).await;
    let space = agent.open(&SpaceRequest::new("default", &instance).agent("one").granting(&ROWS)).await;
    space.complete("n", "navigate", json!({ "url": pages.url("/") })).await;
    space.complete("d", "scroll", json!({ "dy": 500 })).await;
    let snapshot = space.complete("s", "snapshot", json!({})).await;
    assert_eq!(snapshot["frames"], 3);
    space.complete("1", "click", json!({ "ref": ref_of(&snapshot, "\"Framed\"") })).await;
    space.complete("2", "fill", json!({ "ref": ref_of(&snapshot, "\"Deep\""), "text": "x" })).await;
    space.complete("3", "check", json!({ "ref": ref_of(&snapshot, "Box-open") })).await;
    space.complete("4", "check", json!({ "ref": ref_of(&snapshot, "Box-closed") })).await;
    eventually("all four were reached", || async {
        let title = space.show().await.expect(200);
        drop(title);
        let number = space.tasks().await.len();
        let title = space.complete(&format!("t{number}"), "get_title", json!({})).await;
        (title["title"] == "button,closed,deep,open").then_some(())
    })
    .await;
}

#[tokio::test]
async fn f04_popups_are_listed_with_their_opener_and_a_loop_of_them_meets_a_limit() {
    let opener = "<title>opener</title><button onclick=\"window.open('/p')\">Now</button>\
        <a href=/p target=_blank>Blank</a><a href=/p target=_blank rel=noopener>Apart</a>\
        <button onclick=\"setTimeout(()=>window.open('/p'),400)\">Late</button>\
        <button onclick=\"const w=window.open('/p');setTimeout(()=>w.close(),200)\">Brief</button>\
        <button onclick=\"for(let i=0;i<100;i++)window.open('/p?'+i,'w'+i)\">Loop</button>";
    let pages = Pages::serve([("/", Page::html(opener)), ("/p", Page::html("<title>popup</title>"))]).await;
    let server = Server::start(ServerOptions::default());
    let space = open(&server, &pages, "one", json!({})).await;
    space.complete("n", "navigate", json!({ "url": pages.url("/") })).await;
    let snapshot = space.complete("s", "snapshot", json!({})).await;
    let click = async |name: &str| {
        let click = json!({ "ref": ref_of(&snapshot, &format!("\"{name}\"")), "tab": "t1" });
        space.complete(&format!("click-{name}"), "click", click).await
    };
    let tabs = async || {
        let number = space.tasks().await.len();
        space.complete(&format!("l{number}"), "tab_list", json!({})).await["tabs"]
            .as_array()
            .cloned()
            .expect("a list")
    };
    for (name, count) in [("Now", 2), ("Blank", 3), ("Apart", 4), ("Late", 5)] {
        click(name).await;
        eventually(&format!("the popup {name} is listed with its address"), || async {
            let tabs = tabs().await;
            let is_there = tabs.len() == count && tabs[count - 1]["url"] == pages.url("/p").as_str();
            is_there.then_some(())
        })
        .await;
        let opener = tabs().await[count - 1]["opener"].clone();
        assert_eq!(opener, "t1", "{name}");
    }
    click("Brief").await;
    eventually("it closes itself", || async { (tabs().await.len() == 5).then_some(()) }).await;
    click("Loop").await;
    // The browser lets no page open many by one click, and we let no browser have more than 20.
    let count = tabs().await.len();
    assert!((6..=20).contains(&count), "{count} tabs");
    assert_eq!(space.complete("t", "get_title", json!({ "tab": "t1" })).await["title"], "opener", "it lives");
}

#[tokio::test]
async fn f07_a_client_that_goes_away_finds_its_tab_again_and_its_lease_ends_with_a_reason() {
    let page = "<script>if(!sessionStorage.who){sessionStorage.who='me';document.cookie='who=me'}\
        document.title=sessionStorage.who+document.cookie</script>";
    let pages = Pages::serve([("/", Page::html(page)), ("/next", Page::html(page))]).await;
    let server = Server::start(ServerOptions::default());
    let space = open(&server, &pages, "one", json!({ "idle_timeout_seconds": 10 })).await;
    space.complete("n", "navigate", json!({ "url": pages.url("/") })).await;
    let token = space.client().token().expect("an agent has a token").to_owned();
    // All connections of the first client are its own; another one is a client that came back.
    let back = server.client(&token);
    let found = space.through(&back);
    drop(space);
    assert_eq!(found.complete("t", "get_title", json!({})).await["title"], "mewho=me");
    assert_eq!(
        found.complete("m", "navigate", json!({ "url": pages.url("/next") })).await["title"],
        "mewho=me"
    );
    // The auditor's looks are no use of the Space.
    let watcher = found.through(&server.auditor("default").await);
    eventually_within(Duration::from_secs(40), "the lease ends", || async {
        (watcher.status().await == "closed").then_some(())
    })
    .await;
    let last = watcher.events().await.last().cloned().expect("an event");
    assert_eq!((&last["kind"], &last["payload"]["reason"]), (&json!("closed"), &json!("idle_timeout")));
    found.submit("late", "get_title", json!({})).await.expect_error(409, "space_closed");
    server.no_browser_left().await;
}

#[tokio::test]
async fn f08_large_pages_are_cut_at_a_node_in_time_and_cost_no_other_space() {
    let rows: String =
        (0..5_000).map(|row| format!("<tr><td>row {row}<td><a href=/{row}>open {row}</a>")).collect();
    let deep = format!("{}<button>Bottom</button>", "<div>".repeat(3_000));
    let many: String = (0..50_000).map(|item| format!("<p>p{item}</p>")).collect();
    let doubling = "<ul><li>x</ul><script>setInterval(() => { const ul = document.querySelector('ul');\
        if (ul.children.length < 60000) ul.append(...[...ul.children].map((li) => li.cloneNode(true))); }, 300)</script>";
    let pages = Pages::serve([
        ("/rows", Page::html(format!("<title>r</title><table>{rows}</table>"))),
        ("/deep", Page::html(deep)),
        ("/text", Page::html(format!("<p>{}", "word ".repeat(1_000_000)))),
        ("/many", Page::html(many)),
        ("/doubling", Page::html(doubling)),
        ("/small", Page::html("<title>small</title>")),
    ])
    .await;
    let server = Server::start(ServerOptions::default());
    let (space, other) =
        tokio::join!(open(&server, &pages, "one", json!({})), open(&server, &pages, "two", json!({})));
    other.complete("n", "navigate", json!({ "url": pages.url("/small") })).await;
    for path in ["rows", "deep", "text", "many", "doubling"] {
        space
            .complete(&format!("n-{path}"), "navigate", json!({ "url": pages.url(&format!("/{path}")) }))
            .await;
        let read = async {
            let answer = space
                .run(&format!("s-{path}"), "snapshot", json!({ "timeout_ms": 30_000 }))
                .await
                .expect(200);
            answer.data().clone()
        };
        let (task, neighbour) = tokio::join!(read, async {
            let asked = Instant::now();
            other.complete(&format!("t-{path}"), "get_title", json!({})).await;
            asked.elapsed()
        });
        assert!(neighbour < Duration::from_secs(5), "{path}: the other Space waited {neighbour:?}");
        assert_eq!(task["status"], "completed", "{path}: {task}");
        let (result, bytes) = (&task["result"], task["result"].to_string().len());
        assert!(bytes <= 64 * 1024 && result["text"].is_string(), "{path}: {bytes}");
        if path == "rows" || path == "many" {
            let omitted = result["omitted"].as_u64().expect("a count");
            assert!(omitted > 1_000 && result["cursor"].is_string(), "{path}: {omitted}");
            let more = json!({ "cursor": result["cursor"] });
            let more = space.complete(&format!("m-{path}"), "snapshot", more).await;
            assert!(more["omitted"].as_u64().expect("a count") < omitted, "{path}");
        }
    }
}

#[tokio::test]
async fn f09_what_fields_hide_is_in_no_row_and_nowhere_in_the_log() {
    const TYPED: &str = "Hunter2-typed-9981";
    const FILLED: &str = "Prefilled-4432-value";
    let form = format!(
        "<title>login</title><input type=password aria-label=Pass oninput=\"echo.textContent=this.value\">\
         <input autocomplete=one-time-code aria-label=Code value={FILLED}><p id=echo></p>\
         <button onclick=\"document.querySelectorAll('input').forEach((i) => i.type = 'text')\">Show</button>"
    );
    let pages = Pages::serve([("/", Page::html(form))]).await;
    let server = Server::start(ServerOptions::default());
    let space = open(&server, &pages, "one", json!({})).await;
    space.complete("n", "navigate", json!({ "url": pages.url("/") })).await;
    let snapshot = space.complete("s", "snapshot", json!({})).await;
    let (pass, code) = (ref_of(&snapshot, "\"Pass\""), ref_of(&snapshot, "\"Code\""));
    space.complete("f", "fill", json!({ "ref": pass, "text": TYPED })).await;
    for round in 0..2 {
        let text = space.complete(&format!("s{round}"), "snapshot", json!({ "full": true })).await;
        let text = text["text"].as_str().expect("a text");
        assert!(text.contains("18 hidden") && text.contains("20 hidden"), "{text}");
        for (name, what) in [("v", "value"), ("t", "text")] {
            for (field, reference) in [("p", &pass), ("c", &code)] {
                let get = json!({ "ref": reference, "what": what });
                space.complete(&format!("{name}{field}{round}"), "get", get).await;
            }
        }
        let get = json!({ "ref": code, "what": "attribute", "name": "value" });
        space.complete(&format!("a{round}"), "get", get).await;
        space.complete(&format!("h{round}"), "get_html", json!({ "outer": true })).await;
        space.complete(&format!("c{round}"), "get_content", json!({})).await;
        space.complete(&format!("i{round}"), "screenshot_annotate", json!({})).await;
        if round == 0 {
            space.complete("show", "click", json!({ "ref": ref_of(&snapshot, "\"Show\"") })).await;
        }
    }
    space.events().await;
    server.operator().log_after(0).await;
    // With the profile, in which the page itself lies.
    space.close().await.expect(200);
    server.no_browser_left().await;
    let replayed = Program::on(server.data_dir(), &["replay", "--json"]).ok();
    for (place, text) in [
        ("an answer", server.transcript().text()),
        ("an output of the server", server.output()),
        ("the replay", replayed),
    ] {
        for secret in [TYPED, FILLED] {
            // What a test itself sends is no answer.
            assert!(!text.contains(secret), "{secret} is in {place}");
        }
    }
    // While it lives, a browser keeps pages in the cache of its profile; with the Space that is gone.
    space.close().await.expect(200);
    let runtime = server.data_dir().join("runtime");
    let is_folder = |entry: &std::fs::DirEntry| entry.path().is_dir();
    let profiles = || std::fs::read_dir(&runtime).into_iter().flatten().flatten().filter(is_folder).count();
    eventually("the profile is gone", || async { (profiles() == 0).then_some(()) }).await;
    let planted = [Planted::new("typed", TYPED), Planted::new("filled", FILLED)];
    Planted::none_in_folder(&planted, server.data_dir());
}

#[tokio::test]
async fn f11_a_full_host_replaces_nobody_and_a_released_space_answers_nothing_more() {
    let pages = Pages::serve([("/", Page::html("<title>first</title>"))]).await;
    let server = Server::start(ServerOptions::default());
    let space = open(&server, &pages, "one", json!({})).await;
    space.complete("n", "navigate", json!({ "url": pages.url("/") })).await;
    let agent = server.agent("default", "two").await;
    let second = SpaceRequest::new("default", &space.instance).agent("two").granting(&ROWS);
    agent.post(&second.path(), &second.body()).await.expect_error(409, "browser_instance_in_use");
    assert_eq!(space.complete("t", "get_title", json!({})).await["title"], "first", "the first goes on");
    let mut stream = space.follow(None).await;
    space.close().await.expect(200);
    let mut last = None;
    while let Some(event) = stream.next().await {
        // What has no id is a word of the stream itself: why it ends.
        last = event.id.is_some().then(|| event.data["kind"].clone()).or(last);
    }
    let kind = last.expect("it has told something");
    assert_eq!(kind, "closed", "an open stream ends with its Space");
    for capability in ["get_title", "navigate", "snapshot"] {
        let args = if capability == "navigate" { json!({ "url": pages.url("/") }) } else { json!({}) };
        space.submit(capability, capability, args).await.expect_error(409, "space_closed");
    }
    agent.open(&second).await;
}

#[tokio::test]
async fn f12_a_lock_that_somebody_left_is_never_followed_and_no_process_is_ended_by_its_number() {
    let pages = Pages::serve([("/", Page::html("<title>up</title>"))]).await;
    let mut server = Server::start(ServerOptions::default());
    let space = open(&server, &pages, "one", json!({})).await;
    space.complete("n", "navigate", json!({ "url": pages.url("/") })).await;
    server.kill9();
    // Alive, not ours, and named by a record and a lock: as after a reuse of its number, or on another machine.
    let mut stranger =
        Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().expect("a process starts");
    let runtime = server.data_dir().join("runtime");
    let pid = stranger.id();
    for (name, host, pid) in [("aaaaaaaaaaaa", "oldhost", 4_242), ("bbbbbbbbbbbb", "localhost", pid)] {
        let profile = runtime.join(name);
        fs::create_dir(&profile).expect("a profile is made");
        symlink(format!("{host}-{pid}"), profile.join("SingletonLock")).expect("a lock is made");
        let record = json!({
            "space": space.id, "generation": 1, "profile": profile, "pid": pid, "start_ticks": 1,
        });
        fs::write(runtime.join(format!("{name}.json")), record.to_string()).expect("a record is made");
    }
    server.again();
    space.becomes("idle").await;
    let shown = space.complete("m", "navigate", json!({ "url": pages.url("/") })).await;
    assert_eq!(shown["title"], "up");
    let is_alive = stranger.try_wait().expect("it can be asked").is_none();
    stranger.kill().expect("it is ours to end");
    stranger.wait().expect("it ends");
    assert!(is_alive, "a process that is not ours was ended");
    for name in ["aaaaaaaaaaaa", "bbbbbbbbbbbb"] {
        assert!(!runtime.join(name).exists(), "what the dead left is swept");
    }
}

#[tokio::test]
async fn f13_agents_at_once_see_their_own_page_only_and_an_intruder_nothing() {
    const SPACES: usize = 4;
    let pages = Pages::serve(
        ["/0", "/1", "/2", "/3"]
            .map(|path| (path, Page::html(format!("<title>own{path}</title><h1>marker{path}</h1>")))),
    )
    .await;
    let server = Server::start(ServerOptions::default());
    let mut spaces = Vec::new();
    for index in 0..SPACES {
        spaces.push(open(&server, &pages, &format!("agent-{index}"), json!({})).await);
    }
    let work = async |index: usize, space: &Space| {
        for round in 0..6 {
            let url = json!({ "url": pages.url(&format!("/{index}")) });
            space.complete(&format!("n{round}"), "navigate", url).await;
            let seen = space.complete(&format!("s{round}"), "snapshot", json!({})).await;
            assert_eq!(seen["title"], format!("own/{index}"));
            let text = seen["text"].as_str().expect("a text");
            let others = (0..SPACES).filter(|other| *other != index);
            assert!(text.contains(&format!("marker/{index}")), "{text}");
            assert!(!others.into_iter().any(|other| text.contains(&format!("marker/{other}"))), "{text}");
        }
    };
    let intruder = server.agent("default", "intruder").await;
    let intrude = async {
        for (round, space) in spaces.iter().cycle().take(SPACES * 4).enumerate() {
            let theirs = space.through(&intruder);
            theirs.submit(&format!("x{round}"), "get_title", json!({})).await.expect_error(403, "forbidden");
            theirs.cancel().await.expect_error(403, "forbidden");
            theirs.close().await.expect_error(403, "forbidden");
        }
    };
    let all = futures::future::join_all(spaces.iter().enumerate().map(|(index, space)| work(index, space)));
    tokio::join!(all, intrude);
}
