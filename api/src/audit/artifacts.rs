//! Files that the log names, held against the SHA-256 that it recorded.

use std::path::Path;

use actors::audit::{ArtifactState, check_artifact};
use anyhow::{Context, Result};
use eventlog::{
    Event, Position, SpaceEvent, StreamId, StreamKind, codec::decode_event, event::space::ArtifactRecord,
    id::SpaceId, verify::Passing,
};
use parking_lot::Mutex;

use super::{
    Progress,
    report::{ArtifactsReport, Finding, Part},
};

/// The only kind of event that names files.
const KIND: &str = "completed";

struct Named {
    position: Position,
    space: SpaceId,
    record: ArtifactRecord,
}

/// The files that events name, as the events go by.
#[derive(Default)]
pub(super) struct Found(Mutex<Vec<Named>>);

impl Found {
    pub(super) fn take(&self, event: &Passing<'_>) {
        if event.kind != KIND {
            return;
        }
        // What can not be decoded is for the deep check to name.
        let Ok(StreamId::Space(space)) = StreamId::from_bytes(event.stream) else { return };
        let decoded = decode_event(StreamKind::Space, event.kind, event.schema, event.payload);
        if let Ok(Event::Space(SpaceEvent::TaskCompleted { artifacts, .. })) = decoded {
            let named = artifacts.into_iter().map(|record| Named { position: event.position, space, record });
            self.0.lock().extend(named);
        }
    }
}

/// Checks every file that an event up to `head` names.
pub(super) fn check(
    data_dir: &Path,
    found: Found,
    head: Position,
    progress: Progress<'_>,
) -> Result<(ArtifactsReport, Vec<Finding>)> {
    let mut named = found.0.into_inner();
    named.retain(|named| named.position <= head);
    named.sort_unstable_by_key(|named| named.position);
    let total = named.len() as u64;
    let mut report = ArtifactsReport { files: named.len(), bytes: 0 };
    let mut findings = Vec::new();
    for (named, done) in named.into_iter().zip(1..) {
        let Named { position, space, record } = named;
        let (state, path) = check_artifact(data_dir, space, &record)
            .with_context(|| format!("the artifact {} can not be read", record.id))?;
        report.bytes += record.bytes;
        let (kind, what) = match state {
            ArtifactState::Whole => ("", ""),
            ArtifactState::Missing => ("artifact_missing", "is not there any more"),
            ArtifactState::Changed => ("artifact_changed", "is not the file that was made"),
        };
        if state != ArtifactState::Whole {
            findings.push(Finding {
                file: Some(path.strip_prefix(data_dir).unwrap_or(&path).display().to_string()),
                position: Some(position.0),
                stream: Some(StreamId::Space(space).to_string()),
                ..Finding::beside(Part::Artifacts, kind, format!("the artifact {} {what}", record.id))
            });
        }
        if let Some(tell) = progress.tell {
            tell("artifacts", done, total);
        }
        if progress.cancelled.is_some_and(|cancelled| cancelled.load(std::sync::atomic::Ordering::Relaxed)) {
            anyhow::bail!("the check was ended");
        }
    }
    Ok((report, findings))
}
