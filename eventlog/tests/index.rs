//! The index is derived: whatever happens to it, the log answers the same.

use std::{fs, path::Path};

use eventlog::{
    Appended, EventLog, OpenOptions, Position, RecordedEvent, SegmentLog, Sequence,
    fixture::{append, command, recovered, space},
};
use futures::TryStreamExt;
use support::{all, ask, copy_folder, expect_damaged, fill, segments, tiny};

mod support;

const EVENTS: u64 = 300;

/// Everything that the index has a part in.
#[derive(Debug, PartialEq)]
struct Answers {
    whole: Vec<RecordedEvent>,
    from_each: Vec<RecordedEvent>,
    streams: Vec<Vec<RecordedEvent>>,
    heads: Vec<Sequence>,
    repeats: Vec<Appended>,
}

async fn answers(log: &SegmentLog) -> Answers {
    let mut answers = Answers {
        whole: all(log).await,
        from_each: Vec::new(),
        streams: Vec::new(),
        heads: Vec::new(),
        repeats: Vec::new(),
    };
    for from in (1..EVENTS).step_by(7) {
        let first = log.read_all(Position(from)).try_next().await.expect("it reads").expect("it is there");
        answers.from_each.push(first);
    }
    for n in 0..3 {
        for from in [1, 40, 77] {
            let events = log.read_stream(&space(n), Sequence(from)).try_collect().await;
            answers.streams.push(events.expect("it reads"));
        }
        answers.heads.push(log.stream_head(&space(n)).await.expect("it reads"));
    }
    for n in 0..EVENTS {
        answers.repeats.push(ask(log, n).await.expect("it answers"));
        assert!(log.find_append(command(n)).await.expect("it reads").is_some());
        assert!(log.find_append(command(n + 10_000)).await.expect("it reads").is_none());
    }
    answers
}

async fn filled() -> (tempfile::TempDir, Answers) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    fill(&log, 0..EVENTS).await;
    log.close().await;
    assert!(segments(folder.path()).len() > 10);
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    let answers = answers(&log).await;
    log.close().await;
    (folder, answers)
}

fn index(folder: &Path) -> std::path::PathBuf {
    folder.join("index")
}

async fn assert_same(folder: &Path, expected: &Answers) {
    let log = SegmentLog::open(tiny(folder)).expect("it opens");
    assert_eq!(answers(&log).await, *expected);
    log.close().await;
}

#[tokio::test]
async fn a_deleted_index_is_rebuilt_and_answers_the_same() {
    let (folder, before) = filled().await;
    fs::remove_dir_all(index(folder.path())).expect("it is removed");
    assert_same(folder.path(), &before).await;
}

#[tokio::test]
async fn an_index_that_is_behind_catches_up_and_one_that_is_ahead_says_that_the_log_lost_its_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let older = tempfile::tempdir().expect("a temporary folder");
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    fill(&log, 0..100).await;
    log.close().await;
    copy_folder(folder.path(), older.path());
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    fill(&log, 100..EVENTS).await;
    let before = answers(&log).await;
    log.close().await;
    // Behind: today's segments, yesterday's index.
    let ahead = tempfile::tempdir().expect("a temporary folder");
    copy_folder(&index(folder.path()), &index(ahead.path()));
    fs::remove_dir_all(index(folder.path())).expect("it is removed");
    copy_folder(&index(older.path()), &index(folder.path()));
    assert_same(folder.path(), &before).await;
    // Ahead: yesterday's segments, today's index.
    fs::remove_dir_all(index(older.path())).expect("it is removed");
    copy_folder(&index(ahead.path()), &index(older.path()));
    let (_, _, what) = expect_damaged(SegmentLog::open(tiny(older.path())));
    assert!(what.contains("delete the folder index"), "{what}");
    fs::remove_dir_all(index(older.path())).expect("it is removed");
    let log = SegmentLog::open(tiny(older.path())).expect("it opens");
    assert_eq!(all(&log).await, before.whole[..100]);
    let stored = ask(&log, 250).await.expect("it answers");
    assert!(matches!(stored, Appended::Stored(_)), "an id that only the lost future knew is new: {stored:?}");
}

#[tokio::test]
async fn an_index_of_another_log_is_rebuilt() {
    let (folder, before) = filled().await;
    let other = tempfile::tempdir().expect("a temporary folder");
    let log = SegmentLog::open(tiny(other.path())).expect("it opens");
    // The same events under other ids: the segments begin and end at the same places.
    for n in 0..EVENTS {
        let append = append(command(n + 5_000), space(n % 3), vec![recovered(n)]);
        assert!(matches!(log.append(append).await, Ok(Appended::Stored(_))));
    }
    log.close().await;
    assert_eq!(segments(folder.path()).len(), segments(other.path()).len());
    fs::remove_dir_all(index(folder.path())).expect("it is removed");
    copy_folder(&index(other.path()), &index(folder.path()));
    assert_same(folder.path(), &before).await;
}

#[tokio::test]
async fn a_damaged_index_never_gives_a_wrong_answer() {
    let (folder, before) = filled().await;
    let copy = tempfile::tempdir().expect("a temporary folder");
    let database = fs::read(index(folder.path()).join("db")).expect("it reads");
    let used = database.iter().rposition(|byte| *byte != 0).expect("it holds something");
    // Sixteen places over the whole file, half of them a flip and half a page of zeros.
    for round in 0..16 {
        let _ = fs::remove_dir_all(copy.path());
        copy_folder(folder.path(), copy.path());
        let mut bad = database.clone();
        let at = used * (round + 1) / 17;
        if round % 2 == 0 {
            bad[at] ^= 0x40;
        } else {
            let end = (at + 4096).min(bad.len());
            bad[at..end].fill(0);
        }
        fs::write(index(copy.path()).join("db"), bad).expect("it writes");
        assert_same(copy.path(), &before).await;
    }
}

#[tokio::test]
async fn a_stream_longer_than_one_entry_reads_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let options = || OpenOptions { segment_bytes: 8 * 1024 * 1024, ..support::options(folder.path()) };
    let log = SegmentLog::open(options()).expect("it opens");
    // More than one index entry (16,384 offsets) of one stream in one segment, and a rest in the next one.
    for n in 0..250 {
        let events = (0..256).map(recovered).collect();
        let append = append(command(n), space(1), events);
        assert!(matches!(log.append(append).await, Ok(Appended::Stored(_))));
    }
    log.close().await;
    assert!(segments(folder.path()).len() >= 2);
    let log = SegmentLog::open(options()).expect("it opens");
    for from in [1u64, 16_384, 16_385, 40_000, 64_000] {
        let events: Vec<_> =
            log.read_stream(&space(1), Sequence(from)).try_collect().await.expect("it reads");
        assert_eq!(events.len() as u64, 64_000 - from + 1);
        assert!(events.iter().zip(from..).all(|(event, sequence)| event.sequence == Sequence(sequence)));
    }
}
