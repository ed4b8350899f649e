//! The rules of a Space's downloads: `(state, command) -> events or rejection`. Pure.

use eventlog::{
    DownloadEvent, Event, ExpectedSequence, Generation, Part, Redacted, Role, StreamId,
    event::download::{Approval, DownloadId, Receipt, RefusedReason},
    id::WorkspaceId,
};

use super::{
    REFUSALS_MAX,
    state::{Shelf, Stage},
};
use crate::{caller::Caller, config::DownloadsConfig, rejection::Rejection};

/// What is asked of the downloads of a Space.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// A page began one.
    Begin {
        download: DownloadId,
        url: Redacted<String>,
        suggested_filename: Redacted<String>,
        workspace: WorkspaceId,
        generation: Generation,
    },
    /// All of it is in the quarantine.
    Capture { download: DownloadId, receipt: Box<Receipt> },
    /// It will not be captured.
    Refuse { download: DownloadId, reason: RefusedReason, bytes: u64 },
    /// A person lets it out, and its bytes were read again and are those of its receipt.
    Approve { download: DownloadId, approval: Box<Approval> },
    /// Its files are published.
    NotePublished { download: DownloadId },
    /// A person does not let it out.
    Reject { download: DownloadId, reason: Redacted<String>, declared_operator: Redacted<String> },
    /// Nobody let it out in time.
    Expire { download: DownloadId },
    /// Whatever was under way is not any more: nobody is there who would go on with it.
    EndAll,
}

/// What `decide` has to know besides.
pub(crate) struct Facts<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) config: &'a DownloadsConfig,
    /// So many bytes were captured for its Workspace today.
    pub(crate) workspace_bytes_today: u64,
}

/// Decides `command` on `shelf`; nothing to append is an answer too.
///
/// # Errors
/// [`Rejection`]: nothing is to be appended.
pub(crate) fn decide(
    shelf: &Shelf,
    command: &Command,
    facts: &Facts<'_>,
) -> Result<Vec<DownloadEvent>, Rejection> {
    may_ask(command, facts.caller)?;
    match command {
        Command::Begin { download, url, suggested_filename, workspace, generation } => {
            let started = DownloadEvent::Started {
                download: *download,
                url: url.clone(),
                suggested_filename: suggested_filename.clone(),
                workspace: workspace.clone(),
                generation: *generation,
            };
            Ok(begin(shelf, *download, started, facts))
        }
        Command::Capture { download, receipt } => Ok(capture(shelf, *download, receipt, facts)),
        Command::Refuse { download, reason, bytes } => Ok(match shelf.stage(*download) {
            Some(Stage::Started) => vec![refused(*download, *reason, *bytes)],
            _ => Vec::new(),
        }),
        Command::Approve { download, approval } => approve(shelf, *download, approval),
        Command::NotePublished { download } => Ok(match shelf.stage(*download) {
            Some(Stage::Approved(..)) => vec![DownloadEvent::Released { download: *download }],
            _ => Vec::new(),
        }),
        Command::Reject { download, reason, declared_operator } => match shelf.stage(*download) {
            Some(Stage::Captured(_)) => Ok(vec![DownloadEvent::Rejected {
                download: *download,
                reason: reason.clone(),
                declared_operator: declared_operator.clone(),
            }]),
            Some(Stage::Rejected(_)) => Ok(Vec::new()),
            Some(Stage::Approved(..) | Stage::Released { .. }) => Err(Rejection::DownloadConflict),
            _ => Err(Rejection::DownloadGone),
        },
        Command::Expire { download } => Ok(match shelf.stage(*download) {
            Some(Stage::Captured(_)) => vec![DownloadEvent::Expired { download: *download }],
            _ => Vec::new(),
        }),
        Command::EndAll => {
            let under_way = shelf.items.iter().filter(|(_, item)| item.stage == Stage::Started);
            Ok(under_way.map(|(id, _)| refused(*id, RefusedReason::BrowserEnded, 0)).collect())
        }
    }
}

