//! `bench browser`: our own cost on top of the browser's, for click, navigate and snapshot.
//!
//! The same page is used by a Space over HTTP and by raw CDP in a browser beside it, step by step in turn, in one run.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use browserspace_tests::{Page, Pages, Server, ServerOptions, SpaceRequest};
use serde_json::{Value, json};

use crate::{
    Options,
    disk::{Disk, milliseconds},
    figure::{Bar, Figure, median},
    keepalive::KeepAlive,
    raw::RawBrowser,
};

const ROUNDS: usize = 60;
const WARM_UP_ROUNDS: usize = 5;

const PAGE: &str =
    "<title>Bench</title><h1>Bench</h1><button id=b onclick='n.textContent = ++window.c'>Count</button>
    <p id=n>0</p><script>window.c = 0</script><ul><li>One <a href='/a'>a</a><li>Two <a href='/b'>b</a></ul>";

/// Samples of one step, ours and the baseline's.
#[derive(Default)]
struct Pair {
    ours: Vec<f64>,
    raw: Vec<f64>,
}

impl Pair {
    fn overhead_ms(&self) -> f64 {
        let warm = |samples: &[f64]| median(samples[WARM_UP_ROUNDS..].to_vec());
        eprintln!("ours {:.2} raw {:.2}", warm(&self.ours), warm(&self.raw));
        warm(&self.ours) - warm(&self.raw)
    }
}

/// A Space on a real browser.
struct Ours {
    connection: KeepAlive,
    path: String,
    submits: u32,
}

impl Ours {
    async fn step(&mut self, capability: &str, args: &Value) -> Result<(Value, f64)> {
        self.submits += 1;
        let request_id = format!("r{}", self.submits);
        let body = json!({ "request_id": request_id, "capability": capability, "args": args }).to_string();
        let begun = Instant::now();
        let answer = self.connection.post(&self.path, &body).await?;
        let took = milliseconds(begun.elapsed());
        ensure!(answer.shows_completed(), "{capability} did not complete: {}", answer.text());
        Ok((answer.json()?["data"]["result"].clone(), took))
    }
}

/// Measures.
pub(crate) fn run(options: &Options) -> Result<Vec<Figure>> {
    // Two threads: raw CDP blocks one of them, and the pages are served from the other.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(options))
}

async fn measure(options: &Options) -> Result<Vec<Figure>> {
    let pages = Pages::serve([("/", Page::html(PAGE))]).await;
    let url = pages.url("/");
    let server = Server::start(ServerOptions::default().arg("--log-filter").arg("warn"));
    let mut disk = Disk::new(server.data_dir())?;
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let connection = KeepAlive::connect(&server.address(), &server.operator_token()).await?;
    let mut ours = Ours { connection, path: format!("/api/v1{}", space.path("/tasks")), submits: 0 };
    let mut raw = RawBrowser::start()?;
    let (mut navigate, mut snapshot, mut click) = (Pair::default(), Pair::default(), Pair::default());
    for round in 0..if options.quick { 5 } else { ROUNDS } + WARM_UP_ROUNDS {
        navigate.ours.push(ours.step("navigate", &json!({ "url": url })).await?.1);
        navigate.raw.push(raw_navigate(&mut raw, &url)?);
        let (seen, took) = ours.step("snapshot", &json!({})).await?;
        snapshot.ours.push(took);
        snapshot.raw.push(raw_snapshot(&mut raw)?);
        let button = button_of(&seen)?;
        click.ours.push(ours.step("click", &json!({ "ref": button })).await?.1);
        click.raw.push(raw_click(&mut raw)?);
        if round == 0 {
            let counted = ours.step("get_content", &json!({})).await?.0.to_string();
            ensure!(counted.contains('1'), "the click counted: {counted}");
        }
        disk.measure(10)?;
    }
    ensure!(raw.profile().exists(), "the baseline's browser kept its profile");
    let bar = 2.0 + 2.0 * disk.p50_ms();
    let figure = |figure, pair: &Pair| {
        let value = pair.overhead_ms();
        Figure { bench: "browser", figure, value, unit: "ms", bar: Bar::AtMost(bar) }
    };
    Ok(vec![
        figure("click_overhead_ms", &click),
        figure("navigate_overhead_ms", &navigate),
        figure("snapshot_overhead_ms", &snapshot),
    ])
}

/// The ref of the page's button in a snapshot.
fn button_of(snapshot: &Value) -> Result<String> {
    let text = snapshot["text"].as_str().context("a snapshot is text")?;
    let line = text.lines().find(|line| line.contains("button")).context("the button is in the snapshot")?;
    let is_ref = |word: &&str| {
        word.len() > 1 && word.starts_with('e') && word[1..].bytes().all(|b| b.is_ascii_digit())
    };
    let mut words = line.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.rfind(is_ref).map(str::to_owned).with_context(|| format!("the button has a ref: {line}"))
}

fn raw_navigate(raw: &mut RawBrowser, url: &str) -> Result<f64> {
    let begun = Instant::now();
    raw.call("Page.navigate", &json!({ "url": url }))?;
    raw.wait_for("Page.loadEventFired")?;
    Ok(milliseconds(begun.elapsed()))
}

fn raw_snapshot(raw: &mut RawBrowser) -> Result<f64> {
    let begun = Instant::now();
    let tree = raw.call("Accessibility.getFullAXTree", &json!({}))?;
    ensure!(tree["nodes"].as_array().is_some_and(|nodes| nodes.len() > 5), "the tree has nodes");
    Ok(milliseconds(begun.elapsed()))
}

fn raw_click(raw: &mut RawBrowser) -> Result<f64> {
    let document = raw.call("DOM.getDocument", &json!({}))?;
    let query = json!({ "nodeId": document["root"]["nodeId"], "selector": "#b" });
    let node = raw.call("DOM.querySelector", &query)?;
    // A ref is known before it is clicked; so is the node here.
    let begun = Instant::now();
    let of_node = json!({ "nodeId": node["nodeId"] });
    raw.call("DOM.scrollIntoViewIfNeeded", &of_node)?;
    let quads = raw.call("DOM.getContentQuads", &of_node)?;
    let corner = |index: usize| quads["quads"][0][index].as_f64().context("a quad has numbers");
    let (x, y) = ((corner(0)? + corner(4)?) / 2.0, (corner(1)? + corner(5)?) / 2.0);
    for (kind, buttons, count) in [("mouseMoved", 0, 0), ("mousePressed", 1, 1), ("mouseReleased", 0, 1)] {
        let button = if count == 0 { "none" } else { "left" };
        raw.call(
            "Input.dispatchMouseEvent",
            &json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": count }),
        )?;
    }
    Ok(milliseconds(begun.elapsed()))
}
