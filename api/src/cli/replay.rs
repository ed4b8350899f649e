//! `replay`: recorded events as lines, from the segments themselves; no actor wakes, no lock is taken.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use eventlog::{Event, Position, RecordedEvent, SpaceEvent, StreamId, id::SpaceId};
use futures::StreamExt;

use super::{block_on, output::Output, print};
use crate::{
    config::{Config, FolderFlags},
    http::wire::event::{EventBody, PrincipalBody, PrincipalKind},
    offline,
};

pub(super) const HELP: &str = "\
Reads the segments only, so it works with the server stopped or running, and changes nothing. Times are UTC. Each line
says who led to the event: `system` is the server itself. Args are never shown: the log holds their names only.
--json prints one event a line, in the shape of GET /api/v1/log. A position beyond the end of the log is refused
(invalid_cursor), as the API does it.

Examples:
  browserspace replay                              the whole log
  browserspace replay spc_01jdz… --follow          one Space, live, until it is closed or Ctrl-C
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
    /// Stay, and show what is added, until Ctrl-C; of one Space, until it is closed
    #[arg(long)]
    follow: bool,
}

/// What was found.
#[derive(Default)]
struct Found {
    /// Events of what was asked for, the ones before `--after-position` too.
    of_wanted: u64,
    printed: u64,
}

/// Prints events.
pub(super) fn replay(options: &Options) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    block_on(async {
        let found = tokio::select! {
            found = print_all(&config, options) => found?,
            stopped = tokio::signal::ctrl_c() => {
                stopped.context("signals can not be caught")?;
                return Ok(ExitCode::SUCCESS);
            }
        };
        let Some(space) = options.space else { return Ok(ExitCode::SUCCESS) };
        if found.of_wanted == 0 {
            // A Space without any event is one that never was: a script must not take that for an empty history.
            bail!("the log has no event of {space}: there is no such Space (is --data-dir right?)");
        }
        if found.printed == 0 {
            super::say(&format!(
                "browserspace: the log has no event of {space} after position {}\n",
                options.after_position
            ));
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn print_all(config: &Config, options: &Options) -> Result<Found> {
    let head = offline::head(config)?;
    if options.after_position > head.0 {
        bail!(
            "there is no position {} yet: the log ends at position {head} (invalid_cursor)",
            options.after_position
        );
    }
    // What one Space is, and whether it is closed, is told by all of its events; of the whole log, one is like another.
    let wanted = options.space.map(StreamId::Space);
    let after = Position(options.after_position);
    let from = if wanted.is_some() { Position(1) } else { after.next() };
    let mut events = offline::read_events(config, from, options.follow)?;
    let mut output = Output::new();
    let mut found = Found::default();
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
            found.of_wanted += 1;
            if event.position > after {
                output.write(&line(&event, options)?)?;
                found.printed += 1;
            }
            if wanted.is_some() && is_last(&event) {
                break;
            }
        }
        if wanted.is_some() && found.of_wanted == 0 && event.position >= head {
            break;
        }
    }
    output.flush()?;
    Ok(found)
}

/// Nothing follows it in its stream.
const fn is_last(event: &RecordedEvent) -> bool {
    matches!(event.event, Event::Space(SpaceEvent::Closed { .. }))
}

fn line(event: &RecordedEvent, options: &Options) -> Result<String> {
    let body = EventBody::of_log(event);
    if options.json {
        return Ok(format!("{}\n", serde_json::to_string(&body)?));
    }
    let place = if options.space.is_some() {
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
    let who = print::escaped(&who(&body.principal));
    let task = body.task_id.as_deref().map(|task| format!("{task}  ")).unwrap_or_default();
    let kind = print::escaped(&body.kind);
    let text = format!("{place}{who:<20}  {kind:<17} {task}{}", print::fields(&body.payload));
    Ok(format!("{}\n", text.trim_end()))
}

/// Who led to an event, as in `agent my-agent`; the roles are the words of `token create`.
fn who(principal: &PrincipalBody) -> String {
    let kind = match principal.kind {
        PrincipalKind::System => "system",
        PrincipalKind::RuntimeAgent => "agent",
        PrincipalKind::Operator => "operator",
        PrincipalKind::Auditor => "auditor",
    };
    principal.id.as_ref().map_or_else(|| kind.to_owned(), |id| format!("{kind} {id}"))
}