/// Q4: a person releases and rejects, and nobody else; the rest is the server's own.
fn may_ask(command: &Command, caller: &Caller) -> Result<(), Rejection> {
    match command {
        Command::Approve { .. } | Command::Reject { .. } => Ok(caller.must_be(&[Role::Operator])?),
        Command::Begin { .. }
        | Command::Capture { .. }
        | Command::Refuse { .. }
        | Command::NotePublished { .. }
        | Command::Expire { .. }
        | Command::EndAll => match caller.role() {
            None => Ok(()),
            Some(_) => Err(crate::rejection::Denial::ServerOnly.into()),
        },
    }
}

/// What is over its budget is recorded, and refused in the same append.
fn begin(
    shelf: &Shelf,
    download: DownloadId,
    started: DownloadEvent,
    facts: &Facts<'_>,
) -> Vec<DownloadEvent> {
    if shelf.items.contains_key(&download) {
        return Vec::new();
    }
    let over = match () {
        () if shelf.files >= facts.config.space_files_max => Some(RefusedReason::SpaceFiles),
        () if shelf.bytes >= facts.config.space_bytes_max => Some(RefusedReason::SpaceBytes),
        () if facts.workspace_bytes_today >= facts.config.workspace_day_bytes_max => {
            Some(RefusedReason::WorkspaceBytes)
        }
        () => None,
    };
    match over {
        Some(_) if shelf.refusals >= REFUSALS_MAX => Vec::new(),
        Some(reason) => vec![started, refused(download, reason, 0)],
        None => vec![started],
    }
}

fn capture(shelf: &Shelf, download: DownloadId, receipt: &Receipt, facts: &Facts<'_>) -> Vec<DownloadEvent> {
    if shelf.stage(download) != Some(&Stage::Started) {
        return Vec::new();
    }
    let bytes = receipt.bytes;
    let over = match () {
        () if bytes > super::FILE_BYTES_MAX => Some(RefusedReason::TooLarge),
        () if shelf.bytes.saturating_add(bytes) > facts.config.space_bytes_max => {
            Some(RefusedReason::SpaceBytes)
        }
        () if facts.workspace_bytes_today.saturating_add(bytes) > facts.config.workspace_day_bytes_max => {
            Some(RefusedReason::WorkspaceBytes)
        }
        () => None,
    };
    vec![match over {
        Some(reason) => refused(download, reason, bytes),
        None => DownloadEvent::Captured { download, receipt: Box::new(receipt.clone()) },
    }]
}

const fn refused(download: DownloadId, reason: RefusedReason, bytes: u64) -> DownloadEvent {
    DownloadEvent::Refused { download, reason, bytes }
}

/// Q6: the first approval stands, a repeat adds nothing. What was read again must be what was captured (Q3).
fn approve(
    shelf: &Shelf,
    download: DownloadId,
    approval: &Approval,
) -> Result<Vec<DownloadEvent>, Rejection> {
    match shelf.stage(download) {
        Some(Stage::Captured(receipt)) => {
            if (&receipt.sha256, receipt.bytes) != (&approval.sha256, approval.bytes) {
                return Err(Rejection::DownloadTampered);
            }
            Ok(vec![DownloadEvent::Approved { download, approval: Box::new(approval.clone()) }])
        }
        Some(Stage::Approved(..) | Stage::Released { .. }) => Ok(Vec::new()),
        Some(Stage::Started | Stage::Refused(_) | Stage::Rejected(_) | Stage::Expired(_)) | None => {
            Err(Rejection::DownloadGone)
        }
    }
}

/// The part of an append that holds these events; none if there are none.
pub(crate) fn parts(shelf: &Shelf, events: Vec<DownloadEvent>) -> Vec<Part> {
    if events.is_empty() {
        return Vec::new();
    }
    vec![Part {
        stream: StreamId::Downloads(shelf.space),
        expected: ExpectedSequence::Exact(shelf.revision),
        events: events.into_iter().map(Event::from).collect(),
    }]
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
