//! Puts sealed segments into the index, one after another, on a thread of its own: never on the path of an ack.

use std::sync::{Arc, mpsc};

use crate::log::Hash;

use super::{map::SegmentMap, shared::Shared};

/// A sealed segment, and the global hash at its end.
pub(crate) struct Job {
    pub(crate) map: Arc<SegmentMap>,
    pub(crate) global: Hash,
}

/// Runs until the writer is gone.
pub(crate) fn run(shared: &Shared, jobs: &mpsc::Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        let added = match &*shared.index.read() {
            Some(index) => index.add(&job.map, job.global),
            None => return,
        };
        match added {
            Ok(filter) => {
                let mut state = shared.state.write();
                state.unindexed.retain(|map| map.first != job.map.first);
                state.filters.push((job.map.first, Arc::new(filter)));
            }
            Err(error) => {
                // Order matters: a later segment must not come into the index before this one. So this is the end of
                // indexing until the next open; what is not in the index is found in memory.
                tracing::error!(%error, "Sealed segments stay in memory until a restart rebuilds the index.");
                return;
            }
        }
    }
}
