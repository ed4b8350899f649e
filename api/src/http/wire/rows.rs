//! Rows of the views, as bodies.

use eventlog::{Timestamp, id::CapabilityName};
use projections::{ArtifactRow, AuditRow, BindingRow, InstanceRow, SpaceRow, TaskRow, TokenRow};

use super::{
    Artifact, AuditEntry, Binding, Health, Instance, Policy, Space, SpaceState, Task, TaskFailure, TaskState,
    Token, words,
};

words! {
    impl SpaceState from projections::SpaceStatus { Idle, Running, Error, Closed }
    impl TaskState from projections::TaskStatus { Queued, Running, Completed, Failed, Cancelled }
    impl Health from projections::Health { Starting, Ready, Unavailable, Retired }
}

impl Space {
    /// A Space with the row of its active task, where it has one.
    pub(crate) fn new(space: &SpaceRow, active_task: Option<&TaskRow>) -> Self {
        Self {
            space_id: space.space_id.to_string(),
            workspace_id: space.workspace_id.to_string(),
            browser_instance_id: space.browser_instance_id.to_string(),
            binding_id: space.binding_id.map(|binding| binding.to_string()),
            owner_type: space.owner_type.into(),
            owner_id: space.owner_id.to_string(),
            status: space.status.into(),
            granted_capabilities: space.granted_capabilities.iter().map(ToString::to_string).collect(),
            active_task: active_task.map(Task::from),
            revision: space.revision.0,
            last_error_code: space.last_error_code.clone(),
            idle_timeout_seconds: space.idle_timeout_seconds,
            created_at: space.created_at.to_rfc3339(),
            updated_at: space.updated_at.to_rfc3339(),
        }
    }
}

impl From<&TaskRow> for Task {
    fn from(task: &TaskRow) -> Self {
        Self {
            space_id: task.space_id.to_string(),
            task_id: task.task_id.to_string(),
            operation_id: task.operation_id.to_string(),
            request_id: task.request_id.to_string(),
            capability: task.capability.to_string(),
            arg_keys: task.arg_keys.iter().map(|key| key.get().clone()).collect(),
            status: task.status.into(),
            cancel_requested: task.cancel_requested,
            result: task.result.as_ref().map(|result| result.get().clone()),
            error: TaskFailure::of(task.error.as_ref(), task.status.into(), task.started_at.is_some()),
            created_at: task.created_at.to_rfc3339(),
            started_at: task.started_at.map(Timestamp::to_rfc3339),
            finished_at: task.finished_at.map(Timestamp::to_rfc3339),
        }
    }
}

impl Instance {
    /// An instance with what its bundle can do.
    pub(crate) fn new<'a>(
        instance: &InstanceRow,
        capabilities: impl Iterator<Item = &'a CapabilityName>,
    ) -> Self {
        Self {
            browser_instance_id: instance.browser_instance_id.to_string(),
            kind: instance.kind.into(),
            name: instance.name.as_ref().map(ToString::to_string),
            workspaces: instance.workspaces.iter().map(ToString::to_string).collect(),
            bundle: instance.bundle.into(),
            capabilities: capabilities.map(ToString::to_string).collect(),
            health: instance.health.into(),
            reserved: instance.reserved_by.is_some(),
            network_policy: Policy::from(&instance.network_policy),
            created_at: instance.created_at.to_rfc3339(),
        }
    }
}

impl From<&BindingRow> for Binding {
    fn from(binding: &BindingRow) -> Self {
        Self {
            binding_id: binding.binding_id.to_string(),
            workspace_id: binding.workspace_id.to_string(),
            browser_instance_id: binding.browser_instance_id.to_string(),
            owner_id: binding.owner_id.as_ref().map(ToString::to_string),
            capabilities: binding
                .capabilities
                .as_ref()
                .map(|capabilities| capabilities.iter().map(ToString::to_string).collect()),
            created_at: binding.created_at.to_rfc3339(),
            revoked_at: binding.revoked_at.map(Timestamp::to_rfc3339),
        }
    }
}

impl From<&TokenRow> for Token {
    fn from(token: &TokenRow) -> Self {
        Self {
            token_id: token.token_id.to_string(),
            workspace_id: token.workspace_id.to_string(),
            role: token.role.into(),
            owner_id: token.owner_id.to_string(),
            all_workspaces: token.all_workspaces,
            created_at: token.created_at.to_rfc3339(),
            expires_at: token.expires_at.map(Timestamp::to_rfc3339),
            revoked_at: token.revoked_at.map(Timestamp::to_rfc3339),
        }
    }
}

impl From<&AuditRow> for AuditEntry {
    fn from(row: &AuditRow) -> Self {
        Self {
            entry_id: row.entry_id.clone(),
            position: row.place.0,
            recorded_at: row.recorded_at.to_rfc3339(),
            workspace_id: row.workspace_id.as_ref().map(ToString::to_string),
            role: row.role.map(Into::into),
            owner_id: row.owner_id.as_ref().map(ToString::to_string),
            token_id: row.token_id.map(|token| token.to_string()),
            action: row.action.clone(),
            space_id: row.space_id.map(|space| space.to_string()),
            browser_instance_id: row.browser_instance_id.map(|instance| instance.to_string()),
            subject_id: row.subject_id.clone(),
            capability: row.capability.as_ref().map(ToString::to_string),
            outcome: row.outcome.clone(),
            error_code: row.error_code.clone(),
            duration_ms: row.duration_ms,
            browser_ms: row.browser_ms,
            site: row.site.clone(),
            times: row.times,
            artifact_bytes: row.artifact_bytes,
            trace_id: row.trace_id.clone(),
        }
    }
}

impl AuditEntry {
    /// The columns of a table of entries.
    pub(crate) const FIELDS: [&str; 20] = [
        "entry_id",
        "position",
        "recorded_at",
        "workspace_id",
        "role",
        "owner_id",
        "token_id",
        "action",
        "space_id",
        "browser_instance_id",
        "subject_id",
        "capability",
        "outcome",
        "error_code",
        "duration_ms",
        "browser_ms",
        "site",
        "times",
        "artifact_bytes",
        "trace_id",
    ];

    /// This entry as a line of that table; what is not there is empty.
    pub(crate) fn cells(&self) -> impl Iterator<Item = String> + use<> {
        let fields = serde_json::to_value(self).expect("an entry has only plain fields");
        Self::FIELDS.into_iter().map(move |name| match &fields[name] {
            eventlog::Json::String(text) => text.clone(),
            eventlog::Json::Null => String::new(),
            other => other.to_string(),
        })
    }
}

impl From<&ArtifactRow> for Artifact {
    fn from(artifact: &ArtifactRow) -> Self {
        Self {
            artifact_id: artifact.artifact_id.to_string(),
            kind: artifact.kind.clone(),
            media_type: artifact.media_type.clone(),
            bytes: artifact.bytes,
            sha256: artifact.sha256.clone(),
            task_id: artifact.task_id.to_string(),
            created_at: artifact.created_at.to_rfc3339(),
        }
    }
}
