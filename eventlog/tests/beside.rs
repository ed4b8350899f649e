//! Reading a folder without its lock, beside the server that writes to it.

use std::fs;

use eventlog::{EventLog, OpenError, Position, ReadError, RecordedEvent, SegmentLog, SegmentReader};
use support::{all, fill, flip, segments, tiny};

mod support;

fn rest(reader: &mut SegmentReader) -> Vec<RecordedEvent> {
    let mut events = Vec::new();
    while let Some(batch) = reader.next_batch().expect("it reads") {
        events.extend(batch);
    }
    events
}

#[tokio::test]
async fn a_reader_beside_the_server_sees_everything_once_and_can_be_asked_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    fill(&log, 0..50).await;
    let mut reader = SegmentReader::open(folder.path()).expect("it opens beside the server");
    let mut events = rest(&mut reader);
    assert_eq!(events.len(), 50);
    for n in 50..150 {
        fill(&log, n..n + 1).await;
        events.extend(rest(&mut reader));
        assert_eq!(events.len() as u64, n + 1);
    }
    assert_eq!(events, all(&log).await);
    for from in [1, 2, 73, 150, 151] {
        let mut reader = SegmentReader::open_at(folder.path(), Position(from)).expect("it opens");
        assert_eq!(rest(&mut reader), events[usize::try_from(from - 1).expect("small")..]);
        assert_eq!(reader.next_position(), Position(151));
    }
}

#[tokio::test]
async fn a_reader_waits_for_a_batch_that_is_not_whole_and_names_damage() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    fill(&log, 0..5).await;
    let path = segments(folder.path()).remove(0);
    let four = fs::metadata(&path).expect("it is there").len();
    fill(&log, 5..6).await;
    log.close().await;
    let good = fs::read(&path).expect("it reads");
    let whole = usize::try_from(four).expect("small");
    fs::write(&path, &good[..whole + 20]).expect("it writes");
    let mut reader = SegmentReader::open(folder.path()).expect("it opens");
    assert_eq!(rest(&mut reader).len(), 5);
    fs::write(&path, &good).expect("it writes");
    assert_eq!(rest(&mut reader).len(), 1, "the rest of the batch has come");
    flip(&path, 200);
    let mut reader = SegmentReader::open(folder.path()).expect("it opens");
    assert!(matches!(reader.next_batch(), Err(ReadError::Damaged { position: Position(1), .. })));
}

#[test]
fn a_folder_without_a_log_is_said_to_be_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = SegmentReader::open(folder.path()).err().expect("there is none");
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
}
