//! `rebuild`: throws the views away and folds them again from position 1.

use std::{process::ExitCode, time::Instant};

use anyhow::Result;
use clap::Args;

use super::{block_on, output};
use crate::{
    config::{Config, FolderFlags},
    offline::Offline,
};

pub(super) const HELP: &str = "\
The views (views.sqlite in the data folder) answer reads; the log is the truth. Rebuilding loses nothing.
It takes about a minute for a million events, and needs the folder for itself: stop the server first.";

/// What `rebuild` is told.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    folder: FolderFlags,
}

/// Rebuilds and says how far.
pub(super) fn rebuild(options: &Options) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    let begun = Instant::now();
    let position = block_on(async {
        let offline = Offline::open_for_rebuild(&config)?;
        let outcome = offline.rebuild_views().await;
        offline.close().await;
        outcome
    })?;
    let took = begun.elapsed().as_secs_f64();
    output::line(&format!("the views hold everything up to position {position} ({took:.1} s)"))?;
    Ok(ExitCode::SUCCESS)
}
