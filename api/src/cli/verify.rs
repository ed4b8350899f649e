//! `verify`: checks the log and what lies beside it, says the first bad place, and tells a crash from a hand.

use std::{
    io::{IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::Args;
use parking_lot::Mutex;

use super::{checkpoint::key_and_checkpoints, output::Output, print};
use crate::{
    audit::{self, Finding, LogReport, Verdict},
    checkpoints::{self, CheckpointStore, KeptCheckpoint},
    config::{Config, FolderFlags},
    offline,
};

pub(super) const HELP: &str = "\
Reads every byte of the log: checksums, positions, sequences, both hash chains, commits, footers; then holds the index,
the views and the artifacts against it. Changes nothing; works beside a running server (then without index and views).
The first bad place is named: file, byte, position, stream, and what can have led to it:
  damage   bytes changed after they were written        edit     good checksums, content that contradicts itself
  removal  acknowledged events are gone                 rewrite  whole in itself, and not what was signed
A log that was made anew, or cut at the end of a batch, is whole in itself: only checkpoints kept elsewhere show that.
Without --checkpoints it is held against those in the data folder, which show an accident, and no hand that reaches both.

Exit codes:
  0  everything is as it was written
  1  it could not be told (nothing there, or it can not be read)
  2  the command line is wrong
  3  the log is broken: damaged, edited, cut or rewritten
  4  whole, but for a batch that a crash cut short and nobody was told of; the next start cuts it off
  5  the log is whole; the index, the views or an artifact are not what it says

Examples:
  browserspace verify                                   everything
  browserspace verify --deep                            and decode every event, and replay every stream
  browserspace verify --checkpoints FILE --key KEY      against signed checkpoints that were kept elsewhere
  browserspace verify --json | jq .findings[0]";

/// How often the bar is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);
const BAR_CELLS: usize = 30;

/// What `verify` is told.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    folder: FolderFlags,
    /// Also decode every event into today's shape, and replay every stream through the rules
    #[arg(long)]
    deep: bool,
    /// The log alone: not the index, the views or the artifacts
    #[arg(long)]
    log_only: bool,
    /// Hold the log against the signed checkpoints in this file, best one that was kept elsewhere
    #[arg(long, value_name = "FILE")]
    checkpoints: Option<PathBuf>,
    /// The file of the public key that they are signed with [default: DIR/checkpoints/public.key]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// So many segments at once [default: as many as there are processors]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    /// The report as JSON
    #[arg(long)]
    json: bool,
}

/// Checks and reports.
pub(super) fn verify(options: &Options) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    offline::existing_log(&config)?;
    let known = match (&options.checkpoints, &options.key) {
        (None, None) => own_checkpoints(&config)?,
        (file, key) => key_and_checkpoints(&config, key.as_deref(), file.as_deref())?.1,
    };
    let scope = audit::Scope {
        known: checkpoints::known(&known),
        deep: options.deep,
        log_only: options.log_only,
        threads: options.threads,
        views: Some(config.views()),
        ..audit::Scope::default()
    };
    let bar = Bar::new();
    let tell = |what, done, total| bar.draw(what, done, total);
    let progress = audit::Progress { tell: bar.is_shown.then_some(&tell), cancelled: None };
    let report = audit::audit(&config.data_dir, &scope, progress);
    bar.clear();
    let report = report?;
    let mut output = Output::new();
    if options.json {
        output.write(&format!("{}\n", serde_json::to_string(&report)?))?;
    } else {
        output.write(&text(&report))?;
    }
    output.flush()?;
    Ok(ExitCode::from(report.verdict.exit_code()))
}

/// Those of the data folder itself. They show an accident, and no hand that could change them too.
fn own_checkpoints(config: &Config) -> Result<Vec<KeptCheckpoint>> {
    let has_any = CheckpointStore::new(&config.data_dir, None).public_file().exists();
    if has_any { Ok(key_and_checkpoints(config, None, None)?.1) } else { Ok(Vec::new()) }
}

