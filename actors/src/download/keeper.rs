//! The one owner of each Space's downloads: who asks, waits in line, as with instances. What was asked of the disk is done
//! in that line as well, so that two releases of one file are one after the other.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    sync::Arc,
};

use eventlog::{
    Appended, DownloadEvent, Event, Position, Redacted, Sequence, SpaceEvent, StreamId, Timestamp,
    event::download::{Approval, DownloadId, Receipt},
    id::{SpaceId, WorkspaceId},
};
use futures::StreamExt;
use parking_lot::Mutex;
use tracing::{error, warn};

use super::{
    decide::{Command, Facts, decide, parts},
    effect::{Publish, due},
    evolve::evolve_recorded,
    publish::{Publication, PublishError, is_absent},
    quarantine::Quarantine,
    state::{Shelf, Stage},
};
use crate::{
    caller::{Caller, Scope},
    instance::keeper::{detached, refusal},
    rejection::Rejection,
    world::{Origin, World},
};

/// So many Spaces' downloads are kept in memory before those that nobody asks about are let go.
const KNOWN_MAX: usize = 1_024;
const DAY_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

type Line = Arc<tokio::sync::Mutex<Shelf>>;

/// The owners, by Space, and what each Workspace has had today.
#[derive(Default)]
pub(crate) struct Downloads {
    known: Mutex<HashMap<SpaceId, Line>>,
    today: Mutex<HashMap<WorkspaceId, Today>>,
    /// What waits in a quarantine for a person, and since when.
    waiting: Mutex<HashMap<DownloadId, (SpaceId, Timestamp)>>,
}

/// What was captured for a Workspace in one day.
#[derive(Default)]
struct Today {
    day: i64,
    bytes: u64,
    /// A stream that was let go is read back, and its events are noted again: each counts once.
    counted: HashSet<DownloadId>,
}

/// A release as it stands, the caller's or an earlier one.
#[derive(Debug, Clone, PartialEq)]
pub struct Released {
    /// What was captured.
    pub receipt: Receipt,
    /// Who let it out first.
    pub approval: Approval,
    /// The position of the last event of the Space's downloads.
    pub position: Position,
}

/// A download that was not let out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejected {
    /// The position of the last event of the Space's downloads.
    pub position: Position,
}

/// The bytes of a released download: those of its receipt, as they were just read.
#[derive(Debug)]
pub struct ReleasedFile {
    /// The open file.
    pub file: File,
    /// What was captured.
    pub receipt: Receipt,
}

impl Downloads {
    fn line(&self, space: SpaceId) -> Line {
        let mut known = self.known.lock();
        if known.len() >= KNOWN_MAX {
            known.retain(|_, line| Arc::strong_count(line) > 1);
        }
        let empty = || Arc::new(tokio::sync::Mutex::new(Shelf::empty(space)));
        Arc::clone(known.entry(space).or_insert_with(empty))
    }

    /// Takes over what recovery has folded.
    pub(crate) fn adopt(&self, shelf: Shelf) {
        self.known.lock().insert(shelf.space, Arc::new(tokio::sync::Mutex::new(shelf)));
    }

    /// Notes what was captured, and what does not wait any more; recovery tells of what was before.
    pub(crate) fn note(&self, space: SpaceId, event: &DownloadEvent) {
        match event {
            DownloadEvent::Captured { download, receipt } => {
                self.count(*download, receipt);
                self.waiting.lock().insert(*download, (space, receipt.captured_at));
            }
            DownloadEvent::Approved { download, .. }
            | DownloadEvent::Rejected { download, .. }
            | DownloadEvent::Expired { download } => {
                self.waiting.lock().remove(download);
            }
            DownloadEvent::Started { .. }
            | DownloadEvent::Refused { .. }
            | DownloadEvent::Released { .. } => {}
        }
    }

    fn count(&self, download: DownloadId, receipt: &Receipt) {
        let day = receipt.captured_at.0.div_euclid(DAY_MICROS);
        let mut today = self.today.lock();
        let had = today.entry(receipt.workspace.clone()).or_default();
        if had.day < day {
            *had = Today { day, ..Today::default() };
        }
        if had.day == day && had.counted.insert(download) {
            had.bytes = had.bytes.saturating_add(receipt.bytes);
        }
    }

