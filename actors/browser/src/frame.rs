//! The frames of a tab, over all its processes, and our isolated world in each of them.
//!
//! Functions that look at a page run in an isolated world: the page can neither see nor replace what they use. All
//! of them are fixed parts of this crate (`src/js`); nothing that a caller sends is ever run as script.

use std::sync::Arc;
use std::time::Duration;

use chromiumoxide_cdp::cdp::browser_protocol::dom::BackendNodeId;
use chromiumoxide_cdp::cdp::browser_protocol::dom::{GetFrameOwnerParams, ResolveNodeParams};
use chromiumoxide_cdp::cdp::browser_protocol::page::{CreateIsolatedWorldParams, GetFrameTreeParams};
use chromiumoxide_cdp::cdp::js_protocol::runtime::{
    CallArgument, CallFunctionOnParams, ExecutionContextId, RemoteObjectId,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use crate::act::Act;
use crate::connection::CallError;
use crate::error::Error;
use crate::policy;
use crate::session::Session;

/// The name of our isolated worlds.
const WORLD: &str = "browserspace";

/// Worlds that are remembered; beyond, all are looked up again.
const WORLDS_MAX: usize = 512;

/// How long one cross-process frame may hold up a look at the whole page.
const FRAME_WAIT: Duration = Duration::from_secs(2);

/// One frame that shows a document.
#[derive(Debug, Clone)]
pub(crate) struct PageFrame {
    pub(crate) session: Arc<str>,
    pub(crate) id: Arc<str>,
    pub(crate) loader: Arc<str>,
    pub(crate) parent: Option<Arc<str>>,
    /// The main frame of its session: coordinates and trees begin here.
    pub(crate) is_root: bool,
    pub(crate) url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TreeReturns {
    frame_tree: TreeNode,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TreeNode {
    frame: NodeFrame,
    #[serde(default)]
    child_frames: Vec<TreeNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeFrame {
    id: Arc<str>,
    parent_id: Option<Arc<str>>,
    loader_id: Arc<str>,
    #[serde(default)]
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorldReturns {
    execution_context_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FunctionReturns {
    pub(crate) result: RemoteValue,
    exception_details: Option<Exception>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoteValue {
    #[serde(default)]
    value: Value,
    pub(crate) object_id: Option<String>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(default)]
    text: String,
    exception: Option<Thrown>,
}

#[derive(Deserialize)]
struct Thrown {
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct Resolved {
    object: RemoteValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReturns {
    backend_node_id: i64,
}

/// What a function is called on.
pub(crate) enum On<'a> {
    /// `this` is the object.
    Object(&'a str),
    /// `this` is the world's global object.
    World(i64),
}

impl Act<'_> {
    /// All readable frames of the tab, parents first, and whether some could not be reached.
    pub(crate) async fn frames(&self) -> Result<(Vec<PageFrame>, bool), CallError> {
        let sessions = self.sessions();
        let trees = sessions.iter().map(|(session, is_page)| async move {
            let by = if *is_page { self.deadline } else { self.deadline.min(Instant::now() + FRAME_WAIT) };
            let session = self.browser.session(session.clone());
            session.fetch::<_, TreeReturns>(&GetFrameTreeParams::default(), by).await
        });
        let mut frames = Vec::new();
        let mut missing = false;
        for ((session, is_page), tree) in sessions.iter().zip(futures::future::join_all(trees).await) {
            match tree {
                Ok(tree) => add_frames(&mut frames, session, tree.frame_tree),
                Err(error) if *is_page => return Err(error),
                Err(_) => missing = true,
            }
        }
        let state = self.browser.hub.state();
        frames.retain(|frame: &PageFrame| match frame.parent {
            None => policy::may_show(&frame.url),
            Some(_) => policy::may_show_inside(&frame.url, &state.inline_frames),
        });
        drop(state);
        Ok((frames, missing))
    }

    /// The frame that is the page itself.
    pub(crate) async fn main_frame(&self) -> Result<PageFrame, Error> {
        let (frames, _) = self.frames().await?;
        let own = frames.into_iter().find(|frame| frame.id == self.target);
        own.ok_or(Error::BlockedByPolicy { rule: "scheme", sent: false })
    }

    /// The sessions of the tab, parents first, and which of them is the page's.
    pub(crate) fn sessions(&self) -> Vec<(Arc<str>, bool)> {
        let state = self.browser.hub.state();
        let depth = |session: &Arc<str>| {
            let mut depth = 0;
            let mut at = state.sessions.get(session);
            while let Some(parent) = at.and_then(|attached| attached.parent.as_ref()) {
                depth += 1;
                at = state.sessions.get(parent);
            }
            depth
        };
        let of_tab = state.sessions.iter().filter(|(_, attached)| attached.tab == self.tab);
        let mut sessions: Vec<(usize, Arc<str>)> = of_tab.map(|(id, _)| (depth(id), id.clone())).collect();
        sessions.sort();
        sessions.into_iter().map(|(depth, session)| (session, depth == 0)).collect()
    }

    /// Our isolated world in a document.
    pub(crate) async fn world(
        &self,
        session: &Arc<str>,
        frame: &Arc<str>,
        loader: &Arc<str>,
    ) -> Result<i64, CallError> {
        let key = (session.clone(), frame.clone(), loader.clone());
        if let Some(known) = self.browser.worlds.lock().get(&key) {
            return Ok(*known);
        }
        let mut create = CreateIsolatedWorldParams::new(frame.to_string());
        create.world_name = Some(WORLD.into());
        let session = self.browser.session(session.clone());
        let world = self.fetch::<_, WorldReturns>(&session, &create).await?.execution_context_id;
        let mut worlds = self.browser.worlds.lock();
        if worlds.len() >= WORLDS_MAX {
            worlds.clear();
        }
        worlds.insert(key, world);
        Ok(world)
    }

    /// Calls one of our functions in a frame.
    pub(crate) async fn in_frame<R: DeserializeOwned>(
        &self,
        frame: &PageFrame,
        function: &str,
        args: &[Value],
    ) -> Result<R, CallError> {
        let session = self.browser.session(frame.session.clone());
        let world = self.world(&frame.session, &frame.id, &frame.loader).await?;
        match self.apply(&session, &On::World(world), function, args).await {
            Err(CallError::Refused { code: -32000, .. }) => {
                // The world was made anew, as a crash or a document.open() does.
                self.browser.worlds.lock().retain(|(of, ..), _| *of != frame.session);
                let world = self.world(&frame.session, &frame.id, &frame.loader).await?;
                self.apply(&session, &On::World(world), function, args).await
            }
            result => result,
        }
    }

    /// Calls one of our functions and decodes what it returns.
    pub(crate) async fn apply<R: DeserializeOwned>(
        &self,
        session: &Session,
        on: &On<'_>,
        function: &str,
        args: &[Value],
    ) -> Result<R, CallError> {
        let returned = self.apply_raw(session, on, function, args, true).await?;
        serde_json::from_value(returned.result.value)
            .map_err(|source| CallError::Shape { method: "Runtime.callFunctionOn".into(), source })
    }

    pub(crate) async fn apply_raw(
        &self,
        session: &Session,
        on: &On<'_>,
        function: &str,
        args: &[Value],
        by_value: bool,
    ) -> Result<FunctionReturns, CallError> {
        let mut call = CallFunctionOnParams::new(function);
        match on {
            On::Object(id) => call.object_id = Some(RemoteObjectId::new(*id)),
            On::World(id) => call.execution_context_id = Some(ExecutionContextId::new(*id)),
        }
        let argument = |value: &Value| CallArgument { value: Some(value.clone()), ..CallArgument::default() };
        call.arguments = Some(args.iter().map(argument).collect());
        call.return_by_value = Some(by_value);
        call.await_promise = Some(true);
        call.user_gesture = Some(true);
        call.silent = Some(true);
        let returned: FunctionReturns = self.fetch(session, &call).await?;
        match returned.exception_details {
            None => Ok(returned),
            Some(Exception { text, exception }) => {
                let message = exception.map_or(text, |thrown| thrown.description);
                Err(CallError::Refused { method: "Runtime.callFunctionOn".into(), code: 0, message })
            }
        }
    }

    /// A handle, in our world, to a node.
    pub(crate) async fn resolve(
        &self,
        session: &Session,
        node: i64,
        world: i64,
    ) -> Result<String, CallError> {
        let mut resolve = ResolveNodeParams::builder().backend_node_id(BackendNodeId::new(node)).build();
        resolve.execution_context_id = Some(ExecutionContextId::new(world));
        let resolved: Resolved = self.fetch(session, &resolve).await?;
        resolved.object.object_id.ok_or_else(|| CallError::Refused {
            method: "DOM.resolveNode".into(),
            code: -32000,
            message: "no object".into(),
        })
    }

    /// The node that shows `frame` in its parent's document.
    pub(crate) async fn owner(&self, parent: &PageFrame, frame: &PageFrame) -> Result<i64, CallError> {
        let session = self.browser.session(parent.session.clone());
        let owner: OwnerReturns =
            self.fetch(&session, &GetFrameOwnerParams::new(frame.id.to_string())).await?;
        Ok(owner.backend_node_id)
    }
}

fn add_frames(frames: &mut Vec<PageFrame>, session: &Arc<str>, root: TreeNode) {
    let mut waiting = vec![(root, true)];
    while let Some((node, is_root)) = waiting.pop() {
        frames.push(PageFrame {
            session: session.clone(),
            id: node.frame.id,
            loader: node.frame.loader_id,
            parent: node.frame.parent_id,
            is_root,
            url: node.frame.url,
        });
        waiting.extend(node.child_frames.into_iter().rev().map(|child| (child, false)));
    }
}
