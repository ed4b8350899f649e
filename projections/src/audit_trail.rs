//! Who did what, when, under which authority, to what, and with what outcome.
//!
//! A task is one entry, from its submit to its end. Anything else that somebody did, or that happened to an instance, is
//! an entry of its own. What a browser does many times a second (starts, reservations) is not: the log has it, and
//! `instance` shows where it led.

use async_trait::async_trait;
use eventlog::{
    DownloadEvent, Event, InstanceEvent, Json, Metadata, Position, Principal, RecordedEvent, Role,
    ServerEvent, SpaceEvent, StreamId, Timestamp, WorkspaceEvent,
    id::{CapabilityName, InstanceId, OwnerId, SpaceId, TaskId, TokenId, WorkspaceId},
};
use url::Url;

use crate::{
    projection::{ApplyError, Misfit, Projection, Transaction},
    table::{Folded, Row, fold_all, row},
};

/// The outcome of a task that has not ended.
const OPEN: &str = "open";
/// The outcome of an act that is its own end.
const DONE: &str = "done";
/// The action of a task's entry.
pub const TASK: &str = "task";
/// Every outcome that an entry may have.
pub const OUTCOMES: [&str; 5] = [OPEN, DONE, "completed", "failed", "cancelled"];

row! {
    /// An entry of the audit trail.
    AuditRow in "audit_trail" {
        /// The task's id, or the position of the event.
        entry_id: String,
        /// When it was decided.
        recorded_at: Timestamp,
        /// In which Workspace; none for what belongs to the server alone.
        workspace_id: Option<WorkspaceId>,
        /// What its principal was then; none for the server itself.
        role: Option<Role>,
        /// Who its principal was.
        owner_id: Option<OwnerId>,
        /// Which token was shown.
        token_id: Option<TokenId>,
        /// `task`, or the kind of the event.
        action: String,
        /// On which Space.
        space_id: Option<SpaceId>,
        /// On which instance.
        browser_instance_id: Option<InstanceId>,
        /// The task, token or binding that it is about.
        subject_id: Option<String>,
        /// What a task invoked.
        capability: Option<CapabilityName>,
        /// `open` while a task has not ended, `completed`, `failed`, `cancelled`; `done` for anything else.
        outcome: String,
        /// Why it failed, or by which rule it was blocked.
        error_code: Option<String>,
        /// From its submit to its end, in milliseconds.
        duration_ms: Option<u64>,
        /// When a task was handed to the browser.
        started_at: Option<Timestamp>,
        /// From then to its end, in milliseconds.
        browser_ms: Option<u64>,
        /// The host (and port, where it is not the usual one) of the page it led to, or that was blocked.
        site: Option<String>,
        /// How often; more than once only for requests that were blocked alike.
        times: u64,
        /// Size of the files that it made.
        artifact_bytes: u64,
        /// The trace in which it was decided.
        trace_id: String,
        /// The position of its first event; lists go by it.
        place: Position,
    }
}

/// What an event says besides its principal and time.
struct Act {
    action: &'static str,
    space: Option<SpaceId>,
    instance: Option<InstanceId>,
    subject: Option<String>,
    code: Option<String>,
    site: Option<String>,
    times: u64,
}

impl Default for Act {
    fn default() -> Self {
        Self { action: "", space: None, instance: None, subject: None, code: None, site: None, times: 1 }
    }
}

impl AuditRow {
    fn new(event: &RecordedEvent, key: String, act: Act, outcome: &str) -> Self {
        let Metadata { principal, workspace, recorded_at, trace_id, .. } = &*event.metadata;
        let (role, owner_id, token_id) = match principal {
            Principal::System => (None, None, None),
            Principal::Token { role, id, token } => (Some(*role), Some(id.clone()), Some(*token)),
        };
        Self {
            entry_id: key,
            recorded_at: *recorded_at,
            workspace_id: workspace.clone(),
            role,
            owner_id,
            token_id,
            action: act.action.to_owned(),
            space_id: act.space,
            browser_instance_id: act.instance,
            subject_id: act.subject,
            capability: None,
            outcome: outcome.to_owned(),
            error_code: act.code,
            duration_ms: None,
            started_at: None,
            browser_ms: None,
            site: act.site,
            times: act.times,
            artifact_bytes: 0,
            trace_id: trace_id.to_string(),
            place: event.position,
        }
    }