    fn bytes_today(&self, world: &World, workspace: &WorkspaceId) -> u64 {
        let day = world.clock.now().0.div_euclid(DAY_MICROS);
        self.today.lock().get(workspace).filter(|had| had.day == day).map_or(0, |had| had.bytes)
    }
}

/// The downloads of a Space as they stand.
pub(crate) async fn look(world: &World, space: SpaceId) -> Result<Shelf, Rejection> {
    let line = world.downloads.line(space);
    let mut shelf = line.lock().await;
    catch_up(world, &mut shelf).await?;
    Ok(shelf.clone())
}

/// Records something that the server knows; answers with the events that it led to.
pub(crate) async fn tell(
    world: &World,
    space: SpaceId,
    command: &Command,
    origin: &Origin,
) -> Result<Vec<DownloadEvent>, Rejection> {
    let line = world.downloads.line(space);
    let mut shelf = line.lock().await;
    record(world, &mut shelf, command, &Caller::system(), origin).await
}

/// Which Workspace a Space belongs to.
pub(crate) async fn workspace_of(world: &World, space: SpaceId) -> Result<WorkspaceId, Rejection> {
    let mut events = world.log.read_stream(&StreamId::Space(space), Sequence(1));
    match events.next().await {
        Some(Ok(recorded)) => match recorded.event {
            Event::Space(SpaceEvent::Opened { workspace, .. }) => Ok(workspace),
            _ => Err(Rejection::SpaceNotFound),
        },
        Some(Err(_)) => Err(Rejection::LogUnavailable),
        None => Err(Rejection::SpaceNotFound),
    }
}

/// Lets a download out (Q3, Q5, Q6): it is read again, the approval is recorded, and its files are published. A repeat goes
/// on where an earlier one ended, and answers with the approval that was recorded first.
pub(crate) async fn release(
    world: &Arc<World>,
    space: SpaceId,
    download: DownloadId,
    declared_operator: Redacted<String>,
    caller: Caller,
    origin: Origin,
) -> Result<Released, Rejection> {
    let world = Arc::clone(world);
    detached(async move {
        let line = world.downloads.line(space);
        let mut shelf = line.lock().await;
        catch_up(&world, &mut shelf).await?;
        if let Some(Stage::Captured(_)) = shelf.stage(download) {
            let approval = Box::new(approval(&world, space, download, declared_operator, &caller).await?);
            let command = Command::Approve { download, approval };
            record(&world, &mut shelf, &command, &caller, &origin).await?;
        }
        if let Some(Stage::Approved(receipt, approval)) = shelf.stage(download).cloned() {
            publish(&world, space, download, receipt, approval).await?;
            let published = Command::NotePublished { download };
            record(&world, &mut shelf, &published, &Caller::system(), &origin.on_behalf()).await?;
            forget(&world, space, download).await;
        }
        let Some(Stage::Released { receipt, approval, .. }) = shelf.stage(download).cloned() else {
            return Err(Rejection::DownloadGone);
        };
        check(&world, space, download, receipt.clone(), approval.clone()).await?;
        Ok(Released { receipt: *receipt, approval: *approval, position: shelf.position })
    })
    .await
}

/// Does not let a download out; its bytes are gone when this returns.
pub(crate) async fn reject(
    world: &Arc<World>,
    space: SpaceId,
    download: DownloadId,
    (reason, declared_operator): (Redacted<String>, Redacted<String>),
    caller: Caller,
    origin: Origin,
) -> Result<Rejected, Rejection> {
    let world = Arc::clone(world);
    detached(async move {
        let line = world.downloads.line(space);
        let mut shelf = line.lock().await;
        let command = Command::Reject { download, reason, declared_operator };
        record(&world, &mut shelf, &command, &caller, &origin).await?;
        let quarantine = Quarantine::new(&world.data_dir, space);
        blocking(move || quarantine.forget(download).map_err(PublishError::from)).await?;
        Ok(Rejected { position: shelf.position })
    })
    .await
}

/// The bytes of a released download, held against its receipt as they are opened.
pub(crate) async fn open(
    world: &Arc<World>,
    space: SpaceId,
    download: DownloadId,
) -> Result<ReleasedFile, Rejection> {
    let shelf = look(world, space).await?;
    let Some(Stage::Released { receipt, approval, .. }) = shelf.stage(download).cloned() else {
        return Err(Rejection::DownloadGone);
    };
    let file = check(world, space, download, receipt.clone(), approval).await?;
    Ok(ReleasedFile { file, receipt: *receipt })
}

