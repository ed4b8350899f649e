//! The audit trail: who did what, and how it ended.

use eventlog::{
    InstanceEvent, Redacted, Role, SpaceEvent, StreamId, WorkspaceEvent, event::instance::LossReason,
    number::Generation,
};

use crate::{AuditFilter, AuditRow, Views, testing::*};

async fn trail(views: &Views, filter: &AuditFilter) -> Vec<AuditRow> {
    views.audit(filter, None, 100).await.expect("it is read").items
}

fn shown(rows: &[AuditRow]) -> Vec<(&str, &str, Option<&str>)> {
    rows.iter().map(|row| (&*row.action, &*row.outcome, row.error_code.as_deref())).collect()
}

#[tokio::test]
async fn a_task_is_one_entry_from_its_submit_to_its_end() {
    let (_world, views) = given([
        opened(1),
        queued(1, 1),
        started(1, 1),
        completed(1, 1, &[1, 2]),
        queued(1, 2),
        failed(1, 2, "interrupted"),
        queued(1, 3),
    ])
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

#[tokio::test]
async fn what_is_not_a_task_is_an_entry_of_its_own_with_its_principal() {
    let lost = InstanceEvent::RuntimeLost { generation: Generation(1), reason: LossReason::Crashed };
    let (_world, views) = given([
        of_workspace("default", WorkspaceEvent::Created {}),
        registered(1, &[]),
        opened(1),
        of_instance(1, lost),
        queued(1, 1),
        cancel_requested(1, 1),
        cancelled(1, 1),
        closed(1),
    ])
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

fn issued(n: u64) -> Fact {
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

/// The queries of a page.
fn queries(page: &str) -> Vec<&str> {
    page.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[tokio::test]
async fn every_query_of_the_page_on_auditing_runs_and_finds_something() {
    let page = include_str!("../../../docs/auditing.md");
    let blocked = SpaceEvent::Blocked {
        rule: "private_address".to_owned(),
        target: Redacted::own("http://10.0.0.1:8080/x"),
        count: Some(3),
    };
    let lost = InstanceEvent::RuntimeLost { generation: Generation(1), reason: LossReason::Crashed };
    let (world, views) = given([
        of_workspace("default", WorkspaceEvent::Created {}),
        issued(1),
        registered(1, &["default"]),
        opened(1),
        queued(1, 1),
        started(1, 1),
        completed(1, 1, &[1]),
        queued(1, 2),
        failed(1, 2, "interrupted"),
        (StreamId::Space(space(1)), blocked.into()),
        of_instance(1, lost),
    ])
    .await;
    let filter = AuditFilter { site: Some("10.0.0.1:8080".to_owned()), ..AuditFilter::default() };
    assert_eq!(shown(&trail(&views, &filter).await), [("blocked", "done", Some("private_address"))]);
    let queries = queries(page);
    assert!(queries.len() >= 8, "{}", queries.len());
    for query in queries {
        let rows = sqlx::query(sqlx::AssertSqlSafe(query)).fetch_all(world.store.writer()).await;
        let rows = rows.unwrap_or_else(|error| panic!("{query}\n{error}"));
        // Nobody in this history is an operator.
        assert!(!rows.is_empty() || query.contains("'operator'"), "{query}");
    }
}
