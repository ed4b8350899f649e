//! What an open makes of a folder after a crash, and what it refuses.

use std::fs;

use eventlog::{
    Appended, EventLog, OpenError, OpenOptions, Position, SegmentLog, Sequence, Stored,
    fixture::{append, command, instance, metadata, part, ready, recovered, space},
    segment::verify,
};
use support::{all, ask, expect_damaged, fill, flip, open, options, segments, tiny};

mod support;

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// An append that a crash may tear, over two streams.
async fn append_two(log: &SegmentLog, n: u64) -> Stored {
    let any = eventlog::ExpectedSequence::Any;
    let parts =
        vec![part(instance(1), any, vec![ready(n), ready(n + 1)]), part(space(n), any, vec![recovered(n)])];
    let append = eventlog::Append { id: command(n), metadata: metadata(1), parts };
    match log.append(append).await {
        Ok(Appended::Stored(stored)) => stored,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_tail_torn_at_any_byte_is_cut_to_whole_appends() {
    let folder = temporary();
    let log = open(folder.path());
    fill(&log, 0..4).await;
    let path = segments(folder.path()).remove(0);
    let length = || fs::metadata(&path).expect("it is there").len();
    let mut ends = vec![(length(), 4)];
    for n in [100, 200] {
        let stored = append_two(&log, n).await;
        ends.push((length(), stored.last.0));
    }
    let before = all(&log).await;
    log.close().await;
    let whole = fs::read(&path).expect("it reads");
    for cut in ends[0].0..=ends[2].0 {
        fs::write(&path, &whole[..usize::try_from(cut).expect("small")]).expect("it writes");
        let kept = ends.iter().rev().find(|(end, _)| *end <= cut).expect("the first end").1;
        let log = open(folder.path());
        assert_eq!(*log.durable_head().borrow(), Position(kept), "cut at {cut}");
        assert_eq!(all(&log).await, before[..usize::try_from(kept).expect("small")]);
        if cut % 16 == 0 {
            let stored = fill(&log, 900..901).await;
            assert_eq!(stored[0].first, Position(kept + 1), "it goes on where it was cut");
        }
    }
}

#[tokio::test]
async fn a_flipped_byte_anywhere_before_the_last_batch_refuses_to_open_and_says_where() {
    let folder = temporary();
    let log = open(folder.path());
    fill(&log, 0..3).await;
    let path = segments(folder.path()).remove(0);
    let end = usize::try_from(fs::metadata(&path).expect("it is there").len()).expect("small");
    fill(&log, 3..5).await;
    log.close().await;
    let good = fs::read(&path).expect("it reads");
    for at in 0..end {
        flip(&path, at);
        let (file, offset, _) = expect_damaged(SegmentLog::open(options(folder.path())));
        assert_eq!(file, path);
        assert!(offset <= at as u64, "byte {at} is said to be at {offset}");
        assert!(matches!(verify(folder.path()), Err(OpenError::Damaged { .. })), "byte {at}");
        fs::write(&path, &good).expect("it writes");
    }
    assert_eq!(*open(folder.path()).durable_head().borrow(), Position(5), "undamaged again, it opens");
}

#[tokio::test]
async fn a_flipped_bit_anywhere_in_the_last_batch_refuses_to_open_and_changes_nothing() {
    let folder = temporary();
    let log = open(folder.path());
    fill(&log, 0..3).await;
    let path = segments(folder.path()).remove(0);
    let start = usize::try_from(fs::metadata(&path).expect("it is there").len()).expect("small");
    append_two(&log, 10).await;
    log.close().await;
    let good = fs::read(&path).expect("it reads");
    for bit in start * 8..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bad).expect("it writes");
        let (file, offset, _) = expect_damaged(SegmentLog::open(options(folder.path())));
        assert_eq!(file, path);
        assert!(offset <= (bit / 8) as u64, "bit {bit} is said to be at {offset}");
        assert_eq!(fs::read(&path).expect("it reads"), bad, "bit {bit}: a refused open changes nothing");
        assert!(matches!(verify(folder.path()), Err(OpenError::Damaged { .. })), "bit {bit}");
    }
    assert_eq!(kept_beside(folder.path()), Vec::<(String, Vec<u8>)>::new());
}

/// What was cut off and kept, with its name.
fn kept_beside(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("it lists").map(|entry| entry.expect("it lists").path());
    let mut kept: Vec<_> = entries
        .filter(|path| path.to_string_lossy().contains(".torn"))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read(path).expect("it reads"))
        })
        .collect();
    kept.sort();
    kept
}

