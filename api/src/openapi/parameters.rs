//! The parameters of paths, queries and headers.

use serde_json::{Value, json};

/// One parameter of a path, a query or a header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) place: &'static str,
    pub(super) description: &'static str,
    shape: Shape,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Text,
    Id(&'static str),
    Number(u64, u64),
    OneOf(&'static [&'static str]),
}

impl Parameter {
    pub(super) fn schema(&self) -> Value {
        match self.shape {
            Shape::Text => json!({ "type": "string" }),
            Shape::Id(prefix) => json!({ "type": "string", "pattern": format!("^{prefix}") }),
            Shape::Number(least, most) if most == u64::MAX => json!({ "type": "integer", "minimum": least }),
            Shape::Number(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Shape::OneOf(words) => json!({ "type": "string", "enum": words }),
        }
    }
}

const fn parameter(
    name: &'static str,
    place: &'static str,
    shape: Shape,
    description: &'static str,
) -> Parameter {
    Parameter { name, place, description, shape }
}

/// Every parameter, by its name.
pub(super) const PARAMETERS: &[Parameter] = &[
    parameter("workspace_id", "path", Shape::Text, "The Workspace."),
    parameter("space_id", "path", Shape::Id("spc_"), "The Space."),
    parameter("task_id", "path", Shape::Id("tsk_"), "The task."),
    parameter("artifact_id", "path", Shape::Id("art_"), "The artifact."),
    parameter("guid", "path", Shape::Text, "The download: a UUID, in lower case and with hyphens."),
    parameter("instance_id", "path", Shape::Id("ins_"), "The browser instance."),
    parameter("binding_id", "path", Shape::Id("bnd_"), "The binding."),
    parameter("token_id", "path", Shape::Id("tok_"), "The token's id, not its text."),
    parameter(
        "limit",
        "query",
        Shape::Number(1, 100),
        "Entries of a page: 20 where not given, 100 for events.",
    ),
    parameter("cursor", "query", Shape::Text, "The `next` of the page before."),
    parameter(
        "status",
        "query",
        Shape::OneOf(&["idle", "running", "error", "closed"]),
        "Only Spaces that stand like this.",
    ),
    parameter(
        "state",
        "query",
        Shape::OneOf(&["started", "captured", "refused", "approved", "released", "rejected", "expired"]),
        "Only downloads that are so.",
    ),
    parameter("space", "query", Shape::Id("spc_"), "Only entries about this Space."),
    parameter("owner_id", "query", Shape::Text, "Only entries of this principal."),
    parameter("action", "query", Shape::Text, "Only these: `task`, or the kind of an event."),
    parameter(
        "outcome",
        "query",
        Shape::Text,
        "Only what ended so: `completed`, `failed` or `cancelled` for a task, `open` for one that has not ended, `done` for everything else.",
    ),
    parameter(
        "site",
        "query",
        Shape::Text,
        "Only what touched this host (`host:port` where the port is not the usual one).",
    ),
    parameter(
        "format",
        "query",
        Shape::OneOf(&["csv", "ndjson"]),
        "All entries as a file instead of a page.",
    ),
    parameter(
        "after_sequence",
        "query",
        Shape::Number(0, u64::MAX),
        "Only events after this sequence. Default: 0.",
    ),
    parameter(
        "after_position",
        "query",
        Shape::Number(0, u64::MAX),
        "Only events after this position. Default: 0.",
    ),
    parameter(
        "Idempotency-Key",
        "header",
        Shape::Text,
        "1 to 255 characters; a repeat with the same key gives the first Space.",
    ),
    parameter(
        "Prefer",
        "header",
        Shape::Text,
        "`wait=N`: answer once the task has ended, or after N seconds (at most 60).",
    ),
    parameter(
        "Last-Event-ID",
        "header",
        Shape::Number(0, u64::MAX),
        "Where a stream was cut; it goes on after this id.",
    ),
    parameter(
        "x-min-position",
        "header",
        Shape::Number(0, u64::MAX),
        "Wait (at most 2 s) until this position is known, else 503.",
    ),
];
