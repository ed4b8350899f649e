//! One segment, walked by itself: everything in it that does not need the segments before.

use std::{collections::HashMap, sync::Arc};

use crate::{
    chain::{global_hash, stream_hash},
    codec::Envelope,
    log::Hash,
    merkle::Range,
    number::{Position, Sequence},
    segment::{
        OpenError, OpenSegmentFile,
        frame::{Commit, Footer, Frame, FrameKind, FrameReader, HEADER_BYTES, Header, Next},
        recover::io_error,
        scan::is_torn,
    },
    stream::StreamId,
};

use super::{Fault, FaultKind, Part, Passing, Shared, TornTail};

/// Bytes are hashed and counted in pieces of this size.
const PIECE_BYTES: usize = 256 * 1024;

/// A stream's events in one segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) first: Sequence,
    pub(crate) first_position: Position,
    /// Of its first frame.
    pub(crate) first_offset: u64,
    pub(crate) last: Sequence,
    pub(crate) last_hash: Hash,
}

/// What was passed at a position that is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) position: Position,
    pub(crate) offset: u64,
    pub(crate) global: Hash,
    /// The tree from the segment's first event up to there.
    pub(crate) range: Range,
}

/// What a walk found.
pub(crate) struct Walked {
    /// `None`: not a header that this program knows.
    pub(crate) header: Option<Header>,
    /// Up to the last whole batch.
    pub(crate) last: Position,
    pub(crate) global: Hash,
    pub(crate) range: Range,
    pub(crate) good_end: u64,
    pub(crate) streams: HashMap<Box<[u8]>, Run>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) sealed: bool,
    pub(crate) fault: Option<Fault>,
    pub(crate) torn_tail: Option<TornTail>,
}

struct Walk<'a> {
    part: &'a Part,
    shared: &'a Shared<'a>,
    /// Up to the last event, committed or not.
    last: Position,
    global: Hash,
    range: Range,
    next_mark: usize,
    /// BLAKE3 over what came before `piece`; only of a segment that has a footer.
    content: Option<blake3::Hasher>,
    piece: Vec<u8>,
    found: Walked,
}

/// Walks a segment. What is wrong with it stands in what was found, and ends the walk.
pub(crate) fn walk(part: &Part, shared: &Shared<'_>) -> Result<Walked, OpenError> {
    let error = io_error(&part.path);
    let OpenSegmentFile { file, .. } = OpenSegmentFile::open(&part.path)?;
    let header =
        if part.length < HEADER_BYTES as u64 { None } else { Header::read(&file).map_err(&error)? };
    let Some(header) = header else {
        shared.passed(part.length).map_err(&error)?;
        return Ok(without_header(part, part.length <= HEADER_BYTES as u64));
    };
    let has_footer = !part.is_last || Footer::at_end(&file, part.length).map_err(&error)?.is_some();
    let mut walk = Walk::new(part, shared, header, has_footer);
    let mut reader = FrameReader::new(Arc::clone(&file), HEADER_BYTES as u64, part.length);
    loop {
        let offset = reader.offset();
        let broken = match reader.next().map_err(&error)? {
            Next::Frame(frame) => {
                let passed = walk.frame(&frame);
                walk.count(&frame).map_err(&error)?;
                match passed {
                    Ok(false) => continue,
                    Ok(true) => return Ok(walk.seal(reader.offset())),
                    Err(fault) => return Ok(walk.end(Some(fault))),
                }
            }
            Next::End if walk.last == walk.found.last => return Ok(walk.end_open()),
            Next::End => "a batch has no commit",
            Next::Broken(what) => what,
        };
        // A crash breaks the last batch of the last segment only.
        let next = walk.found.last.next();
        if crate::mutant::is("verify_calls_damage_a_crash")
            || part.is_last && is_torn(&file, part.length, next, offset).map_err(&error)?
        {
            walk.found.torn_tail = Some(TornTail { file: part.path.clone(), offset: walk.found.good_end });
            return Ok(walk.end(None));
        }
        let stream = reader.claimed_stream(walk.last.next()).map_err(&error)?;
        let fault = walk.fault(FaultKind::Frame, offset, stream, broken);
        return Ok(walk.end(Some(fault)));
    }
}

