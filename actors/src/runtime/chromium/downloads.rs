//! From the landing folder to the quarantine: one task for each browser, from its first download to its last.
//!
//! It ends with the browser. What was under way then is recorded as refused, what had landed is still captured.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use browser::{Browser, DownloadSeen};
use eventlog::{
    Generation, Redacted, Redactor,
    event::download::{DownloadId, RefusedReason},
};
use tokio::{
    sync::{mpsc::UnboundedReceiver, watch},
    task::JoinHandle,
    time::{Instant, MissedTickBehavior, interval},
};
use tracing::warn;
use uuid::Uuid;

use super::{MESSAGE_BYTES_MAX, landing::LandingFolder};
use crate::download::{
    Desk, FILE_BYTES_MAX,
    quarantine::{Quarantine, TakeError},
};

/// The longest name that is recorded.
const NAME_BYTES_MAX: usize = 1_000;
/// How often what is under way is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a browser may take to say that it has cancelled one.
const CANCEL_WAIT: Duration = Duration::from_secs(10);

/// Asked for each text: it learns what was typed.
pub(super) type RedactorSource = Arc<dyn Fn() -> Redactor + Send + Sync>;

/// What takes in the downloads of one browser.
pub(super) struct Intake {
    pub(super) browser: Weak<Browser>,
    pub(super) desk: Desk,
    pub(super) landing: LandingFolder,
    pub(super) generation: Generation,
    pub(super) redactor: RedactorSource,
    live: HashMap<Uuid, Live>,
}

struct Live {
    url: Redacted<String>,
    suggested_name: Redacted<String>,
    received: u64,
    grown_at: Instant,
    /// Why it is being cancelled, and since when.
    cancelled: Option<(RefusedReason, Instant)>,
}

impl Intake {
    pub(super) fn new(
        browser: &Arc<Browser>,
        desk: Desk,
        landing: LandingFolder,
        generation: Generation,
        redactor: RedactorSource,
    ) -> Self {
        Self { browser: Arc::downgrade(browser), desk, landing, generation, redactor, live: HashMap::new() }
    }

    /// Takes in until the browser has ended, and then removes the landing folder.
    pub(super) fn start(self, browser: &Browser) -> JoinHandle<()> {
        let (seen, exited) = (browser.take_downloads(), browser.exited());
        tokio::spawn(async move {
            let landing = self.landing.clone();
            if let (Some(seen), Some((config, quarantine))) = (seen, self.desk.terms()) {
                self.run(seen, exited, config.stall, quarantine).await;
            }
            // A panic in there is a bug of ours; the next start removes the folder then.
            let _ = tokio::task::spawn_blocking(move || landing.remove()).await;
        })
    }

    async fn run(
        mut self,
        mut seen: UnboundedReceiver<DownloadSeen>,
        mut exited: watch::Receiver<Option<browser::Exit>>,
        stall: Duration,
        quarantine: Quarantine,
    ) {
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut gone = std::pin::pin!(async move {
            // An error means that the browser's watcher is gone, and with it the browser.
            let _ = exited.wait_for(Option::is_some).await;
        });
        loop {
            tokio::select! {
                biased;
                next = seen.recv() => match next {
                    Some(next) => self.take(next, &quarantine).await,
                    None => break,
                },
                _ = look.tick() => self.look(stall).await,
                () = &mut gone => break,
            }
        }
        while let Ok(next) = seen.try_recv() {
            self.take(next, &quarantine).await;
        }
        for (id, live) in std::mem::take(&mut self.live) {
            let reason = live.cancelled.map_or(RefusedReason::BrowserEnded, |(reason, _)| reason);
            self.desk.refuse(DownloadId::from_uuid(id), reason, live.received).await;
        }
    }

    async fn take(&mut self, seen: DownloadSeen, quarantine: &Quarantine) {
        match seen {
            DownloadSeen::Begun { id, url, suggested_name } => self.begin(id, &url, &suggested_name).await,
            DownloadSeen::Grown { id, received, total } => {
                let Some(live) = self.live.get_mut(&id) else { return };
                if received > live.received {
                    (live.received, live.grown_at) = (received, Instant::now());
                }
                if received > FILE_BYTES_MAX || total.is_some_and(|total| total > FILE_BYTES_MAX) {
                    self.cancel(id, RefusedReason::TooLarge);
                }
            }
            DownloadSeen::Landed { id, file, received } => {
                let captured = self.land(id, &file, received, quarantine).await;
                if let Err((reason, bytes)) = captured {
                    self.desk.refuse(DownloadId::from_uuid(id), reason, bytes).await;
                }
                self.live.remove(&id);
                self.unlink(&file).await;
                self.settle(id);
            }
            DownloadSeen::Cancelled { id, received } => {
                let Some(live) = self.live.remove(&id) else { return };
                let reason = match live.cancelled {
                    Some((reason, _)) => reason,
                    // A full landing folder ends it as well.
                    None if received.max(live.received) > FILE_BYTES_MAX => RefusedReason::TooLarge,
                    None => RefusedReason::Interrupted,
                };
                self.desk.refuse(DownloadId::from_uuid(id), reason, received.max(live.received)).await;
            }
        }
    }