#[tokio::test]
async fn what_is_cut_off_is_kept_beside_the_segment() {
    let folder = temporary();
    let log = open(folder.path());
    fill(&log, 0..3).await;
    let path = segments(folder.path()).remove(0);
    let end = usize::try_from(fs::metadata(&path).expect("it is there").len()).expect("small");
    append_two(&log, 10).await;
    log.close().await;
    let whole = fs::read(&path).expect("it reads");
    let mut expected = Vec::new();
    // The same place twice, for instance by two crashes in a row: the first one is not written over.
    for (left, suffix) in [(7, ""), (90, "-2")] {
        fs::write(&path, &whole[..end + left]).expect("it writes");
        drop(open(folder.path()));
        assert_eq!(fs::metadata(&path).expect("it is there").len(), end as u64);
        let name = format!("seg-00000000000000000001.at-{end}.torn{suffix}");
        expected.push((name, whole[end..end + left].to_vec()));
        assert_eq!(kept_beside(folder.path()), expected);
    }
    // A header that a crash cut short is kept as well.
    fs::write(&path, &whole[..40]).expect("it writes");
    drop(open(folder.path()));
    expected.insert(0, ("seg-00000000000000000001.at-0.torn".to_owned(), whole[..40].to_vec()));
    assert_eq!(kept_beside(folder.path()), expected);
    verify(folder.path()).expect("what is kept is no part of the log");
}

#[tokio::test]
async fn a_tail_that_was_acknowledged_is_not_cut() {
    let folder = temporary();
    let log = open(folder.path());
    fill(&log, 0..3).await;
    let path = segments(folder.path()).remove(0);
    let end = fs::metadata(&path).expect("it is there").len();
    append_two(&log, 10).await;
    log.close().await;
    let whole = fs::read(&path).expect("it reads");
    let torn = &whole[..whole.len() - 1];
    fs::write(&path, torn).expect("it writes");
    let known = |position| OpenOptions { known_position: Position(position), ..options(folder.path()) };
    let (file, _, what) = expect_damaged(SegmentLog::open(known(6)));
    assert_eq!(file, path);
    assert!(what.contains("acknowledged"), "{what}");
    assert_eq!(fs::read(&path).expect("it reads"), torn, "a refused open changes nothing");
    // Cut at a whole batch, or inside the header of the file, it ends before what was acknowledged all the same.
    for left in [end, 64, 40, 0] {
        let cut = &whole[..usize::try_from(left).expect("small")];
        fs::write(&path, cut).expect("it writes");
        assert!(matches!(SegmentLog::open(known(6)), Err(OpenError::Behind { known: Position(6), .. })));
        assert_eq!(fs::read(&path).expect("it reads"), cut, "a refused open changes nothing");
    }
    assert_eq!(kept_beside(folder.path()), Vec::<(String, Vec<u8>)>::new());
    // What nobody can have been told of is cut.
    fs::write(&path, torn).expect("it writes");
    assert!(SegmentLog::open(known(3)).is_ok());
}

#[tokio::test]
async fn a_log_that_lost_what_its_index_holds_is_not_opened() {
    let folder = temporary();
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    fill(&log, 0..100).await;
    log.close().await;
    // Whatever is sealed is in the index now.
    drop(SegmentLog::open(tiny(folder.path())).expect("it opens"));
    let files = segments(folder.path());
    let (active, sealed) = files.split_last().expect("segments");
    let last_sealed = sealed.last().expect("a sealed segment");
    let good = fs::read(last_sealed).expect("it reads");
    fs::remove_file(active).expect("it is removed");
    for lost in [100, 101, good.len() / 2] {
        let cut = &good[..good.len() - lost];
        fs::write(last_sealed, cut).expect("it writes");
        for _ in 0..2 {
            let (file, _, what) = expect_damaged(SegmentLog::open(tiny(folder.path())));
            assert_eq!(&file, last_sealed, "the second time as well");
            assert!(what.contains("index"), "{what}");
            assert_eq!(fs::read(last_sealed).expect("it reads"), cut, "a refused open changes nothing");
        }
    }
    fs::write(last_sealed, good).expect("it writes");
    assert!(SegmentLog::open(tiny(folder.path())).is_ok());
}

#[tokio::test]
async fn zeros_that_a_power_cut_left_at_the_end_are_a_torn_tail_however_few() {
    let folder = temporary();
    let log = open(folder.path());
    fill(&log, 0..3).await;
    log.close().await;
    let path = segments(folder.path()).remove(0);
    let whole = fs::read(&path).expect("it reads");
    for zeros in [1, 4, 12, 64, 300, 512, 5000] {
        let mut bytes = whole.clone();
        bytes.resize(whole.len() + zeros, 0);
        fs::write(&path, bytes).expect("it writes");
        assert_eq!(*open(folder.path()).durable_head().borrow(), Position(3), "{zeros} zeros");
    }
}

