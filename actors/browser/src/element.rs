//! An element that is acted on: found by its ref, checked, scrolled to, aimed at.
//!
//! The checks are those of the usual table: visible, enabled, editable, stable, receives events. They are repeated
//! until they hold or time is nearly up; no input is sent before.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::dom::{BackendNodeId, ScrollIntoViewIfNeededParams};
use chromiumoxide_cdp::cdp::browser_protocol::page::BringToFrontParams;
use chromiumoxide_cdp::cdp::js_protocol::runtime::{ReleaseObjectParams, RemoteObjectId};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::act::Act;
use crate::connection::{CallError, Gone};
use crate::error::{Check, Error};
use crate::frame::{On, PageFrame};
use crate::reference::{ElementRef, Lookup, NodeKey};
use crate::session::Session;

/// The source of a function that is called on an element, with what all of them know of elements in front of it.
macro_rules! on_element {
    ($file:literal) => {
        concat!(
            "function (...args) {\n",
            include_str!("js/element.js"),
            "return (",
            include_str!($file),
            ").apply(this, args);\n}"
        )
    };
}

pub(crate) const READY: &str = on_element!("js/ready.js");
pub(crate) const WATCH: &str = on_element!("js/watch.js");
pub(crate) const GET: &str = on_element!("js/get.js");
pub(crate) const MARK: &str = on_element!("js/mark.js");
pub(crate) const LABEL: &str = on_element!("js/label.js");
const AIM: &str = on_element!("js/aim.js");
const HOP: &str = include_str!("js/hop.js");

/// Pause between two rounds of checks.
pub(crate) const ROUND_PAUSE: Duration = Duration::from_millis(60);

/// Kept free before the deadline, so that the reason can still be told.
pub(crate) const REPORT_RESERVE: Duration = Duration::from_millis(250);

/// An element, resolved in our isolated world. The page keeps its node until this is dropped.
pub(crate) struct Element {
    pub(crate) reference: ElementRef,
    pub(crate) key: NodeKey,
    pub(crate) session: Session,
    pub(crate) world: i64,
    pub(crate) object: String,
}

impl Drop for Element {
    fn drop(&mut self) {
        self.session.post(&ReleaseObjectParams::new(RemoteObjectId::new(self.object.clone())));
    }
}

/// A point of the page, in CSS pixels of its viewport.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(crate) struct Spot {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

#[derive(Deserialize)]
pub(crate) struct Aimed {
    #[serde(default)]
    gone: bool,
    #[serde(default)]
    x: f64,
    #[serde(default)]
    y: f64,
    covered: Option<String>,
}

impl Aimed {
    /// The point, covered or not; `None` if it could not be told.
    pub(crate) fn spot(&self) -> Option<Spot> {
        let is_known = !self.gone && (self.covered.is_none() || (self.x, self.y) != (0.0, 0.0));
        is_known.then_some(Spot { x: self.x, y: self.y })
    }
}

/// A check that failed, as our functions say it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Failed {
    Gone,
    Visible,
    Enabled,
    Editable,
    Stable,
    ReceivesEvents,
}

impl Failed {
    /// What this means for the element.
    pub(crate) fn of(self, element: &Element, covered_by: Option<String>) -> Result<NotReady, Error> {
        let check = match self {
            Self::Gone => return Err(Error::StaleRef { reference: element.reference }),
            Self::Visible => Check::Visible,
            Self::Enabled => Check::Enabled,
            Self::Editable => Check::Editable,
            Self::Stable => Check::Stable,
            Self::ReceivesEvents => Check::ReceivesEvents,
        };
        Ok(NotReady { check, covered_by })
    }
}

/// Why an element is not ready.
pub(crate) struct NotReady {
    pub(crate) check: Check,
    pub(crate) covered_by: Option<String>,
}

