//! C15 on copies of a log: what somebody, or a disk, may do to it, at every byte and to every record; `verify` names the
//! first bad place and what can have led to it. What a plain chain can not see is shown to need a checkpoint.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod support;

use std::{
    collections::HashMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use eventlog::{
    EventLog, Position, SegmentLog,
    checkpoint::Signer,
    fixture::{append, command, recovered, space},
    segment::verify as open_check,
    tree::LogTree,
    verify::{Cause, FaultKind, Known, Options, Report, check},
};
use support::{copy_folder, fill, open, segments, tiny};
use tempfile::TempDir;

/// A frame in a segment's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    offset: usize,
    length: usize,
    kind: u8,
}

fn frames(bytes: &[u8]) -> Vec<Frame> {
    let (mut found, mut at) = (Vec::new(), 64);
    while at < bytes.len() {
        let body = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        found.push(Frame { offset: at, length: 12 + body, kind: bytes[at + 1] });
        at += 12 + body;
    }
    found
}

fn mend(bytes: &mut [u8], frame: Frame) {
    let bytes = &mut bytes[frame.offset..frame.offset + frame.length];
    let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..8]), &bytes[12..]);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
}

/// Where the numbers of an event stand. They are so small in these logs that each is one byte.
struct Numbers {
    position: usize,
    stream: Range<usize>,
    sequence: usize,
}

fn numbers(bytes: &[u8], frame: Frame) -> Numbers {
    // An array of nine, of format 1: position, stream (as a short string of bytes), sequence, and so on.
    let at = frame.offset + 12;
    assert!(bytes[at..at + 2] == [0x99, 1] && bytes[at + 2] < 0x7f && bytes[at + 3] == 0xc4);
    let stream = at + 5..at + 5 + usize::from(bytes[at + 4]);
    assert!(bytes[stream.end] < 0x7f);
    Numbers { position: at + 2, sequence: stream.end, stream }
}

fn chained(chain: &str, previous: &[u8; 32], next: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(chain);
    hasher.update(previous).update(next);
    *hasher.finalize().as_bytes()
}

/// Makes every chain, commit and checksum of the segment that grows fit the numbers in it, as somebody can who knows
/// the format.
fn make_fit(before: &[Vec<u8>], bytes: &mut [u8]) {
    let mut heads: HashMap<Vec<u8>, [u8; 32]> = HashMap::new();
    for segment in before {
        for frame in frames(segment).into_iter().filter(|frame| frame.kind == b'e') {
            let end = frame.offset + frame.length;
            let stream = segment[numbers(segment, frame).stream].to_vec();
            heads.insert(stream, segment[end - 32..end].try_into().unwrap());
        }
    }
    let mut first = u64::from_le_bytes(bytes[12..20].try_into().unwrap());
    let mut global: [u8; 32] = bytes[20..52].try_into().unwrap();
    let mut last = 0;
    for frame in frames(bytes) {
        let (body, end) = (frame.offset + 12, frame.offset + frame.length);
        if frame.kind == b'e' {
            let at = numbers(bytes, frame);
            last = u64::from(bytes[at.position]);
            let head = heads.entry(bytes[at.stream].to_vec()).or_default();
            *head = chained("browserspace eventlog 1 stream chain", head, &bytes[body..end - 32]);
            global = chained("browserspace eventlog 1 global chain", &global, head);
            bytes[end - 32..end].copy_from_slice(head);
        } else {
            let count = u32::try_from(last + 1 - first).unwrap();
            bytes[body..body + 8].copy_from_slice(&first.to_le_bytes());
            bytes[body + 8..body + 16].copy_from_slice(&last.to_le_bytes());
            bytes[body + 16..body + 20].copy_from_slice(&count.to_le_bytes());
            bytes[body + 20..end].copy_from_slice(&global);
            first = last + 1;
        }
        mend(bytes, frame);
    }
}

/// A log of several sealed segments, and one that grows.
struct Original {
    folder: TempDir,
    head: u64,
}

