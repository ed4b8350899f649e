//! The projector: each event once, none skipped, and loud when it cannot go on.

use std::{
    os::unix::fs::PermissionsExt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use eventlog::{EventLog, Position, RecordedEvent};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::{
    Condition, Place, Projector, ProjectorError, Store, WaitError,
    projection::{self, ApplyError, Projection, Transaction},
    rebuild,
    testing::*,
};

/// Does what another one does, then fails, so many times.
struct Failing {
    inner: Box<dyn Projection>,
    version: u64,
    failures: AtomicU32,
}

#[async_trait]
impl Projection for Failing {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn tables(&self) -> &'static [&'static str] {
        self.inner.tables()
    }

    async fn apply(&self, events: &[RecordedEvent], transaction: &mut Transaction) -> Result<(), ApplyError> {
        self.inner.apply(events, transaction).await?;
        let left = self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_ok() { Err(ApplyError::Database(sqlx::Error::WorkerCrashed)) } else { Ok(()) }
    }
}

/// All projections, of which the last one fails so often after it has written.
fn with_failures(count: u32) -> Vec<Box<dyn Projection>> {
    let mut projections = projection::all();
    let inner = projections.pop().expect("there are some");
    let version = inner.version();
    projections.push(Box::new(Failing { inner, version, failures: count.into() }));
    projections
}

async fn all_events(world: &World) -> Vec<RecordedEvent> {
    world.log.read_all(Position(1)).map(|event| event.expect("it is read")).collect().await
}

async fn however_events_are_cut_into_batches_the_views_come_out_equal(on: Engine) {
    let (whole, _) = given(on, long_history(4)).await;
    let expected = whole.dump().await;
    assert!(expected.values().all(|rows| !rows.is_empty() || expected["token"].is_empty()), "{expected:?}");
    let events = all_events(&whole).await;
    for size in [1, 2, 3, 7, 50] {
        let mut world = World::new(on).await;
        world.happen(long_history(4)).await;
        let mut projector = world.projector().await;
        for batch in events.chunks(size) {
            projector.absorb(batch).await.expect("the events fit");
        }
        assert_eq!(world.dump().await, expected, "batches of {size}");
    }
}

async fn a_batch_that_ends_before_its_commit_leaves_nothing_and_is_folded_once_afterwards(on: Engine) {
    let (whole, _) = given(on, long_history(4)).await;
    let mut world = World::new(on).await;
    world.happen(long_history(4)).await;
    let mut projector = world.projector_of(with_failures(1)).await;
    assert!(matches!(projector.catch_up().await, Err(ProjectorError::Database(_))));
    assert!(world.dump().await.values().all(Vec::is_empty), "the transaction took everything back");
    assert_eq!(world.store.views().checkpoint(), Position::ZERO);

    drop(projector);
    let reopened = world.second_store().await;
    Projector::open(reopened, world.log.clone())
        .await
        .expect("it opens")
        .catch_up()
        .await
        .expect("the facts fit");
    assert_eq!(world.dump().await, whole.dump().await);
}

async fn a_damaged_event_costs_the_views_its_own_stream_only(on: Engine) {
    let facts = || (1..=3).flat_map(|n| [opened(n), queued(n, n), started(n, n), completed(n, n, &[])]);
    let (whole, _) = given(on, facts()).await;
    let mut world = World::new(on).await;
    let head = world.happen(facts()).await;
    // That the second Space's task was queued: without it, what follows in that stream fits nothing.
    world.log.damage(Position(6));
    assert_eq!(world.catch_up().await.expect("the others live"), head);
    assert_eq!(world.store.views().checkpoint(), head);
    let (whole, damaged) = (whole.dump().await, world.dump().await);
    for (table, rows) in &damaged {
        let of_second = |row: &&String| row.contains(&space(2).to_string());
        let others: Vec<_> = whole[table].iter().filter(|row| !of_second(row)).collect();
        assert_eq!(rows.iter().filter(|row| !of_second(row)).collect::<Vec<_>>(), others, "{table}");
    }
    assert!(world.store.views().task(task(2)).await.expect("it reads").is_none());
    // What comes later is absorbed as ever.
    let head = world.happen([opened(4)]).await;
    assert_eq!(world.catch_up().await.expect("it fits"), head);
}

