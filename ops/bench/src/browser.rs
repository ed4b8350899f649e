//! `bench browser`: our own cost on top of the browser's, for click, navigate and snapshot.
//!
//! The same page is used by a Space over HTTP and by raw CDP in a browser beside it, step by step in turn, in one run;
//! each takes the first turn in every other round. Between two steps both browsers come to rest, so that neither is
//! measured while the other still draws.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use browserspace_tests::{Page, Pages, Server, ServerOptions, SpaceRequest};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    Options,
    disk::{Disk, milliseconds},
    figure::{Bar, Figure, median},
    keepalive::KeepAlive,
    raw::RawBrowser,
};

const ROUNDS: usize = 60;
const WARM_UP_ROUNDS: usize = 5;

/// Time for a page to be drawn after a step. It differs from round to round, or a side would meet the browser's frames
/// (16.7 ms) at the same moment each time, and one of them a whole frame later than the other.
fn rest(round: usize) -> Duration {
    Duration::from_micros(80_000 + (round as u64 * 7_919) % 33_400)
}

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
    fn raw_ms(&self) -> f64 {
        median(self.raw[WARM_UP_ROUNDS..].to_vec())
    }

    fn overhead_ms(&self) -> f64 {
        median(self.ours[WARM_UP_ROUNDS..].to_vec()) - self.raw_ms()
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

#[derive(Clone, Copy)]
enum Step {
    Navigate,
    Snapshot,
    Click,
}

/// Both sides, and what they took.
struct Match {
    ours: Ours,
    raw: RawBrowser,
    url: String,
    button: String,
    navigate: Pair,
    snapshot: Pair,
    click: Pair,
}

impl Match {
    /// Both take the step, one after the other has come to rest.
    async fn step(&mut self, step: Step, is_ours_first: bool) -> Result<()> {
        for is_ours in [is_ours_first, !is_ours_first] {
            if is_ours {
                self.ours(step).await?;
            } else {
                self.raw(step)?;
            }
            sleep(rest(self.navigate.ours.len())).await;
        }
        Ok(())
    }

    async fn ours(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Navigate => {
                let took = self.ours.step("navigate", &json!({ "url": self.url })).await?.1;
                self.navigate.ours.push(took);
            }
            Step::Snapshot => {
                let (seen, took) = self.ours.step("snapshot", &json!({})).await?;
                self.snapshot.ours.push(took);
                self.button = button_of(&seen)?;
            }
            Step::Click => {
                let took = self.ours.step("click", &json!({ "ref": self.button })).await?.1;
                self.click.ours.push(took);
            }
        }
        Ok(())
    }

    fn raw(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Navigate => self.navigate.raw.push(raw_navigate(&mut self.raw, &self.url)?),
            Step::Snapshot => self.snapshot.raw.push(raw_snapshot(&mut self.raw)?),
            Step::Click => self.click.raw.push(raw_click(&mut self.raw)?),
        }
        Ok(())
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
    let server = Server::start(ServerOptions::default().arg("--log-filter").arg("warn"));
    let mut disk = Disk::new(server.data_dir())?;
    let operator = server.operator();
    let instance = operator.chromium_instance(&["default"], &[pages.host()]).await;
    let space = operator.open(&SpaceRequest::new("default", &instance)).await;
    let connection = KeepAlive::connect(&server.address(), &server.operator_token()).await?;
    let ours = Ours { connection, path: format!("/api/v1{}", space.path("/tasks")), submits: 0 };
    let mut both = Match {
        ours,
        raw: RawBrowser::start()?,
        url: pages.url("/"),
        button: String::new(),
        navigate: Pair::default(),
        snapshot: Pair::default(),
        click: Pair::default(),
    };
    for round in 0..if options.quick { 5 } else { ROUNDS } + WARM_UP_ROUNDS {
        for step in [Step::Navigate, Step::Snapshot, Step::Click] {
            both.step(step, round.is_multiple_of(2)).await?;
        }
        if round == 0 {
            let counted = both.ours.step("get_content", &json!({})).await?.0.to_string();
            ensure!(counted.contains('1'), "the click counted: {counted}");
        }
        disk.measure(10)?;
    }
    ensure!(both.raw.profile().exists(), "the baseline's browser kept its profile");
    Ok(figures(&both, Bar::AtMost(2.0 + 2.0 * disk.p50_ms())))
}

fn figures(both: &Match, bar: Bar) -> Vec<Figure> {
    let figure = |figure, value, bar| Figure { bench: "browser", figure, value, unit: "ms", bar };
    vec![
        figure("click_raw_ms", both.click.raw_ms(), Bar::None),
        figure("click_overhead_ms", both.click.overhead_ms(), bar),
        figure("navigate_raw_ms", both.navigate.raw_ms(), Bar::None),
        figure("navigate_overhead_ms", both.navigate.overhead_ms(), bar),
        figure("snapshot_raw_ms", both.snapshot.raw_ms(), Bar::None),
        figure("snapshot_overhead_ms", both.snapshot.overhead_ms(), bar),
    ]
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
