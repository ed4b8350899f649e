//! The audit of a data folder: the log, what is known of it elsewhere, and everything beside it that can be held against
//! it. `browserspace verify` and `POST /api/v1/log/verify` are this, and its report is their answer.
//!
//! ```text
//!   log (eventlog::verify) ── whole? ──► index · artifacts · views · deep: every stream through `evolve`
//! ```

mod artifacts;
mod beside;
mod folder_log;
mod replay;
mod report;

use std::{
    path::Path,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use anyhow::Result;
use eventlog::{
    segment::is_held,
    verify::{self, DurableEnd, Known},
};
use projections::Place;

pub use self::beside::seen_by_views;
pub(crate) use self::report::word;
pub use self::report::{
    ArtifactsReport, CheckpointsReport, Finding, IndexReport, LogReport, Part, ReplayReport, TornTailReport,
    Verdict, ViewsReport,
};
use crate::offline::log_folder;

/// What is to be checked.
#[derive(Default)]
pub struct Scope {
    /// Also decode and upcast every event, and replay every stream.
    pub deep: bool,
    /// The log alone, and nothing beside it.
    pub log_only: bool,
    /// What is known of the log from checkpoints.
    pub known: Vec<Known>,
    /// So many segments at once; 0 = as many as there are processors.
    pub threads: usize,
    /// Where its views lie; they are left out where nothing is said.
    pub views: Option<Place>,
    /// Where a log that is being written ends, as its writer says.
    pub end: Option<DurableEnd>,
}

/// Who is told how it goes, and how it is ended early.
#[derive(Clone, Copy, Default)]
pub struct Progress<'a> {
    /// Told what is being done, how much of it is done, and how much it is in all.
    pub tell: Option<&'a (dyn Fn(&'static str, u64, u64) + Sync)>,
    /// Ends it early, with an error.
    pub cancelled: Option<&'a AtomicBool>,
}

/// Audits a data folder; changes nothing in it. Blocks, for seconds per million events.
///
/// # Errors
/// Something could not be read at all. What is wrong stands in the report.
pub fn audit(data_dir: &Path, scope: &Scope, progress: Progress<'_>) -> Result<LogReport> {
    let begun = Instant::now();
    let folder = log_folder(data_dir);
    // Somebody else writes here, and did not tell us where it stands: its last batch may be under way.
    let in_use = scope.end.is_none() && is_held(&folder);
    let alone = scope.end.is_none() && !in_use;
    let mut known = scope.known.clone();
    if alone && !scope.log_only {
        known.extend(scope.views.as_ref().and_then(beside::seen_by_views));
    }
    let found = artifacts::Found::default();
    let inspect = |event: &verify::Passing<'_>| found.take(event);
    let tell = |done, total| {
        if let Some(tell) = progress.tell {
            tell("log", done, total);
        }
    };
    let options = verify::Options {
        threads: scope.threads,
        known,
        with_root: true,
        end: scope.end,
        progress: Some(&tell),
        inspect: (!scope.log_only).then_some(&inspect),
        cancelled: progress.cancelled,
    };
    let checked = verify::check(&folder, &options)?;
    let mut report = LogReport::of(&checked, in_use, &scope.known);
    if checked.is_whole() {
        if !scope.log_only {
            report.artifacts(artifacts::check(data_dir, found, checked.head, progress)?);
        }
        if alone && !scope.log_only {
            let scratch = beside::Scratch::make()?;
            report.index(verify::check_index(&folder, scratch.path())?);
            if let Some(views) = &scope.views {
                report.views(beside::check_views(&folder, views, scratch.path(), checked.head)?);
            }
        }
        if scope.deep {
            report.replay(replay::check(&folder, checked.head, progress)?);
        }
    }
    report.finish(begun.elapsed().max(Duration::from_millis(1)));
    Ok(report)
}