#[tokio::test]
async fn an_event_taken_out_or_two_swapped_are_refused_although_every_frame_is_good() {
    let folder = temporary();
    let log = open(folder.path());
    let path = segments(folder.path()).remove(0);
    let mut ends = Vec::new();
    for n in 0..4 {
        ends.push(usize::try_from(fs::metadata(&path).expect("it is there").len()).expect("small"));
        fill(&log, n..n + 1).await;
    }
    log.close().await;
    let good = fs::read(&path).expect("it reads");
    let without = [&good[..ends[1]], &good[ends[2]..]].concat();
    let swapped =
        [&good[..ends[1]], &good[ends[2]..ends[3]], &good[ends[1]..ends[2]], &good[ends[3]..]].concat();
    for bytes in [without, swapped] {
        fs::write(&path, bytes).expect("it writes");
        let (_, offset, _) = expect_damaged(SegmentLog::open(options(folder.path())));
        assert_eq!(offset, ends[1] as u64);
    }
}

/// Changes a byte of the frame at `start`, `from_end` bytes before its end, and makes its checksum fit again.
fn forge(path: &std::path::Path, start: usize, from_end: usize) {
    let mut bytes = fs::read(path).expect("it reads");
    let length = u32::from_le_bytes(bytes[start + 4..start + 8].try_into().expect("four bytes"));
    let end = start + 12 + usize::try_from(length).expect("small");
    bytes[end - from_end] ^= 1;
    let checksum = crc32c::crc32c(&bytes[start..start + 8]);
    let checksum = crc32c::crc32c_append(checksum, &bytes[start + 12..end]);
    bytes[start + 8..start + 12].copy_from_slice(&checksum.to_le_bytes());
    fs::write(path, bytes).expect("it writes");
}

#[tokio::test]
async fn an_event_or_a_hash_changed_together_with_its_checksum_breaks_a_chain() {
    let folder = temporary();
    let log = open(folder.path());
    fill(&log, 0..2).await;
    log.close().await;
    let path = segments(folder.path()).remove(0);
    let good = fs::read(&path).expect("it reads");
    let commit = good.windows(4).position(|window| window == b"\xb5cm\x01").expect("a commit");
    // The last byte of the payload lies before the 32 bytes of the hash; a commit ends in the global hash.
    for (start, from_end, says) in [(64, 33, "chain"), (64, 1, "chain"), (commit, 1, "commit")] {
        forge(&path, start, from_end);
        let (_, offset, what) = expect_damaged(SegmentLog::open(options(folder.path())));
        assert!(what.contains(says), "{what}");
        assert_eq!(offset, start as u64);
        fs::write(&path, &good).expect("it writes");
    }
}

#[tokio::test]
async fn pages_that_a_power_cut_dropped_from_the_last_batch_are_a_torn_tail() {
    let folder = temporary();
    let log = open(folder.path());
    fill(&log, 0..3).await;
    let path = segments(folder.path()).remove(0);
    let start = fs::metadata(&path).expect("it is there").len();
    let events = (0..200).map(recovered).collect();
    log.append(append(command(50), space(1), events)).await.expect("it is stored");
    log.close().await;
    let good = fs::read(&path).expect("it reads");
    let hole = usize::try_from(start.next_multiple_of(4096)).expect("small");
    let mut dropped = good.clone();
    dropped[hole..hole + 4096].fill(0);
    fs::write(&path, &dropped).expect("it writes");
    assert_eq!(*open(folder.path()).durable_head().borrow(), Position(3));
    // Without a hole the same batch was once whole, and is damaged.
    fs::write(&path, &good).expect("it writes");
    flip(&path, hole);
    let _ = expect_damaged(SegmentLog::open(options(folder.path())));
    // A hole in a batch that another one follows was acknowledged.
    fs::write(&path, &good).expect("it writes");
    let log = open(folder.path());
    fill(&log, 60..61).await;
    log.close().await;
    let mut dropped = fs::read(&path).expect("it reads");
    dropped[hole..hole + 4096].fill(0);
    fs::write(&path, &dropped).expect("it writes");
    let _ = expect_damaged(SegmentLog::open(options(folder.path())));
}

#[tokio::test]
async fn a_log_that_ends_before_what_was_seen_of_it_is_not_opened() {
    let folder = temporary();
    let log = open(folder.path());
    fill(&log, 0..3).await;
    log.close().await;
    let known = |position| OpenOptions { known_position: Position(position), ..options(folder.path()) };
    let answer = SegmentLog::open(known(4)).err();
    assert!(
        matches!(answer, Some(OpenError::Behind { head: Position(3), known: Position(4) })),
        "{answer:?}"
    );
    assert!(SegmentLog::open(known(3)).is_ok());
}

