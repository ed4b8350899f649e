//! Rows of the views, as bodies.

use eventlog::{Timestamp, id::CapabilityName};
use projections::{ArtifactRow, BindingRow, InstanceRow, SpaceRow, TaskRow, TokenRow};

use super::{
    Artifact, Binding, Health, Instance, Policy, Space, SpaceState, Task, TaskFailure, TaskState, Token,
    words,
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
