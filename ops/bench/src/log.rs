//! `bench log`: durable appends against a bare file that does the least a durable log can do, and cold replay.
//!
//! The bare file has the same shape: 64 writers, one thread that takes what is pending, one `write` and one
//! `fdatasync` per batch, then the acks. It writes as many bytes per append as the log does, and does nothing else: no
//! checks, no numbering, no hashes, no index. Both take turns, so a change of the disk's mood meets both.

mod bare;
mod sample;

use std::{
    fs::File,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use eventlog::{Append, Appended, EventLog, OpenOptions, Position, SegmentLog};
use futures::StreamExt;

use crate::{
    Options,
    figure::{Bar, Figure, median},
};

const WRITERS: u64 = 64;

struct Plan {
    rounds: usize,
    round: Duration,
    replay_tasks: u64,
}

/// Measures the log.
pub(crate) fn run(options: &Options) -> Result<Vec<Figure>> {
    let plan = if options.quick {
        Plan { rounds: 3, round: Duration::from_millis(300), replay_tasks: 30_000 }
    } else {
        Plan { rounds: 9, round: Duration::from_millis(1_000), replay_tasks: 300_000 }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut figures = runtime.block_on(appends(options, &plan))?;
    figures.extend(runtime.block_on(replay(options, &plan))?);
    Ok(figures)
}

/// What one round of one side came to.
struct Round {
    appends_per_s: f64,
    ack_p99: Duration,
}

impl Round {
    fn of(mut latencies: Vec<Duration>, took: Duration) -> Self {
        latencies.sort_unstable();
        let appends_per_s = latencies.len() as f64 / took.as_secs_f64();
        Self { appends_per_s, ack_p99: latencies[latencies.len() * 99 / 100] }
    }
}

async fn appends(options: &Options, plan: &Plan) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let log = Arc::new(SegmentLog::open(OpenOptions::new(folder.path().join("log")))?);
    let mut next_id = 0;
    let bytes = bytes_per_append(&log, &mut next_id).await?;
    let bare = bare::BareFile::start(&folder.path().join("bare"))?;
    let (mut of_log, mut of_bare) = (Vec::new(), Vec::new());
    // The first turn of both only warms up.
    for round in 0..=plan.rounds {
        let bare_round = bare_round(&bare, bytes, plan.round).await?;
        let log_round = log_round(&log, &mut next_id, plan.round).await?;
        if round > 0 {
            of_bare.push(bare_round);
            of_log.push(log_round);
        }
    }
    log.close().await;
    let ratios = |of: fn(&Round) -> f64| {
        median(of_log.iter().zip(&of_bare).map(|(log, bare)| of(log) / of(bare)).collect())
    };
    let median_of = |rounds: &[Round], of: fn(&Round) -> f64| median(rounds.iter().map(of).collect());
    let figure = |figure, value, unit, bar| Figure { bench: "log", figure, value, unit, bar };
    let p99_ms = |round: &Round| round.ack_p99.as_secs_f64() * 1_000.0;
    Ok(vec![
        figure("bytes_per_append", bytes as f64, "bytes", Bar::None),
        figure("bare_appends_per_s_64", median_of(&of_bare, |round| round.appends_per_s), "1/s", Bar::None),
        figure("appends_per_s_64", median_of(&of_log, |round| round.appends_per_s), "1/s", Bar::None),
        figure("append_ratio_64", ratios(|round| round.appends_per_s), "ratio", Bar::AtLeast(0.6)),
        figure("bare_ack_p99_ms_64", median_of(&of_bare, p99_ms), "ms", Bar::None),
        figure("ack_p99_ms_64", median_of(&of_log, p99_ms), "ms", Bar::None),
        figure("ack_p99_ratio_64", ratios(|round| round.ack_p99.as_secs_f64()), "ratio", Bar::AtMost(3.0)),
    ])
}

/// How many bytes an append takes when it shares its commit with others, as it does under load.
async fn bytes_per_append(log: &Arc<SegmentLog>, next_id: &mut u64) -> Result<usize> {
    let length = || -> Result<u64> {
        let mut bytes = 0;
        for entry in std::fs::read_dir(log.folder())? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension == "log") {
                bytes += entry.metadata()?.len();
            }
        }
        Ok(bytes)
    };
    let (before, before_id) = (length()?, *next_id);
    log_round(log, next_id, Duration::from_millis(100)).await?;
    let appended = *next_id - before_id;
    ensure!(appended > 0, "nothing was appended in a tenth of a second");
    Ok(usize::try_from((length()? - before) / appended)?)
}

