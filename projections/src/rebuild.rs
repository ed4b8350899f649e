//! The views from position 0: they can be dropped at will, and come out equal.

use std::sync::Arc;

use eventlog::{EventLog, Position};

use crate::{
    projector::{Projector, ProjectorError},
    store::{Store, StoreError},
};

/// Why the views could not be rebuilt. The log is not touched by any of it.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    /// They could not be emptied.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// They were emptied, and filled up to the position that this names.
    #[error(transparent)]
    Projector(#[from] ProjectorError),
}

/// Empties every view and folds the whole log anew, up to what is durable now; returns the position it came to.
/// No projector may be running on the store.
///
/// # Errors
/// [`RebuildError`]. Doing it again is safe.
pub async fn rebuild(store: &Store, log: Arc<dyn EventLog>) -> Result<Position, RebuildError> {
    store.reset().await?;
    Ok(Projector::open(store.clone(), log).await?.catch_up().await?)
}