impl Original {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = SegmentLog::open(tiny(folder.path())).unwrap();
        fill(&log, 0..60).await;
        // Batches of several events.
        for n in 60..70 {
            let events = vec![recovered(n), recovered(n), recovered(n)];
            log.append(append(command(n), space(n % 3), events)).await.unwrap();
        }
        log.close().await;
        let head = log.durable_head().borrow().0;
        Self { folder, head }
    }

    fn segments(&self) -> Vec<PathBuf> {
        segments(self.folder.path())
    }

    /// A copy in which one segment has other bytes.
    fn with(&self, segment: &Path, bytes: &[u8]) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        for path in self.segments() {
            fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
        fs::write(copy.path().join(segment.file_name().unwrap()), bytes).unwrap();
        copy
    }

    fn look(&self, segment: &Path, bytes: &[u8], known: &[Known]) -> Report {
        let copy = self.with(segment, bytes);
        let options = Options { known: known.to_vec(), threads: 2, ..Options::default() };
        let report = check(copy.path(), &options).unwrap();
        // The sequential check without anything known says the same, and so does the error it becomes.
        if known.is_empty() {
            let again = check(copy.path(), &Options { threads: 1, ..Options::default() }).unwrap();
            assert_eq!(again, report);
            assert_eq!(open_check(copy.path()).is_ok(), report.is_whole());
        }
        report
    }

    fn checkpoint(&self) -> Known {
        let mut tree = LogTree::default();
        tree.advance(self.folder.path(), Position(self.head), &|| true).unwrap();
        let signer = Signer::new(Signer::name_of(tree.first().unwrap()), &[5; 32]);
        let note = signer.sign(tree.size(), tree.root(), tree.global(), eventlog::Timestamp(1));
        signer.public_key().check(&note).unwrap().known("the checkpoint".to_owned())
    }
}

/// Which position each event frame of a segment has, by its offset.
fn position_at(segment: &Path, bytes: &[u8], offset: usize) -> u64 {
    let name = segment.file_name().unwrap().to_str().unwrap();
    let first: u64 = name["seg-".len()..name.len() - ".log".len()].parse().unwrap();
    first + frames(bytes).iter().filter(|frame| frame.kind == b'e' && frame.offset < offset).count() as u64
}

#[track_caller]
fn named(report: &Report, segment: &Path, offset: usize) -> (FaultKind, Position) {
    let fault = report.faults.first().unwrap_or_else(|| panic!("nothing is wrong at byte {offset}"));
    assert_eq!(fault.file.file_name(), segment.file_name(), "byte {offset}: {fault:?}");
    assert!(
        report.torn_tail.is_none() || fault.kind == FaultKind::CutTail,
        "byte {offset}: a crash did that?"
    );
    (fault.kind, fault.position)
}

#[tokio::test]
async fn c15_each_flipped_byte_of_each_record_is_named_with_its_file_offset_and_position() {
    let original = Original::new().await;
    let files = original.segments();
    assert!(files.len() >= 4, "several segments");
    let mut cases = 0;
    // One in the middle, and the one that grows.
    for segment in [&files[1], files.last().unwrap()] {
        let good = fs::read(segment).unwrap();
        let all = frames(&good);
        // Events, commits and the footer; the others are like them.
        for frame in all.iter().take(4).chain(&all[all.len() - 4..]) {
            for at in frame.offset..frame.offset + frame.length {
                let mut bad = good.clone();
                bad[at] ^= 0x10;
                let report = original.look(segment, &bad, &[]);
                let (kind, position) = named(&report, segment, at);
                assert_eq!((kind, kind.cause()), (FaultKind::Frame, Cause::Damage), "byte {at}");
                assert_eq!(report.faults[0].offset, frame.offset as u64, "byte {at}");
                assert_eq!(position.0, position_at(segment, &good, frame.offset), "byte {at}");
                cases += 1;
            }
        }
        for at in 0..64 {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let report = original.look(segment, &bad, &[]);
            assert_eq!(named(&report, segment, at).0, FaultKind::Header, "byte {at}");
            cases += 1;
        }
    }
    println!("{cases} flipped bytes: {cases} named");
}

#[tokio::test]
async fn c15_each_deleted_record_and_each_swapped_pair_is_named_as_an_edit() {
    let original = Original::new().await;
    let (mut deleted, mut swapped) = (0, 0);
    for segment in original.segments() {
        let good = fs::read(&segment).unwrap();
        let all = frames(&good);
        for (index, frame) in all.iter().enumerate() {
            let mut bad = good.clone();
            bad.drain(frame.offset..frame.offset + frame.length);
            let is_last_commit = index + 1 == all.len() && frame.kind == b'c';
            let report = original.look(&segment, &bad, &[]);
            if is_last_commit {
                // A batch without its commit at the end of the log is what a crash leaves; a checkpoint knows better.
                assert!(report.is_whole() && report.torn_tail.is_some());
                let report = original.look(&segment, &bad, &[original.checkpoint()]);
                assert_eq!(named(&report, &segment, frame.offset).0, FaultKind::CutTail);
            } else {
                let (kind, _) = named(&report, &segment, frame.offset);
                let expected = if frame.kind == b'f' { Cause::Removal } else { Cause::Edit };
                assert_eq!(kind.cause(), expected, "frame {index} of {}: {kind:?}", segment.display());
                assert!(report.faults[0].offset >= frame.offset as u64, "what lies before it is good");
            }
            deleted += 1;
        }
        for pair in all.windows(2) {
            let (one, other) = (pair[0], pair[1]);
            let mut bad = good.clone();
            bad[one.offset..other.offset + other.length].rotate_left(one.length);
            let report = original.look(&segment, &bad, &[]);
            let (kind, position) = named(&report, &segment, one.offset);
            assert_eq!(kind.cause(), Cause::Edit, "{kind:?}");
            // An event that has come before the commit of the batch before it is seen by that commit.
            let (offset, from, to) = (report.faults[0].offset, one.offset, other.offset + other.length);
            assert!((from as u64..to as u64).contains(&offset), "{offset} in {from}..{to}");
            assert!(position.0.abs_diff(position_at(&segment, &good, one.offset)) <= 1);
            swapped += 1;
        }
    }
    println!("{deleted} records deleted, {swapped} pairs swapped: all named");
}

