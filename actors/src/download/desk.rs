//! Where a runtime hands in what its browser downloads. It knows rules and log; the runtime knows neither.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use eventlog::{
    DownloadEvent, Generation, Redacted,
    event::download::{DownloadId, Receipt, RefusedReason},
    id::{SpaceId, WorkspaceId},
};
use tracing::{info_span, warn};

use super::{
    decide::Command,
    keeper::{self, ReleasedFile},
    media,
    quarantine::{Found, Quarantine},
    state::{Item, Stage},
};
use crate::{
    capability::standard::{DownloadReceipt, Downloads},
    config::DownloadsConfig,
    rejection::Rejection,
    world::{Origin, Patience, World},
};

/// So often a runtime tries to get something recorded before it gives a download up.
const ATTEMPTS: u32 = 8;

/// The desk of one Space; one of no Space takes nothing.
#[derive(Clone, Default)]
pub struct Desk(Option<Open>);

#[derive(Clone)]
struct Open {
    world: Weak<World>,
    space: SpaceId,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Desk").field(&self.0.as_ref().map(|open| open.space)).finish()
    }
}

impl Desk {
    pub(crate) fn of(world: &Arc<World>, space: SpaceId) -> Self {
        Self(Some(Open { world: Arc::downgrade(world), space }))
    }

    /// The limits, and where the quarantine is; `None` where there is no Space.
    pub(crate) fn terms(&self) -> Option<(DownloadsConfig, Quarantine)> {
        let (world, space) = self.open()?;
        Some((world.config.downloads.clone(), Quarantine::new(&world.data_dir, space)))
    }

    fn open(&self) -> Option<(Arc<World>, SpaceId)> {
        let open = self.0.as_ref()?;
        Some((open.world.upgrade()?, open.space))
    }

    /// Records that one began; false if it is not let in, or if that could not be recorded.
    pub(crate) async fn begin(
        &self,
        download: DownloadId,
        url: Redacted<String>,
        suggested_filename: Redacted<String>,
        generation: Generation,
    ) -> bool {
        let Some((world, space)) = self.open() else { return false };
        let Ok(workspace) = keeper::workspace_of(&world, space).await else { return false };
        let begin = Command::Begin { download, url, suggested_filename, workspace, generation };
        let events = self.tell(&begin).await.unwrap_or_default();
        matches!(events.as_slice(), [DownloadEvent::Started { .. }])
    }

    /// Records what is in the quarantine; if the rules or the log do not take it, it is deleted there.
    pub(crate) async fn capture(
        &self,
        download: DownloadId,
        found: Found,
        (url, suggested_filename): (Redacted<String>, Redacted<String>),
    ) {
        let Some((world, space)) = self.open() else { return };
        let Ok(workspace) = keeper::workspace_of(&world, space).await else { return };
        let receipt = Box::new(receipt(&world, workspace, found, url, suggested_filename));
        let events = self.tell(&Command::Capture { download, receipt }).await;
        if matches!(events.as_deref(), Some([DownloadEvent::Captured { .. }])) {
            metrics::counter!("browserspace_download_captured_total").increment(1);
            return;
        }
        let quarantine = Quarantine::new(&world.data_dir, space);
        let forgotten = tokio::task::spawn_blocking(move || quarantine.forget(download)).await;
        if !matches!(forgotten, Ok(Ok(()))) {
            warn!(space.id = %space, %download, "A download without a receipt stays until the next start.");
        }
    }

    /// Records that one will not be captured.
    pub(crate) async fn refuse(&self, download: DownloadId, reason: RefusedReason, bytes: u64) {
        metrics::counter!("browserspace_download_refused_total").increment(1);
        self.tell(&Command::Refuse { download, reason, bytes }).await;
    }

    /// Every download of the Space, newest first.
    pub(crate) async fn receipts(&self) -> Result<Downloads, Rejection> {
        let (world, space) = self.open().ok_or(Rejection::SpaceNotFound)?;
        let shelf = keeper::look(&world, space).await?;
        let rows = shelf.items.iter().rev().take(RECEIPTS_MAX).map(|(id, item)| described(*id, item));
        let downloads: Vec<_> = rows.collect();
        Ok(Downloads { omitted: shelf.items.len() - downloads.len(), downloads })
    }

    /// The released file of this id, for an upload.
    pub(crate) async fn released(&self, download: DownloadId) -> Option<ReleasedFile> {
        let (world, space) = self.open()?;
        keeper::open(&world, space, download).await.ok()
    }

    async fn tell(&self, command: &Command) -> Option<Vec<DownloadEvent>> {
        let (world, space) = self.open()?;
        let origin = Origin::own_work(info_span!(parent: None, "download", space.id = %space), &*world.ids);
        let mut patience = Patience::new();
        for _ in 0..ATTEMPTS {
            match keeper::tell(&world, space, command, &origin).await {
                Ok(events) => return Some(events),
                Err(rejection) if rejection.is_passing() => patience.wait().await,
                Err(rejection) => {
                    warn!(space.id = %space, code = rejection.code(), "News of a download were refused.");
                    return None;
                }
            }
        }
        warn!(space.id = %space, "News of a download could not be recorded.");
        None
    }
}

/// So many downloads stand in one answer to an agent.
const RECEIPTS_MAX: usize = 50;

fn receipt(
    world: &World,
    workspace: WorkspaceId,
    found: Found,
    url: Redacted<String>,
    suggested_filename: Redacted<String>,
) -> Receipt {
    Receipt {
        claimed_media_type: media::claimed(suggested_filename.get()).to_owned(),
        sniffed_media_type: found.sniffed.to_owned(),
        url,
        suggested_filename,
        bytes: found.bytes,
        sha256: found.sha256,
        workspace,
        captured_at: world.clock.now(),
    }
}

/// A download as an agent sees it.
fn described(id: DownloadId, item: &Item) -> DownloadReceipt {
    let receipt = item.stage.receipt();
    let refused_because = match &item.stage {
        Stage::Refused(reason) => {
            serde_json::to_value(reason).ok().and_then(|name| Some(name.as_str()?.to_owned()))
        }
        _ => None,
    };
    DownloadReceipt {
        download_id: id.to_string(),
        state: item.stage.name().to_owned(),
        suggested_filename: item.suggested_filename.get().clone(),
        url: item.url.get().clone(),
        started_at: item.started_at.to_rfc3339(),
        bytes: receipt.map(|receipt| receipt.bytes),
        sha256: receipt.map(|receipt| receipt.sha256.clone()),
        claimed_media_type: receipt.map(|receipt| receipt.claimed_media_type.clone()),
        sniffed_media_type: receipt.map(|receipt| receipt.sniffed_media_type.clone()),
        captured_at: receipt.map(|receipt| receipt.captured_at.to_rfc3339()),
        refused_because,
    }
}
