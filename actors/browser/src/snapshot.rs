//! The text of a page's accessibility tree, with refs: what an agent reads instead of a picture.
//!
//! ```text
//! frames of all sessions ─► one tree each ─► joined at their iframe nodes ─► lines ─► cut at a line, with a cursor
//! ```
//!
//! One line a node, one space a level: `ref role "name" states ="value"`. All text of the page is quoted and
//! escaped, so a page cannot write a line of its own.

mod ax;
mod render;
pub(crate) mod text;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chromiumoxide_cdp::cdp::browser_protocol::accessibility::GetFullAxTreeParams;
use chromiumoxide_cdp::cdp::browser_protocol::dom::{BackendNodeId, DescribeNodeParams};
use serde::Deserialize;
use tokio::time::Instant;

use self::render::{Join, Render, Source};
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
}

struct Taken {
    frame: PageFrame,
    tree: Option<Bytes>,
    owner: Option<i64>,
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
        let root = args.root.map(|reference| self.key_of(reference)).transpose()?;
        // The page's own tree is most of the work, and is asked for in the same breath as its frames.
        let whole = GetFullAxTreeParams::default();
        let (frames, own_tree) = tokio::join!(self.frames(), self.page.call_raw(&whole, self.deadline));
        let (frames, missing) = frames?;
        let count = frames.len();
        let taken = self.trees(frames, own_tree?).await;
        let size: usize = taken.iter().filter_map(|taken| taken.tree.as_ref()).map(Bytes::len).sum();
        let secrets = self.secret_fields(&taken).await?;
        let render = Render {
            hub: self.browser.hub.clone(),
            options: args.clone(),
            root,
            missing,
            secrets,
            sources: taken.into_iter().map(source).collect(),
        };
        // Tens of thousands of nodes take a while; other Spaces must not wait for it.
        let lines = if size <= RENDER_HERE_BYTES {
            render.lines()
        } else {
            tokio::task::spawn_blocking(move || render.lines()).await.map_err(|_| Error::ResultTooLarge)?
        };
        let reference = args.root;
        let lines = lines.map_err(|source| {
            Error::from(CallError::Shape { method: "Accessibility.getFullAXTree".into(), source })
        })?;
        match (lines, reference) {
            (Some(lines), _) => Ok((lines, count)),
            (None, Some(reference)) => Err(Error::StaleRef { reference }),
            (None, None) => Ok((Vec::new(), count)),
        }
    }

    /// The trees of all frames, of which the page's own is there already.
    async fn trees(&self, frames: Vec<PageFrame>, own_tree: Bytes) -> Vec<Taken> {
        let parents: HashMap<Arc<str>, PageFrame> =
            frames.iter().map(|f| (f.id.clone(), f.clone())).collect();
        let taken = frames.into_iter().map(|frame| {
            let (parents, own_tree) = (&parents, &own_tree);
            async move {
                let tree =
                    if frame.id == self.target { Ok(own_tree.clone()) } else { self.tree(&frame).await };
                let owner = match frame.parent.as_ref().and_then(|id| parents.get(id)) {
                    Some(parent) => self.owner(parent, &frame).await.ok(),
                    None => None,
                };
                (frame, tree, owner)
            }
        });
        let all = futures::future::join_all(taken).await.into_iter();
        // A frame that leaves meanwhile or does not answer is named in the text.
        all.map(|(frame, tree, owner)| Taken { frame, tree: tree.ok(), owner }).collect()
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
        for Taken { frame, tree, .. } in taken {
            let Some(tree) = tree else { continue };
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
    Source { frame: taken.frame, tree: taken.tree, join }
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
