//! `bench browser`: our own cost on top of the browser's, for click, navigate and snapshot.
//!
//! The same page is used by a Space over HTTP and by raw CDP in a browser beside it, step by step in turn, in one run;
//! the first turn goes round. Between two steps both browsers come to rest, so that neither is
//! measured while the other still draws.
//!
//! The bar stands over the *plain script*: raw CDP calls, one after the other, that do what the capability promises and
//! know in the end what its result says. The *bare calls* are told beside it: they make the browser do something, check
//! nothing and know nothing.

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
    script::{self, Step},
};

const ROUNDS: usize = 60;
const WARM_UP_ROUNDS: usize = 5;

/// Time for a page to be drawn after a step. It differs from round to round, or a side would meet the browser's frames
/// (16.7 ms) at the same moment each time, and one of them a whole frame later than the other.
pub(crate) fn rest(round: usize) -> Duration {
    Duration::from_micros(80_000 + (round as u64 * 7_919) % 33_400)
}

const PAGE: &str =
    "<title>Bench</title><h1>Bench</h1><button id=b onclick='n.textContent = ++window.c'>Count</button>
    <p id=n>0</p><script>window.c = 0</script><ul><li>One <a href='/a'>a</a><li>Two <a href='/b'>b</a></ul>";

/// Samples of one step, in milliseconds.
#[derive(Default)]
struct Samples {
    ours: Vec<f64>,
    script: Vec<f64>,
    bare: Vec<f64>,
}

fn p50(samples: &[f64]) -> f64 {
    median(samples[WARM_UP_ROUNDS..].to_vec())
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

/// Who takes a step.
#[derive(Clone, Copy)]
enum Side {
    Ours,
    Script,
    Bare,
}

/// All sides, and what they took.
struct Match {
    ours: Ours,
    raw: RawBrowser,
    url: String,
    button: String,
    samples: [Samples; 3],
}

impl Match {
    /// All sides take the step, one after the other has come to rest.
    async fn step(&mut self, step: Step, round: usize) -> Result<()> {
        let mut sides = [Side::Ours, Side::Script, Side::Bare];
        sides.rotate_left(round % 3);
        for side in sides {
            let took = match side {
                Side::Ours => self.ours(step).await?,
                Side::Script => script::whole(&mut self.raw, step, &self.url)?,
                Side::Bare => script::bare(&mut self.raw, step, &self.url)?,
            };
            let samples = &mut self.samples[step as usize];
            match side {
                Side::Ours => samples.ours.push(took),
                Side::Script => samples.script.push(took),
                Side::Bare => samples.bare.push(took),
            }
            sleep(rest(round)).await;
        }
        Ok(())
    }

    async fn ours(&mut self, step: Step) -> Result<f64> {
        let (capability, args) = match step {
            Step::Navigate => ("navigate", json!({ "url": self.url })),
            Step::Snapshot => ("snapshot", json!({})),
            Step::Click => ("click", json!({ "ref": self.button })),
        };
        let (result, took) = self.ours.step(capability, &args).await?;
        if matches!(step, Step::Snapshot) {
            self.button = button_of(&result)?;
        }
        Ok(took)
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
        samples: Default::default(),
    };
    for round in 0..if options.quick { 5 } else { ROUNDS } + WARM_UP_ROUNDS {
        for step in [Step::Navigate, Step::Snapshot, Step::Click] {
            both.step(step, round).await?;
        }
        if round == 0 {
            let counted = both.ours.step("get_content", &json!({})).await?.0.to_string();
            ensure!(counted.contains('1'), "the click counted: {counted}");
        }
        disk.measure(10)?;
    }
    ensure!(both.raw.profile().exists(), "the baseline's browser kept its profile");
    Ok(figures(&both.samples, Bar::AtMost(2.0 + 2.0 * disk.p50_ms())))
}

fn figures(samples: &[Samples; 3], bar: Bar) -> Vec<Figure> {
    let names = [
        ["navigate_bare_ms", "navigate_raw_ms", "navigate_overhead_ms"],
        ["snapshot_bare_ms", "snapshot_raw_ms", "snapshot_overhead_ms"],
        ["click_bare_ms", "click_raw_ms", "click_overhead_ms"],
    ];
    let figure = |figure, value, bar| Figure { bench: "browser", figure, value, unit: "ms", bar };
    let of_step = |(names, samples): ([&'static str; 3], &Samples)| {
        let script = p50(&samples.script);
        [
            figure(names[0], p50(&samples.bare), Bar::None),
            figure(names[1], script, Bar::None),
            figure(names[2], p50(&samples.ours) - script, bar),
        ]
    };
    names.into_iter().zip(samples).flat_map(of_step).collect()
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
