//! What a crash can not have left behind is damage, although part of it looks torn.

use std::fs;

use eventlog::{
    EventLog, OpenError, Position, SegmentLog,
    fixture::{append, command, recovered, space},
    segment::verify,
};
use support::{ask, expect_damaged, fill, frames, open, options, segments, tiny};

mod support;

const SECTOR: usize = 512;

#[tokio::test]
async fn a_hole_in_an_acknowledged_batch_is_damage_although_the_batch_behind_it_is_torn() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = open(folder.path());
    fill(&log, 0..3).await;
    let path = segments(folder.path()).remove(0);
    let start = fs::read(&path).expect("it reads").len();
    log.append(append(command(50), space(1), (0..40).map(recovered).collect())).await.expect("stored");
    let acknowledged = fs::read(&path).expect("it reads").len();
    ask(&log, 60).await.expect("stored");
    log.close().await;
    let mut bytes = fs::read(&path).expect("it reads");
    let commit = frames(&bytes).pop().expect("it ends with a commit").0;
    assert!(commit > acknowledged);
    // The last batch has its event, and not yet its commit; a sector of the one before it is zeros.
    bytes.truncate(commit);
    let hole = start.next_multiple_of(SECTOR);
    bytes[hole..hole + SECTOR].fill(0);
    fs::write(&path, &bytes).expect("it writes");
    let _ = expect_damaged(SegmentLog::open(options(folder.path())));
}

#[tokio::test]
async fn a_hole_in_front_of_a_footer_is_damage_although_the_next_segment_is_not_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
    log.append(append(command(50), space(1), (0..60).map(recovered).collect())).await.expect("stored");
    fill(&log, 0..2).await;
    log.close().await;
    let mut files = segments(folder.path());
    assert_eq!(files.len(), 2, "the first one is sealed");
    fs::remove_file(files.remove(1)).expect("it is removed");
    let mut bytes = fs::read(&files[0]).expect("it reads");
    // Nothing is left of the batch but the sealed end of the file.
    let footer = frames(&bytes).pop().expect("a footer").0;
    bytes[64..footer].fill(0);
    fs::write(&files[0], &bytes).expect("it writes");
    assert!(
        matches!(verify(folder.path()), Err(OpenError::Damaged { .. })),
        "it was sealed, so it was whole"
    );
}

#[tokio::test]
async fn zeros_that_end_inside_of_a_sector_are_damage_and_no_page_that_was_dropped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = open(folder.path());
    let path = segments(folder.path()).remove(0);
    let mut count = 0;
    // Until an event and its commit lie in one sector.
    let (bytes, event, commit) = loop {
        ask(&log, count).await.expect("stored");
        count += 1;
        let bytes = fs::read(&path).expect("it reads");
        let [.., (event, _), (commit, _)] = frames(&bytes)[..] else {
            panic!("an event and a commit end it")
        };
        if event / SECTOR == bytes.len() / SECTOR {
            break (bytes, event, commit);
        }
    };
    log.close().await;
    let mut zeroed = bytes.clone();
    zeroed[event..commit].fill(0);
    fs::write(&path, &zeroed).expect("it writes");
    let _ = expect_damaged(SegmentLog::open(options(folder.path())));
    fs::write(&path, &bytes).expect("it writes");
    assert_eq!(*open(folder.path()).durable_head().borrow(), Position(count));
}
