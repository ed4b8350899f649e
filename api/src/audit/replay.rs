//! The deep check: every event decoded and in today's shape, every stream folded through its rules.

use std::{path::Path, sync::atomic::Ordering};

use actors::audit::Replay;
use anyhow::Result;
use eventlog::{Position, ReadError, SegmentReader};

use super::{
    Progress,
    report::{Finding, Part, ReplayReport},
};

/// Replays everything up to `head`.
pub(super) fn check(
    folder: &Path,
    head: Position,
    progress: Progress<'_>,
) -> Result<Result<ReplayReport, Finding>> {
    let mut reader = SegmentReader::open(folder)?;
    let mut replay = Replay::default();
    while reader.read_to() <= head {
        let batch = match reader.next_batch() {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            Err(ReadError::Damaged { position, what, .. }) => {
                return Ok(Err(undecodable(position, &what)));
            }
            Err(error) => return Err(error.into()),
        };
        for event in batch.iter().filter(|event| event.position <= head) {
            if let Err(misfit) = replay.take(event) {
                return Ok(Err(Finding {
                    position: Some(event.position.0),
                    stream: Some(event.stream.to_string()),
                    ..Finding::beside(Part::Replay, "replay", format!("{}: {misfit}", event.event.kind()))
                }));
            }
        }
        if let Some(tell) = progress.tell {
            tell("replay", replay.events(), head.0);
        }
        if progress.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            anyhow::bail!("the check was ended");
        }
    }
    Ok(Ok(ReplayReport { events: replay.events(), unknown: replay.unknown(), streams: replay.streams() }))
}

fn undecodable(position: Position, what: &str) -> Finding {
    let position = Some(position.0);
    Finding { position, ..Finding::beside(Part::Replay, "undecodable", what.to_owned()) }
}
