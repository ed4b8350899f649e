//! The comparison: we, three peers and bare CDP do the same jobs on the same pages, in turn, in one run.
//!
//! ```text
//! rounds (navigate, snapshot, fill, click, login) ─► memory over many jobs ─► large pages ─► frames ─► cold starts
//! ```
//!
//! The peers are npm packages that are installed beside the build, if at all; nothing of them is part of the product,
//! and no test needs them. Nothing of ours is tuned for the run.

mod agent_browser;
mod answer;
mod arena;
mod contestant;
mod floor;
mod jobs;
mod mcp;
mod ours;
mod report;
mod results;
mod site;
mod tree;
mod watch;

use std::path::PathBuf;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

use self::{
    arena::Arena,
    contestant::{Side, Start},
    report::Report,
    site::Site,
    watch::Watch,
};
use crate::{Options, figure::Figure, raw};

/// How often the form is opened and read in a run that is quick.
const QUICK_JOBS: usize = 20;

/// What the comparison can be told.
#[derive(Debug, clap::Args)]
pub(crate) struct PeerOptions {
    /// Where the packages of the peers are installed (`npm ci`); without it nobody is compared with.
    #[arg(long, value_name = "FOLDER")]
    peers: Option<PathBuf>,
    /// Only these sides; figures that need the others are missing then.
    #[arg(long, value_delimiter = ',', value_name = "SIDES")]
    only: Vec<Side>,
    /// Rounds of the small jobs.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// How often the form is opened and read for the figures of memory.
    #[arg(long, default_value_t = 1_000)]
    jobs: usize,
    /// Sizes of the shop.
    #[arg(long, value_delimiter = ',', default_values_t = [200, 2_000, 20_000])]
    rows: Vec<usize>,
    /// Cold starts of each side.
    #[arg(long, default_value_t = 5)]
    colds: usize,
    /// Writes the tables into this document too, between its two markers.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

impl PeerOptions {
    /// Whether there is somebody to compare with.
    pub(crate) const fn are_installed(&self) -> bool {
        self.peers.is_some()
    }
}

/// Measures all sides.
pub(crate) fn run(options: &Options) -> Result<Vec<Figure>> {
    // Two threads: the pages are served from the one, while the other may wait for a task of ours.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let watch = Watch::begin();
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let watching = watch.clone();
    runtime.spawn(async move {
        tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => () }
        watching.interrupt();
    });
    let peers = &options.peers;
    let packages = peers.peers.clone().context("--peers names where the packages of the peers are")?;
    let packages = packages.canonicalize().context("the folder of the packages is there")?;
    let folder = tempfile::Builder::new().prefix("bs-peers-").tempdir()?;
    let site = runtime.block_on(Site::serve(&peers.rows));
    let browser = raw::program()?;
    let handle = runtime.handle().clone();
    let start = Start {
        folder: folder.path(),
        packages: &packages,
        browser: &browser,
        site: &site,
        watch: &watch,
        handle: &handle,
    };
    let sides = if peers.only.is_empty() { Side::ALL.to_vec() } else { peers.only.clone() };
    let mut arena = Arena::new(start, &sides);
    play(&mut arena, options)?;
    let report = Report { results: &arena.results, sides: &sides, rows: &peers.rows, jobs: jobs_of(options) };
    let document = report.markdown(&packages, &browser)?;
    if !options.json {
        println!("{document}");
    }
    if let Some(file) = &peers.write {
        report::write(file, &document)?;
    }
    Ok(arena.results.figures(&peers.rows))
}

/// How often the form is opened and read.
fn jobs_of(options: &Options) -> usize {
    if options.quick { options.peers.jobs.min(QUICK_JOBS) } else { options.peers.jobs }
}

fn play(arena: &mut Arena<'_>, options: &Options) -> Result<()> {
    let peers = &options.peers;
    let shorter = |count: usize, quick: usize| if options.quick { count.min(quick) } else { count };
    eprintln!("rounds of small jobs");
    jobs::rounds(arena, shorter(peers.rounds, 3))?;
    eprintln!("memory over many jobs");
    jobs::memory(arena, jobs_of(options))?;
    for rows in &peers.rows {
        eprintln!("{rows} rows");
        // The largest page takes each side minutes; the middle of a few is the middle of many.
        let rounds = match rows {
            ..=200 => 10,
            ..=2_000 => 4,
            _ => 1,
        };
        jobs::sizes(arena, *rows, shorter(rounds, 1))?;
    }
    eprintln!("frames and shadow roots");
    jobs::controls(arena)?;
    eprintln!("cold starts");
    jobs::cold(arena, shorter(peers.colds, 1))
}
