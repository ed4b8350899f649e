//! Proofs, exports, backups and repairs: what comes out is what went in, and what was not there is not proved.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod support;

use std::{fs, io::BufReader, path::Path};

use eventlog::{
    EventLog, Position, SegmentLog, Sequence, Timestamp,
    checkpoint::Signer,
    fixture::{append, command, recovered, space},
    proof::{Proof, ProofError, Which},
    repair::{cut, survey},
    transfer::{Backup, Format, Selection, TransferError, backup, export, import, restore},
    tree::LogTree,
    verify::{FaultKind, IndexReport, Known, Options, check, check_index},
};
use support::{all, fill, flip, open, options, segments, tiny};

async fn log_of(folder: &Path, appends: u64) {
    let log = SegmentLog::open(tiny(folder)).unwrap();
    fill(&log, 0..appends).await;
    log.append(append(command(1_000), space(1), vec![recovered(7); 5])).await.unwrap();
    log.close().await;
}

fn signed(folder: &Path, size: u64) -> (Signer, String) {
    let mut tree = LogTree::default();
    tree.advance(folder, Position(size), &|| true).unwrap();
    let signer = Signer::new(Signer::name_of(tree.first().unwrap()), &[5; 32]);
    let note = signer.sign(tree.size(), tree.root(), tree.global(), Timestamp(1));
    (signer, note)
}

#[track_caller]
fn same_bytes(one: &Path, other: &Path) {
    let (one, other) = (segments(one), segments(other));
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one.file_name(), other.file_name());
        assert_eq!(fs::read(one).unwrap(), fs::read(other).unwrap(), "{}", one.display());
    }
}

#[tokio::test]
async fn each_event_is_proved_by_the_public_key_alone_and_no_changed_proof_is_good() {
    let folder = tempfile::tempdir().unwrap();
    log_of(folder.path(), 40).await;
    let (signer, note) = signed(folder.path(), 45);
    let key = signer.public_key();
    let checkpoint = key.check(&note).unwrap();
    let events = all(&open_again(folder.path())).await;
    for event in &events {
        for which in [Which::Position(event.position), Which::Sequence(event.stream.clone(), event.sequence)]
        {
            let proof = Proof::make(folder.path(), &which, &note, &checkpoint).unwrap();
            let proof = Proof::of_text(&proof.to_text()).unwrap();
            assert_eq!(proof.check(&key).unwrap().event, *event);
        }
    }
    let proof = Proof::make(folder.path(), &Which::Position(Position(17)), &note, &checkpoint).unwrap();
    let text = proof.to_text();
    let mut refused = 0;
    for at in 0..text.len() {
        let mut bad = text.clone().into_bytes();
        bad[at] ^= 1;
        let Ok(bad) = String::from_utf8(bad) else { continue };
        // White space between fields says nothing.
        if Proof::of_text(&bad).is_ok_and(|bad| bad == proof) {
            continue;
        }
        let checked = Proof::of_text(&bad).and_then(|bad| bad.check(&key));
        assert!(checked.is_err(), "byte {at}: {bad}");
        refused += 1;
    }
    println!("{} events proved, {refused} changed proofs refused", events.len());
    let other = Signer::new(signer.name().to_owned(), &[6; 32]).public_key();
    assert!(matches!(proof.check(&other), Err(ProofError::Checkpoint(_))));
    let beyond = Proof::make(folder.path(), &Which::Position(Position(46)), &note, &checkpoint);
    assert!(matches!(beyond, Err(ProofError::NotCovered { .. })));
    let beyond = Which::Sequence(space(1), Sequence(900));
    assert!(matches!(
        Proof::make(folder.path(), &beyond, &note, &checkpoint),
        Err(ProofError::NoSuchEvent { .. })
    ));
}

fn open_again(folder: &Path) -> SegmentLog {
    SegmentLog::open(tiny(folder)).unwrap()
}

#[tokio::test]
async fn no_proof_is_made_of_another_log_than_the_one_that_was_signed() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    log_of(one.path(), 10).await;
    log_of(other.path(), 11).await;
    let (signer, note) = signed(one.path(), 15);
    let checkpoint = signer.public_key().check(&note).unwrap();
    let made = Proof::make(other.path(), &Which::Position(Position(3)), &note, &checkpoint);
    assert!(matches!(made, Err(ProofError::OtherLog(_))));
}