/// A crash while the last file was made leaves less than a header, or one that never reached the disk.
fn without_header(part: &Part, may_be_torn: bool) -> Walked {
    let last = Position(part.first.0.saturating_sub(1));
    let torn = part.is_last && may_be_torn;
    Walked {
        header: None,
        last,
        global: Hash::default(),
        range: Range::new(last.0),
        good_end: 0,
        streams: HashMap::new(),
        marks: Vec::new(),
        sealed: false,
        fault: (!torn).then(|| Fault {
            kind: FaultKind::Header,
            file: part.path.clone(),
            offset: 0,
            position: part.first,
            stream: None,
            what: "the file header is not one of ours".to_owned(),
        }),
        torn_tail: torn.then(|| TornTail { file: part.path.clone(), offset: 0 }),
    }
}

impl<'a> Walk<'a> {
    fn new(part: &'a Part, shared: &'a Shared<'a>, header: Header, has_footer: bool) -> Self {
        let last = Position(part.first.0.saturating_sub(1));
        let range = Range::new(last.0);
        let found = Walked {
            header: Some(header),
            last,
            global: header.global,
            range: range.clone(),
            good_end: HEADER_BYTES as u64,
            streams: HashMap::new(),
            marks: Vec::new(),
            sealed: false,
            fault: None,
            torn_tail: None,
        };
        let next_mark = shared.marks.partition_point(|mark| *mark < part.first);
        let mut piece = Vec::with_capacity(PIECE_BYTES + 4096);
        piece.extend_from_slice(&header.to_bytes());
        let content = has_footer.then(blake3::Hasher::new);
        Self { part, shared, last, global: header.global, range, next_mark, content, piece, found }
    }

    fn fault(&self, kind: FaultKind, offset: u64, stream: Option<StreamId>, what: &str) -> Fault {
        let position = self.last.next();
        Fault { kind, file: self.part.path.clone(), offset, position, stream, what: what.to_owned() }
    }

    /// Whether it was the footer.
    fn frame(&mut self, frame: &Frame<'_>) -> Result<bool, Fault> {
        match frame.kind {
            FrameKind::Event => self.event(frame).map(|()| false),
            FrameKind::Commit => self.commit(frame).map(|()| false),
            FrameKind::Footer => self.footer(frame).map(|()| true),
        }
    }

    /// Puts a frame's bytes to those that are hashed and counted together.
    fn count(&mut self, frame: &Frame<'_>) -> std::io::Result<()> {
        self.piece.extend_from_slice(frame.raw);
        if self.piece.len() >= PIECE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if let Some(content) = &mut self.content {
            content.update(&self.piece);
        }
        let bytes = self.piece.len() as u64;
        self.piece.clear();
        self.shared.passed(bytes)
    }

    fn event(&mut self, frame: &Frame<'_>) -> Result<(), Fault> {
        let at = frame.offset;
        let Some((bytes, hash)) = frame.event() else {
            return Err(self.fault(FaultKind::Envelope, at, None, "an event has no hash"));
        };
        let Ok(envelope) = Envelope::read(bytes) else {
            let what = "an envelope is not of a format that this program knows";
            return Err(self.fault(FaultKind::Envelope, at, None, what));
        };
        let stream = || StreamId::from_bytes(envelope.stream).ok();
        if envelope.position != self.last.next() && !crate::mutant::is("verify_skips_positions") {
            let what = format!("positions have a gap or a repeat: {} lies here", envelope.position);
            return Err(self.fault(FaultKind::PositionGap, at, stream(), &what));
        }
        let previous = match self.found.streams.get_mut(envelope.stream) {
            Some(run)
                if envelope.sequence == run.last.next() || crate::mutant::is("verify_skips_sequences") =>
            {
                let previous = std::mem::replace(&mut run.last_hash, hash);
                run.last = envelope.sequence;
                Some(previous)
            }
            Some(run) => {
                let what = format!(
                    "sequences of a stream have a gap or a repeat: {} follows {}",
                    envelope.sequence, run.last
                );
                return Err(self.fault(FaultKind::SequenceGap, at, stream(), &what));
            }
            None => self.first_of_stream(&envelope, hash, at)?,
        };
        // Without the segments before, the first event of a stream that goes on is for the join.
        let chained = previous.is_none_or(|previous| stream_hash(previous, bytes) == hash);
        if !chained && !crate::mutant::is("verify_skips_the_stream_chain") {
            return Err(self.fault(FaultKind::StreamChain, at, stream(), "the chain of a stream is broken"));
        }
        self.last = envelope.position;
        self.global = global_hash(self.global, hash);
        if self.shared.with_tree {
            self.range.push(hash);
        }
        if let Some(inspect) = self.shared.options.inspect {
            let Envelope { position, stream, kind, schema, payload, .. } = envelope;
            inspect(&Passing { position, stream, kind, schema, payload, file: &self.part.path, offset: at });
        }
        self.mark(at);
        Ok(())
    }

