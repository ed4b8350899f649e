//! Puts the walks together, in order: file names, headers, streams that go on from one segment to the next, and what is
//! known of the log elsewhere.

use std::{collections::HashMap, path::Path, sync::Arc};

use crate::{
    chain::stream_hash,
    log::Hash,
    merkle::Range,
    number::{Position, Sequence},
    segment::{
        OpenError, OpenSegmentFile,
        frame::{FrameReader, Header, Next},
        recover::io_error,
    },
    stream::StreamId,
};

use super::{
    DurableEnd, FAULTS_MAX, Fault, FaultKind, Known, Part, Report, Shared,
    walk::{Mark, Run, Walked},
};

/// The end of a stream so far.
#[derive(Clone, Copy)]
struct Head {
    sequence: Sequence,
    hash: Hash,
}

struct Join<'a> {
    shared: &'a Shared<'a>,
    heads: HashMap<Box<[u8]>, Head>,
    report: Report,
    range: Range,
}

/// What is to be told where not even the names of the files make sense.
pub(super) fn nothing_but(fault: Fault) -> Report {
    Report { faults: vec![fault], ..empty() }
}

const fn empty() -> Report {
    Report {
        head: Position::ZERO,
        global: Hash([0; 32]),
        root: None,
        streams: 0,
        segments: 0,
        bytes: 0,
        end: None,
        torn_tail: None,
        faults: Vec::new(),
    }
}

/// Joins the walks of all parts.
pub(super) fn join(
    folder: &Path,
    parts: &[Part],
    walked: Vec<Walked>,
    shared: &Shared<'_>,
) -> Result<Report, OpenError> {
    let report =
        Report { segments: parts.len(), bytes: parts.iter().map(|part| part.length).sum(), ..empty() };
    let mut join = Join { shared, heads: HashMap::new(), report, range: Range::new(0) };
    for (part, walked) in parts.iter().zip(walked) {
        if join.report.faults.is_empty() {
            join.add(part, walked)?;
        } else if let Some(fault) = walked.fault {
            // Behind the first bad place only what a segment says of itself can be told.
            join.report.faults.push(fault);
        }
        if join.report.faults.len() == FAULTS_MAX {
            break;
        }
    }
    if join.report.faults.is_empty() {
        join.hold_against_ends(folder, parts);
    }
    if shared.with_tree {
        join.report.root = join.range.root();
    }
    join.report.streams = join.heads.len();
    Ok(join.report)
}

