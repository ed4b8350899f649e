//! Every error of this server: one table from code to HTTP status, retry advice and what it means.
//!
//! [`Code`] is the table, `docs/errors.md` is printed from it, and [`Problem`] is one error on its way to a caller.
//! The same codes stand in a failed task's `error`, where the task itself says whether the step may have run.

use std::{borrow::Cow, time::Duration};

use actors::{Denial, Rejection};
use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use eventlog::{Position, ReadError, StreamId};
use serde_json::{Map, Value, json};

/// After how long a retry is sensible where nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Whether the browser may have seen the step that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayHaveRun {
    /// It certainly has not.
    No,
    /// It may have; a task's `error.may_have_run` says more.
    Perhaps,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal, $status:expr, $retryable:literal, $ran:ident;)*) => {
        /// A stable error code. None is ever renamed; new ones join the list.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[doc = $doc])+ $variant,)* }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as it is written.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The HTTP status of an answer with this code; `None` for codes that stand only in a task's `error`.
            #[must_use]
            pub const fn status(self) -> Option<StatusCode> {
                match self { $(Self::$variant => $status,)* }
            }

            /// Whether the same request, later, is sensible.
            #[must_use]
            pub const fn retryable(self) -> bool {
                match self { $(Self::$variant => $retryable,)* }
            }

            /// Whether the browser may have seen the step.
            #[must_use]
            pub const fn may_have_run(self) -> MayHaveRun {
                match self { $(Self::$variant => MayHaveRun::$ran,)* }
            }

            /// What it means, in one sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)* }
            }
        }
    };
}

const fn http(status: StatusCode) -> Option<StatusCode> {
    Some(status)
}

/// Stands only in a task's `error`: the request itself was answered with 200 or 202.
const TASK: Option<StatusCode> = None;