#[tokio::test]
async fn both_exports_come_back_byte_for_byte_and_a_changed_one_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    log_of(folder.path(), 40).await;
    assert!(segments(folder.path()).len() > 2);
    for format in [Format::Lines, Format::Binary] {
        let mut text = Vec::new();
        let exported = export(folder.path(), format, &Selection::default(), &mut text).unwrap();
        assert_eq!((exported.events, exported.head, exported.whole), (45, Position(45), true));
        let target = tempfile::tempdir().unwrap();
        let log = target.path().join("log");
        let moved = import(&mut BufReader::new(&text[..]), &log).unwrap();
        assert_eq!((moved.head, moved.global), (exported.head, exported.global));
        same_bytes(folder.path(), &log);
        let again = import(&mut BufReader::new(&text[..]), &log);
        assert!(matches!(again, Err(TransferError::NotEmpty(_))));
        let mut refused = 0;
        for at in (0..text.len()).step_by(97) {
            let mut bad = text.clone();
            bad[at] ^= 1;
            let log = target.path().join("other");
            // Fields that say what an export is about, and not what is in it.
            if import(&mut BufReader::new(&bad[..]), &log).is_ok() {
                same_bytes(folder.path(), &log);
                fs::remove_dir_all(&log).unwrap();
                continue;
            }
            assert!(!log.exists(), "byte {at}");
            refused += 1;
        }
        for cut in [1, 40, text.len() / 2, text.len() - 1] {
            let log = target.path().join("cut");
            assert!(import(&mut BufReader::new(&text[..cut]), &log).is_err() && !log.exists());
        }
        let left: Vec<_> = fs::read_dir(target.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing but the log is left: {left:?}");
        println!("{format:?}: {refused} changed exports refused");
    }
}

#[tokio::test]
async fn a_part_of_a_log_is_exported_for_reading_and_a_prefix_ends_at_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    log_of(folder.path(), 10).await;
    let lines = |selection: &Selection| {
        let mut text = Vec::new();
        let exported = export(folder.path(), Format::Lines, selection, &mut text).unwrap();
        (exported, text)
    };
    let of_stream = Selection { stream: Some(space(1)), ..Selection::default() };
    let (exported, text) = lines(&of_stream);
    assert!(
        !exported.whole
            && exported.events == String::from_utf8_lossy(&text).matches("\"event\"").count() as u64
    );
    let refused = import(&mut BufReader::new(&text[..]), &folder.path().join("new"));
    assert!(matches!(refused, Err(TransferError::Line { line: 1, .. })), "{refused:?}");
    let range = Selection { from: Position(3), to: Position(5), stream: None };
    assert_eq!(lines(&range).0.events, 3);
    // The last batch holds five events; three of them are none.
    let prefix = Selection { to: Position(13), ..Selection::default() };
    let (exported, text) = lines(&prefix);
    assert_eq!((exported.head, exported.whole), (Position(10), true));
    let target = tempfile::tempdir().unwrap();
    let moved = import(&mut BufReader::new(&text[..]), &target.path().join("log")).unwrap();
    assert_eq!(moved.head, Position(10));
}

#[tokio::test]
async fn a_backup_beside_a_writer_is_whole_and_restores_to_any_batch() {
    let folder = tempfile::tempdir().unwrap();
    let (log_folder, target) = (folder.path().join("log"), folder.path().join("backup"));
    let log = SegmentLog::open(tiny(&log_folder)).unwrap();
    fill(&log, 0..40).await;
    let from = Backup { log: &log_folder, beside: Vec::new(), files: Vec::new() };
    let moved = backup(&from, &target).unwrap();
    assert_eq!(moved.head, Position(40));
    fill(&log, 40..60).await;
    assert!(check(&target.join("log"), &Options::default()).unwrap().is_whole());
    assert!(matches!(backup(&from, &target), Err(TransferError::NotEmpty(_))));
    for to in 1..=40 {
        let again = folder.path().join(format!("restored-{to}"));
        assert_eq!(restore(&target, &again, Position(to)).unwrap().head, Position(to));
        let restored = SegmentLog::open(tiny(&again.join("log"))).unwrap();
        assert_eq!(restored.durable_head().borrow().0, to);
        fill(&restored, 100..101).await;
        restored.close().await;
    }
    // What was done to the restored logs did nothing to the backup, nor the backup to the log.
    assert_eq!(check(&target.join("log"), &Options::default()).unwrap().head, Position(40));
    assert_eq!(check(&log_folder, &Options::default()).unwrap().head, Position(60));
    assert!(restore(&target, &folder.path().join("none"), Position(0)).is_ok());
}