/// What a start does for the downloads of a Space: nobody goes on with what was under way, and the disk gets its due.
pub(crate) async fn recover(world: &Arc<World>, space: SpaceId, origin: &Origin) -> Result<(), Rejection> {
    let line = world.downloads.line(space);
    let mut shelf = line.lock().await;
    record(world, &mut shelf, &Command::EndAll, &Caller::system(), origin).await?;
    for Publish { download, receipt, approval } in due(&shelf) {
        match publish(world, space, download, receipt, approval).await {
            Ok(()) => {
                let published = Command::NotePublished { download };
                record(world, &mut shelf, &published, &Caller::system(), origin).await?;
            }
            // It stays approved: the same release says so to whoever asks for it.
            Err(rejection) => {
                warn!(space.id = %space, %download, code = rejection.code(), "An approved download could not be published.");
            }
        }
    }
    let (quarantine, kept) = (Quarantine::new(&world.data_dir, space), shelf.clone());
    let is_kept = move |id| kept.stage(id).is_some_and(Stage::is_in_quarantine);
    blocking(move || quarantine.keep_only(is_kept).map_err(PublishError::from)).await
}

/// Deletes what nobody let out in time, and says so. What was approved meanwhile is not deleted: its files may not be
/// published yet.
pub(crate) async fn expire(world: &Arc<World>, origin: &Origin) {
    let (now, kept_for) = (world.clock.now(), world.config.downloads.quarantine_age);
    let overdue: Vec<_> = {
        let waiting = world.downloads.waiting.lock();
        let overdue = waiting.iter().filter(|(_, (_, since))| since.plus(kept_for) <= now);
        overdue.map(|(download, (space, _))| (*download, *space)).collect()
    };
    for (download, space) in overdue {
        match tell(world, space, &Command::Expire { download }, origin).await {
            Ok(events) if events.is_empty() => {}
            Ok(_) => forget(world, space, download).await,
            Err(rejection) => {
                warn!(space.id = %space, %download, code = rejection.code(), "A download could not expire.");
            }
        }
    }
}

/// Reads the captured bytes again.
async fn approval(
    world: &Arc<World>,
    space: SpaceId,
    download: DownloadId,
    declared_operator: Redacted<String>,
    caller: &Caller,
) -> Result<Approval, Rejection> {
    caller.must_be(&[eventlog::Role::Operator])?;
    let quarantine = Quarantine::new(&world.data_dir, space);
    let found = blocking(move || match quarantine.examine(download) {
        Err(error) if is_absent(&error) => Err(PublishError::Gone),
        found => Ok(found?),
    })
    .await?;
    Ok(Approval {
        sha256: found.sha256,
        bytes: found.bytes,
        approved_at: world.clock.now(),
        authorized_principal: caller.owner_id().cloned().ok_or(Rejection::Internal)?,
        authorized_principal_scope: match &caller.scope {
            Scope::All => "*".to_owned(),
            Scope::Only(workspaces) => {
                workspaces.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            }
        },
        declared_operator,
    })
}

async fn publish(
    world: &Arc<World>,
    space: SpaceId,
    download: DownloadId,
    receipt: Box<Receipt>,
    approval: Box<Approval>,
) -> Result<(), Rejection> {
    let data_dir = world.data_dir.clone();
    blocking(move || {
        let publication = Publication { space, download, receipt: &receipt, approval: &approval };
        publication.publish(&data_dir, &Quarantine::new(&data_dir, space), &mut |_| Ok(()))
    })
    .await
}

async fn check(
    world: &Arc<World>,
    space: SpaceId,
    download: DownloadId,
    receipt: Box<Receipt>,
    approval: Box<Approval>,
) -> Result<File, Rejection> {
    let data_dir = world.data_dir.clone();
    blocking(move || {
        let publication = Publication { space, download, receipt: &receipt, approval: &approval };
        publication.check(&data_dir)
    })
    .await
}

