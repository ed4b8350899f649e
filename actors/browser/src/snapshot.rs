//! The text of a page's accessibility tree, with refs: what an agent reads instead of a picture.
//!
//! ```text
//! frames of all sessions ─► own: a capture of each session │ ax: a tree of each frame
//!                                    └────► nodes ◄────────────────┘
//!                       joined at their iframe nodes ─► lines ─► cut at a line, with a cursor
//! ```
//!
//! A page is read by our own engine; the accessibility tree is read where a caller wants all of it (`full`), and for
//! pages with something that only it tells.
//!
//! One line a node, one space a level: `ref role "name" states ="value"`. All text of the page is quoted and
//! escaped, so a page cannot write a line of its own.

mod ax;
mod node;
mod own;
mod render;
pub(crate) mod text;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chromiumoxide_cdp::cdp::browser_protocol::accessibility::GetFullAxTreeParams;
use chromiumoxide_cdp::cdp::browser_protocol::dom::{BackendNodeId, DescribeNodeParams};
use chromiumoxide_cdp::cdp::browser_protocol::dom_snapshot::CaptureSnapshotParams;
use serde::Deserialize;
use tokio::time::Instant;

use self::own::{Capture, Facts};
use self::render::{Captured, Content, Join, Render, Rendered, Source};
pub(crate) use self::text::Kept;
use crate::act::{Act, Needs};
use crate::action::args::SnapshotArgs;
use crate::action::results::PageSnapshot;
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::connection::CallError;
use crate::error::Error;
use crate::frame::PageFrame;
use crate::reference::NodeKey;

/// Characters of a snapshot when the caller does not say.
pub(crate) const SNAPSHOT_CHARS: u32 = 20_000;

/// Trees of at most so many bytes are made into lines where they came in: another thread would take longer to wake.
const RENDER_HERE_BYTES: usize = 64 * 1024;

/// Fields that are asked about at once.
const FIELDS_AT_ONCE: usize = 64;

/// How long the tree of one cross-process frame may take.
const FRAME_WAIT: Duration = Duration::from_secs(3);

impl Browser {
    /// Reads the page as text with refs.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`] if the cursor is not of the last text that was read from this tab.
    pub async fn snapshot(&self, args: &SnapshotArgs, call: &Call) -> Result<PageSnapshot, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        act.read(act.snapshot(args)).await
    }

    /// All lines of a page as one engine reads them: the accessibility tree, or our own. For the test that compares them.
    #[doc(hidden)]
    pub async fn lines_by(
        &self,
        is_tree: bool,
        args: &SnapshotArgs,
        call: &Call,
    ) -> Result<Vec<String>, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        let engine = if is_tree { Engine::Tree } else { Engine::Own };
        Ok(act.read(act.take_by(engine, args)).await?.0)
    }
}

struct Taken {
    frame: PageFrame,
    content: Option<Content>,
    owner: Option<i64>,
}

/// What reads a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Own,
    Tree,
}