    async fn begin(&mut self, id: Uuid, url: &str, suggested_name: &str) {
        let redactor = (self.redactor)();
        // What a page brings itself stands in its address: its kind is told, and not its bytes.
        let url = if url.starts_with("data:") { url.split(',').next().unwrap_or("data:") } else { url };
        let url = redactor.bounded_text(url, MESSAGE_BYTES_MAX);
        let suggested_name = redactor.bounded_text(suggested_name, NAME_BYTES_MAX);
        let (told_url, told_name) = (url.clone(), suggested_name.clone());
        let is_let_in =
            self.desk.begin(DownloadId::from_uuid(id), told_url, told_name, self.generation).await;
        if !is_let_in {
            if let Some(browser) = self.browser.upgrade() {
                browser.cancel_download(id);
            }
            return;
        }
        let live = Live { url, suggested_name, received: 0, grown_at: Instant::now(), cancelled: None };
        self.live.insert(id, live);
    }

    async fn land(
        &self,
        id: Uuid,
        file: &str,
        received: u64,
        quarantine: &Quarantine,
    ) -> Result<(), (RefusedReason, u64)> {
        let Some(live) = self.live.get(&id) else { return Ok(()) };
        if let Some((reason, _)) = live.cancelled {
            return Err((reason, received));
        }
        let (quarantine, landing, name) =
            (quarantine.clone(), self.landing.path().to_owned(), file.to_owned());
        let download = DownloadId::from_uuid(id);
        let taken = tokio::task::spawn_blocking(move || quarantine.take(&landing, &name, download)).await;
        let refused = |reason| Err((reason, received));
        match taken {
            Ok(Ok(found)) => {
                let texts = (live.url.clone(), live.suggested_name.clone());
                self.desk.capture(download, found, texts).await;
                Ok(())
            }
            Ok(Err(TakeError::TooLarge)) => refused(RefusedReason::TooLarge),
            Ok(Err(TakeError::NotAFile)) => refused(RefusedReason::NotAFile),
            Ok(Err(TakeError::Io(error))) => {
                warn!(%download, %error, "A download could not be taken into the quarantine.");
                refused(RefusedReason::Disk)
            }
            Err(_) => refused(RefusedReason::Disk),
        }
    }

    /// Ends what does not grow any more, and what the browser does not say an end of.
    async fn look(&mut self, stall: Duration) {
        let now = Instant::now();
        let is_stalled = |live: &Live| live.cancelled.is_none() && now - live.grown_at >= stall;
        let stalled: Vec<_> =
            self.live.iter().filter(|(_, live)| is_stalled(live)).map(|(id, _)| *id).collect();
        for id in stalled {
            self.cancel(id, RefusedReason::Stalled);
        }
        let is_silent =
            |live: &Live| live.cancelled.filter(|(_, since)| now - *since >= CANCEL_WAIT).map(|(why, _)| why);
        let silent: Vec<_> =
            self.live.iter().filter_map(|(id, live)| Some((*id, is_silent(live)?, live.received))).collect();
        for (id, reason, received) in silent {
            self.live.remove(&id);
            self.desk.refuse(DownloadId::from_uuid(id), reason, received).await;
            self.settle(id);
        }
    }

    fn cancel(&mut self, id: Uuid, reason: RefusedReason) {
        let Some(live) = self.live.get_mut(&id).filter(|live| live.cancelled.is_none()) else { return };
        live.cancelled = Some((reason, Instant::now()));
        if let Some(browser) = self.browser.upgrade() {
            browser.cancel_download(id);
        }
    }

    /// The name was checked by the browser's fold: it is one part of a path.
    async fn unlink(&self, file: &str) {
        let path = self.landing.path().join(file);
        // What stays goes with the folder.
        let _ = tokio::task::spawn_blocking(move || std::fs::remove_file(path)).await;
    }

    fn settle(&self, id: Uuid) {
        if let Some(browser) = self.browser.upgrade() {
            browser.settle_download(id);
        }
    }
}
