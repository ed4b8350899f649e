//! Events as they go over the wire. Every field of every event is named here, so that a new one does not compile until
//! somebody has decided whether a client may see it.

use eventlog::event::instance::LossReason;
use eventlog::{
    DownloadEvent, Event, InstanceEvent, Principal, RecordedEvent, ServerEvent, SpaceEvent, StreamId,
    WorkspaceEvent,
    event::{
        UnknownEvent,
        download::{Approval, Receipt},
        space::{CancelReason, CloseReason},
    },
    id::TaskId,
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{Artifact, BundleName, Kind, OwnerType, Policy, RoleName, TaskFailure};

/// One recorded fact.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventBody {
    /// Its place in its stream: 1, 2, 3 … without gaps.
    pub(crate) sequence: u64,
    /// Its place in the whole log: 1, 2, 3 … without gaps.
    pub(crate) position: u64,
    /// Which stream it belongs to; only in the whole log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "space/spc_01jdz4b8c9e2tq5w7y3n6h0m1k")]
    pub(crate) stream: Option<String>,
    /// Which Workspace it belongs to; only in the whole log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace_id: Option<String>,
    /// What happened.
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task_id: Option<String>,
    /// What else is told about it, by kind.
    #[schema(value_type = Object)]
    pub(crate) payload: Value,
    pub(crate) principal: PrincipalBody,
    #[schema(format = DateTime)]
    pub(crate) recorded_at: String,
    /// The W3C trace id of the request that led to it; zeros where there was none.
    pub(crate) trace_id: String,
}

/// Who led to an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Principal)]
pub(crate) struct PrincipalBody {
    #[schema(inline)]
    pub(crate) kind: PrincipalKind,
    /// The owner id of its token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// Which token was shown; its name, not its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_id: Option<String>,
}

/// What kind of principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PrincipalKind {
    /// The server itself: recovery, supervision, time-outs.
    System,
    /// A program that works through the API.
    RuntimeAgent,
    /// A person who runs the server.
    Operator,
    /// A person who reads.
    Auditor,
}

impl EventBody {
    /// An event among those of its own stream.
    pub(crate) fn of_stream(recorded: &RecordedEvent) -> Self {
        let (task, payload) = payload(recorded);
        Self {
            sequence: recorded.sequence.0,
            position: recorded.position.0,
            stream: None,
            workspace_id: None,
            kind: recorded.event.kind().to_owned(),
            task_id: task.map(|task| task.to_string()),
            payload,
            principal: principal(&recorded.metadata.principal),
            recorded_at: recorded.metadata.recorded_at.to_rfc3339(),
            trace_id: recorded.metadata.trace_id.to_string(),
        }
    }

    /// An event among those of the whole log.
    pub(crate) fn of_log(recorded: &RecordedEvent) -> Self {
        Self {
            stream: Some(recorded.stream.to_string()),
            workspace_id: recorded.metadata.workspace.as_ref().map(ToString::to_string),
            ..Self::of_stream(recorded)
        }
    }
}

/// Every kind that an event may have, of all streams.
pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
    let downloads = DownloadEvent::KINDS;
    [SpaceEvent::KINDS, InstanceEvent::KINDS, WorkspaceEvent::KINDS, ServerEvent::KINDS, downloads]
        .into_iter()
        .flatten()
        .copied()
}

fn principal(principal: &Principal) -> PrincipalBody {
    match principal {
        Principal::System => PrincipalBody { kind: PrincipalKind::System, id: None, token_id: None },
        Principal::Token { role, id, token } => PrincipalBody {
            kind: match role {
                eventlog::Role::RuntimeAgent => PrincipalKind::RuntimeAgent,
                eventlog::Role::Operator => PrincipalKind::Operator,
                eventlog::Role::Auditor => PrincipalKind::Auditor,
            },
            id: Some(id.to_string()),
            token_id: Some(token.to_string()),
        },
    }
}

fn payload(recorded: &RecordedEvent) -> (Option<TaskId>, Value) {
    match &recorded.event {
        Event::Space(event) => of_space(event, recorded),
        Event::Instance(event) => (None, of_instance(event)),
        Event::Workspace(event) => (None, of_workspace(event, &recorded.stream)),
        Event::Server(event) => (None, of_server(event)),
        Event::Download(event) => (None, of_download(event, &recorded.stream)),
        // Nobody here knows which of its fields may be shown.
        Event::Unknown(UnknownEvent { kind: _, schema, payload: _ }) => {
            (None, json!({ "unknown_schema": schema }))
        }
    }
}

