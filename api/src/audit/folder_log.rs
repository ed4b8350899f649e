//! A log in a folder that nobody writes to, as a log: for those who fold it without taking it.

use std::path::PathBuf;

use async_trait::async_trait;
use eventlog::{
    Append, AppendError, Appended, EventLog, Position, ReadError, SegmentReader, Sequence, Stored, StreamId,
    id::CommandId, log::Events,
};
use futures::{StreamExt, stream};
use tokio::sync::watch;

/// Everything up to a position that was checked before.
pub(super) struct FolderLog {
    folder: PathBuf,
    head: watch::Sender<Position>,
}

impl FolderLog {
    pub(super) fn new(folder: PathBuf, head: Position) -> Self {
        Self { folder, head: watch::Sender::new(head) }
    }

    fn events(&self, from: Position) -> Events {
        let head = *self.head.borrow();
        let opened = SegmentReader::open_at(&self.folder, from).map_err(|error| damaged(&error));
        let batches = stream::unfold(opened.map(Some), |reader| async {
            match reader {
                Err(error) => Some((vec![Err(error)], Ok(None))),
                Ok(None) => None,
                Ok(Some(mut reader)) => match reader.next_batch() {
                    Ok(Some(batch)) => Some((batch.into_iter().map(Ok).collect(), Ok(Some(reader)))),
                    Ok(None) => None,
                    Err(error) => Some((vec![Err(error)], Ok(None))),
                },
            }
        });
        let events = batches.flat_map(stream::iter);
        let is_wanted = move |event: &Result<eventlog::RecordedEvent, ReadError>| {
            let wanted = event.as_ref().map_or(true, |event| event.position <= head);
            futures::future::ready(wanted)
        };
        events.take_while(is_wanted).boxed()
    }
}

fn damaged(error: &eventlog::OpenError) -> ReadError {
    ReadError::Damaged { position: Position::ZERO, last: None, what: error.to_string().into() }
}

#[async_trait]
impl EventLog for FolderLog {
    async fn append(&self, _: Append) -> Result<Appended, AppendError> {
        Err(AppendError::Unavailable("this log is only read".into()))
    }

    fn read_stream(&self, stream: &StreamId, from: Sequence) -> Events {
        let stream = stream.clone();
        let is_of = move |event: &Result<eventlog::RecordedEvent, ReadError>| {
            let of = event.as_ref().map_or(true, |event| event.stream == stream && event.sequence >= from);
            futures::future::ready(of)
        };
        self.events(Position(1)).filter(is_of).boxed()
    }

    fn read_all(&self, from: Position) -> Events {
        self.events(from)
    }

    /// Nothing is ever added, so it ends where the log ends.
    fn follow(&self, from: Position) -> Events {
        self.events(from)
    }

    fn follow_stream(&self, stream: &StreamId, from: Sequence) -> Events {
        self.read_stream(stream, from)
    }

    async fn find_append(&self, id: CommandId) -> Result<Option<Stored>, ReadError> {
        let mut events = self.events(Position(1));
        let mut found: Option<Stored> = None;
        while let Some(event) = events.next().await {
            let event = event?;
            if event.command == id {
                let first = found.map_or(event.position, |found| found.first);
                found = Some(Stored { first, last: event.position });
            } else if found.is_some() {
                break;
            }
        }
        Ok(found)
    }

    async fn stream_head(&self, stream: &StreamId) -> Result<Sequence, ReadError> {
        let mut events = self.read_stream(stream, Sequence(1));
        let mut head = Sequence::ZERO;
        while let Some(event) = events.next().await {
            head = event?.sequence;
        }
        Ok(head)
    }

    fn durable_head(&self) -> watch::Receiver<Position> {
        self.head.subscribe()
    }

    fn check_writable(&self) -> Result<(), AppendError> {
        Err(AppendError::Unavailable("this log is only read".into()))
    }

    async fn close(&self) {}
}
