//! The baseline: a file, group commit, nothing else.

use std::{fs::File, io::Write, path::Path};

use anyhow::{Context, Result};
use tokio::sync::{mpsc, oneshot};

type Record = (Vec<u8>, oneshot::Sender<()>);

/// A handle of the thread that writes.
#[derive(Clone)]
pub(crate) struct BareFile {
    records: mpsc::Sender<Record>,
}

impl BareFile {
    /// Starts the thread; it ends with the last handle.
    pub(crate) fn start(path: &Path) -> Result<Self> {
        let mut file = File::create(path)?;
        let (records, mut pending) = mpsc::channel::<Record>(4096);
        std::thread::Builder::new().name("bare-writer".to_owned()).spawn(move || {
            let mut bytes = Vec::new();
            let mut acks = Vec::new();
            while let Some(record) = pending.blocking_recv() {
                let mut next = Some(record);
                while let Some((record, ack)) = next {
                    bytes.extend_from_slice(&record);
                    acks.push(ack);
                    next = if acks.len() < 4096 { pending.try_recv().ok() } else { None };
                }
                // A failed write drops the acks, and the writers say so.
                if file.write_all(&bytes).and_then(|()| file.sync_data()).is_err() {
                    return;
                }
                bytes.clear();
                for ack in acks.drain(..) {
                    let _ = ack.send(());
                }
            }
        })?;
        Ok(Self { records })
    }

    /// Writes a record and answers once it is durable.
    pub(crate) async fn append(&self, record: Vec<u8>) -> Result<()> {
        let (ack, acked) = oneshot::channel();
        self.records.send((record, ack)).await.ok().context("the bare file's thread has ended")?;
        acked.await.context("the bare file could not be written")
    }
}