#[tokio::test]
async fn c15_each_record_edited_under_a_mended_checksum_breaks_a_chain_or_its_commit() {
    let original = Original::new().await;
    let (mut chains, mut commits) = (0, 0);
    for segment in original.segments() {
        let good = fs::read(&segment).unwrap();
        for frame in frames(&good).into_iter().filter(|frame| frame.kind == b'e') {
            // The last byte of the payload, then the last byte of the hash.
            for (at, kind) in [
                (frame.offset + frame.length - 33, FaultKind::StreamChain),
                (frame.offset + frame.length - 1, FaultKind::StreamChain),
            ] {
                let mut bad = good.clone();
                bad[at] ^= 1;
                mend(&mut bad, frame);
                let report = original.look(&segment, &bad, &[]);
                let (found, position) = named(&report, &segment, at);
                assert_eq!(found, kind, "byte {at} of {}", segment.display());
                assert_eq!(report.faults[0].offset, frame.offset as u64);
                assert_eq!(position.0, position_at(&segment, &good, frame.offset));
                assert!(report.faults[0].stream.is_some(), "whose it is");
                chains += 1;
            }
        }
        for frame in frames(&good).into_iter().filter(|frame| frame.kind != b'e') {
            let mut bad = good.clone();
            bad[frame.offset + frame.length - 1] ^= 1;
            mend(&mut bad, frame);
            let report = original.look(&segment, &bad, &[]);
            let (found, _) = named(&report, &segment, frame.offset);
            let wanted = if frame.kind == b'c' { FaultKind::Commit } else { FaultKind::Footer };
            assert_eq!(found, wanted);
            commits += 1;
        }
    }
    println!("{chains} events and {commits} commits and footers edited under good checksums: all named");
}

#[tokio::test]
async fn c15_each_number_left_out_is_named_although_every_chain_commit_and_checksum_was_made_to_fit() {
    let original = Original::new().await;
    let mut files = original.segments();
    let segment = files.pop().unwrap();
    let before: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    let good = fs::read(&segment).unwrap();
    let mut same = good.clone();
    make_fit(&before, &mut same);
    assert!(same == good, "made to fit as the log itself does it");
    let events: Vec<Frame> = frames(&good).into_iter().filter(|frame| frame.kind == b'e').collect();
    for (index, frame) in events.iter().enumerate() {
        let stream = &good[numbers(&good, *frame).stream];
        for wanted in [FaultKind::PositionGap, FaultKind::SequenceGap] {
            let mut bad = good.clone();
            for later in &events[index..] {
                let at = numbers(&good, *later);
                if wanted == FaultKind::PositionGap {
                    bad[at.position] += 1;
                } else if good[at.stream] == *stream {
                    bad[at.sequence] += 1;
                }
            }
            make_fit(&before, &mut bad);
            let report = original.look(&segment, &bad, &[]);
            let (found, position) = named(&report, &segment, frame.offset);
            assert_eq!((found, found.cause()), (wanted, Cause::Edit), "event {index}");
            assert_eq!(report.faults[0].offset, frame.offset as u64, "event {index}");
            assert_eq!(position.0, position_at(&segment, &good, frame.offset), "event {index}");
        }
    }
    println!("{} positions and as many sequences left out: all named", events.len());
}

