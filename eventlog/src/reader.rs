//! Reading: a stream, the whole log, then live. One loop for all of it: wait for the durable head, read up to it,
//! repeat. So there is no seam between history and live at which an event could be lost or told twice, and a slow
//! reader costs nothing but its own time.
//!
//! Files are read on blocking threads, a chunk at a time; memory is bounded by the chunk.

use std::sync::Arc;

use futures::{StreamExt, stream};
use tokio::sync::watch;

use crate::{
    codec::{Decoder, Envelope},
    id::CommandId,
    log::{Events, ReadError, RecordedEvent, Stored},
    number::{Position, Sequence},
    prepare::Meaning,
    segment::{
        frame::{Frame, FrameKind, FrameReader, Next},
        shared::{Shared, Status, io_error},
    },
    stream::StreamId,
};

/// A chunk ends with so many events or bytes.
const CHUNK_EVENTS_MAX: usize = 1024;
const CHUNK_BYTES_MAX: u64 = 512 * 1024;
/// Frames of one stream lie apart; so much is read for each.
const SCATTERED_READ_BYTES: usize = 4 * 1024;

type Chunk = Result<Vec<RecordedEvent>, ReadError>;

/// From so many followed streams on, those that nobody follows any more are swept out now and then.
const FOLLOWED_SWEEP: usize = 64;

/// Reads a source chunk by chunk, and what it learns of where it is.
trait Source: Send + 'static {
    /// The next events up to `head`; empty only if there are none. Blocks.
    fn chunk(&mut self, shared: &Shared, head: u64) -> Chunk;
    /// What is wanted next, in the numbers of `head`.
    fn next(&self) -> u64;
}

/// How far a loop goes.
enum Until {
    /// What was durable when it began.
    Head(u64),
    /// For ever.
    Positions(watch::Receiver<Position>),
    Sequences(watch::Receiver<Sequence>),
}

impl Until {
    /// The head to read to, once there is something at `next`; `None` at the end.
    async fn head(&mut self, next: u64) -> Option<u64> {
        match self {
            Self::Head(head) => (*head >= next).then_some(*head),
            Self::Positions(head) => head.wait_for(|head| head.0 >= next).await.ok().map(|head| head.0),
            Self::Sequences(head) => head.wait_for(|head| head.0 >= next).await.ok().map(|head| head.0),
        }
    }
}

/// The loop.
fn events(shared: Arc<Shared>, source: impl Source, until: Until) -> Events {
    stream::unfold(Some((source, until)), move |state| {
        let shared = Arc::clone(&shared);
        async move {
            let (mut source, mut until) = state?;
            let head = until.head(source.next()).await?;
            let begun_at = source.next();
            let reading = tokio::task::spawn_blocking(move || {
                let chunk = source.chunk(&shared, head);
                (chunk, source)
            });
            // The task is only cancelled when the runtime ends, and then nobody is left to read.
            let (chunk, source) = reading.await.ok()?;
            match chunk {
                Ok(events) => {
                    let events: Vec<_> = events.into_iter().map(Ok).collect();
                    Some((stream::iter(events), Some((source, until))))
                }
                Err(error) => {
                    // A source that has found its way behind the damage goes on there.
                    let goes_on = (source.next() > begun_at).then_some((source, until));
                    Some((stream::iter(vec![Err(error)]), goes_on))
                }
            }
        }
    })
    .flatten()
    .boxed()
}

/// The whole log from `from` on.
pub(crate) fn read_all(shared: Arc<Shared>, from: Position, live: bool) -> Events {
    let head = shared.head.clone();
    let until = if live { Until::Positions(head) } else { Until::Head(head.borrow().0) };
    events(
        shared,
        WholeLog { next: Position(from.0.max(1)), place: None, decoder: Decoder::default() },
        until,
    )
}

/// One stream from `from` on.
pub(crate) fn read_stream(shared: Arc<Shared>, stream: &StreamId, from: Sequence, live: bool) -> Events {
    let until = if live {
        Until::Sequences(shared.follow_stream(stream))
    } else {
        Until::Head(shared.stream_head(stream).sequence.0)
    };
    let (stream, next) = (stream.clone(), Sequence(from.0.max(1)));
    events(shared, OneStream { stream, next, decoder: Decoder::default() }, until)
}

