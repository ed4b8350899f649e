//! The views, fed from the simulated server's log between its steps.
//!
//! Their database has threads of its own, so it is never asked while the simulated server runs: each look brings them up
//! to the log's durable head and ends.

use std::{path::PathBuf, sync::Arc};

use eventlog::{EventLog, Position};
use projections::{Place, Projector, Store};
use tokio::runtime::{Builder, Runtime};

use crate::log::SimLog;

/// The views of one folder, over all lives.
pub(crate) struct SimViews {
    runtime: Runtime,
    place: Place,
    store: Option<Store>,
}

impl SimViews {
    pub(crate) fn new(file: PathBuf) -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        Self { runtime, place: Place::Sqlite(file), store: None }
    }

    /// Opens them as a new process would; how far they had come.
    pub(crate) fn open(&mut self) -> Result<Position, String> {
        self.close();
        let store = self.runtime.block_on(Store::open(&self.place)).map_err(|error| error.to_string())?;
        let reached = store.reached();
        self.store = Some(store);
        Ok(reached)
    }

    pub(crate) fn close(&mut self) {
        if let Some(store) = self.store.take() {
            self.runtime.block_on(store.close());
        }
    }

    /// Brings them up to the log.
    pub(crate) fn catch_up(&self, log: &SimLog) -> Result<(), String> {
        let Some(store) = &self.store else { return Ok(()) };
        let log: Arc<dyn EventLog> = Arc::new(log.clone());
        let head = *log.durable_head().borrow();
        let caught = self.runtime.block_on(async {
            let mut projector = Projector::open(store.clone(), log).await?;
            projector.catch_up().await
        });
        match caught {
            Ok(position) if position == head => Ok(()),
            Ok(position) => Err(format!("I9: the views stand at {position} and the log at {head}")),
            Err(error) => Err(format!("I9: the views stopped: {error}")),
        }
    }

    /// Whether they are what one fold of the whole log comes to.
    pub(crate) fn check_rebuilt(&self, log: &SimLog) -> Result<(), String> {
        self.catch_up(log)?;
        let Some(store) = &self.store else { return Ok(()) };
        let log: Arc<dyn EventLog> = Arc::new(log.clone());
        self.runtime.block_on(async {
            let fed = store.dump().await.map_err(|error| error.to_string())?;
            projections::rebuild(store, log).await.map_err(|error| error.to_string())?;
            let rebuilt = store.dump().await.map_err(|error| error.to_string())?;
            if fed == rebuilt {
                Ok(())
            } else {
                Err("I9: the views differ from what the log comes to".into())
            }
        })
    }
}

impl Drop for SimViews {
    fn drop(&mut self) {
        self.close();
    }
}
