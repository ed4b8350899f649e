//! How the events of a Space's downloads make their state. Pure and total: what does not fit changes nothing but the place.

use eventlog::{DownloadEvent, Event, RecordedEvent};

use super::state::{Item, Shelf, Stage};
use crate::place::Place;

/// The state after one more event.
#[must_use]
pub(crate) fn evolve(mut shelf: Shelf, event: &DownloadEvent, at: Place) -> Shelf {
    (shelf.revision, shelf.position) = (at.sequence, at.position);
    if let DownloadEvent::Started { download, url, suggested_filename, workspace, generation: _ } = event {
        shelf.workspace.get_or_insert_with(|| workspace.clone());
        shelf.files += 1;
        shelf.items.entry(*download).or_insert_with(|| Item {
            url: url.clone(),
            suggested_filename: suggested_filename.clone(),
            started_at: at.recorded_at,
            stage: Stage::Started,
        });
        return shelf;
    }
    let Some(item) = shelf.items.get_mut(&event.download()) else { return shelf };
    let stage = std::mem::replace(&mut item.stage, Stage::Started);
    let captured = matches!(stage, Stage::Started);
    item.stage = step(stage, event, at);
    match (event, captured) {
        (DownloadEvent::Captured { receipt, .. }, true) => shelf.bytes += receipt.bytes,
        // What was not let in takes nobody's place.
        (DownloadEvent::Refused { .. }, true) => {
            shelf.files = shelf.files.saturating_sub(1);
            shelf.refusals += 1;
        }
        _ => {}
    }
    shelf
}

/// The state after an event as read back. One of a kind that this program does not know only moves its place.
#[must_use]
pub(crate) fn evolve_recorded(mut shelf: Shelf, recorded: &RecordedEvent) -> Shelf {
    let at = Place::from(recorded);
    match &recorded.event {
        Event::Download(event) => evolve(shelf, event, at),
        Event::Space(_) | Event::Instance(_) | Event::Workspace(_) | Event::Server(_) | Event::Unknown(_) => {
            (shelf.revision, shelf.position) = (at.sequence, at.position);
            shelf
        }
    }
}

fn step(stage: Stage, event: &DownloadEvent, at: Place) -> Stage {
    match (event, stage) {
        (DownloadEvent::Captured { receipt, .. }, Stage::Started) => Stage::Captured(receipt.clone()),
        (DownloadEvent::Refused { reason, .. }, Stage::Started) => Stage::Refused(*reason),
        // The first approval stands.
        (DownloadEvent::Approved { approval, .. }, Stage::Captured(receipt)) => {
            Stage::Approved(receipt, approval.clone())
        }
        (DownloadEvent::Released { .. }, Stage::Approved(receipt, approval)) => {
            Stage::Released { receipt, approval, released_at: at.recorded_at }
        }
        (DownloadEvent::Rejected { .. }, Stage::Captured(receipt)) => Stage::Rejected(receipt),
        (DownloadEvent::Expired { .. }, Stage::Captured(receipt)) => Stage::Expired(receipt),
        (
            DownloadEvent::Started { .. }
            | DownloadEvent::Captured { .. }
            | DownloadEvent::Refused { .. }
            | DownloadEvent::Approved { .. }
            | DownloadEvent::Released { .. }
            | DownloadEvent::Rejected { .. }
            | DownloadEvent::Expired { .. },
            other,
        ) => other,
    }
}