#[tokio::test]
async fn c15_a_tail_cut_at_each_byte_is_a_crash_and_never_damage_unless_somebody_knows_better() {
    let original = Original::new().await;
    let segment = original.segments().pop().unwrap();
    let good = fs::read(&segment).unwrap();
    let commits: Vec<Frame> = frames(&good).into_iter().filter(|frame| frame.kind == b'c').collect();
    // The last two batches: of several events each.
    let third_last = commits.len().checked_sub(3).map(|index| commits[index]);
    let from = third_last.map_or(64, |commit| commit.offset + commit.length);
    let known = original.checkpoint();
    let (mut torn, mut clean) = (0, 0);
    for length in from..good.len() {
        let cut = &good[..length];
        let at_a_batch = commits.iter().any(|commit| commit.offset + commit.length == length);
        let report = original.look(&segment, cut, &[]);
        assert!(report.is_whole(), "cut at {length}: {:?}", report.faults);
        assert_eq!(report.torn_tail.is_none(), at_a_batch, "cut at {length}");
        let report = original.look(&segment, cut, std::slice::from_ref(&known));
        assert_eq!(named(&report, &segment, length).0, FaultKind::CutTail, "cut at {length}");
        *(if at_a_batch { &mut clean } else { &mut torn }) += 1;
    }
    println!(
        "{torn} tails cut inside of a batch: torn; {clean} at its end: whole; all {} named by a checkpoint",
        torn + clean
    );
}

#[tokio::test]
async fn c15_a_segment_that_is_gone_or_doubled_is_named() {
    let original = Original::new().await;
    let files = original.segments();
    for (gone, index) in files.iter().zip(0..) {
        let copy = tempfile::tempdir().unwrap();
        copy_folder(original.folder.path(), copy.path());
        fs::remove_file(copy.path().join(gone.file_name().unwrap())).unwrap();
        let plain = check(copy.path(), &Options::default()).unwrap();
        if index + 1 == files.len() {
            // The last one: only somebody who knows how far it went.
            assert!(plain.is_whole());
            let known = vec![original.checkpoint()];
            let report = check(copy.path(), &Options { known, ..Options::default() }).unwrap();
            assert_eq!(report.faults[0].kind, FaultKind::CutTail);
        } else {
            assert_eq!(plain.faults[0].kind, FaultKind::MissingSegment);
            assert_eq!(plain.faults[0].kind.cause(), Cause::Removal);
        }
    }
}

#[tokio::test]
async fn c15_a_log_made_anew_with_good_checksums_and_chains_is_caught_by_a_checkpoint_and_by_nothing_else() {
    let original = Original::new().await;
    let known = original.checkpoint();
    // The same, but for one event in the middle.
    let forged = tempfile::tempdir().unwrap();
    let log = SegmentLog::open(tiny(forged.path())).unwrap();
    fill(&log, 0..30).await;
    log.append(append(command(30), space(0), vec![recovered(999)])).await.unwrap();
    fill(&log, 31..60).await;
    for n in 60..70 {
        log.append(append(command(n), space(n % 3), vec![recovered(n); 3])).await.unwrap();
    }
    log.close().await;
    let plain = check(forged.path(), &Options::default()).unwrap();
    assert!(plain.is_whole() && plain.torn_tail.is_none(), "it is whole in itself");
    for (global, root) in [(known.global, None), (None, known.root), (known.global, known.root)] {
        let known = vec![Known { global, root, ..known.clone() }];
        let report = check(forged.path(), &Options { known, ..Options::default() }).unwrap();
        assert_eq!(report.faults[0].kind, FaultKind::Rewritten);
        assert_eq!(report.faults[0].kind.cause(), Cause::Rewrite);
        assert_eq!(report.faults[0].position.0, original.head);
    }
    let report =
        check(original.folder.path(), &Options { known: vec![known], with_root: true, ..Options::default() });
    let report = report.unwrap();
    assert!(report.is_whole() && report.root.is_some());
}

#[tokio::test]
async fn the_parallel_check_and_the_walk_of_an_open_agree_on_which_logs_are_good() {
    let original = Original::new().await;
    let segment = original.segments().pop().unwrap();
    let good = fs::read(&segment).unwrap();
    let mut agreed = 0;
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] = bad[at].wrapping_add(1);
        let copy = original.with(&segment, &bad);
        let whole = check(copy.path(), &Options::default()).unwrap().is_whole();
        assert_eq!(SegmentLog::open(tiny(copy.path())).is_ok(), whole, "byte {at}");
        agreed += 1;
    }
    println!("{agreed} logs: both say the same");
}

#[tokio::test]
async fn a_check_beside_a_writer_ends_at_what_is_durable() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    fill(&log, 0..10).await;
    let end = log.on_disk().unwrap().end;
    let before = check(folder.path(), &Options { end: Some(end), ..Options::default() }).unwrap();
    fill(&log, 10..20).await;
    let after = check(folder.path(), &Options { end: Some(end), ..Options::default() }).unwrap();
    assert_eq!((before.head, after.head), (Position(10), Position(10)));
    assert_eq!(check(folder.path(), &Options::default()).unwrap().head, Position(20));
}