    /// Takes note of a stream that is new here; answers the hash before it where that needs no other segment.
    fn first_of_stream(
        &mut self,
        envelope: &Envelope<'_>,
        hash: Hash,
        at: u64,
    ) -> Result<Option<Hash>, Fault> {
        if StreamId::from_bytes(envelope.stream).is_err() {
            let what = "an event belongs to no stream that this program knows";
            return Err(self.fault(FaultKind::Envelope, at, None, what));
        }
        let run = Run {
            first: envelope.sequence,
            first_position: envelope.position,
            first_offset: at,
            last: envelope.sequence,
            last_hash: hash,
        };
        self.found.streams.insert(envelope.stream.into(), run);
        Ok((envelope.sequence == Sequence(1)).then(Hash::default))
    }

    fn mark(&mut self, offset: u64) {
        if self.shared.marks.get(self.next_mark) == Some(&self.last) {
            self.next_mark += 1;
            let range = self.range.clone();
            self.found.marks.push(Mark { position: self.last, offset, global: self.global, range });
        }
    }

    fn commit(&mut self, frame: &Frame<'_>) -> Result<(), Fault> {
        let wanted = Commit { first: self.found.last.next(), last: self.last, global: self.global };
        let read = Commit::read(frame.body());
        if read != Some(wanted) && !crate::mutant::is("verify_skips_commits") {
            let what = match read {
                Some(read) if (read.first, read.last) == (wanted.first, wanted.last) => {
                    "a commit does not fit the events before it: the hash of the whole log is another one"
                }
                Some(_) | None => "a commit does not fit the events before it: their number is another one",
            };
            return Err(self.fault(FaultKind::Commit, frame.offset, None, what));
        }
        (self.found.last, self.found.global, self.found.good_end) = (self.last, self.global, frame.end());
        if self.shared.with_tree {
            self.found.range.clone_from(&self.range);
        }
        Ok(())
    }

    fn footer(&mut self, frame: &Frame<'_>) -> Result<(), Fault> {
        let content = self.content.take().map(|mut content| {
            content.update(&self.piece);
            Hash(*content.finalize().as_bytes())
        });
        let wanted = Footer {
            first: self.part.first,
            last: self.last,
            bytes: frame.offset,
            global: self.global,
            content: content.unwrap_or_default(),
        };
        let fits = self.last == self.found.last && Footer::read(frame.body()) == Some(wanted);
        if !fits && !crate::mutant::is("verify_skips_footers") {
            let what = "a footer does not fit its segment";
            return Err(self.fault(FaultKind::Footer, frame.offset, None, what));
        }
        Ok(())
    }

    fn seal(mut self, end: u64) -> Walked {
        if end != self.part.length {
            let fault = self.fault(FaultKind::Footer, end, None, "something follows the footer");
            return self.end(Some(fault));
        }
        self.found.sealed = true;
        self.end(None)
    }

    fn end_open(self) -> Walked {
        if self.part.is_last {
            return self.end(None);
        }
        let what = "a sealed segment has no footer";
        let fault = self.fault(FaultKind::Unsealed, self.part.length, None, what);
        self.end(Some(fault))
    }

    fn end(mut self, fault: Option<Fault>) -> Walked {
        // Nobody asks any more how far it is.
        let _ = self.flush();
        self.found.fault = fault;
        self.found
    }
}