codes! {
    /// No token, or one that is unknown, expired or revoked; tokens are taken from the Authorization header only.
    Unauthenticated = "unauthenticated", http(StatusCode::UNAUTHORIZED), false, No;
    /// You may not do this; the message says what you lack: the role, the Workspace, or that the Space is yours.
    Forbidden = "forbidden", http(StatusCode::FORBIDDEN), false, No;
    /// There is no such Workspace.
    WorkspaceNotFound = "workspace_not_found", http(StatusCode::NOT_FOUND), false, No;
    /// There is no such Space in this Workspace.
    SpaceNotFound = "space_not_found", http(StatusCode::NOT_FOUND), false, No;
    /// There is no such browser instance, or it is not for this Workspace.
    InstanceNotFound = "instance_not_found", http(StatusCode::NOT_FOUND), false, No;
    /// There is no such binding, it is revoked, or it is for another owner or instance.
    BindingNotFound = "binding_not_found", http(StatusCode::NOT_FOUND), false, No;
    /// There is no such task in this Space.
    TaskNotFound = "task_not_found", http(StatusCode::NOT_FOUND), false, No;
    /// There is no such token in this Workspace.
    TokenNotFound = "token_not_found", http(StatusCode::NOT_FOUND), false, No;
    /// There is no such artifact in this Space.
    ArtifactNotFound = "artifact_not_found", http(StatusCode::NOT_FOUND), false, No;
    /// There is no such download, it is not captured (yet), or it is gone: rejected, expired, or not on the disk any more.
    DownloadGone = "download_gone", http(StatusCode::NOT_FOUND), false, No;
    /// The bytes of the download are not those of its receipt; it is not released. An operator must look.
    DownloadTampered = "download_tampered", http(StatusCode::CONFLICT), false, No;
    /// The download was decided otherwise, or another file lies in the place of one of its own; nothing was overwritten.
    DownloadConflict = "download_conflict", http(StatusCode::CONFLICT), false, No;
    /// The disk refused (full, or failing); ask again once it has room.
    StorageUnavailable = "storage_unavailable", http(StatusCode::SERVICE_UNAVAILABLE), true, No;
    /// There is no such route; GET /docs shows those that exist, GET /openapi.json is the same for programs.
    RouteNotFound = "route_not_found", http(StatusCode::NOT_FOUND), false, No;
    /// The route exists, but not with this method; the Allow header lists its methods.
    MethodNotAllowed = "method_not_allowed", http(StatusCode::METHOD_NOT_ALLOWED), false, No;
    /// Another Space holds this browser instance; nothing was recorded. Try another instance, or later.
    BrowserInstanceInUse = "browser_instance_in_use", http(StatusCode::CONFLICT), true, No;
    /// This browser instance is retired and takes no new Space.
    InstanceRetired = "instance_retired", http(StatusCode::CONFLICT), false, No;
    /// The Space is closed or closing; open a new one.
    SpaceClosed = "space_closed", http(StatusCode::CONFLICT), false, No;
    /// A task of this Space is queued or running; wait for its end or cancel it.
    SpaceTaskInProgress = "space_task_in_progress", http(StatusCode::CONFLICT), true, No;
    /// The Space's browser is being restarted; the Space becomes idle again by itself.
    SpaceInError = "space_in_error", http(StatusCode::CONFLICT), true, No;
    /// There is no live view of this Space: its browser instance is of a kind that has no picture.
    NoLiveView = "no_live_view", http(StatusCode::CONFLICT), false, No;
    /// This request_id (or Idempotency-Key) was used before for a different request; use a new one.
    RequestIdConflict = "request_id_conflict", http(StatusCode::CONFLICT), false, No;
    /// A field, parameter, header or body is not as documented; details name the field, never its value.
    InvalidRequest = "invalid_request", http(StatusCode::UNPROCESSABLE_ENTITY), false, No;
    /// The catalogue has no such capability; GET /api/v1/capabilities lists those that there are.
    CapabilityUnknown = "capability_unknown", http(StatusCode::UNPROCESSABLE_ENTITY), false, No;
    /// The Space was not granted this capability, its instance does not load it, or the configuration allows no trusted ones; a submit is recorded as a failed task.
    CapabilityNotGranted = "capability_not_granted", http(StatusCode::UNPROCESSABLE_ENTITY), false, No;
    /// The args do not fit the capability's schema; details name the places, never the values.
    InvalidArgs = "invalid_args", http(StatusCode::UNPROCESSABLE_ENTITY), false, No;
    /// The cursor is malformed, beyond the end, or of something else; details name the field. Read again from the start.
    InvalidCursor = "invalid_cursor", http(StatusCode::UNPROCESSABLE_ENTITY), false, No;
    /// The browser is not ready to take tasks; recorded as a failed task. `details.reason` says why, where a start was tried. Somebody must act first, and `retryable` is false: no_executable, no_sandbox, no_network_namespace, profile_unreachable, profile_path_too_long, runs_as_root, policy_not_understood, kind_not_driven. Waiting often helps: no_user_free, environment_unreadable, system_refused, ended_early, overdue, set_up_refused, lost_again.
    RuntimeNotReady = "runtime_not_ready", http(StatusCode::SERVICE_UNAVAILABLE), true, No;
    /// A queue or bound of the server is full, or its views are behind; nothing was done.
    Overloaded = "overloaded", http(StatusCode::SERVICE_UNAVAILABLE), true, No;
    /// You ask more often than allowed; wait as long as Retry-After says.
    RateLimited = "rate_limited", http(StatusCode::TOO_MANY_REQUESTS), true, No;
    /// The log takes no writes or cannot be read; nothing was done.
    LogUnavailable = "log_unavailable", http(StatusCode::SERVICE_UNAVAILABLE), true, No;
    /// The server is draining; nothing was done.
    ShuttingDown = "shutting_down", http(StatusCode::SERVICE_UNAVAILABLE), true, No;
    /// Nobody knows whether the request was recorded; repeat it with the same request_id or Idempotency-Key.
    OutcomeUnknown = "outcome_unknown", http(StatusCode::GATEWAY_TIMEOUT), true, Perhaps;
    /// The recorded history of this Space or instance is damaged, so it is quarantined; an operator must look.
    CorruptStream = "corrupt_stream", http(StatusCode::INTERNAL_SERVER_ERROR), false, No;
    /// A bug of this server; its log has the request id.
    Internal = "internal", http(StatusCode::INTERNAL_SERVER_ERROR), false, Perhaps;
    /// The browser crashed while the task ran; it is restarted by itself.
    RuntimeCrashed = "runtime_crashed", TASK, true, Perhaps;
    /// The connection to the browser was lost while the task ran.
    RuntimeDisconnected = "runtime_disconnected", TASK, true, Perhaps;
    /// The task did not end within its timeout_seconds and was stopped.
    TaskTimeout = "task_timeout", TASK, true, Perhaps;
    /// The server ended while the task ran; it was not dispatched again.
    Interrupted = "interrupted", TASK, true, Perhaps;
    /// The task was cancelled before its end.
    Cancelled = "cancelled", TASK, false, Perhaps;
    /// The ref was never given out; no input was sent. Take a snapshot for the refs that there are.
    ElementNotFound = "element_not_found", TASK, false, No;
    /// The ref's element is gone; no input was sent. Take a new snapshot.
    StaleRef = "stale_ref", TASK, false, No;
    /// The element failed a check (visible, stable, enabled, receives events); no press or text reached the page.
    ElementNotActionable = "element_not_actionable", TASK, true, No;
    /// The page could not be loaded.
    NavigationFailed = "navigation_failed", TASK, true, Perhaps;
    /// The address is not http, https or about:blank, or the network policy of the browser's instance does not let it
    /// through, be it the address itself or one that it leads to. The details name the rule (docs/architecture.md).
    BlockedByPolicy = "blocked_by_policy", TASK, false, Perhaps;
    /// A dialog is open on the page; answer it with the capability `dialog` first.
    DialogOpen = "dialog_open", TASK, false, No;
    /// The tab is gone. The details list the tabs that exist.
    TabClosed = "tab_closed", TASK, false, Perhaps;
    /// The tab's page crashed; `navigate` revives the tab.
    TabCrashed = "tab_crashed", TASK, false, Perhaps;
    /// The script of `evaluate` threw, or its value can not be written as JSON; it has run as far as that.
    ScriptFailed = "script_failed", TASK, false, Perhaps;
    /// The element is no field for files, and no chooser for files opened when it was clicked.
    NoFileChooser = "no_file_chooser", TASK, false, Perhaps;
    /// The step did not acknowledge its cancel in time, so its browser was ended.
    CancelTimeout = "cancel_timeout", TASK, true, Perhaps;
    /// The browser was stopped under the task; a Space that is still open gets another one.
    RuntimeStopped = "runtime_stopped", TASK, true, Perhaps;
    /// The result was larger than a result may be and was left out.
    ResultTooLarge = "result_too_large", TASK, false, Perhaps;
}

