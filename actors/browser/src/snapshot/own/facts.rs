//! What a capture does not tell of a page, asked of our isolated world in each of its documents (`js/facts.js`).

use std::collections::{HashMap, HashSet};

use chromiumoxide_cdp::cdp::js_protocol::runtime::{
    CallFunctionOnParams, ExecutionContextId, ReleaseObjectParams, RemoteObjectId, SerializationOptions,
    SerializationOptionsSerialization,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::act::Act;
use crate::connection::CallError;
use crate::frame::{On, PageFrame};
use crate::session::Session;

const FACTS: &str = include_str!("../../js/facts.js");

/// Nodes, by the ids that they have in their process.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) focused: HashSet<i64>,
    pub(crate) modal: HashSet<i64>,
    pub(crate) invalid: HashSet<i64>,
    /// Boxes that are neither checked nor not.
    pub(crate) mixed: HashSet<i64>,
    /// Tables that are of data by the looks of their cells.
    pub(crate) tables: HashSet<i64>,
    /// How many files a field has, and the name of the first.
    pub(crate) files: HashMap<i64, (usize, String)>,
}

#[derive(Deserialize)]
struct Returns {
    result: Deep,
    #[serde(rename = "exceptionDetails")]
    exception: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deep {
    #[serde(default)]
    deep_serialized_value: Value,
    object_id: Option<String>,
}

impl Act<'_> {
    /// The facts of a frame's document, with all shadow roots that are open.
    pub(crate) async fn facts(&self, frame: &PageFrame) -> Result<Facts, CallError> {
        let world = self.world(&frame.session, &frame.id, &frame.loader).await?;
        let call = format!("function () {{ return ({FACTS}).call(document); }}");
        self.facts_on(frame, &On::World(world), call).await
    }

    /// The facts of the shadow root that a node is in.
    pub(crate) async fn facts_around(&self, frame: &PageFrame, node: i64) -> Result<Facts, CallError> {
        let world = self.world(&frame.session, &frame.id, &frame.loader).await?;
        let session = self.browser.session(frame.session.clone());
        let object = self.resolve(&session, node, world).await?;
        let call = format!("function () {{ return ({FACTS}).call(this.getRootNode()); }}");
        let facts = self.facts_on(frame, &On::Object(&object), call).await;
        release(&session, object);
        facts
    }

    async fn facts_on(&self, frame: &PageFrame, on: &On<'_>, function: String) -> Result<Facts, CallError> {
        let mut call = CallFunctionOnParams::new(function);
        match on {
            On::World(world) => call.execution_context_id = Some(ExecutionContextId::new(*world)),
            On::Object(object) => call.object_id = Some(RemoteObjectId::new(*object)),
        }
        call.silent = Some(true);
        let mut deep = SerializationOptions::new(SerializationOptionsSerialization::Deep);
        deep.max_depth = Some(4);
        deep.additional_parameters = Some(json!({ "maxNodeDepth": 0, "includeShadowTree": "none" }));
        call.serialization_options = Some(deep);
        let session = self.browser.session(frame.session.clone());
        let returns: Returns = self.fetch(&session, &call).await?;
        if let Some(object) = returns.result.object_id {
            release(&session, object);
        }
        if returns.exception.is_some() {
            let method = "Runtime.callFunctionOn".into();
            return Err(CallError::Refused { method, code: 0, message: "the facts of a page".into() });
        }
        Ok(Facts::read(&returns.result.deep_serialized_value))
    }
}

impl Facts {
    /// Lists of nodes in the order in which the function returns them, each value wrapped with its type.
    fn read(value: &Value) -> Self {
        let list = |index: usize| value["value"][index]["value"].as_array().map_or(&[][..], Vec::as_slice);
        let nodes = |index: usize| list(index).iter().filter_map(node).collect();
        let file = |file: &Value| {
            let parts = &file["value"];
            let count = parts[1]["value"].as_u64().and_then(|count| usize::try_from(count).ok())?;
            Some((node(&parts[0])?, (count, parts[2]["value"].as_str().unwrap_or("").to_owned())))
        };
        Self {
            focused: nodes(0),
            modal: nodes(1),
            invalid: nodes(2),
            mixed: nodes(3),
            tables: nodes(4),
            files: list(5).iter().filter_map(file).collect(),
        }
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.focused.extend(more.focused);
        self.modal.extend(more.modal);
        self.invalid.extend(more.invalid);
        self.mixed.extend(more.mixed);
        self.tables.extend(more.tables);
        self.files.extend(more.files);
    }
}

fn node(value: &Value) -> Option<i64> {
    value["value"]["backendNodeId"].as_i64()
}

fn release(session: &Session, object: String) {
    session.post(&ReleaseObjectParams::new(RemoteObjectId::new(object)));
}
