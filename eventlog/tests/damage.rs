//! Damage in a sealed segment: it takes the streams that it is in, and no other.

use std::{collections::BTreeSet, fs};

use eventlog::{
    EventLog, OpenError, Position, ReadError, RecordedEvent, SegmentLog, Sequence, StreamId, fixture::space,
    segment::verify,
};
use futures::{StreamExt, TryStreamExt};
use support::{all, ask, fill, segments, tiny};

mod support;

const EVENTS: u64 = 60;

/// A log of several sealed segments, all in the index, and what it holds.
async fn sealed() -> (tempfile::TempDir, Vec<RecordedEvent>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    fill(&log, 0..EVENTS).await;
    let before = all(&log).await;
    log.close().await;
    drop(SegmentLog::open(tiny(folder.path())).expect("it opens"));
    (folder, before)
}

/// What a read of the whole log tells: the events, and the stretches that it says are damaged.
async fn told(log: &SegmentLog) -> (Vec<RecordedEvent>, Vec<(Position, Position)>) {
    let (mut events, mut damaged) = (Vec::new(), Vec::new());
    let mut reading = log.read_all(Position(1));
    while let Some(item) = reading.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(ReadError::Damaged { position, last: Some(last), .. }) => damaged.push((position, last)),
            Err(other) => panic!("{other}"),
        }
    }
    (events, damaged)
}

/// Opens the damaged log and checks that exactly the streams of what is lost are refused; answers what is lost.
async fn check(folder: &std::path::Path, before: &[RecordedEvent]) -> Vec<Position> {
    let log = SegmentLog::open(tiny(folder)).expect("the others live");
    let (events, damaged) = told(&log).await;
    let lost: Vec<Position> =
        damaged.iter().flat_map(|(first, last)| (first.0..=last.0).map(Position)).collect();
    let kept: Vec<_> = before.iter().filter(|event| !lost.contains(&event.position)).cloned().collect();
    assert_eq!(events, kept, "lost: {lost:?}");
    let of_lost = before.iter().filter(|event| lost.contains(&event.position));
    let expected: BTreeSet<StreamId> = of_lost.map(|event| event.stream.clone()).collect();
    let told_streams: BTreeSet<StreamId> = log.damaged_streams().into_iter().collect();
    assert_eq!(told_streams, expected);
    for stream in (0..3).map(space) {
        let read: Result<Vec<_>, _> = log.read_stream(&stream, Sequence(1)).try_collect().await;
        assert_eq!(read.is_err(), expected.contains(&stream), "{stream}");
        assert_eq!(log.is_damaged(&stream), expected.contains(&stream), "{stream}");
    }
    log.close().await;
    lost
}

#[tokio::test]
async fn a_flipped_byte_in_a_sealed_segment_takes_the_stream_of_its_event_and_no_other() {
    let (folder, before) = sealed().await;
    let path = segments(folder.path()).remove(1);
    let good = fs::read(&path).expect("it reads");
    let mut lost_none = 0;
    // Behind the file header, up to the footer.
    for at in (64..good.len() - 100).step_by(23) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        fs::write(&path, &bad).expect("it writes");
        let lost = check(folder.path(), &before).await;
        assert!(lost.len() <= 1, "byte {at} took {lost:?}");
        lost_none += usize::from(lost.is_empty());
        let found = verify(folder.path()).expect_err("the whole is not whole");
        assert!(
            matches!(&found, OpenError::Damaged { file, offset, .. } if *file == path && *offset <= at as u64),
            "byte {at}: {found}"
        );
        assert_eq!(fs::read(&path).expect("it reads"), bad, "nothing was repaired behind our back");
    }
    // A commit frame carries no event.
    assert!(lost_none > 0 && lost_none < 60, "{lost_none}");
}

#[tokio::test]
async fn a_page_of_zeros_in_a_sealed_segment_takes_the_streams_of_all_events_that_lay_there() {
    let (folder, before) = sealed().await;
    let path = segments(folder.path()).remove(1);
    let good = fs::read(&path).expect("it reads");
    for from in [70, 512, 1024, 3000] {
        let mut bad = good.clone();
        bad[from..from + 700].fill(0);
        fs::write(&path, &bad).expect("it writes");
        let lost = check(folder.path(), &before).await;
        assert!(lost.len() > 1, "from {from}: {lost:?}");
    }
}

#[tokio::test]
async fn a_damaged_log_takes_appends_and_tells_followers_of_the_damage_once() {
    let (folder, before) = sealed().await;
    let path = segments(folder.path()).remove(1);
    let mut bytes = fs::read(&path).expect("it reads");
    bytes[64 + 30] ^= 1;
    fs::write(&path, &bytes).expect("it writes");
    let log = SegmentLog::open(tiny(folder.path())).expect("the others live");
    let mut follower = log.follow(Position(1));
    let (mut seen, mut damaged) = (0, 0);
    while seen + damaged < before.len() {
        match follower.next().await.expect("it goes on") {
            Ok(_) => seen += 1,
            Err(_) => damaged += 1,
        }
    }
    assert_eq!(damaged, 1);
    ask(&log, EVENTS).await.expect("it is taken");
    let next = follower.next().await.expect("it goes on").expect("it reads");
    assert_eq!(next.position, Position(EVENTS + 1));
    // A read that begins behind the damage, from wherever the index leads it, tells no damage.
    let from = before.iter().find(|event| log.is_damaged(&event.stream)).expect("one is");
    let behind: Vec<_> = log.read_all(Position(EVENTS / 2 + 10)).collect().await;
    assert!(behind.iter().all(Result::is_ok), "{}", from.position);
    log.close().await;
}

#[tokio::test]
async fn damage_that_the_index_can_not_explain_is_not_passed_over() {
    let (folder, _) = sealed().await;
    let path = segments(folder.path()).remove(1);
    let mut bytes = fs::read(&path).expect("it reads");
    bytes[64 + 30] ^= 1;
    fs::write(&path, &bytes).expect("it writes");
    fs::remove_dir_all(folder.path().join("index")).expect("it is removed");
    let answer = SegmentLog::open(tiny(folder.path())).err();
    assert!(matches!(&answer, Some(OpenError::Damaged { file, .. }) if *file == path), "{answer:?}");
}
