//! Damage below a log that is open, and bytes in events that look like frames.

use std::{fs, path::Path};

use eventlog::{
    Event, EventLog, ExpectedSequence, Position, ReadError, SegmentLog,
    event::space::SpaceEvent,
    fixture::{append, command, part, recovered, space},
    id::{OperationId, TaskId},
    sealing::{Fingerprint, KeyId, Sealed},
};
use futures::StreamExt;
use support::{FRAME_HEADER_BYTES, fill, frames, options, segments, tiny};

mod support;

/// How many events are told, and which positions are said to be damaged.
async fn told(log: &SegmentLog) -> (usize, Vec<(Position, Position)>) {
    let (mut events, mut damaged) = (0, Vec::new());
    let mut reading = log.read_all(Position(1));
    while let Some(item) = reading.next().await {
        match item {
            Ok(_) => events += 1,
            Err(ReadError::Damaged { position, last: Some(last), .. }) => damaged.push((position, last)),
            Err(other) => panic!("{other}"),
        }
    }
    (events, damaged)
}

#[tokio::test]
async fn damage_below_an_open_log_takes_the_stream_of_its_event_and_no_other() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SegmentLog::open(options(folder.path())).expect("it opens");
    // Events of three streams in one batch: no commit lies between them.
    for n in 0..4 {
        let parts = (0..3).map(|of| part(space(of), ExpectedSequence::Any, vec![recovered(n)])).collect();
        log.append(eventlog::Append { parts, ..append(command(n), space(0), vec![]) }).await.expect("stored");
    }
    let path = segments(folder.path()).remove(0);
    let good = fs::read(&path).expect("it reads");
    let events: Vec<usize> =
        frames(&good).iter().filter(|(_, frame)| &frame[1..3] == b"ev").map(|(at, _)| *at).collect();
    assert_eq!(events.len(), 12);
    let mut bad = good.clone();
    bad[events[4] + 20] ^= 1;
    fs::write(&path, &bad).expect("it writes");
    assert_eq!(told(&log).await, (11, vec![(Position(5), Position(5))]));
    assert_eq!(log.damaged_streams(), [space(1)]);
    log.close().await;
}

/// A submit whose sealed args are these bytes.
fn submit(ciphertext: Vec<u8>) -> Event {
    let sealed = Sealed { key: KeyId { file: 1, slot: 0 }, nonce: vec![0; 24], ciphertext };
    SpaceEvent::TaskQueued {
        task: TaskId::from_uuid(uuid::Uuid::from_u64_pair(1, 1)),
        operation: OperationId::from_uuid(uuid::Uuid::from_u64_pair(1, 2)),
        request_id: "r".parse().expect("a request id"),
        capability: "fill".parse().expect("a name"),
        arg_keys: Vec::new(),
        fingerprint: Fingerprint([0; 32]),
        timeout_seconds: 60,
        sealed_args: Some(sealed),
    }
    .into()
}

/// Some frame of an event at `position`, whole and good.
async fn frame_of(position: u64) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SegmentLog::open(options(folder.path())).expect("it opens");
    fill(&log, 0..position).await;
    log.close().await;
    let bytes = fs::read(segments(folder.path()).remove(0)).expect("it reads");
    let mut events = frames(&bytes).into_iter().filter(|(_, frame)| &frame[1..3] == b"ev");
    events.next_back().map(|(_, frame)| frame.to_vec()).expect("there is one")
}

/// A sealed log whose third event holds a good frame of `position` in its bytes; and where that event begins.
async fn holding(position: u64, folder: &Path) -> usize {
    let log = SegmentLog::open(tiny(folder)).expect("it opens");
    fill(&log, 0..2).await;
    let submit = submit(frame_of(position).await);
    log.append(append(command(100), space(7), vec![submit])).await.expect("stored");
    fill(&log, 2..60).await;
    log.close().await;
    drop(SegmentLog::open(tiny(folder)).expect("it opens"));
    let bytes = fs::read(segments(folder).remove(0)).expect("it reads");
    let events = frames(&bytes).into_iter().filter(|(_, frame)| &frame[1..3] == b"ev");
    events.map(|(at, _)| at).nth(2).expect("the third")
}

#[tokio::test]
async fn a_frame_that_lies_in_the_bytes_of_a_damaged_event_is_taken_for_none() {
    // What came before, what comes next, and what never was; each with damage in the event and in its length.
    for position in [1, 5, 900] {
        for damaged_at in [FRAME_HEADER_BYTES + 2, 6] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let event = holding(position, folder.path()).await;
            let path = segments(folder.path()).remove(0);
            let mut bytes = fs::read(&path).expect("it reads");
            bytes[event + damaged_at] ^= 0x40;
            fs::write(&path, &bytes).expect("it writes");
            let opened = SegmentLog::open(tiny(folder.path()));
            let case = format!("a frame of {position}, damage at {damaged_at}");
            if (position, damaged_at) == (5, 6) {
                // Its length gone, nothing tells the frame inside from a true one: refused, never misread.
                assert!(opened.is_err() || told_nothing_wrong(&opened.expect("it opened")).await, "{case}");
                continue;
            }
            let log = opened.expect(&case);
            let (events, damaged) = told(&log).await;
            assert_eq!((events, damaged), (60, vec![(Position(3), Position(3))]), "{case}");
            assert_eq!(log.damaged_streams(), [space(7)], "{case}");
            log.close().await;
        }
    }
}

async fn told_nothing_wrong(log: &SegmentLog) -> bool {
    let mut reading = log.read_all(Position(1));
    while let Some(item) = reading.next().await {
        if matches!(item, Err(ReadError::Damaged { last: None, .. })) {
            return true;
        }
    }
    false
}