async fn a_second_projector_is_refused_and_folds_nothing(on: Engine) {
    let mut world = World::new(on).await;
    world.happen([opened(1), queued(1, 1)]).await;
    let mut first = world.projector().await;
    let mut second =
        Projector::open(world.second_store().await, world.log.clone()).await.expect("the projector opens");
    first.catch_up().await.expect("the facts fit");
    let before = world.dump().await;
    assert!(matches!(second.catch_up().await, Err(ProjectorError::Moved(_))));
    assert_eq!(world.dump().await, before);
}

async fn an_event_that_does_not_fit_stops_the_projector_loudly_with_its_position(on: Engine) {
    let mut world = World::new(on).await;
    world.happen([opened(1), queued(1, 1), started(1, 9), completed(1, 1, &[])]).await;
    let views = world.store.views();
    let stopped = world.projector().await.run(CancellationToken::new()).await;
    assert!(matches!(stopped, Err(ProjectorError::Misfit(misfit)) if misfit.position == Position(3)));
    assert_eq!(views.checkpoint(), Position(2), "what fits before it is absorbed");
    let row = views.task(task(1)).await.expect("views can still be read").expect("it is there");
    assert_eq!(row.status, crate::TaskStatus::Queued);
    assert_eq!(views.lag(Position(4)), 2);
    assert!(
        matches!(views.progress().condition, Condition::Stopped { position: Position(3), .. }),
        "readiness shows it"
    );
    let waited = views.wait_for(Position(4), SOON).await;
    assert!(
        matches!(waited, Err(WaitError::Stopped { checkpoint: Position(2), .. })),
        "told at once: {waited:?}"
    );
    assert_eq!(views.wait_for(Position(2), SOON).await, Ok(Position(2)), "what is there is still served");
}

async fn a_gap_in_the_log_is_never_skipped(on: Engine) {
    let mut world = World::new(on).await;
    world.happen([opened(1), opened(2), opened(3)]).await;
    let log = Arc::new(LogWithGap { log: world.log.clone(), missing: Position(2) });
    let mut projector = Projector::open(world.store.clone(), log).await.expect("it opens");
    let stopped = projector.catch_up().await;
    assert!(
        matches!(stopped, Err(ProjectorError::Gap { expected: Position(2), found: Position(3) })),
        "{stopped:?}"
    );
    assert!(world.dump().await["space"].is_empty());
}

async fn views_that_are_ahead_of_their_log_are_refused(on: Engine) {
    let (world, _) = given(on, [opened(1)]).await;
    let other = Arc::new(eventlog::memory::MemoryLog::new());
    let opened = Projector::open(world.store.clone(), other).await;
    assert!(matches!(
        opened.err(),
        Some(ProjectorError::AheadOfLog { checkpoint: Position(1), head: Position::ZERO })
    ));
}

async fn views_of_another_log_are_refused_unchanged_however_long_that_is_and_taken_over_by_a_rebuild(
    on: Engine,
) {
    let (world, _) = given(on, [opened(1)]).await;
    let mut longer = World::new(on).await;
    longer.happen([opened(2), queued(2, 2), opened(3)]).await;
    let before = world.dump().await;
    let refused = Projector::open(world.store.clone(), longer.log.clone()).await.err();
    assert!(matches!(refused, Some(ProjectorError::AnotherLog(_))), "{refused:?}");
    assert_eq!(world.dump().await, before);
    rebuild(&world.store, longer.log.clone()).await.expect("it is asked for");
    longer.catch_up().await.expect("the facts fit");
    assert_eq!(world.dump().await, longer.dump().await);
    let refused = Projector::open(longer.store.clone(), world.log.clone()).await.err();
    assert!(matches!(refused, Some(ProjectorError::AnotherLog(_))), "{refused:?}");
}

async fn a_log_that_was_empty_when_its_views_were_opened_is_known_by_its_first_event(on: Engine) {
    let mut world = World::new(on).await;
    let mut projector = world.projector().await;
    world.happen([opened(1)]).await;
    projector.catch_up().await.expect("the facts fit");
    let mut other = World::new(on).await;
    other.happen([opened(2), opened(3)]).await;
    let refused = Projector::open(world.store.clone(), other.log.clone()).await.err();
    assert!(matches!(refused, Some(ProjectorError::AnotherLog(_))), "{refused:?}");
}