impl Join<'_> {
    fn add(&mut self, part: &Part, mut walked: Walked) -> Result<(), OpenError> {
        let next = self.report.head.next();
        let wrong = |kind, what: &str| Fault {
            kind,
            file: part.path.clone(),
            offset: 0,
            position: next,
            stream: None,
            what: what.to_owned(),
        };
        if part.first != next && !crate::mutant::is("verify_skips_missing_segments") {
            self.report.faults.push(wrong(FaultKind::MissingSegment, "a segment is missing before this one"));
            return Ok(());
        }
        let wanted = Header { first: next, global: self.report.global };
        if walked.header.is_some_and(|header| header != wanted) {
            let what = "the file header does not go on where the segment before it ended";
            self.report.faults.push(wrong(FaultKind::Join, what));
            return Ok(());
        }
        let mut faults: Vec<Fault> = walked.fault.take().into_iter().collect();
        let is_broken = !faults.is_empty();
        faults.extend(self.first_break(part, &walked, is_broken)?);
        walked.marks.retain(|mark| mark.position <= walked.last);
        faults.extend(self.hold_against_marks(part, &walked.marks));
        let first = faults.into_iter().min_by_key(|fault| fault.offset);
        let cut_at = first.as_ref().map(|fault| fault.position).filter(|position| *position <= walked.last);
        self.report.faults.extend(first);
        self.report.torn_tail = walked.torn_tail.take();
        if walked.header.is_some() {
            let sealed = walked.sealed && self.report.faults.is_empty();
            let offset = if sealed { part.length } else { walked.good_end };
            self.report.end = Some(DurableEnd { segment: part.first, offset });
            self.take(walked);
        }
        if let Some(position) = cut_at {
            // Nothing is known of the hashes at the event before it, which is the last good one.
            (self.report.head, self.report.global) = (Position(position.0 - 1), Hash::default());
            self.range = Range::new(1);
        }
        Ok(())
    }

    fn take(&mut self, walked: Walked) {
        (self.report.head, self.report.global) = (walked.last, walked.global);
        if self.shared.with_tree {
            self.range.extend(&walked.range);
        }
        // What lies in a torn batch is not there.
        let whole = walked.streams.into_iter().filter(|(_, run)| run.first_position <= walked.last);
        let head = |run: Run| Head { sequence: run.last, hash: run.last_hash };
        self.heads.extend(whole.map(|(stream, run)| (stream, head(run))));
    }

    /// The first stream of this segment that does not go on where it ended before.
    fn first_break(&self, part: &Part, walked: &Walked, is_broken: bool) -> Result<Option<Fault>, OpenError> {
        let mut runs: Vec<(&[u8], &Run)> =
            walked.streams.iter().map(|(stream, run)| (&**stream, run)).collect();
        // A torn batch is not there. But what breaks a batch may be its event that only the segments before show to be bad.
        let counts = |run: &Run| is_broken || run.first_position <= walked.last;
        runs.retain(|(_, run)| counts(run));
        runs.sort_unstable_by_key(|(_, run)| run.first_offset);
        let mut reader = None;
        for (stream, run) in runs {
            let head = self.heads.get(stream);
            let wrong = |kind, what: &str| {
                Some(Fault {
                    kind,
                    file: part.path.clone(),
                    offset: run.first_offset,
                    position: run.first_position,
                    stream: StreamId::from_bytes(stream).ok(),
                    what: what.to_owned(),
                })
            };
            let ended_at = head.map_or(Sequence::ZERO, |head| head.sequence);
            if run.first != ended_at.next() {
                let what =
                    format!("sequences of a stream have a gap or a repeat: {} follows {ended_at}", run.first);
                return Ok(wrong(FaultKind::SequenceGap, &what));
            }
            let Some(head) = head else { continue };
            if !goes_on(part, &mut reader, run, head.hash)? {
                return Ok(wrong(FaultKind::StreamChain, "the chain of a stream is broken"));
            }
        }
        Ok(None)
    }

    fn hold_against_marks(&self, part: &Part, marks: &[Mark]) -> Option<Fault> {
        for mark in marks {
            let mut tree = self.range.clone();
            if self.shared.with_tree {
                tree.extend(&mark.range);
            }
            let of_here = self.shared.options.known.iter().filter(|known| known.position == mark.position);
            for known in of_here {
                let other_global = known.global.is_some_and(|global| global != mark.global);
                let other_root = known.root.is_some_and(|root| tree.root() != Some(root));
                if other_global || other_root {
                    return Some(Fault {
                        kind: FaultKind::Rewritten,
                        file: part.path.clone(),
                        offset: mark.offset,
                        position: mark.position,
                        stream: None,
                        what: format!(
                            "up to here the log holds other events than those that {} speaks of",
                            known.source
                        ),
                    });
                }
            }
        }
        None
    }

    /// Whether the log reaches as far as it is known to have reached. A torn tail that somebody has seen is none.
    fn hold_against_ends(&mut self, folder: &Path, parts: &[Part]) {
        let head = self.report.head;
        let beyond = self.shared.options.known.iter().filter(|known| known.position > head);
        let Some(Known { position, source, .. }) = beyond.min_by_key(|known| known.position) else { return };
        let (file, offset) = match (&self.report.torn_tail, parts.last()) {
            (Some(torn), _) => (torn.file.clone(), torn.offset),
            (None, Some(last)) => (last.path.clone(), last.length),
            (None, None) => (folder.to_owned(), 0),
        };
        let what = format!("the log ends at position {head}, and {source} knows it to reach {position}");
        let (kind, position) = (FaultKind::CutTail, head.next());
        self.report.faults.push(Fault { kind, file, offset, position, stream: None, what });
        self.report.torn_tail = None;
    }
}

/// Whether the first event of a stream in this segment follows from this hash.
fn goes_on(
    part: &Part,
    reader: &mut Option<FrameReader>,
    run: &Run,
    previous: Hash,
) -> Result<bool, OpenError> {
    let error = io_error(&part.path);
    if reader.is_none() {
        let OpenSegmentFile { file, .. } = OpenSegmentFile::open(&part.path)?;
        *reader =
            Some(FrameReader::new(Arc::clone(&file), run.first_offset, part.length).with_read_bytes(4096));
    }
    let reader = reader.as_mut().expect("it was just made");
    reader.seek(run.first_offset);
    match reader.next().map_err(&error)? {
        Next::Frame(frame) => {
            Ok(frame.event().is_some_and(|(bytes, hash)| stream_hash(previous, bytes) == hash))
        }
        Next::End | Next::Broken(_) => Ok(false),
    }
}
