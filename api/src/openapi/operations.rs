//! The table of operations: what each route takes, gives and refuses.

use crate::problem::Code;

/// What must come with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// A token.
    Token,
    /// Nothing.
    Anybody,
}

/// What an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// `{"data": …}` with this schema.
    One(&'static str),
    /// `{"data": […], "next": …}` with this schema.
    List(&'static str),
    /// A list of events, or a stream of them.
    Events,
    /// Bytes.
    File,
    /// Text of this media type.
    Text(&'static str),
    /// This document.
    Document,
}

/// One route and method.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) tag: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    pub(super) given: Given,
    /// Parameters that do not stand in the path.
    pub(super) parameters: &'static [&'static str],
    /// The schema of the body, and whether there must be one.
    pub(super) body: Option<(&'static str, bool)>,
    pub(super) reply: Reply,
    pub(super) answers: &'static [(u16, &'static str)],
    /// Whether the Workspace of the path is made where there is none.
    makes_workspace: bool,
    /// What it refuses beside what every route refuses.
    refuses: &'static [Code],
}

impl Operation {
    /// Every code that this route may answer with.
    pub(super) fn errors(&self) -> impl Iterator<Item = Code> {
        const ALWAYS: &[Code] = &[Code::InvalidRequest, Code::Forbidden, Code::Overloaded, Code::Internal];
        const WITH_TOKEN: &[Code] = &[Code::Unauthenticated, Code::RateLimited];
        const IN_WORKSPACE: &[Code] = &[Code::WorkspaceNotFound];
        const IN_SPACE: &[Code] = &[Code::SpaceNotFound];
        const CHANGES: &[Code] = &[Code::LogUnavailable, Code::ShuttingDown, Code::OutcomeUnknown];
        let when = |is: bool, codes: &'static [Code]| if is { codes } else { &[] };
        [
            ALWAYS,
            when(self.given == Given::Token, WITH_TOKEN),
            when(self.path.contains("{workspace_id}") && !self.makes_workspace, IN_WORKSPACE),
            when(self.path.contains("{space_id}"), IN_SPACE),
            when(self.method == "post", CHANGES),
            self.refuses,
        ]
        .into_iter()
        .flatten()
        .copied()
    }
}

/// What keeps a download where it is.
const RELEASE_REFUSES: &[Code] =
    &[Code::DownloadGone, Code::DownloadTampered, Code::DownloadConflict, Code::StorageUnavailable];

/// The groups of operations.
pub(super) const TAGS: &[(&str, &str)] = &[
    ("Spaces", "An owner's exclusive hold of one browser."),
    ("Tasks", "One at a time, each invoking one capability."),
    ("Events", "What happened, in order, as a page or as a stream."),
    ("Artifacts", "Files that tasks made."),
    ("Downloads", "Files that pages made the browser download: quarantined until a person releases them."),
    ("Instances", "Browsers that can be held."),
    ("Access", "Who may do what in a Workspace."),
    ("Server", "About the server itself."),
];

const SPACE: &str = "/api/v1/workspaces/{workspace_id}/browser-spaces/{space_id}";

macro_rules! space_path {
    ($rest:literal) => {
        concat!("/api/v1/workspaces/{workspace_id}/browser-spaces/{space_id}", $rest)
    };
}
macro_rules! workspace_path {
    ($rest:literal) => {
        concat!("/api/v1/workspaces/{workspace_id}", $rest)
    };
}

const fn get(
    path: &'static str,
    tag: &'static str,
    id: &'static str,
    reply: Reply,
    summary: &'static str,
) -> Operation {
    Operation {
        method: "get",
        path,
        tag,
        id,
        summary,
        description: "",
        given: Given::Token,
        parameters: &["x-min-position"],
        body: None,
        reply,
        answers: &[(200, "As asked.")],
        makes_workspace: false,
        refuses: &[],
    }
}

const fn post(
    path: &'static str,
    tag: &'static str,
    id: &'static str,
    reply: Reply,
    summary: &'static str,
) -> Operation {
    Operation { method: "post", parameters: &[], ..get(path, tag, id, reply, summary) }
}

const fn open(operation: Operation) -> Operation {
    Operation { given: Given::Anybody, parameters: &[], ..operation }
}

const AUDIT_PARAMETERS: &[&str] =
    &["limit", "cursor", "space", "owner_id", "action", "outcome", "site", "format", "x-min-position"];

