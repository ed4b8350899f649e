//! `replay`: recorded events as lines, from the segments themselves; no actor wakes, no lock is taken.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Args;
use eventlog::{Position, RecordedEvent, StreamId, id::SpaceId, log::Events};
use futures::StreamExt;

use super::{block_on, print};
use crate::{
    config::{Config, FolderFlags},
    http::wire::event::EventBody,
    offline,
};

pub(super) const HELP: &str = "\
Reads the segments only, so it works with the server stopped or running, and changes nothing. Times are UTC. Args are
never shown: the log holds their names only. --json prints one event a line, in the shape of GET /api/v1/log.

Examples:
  browserspace replay                              the whole log
  browserspace replay spc_01jdz… --follow          one Space, live, until Ctrl-C
  browserspace replay --after-position 1200 --json | jq .kind";

/// What `replay` is told.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Only this Space (spc_…)
    space: Option<SpaceId>,
    #[command(flatten)]
    folder: FolderFlags,
    /// Only what lies after this position in the log
    #[arg(long, value_name = "N", default_value_t = 0)]
    after_position: u64,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// Stay, and show what is added, until Ctrl-C
    #[arg(long)]
    follow: bool,
}

/// Prints events.
pub(super) fn replay(options: &Options) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    block_on(async {
        let from = Position(options.after_position).next();
        let events = offline::read_events(&config, from, options.follow)?;
        let printed = tokio::select! {
            printed = print_all(events, options) => printed?,
            stopped = tokio::signal::ctrl_c() => {
                stopped.context("signals can not be caught")?;
                return Ok(ExitCode::SUCCESS);
            }
        };
        if let (0, Some(space)) = (printed, options.space) {
            eprintln!(
                "browserspace: the log has no event of {space} after position {}",
                options.after_position
            );
            // A Space without any event is one that never was: a script must not take that for an empty history.
            if options.after_position == 0 {
                return Ok(ExitCode::FAILURE);
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn print_all(mut events: Events, options: &Options) -> Result<u64> {
    let wanted = options.space.map(StreamId::Space);
    let mut output = io::BufWriter::new(io::stdout());
    let mut printed = 0;
    loop {
        let next = match futures::poll!(events.next()) {
            std::task::Poll::Ready(next) => next,
            std::task::Poll::Pending => {
                // Nothing more for now: a reader of ours sees what there is before we wait.
                output.flush()?;
                events.next().await
            }
        };
        let Some(event) = next else { break };
        let event = event.inspect_err(|_| drop(output.flush()))?;
        if wanted.as_ref().is_none_or(|stream| *stream == event.stream) {
            write_event(&mut output, &event, options)?;
            printed += 1;
        }
    }
    output.flush()?;
    Ok(printed)
}

fn write_event(output: &mut impl Write, event: &RecordedEvent, options: &Options) -> Result<()> {
    let body = EventBody::of_log(event);
    if options.json {
        serde_json::to_writer(&mut *output, &body).map_err(io::Error::from)?;
        return Ok(output.write_all(b"\n")?);
    }
    let line = if options.space.is_some() {
        format!("{:>6}  {}  ", event.sequence.0, body.recorded_at)
    } else {
        format!(
            "{:>8}  {}  {:<39} {:>5}  ",
            event.position.0,
            body.recorded_at,
            event.stream.to_string(),
            event.sequence.0
        )
    };
    let task = body.task_id.as_deref().map(|task| format!("{task}  ")).unwrap_or_default();
    let text = format!("{line}{:<17} {task}{}", print::escaped(&body.kind), print::fields(&body.payload));
    Ok(writeln!(output, "{}", text.trim_end())?)
}
