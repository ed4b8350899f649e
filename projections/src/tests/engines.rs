//! What SQLite and PostgreSQL have in common: everything that anybody can see.

use eventlog::{
    EventLog, InstanceEvent, Redacted, SpaceEvent, StreamId, WorkspaceEvent, event::instance::LossReason,
    number::Generation,
};

use super::audit::issued;
use crate::{AuditFilter, Place, Store, rebuild, statement::Statement, testing::*};

const ENGINES: [Engine; 2] = [Engine::Sqlite, Engine::Postgres];

/// A history in which every query of the page on auditing finds something, but for what operators did.
fn told_history() -> Vec<Fact> {
    let blocked = SpaceEvent::Blocked {
        rule: "private".to_owned(),
        target: Redacted::own("http://10.0.0.1:8080/x"),
        count: Some(3),
    };
    let lost = InstanceEvent::RuntimeLost { generation: Generation(1), reason: LossReason::Crashed };
    vec![
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
    ]
}

#[tokio::test]
async fn the_same_log_gives_equal_views_row_by_row_also_rebuilt_from_zero() {
    let history = || long_history(40).into_iter().chain([issued(7)]);
    let mut dumps = Vec::new();
    for on in ENGINES {
        let (world, _) = given(on, history()).await;
        let folded = world.dump().await;
        world.store.close().await;
        Store::remove(&world.place).await.expect("it is thrown away");
        assert_eq!(Store::reached_in(&world.place).await.expect("it tells"), None, "{on:?}: nothing stays");
        let store = Store::open(&world.place).await.expect("it is made anew");
        let head = rebuild(&store, world.log.clone()).await.expect("it is rebuilt");
        assert_eq!(head, *world.log.durable_head().borrow());
        assert_eq!(store.dump().await.expect("it is read"), folded, "{on:?}");
        let seen = Store::look(&world.place).await.expect("it is read").expect("it is there");
        assert_eq!(seen, (head, folded.clone()), "{on:?}: from outside");
        dumps.push(folded);
    }
    assert!(dumps[0].values().all(|rows| !rows.is_empty()), "{:?}", dumps[0]);
    assert_eq!(dumps[0], dumps[1]);
}

/// The queries of a page.
fn queries(page: &str) -> Vec<&str> {
    page.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[tokio::test]
async fn every_query_of_the_page_on_auditing_finds_something_and_the_same_in_both() {
    let queries = queries(include_str!("../../../docs/auditing.md"));
    assert!(queries.len() >= 12, "{}", queries.len());
    let mut found = Vec::new();
    for on in ENGINES {
        let (world, views) = given(on, told_history()).await;
        let filter = AuditFilter { site: Some("10.0.0.1:8080".to_owned()), ..AuditFilter::default() };
        let blocked = views.audit(&filter, None, 10).await.expect("it is read").items;
        assert_eq!(blocked[0].error_code.as_deref(), Some("private"), "{on:?}");
        let mut of_engine = Vec::new();
        for query in &queries {
            let mut transaction = world.store.begin().await.expect("it begins");
            let rows = transaction.fetch_all(&Statement::new(query.trim().trim_end_matches(';'))).await;
            let rows = rows.unwrap_or_else(|error| panic!("{on:?}: {query}\n{error}"));
            // Nobody in this history is an operator.
            assert!(!rows.is_empty() || query.contains("'operator'"), "{on:?}: {query}");
            let rows: Vec<_> = rows.iter().map(|row| row.to_json().expect("texts and numbers")).collect();
            of_engine.push((*query, rows));
        }
        found.push(of_engine);
    }
    assert_eq!(found[0], found[1]);
}

/// The script that makes a role for auditors, as the page on auditing prints it.
#[tokio::test]
async fn the_role_for_auditors_reads_every_view_and_writes_none() {
    let (world, _) = given(Engine::Postgres, told_history()).await;
    let Place::Postgres { schema, .. } = &world.place else { panic!("it is a schema") };
    let role = format!("auditor_{schema}");
    let script = include_str!("../../../docs/auditor-role.sql");
    let script = script.replace("browserspace_auditor", &role).replace("browserspace", schema);
    // The name of the role holds that of the schema, which was put in second.
    let mut transaction = world.store.begin().await.expect("it begins");
    transaction.run_script(&script).await.expect("the script runs");
    transaction.run_script(&format!("SET LOCAL ROLE {role}")).await.expect("it is a role");
    for table in ["audit_trail", "site_history", "usage_by_day", "token", "space"] {
        let rows = transaction.fetch_all(&Statement::new(format!("SELECT * FROM {table}"))).await;
        assert!(!rows.expect("it may be read").is_empty(), "{table}");
    }
    let written = transaction.execute(&Statement::new("DELETE FROM audit_trail")).await;
    assert!(written.is_err_and(|error| error.to_string().contains("permission denied")));
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_not_taken_for_one_that_must_be_made_anew() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let url = format!("postgres:///views?host={}&user=me", folder.path().display());
    let place = Place::postgres(&url.parse().expect("a URL")).expect("it is on this machine");
    assert!(!Store::open(&place).await.expect_err("nobody listens").is_cured_by_rebuild());
    assert!(Store::reached_in(&place).await.is_err());
}