/// A line on the standard error, where that is a terminal.
pub(super) struct Bar {
    is_shown: bool,
    drawn: Mutex<Instant>,
}

impl Bar {
    pub(super) fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), drawn: Mutex::new(Instant::now()) }
    }

    pub(super) fn draw(&self, what: &str, done: u64, total: u64) {
        let Some(mut drawn) = self.drawn.try_lock() else { return };
        if !self.is_shown || drawn.elapsed() < DRAW_EVERY {
            return;
        }
        *drawn = Instant::now();
        let percent = done.min(total) * 100 / total.max(1);
        let full = usize::try_from(percent).unwrap_or(100) * BAR_CELLS / 100;
        let cells = format!("{}{}", "#".repeat(full), "-".repeat(BAR_CELLS - full));
        let _ = write!(std::io::stderr(), "\r{what:<10} [{cells}] {percent:>3} %");
    }

    pub(super) fn clear(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r{:60}\r", "");
        }
    }
}

fn text(report: &LogReport) -> String {
    let mut lines = vec![head_line(report)];
    if let Some(torn) = &report.torn_tail {
        let (file, offset) = (print::escaped(&torn.file), torn.offset);
        lines.push(if report.in_use {
            format!("a server is writing: its last batch is under way in {file} from byte {offset} on")
        } else {
            format!(
                "torn tail in {file} from byte {offset} on: a crash cut a batch short that nobody was told of; the next \
                 start keeps it beside and cuts it off"
            )
        });
    }
    lines.extend(report.findings.iter().map(finding_line));
    lines.extend(details(report));
    let word = match report.verdict {
        Verdict::Whole => "WHOLE",
        Verdict::TornTail => "TORN TAIL",
        Verdict::Beside => "BESIDE: the log is whole, what lies beside it is not",
        Verdict::Broken => "BROKEN",
    };
    lines.push(format!("verdict  {word}  ({:.1} s)", Duration::from_millis(report.took_ms).as_secs_f64()));
    lines.join("\n") + "\n"
}

fn head_line(report: &LogReport) -> String {
    let up_to =
        if report.verdict == Verdict::Broken { "whole up to position" } else { "events up to position" };
    format!(
        "log      {up_to} {}, {} streams, {} segments, {} bytes\nglobal   {}\nroot     {}",
        report.head, report.streams, report.segments, report.bytes, report.global_hash, report.root_hash
    )
}

fn details(report: &LogReport) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(found) = &report.checkpoints {
        lines.push(format!("checkpoints  {} held against, up to position {}", found.checked, found.newest));
    }
    if let Some(found) = &report.index {
        lines.push(format!(
            "index    {} entries of {} of {} sealed segments",
            found.entries, found.segments, found.sealed
        ));
    }
    if let Some(found) = &report.views {
        lines.push(format!("views    {} rows, folded anew up to position {}", found.rows, found.position));
    }
    if let Some(found) = &report.artifacts {
        lines.push(format!("files    {} artifacts, {} bytes", found.files, found.bytes));
    }
    if let Some(found) = &report.replay {
        lines.push(format!(
            "replay   {} events decoded ({} of unknown kinds), {} streams",
            found.events, found.unknown, found.streams
        ));
    }
    lines
}

fn finding_line(finding: &Finding) -> String {
    let place = [
        finding.file.as_ref().map(|file| format!("in {}", print::escaped(file))),
        finding.offset.map(|offset| format!("at byte {offset}")),
        finding.position.map(|position| format!("position {position}")),
        finding.stream.as_ref().map(|stream| format!("stream {}", print::escaped(stream))),
    ];
    let place: Vec<String> = place.into_iter().flatten().collect();
    let cause = finding.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
    let message = print::escaped(&finding.message);
    format!("FAULT    {}{cause} {}: {message}", finding.kind, place.join(", "))
}