#[tokio::test]
async fn a_repair_changes_nothing_until_it_is_accepted_and_keeps_what_it_cuts_off() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    fill(&log, 0..10).await;
    log.close().await;
    drop(log);
    assert_eq!(survey(folder.path(), Vec::new()).unwrap(), None, "nothing is wrong");
    let path = segments(folder.path()).pop().unwrap();
    let good = fs::read(&path).unwrap();
    // Inside of the fifth event.
    let events = (0..good.len()).filter(|at| good[*at..].starts_with(b"\xb5ev\x01"));
    let at = { events }.nth(4).unwrap() + 60;
    flip(&path, at);
    let bad = fs::read(&path).unwrap();
    assert!(SegmentLog::open(options(folder.path())).is_err(), "the start is refused");
    let loss = survey(folder.path(), Vec::new()).unwrap().unwrap();
    assert_eq!(fs::read(&path).unwrap(), bad, "a look changes nothing");
    assert!(!loss.is_contained && loss.head < Position(10) && loss.last_lost == Position(10), "{loss:?}");
    let readable: u64 = loss.streams.values().sum();
    assert_eq!(readable, 10 - loss.head.0 - 1, "all but the broken one");
    let kept = cut(folder.path(), &loss).unwrap();
    assert_eq!(fs::read(&kept[0]).unwrap(), bad, "the damaged file is kept as it was");
    assert_eq!(fs::read(&path).unwrap(), good[..fs::read(&path).unwrap().len()], "what is good stays");
    let log = open(folder.path());
    assert_eq!(*log.durable_head().borrow(), loss.head);
    fill(&log, 200..203).await;
    log.close().await;
    assert!(check(folder.path(), &Options::default()).unwrap().is_whole());
}

#[tokio::test]
async fn a_repair_of_sealed_damage_moves_the_later_segments_aside() {
    let folder = tempfile::tempdir().unwrap();
    log_of(folder.path(), 60).await;
    let files = segments(folder.path());
    flip(&files[1], 700);
    let loss = survey(folder.path(), Vec::new()).unwrap().unwrap();
    assert!(loss.is_contained, "a server starts with it");
    let kept = cut(folder.path(), &loss).unwrap();
    assert_eq!(kept.len(), files.len() - 1, "the damaged one and all later ones");
    assert_eq!(segments(folder.path()).len(), 2);
    let log = SegmentLog::open(tiny(folder.path())).unwrap();
    assert_eq!(*log.durable_head().borrow(), loss.head);
    assert_eq!(all(&log).await.len() as u64, loss.head.0);
}

#[tokio::test]
async fn a_cut_tail_that_a_view_knows_is_surveyed_as_lost() {
    let folder = tempfile::tempdir().unwrap();
    log_of(folder.path(), 5).await;
    let known = |position| Known { position, global: None, root: None, source: "a view".to_owned() };
    let loss = survey(folder.path(), vec![known(Position(14))]).unwrap().unwrap();
    assert_eq!(loss.fault.kind, FaultKind::CutTail);
    assert_eq!((loss.head, loss.last_lost, loss.bytes), (Position(10), Position(14), 0));
    assert_eq!(survey(folder.path(), vec![known(Position(10))]).unwrap(), None);
}

#[tokio::test]
async fn an_index_is_held_against_the_log_entry_by_entry() {
    let folder = tempfile::tempdir().unwrap();
    let look = || {
        let scratch = tempfile::tempdir().unwrap();
        check_index(folder.path(), scratch.path()).unwrap()
    };
    assert_eq!(look(), IndexReport::Absent);
    log_of(folder.path(), 60).await;
    SegmentLog::open(tiny(folder.path())).unwrap().close().await;
    let IndexReport::Fits { segments, of, entries } = look() else { panic!("{:?}", look()) };
    assert!(segments == of && of > 2 && entries > 10);
    let index = folder.path().join("index");
    let db = sled::open(&index).unwrap();
    let keys: Vec<sled::IVec> = db.iter().keys().map(Result::unwrap).collect();
    let mut noticed = 0;
    for key in keys {
        let was = db.remove(&key).unwrap().unwrap();
        let mut other = was.to_vec();
        other[0] ^= 1;
        for change in [None, Some(other)] {
            if let Some(change) = &change {
                db.insert(&key, change.as_slice()).unwrap();
            }
            db.flush().unwrap();
            assert!(!matches!(look(), IndexReport::Fits { segments, .. } if segments == of), "{key:?}");
            noticed += 1;
            if noticed > 60 {
                return println!("{noticed} changes of the index noticed");
            }
        }
        db.insert(&key, was).unwrap();
    }
}