impl Act<'_> {
    async fn snapshot(&self, args: &SnapshotArgs) -> Result<PageSnapshot, Error> {
        let max_chars = args.max_chars.unwrap_or(SNAPSHOT_CHARS) as usize;
        let kept = async {
            match &args.cursor {
                Some(cursor) => {
                    let (kept, from) = self.browser.kept_text(self.tab, cursor)?;
                    Ok((kept, from, None))
                }
                None => {
                    let (lines, frames) = self.take(args).await?;
                    Ok::<_, Error>((self.browser.keep_text(self.tab, lines), 0, Some(frames)))
                }
            }
        };
        let (kept, (url, title)) = tokio::join!(kept, self.address());
        let (kept, from, frames) = kept?;
        let part = kept.part(from, max_chars, "snapshot");
        Ok(PageSnapshot {
            tab: self.tab,
            url,
            title,
            text: part.text,
            node_count: kept.len(),
            omitted: part.omitted,
            cursor: part.cursor,
            frames,
        })
    }

    /// All lines of the page, and the count of its frames.
    pub(crate) async fn take(&self, args: &SnapshotArgs) -> Result<(Vec<String>, usize), Error> {
        self.take_by(if args.full { Engine::Tree } else { Engine::Own }, args).await
    }

    pub(crate) async fn take_by(
        &self,
        engine: Engine,
        args: &SnapshotArgs,
    ) -> Result<(Vec<String>, usize), Error> {
        let root = args.root.map(|reference| self.key_of(reference)).transpose()?;
        let mut by_tree: HashSet<Arc<str>> = HashSet::new();
        loop {
            // The page's own content is most of the work, and is asked for in the same breath as its frames.
            let own = async {
                if engine == Engine::Own && !by_tree.contains(self.page_id()) {
                    self.capture(self.page_id(), self.deadline).await
                } else {
                    self.page.call_raw(&GetFullAxTreeParams::default(), self.deadline).await
                }
            };
            let (frames, own) = tokio::join!(self.frames(), own);
            let (frames, missing) = frames?;
            let count = frames.len();
            let is_own = |session: &Arc<str>| engine == Engine::Own && !by_tree.contains(session);
            let taken = self.contents(frames, own?, is_own).await?;
            let secrets = self.secret_fields(&taken).await?;
            let size: usize = taken.iter().map(Taken::bytes).sum();
            let locale = self.browser.appearance.locale.as_deref();
            let render = Render {
                hub: self.browser.hub.clone(),
                options: args.clone(),
                root: root.clone(),
                missing,
                is_english: locale.is_none_or(|locale| locale.starts_with("en")),
                secrets,
                sources: taken.into_iter().map(source).collect(),
            };
            // Tens of thousands of nodes take a while; other Spaces must not wait for it.
            let rendered = if size <= RENDER_HERE_BYTES {
                render.lines()
            } else {
                tokio::task::spawn_blocking(move || render.lines())
                    .await
                    .map_err(|_| Error::ResultTooLarge)?
            };
            let rendered = rendered.map_err(|source| {
                Error::from(CallError::Shape { method: "DOMSnapshot.captureSnapshot".into(), source })
            })?;
            match (rendered, args.root) {
                (Rendered::Lines(lines), _) => return Ok((lines, count)),
                (Rendered::NoRoot, Some(reference)) => return Err(Error::StaleRef { reference }),
                (Rendered::NoRoot, None) => return Ok((Vec::new(), count)),
                (Rendered::Beyond(session), _) => {
                    by_tree.insert(session);
                }
            }
        }
    }

    fn page_id(&self) -> &Arc<str> {
        self.page.id().expect("a page has a session of its own")
    }

    /// What all frames are read from, of which the page's own is there already.
    async fn contents(
        &self,
        frames: Vec<PageFrame>,
        own: Bytes,
        is_own: impl Fn(&Arc<str>) -> bool,
    ) -> Result<Vec<Taken>, Error> {
        let parents: HashMap<Arc<str>, PageFrame> =
            frames.iter().map(|f| (f.id.clone(), f.clone())).collect();
        let captures = self.captures(&frames, &own, &is_own).await?;
        let taken = frames.into_iter().map(|frame| {
            let (parents, captures, own, is_own) = (&parents, &captures, &own, &is_own);
            async move {
                let content = if is_own(&frame.session) {
                    captures.get(&frame.session).cloned().map(Content::Captured)
                } else if frame.id == self.target {
                    Some(Content::Tree(own.clone()))
                } else {
                    self.tree(&frame).await.ok().map(Content::Tree)
                };
                let owner = match frame.parent.as_ref().and_then(|id| parents.get(id)) {
                    Some(parent) => self.owner(parent, &frame).await.ok(),
                    None => None,
                };
                // A frame that leaves meanwhile or does not answer is named in the text.
                Taken { frame, content, owner }
            }
        });
        Ok(futures::future::join_all(taken).await)
    }

    /// The captures of the sessions that our own engine reads; a cross-process frame may fail to give one.
    async fn captures(
        &self,
        frames: &[PageFrame],
        own: &Bytes,
        is_own: impl Fn(&Arc<str>) -> bool,
    ) -> Result<HashMap<Arc<str>, Arc<Captured>>, Error> {
        let roots = frames.iter().filter(|frame| frame.is_root && is_own(&frame.session));
        let captures = roots.map(|root| async move {
            let of_session: Vec<&PageFrame> =
                frames.iter().filter(|frame| frame.session == root.session).collect();
            let is_page = Some(&root.session) == self.page.id();
            let captured = async {
                let bytes = if is_page {
                    own.clone()
                } else {
                    self.capture(&root.session, self.deadline.min(Instant::now() + FRAME_WAIT)).await?
                };
                self.captured(bytes, &of_session).await
            };
            (root.session.clone(), is_page, captured.await)
        });
        let mut known = HashMap::new();
        for (session, is_page, captured) in futures::future::join_all(captures).await {
            match captured {
                Ok(captured) => {
                    known.insert(session, Arc::new(captured));
                }
                Err(error) if is_page => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(known)
    }

    async fn capture(&self, session: &Arc<str>, by: Instant) -> Result<Bytes, CallError> {
        let capture = CaptureSnapshotParams::new(own::STYLES.map(str::to_owned).to_vec());
        self.browser.session(session.clone()).call_raw(&capture, by).await
    }

    /// A capture with the facts of its documents, which are asked of each of them.
    async fn captured(&self, bytes: Bytes, frames: &[&PageFrame]) -> Result<Captured, CallError> {
        let mut facts = Facts::default();
        let asked = frames.iter().map(|frame| async move { (frame.is_root, self.facts(frame).await) });
        for (is_root, told) in futures::future::join_all(asked).await {
            match told {
                Ok(told) => facts.add(told),
                Err(error) if is_root => return Err(error),
                // A frame inside that has left since.
                Err(_) => {}
            }
        }
        // The word stands among the strings of a capture if there is such a root.
        if has_closed_root(&bytes) {
            for (frame, node) in closed_roots(&bytes, frames)? {
                // One that is gone since has nothing to tell.
                if let Ok(told) = self.facts_around(frame, node).await {
                    facts.add(told);
                }
            }
        }
        Ok(Captured { bytes, facts })
    }

    async fn tree(&self, frame: &PageFrame) -> Result<Bytes, CallError> {
        let is_page = Some(&frame.session) == self.page.id();
        let by = if is_page { self.deadline } else { self.deadline.min(Instant::now() + FRAME_WAIT) };
        let mut params = GetFullAxTreeParams::default();
        if !frame.is_root {
            params.frame_id = Some(frame.id.to_string().into());
        }
        self.browser.session(frame.session.clone()).call_raw(&params, by).await
    }

    /// The fields with a value that must not be shown.
    ///
    /// A field once seen to hide its value stays hidden, also when the page turns it into plain text.
    async fn secret_fields(&self, taken: &[Taken]) -> Result<HashSet<NodeKey>, Error> {
        let mut fields = Vec::new();
        for Taken { frame, content, .. } in taken {
            // A capture tells by itself which they are.
            let Some(Content::Tree(tree)) = content else { continue };
            let nodes = ax::fields_with_value(tree).map_err(|source| {
                Error::from(CallError::Shape { method: "Accessibility.getFullAXTree".into(), source })
            })?;
            fields.extend(nodes.into_iter().map(|node| key(frame, node)));
        }
        let mut secret = HashSet::new();
        for some in fields.chunks(FIELDS_AT_ONCE) {
            let asked = some.iter().map(|field| futures::FutureExt::boxed(self.is_secret(field)));
            for (field, is_secret) in some.iter().zip(futures::future::join_all(asked).await) {
                if is_secret? {
                    secret.insert(field.clone());
                }
            }
        }
        let mut state = self.browser.hub.state();
        secret.extend(fields.into_iter().filter(|field| state.secret_fields.contains(field)));
        state.secret_fields.extend(secret.iter().cloned());
        Ok(secret)
    }

    /// Whether a field hides what it holds, or was once seen to.
    pub(crate) async fn hides(&self, field: &NodeKey) -> Result<bool, Error> {
        if self.browser.hub.state().secret_fields.contains(field) {
            return Ok(true);
        }
        let hides = self.is_secret(field).await?;
        if hides {
            self.browser.hub.state().secret_fields.insert(field.clone());
        }
        Ok(hides)
    }

    async fn is_secret(&self, field: &NodeKey) -> Result<bool, Error> {
        #[derive(Deserialize)]
        struct Described {
            node: Node,
        }
        #[derive(Deserialize)]
        struct Node {
            #[serde(default)]
            attributes: Vec<String>,
        }
        let session = self.browser.session(field.session.clone());
        let params = DescribeNodeParams::builder().backend_node_id(BackendNodeId::new(field.node)).build();
        match self.fetch::<_, Described>(&session, &params).await {
            Ok(described) => Ok(hides_value(&described.node.attributes)),
            // A field that cannot be asked about is not shown.
            Err(CallError::Refused { .. } | CallError::Gone(_)) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

fn source(taken: Taken) -> Source {
    let join = match (&taken.frame.parent, taken.owner) {
        (None, _) => Join::Top,
        (Some(parent), Some(owner)) => Join::At { frame: parent.clone(), node: owner },
        (Some(_), None) => Join::Lost,
    };
    Source { frame: taken.frame, content: taken.content, join }
}

impl Taken {
    fn bytes(&self) -> usize {
        match &self.content {
            Some(Content::Tree(bytes)) => bytes.len(),
            Some(Content::Captured(captured)) => captured.bytes.len(),
            None => 0,
        }
    }
}

fn has_closed_root(bytes: &[u8]) -> bool {
    bytes.windows(8).any(|window| window == b"\"closed\"")
}

/// The closed shadow roots of the frames' documents, by a node of each.
fn closed_roots<'f>(bytes: &[u8], frames: &[&'f PageFrame]) -> Result<Vec<(&'f PageFrame, i64)>, CallError> {
    let capture: Capture<'_> = serde_json::from_slice(bytes)
        .map_err(|source| CallError::Shape { method: "DOMSnapshot.captureSnapshot".into(), source })?;
    let mut roots = Vec::new();
    for frame in frames {
        if let Some(dom) = capture.dom(&frame.id) {
            roots.extend(own::closed_roots(&dom).into_iter().map(|node| (*frame, node)));
        }
    }
    Ok(roots)
}

pub(crate) fn key(frame: &PageFrame, node: i64) -> NodeKey {
    NodeKey { session: frame.session.clone(), frame: frame.id.clone(), loader: frame.loader.clone(), node }
}

/// Whether a field with these attributes (name, value, name, value …) hides its value.
fn hides_value(attributes: &[String]) -> bool {
    attributes.chunks_exact(2).any(|pair| {
        let value = pair[1].to_ascii_lowercase();
        match pair[0].to_ascii_lowercase().as_str() {
            "type" => value == "password",
            "autocomplete" => value
                .split_whitespace()
                .any(|v| matches!(v, "one-time-code" | "current-password" | "new-password")),
            "name" | "id" => {
                let words = value.split(|c: char| !c.is_ascii_alphanumeric());
                ["passw", "passcode", "pwd"].iter().any(|part| value.contains(part))
                    || words.into_iter().any(|w| w == "otp")
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::hides_value;

    #[test]
    fn password_and_one_time_code_fields_hide_their_value_whatever_their_type_is_now() {
        let field =
            |name: &str, value: &str| hides_value(&["class".into(), "x".into(), name.into(), value.into()]);
        assert!(field("type", "PASSWORD") && field("autocomplete", "section-a one-time-code"));
        assert!(field("id", "new_password") && field("name", "user-otp"));
        assert!(!field("type", "text") && !field("name", "laptop") && !field("class", "password"));
    }
}