/// Nothing in these events says where bytes lie, so all of it may be shown.
fn of_download(event: &DownloadEvent, stream: &StreamId) -> Value {
    let mut payload = match event {
        DownloadEvent::Started { download: _, url, suggested_filename, workspace, generation } => json!({
            "url": url, "suggested_filename": suggested_filename, "workspace_id": workspace, "generation": generation
        }),
        DownloadEvent::Captured { download: _, receipt } => {
            let Receipt {
                url,
                suggested_filename,
                bytes,
                sha256,
                claimed_media_type,
                sniffed_media_type,
                workspace,
                captured_at,
            } = &**receipt;
            json!({
                "url": url, "suggested_filename": suggested_filename, "bytes": bytes, "sha256": sha256,
                "claimed_media_type": claimed_media_type, "sniffed_media_type": sniffed_media_type,
                "workspace_id": workspace, "captured_at": captured_at.to_rfc3339()
            })
        }
        DownloadEvent::Refused { download: _, reason, bytes } => json!({ "reason": reason, "bytes": bytes }),
        DownloadEvent::Approved { download: _, approval } => {
            let Approval {
                sha256,
                bytes,
                approved_at,
                authorized_principal,
                authorized_principal_scope,
                declared_operator,
            } = &**approval;
            json!({
                "sha256": sha256, "bytes": bytes, "approved_at": approved_at.to_rfc3339(),
                "authorized_principal": authorized_principal,
                "authorized_principal_scope": authorized_principal_scope, "declared_operator": declared_operator
            })
        }
        DownloadEvent::Rejected { download: _, reason, declared_operator } => {
            json!({ "reason": reason, "declared_operator": declared_operator })
        }
        DownloadEvent::Released { download: _ } | DownloadEvent::Expired { download: _ } => json!({}),
    };
    payload["guid"] = event.download().to_string().into();
    if let StreamId::Downloads(space) = stream {
        payload["space_id"] = space.to_string().into();
    }
    payload
}

fn of_space(event: &SpaceEvent, recorded: &RecordedEvent) -> (Option<TaskId>, Value) {
    match event {
        SpaceEvent::Opened {
            workspace,
            instance,
            binding,
            owner,
            granted_capabilities,
            idle_timeout_seconds,
            fingerprint_key: _,
            idempotency: _,
            environment,
        } => {
            let mut payload = json!({
                "workspace_id": workspace,
                "browser_instance_id": instance,
                "binding_id": binding,
                "owner_type": OwnerType::from(owner.kind),
                "owner_id": owner.id,
                "granted_capabilities": granted_capabilities,
                "idle_timeout_seconds": idle_timeout_seconds,
            });
            if let Some(environment) = environment {
                payload["environment"] = json!(environment);
            }
            (None, payload)
        }
        SpaceEvent::TaskQueued {
            task,
            operation,
            request_id,
            capability,
            arg_keys,
            fingerprint: _,
            timeout_seconds,
            sealed_args: _,
        } => {
            let payload = json!({
                "operation_id": operation,
                "request_id": request_id,
                "capability": capability,
                "arg_keys": arg_keys,
                "timeout_seconds": timeout_seconds,
            });
            (Some(*task), payload)
        }
        SpaceEvent::TaskStarted { task, generation, deadline } => {
            (Some(*task), json!({ "generation": generation, "deadline": deadline.to_rfc3339() }))
        }
        SpaceEvent::TaskCompleted { task, result, artifacts } => {
            let recorded_at = recorded.metadata.recorded_at;
            let artifacts: Vec<_> =
                artifacts.iter().map(|record| Artifact::new(record, *task, recorded_at)).collect();
            (Some(*task), json!({ "result": result, "artifacts": artifacts }))
        }
        SpaceEvent::TaskFailed { task, error } => (Some(*task), json!({ "error": TaskFailure::from(error) })),
        SpaceEvent::CancelRequested { task, reason } => {
            (Some(*task), json!({ "reason": cancel_reason(*reason) }))
        }
        SpaceEvent::TaskCancelled { task } => (Some(*task), json!({})),
        SpaceEvent::CloseRequested { reason } => (None, json!({ "reason": close_reason(*reason) })),
        SpaceEvent::Closed { reason } => (None, json!({ "reason": close_reason(*reason) })),
        SpaceEvent::Faulted { code, generation } => (None, json!({ "code": code, "generation": generation })),
        SpaceEvent::Recovered { generation } => (None, json!({ "generation": generation })),
        SpaceEvent::DialogOpened { dialog } => (None, json!({ "dialog": dialog })),
        SpaceEvent::Blocked { rule, target, count } => {
            (None, json!({ "rule": rule, "target": target, "count": count.unwrap_or(1) }))
        }
    }
}