/// Every operation, in the order of the routes.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        description: "An agent sees its own Spaces, operators and auditors all of the Workspace; newest first.",
        parameters: &["limit", "status", "cursor", "x-min-position"],
        refuses: &[Code::InvalidCursor],
        ..get(
            workspace_path!("/browser-spaces"),
            "Spaces",
            "list_spaces",
            Reply::List("Space"),
            "List Spaces",
        )
    },
    Operation {
        description: "Holds the instance in the same step, or refuses: never a shared browser, never another one.",
        parameters: &["Idempotency-Key"],
        body: Some(("CreateSpace", true)),
        answers: &[(201, "Made."), (200, "Made before, with the same Idempotency-Key.")],
        refuses: &[
            Code::InstanceNotFound,
            Code::BindingNotFound,
            Code::BrowserInstanceInUse,
            Code::InstanceRetired,
            Code::RequestIdConflict,
            Code::CapabilityUnknown,
            Code::CapabilityNotGranted,
        ],
        ..post(
            workspace_path!("/browser-spaces"),
            "Spaces",
            "create_space",
            Reply::One("Space"),
            "Create a Space",
        )
    },
    Operation {
        description: "When it is its owner who asks, this also keeps the Space from being closed as idle.",
        ..get(SPACE, "Spaces", "get_space", Reply::One("Space"), "Get a Space")
    },
    Operation {
        description: "Idempotent. The task shows `cancel_requested` until the browser has acknowledged.",
        body: Some(("Nothing", false)),
        refuses: &[Code::SpaceClosed, Code::CorruptStream],
        ..post(space_path!("/cancel"), "Spaces", "cancel_task", Reply::One("Space"), "Cancel the active task")
    },
    Operation {
        description: "Idempotent. A running task is cancelled first; the instance is free once the Space is closed.",
        body: Some(("Nothing", false)),
        refuses: &[Code::CorruptStream],
        ..post(space_path!("/close"), "Spaces", "close_space", Reply::One("Space"), "Close a Space")
    },
    Operation {
        description: "Newest first.",
        parameters: &["limit", "cursor", "x-min-position"],
        refuses: &[Code::InvalidCursor],
        ..get(space_path!("/tasks"), "Tasks", "list_tasks", Reply::List("Task"), "List a Space's tasks")
    },
    Operation {
        description: "The task is durable before it runs and reaches the browser at most once. A repeat of its `request_id` \
                      gives the same task. The examples show args of every capability; GET /api/v1/capabilities has their schemas.",
        parameters: &["Prefer"],
        body: Some(("SubmitTask", true)),
        answers: &[
            (202, "Accepted; it goes on."),
            (200, "Ended, or submitted before with the same request_id."),
        ],
        refuses: &[
            Code::SpaceClosed,
            Code::SpaceTaskInProgress,
            Code::SpaceInError,
            Code::RequestIdConflict,
            Code::CapabilityUnknown,
            Code::CapabilityNotGranted,
            Code::InvalidArgs,
            Code::RuntimeNotReady,
            Code::CorruptStream,
        ],
        ..post(space_path!("/tasks"), "Tasks", "submit_task", Reply::One("Task"), "Submit a task")
    },
    Operation {
        refuses: &[Code::TaskNotFound],
        ..get(space_path!("/tasks/{task_id}"), "Tasks", "get_task", Reply::One("Task"), "Get a task")
    },
    Operation {
        description: "With `Accept: text/event-stream`: replay, then live; `id` is the sequence. Heartbeats are comments. The \
                      last thing a stream says is an event `end` without an id: {\"reason\", \"last_id\"}.",
        parameters: &["after_sequence", "limit", "Last-Event-ID", "x-min-position"],
        answers: &[(200, "Ascending."), (204, "As a stream: the Space is closed and nothing follows.")],
        refuses: &[Code::InvalidCursor, Code::CorruptStream, Code::LogUnavailable],
        ..get(space_path!("/events"), "Events", "space_events", Reply::Events, "Read a Space's events")
    },
    Operation {
        description: "The newest picture of the active tab, again and again, until the Space closes: JPEG, no side longer \
                      than 1280 pixels, at most ten a second, each part with its `Content-Length` and the tab in \
                      `X-Tab`. A slow reader misses pictures; on a page at rest the last one comes again at each \
                      heartbeat. The browser draws for it only while somebody watches, and goes on where the browser \
                      is restarted. Looking changes nothing. Counts as one of the token's streams.",
        refuses: &[Code::SpaceClosed, Code::NoLiveView, Code::RuntimeNotReady],
        ..get(
            space_path!("/view"),
            "Artifacts",
            "watch_space",
            Reply::Text("multipart/x-mixed-replace"),
            "Watch a Space",
        )
    },
    get(
        space_path!("/artifacts"),
        "Artifacts",
        "list_artifacts",
        Reply::List("Artifact"),
        "List a Space's artifacts",
    ),
    Operation {
        refuses: &[Code::ArtifactNotFound],
        ..get(
            space_path!("/artifacts/{artifact_id}"),
            "Artifacts",
            "get_artifact",
            Reply::File,
            "Get an artifact's bytes",
        )
    },
    Operation {
        description: "Receipts of what pages made the browser download, the newest first. The bytes wait in a quarantine \
                      until an operator releases them.",
        parameters: &["limit", "cursor", "state"],
        ..get(
            space_path!("/downloads"),
            "Downloads",
            "list_downloads",
            Reply::List("Download"),
            "List a Space's downloads",
        )
    },
    Operation {
        description: "For operators. The bytes are read again and held against the receipt. The first approval stands: a \
                      repeat answers with it and changes nothing.",
        body: Some(("ReleaseDownload", true)),
        answers: &[(200, "Released, now or before; `approval` says by whom.")],
        refuses: RELEASE_REFUSES,
        ..post(
            space_path!("/downloads/{guid}/release"),
            "Downloads",
            "release_download",
            Reply::One("Download"),
            "Release a download",
        )
    },
    Operation {
        description: "For operators. The bytes are deleted.",
        body: Some(("RejectDownload", true)),
        answers: &[(200, "Rejected, now or before.")],
        refuses: RELEASE_REFUSES,
        ..post(
            space_path!("/downloads/{guid}/reject"),
            "Downloads",
            "reject_download",
            Reply::One("Download"),
            "Reject a download",
        )
    },
    Operation {
        description: "Always an attachment. One range of bytes may be asked for.",
        refuses: RELEASE_REFUSES,
        ..get(
            space_path!("/downloads/{guid}/content"),
            "Downloads",
            "get_download",
            Reply::File,
            "Get a released download's bytes",
        )
    },
    get(workspace_path!("/bindings"), "Access", "list_bindings", Reply::List("Binding"), "List bindings"),
    Operation {
        description: "For operators.",
        body: Some(("GrantBinding", true)),
        answers: &[(201, "Granted.")],
        refuses: &[Code::InstanceNotFound, Code::InstanceRetired, Code::CapabilityUnknown],
        ..post(
            workspace_path!("/bindings"),
            "Access",
            "grant_binding",
            Reply::One("Binding"),
            "Grant a binding",
        )
    },
    Operation {
        description: "For operators. Idempotent; open Spaces keep what they hold.",
        body: Some(("Nothing", false)),
        refuses: &[Code::BindingNotFound],
        ..post(
            workspace_path!("/bindings/{binding_id}/revoke"),
            "Access",
            "revoke_binding",
            Reply::One("Binding"),
            "Revoke a binding",
        )
    },
    Operation {
        description: "For operators and auditors. Never the text of a token.",
        ..get(workspace_path!("/tokens"), "Access", "list_tokens", Reply::List("Token"), "List tokens")
    },
    Operation {
        description: "For operators. The text of the token is in this answer and nowhere else. A Workspace that is not there \
                      yet is made by its first token: so an operator of every Workspace makes a new one.",
        makes_workspace: true,
        body: Some(("IssueToken", true)),
        answers: &[(201, "Made.")],
        ..post(workspace_path!("/tokens"), "Access", "issue_token", Reply::One("NewToken"), "Make a token")
    },
    Operation {
        description: "For operators. Idempotent; open event streams of the token end at once.",
        body: Some(("Nothing", false)),
        refuses: &[Code::TokenNotFound],
        ..post(
            workspace_path!("/tokens/{token_id}/revoke"),
            "Access",
            "revoke_token",
            Reply::One("Token"),
            "Revoke a token",
        )
    },
    Operation {
        description: "For operators and auditors, newest first. A task is one entry, from its submit to its end. With \
                      `format` the whole of what the filters let through, as a file.",
        parameters: AUDIT_PARAMETERS,
        refuses: &[Code::InvalidCursor],
        ..get(
            workspace_path!("/audit-trail"),
            "Access",
            "list_audit_trail",
            Reply::List("AuditEntry"),
            "Read the audit trail",
        )
    },
    Operation {
        description: "Those that a Workspace of yours may reserve.",
        ..get(
            "/api/v1/browser-instances",
            "Instances",
            "list_instances",
            Reply::List("Instance"),
            "List browser instances",
        )
    },
    Operation {
        description: "For operators. Its browsers reach the public web on the usual ports, less what `deny` names, and what \
                      `allow` names; everything else is refused at once and recorded.",
        body: Some(("RegisterInstance", true)),
        answers: &[(201, "Registered.")],
        ..post(
            "/api/v1/browser-instances",
            "Instances",
            "register_instance",
            Reply::One("Instance"),
            "Register a browser instance",
        )
    },
    Operation {
        description: "For operators. It takes no new Space; one that holds it is closed.",
        body: Some(("Nothing", false)),
        refuses: &[Code::InstanceNotFound],
        ..post(
            "/api/v1/browser-instances/{instance_id}/retire",
            "Instances",
            "retire_instance",
            Reply::One("Instance"),
            "Retire a browser instance",
        )
    },
    Operation {
        description: "Whoever shows the token. What is named here is what a request of this token is not refused as \
                      `forbidden` for its role; whose a Space is, is told where it is tried.",
        ..get("/api/v1/identity", "Access", "get_identity", Reply::One("Identity"), "Who am I?")
    },
    Operation {
        parameters: &[],
        ..get(
            "/api/v1/capabilities",
            "Server",
            "list_capabilities",
            Reply::List("Capability"),
            "List what a Space can be asked to do, each with an example and the schemas of its args and its result",
        )
    },
    Operation {
        description: "For operators and auditors: what belongs to their Workspaces. As a stream, `id` is the position. A page may \
                      be short, or empty, with a `next`: events of other Workspaces were passed over.",
        parameters: &["after_position", "limit", "Last-Event-ID", "x-min-position"],
        refuses: &[Code::InvalidCursor, Code::CorruptStream, Code::LogUnavailable],
        ..get("/api/v1/log", "Events", "log_events", Reply::Events, "Read the whole log")
    },
    Operation {
        description: "For operators and auditors; whose event a bad one is, is told to those of every Workspace. Reads every byte of the log up to what was durable when it \
                      was asked, and holds the artifacts against their recorded SHA-256; one check at a time. Index and views \
                      are looked at by `browserspace verify` on a stopped server. A log too large for one request is \
                      answered with 503: `browserspace verify` works beside the server as well.",
        body: Some(("VerifyLog", false)),
        answers: &[(200, "Checked; `verdict` says whether it is whole.")],
        ..post("/api/v1/log/verify", "Events", "verify_log", Reply::One("LogReport"), "Verify the log")
    },
    Operation {
        description: "For operators and auditors: a signed statement of everything that is durable now, also \
                      kept in the data folder and carried to the configured places. Keep it where the server can not reach \
                      it: from then on a history that was made anew, or cut, shows. Where nothing has happened since the \
                      last one, that one is answered.",
        body: Some(("Nothing", false)),
        answers: &[(200, "Signed.")],
        ..post(
            "/api/v1/log/checkpoint",
            "Events",
            "make_checkpoint",
            Reply::One("LogCheckpoint"),
            "Make a signed checkpoint",
        )
    },
    Operation {
        description: "For operators of every Workspace. No new Spaces or tasks; running tasks finish or are cancelled by the \
                      deadline; every Space is closed (`reason: drained`) and its browser ended; every end is recorded. The \
                      server stays up for reads, is not ready (`/readyz`), and answers new work with 503 `shutting_down` \
                      until SIGTERM or Ctrl-C ends it. An orderly stop does all this by itself; a crash keeps the Spaces, \
                      and the next start goes on with them.",
        body: Some(("Drain", false)),
        answers: &[(202, "The drain has begun.")],
        ..post("/api/v1/server/drain", "Server", "drain_server", Reply::One("Draining"), "Drain the server")
    },
    open(get("/healthz", "Server", "healthz", Reply::One("Alive"), "Does the server answer?")),
    Operation {
        description: "Whether the log takes writes, the views keep up, and no drain has begun.",
        refuses: &[Code::LogUnavailable, Code::ShuttingDown],
        ..open(get("/readyz", "Server", "readyz", Reply::One("Ready"), "Does the server take work?"))
    },
    Operation {
        description: "Prometheus text, for operators and auditors; without a token only from this machine and only where the \
                      configuration says so.",
        parameters: &[],
        ..get("/metrics", "Server", "metrics", Reply::Text("text/plain"), "The server's figures")
    },
    open(get("/openapi.json", "Server", "openapi", Reply::Document, "This document")),
    open(get("/docs", "Server", "docs", Reply::Text("text/html"), "This document, for people")),
];