    fn end(&mut self, outcome: &str, at: Timestamp) {
        outcome.clone_into(&mut self.outcome);
        self.duration_ms = Some(millis(at.since(self.recorded_at)));
        self.browser_ms = self.started_at.map(|started| millis(at.since(started)));
    }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The task whose entry an event begins, carries on or ends.
fn task_of(event: &Event) -> Option<TaskId> {
    match event {
        Event::Space(
            SpaceEvent::TaskQueued { task, .. }
            | SpaceEvent::TaskStarted { task, .. }
            | SpaceEvent::TaskCompleted { task, .. }
            | SpaceEvent::TaskFailed { task, .. }
            | SpaceEvent::TaskCancelled { task },
        ) => Some(*task),
        _ => None,
    }
}

/// An act that is an entry of its own.
fn act_of(event: &RecordedEvent) -> Option<Act> {
    let kind = |action| Act { action, ..Act::default() };
    let act = match &event.event {
        Event::Space(space_event) => {
            let act = of_space(space_event)?;
            let StreamId::Space(space) = &event.stream else { return None };
            Act { action: space_event.kind(), space: Some(*space), ..act }
        }
        Event::Instance(instance_event) => {
            let code = of_instance(instance_event)?;
            let StreamId::Instance(instance) = &event.stream else { return None };
            Act { instance: Some(*instance), code, ..kind(instance_event.kind()) }
        }
        Event::Workspace(workspace_event) => {
            let (subject, instance) = match workspace_event {
                WorkspaceEvent::Created {} => (None, None),
                WorkspaceEvent::TokenIssued { token, .. } | WorkspaceEvent::TokenRevoked { token } => {
                    (Some(token.to_string()), None)
                }
                WorkspaceEvent::BindingGranted { binding, instance, .. } => {
                    (Some(binding.to_string()), Some(*instance))
                }
                WorkspaceEvent::BindingRevoked { binding } => (Some(binding.to_string()), None),
            };
            Act { subject, instance, ..kind(workspace_event.kind()) }
        }
        Event::Server(server_event) => match server_event {
            ServerEvent::Booted { .. }
            | ServerEvent::DrainStarted { .. }
            | ServerEvent::Stopped { .. }
            | ServerEvent::Repaired { .. } => kind(server_event.kind()),
        },
        Event::Download(download_event) => {
            let StreamId::Downloads(space) = &event.stream else { return None };
            Act { action: download_event.kind(), space: Some(*space), ..of_download(download_event) }
        }
        // Of a later version: nobody here can say who did what.
        Event::Unknown(_) => return None,
    };
    Some(act)
}

fn of_download(event: &DownloadEvent) -> Act {
    let (code, site) = match event {
        DownloadEvent::Started { url, .. } => (None, site_of(url.get())),
        DownloadEvent::Captured { receipt, .. } => (None, site_of(receipt.url.get())),
        DownloadEvent::Refused { reason, .. } => {
            let name = serde_json::to_value(reason).ok();
            (name.and_then(|name| Some(name.as_str()?.to_owned())), None)
        }
        DownloadEvent::Approved { .. }
        | DownloadEvent::Released { .. }
        | DownloadEvent::Rejected { .. }
        | DownloadEvent::Expired { .. } => (None, None),
    };
    Act { subject: Some(event.download().to_string()), code, site, ..Act::default() }
}

fn of_space(event: &SpaceEvent) -> Option<Act> {
    let act = match event {
        SpaceEvent::Opened { instance, .. } => Act { instance: Some(*instance), ..Act::default() },
        SpaceEvent::CancelRequested { task, .. } => Act { subject: Some(task.to_string()), ..Act::default() },
        SpaceEvent::Faulted { code, .. } => Act { code: Some(code.clone()), ..Act::default() },
        SpaceEvent::Blocked { rule, target, count } => {
            let site = site_of(target.get());
            Act { code: Some(rule.clone()), site, times: count.map_or(1, u64::from), ..Act::default() }
        }
        SpaceEvent::CloseRequested { .. } | SpaceEvent::Closed { .. } | SpaceEvent::Recovered { .. } => {
            Act::default()
        }
        SpaceEvent::DialogOpened { .. }
        | SpaceEvent::TaskQueued { .. }
        | SpaceEvent::TaskStarted { .. }
        | SpaceEvent::TaskCompleted { .. }
        | SpaceEvent::TaskFailed { .. }
        | SpaceEvent::TaskCancelled { .. } => return None,
    };
    Some(act)
}

/// The code of an instance's event; `None` if it is no entry.
fn of_instance(event: &InstanceEvent) -> Option<Option<String>> {
    match event {
        InstanceEvent::RuntimeLost { reason, .. } => Some(Some(crate::table::name_of(reason))),
        InstanceEvent::Registered { .. }
        | InstanceEvent::CircuitOpened { .. }
        | InstanceEvent::CircuitClosed {}
        | InstanceEvent::Retired {} => Some(None),
        InstanceEvent::Reserved { .. }
        | InstanceEvent::Released { .. }
        | InstanceEvent::RuntimeStarting { .. }
        | InstanceEvent::RuntimeReady { .. }
        | InstanceEvent::RuntimeStopped { .. } => None,
    }
}

/// Host, and port where it is not the usual one, of an address on the web.
fn site_of(address: &str) -> Option<String> {
    let url =
        Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https" | "ws" | "wss"))?;
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

impl Folded for AuditRow {
    fn key_of(event: &RecordedEvent) -> Option<String> {
        match task_of(&event.event) {
            Some(task) => Some(task.to_string()),
            None => act_of(event).map(|_| event.position.to_string()),
        }
    }

    fn is_first(event: &RecordedEvent) -> bool {
        task_of(&event.event).is_none() || matches!(event.event, Event::Space(SpaceEvent::TaskQueued { .. }))
    }

    fn fold(row: Option<Self>, event: &RecordedEvent) -> Result<Option<Self>, Misfit> {
        let Some(mut row) = row else { return begin(event).map(Some) };
        let at = event.metadata.recorded_at;
        match &event.event {
            Event::Space(SpaceEvent::TaskStarted { .. }) => row.started_at = Some(at),
            Event::Space(SpaceEvent::TaskCompleted { result, artifacts, .. }) => {
                row.site = result.get().get("url").and_then(Json::as_str).and_then(site_of);
                row.artifact_bytes = artifacts.iter().map(|artifact| artifact.bytes).sum();
                row.end("completed", at);
            }
            Event::Space(SpaceEvent::TaskFailed { error, .. }) => {
                row.error_code = Some(error.code.clone());
                row.end("failed", at);
            }
            Event::Space(SpaceEvent::TaskCancelled { .. }) => row.end("cancelled", at),
            _ => return Err(Misfit::new(event, "its entry was there before")),
        }
        Ok(Some(row))
    }
}

fn begin(event: &RecordedEvent) -> Result<AuditRow, Misfit> {
    if let (Event::Space(SpaceEvent::TaskQueued { task, capability, .. }), StreamId::Space(space)) =
        (&event.event, &event.stream)
    {
        let act =
            Act { action: TASK, space: Some(*space), subject: Some(task.to_string()), ..Act::default() };
        let row = AuditRow::new(event, task.to_string(), act, OPEN);
        return Ok(AuditRow { capability: Some(capability.clone()), ..row });
    }
    let act = act_of(event).ok_or_else(|| Misfit::new(event, "its task was not queued"))?;
    Ok(AuditRow::new(event, event.position.to_string(), act, DONE))
}

/// Folds the audit trail.
pub struct AuditTrail;

#[async_trait]
impl Projection for AuditTrail {
    fn name(&self) -> &'static str {
        "audit_trail"
    }

    fn version(&self) -> u64 {
        1
    }

    fn tables(&self) -> &'static [&'static str] {
        &[AuditRow::TABLE]
    }

    async fn apply(&self, events: &[RecordedEvent], transaction: &mut Transaction) -> Result<(), ApplyError> {
        fold_all::<AuditRow>(events, transaction).await
    }
}