/// One error on its way to the caller. Its message and details are words of ours or redacted; never what was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    code: Code,
    status: StatusCode,
    message: Cow<'static, str>,
    retryable: bool,
    details: Option<Map<String, Value>>,
    retry_after: Option<Duration>,
}

/// The code of an error answer, for the access log and the metrics; put into its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnsweredCode(pub(crate) Code);

impl Problem {
    /// A problem of this code, with the code's own status and meaning.
    #[must_use]
    pub fn new(code: Code) -> Self {
        let status = code.status().unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let wait = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        Self {
            code,
            status,
            message: Cow::Borrowed(code.meaning()),
            retryable: code.retryable(),
            details: None,
            retry_after: wait.then_some(RETRY_AFTER),
        }
    }

    /// A place to go on from that leads nowhere: which parameter or header, and why.
    #[must_use]
    pub fn invalid_cursor(field: &str, problem: impl AsRef<str>) -> Self {
        Self { code: Code::InvalidCursor, ..Self::invalid(field, problem) }
    }

    /// A field, parameter or header that is not as documented. `problem` is a phrase of ours, never the value.
    #[must_use]
    pub fn invalid(field: &str, problem: impl AsRef<str>) -> Self {
        let problem = problem.as_ref();
        Self::new(Code::InvalidRequest)
            .saying(format!("{field}: {problem}"))
            .detail("field", field)
            .detail("problem", problem)
    }