impl Act<'_> {
    /// Finds the element of a ref.
    pub(crate) async fn element(&self, reference: ElementRef) -> Result<Element, Error> {
        let key = self.key_of(reference)?;
        let stale = |error| stale(reference, error);
        let session = self.browser.session(key.session.clone());
        let mut world = self.world(&key.session, &key.frame, &key.loader).await.map_err(stale)?;
        let object = match self.resolve(&session, key.node, world).await {
            Ok(object) => object,
            Err(CallError::Refused { .. }) => {
                // Either the node or the world is gone; a fresh world tells which.
                self.browser.worlds.lock().retain(|(of, ..), _| *of != key.session);
                world = self.world(&key.session, &key.frame, &key.loader).await.map_err(stale)?;
                self.resolve(&session, key.node, world).await.map_err(stale)?
            }
            Err(error) => return Err(stale(error)),
        };
        let element = Element { reference, key, session, world, object };
        // Node ids begin anew in another process. The events of a navigation come before later answers, so a ref
        // that is still live now was live when its node was found.
        self.key_of(reference)?;
        Ok(element)
    }

    pub(crate) fn key_of(&self, reference: ElementRef) -> Result<NodeKey, Error> {
        let state = self.browser.hub.state();
        match state.references.find(reference) {
            Lookup::Unknown => Err(Error::ElementNotFound { reference }),
            Lookup::Stale => Err(Error::StaleRef { reference }),
            Lookup::Live(key) => match state.tab_of(&key.session) {
                Some(tab) if tab == self.tab => Ok(key),
                Some(tab) => Err(Error::invalid(format!("{reference} is in tab {tab}, not in {}", self.tab))),
                None => Err(Error::StaleRef { reference }),
            },
        }
    }

    /// Calls one of our functions on the element.
    pub(crate) async fn on<R: serde::de::DeserializeOwned>(
        &self,
        element: &Element,
        function: &str,
        args: &[Value],
    ) -> Result<R, Error> {
        let called = self.apply(&element.session, &On::Object(&element.object), function, args).await;
        called.map_err(|error| stale(element.reference, error))
    }

    /// Makes the tab the one in front: in the back nothing is drawn, and checks of movement would never end.
    pub(crate) async fn to_front(&self) -> Result<(), Error> {
        self.call(&BringToFrontParams::default()).await?;
        Ok(())
    }

    /// Waits until the element passes the checks.
    pub(crate) async fn ready(&self, element: &Element, checks: &[Check]) -> Result<(), Error> {
        loop {
            match self.check(element, checks).await? {
                Ok(()) => return Ok(()),
                Err(not_ready) => self.round(element, not_ready).await?,
            }
        }
    }

    /// Waits until the element passes the checks and a click on it would reach it; returns where to click.
    pub(crate) async fn aim(
        &self,
        element: &Element,
        checks: &[Check],
        position: Option<Spot>,
        force: bool,
    ) -> Result<Spot, Error> {
        loop {
            let aimed = match self.check(element, checks).await? {
                Ok(()) => {
                    self.scroll_to(element).await?;
                    self.point_at(element, position, force).await?
                }
                Err(not_ready) => Err(not_ready),
            };
            match aimed {
                Ok(spot) => return Ok(spot),
                Err(not_ready) => self.round(element, not_ready).await?,
            }
        }
    }

    /// Pauses before the next round of checks, or ends with the reason if there is no time for one.
    pub(crate) async fn round(&self, element: &Element, not_ready: NotReady) -> Result<(), Error> {
        let NotReady { check, covered_by } = not_ready;
        if Instant::now() + ROUND_PAUSE + REPORT_RESERVE >= self.deadline {
            return Err(Error::ElementNotActionable { reference: element.reference, check, covered_by });
        }
        self.pause(ROUND_PAUSE).await;
        Ok(())
    }

    pub(crate) async fn check(
        &self,
        element: &Element,
        checks: &[Check],
    ) -> Result<Result<(), NotReady>, Error> {
        let failed: Option<Failed> = self.on(element, READY, &[json!(checks)]).await?;
        failed.map_or(Ok(Ok(())), |failed| failed.of(element, None).map(Err))
    }

    pub(crate) async fn scroll_to(&self, element: &Element) -> Result<(), Error> {
        let scroll = ScrollIntoViewIfNeededParams {
            backend_node_id: Some(BackendNodeId::new(element.key.node)),
            ..ScrollIntoViewIfNeededParams::default()
        };
        match element.session.call_raw(&scroll, self.deadline).await {
            // Without a box there is nothing to scroll to; the aim will say so.
            Ok(_) | Err(CallError::Refused { .. }) => Ok(()),
            Err(error) => Err(stale(element.reference, error)),
        }
    }

    async fn point_at(
        &self,
        element: &Element,
        position: Option<Spot>,
        force: bool,
    ) -> Result<Result<Spot, NotReady>, Error> {
        let args = position.map_or([Value::Null, Value::Null], |spot| [json!(spot.x), json!(spot.y)]);
        let aimed: Aimed = self.on(element, AIM, &args).await?;
        self.in_page(element, aimed, force).await
    }

    /// From a point of the element's frame to the point of the page.
    pub(crate) async fn in_page(
        &self,
        element: &Element,
        aimed: Aimed,
        force: bool,
    ) -> Result<Result<Spot, NotReady>, Error> {
        let mut spot = match self.judge(element, aimed, force)? {
            Ok(spot) => spot,
            Err(not_ready) => return Ok(Err(not_ready)),
        };
        if element.key.frame == self.target {
            return Ok(Ok(spot));
        }
        let (frames, _) = self.frames().await?;
        let find = |id: &str| frames.iter().find(|frame| &*frame.id == id);
        let mut at = find(&element.key.frame).ok_or(Error::StaleRef { reference: element.reference })?;
        while let Some(parent) = at.parent.as_deref() {
            let outer = find(parent).ok_or(Error::StaleRef { reference: element.reference })?;
            let hop = self.hop(outer, at, spot).await.map_err(|error| stale(element.reference, error))?;
            spot = match self.judge(element, hop, force)? {
                Ok(spot) => spot,
                Err(not_ready) => return Ok(Err(not_ready)),
            };
            at = outer;
        }
        Ok(Ok(spot))
    }

    fn judge(&self, element: &Element, aimed: Aimed, force: bool) -> Result<Result<Spot, NotReady>, Error> {
        match aimed {
            Aimed { gone: true, .. } => Err(Error::StaleRef { reference: element.reference }),
            Aimed { covered: Some(by), .. } if !force || (aimed.x, aimed.y) == (0.0, 0.0) => {
                Ok(Err(NotReady { check: Check::ReceivesEvents, covered_by: Some(by) }))
            }
            Aimed { x, y, .. } => Ok(Ok(Spot { x, y })),
        }
    }

    /// From a point in a frame to the point of the frame around it, and what is in the way there.
    pub(crate) async fn hop(
        &self,
        outer: &PageFrame,
        inner: &PageFrame,
        spot: Spot,
    ) -> Result<Aimed, CallError> {
        let owner = self.owner(outer, inner).await?;
        let session = self.browser.session(outer.session.clone());
        let world = self.world(&outer.session, &outer.id, &outer.loader).await?;
        let object = self.resolve(&session, owner, world).await?;
        self.apply(&session, &On::Object(&object), HOP, &[json!(spot.x), json!(spot.y)]).await
    }
}

/// What the failure of a command about an element means.
pub(crate) fn stale(reference: ElementRef, error: CallError) -> Error {
    match error {
        CallError::Refused { code: -32000, .. } | CallError::Gone(Gone::Detached | Gone::Crashed) => {
            Error::StaleRef { reference }
        }
        other => other.into(),
    }
}
