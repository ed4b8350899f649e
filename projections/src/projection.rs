//! What a projection is: a fold of events into tables, with a checkpoint of its own.

use async_trait::async_trait;
use eventlog::{Position, RecordedEvent};

pub use crate::database::Transaction;
use crate::{
    audit_trail::AuditTrail, instance_health::InstanceHealth, space_list::SpaceList,
    task_history::TaskHistory, workspace_access::WorkspaceAccess,
};

/// An event that does not fit what was folded before: the log and the fold disagree, which is a bug of one of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the event at position {position} does not fit: {what}")]
pub struct Misfit {
    /// Where it stands.
    pub position: Position,
    /// What is wrong with it.
    pub what: &'static str,
}

impl Misfit {
    pub(crate) const fn new(event: &RecordedEvent, what: &'static str) -> Self {
        Self { position: event.position, what }
    }
}

/// Why a batch was not applied; none of it was.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// It holds an event that does not fit; trying again would not help.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The database refused; the same batch may be applied again.
    #[error("the views could not be written")]
    Database(#[from] sqlx::Error),
}

/// A fold of events into tables.
#[async_trait]
pub trait Projection: Send + Sync {
    /// The name of its checkpoint.
    fn name(&self) -> &'static str;

    /// Rises when the fold changes its mind about events that were folded before: then its tables are built anew.
    fn version(&self) -> u64;

    /// The tables that are its own.
    fn tables(&self) -> &'static [&'static str];

    /// Folds the events into its tables, inside the caller's transaction.
    ///
    /// # Errors
    /// [`ApplyError`]: the caller rolls back.
    async fn apply(&self, events: &[RecordedEvent], transaction: &mut Transaction) -> Result<(), ApplyError>;
}

/// Every projection of this program.
#[must_use]
pub fn all() -> Vec<Box<dyn Projection>> {
    vec![
        Box::new(SpaceList),
        Box::new(TaskHistory),
        Box::new(InstanceHealth),
        Box::new(WorkspaceAccess),
        Box::new(AuditTrail),
    ]
}