fn of_instance(event: &InstanceEvent) -> Value {
    match event {
        InstanceEvent::Registered { instance_kind, name, workspaces, bundle, network_policy, headless } => {
            json!({
                "kind": Kind::from(*instance_kind),
                "name": name,
                "workspaces": workspaces,
                "bundle": BundleName::from(*bundle),
                "network_policy": Policy::from(network_policy),
                "headless": headless,
            })
        }
        InstanceEvent::Reserved { space, workspace } => {
            json!({ "space_id": space, "workspace_id": workspace })
        }
        InstanceEvent::Released { space, fence, reason } => {
            json!({ "space_id": space, "fence": fence, "reason": close_reason(*reason) })
        }
        InstanceEvent::RuntimeStarting { space, generation } => {
            json!({ "space_id": space, "generation": generation })
        }
        InstanceEvent::RuntimeReady { generation } => json!({ "generation": generation }),
        InstanceEvent::RuntimeLost { generation, reason } => {
            json!({ "generation": generation, "reason": loss_reason(*reason) })
        }
        InstanceEvent::RuntimeStopped { generation } => json!({ "generation": generation }),
        InstanceEvent::CircuitOpened { losses, retry_after_ms } => {
            json!({ "losses": losses, "retry_after_ms": retry_after_ms })
        }
        InstanceEvent::CircuitClosed {} | InstanceEvent::Retired {} => json!({}),
    }
}

fn of_workspace(event: &WorkspaceEvent, stream: &StreamId) -> Value {
    match event {
        WorkspaceEvent::Created {} => match stream {
            StreamId::Workspace(workspace) => json!({ "workspace_id": workspace }),
            StreamId::Space(_) | StreamId::Instance(_) | StreamId::Server | StreamId::Downloads(_) => {
                json!({})
            }
        },
        WorkspaceEvent::TokenIssued { token, hash: _, role, owner_id, all_workspaces, expires_at } => json!({
            "token_id": token,
            "role": RoleName::from(*role),
            "owner_id": owner_id,
            "all_workspaces": all_workspaces,
            "expires_at": expires_at.map(eventlog::Timestamp::to_rfc3339),
        }),
        WorkspaceEvent::TokenRevoked { token } => json!({ "token_id": token }),
        WorkspaceEvent::BindingGranted { binding, instance, owner_id, capabilities } => json!({
            "binding_id": binding,
            "browser_instance_id": instance,
            "owner_id": owner_id,
            "capabilities": capabilities,
        }),
        WorkspaceEvent::BindingRevoked { binding } => json!({ "binding_id": binding }),
    }
}

fn of_server(event: &ServerEvent) -> Value {
    match event {
        ServerEvent::Booted { boot, version } => json!({ "boot_id": boot, "version": version }),
        ServerEvent::Repaired { boot, damage, file, offset, first_lost, last_lost, kept } => json!({
            "boot_id": boot,
            "damage": damage,
            "file": file,
            "offset": offset,
            "first_lost": first_lost,
            "last_lost": last_lost,
            "kept": kept,
        }),
        ServerEvent::DrainStarted { boot } | ServerEvent::Stopped { boot } => json!({ "boot_id": boot }),
    }
}

const fn close_reason(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Requested => "requested",
        CloseReason::IdleTimeout => "idle_timeout",
        CloseReason::InstanceRetired => "instance_retired",
        CloseReason::Drained => "drained",
    }
}

const fn cancel_reason(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::Requested => "requested",
        CancelReason::Closing => "closing",
        CancelReason::Draining => "draining",
    }
}

const fn loss_reason(reason: LossReason) -> &'static str {
    match reason {
        LossReason::Crashed => "crashed",
        LossReason::StartFailed => "start_failed",
        LossReason::Wedged => "wedged",
        LossReason::Orphaned => "orphaned",
    }
}
