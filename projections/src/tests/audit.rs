//! The audit trail: who did what, and how it ended.

use eventlog::{InstanceEvent, Role, WorkspaceEvent, event::instance::LossReason, number::Generation};

use crate::{AuditFilter, AuditRow, Views, testing::*};

async fn trail(views: &Views, filter: &AuditFilter) -> Vec<AuditRow> {
    views.audit(filter, None, 100).await.expect("it is read").items
}

fn shown(rows: &[AuditRow]) -> Vec<(&str, &str, Option<&str>)> {
    rows.iter().map(|row| (&*row.action, &*row.outcome, row.error_code.as_deref())).collect()
}

async fn a_task_is_one_entry_from_its_submit_to_its_end(on: Engine) {
    let (_world, views) = given(
        on,
        [
            opened(1),
            queued(1, 1),
            started(1, 1),
            completed(1, 1, &[1, 2]),
            queued(1, 2),
            failed(1, 2, "interrupted"),
            queued(1, 3),
        ],
    )
    .await;
    let rows =
        trail(&views, &AuditFilter { action: Some("task".to_owned()), ..AuditFilter::default() }).await;
    assert_eq!(
        shown(&rows),
        [("task", "open", None), ("task", "failed", Some("interrupted")), ("task", "completed", None)]
    );
    let done = &rows[2];
    assert_eq!((done.entry_id.clone(), done.space_id), (task(1).to_string(), Some(space(1))));
    assert_eq!(done.capability.as_ref().map(eventlog::id::CapabilityName::as_str), Some("click"));
    assert_eq!(done.artifact_bytes, 14);
    let since = |from: u64, to: u64| u64::try_from(at(to).since(at(from)).as_millis()).ok();
    assert_eq!((done.duration_ms, done.browser_ms), (since(2, 4), since(3, 4)));
    assert_eq!((rows[1].duration_ms, rows[1].browser_ms), (since(5, 6), None), "no browser saw it");
}

async fn what_is_not_a_task_is_an_entry_of_its_own_with_its_principal(on: Engine) {
    let lost = InstanceEvent::RuntimeLost { generation: Generation(1), reason: LossReason::Crashed };
    let (_world, views) = given(
        on,
        [
            of_workspace("default", WorkspaceEvent::Created {}),
            registered(1, &[]),
            opened(1),
            of_instance(1, lost),
            queued(1, 1),
            cancel_requested(1, 1),
            cancelled(1, 1),
            closed(1),
        ],
    )
    .await;
    let rows = trail(&views, &AuditFilter::default()).await;
    let actions: Vec<&str> = rows.iter().map(|row| &*row.action).collect();
    assert_eq!(
        actions,
        ["closed", "cancel_requested", "task", "runtime_lost", "opened", "registered", "workspace_created"]
    );
    assert_eq!(rows[1].subject_id, Some(task(1).to_string()));
    assert_eq!(rows[2].outcome, "cancelled");
    assert_eq!(
        (rows[3].browser_instance_id, rows[3].error_code.as_deref()),
        (Some(instance(1)), Some("crashed"))
    );
    let of_space = trail(&views, &AuditFilter { space: Some(space(1)), ..AuditFilter::default() }).await;
    assert_eq!(of_space.len(), 4);
    let elsewhere = AuditFilter { workspace: Some(workspace("elsewhere")), ..AuditFilter::default() };
    assert_eq!(trail(&views, &elsewhere).await, []);
}

pub(super) fn issued(n: u64) -> Fact {
    let event = WorkspaceEvent::TokenIssued {
        token: token(n),
        hash: [0; 32],
        role: Role::Auditor,
        owner_id: owner("ann").id,
        all_workspaces: false,
        expires_at: None,
    };
    of_workspace("default", event)
}

on_both! {
    a_task_is_one_entry_from_its_submit_to_its_end,
    what_is_not_a_task_is_an_entry_of_its_own_with_its_principal,
}
