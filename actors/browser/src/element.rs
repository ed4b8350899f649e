//! An element that is acted on: found by its ref, checked, scrolled to, aimed at.
//!
//! The checks are those of the usual table: visible, enabled, editable, stable, receives events. They are repeated
//! until they hold or time is nearly up; no input is sent before.

use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::dom::{BackendNodeId, ScrollIntoViewIfNeededParams};
use chromiumoxide_cdp::cdp::browser_protocol::page::BringToFrontParams;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::act::Act;
use crate::connection::{CallError, Gone};
use crate::error::{Check, Error};
use crate::frame::{On, PageFrame};
use crate::reference::{ElementRef, Lookup, NodeKey};
use crate::session::Session;

const READY: &str = include_str!("js/ready.js");
const AIM: &str = include_str!("js/aim.js");
const HOP: &str = include_str!("js/hop.js");

/// Pause between two rounds of checks.
const ROUND_PAUSE: Duration = Duration::from_millis(60);

/// Kept free before the deadline, so that the reason can still be told.
const REPORT_RESERVE: Duration = Duration::from_millis(250);

/// An element, resolved in our isolated world.
pub(crate) struct Element {
    pub(crate) reference: ElementRef,
    pub(crate) key: NodeKey,
    pub(crate) session: Session,
    pub(crate) object: String,
}

/// A point of the page, in CSS pixels of its viewport.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(crate) struct Spot {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

#[derive(Deserialize)]
struct Aimed {
    #[serde(default)]
    gone: bool,
    #[serde(default)]
    x: f64,
    #[serde(default)]
    y: f64,
    covered: Option<String>,
}

/// Why an element is not ready.
struct NotReady {
    check: Check,
    covered_by: Option<String>,
}

impl NotReady {
    fn because(check: Check) -> Self {
        Self { check, covered_by: None }
    }
}

impl Act<'_> {
    /// Finds the element of a ref.
    pub(crate) async fn element(&self, reference: ElementRef) -> Result<Element, Error> {
        let key = self.key_of(reference)?;
        let stale = |error| stale(reference, error);
        let session = self.browser.session(key.session.clone());
        let world = self.world(&key.session, &key.frame, &key.loader).await.map_err(stale)?;
        let object = match self.resolve(&session, key.node, world).await {
            Ok(object) => object,
            Err(CallError::Refused { .. }) => {
                // Either the node or the world is gone; a fresh world tells which.
                self.browser.worlds.lock().retain(|(of, ..), _| *of != key.session);
                let world = self.world(&key.session, &key.frame, &key.loader).await.map_err(stale)?;
                self.resolve(&session, key.node, world).await.map_err(stale)?
            }
            Err(error) => return Err(stale(error)),
        };
        // Node ids begin anew in another process. The events of a navigation come before later answers, so a ref
        // that is still live now was live when its node was found.
        self.key_of(reference)?;
        Ok(Element { reference, key, session, object })
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
    async fn round(&self, element: &Element, not_ready: NotReady) -> Result<(), Error> {
        let NotReady { check, covered_by } = not_ready;
        if Instant::now() + ROUND_PAUSE + REPORT_RESERVE >= self.deadline {
            return Err(Error::ElementNotActionable { reference: element.reference, check, covered_by });
        }
        self.pause(ROUND_PAUSE).await;
        Ok(())
    }

    async fn check(&self, element: &Element, checks: &[Check]) -> Result<Result<(), NotReady>, Error> {
        let failed: Option<String> = self.on(element, READY, &[json!(checks)]).await?;
        let check = match failed.as_deref() {
            None => return Ok(Ok(())),
            Some("gone") => return Err(Error::StaleRef { reference: element.reference }),
            Some("visible") => Check::Visible,
            Some("enabled") => Check::Enabled,
            Some("editable") => Check::Editable,
            Some(_) => Check::Stable,
        };
        Ok(Err(NotReady::because(check)))
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

    async fn hop(&self, outer: &PageFrame, inner: &PageFrame, spot: Spot) -> Result<Aimed, CallError> {
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