/// The quarantine's copy is not needed any more; what stays is deleted by the next start.
async fn forget(world: &Arc<World>, space: SpaceId, download: DownloadId) {
    let quarantine = Quarantine::new(&world.data_dir, space);
    if blocking(move || quarantine.forget(download).map_err(PublishError::from)).await.is_err() {
        warn!(space.id = %space, %download, "Bytes that are not needed stay in the quarantine.");
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PublishError> + Send + 'static,
) -> Result<T, Rejection> {
    let done = tokio::task::spawn_blocking(work).await.map_err(|_| Rejection::Internal)?;
    done.map_err(|failure| match failure {
        PublishError::Gone => Rejection::DownloadGone,
        PublishError::Tampered => Rejection::DownloadTampered,
        PublishError::Conflict => Rejection::DownloadConflict,
        PublishError::Io(error) => {
            warn!(%error, "The disk refused a download.");
            Rejection::StorageUnavailable
        }
    })
}

async fn record(
    world: &World,
    shelf: &mut Shelf,
    command: &Command,
    caller: &Caller,
    origin: &Origin,
) -> Result<Vec<DownloadEvent>, Rejection> {
    for _ in 0..2 {
        catch_up(world, shelf).await?;
        let workspace = match (command, &shelf.workspace) {
            (Command::Begin { workspace, .. }, _) => Some(workspace.clone()),
            (_, known) => known.clone(),
        };
        let workspace_bytes_today =
            workspace.as_ref().map_or(0, |workspace| world.downloads.bytes_today(world, workspace));
        let facts = Facts { caller, config: &world.config.downloads, workspace_bytes_today };
        let events = decide(shelf, command, &facts)?;
        let parts = parts(shelf, events.clone());
        if parts.is_empty() {
            return Ok(events);
        }
        let metadata = world.metadata(origin, workspace);
        match world.append(origin, world.command_id(), metadata, parts).await {
            Ok(Appended::Stored(_) | Appended::Duplicate { .. }) => {
                catch_up(world, shelf).await?;
                return Ok(events);
            }
            Ok(Appended::Conflict { .. }) => {}
            Err(failure) => return Err(refusal(&failure)),
        }
    }
    Err(Rejection::Overloaded)
}

async fn catch_up(world: &World, shelf: &mut Shelf) -> Result<(), Rejection> {
    let space = shelf.space;
    let stream = StreamId::Downloads(space);
    if world.log.is_damaged(&stream) {
        return Err(Rejection::CorruptStream { stream });
    }
    let head = world.log.stream_head(&stream).await.map_err(|_| Rejection::LogUnavailable)?;
    if head <= shelf.revision {
        return Ok(());
    }
    // What was appended since the start is noted here; what was before, recovery has noted.
    let mut tail = world.log.read_stream(&stream, shelf.revision.next());
    while let Some(recorded) = tail.next().await {
        let recorded = recorded.map_err(|damage| {
            error!(space.id = %space, %damage, "The downloads of a Space could not be read back.");
            Rejection::LogUnavailable
        })?;
        if let Event::Download(event) = &recorded.event
            && recorded.metadata.boot == world.boot
        {
            world.downloads.note(space, event);
        }
        *shelf = evolve_recorded(std::mem::replace(shelf, Shelf::empty(space)), &recorded);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn q1_what_is_read_back_counts_once_and_a_new_day_begins_at_nothing() {
        let (downloads, space) = (Downloads::default(), SpaceId::from_uuid(Uuid::from_u128(1)));
        let captured = |number, day: i64| {
            let text = |text| eventlog::Redactor::new().text(text);
            let receipt = Box::new(Receipt {
                url: text("https://example.org/report"),
                suggested_filename: text("report.pdf"),
                bytes: 10,
                sha256: "aa".to_owned(),
                claimed_media_type: String::new(),
                sniffed_media_type: String::new(),
                workspace: "default".parse().expect("it is a slug"),
                captured_at: Timestamp(day * DAY_MICROS),
            });
            let download = DownloadId::from_uuid(Uuid::from_u128(number));
            downloads.note(space, &DownloadEvent::Captured { download, receipt });
            downloads.today.lock().values().map(|had| had.bytes).sum::<u64>()
        };
        assert_eq!([captured(1, 5), captured(1, 5), captured(2, 5)], [10, 10, 20]);
        assert_eq!([captured(3, 6), captured(2, 5)], [10, 10]);
    }
}