#[tokio::test]
async fn a_folder_has_one_server_at_a_time() {
    let folder = temporary();
    let log = open(folder.path());
    let second = SegmentLog::open(options(folder.path())).err().expect("it is held");
    assert!(matches!(second, OpenError::Locked(_)));
    assert!(second.to_string().contains("another server holds"), "{second}");
    // Those who look at the file alone see it too.
    let file = fs::File::open(folder.path().join("LOCK")).expect("it is there");
    assert!(matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)));
    // Somebody tidies up: the folder is still held.
    fs::remove_file(folder.path().join("LOCK")).expect("it is removed");
    assert!(matches!(SegmentLog::open(options(folder.path())), Err(OpenError::Locked(_))));
    let mut reader = log.follow(Position(1));
    log.close().await;
    assert!(futures::StreamExt::next(&mut reader).await.is_none());
    let again = open(folder.path());
    drop(again);
    drop(open(folder.path()));
}

#[tokio::test]
async fn a_sealed_segment_that_is_missing_cut_or_changed_refuses_to_open() {
    let folder = temporary();
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    fill(&log, 0..100).await;
    log.close().await;
    let files = segments(folder.path());
    assert!(files.len() > 3, "{} segments", files.len());
    let good = fs::read(&files[1]).expect("it reads");
    fs::remove_file(&files[1]).expect("it is removed");
    let (file, ..) = expect_damaged(SegmentLog::open(tiny(folder.path())));
    assert_eq!(file, files[2], "the gap is before this one");
    fs::write(&files[1], &good[..good.len() - 1]).expect("it writes");
    let (file, ..) = expect_damaged(SegmentLog::open(tiny(folder.path())));
    assert_eq!(file, files[1]);
    fs::write(&files[1], &good).expect("it writes");
    // A flip inside is not looked for at every open; `verify` and a read find it.
    flip(&files[1], good.len() / 2);
    let found = verify(folder.path()).expect_err("it is damaged");
    assert!(matches!(&found, OpenError::Damaged { file, .. } if *file == files[1]), "{found}");
}

#[tokio::test]
async fn a_crash_between_footer_and_next_segment_or_inside_its_header_is_recovered() {
    let folder = temporary();
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    fill(&log, 0..60).await;
    log.close().await;
    let last = segments(folder.path()).pop().expect("a segment");
    let header = fs::read(&last).expect("it reads")[..64].to_vec();
    let first: u64 =
        last.file_stem().and_then(|name| name.to_str()).expect("a name")[4..].parse().expect("a number");
    for left in [None, Some(0), Some(10), Some(63), Some(64)] {
        match left {
            None => fs::remove_file(&last).expect("it is removed"),
            Some(left) => fs::write(&last, &header[..left]).expect("it writes"),
        }
        let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
        assert_eq!(*log.durable_head().borrow(), Position(first - 1), "{left:?} bytes of the header");
        drop(log);
    }
    fs::write(&last, [0; 64]).expect("it writes");
    let log = SegmentLog::open(tiny(folder.path())).expect("a header of zeros never reached the disk");
    fill(&log, 900..960).await;
    log.close().await;
    verify(folder.path()).expect("it is whole");
}

#[tokio::test]
async fn verify_tells_what_a_folder_holds_and_where_a_crash_cut_it() {
    let folder = temporary();
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    fill(&log, 0..60).await;
    log.close().await;
    let verified = verify(folder.path()).expect("it is whole");
    assert_eq!((verified.head, verified.streams, verified.torn_tail), (Position(60), 3, None));
    assert_eq!(verified.segments, segments(folder.path()).len());
    let last = segments(folder.path()).pop().expect("a segment");
    let length = fs::metadata(&last).expect("it is there").len();
    fs::File::options().write(true).open(&last).expect("it opens").set_len(length - 1).expect("it is cut");
    let verified = verify(folder.path()).expect("a crash is no damage");
    assert_eq!(verified.torn_tail.expect("it is told").file, last);
    assert!(verified.head < Position(60));
}

#[tokio::test]
async fn a_stream_reads_the_same_from_memory_and_from_the_index() {
    let folder = temporary();
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    fill(&log, 0..300).await;
    let read = async |log: &SegmentLog, from| -> Vec<_> {
        use futures::TryStreamExt;
        log.read_stream(&space(1), Sequence(from)).try_collect().await.expect("it reads")
    };
    let mut before = Vec::new();
    for from in [1, 2, 50, 99, 100, 101] {
        before.push(read(&log, from).await);
    }
    assert_eq!(before.iter().map(Vec::len).collect::<Vec<_>>(), [100, 99, 51, 2, 1, 0]);
    log.close().await;
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    for (from, before) in [1, 2, 50, 99, 100, 101].into_iter().zip(before) {
        assert_eq!(read(&log, from).await, before, "from {from}");
    }
    assert!(matches!(ask(&log, 7).await, Ok(Appended::Duplicate { same: true, .. })));
}