/// 64 writers, each on a stream of its own, each waiting for its ack before the next append.
async fn log_round(log: &Arc<SegmentLog>, next_id: &mut u64, round: Duration) -> Result<Round> {
    let begun = Instant::now();
    let first_id = *next_id;
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let log = Arc::clone(log);
        // What a caller does to make an event is not the log's cost: only the id is new each time.
        let template = sample::queued(writer, first_id);
        writers.push(tokio::spawn(async move {
            let mut latencies = Vec::new();
            while begun.elapsed() < round {
                let id = first_id + latencies.len() as u64 * WRITERS + writer;
                let append = Append { id: sample::command(id), ..template.clone() };
                let asked = Instant::now();
                let answer = log.append(append).await?;
                latencies.push(asked.elapsed());
                ensure!(matches!(answer, Appended::Stored(_)), "an append came to {answer:?}");
            }
            Ok(latencies)
        }));
    }
    let mut all = Vec::new();
    let mut longest = 0;
    for writer in writers {
        let latencies = writer.await??;
        longest = longest.max(latencies.len() as u64);
        all.extend(latencies);
    }
    *next_id = first_id + longest * WRITERS;
    Ok(Round::of(all, begun.elapsed()))
}

async fn bare_round(bare: &bare::BareFile, bytes: usize, round: Duration) -> Result<Round> {
    let begun = Instant::now();
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let bare = bare.clone();
        writers.push(tokio::spawn(async move {
            let mut latencies = Vec::new();
            while begun.elapsed() < round {
                let record = vec![0x5a; bytes];
                let asked = Instant::now();
                bare.append(record).await?;
                latencies.push(asked.elapsed());
            }
            anyhow::Ok(latencies)
        }));
    }
    let mut all = Vec::new();
    for writer in writers {
        all.extend(writer.await??);
    }
    Ok(Round::of(all, begun.elapsed()))
}

/// Fills a log with whole tasks; then, each time cold: verifies it, opens it, and reads it to the end.
async fn replay(options: &Options, plan: &Plan) -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let log = SegmentLog::open(OpenOptions::new(folder.path()))?;
    let mut next = 0;
    while next < plan.replay_tasks {
        let until = (next + 64 * 80).min(plan.replay_tasks);
        let appends: Vec<Append> =
            (next..until).step_by(80).map(|n| sample::tasks(n % 256, n, 80.min(until - n))).collect();
        for answer in futures::future::join_all(appends.into_iter().map(|append| log.append(append))).await {
            let answer = answer?;
            ensure!(matches!(answer, Appended::Stored(_)), "an append came to {answer:?}");
        }
        next = until;
    }
    log.close().await;
    let (mut rates, mut opens) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        forget_pages(folder.path())?;
        let opening = Instant::now();
        let log = SegmentLog::open(OpenOptions::new(folder.path()))?;
        opens.push(opening.elapsed().as_secs_f64());
        // Opening reads the last segment; it must be cold as well.
        forget_pages(folder.path())?;
        let head = log.durable_head().borrow().0;
        let begun = Instant::now();
        let mut read = 0u64;
        let mut events = log.read_all(Position(1));
        while let Some(event) = events.next().await {
            read += u64::from(event?.position.0 > 0);
        }
        rates.push(read as f64 / begun.elapsed().as_secs_f64());
        ensure!(read == head, "{read} of {head} events were read");
        log.close().await;
    }
    let verified = verify_rate(folder.path())?;
    let figure = |figure, value, unit, bar| Figure { bench: "log", figure, value, unit, bar };
    Ok(vec![
        figure("replay_events_per_s", median(rates), "1/s", Bar::AtLeast(500_000.0)),
        figure("verify_events_per_s", verified, "1/s", Bar::AtLeast(1_000_000.0)),
        figure("open_s", median(opens), "s", Bar::AtMost(1.0)),
    ])
}

/// Events that are verified in a second: every byte, checksum and chain, on all processors.
fn verify_rate(folder: &Path) -> Result<f64> {
    let mut rates = Vec::new();
    for _ in 0..3 {
        forget_pages(folder)?;
        let begun = Instant::now();
        let report = eventlog::verify::check(folder, &eventlog::verify::Options::default())?;
        rates.push(report.head.0 as f64 / begun.elapsed().as_secs_f64());
        ensure!(report.is_whole() && report.torn_tail.is_none(), "a fresh log is not whole: {report:?}");
    }
    Ok(median(rates))
}

fn forget_pages(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            let file = File::open(&path)?;
            file.sync_all()?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
                .with_context(|| format!("the page cache keeps {}", path.display()))?;
        }
    }
    Ok(())
}