async fn a_refused_write_is_tried_again_until_it_is_done(on: Engine) {
    let mut world = World::new(on).await;
    let last = world.happen(long_history(2)).await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(world.projector_of(with_failures(2)).await.run(stop.clone()));
    let views = world.store.views();
    assert_eq!(views.wait_for(last, SOON).await, Ok(last));
    let mut progress = world.store.progress();
    let is_running = |progress: &crate::Progress| progress.condition == Condition::Running;
    tokio::time::timeout(SOON, progress.wait_for(is_running))
        .await
        .expect("in time")
        .expect("the store is there");
    stop.cancel();
    running.await.expect("no panic").expect("it ended in order");
    assert_eq!(views.progress().condition, Condition::Idle);
    let (whole, _) = given(on, long_history(2)).await;
    assert_eq!(world.dump().await, whole.dump().await);
}

async fn a_reader_sees_what_it_has_written(on: Engine) {
    let mut world = World::new(on).await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(world.projector().await.run(stop.clone()));
    let views = world.store.views();
    for n in 1..=20 {
        let position = world.happen([opened(n)]).await;
        views.wait_for(position, SOON).await.expect("the projector follows");
        assert!(views.space(space(n)).await.expect("it is read").is_some());
    }
    let waited = views.wait_for(Position(21), Duration::ZERO).await;
    assert_eq!(waited, Err(WaitError::Behind { checkpoint: Position(20) }));
    world.log.close().await;
    running.await.expect("no panic").expect("a closed log is no failure");
}

#[tokio::test]
async fn dropped_and_rebuilt_the_views_come_out_equal() {
    let (world, views) = given(Engine::Sqlite, long_history(4)).await;
    let before = world.dump().await;
    let head = *world.log.durable_head().borrow();
    assert_eq!(rebuild(&world.store, world.log.clone()).await.expect("it is rebuilt"), head);
    assert_eq!(world.dump().await, before);
    assert_eq!(views.checkpoint(), head);

    world.store.close().await;
    Store::remove(&world.place).await.expect("it is removed");
    assert_eq!(world.folder.path().read_dir().expect("the folder is there").count(), 0, "no side file stays");
    let store = Store::open(&world.place).await.expect("it is made anew");
    rebuild(&store, world.log.clone()).await.expect("it is rebuilt");
    assert_eq!(store.dump().await.expect("it is read"), before);
}

async fn a_projection_of_another_version_is_built_anew_and_the_others_go_on(on: Engine) {
    let mut world = World::new(on).await;
    world.happen(long_history(2)).await;
    world.catch_up().await.expect("the facts fit");
    let before = world.dump().await;
    let mut projections = projection::all();
    let inner = projections.remove(0);
    let version = inner.version() + 1;
    projections.push(Box::new(Failing { inner, version, failures: 0.into() }));
    let mut projector = world.projector_of(projections).await;
    let emptied = world.dump().await;
    assert!(emptied["space"].is_empty());
    assert_eq!(emptied["task"], before["task"]);
    assert_eq!(world.store.views().checkpoint(), Position::ZERO);
    projector.catch_up().await.expect("the facts fit");
    assert_eq!(world.dump().await, before);
}

#[tokio::test]
async fn the_file_is_ours_alone_and_one_that_is_no_database_is_told_from_a_refusing_disk() {
    let (world, _) = given(Engine::Sqlite, [opened(1)]).await;
    for entry in world.folder.path().read_dir().expect("the folder is there") {
        let entry = entry.expect("it is listed");
        let mode = entry.metadata().expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
    let path = world.folder.path().join("other.db");
    std::fs::write(&path, "this is no database, and long enough to be looked at".repeat(100))
        .expect("written");
    assert!(Store::open(&Place::Sqlite(path)).await.expect_err("it is refused").is_cured_by_rebuild());
    let nowhere = world.folder.path().join("no/folder/views.db");
    assert!(!Store::open(&Place::Sqlite(nowhere)).await.expect_err("it is refused").is_cured_by_rebuild());
}

on_both! {
    however_events_are_cut_into_batches_the_views_come_out_equal,
    a_batch_that_ends_before_its_commit_leaves_nothing_and_is_folded_once_afterwards,
    a_damaged_event_costs_the_views_its_own_stream_only,
    a_second_projector_is_refused_and_folds_nothing,
    an_event_that_does_not_fit_stops_the_projector_loudly_with_its_position,
    a_gap_in_the_log_is_never_skipped,
    views_that_are_ahead_of_their_log_are_refused,
    views_of_another_log_are_refused_unchanged_however_long_that_is_and_taken_over_by_a_rebuild,
    a_log_that_was_empty_when_its_views_were_opened_is_known_by_its_first_event,
    a_refused_write_is_tried_again_until_it_is_done,
    a_reader_sees_what_it_has_written,
    a_projection_of_another_version_is_built_anew_and_the_others_go_on,
}