    /// The same, in other words.
    #[must_use]
    pub fn saying(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.message = message.into();
        self
    }

    /// The same with another HTTP status: `invalid_request` covers 400, 408, 413, 414, 415, 422 and 431.
    #[must_use]
    pub const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The same with one more detail.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.get_or_insert_default().insert(name.to_owned(), value.into());
        self
    }

    /// The same, saying after how long a retry is sensible.
    #[must_use]
    pub const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Its code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Its HTTP status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    fn body(&self) -> Value {
        let mut error = json!({
            "code": self.code.as_str(),
            "message": self.message,
            "retryable": self.retryable,
        });
        if let Some(details) = &self.details {
            error["details"] = Value::Object(details.clone());
        }
        json!({ "data": null, "error": error })
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        response.extensions_mut().insert(AnsweredCode(self.code));
        if let Some(wait) = self.retry_after {
            // Whole seconds, rounded up: a client that comes back a moment early would be refused again.
            let seconds = wait.as_millis().div_ceil(1000).max(1);
            let value = HeaderValue::from_str(&seconds.to_string()).expect("digits are a header value");
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
        if self.code == Code::Unauthenticated {
            let challenge = HeaderValue::from_static("Bearer realm=\"browserspace\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        let problem = Self::new(code_of(&rejection)).saying(rejection.to_string());
        match rejection {
            Rejection::SpaceTaskInProgress { task } => problem.detail("task_id", task.to_string()),
            Rejection::InvalidRequest { field, problem } => Self::invalid(field, problem),
            Rejection::CapabilityUnknown { at } => {
                let lists = "GET /api/v1/capabilities lists those that there are";
                let problem = problem.saying(format!("{}; {lists}", Rejection::CapabilityUnknown { at }));
                match at {
                    Some((field, index)) => problem.detail("field", field).detail("entry", index),
                    None => problem,
                }
            }
            Rejection::CapabilityNotGranted { capability, task } => {
                let problem = problem.detail("capability", capability.to_string());
                match task {
                    Some(task) => problem.detail("task_id", task.to_string()),
                    None => problem,
                }
            }
            Rejection::InvalidArgs { problems } => problem.detail("problems", problems),
            Rejection::RuntimeNotReady { task, retry_after_ms, fault } => {
                let mut problem = problem.retry_after(Duration::from_millis(retry_after_ms));
                if let Some(fault) = fault {
                    problem.retryable = fault.may_pass();
                    problem = problem.detail("reason", fault.reason());
                }
                match task {
                    Some(task) => problem.detail("task_id", task.to_string()),
                    None => problem,
                }
            }
            Rejection::CorruptStream { stream: StreamId::Space(space) } => {
                problem.detail("space_id", space.to_string())
            }
            Rejection::CorruptStream { stream } => problem.detail("stream", stream.to_string()),
            Rejection::Forbidden(_)
            | Rejection::SpaceNotFound
            | Rejection::InstanceNotFound
            | Rejection::BindingNotFound
            | Rejection::TaskNotFound
            | Rejection::TokenNotFound
            | Rejection::DownloadGone
            | Rejection::DownloadTampered
            | Rejection::DownloadConflict
            | Rejection::StorageUnavailable
            | Rejection::BrowserInstanceInUse
            | Rejection::InstanceRetired
            | Rejection::SpaceClosed
            | Rejection::SpaceInError
            | Rejection::NoLiveView
            | Rejection::RequestIdConflict
            | Rejection::Overloaded
            | Rejection::ShuttingDown
            | Rejection::LogUnavailable
            | Rejection::OutcomeUnknown
            | Rejection::Internal => problem,
        }
    }
}

const fn code_of(rejection: &Rejection) -> Code {
    match rejection {
        Rejection::Forbidden(_) => Code::Forbidden,
        Rejection::SpaceNotFound => Code::SpaceNotFound,
        Rejection::InstanceNotFound => Code::InstanceNotFound,
        Rejection::BindingNotFound => Code::BindingNotFound,
        Rejection::TaskNotFound => Code::TaskNotFound,
        Rejection::TokenNotFound => Code::TokenNotFound,
        Rejection::DownloadGone => Code::DownloadGone,
        Rejection::DownloadTampered => Code::DownloadTampered,
        Rejection::DownloadConflict => Code::DownloadConflict,
        Rejection::StorageUnavailable => Code::StorageUnavailable,
        Rejection::BrowserInstanceInUse => Code::BrowserInstanceInUse,
        Rejection::InstanceRetired => Code::InstanceRetired,
        Rejection::SpaceClosed => Code::SpaceClosed,
        Rejection::SpaceTaskInProgress { .. } => Code::SpaceTaskInProgress,
        Rejection::SpaceInError => Code::SpaceInError,
        Rejection::NoLiveView => Code::NoLiveView,
        Rejection::RequestIdConflict => Code::RequestIdConflict,
        Rejection::InvalidRequest { .. } => Code::InvalidRequest,
        Rejection::CapabilityUnknown { .. } => Code::CapabilityUnknown,
        Rejection::CapabilityNotGranted { .. } => Code::CapabilityNotGranted,
        Rejection::InvalidArgs { .. } => Code::InvalidArgs,
        Rejection::RuntimeNotReady { .. } => Code::RuntimeNotReady,
        Rejection::Overloaded => Code::Overloaded,
        Rejection::ShuttingDown => Code::ShuttingDown,
        Rejection::LogUnavailable => Code::LogUnavailable,
        Rejection::OutcomeUnknown => Code::OutcomeUnknown,
        Rejection::CorruptStream { .. } => Code::CorruptStream,
        Rejection::Internal => Code::Internal,
    }
}

impl From<Denial> for Problem {
    fn from(denial: Denial) -> Self {
        Rejection::from(denial).into()
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Damaged { position, last: Some(last), .. } => {
                Self::new(Code::CorruptStream).detail("position", position.0).detail("last_position", last.0)
            }
            ReadError::Damaged { position: Position::ZERO, .. } => Self::new(Code::CorruptStream),
            ReadError::Damaged { position, .. } => {
                Self::new(Code::CorruptStream).detail("position", position.0)
            }
            ReadError::Io(_) => Self::new(Code::LogUnavailable),
        }
    }
}

/// The text of `docs/errors.md`.
#[must_use]
pub fn errors_markdown() -> String {
    let mut page = String::from(
        "# Errors\n\n\
         Printed from the table in `api/src/problem.rs` (`cargo xtask generate`); do not edit by hand.\n\n\
         An error answer is `{\"data\": null, \"error\": {\"code\", \"message\", \"details\"?, \"retryable\"}}`. The same codes \
         stand in a failed task's `error`, in events and in the command line. A code is never renamed; new ones may be added, \
         so treat an unknown one by its HTTP status and `retryable`.\n\n\
         * **HTTP**: the status of the answer. `task` means that the request itself succeeded and the code stands in the \
         task's `error`. `invalid_request` is 422 for a field, 400 for a body that is not JSON, 408 for one that does not arrive, 413, 414, 415 and 431 for \
         bodies, addresses, media types and headers beyond their bounds.\n\
         * **Retry**: whether the same request may well succeed later, though you change and do nothing else. Where it says \
         no, the meaning or the message says what to do first. Answers with 429 and 503 carry `Retry-After`.\n\
         * **May have run**: whether the browser may have seen the step. `perhaps`: a task's `error.may_have_run` says \
         which; where there is no task, repeating with the same `request_id` settles it.\n\n\
         | code | HTTP | retry | may have run | meaning |\n|---|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let status = code.status().map_or_else(|| "task".to_owned(), |status| status.as_u16().to_string());
        let retry = if code.retryable() { "yes" } else { "no" };
        let ran = match code.may_have_run() {
            MayHaveRun::No => "no",
            MayHaveRun::Perhaps => "perhaps",
        };
        page.push_str(&format!(
            "| `{}` | {status} | {retry} | {ran} | {} |\n",
            code.as_str(),
            code.meaning()
        ));
    }
    page
}

#[cfg(test)]
mod tests;