struct WholeLog {
    next: Position,
    /// The segment and the offset at which `next` begins, where that is known.
    place: Option<(Position, u64)>,
    decoder: Decoder,
}

impl Source for WholeLog {
    fn chunk(&mut self, shared: &Shared, head: u64) -> Chunk {
        let segment = shared.open_segment_of(self.next)?;
        // What the frame at the offset holds, or is to hold.
        let (mut at, offset) = match self.place {
            Some((first, offset)) if first == segment.first => (self.next, offset),
            _ => shared.near(segment.first, self.next)?,
        };
        let mut reader = FrameReader::new(Arc::clone(&segment.file), offset, segment.end);
        let mut events = Vec::new();
        while self.next.0 <= head
            && events.len() < CHUNK_EVENTS_MAX
            && reader.offset() - offset < CHUNK_BYTES_MAX
        {
            let next = self.next;
            match reader.next().map_err(io_error)? {
                Next::Frame(frame) if frame.kind == FrameKind::Event => {
                    let (envelope, hash) = parse(&frame, next)?;
                    if envelope.position > next {
                        return Err(damaged(next, "a position is missing"));
                    }
                    at = envelope.position.next();
                    if envelope.position == next {
                        events.push(
                            self.decoder
                                .decode(&envelope, hash)
                                .map_err(|error| damaged(next, &error.to_string()))?,
                        );
                        self.next = next.next();
                    }
                }
                Next::Frame(_) => {}
                Next::End if events.is_empty() => return Err(damaged(next, "its segment ends before it")),
                Next::End => break,
                // What was read before it is told first.
                Next::Broken(_) if !events.is_empty() => break,
                Next::Broken(what) => {
                    let damage = shared.note_damage(&segment, reader.offset(), at, what)?;
                    reader.seek(damage.to);
                    at = damage.next;
                    if damage.next > next {
                        (self.next, self.place) = (damage.next, Some((segment.first, damage.to)));
                        let last = Some(Position(damage.next.0 - 1));
                        return Err(ReadError::Damaged { position: next, last, what: what.into() });
                    }
                }
            }
        }
        self.place = Some((segment.first, reader.offset()));
        Ok(events)
    }

    fn next(&self) -> u64 {
        self.next.0
    }
}

struct OneStream {
    stream: StreamId,
    next: Sequence,
    decoder: Decoder,
}

impl Source for OneStream {
    fn chunk(&mut self, shared: &Shared, head: u64) -> Chunk {
        let wanted = usize::try_from(head - self.next.0 + 1).unwrap_or(usize::MAX).min(CHUNK_EVENTS_MAX);
        let places = shared.stream_places(&self.stream, self.next, wanted)?;
        let mut events = Vec::with_capacity(places.len());
        let mut bytes = 0;
        let mut open: Option<(Position, FrameReader)> = None;
        for place in places {
            let mut reader = match open.take() {
                Some((first, reader)) if first == place.segment => reader,
                _ => {
                    let segment = shared.open_segment_of(place.segment)?;
                    FrameReader::new(segment.file, place.offset, segment.end)
                        .with_read_bytes(SCATTERED_READ_BYTES)
                }
            };
            reader.seek(place.offset);
            events.push(self.event(shared, place.segment, &mut reader)?);
            bytes += reader.offset() - place.offset;
            self.next = self.next.next();
            if bytes >= CHUNK_BYTES_MAX {
                break;
            }
            open = Some((place.segment, reader));
        }
        if events.is_empty() {
            let what = format!("sequence {} of {} cannot be found", self.next, self.stream);
            return Err(damaged(Position::ZERO, &what));
        }
        Ok(events)
    }

    fn next(&self) -> u64 {
        self.next.0
    }
}

