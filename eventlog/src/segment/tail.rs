//! Reads a folder without its lock, also beside the server that writes to it: for `replay` and for export.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    codec::{Decoder, Envelope},
    log::{Hash, ReadError, RecordedEvent},
    number::Position,
};

use super::{
    OpenError,
    frame::{Commit, FrameKind, FrameReader, HEADER_BYTES, Header, Next},
    recover::{list, segment_files},
    shared::{io_error, segment_path},
};

/// Walks the whole log, batch by batch; at its end it may be asked again for more.
///
/// It tells whole batches only. A batch is whole a moment before it is durable, so a power cut may take back the last
/// one told; whoever needs certainty asks the server.
pub struct SegmentReader {
    folder: PathBuf,
    file: Arc<File>,
    /// Where the next batch begins.
    offset: u64,
    next: Position,
    /// Nothing before it is told.
    from: Position,
    decoder: Decoder,
}

impl SegmentReader {
    /// Opens a folder for reading from the first event on.
    ///
    /// # Errors
    /// [`OpenError`]: there is no log, or its segments do not join.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        Self::open_at(folder, Position(1))
    }

    /// Opens a folder for reading from this position on.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_at(folder: &Path, from: Position) -> Result<Self, OpenError> {
        list(folder)?;
        let files = segment_files(folder)?;
        let after = files.partition_point(|(first, _)| *first <= from);
        let missing = || io::Error::new(io::ErrorKind::NotFound, "there is no log here");
        let (first, path) = files
            .get(after.saturating_sub(1))
            .ok_or_else(|| OpenError::Io { path: folder.to_owned(), source: missing() })?;
        let file = File::open(path).map_err(super::recover::io_error(path))?;
        Ok(Self {
            folder: folder.to_owned(),
            file: Arc::new(file),
            offset: HEADER_BYTES as u64,
            next: *first,
            from,
            decoder: Decoder::default(),
        })
    }

    /// The next position to be read.
    #[must_use]
    pub fn next_position(&self) -> Position {
        self.next.max(self.from)
    }

    /// The position after the last one that was read, told or not.
    #[must_use]
    pub const fn read_to(&self) -> Position {
        self.next
    }

    /// The events of the next batch; `None` if there is no whole one yet. Blocks on the disk.
    ///
    /// # Errors
    /// [`ReadError`]: nothing after this place can be read.
    pub fn next_batch(&mut self) -> Result<Option<Vec<RecordedEvent>>, ReadError> {
        loop {
            match self.step()? {
                Step::Batch(events) if events.is_empty() => {}
                Step::Batch(events) => return Ok(Some(events)),
                Step::Moved => {}
                Step::Wait => return Ok(None),
            }
        }
    }

    fn step(&mut self) -> Result<Step, ReadError> {
        let length = self.file.metadata().map_err(io_error)?.len();
        let mut reader = FrameReader::new(Arc::clone(&self.file), self.offset, length);
        let mut events = Vec::new();
        let mut next = self.next;
        loop {
            let at = reader.offset();
            match reader.next().map_err(io_error)? {
                Next::Frame(frame) => match frame.kind {
                    FrameKind::Event => {
                        let event = frame.event().ok_or_else(|| damaged(next, "an event has no hash"))?;
                        if let Some(event) = self.event(event, next)? {
                            events.push(event);
                        }
                        next = next.next();
                    }
                    FrameKind::Commit => {
                        let fits = Commit::read(frame.body())
                            .is_some_and(|commit| (commit.first, commit.last.next()) == (self.next, next));
                        if !fits {
                            return Err(damaged(next, "a commit does not fit the events before it"));
                        }
                        (self.offset, self.next) = (frame.end(), next);
                        return Ok(Step::Batch(events));
                    }
                    FrameKind::Footer => return self.next_segment(),
                },
                Next::End => return Ok(Step::Wait),
                Next::Broken(what) => return self.broken(at, what),
            }
        }
    }

    fn event(
        &mut self,
        (bytes, hash): (&[u8], Hash),
        next: Position,
    ) -> Result<Option<RecordedEvent>, ReadError> {
        let envelope = Envelope::read(bytes).map_err(|error| damaged(next, &error.to_string()))?;
        if envelope.position != next {
            return Err(damaged(next, "positions have a gap or a repeat"));
        }
        if next < self.from {
            return Ok(None);
        }
        self.decoder.decode(&envelope, hash).map(Some).map_err(|error| damaged(next, &error.to_string()))
    }

    /// After a footer the next file holds the next batch; it may take the writer a moment to make it.
    fn next_segment(&mut self) -> Result<Step, ReadError> {
        let path = segment_path(&self.folder, self.next);
        match File::open(path) {
            Ok(file) if Header::read(&file).map_err(io_error)?.is_some() => {
                (self.file, self.offset) = (Arc::new(file), HEADER_BYTES as u64);
                Ok(Step::Moved)
            }
            Ok(_) => Ok(Step::Wait),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Step::Wait),
            Err(error) => Err(io_error(error)),
        }
    }

    /// Bytes that are no frame: a batch on its way, if nothing was sealed behind it; else damage.
    fn broken(&self, at: u64, what: &str) -> Result<Step, ReadError> {
        let files = segment_files(&self.folder).map_err(|error| io_error(io::Error::other(error)))?;
        if files.last().is_some_and(|(last, _)| *last > self.next) {
            return Err(damaged(self.next, what));
        }
        let length = self.file.metadata().map_err(io_error)?.len();
        let torn = super::scan::is_torn(&self.file, length, self.next, at).map_err(io_error)?;
        if torn { Ok(Step::Wait) } else { Err(damaged(self.next, what)) }
    }
}

enum Step {
    /// A batch was read; what of it is wanted.
    Batch(Vec<RecordedEvent>),
    /// The next file is open.
    Moved,
    /// There is nothing whole yet.
    Wait,
}

fn damaged(position: Position, what: &str) -> ReadError {
    ReadError::Damaged { position, last: None, what: what.into() }
}
