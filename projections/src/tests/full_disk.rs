//! A disk that is full for a while: the views fall behind, say so, and miss nothing afterwards.

use std::collections::VecDeque;

use async_trait::async_trait;
use eventlog::{Position, RecordedEvent};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    ProjectorError, checkpoint,
    projection::{self, ApplyError, Projection, Transaction},
    statement::Statement,
    testing::*,
};

/// What a full disk does to a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Full {
    /// The statement fails, and the transaction is still there.
    Statement,
    /// The database takes the whole transaction back by itself, as it does when its own journal can not be written.
    /// sqlite.org/lang_transaction.html, section 3.
    Transaction,
}

/// Does what another one does, and meets these failures first.
struct OnFullDisk {
    inner: Box<dyn Projection>,
    failures: Mutex<VecDeque<Full>>,
}

#[async_trait]
impl Projection for OnFullDisk {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn version(&self) -> u64 {
        self.inner.version()
    }

    fn tables(&self) -> &'static [&'static str] {
        self.inner.tables()
    }

    async fn apply(&self, events: &[RecordedEvent], transaction: &mut Transaction) -> Result<(), ApplyError> {
        self.inner.apply(events, transaction).await?;
        let failure = self.failures.lock().pop_front();
        let Some(failure) = failure else { return Ok(()) };
        if failure == Full::Transaction {
            transaction.execute(&Statement::new("ROLLBACK")).await.expect("there is a transaction");
        }
        Err(ApplyError::Database(sqlx::Error::Io(std::io::ErrorKind::StorageFull.into())))
    }
}

fn on_full_disk(failures: &[Full]) -> Vec<Box<dyn Projection>> {
    let mut projections = projection::all();
    let inner = projections.pop().expect("there are some");
    projections
        .push(Box::new(OnFullDisk { inner, failures: Mutex::new(failures.iter().copied().collect()) }));
    projections
}

/// What another connection sees: what is committed, and nothing else.
async fn committed(world: &World) -> Position {
    let store = world.second_store().await;
    let mut transaction = store.begin().await.expect("it opens");
    checkpoint::lowest(&mut transaction).await.expect("it reads")
}

/// Every order in which two kinds of failure can follow each other.
const ORDERS: [&[Full]; 4] = [
    &[Full::Statement, Full::Transaction],
    &[Full::Transaction, Full::Statement],
    &[Full::Transaction, Full::Transaction, Full::Statement],
    &[Full::Transaction, Full::Statement, Full::Statement, Full::Transaction],
];

#[tokio::test]
async fn what_did_not_fit_on_a_full_disk_is_folded_once_there_is_room() {
    let (whole, _) = given(Engine::Sqlite, long_history(4)).await;
    for failures in ORDERS {
        let mut world = World::new(Engine::Sqlite).await;
        let head = world.happen(long_history(4)).await;
        let mut projector = world.projector_of(on_full_disk(failures)).await;
        for failure in failures {
            let refused = projector.catch_up().await;
            assert!(matches!(refused, Err(ProjectorError::Database(_))), "{failure:?}: {refused:?}");
            assert_eq!(world.store.views().checkpoint(), committed(&world).await, "{failures:?}");
        }
        assert_eq!(projector.catch_up().await.expect("there is room"), head);
        assert_eq!(committed(&world).await, head, "{failures:?}: what is told to be absorbed is committed");
        assert_eq!(world.dump().await, whole.dump().await);
    }
}

#[tokio::test]
async fn a_projector_that_ran_through_a_full_disk_tells_where_the_database_is() {
    for failures in ORDERS {
        let mut world = World::new(Engine::Sqlite).await;
        let projector = world.projector_of(on_full_disk(failures)).await;
        let stop = CancellationToken::new();
        let running = tokio::spawn(projector.run(stop.clone()));
        let head = world.happen(long_history(4)).await;
        let mut progress = world.store.progress();
        let told =
            tokio::time::timeout(SOON, progress.wait_for(|progress| progress.checkpoint == head)).await;
        told.expect("it goes on by itself").expect("it is told");
        assert_eq!(committed(&world).await, head, "{failures:?}: what is told to be absorbed is committed");
        stop.cancel();
        running.await.expect("it does not panic").expect("it ends in order");
    }
}