impl OneStream {
    fn event(
        &mut self,
        shared: &Shared,
        segment: Position,
        reader: &mut FrameReader,
    ) -> Result<RecordedEvent, ReadError> {
        let offset = reader.offset();
        let unplaced =
            |what: &str| damaged(Position::ZERO, &format!("{} {}: {what}", self.stream, self.next));
        match reader.next().map_err(io_error)? {
            Next::Frame(frame) if frame.kind == FrameKind::Event => {
                let (envelope, hash) = parse(&frame, Position::ZERO)?;
                let position = envelope.position;
                let event = self.decoder.decode(&envelope, hash);
                let event = event.map_err(|error| damaged(position, &error.to_string()))?;
                if event.stream != self.stream || event.sequence != self.next {
                    return Err(unplaced("another event lies in its place"));
                }
                Ok(event)
            }
            Next::Frame(_) | Next::End => Err(unplaced("no event lies in its place")),
            Next::Broken(what) => {
                shared.note_damaged_stream(&self.stream, segment, offset, what);
                Err(unplaced(what))
            }
        }
    }
}

fn parse<'a>(frame: &Frame<'a>, at: Position) -> Result<(Envelope<'a>, crate::Hash), ReadError> {
    let (bytes, hash) = frame.event().ok_or_else(|| damaged(at, "an event has no hash"))?;
    let envelope = Envelope::read(bytes).map_err(|error| damaged(at, &error.to_string()))?;
    Ok((envelope, hash))
}

fn damaged(position: Position, what: &str) -> ReadError {
    ReadError::Damaged { position, last: None, what: what.into() }
}

impl Shared {
    /// Calls `see` for each envelope from `first` on, until it answers `false` or the segment ends. An append lies in
    /// one segment.
    fn each_envelope(
        &self,
        first: Position,
        mut see: impl FnMut(&Envelope<'_>) -> bool,
    ) -> Result<(), ReadError> {
        let segment = self.open_segment_of(first)?;
        let (mut at, offset) = self.near(segment.first, first)?;
        let file = Arc::clone(&segment.file);
        let mut reader = FrameReader::new(file, offset, segment.end).with_read_bytes(16 * 1024);
        loop {
            match reader.next().map_err(io_error)? {
                Next::Frame(frame) if frame.kind == FrameKind::Event => {
                    let (envelope, _) = parse(&frame, first)?;
                    at = envelope.position.next();
                    if envelope.position >= first && !see(&envelope) {
                        return Ok(());
                    }
                }
                Next::Frame(_) => {}
                Next::End => return Ok(()),
                Next::Broken(what) => {
                    let damage = self.note_damage(&segment, reader.offset(), at, what)?;
                    if damage.next > first {
                        return Err(damaged(first, what));
                    }
                    reader.seek(damage.to);
                    at = damage.next;
                }
            }
        }
    }

    /// The append that begins at `first`, if it has this id.
    pub(crate) fn run_at(&self, first: Position, id: CommandId) -> Result<Option<Stored>, ReadError> {
        let mut last = None;
        self.each_envelope(first, |envelope| {
            let same = envelope.command == id;
            if same {
                last = Some(envelope.position);
            }
            same
        })?;
        Ok(last.map(|last| Stored { first, last }))
    }

    /// What the append stored there says.
    pub(crate) fn meaning(&self, stored: Stored) -> Result<[u8; 32], ReadError> {
        let mut meaning = Meaning::default();
        self.each_envelope(stored.first, |envelope| {
            meaning.add(envelope.stream, envelope.kind, envelope.schema, envelope.payload);
            envelope.position < stored.last
        })?;
        Ok(meaning.finish())
    }

    /// The end of a stream, and a notice of each change.
    pub(crate) fn follow_stream(&self, stream: &StreamId) -> watch::Receiver<Sequence> {
        let mut followed = self.followed.lock();
        if matches!(*self.status.read(), Status::Closed) {
            return watch::Sender::new(self.stream_head(stream).sequence).subscribe();
        }
        if followed.len() >= FOLLOWED_SWEEP && followed.len().is_power_of_two() {
            followed.retain(|_, head| head.receiver_count() > 0);
        }
        let sender = followed.entry(stream.clone()).or_insert_with(|| watch::Sender::new(Sequence::ZERO));
        let receiver = sender.subscribe();
        // Read after it can be told of changes, so that none falls between.
        let head = self.stream_head(stream).sequence;
        sender.send_if_modified(|known| *known < head && std::mem::replace(known, head) != head);
        receiver
    }
}
