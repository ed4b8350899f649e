//! The picture of the active tab as it changes, for who watches. Nothing is drawn for nobody.
//!
//! ```text
//! Page.screencastFrame ──► shots ──► film ──► frames ──► every watcher
//!                         (newest)    │      (newest)
//!                                     └─► Page.screencastFrameAck, not before its time: that paces the browser
//! ```
//!
//! One film runs while there are watchers, however many; it follows the active tab. A slow watcher skips frames.
//! Source: CDP `Page.startScreencast`.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chromiumoxide_cdp::cdp::browser_protocol::page::{
    ScreencastFrameAckParams, StartScreencastFormat, StartScreencastParams, StopScreencastParams,
};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use crate::browser::Browser;
use crate::connection::Connection;
use crate::reference::TabId;
use crate::session::Session;
use crate::state::State;

/// The longest side of a frame, in pixels.
const SIDE_MAX: i64 = 1280;
/// The quality of its JPEG, 0 to 100.
const QUALITY: i64 = 60;
/// No two frames are nearer to each other than this.
const FRAME_INTERVAL: Duration = Duration::from_millis(100);
/// How long a tab may take to begin.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// After how long a tab that did not begin is asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// What the active tab looked like at one moment.
#[derive(Debug, Clone)]
pub struct ScreencastFrame {
    /// The tab.
    pub tab: TabId,
    /// A JPEG, no side longer than 1280 pixels.
    pub jpeg: Bytes,
}

/// A frame as the browser told it.
#[derive(Debug, Clone)]
pub(crate) struct Shot {
    pub(crate) session: Arc<str>,
    /// What the browser wants to be told back.
    pub(crate) number: i64,
    /// Base64.
    pub(crate) data: String,
}

impl Shot {
    /// Tells the browser that it may draw another.
    pub(crate) fn acknowledge(&self, connection: &Connection) {
        let session = Session::attached(connection.clone(), Arc::clone(&self.session));
        session.post(&ScreencastFrameAckParams::new(self.number));
    }
}

/// The frames of one browser.
#[derive(Debug)]
pub(crate) struct Screencast {
    frames: watch::Sender<Option<ScreencastFrame>>,
    is_filming: Mutex<bool>,
}

impl Screencast {
    pub(crate) fn new() -> Self {
        Self { frames: watch::channel(None).0, is_filming: Mutex::new(false) }
    }

    /// True once, when nobody watches any more: who is told so ends the film.
    fn ends(&self) -> bool {
        let mut is_filming = self.is_filming.lock();
        // Somebody may have come between the news that all were gone and now.
        let ends = self.frames.receiver_count() == 0;
        *is_filming = !ends;
        if ends {
            self.frames.send_replace(None);
        }
        ends
    }
}

impl Browser {
    /// The active tab as it changes: always the newest frame, `None` before the first one. The browser draws for this
    /// while a receiver lives.
    pub fn screencast(self: &Arc<Self>) -> watch::Receiver<Option<ScreencastFrame>> {
        let mut is_filming = self.screencast.is_filming.lock();
        let mut frames = self.screencast.frames.subscribe();
        if !std::mem::replace(&mut *is_filming, true) {
            // What the last watchers saw may be hours old.
            self.screencast.frames.send_replace(None);
            tokio::spawn(film(Arc::clone(self)));
        }
        // On a page at rest no other frame may come for long.
        frames.mark_changed();
        frames
    }

    /// Films one tab until it is no longer the active one, or nobody watches.
    async fn film_tab(&self, tab: TabId, session: &Session) {
        let mut start = StartScreencastParams::builder().format(StartScreencastFormat::Jpeg).quality(QUALITY);
        start = start.max_width(SIDE_MAX).max_height(SIDE_MAX).every_nth_frame(1);
        let started = session.call_raw(&start.build(), Instant::now() + START_TIMEOUT).await;
        if let Err(error) = started {
            debug!(%error, "A tab could not be filmed.");
            return sleep(RETRY_PAUSE).await;
        }
        let mut next_at = Instant::now();
        loop {
            let shot = tokio::select! {
                () = self.screencast.frames.closed() => break,
                () = self.hub.wait_for(|state| (scene(state) != Some(tab)).then_some(())) => break,
                shot = self.hub.take_shot() => shot,
            };
            if Some(&shot.session) != session.id() {
                // The last one of the tab before.
                continue;
            }
            if let Ok(jpeg) = STANDARD.decode(&shot.data) {
                self.screencast.frames.send_replace(Some(ScreencastFrame { tab, jpeg: jpeg.into() }));
            }
            sleep_until(next_at).await;
            next_at = Instant::now() + FRAME_INTERVAL;
            session.post(&ScreencastFrameAckParams::new(shot.number));
        }
        session.post(&StopScreencastParams::default());
    }
}

/// The tab to be filmed.
fn scene(state: &State) -> Option<TabId> {
    let tab = state.active.filter(|_| !state.closed)?;
    state.tabs.get(&tab).filter(|known| !known.crashed).map(|_| tab)
}

/// Films whatever tab is the active one, until nobody watches or the browser is gone.
async fn film(browser: Arc<Browser>) {
    let next = |state: &State| match scene(state) {
        _ if state.closed => Some(None),
        Some(tab) => state.tabs.get(&tab).map(|known| Some((tab, Arc::clone(&known.session)))),
        None => None,
    };
    loop {
        let found = tokio::select! {
            () = browser.screencast.frames.closed() => None,
            found = browser.hub.wait_for(next) => match found {
                Some(found) => Some(found),
                // Gone, and with it all that could be watched.
                None => return,
            },
        };
        if let Some((tab, session)) = found {
            browser.film_tab(tab, &browser.session(session)).await;
        }
        if browser.screencast.frames.receiver_count() == 0 && browser.screencast.ends() {
            return;
        }
    }
}
