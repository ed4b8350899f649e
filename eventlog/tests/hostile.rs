//! Bytes from anywhere: every reader of the log, of checkpoints, of proofs and of exports answers with an error, never with
//! a panic, and holds no more memory than what it was given is long.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod support;

use std::{fs, io::BufReader, sync::LazyLock};

use eventlog::{
    EventLog, SegmentLog, SegmentReader, StreamKind,
    checkpoint::{NOTE_BYTES_MAX, PublicKey, Signer, notes},
    codec::decode_event,
    proof::Proof,
    repair::survey,
    transfer::{Format, Selection, export, import},
    verify::{Options, check},
};
use proptest::{collection::vec, prelude::*, sample::Index};
use support::{fill, options, segments};

/// A good segment, and good exports of it.
struct Good {
    segment: Vec<u8>,
    lines: Vec<u8>,
    binary: Vec<u8>,
}

static GOOD: LazyLock<Good> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let log = SegmentLog::open(options(folder.path())).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        fill(&log, 0..6).await;
        log.close().await;
    });
    let exported = |format| {
        let mut bytes = Vec::new();
        export(folder.path(), format, &Selection::default(), &mut bytes).unwrap();
        bytes
    };
    let segment = fs::read(segments(folder.path()).pop().unwrap()).unwrap();
    Good { segment, lines: exported(Format::Lines), binary: exported(Format::Binary) }
});

fn key() -> PublicKey {
    Signer::new("browserspace-0011223344556677".to_owned(), &[7; 32]).public_key()
}

/// Good bytes with pieces of anything put over them.
fn spoiled(good: &[u8], pieces: &[(Index, Vec<u8>)], cut: Index) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for (at, piece) in pieces {
        let at = at.index(bytes.len());
        let end = (at + piece.len()).min(bytes.len());
        bytes[at..end].copy_from_slice(&piece[..end - at]);
    }
    bytes.truncate(cut.index(bytes.len() * 4).max(bytes.len() / 8));
    bytes
}

fn pieces() -> impl Strategy<Value = Vec<(Index, Vec<u8>)>> {
    vec((any::<Index>(), vec(any::<u8>(), 1..24)), 0..6)
}

/// Every reader of a folder.
fn read_all(segment: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seg-00000000000000000001.log");
    fs::write(&path, segment).unwrap();
    let report = check(folder.path(), &Options { with_root: true, ..Options::default() }).unwrap();
    if let Ok(mut reader) = SegmentReader::open(folder.path()) {
        while let Ok(Some(_)) = reader.next_batch() {}
    }
    let _ = survey(folder.path(), Vec::new());
    let opened = SegmentLog::open(options(folder.path()));
    assert_eq!(opened.is_ok(), report.is_whole(), "{report:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_segment_of_anything_is_read_or_refused(bytes in vec(any::<u8>(), 0..2048)) {
        read_all(&bytes);
        read_all(&[&GOOD.segment[..64], &bytes].concat());
    }

    #[test]
    fn a_spoiled_segment_is_read_or_refused(pieces in pieces(), cut in any::<Index>()) {
        read_all(&spoiled(&GOOD.segment, &pieces, cut));
    }

    #[test]
    fn a_payload_of_anything_is_an_event_or_an_error(
        stream in prop::sample::select(vec![StreamKind::Space, StreamKind::Instance, StreamKind::Workspace, StreamKind::Server]),
        kind in prop::sample::select(vec!["opened", "queued", "completed", "registered", "token_issued", "repaired", "new"]),
        schema in 0_u16..4,
        payload in vec(any::<u8>(), 0..512),
    ) {
        let _ = decode_event(stream, kind, schema, &payload);
        // A length of four gigabytes in front of nothing.
        let claims = [&[0xc6, 0xff, 0xff, 0xff, 0xff][..], &payload].concat();
        let _ = decode_event(stream, kind, schema, &claims);
        let _ = decode_event(stream, kind, schema, &[&[0xdf, 0xff, 0xff, 0xff, 0xff][..], &payload].concat());
    }

    #[test]
    fn a_text_of_anything_is_no_checkpoint_no_key_and_no_proof(text in "(\\PC|\n|— ){0,300}") {
        prop_assert!(key().check(&text).is_err());
        prop_assert!(text.parse::<PublicKey>().is_err());
        prop_assert!(Proof::of_text(&text).is_err());
        let _ = notes(&text);
        let _ = notes(&format!("{text}\n\n— a b\n{text}"));
    }

    #[test]
    fn a_spoiled_export_is_the_same_log_or_nothing(pieces in pieces(), cut in any::<Index>(), lines in any::<bool>()) {
        let good = if lines { &GOOD.lines } else { &GOOD.binary };
        let bytes = spoiled(good, &pieces, cut);
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        match import(&mut BufReader::new(&bytes[..]), &log) {
            Ok(_) => prop_assert_eq!(fs::read(segments(&log).pop().unwrap()).unwrap(), GOOD.segment.clone()),
            Err(_) => prop_assert!(!log.exists() && fs::read_dir(folder.path()).unwrap().next().is_none()),
        }
    }
}

#[test]
fn what_is_too_long_is_refused_before_it_is_read() {
    let long = "a".repeat(NOTE_BYTES_MAX + 1);
    assert!(key().check(&long).is_err());
    assert_eq!(notes(&format!("{long}\n")), Err(1));
    // A line without an end is read up to the longest that there may be, and no further.
    let folder = tempfile::tempdir().unwrap();
    let endless = std::io::repeat(b'a');
    assert!(import(&mut BufReader::new(endless), &folder.path().join("log")).is_err());
    // A segment that claims to be of any length.
    let claims = [
        &b"BSPACEXP"[..],
        &1_u32.to_le_bytes(),
        &1_u32.to_le_bytes(),
        &1_u64.to_le_bytes(),
        &u64::MAX.to_le_bytes(),
    ];
    assert!(import(&mut BufReader::new(&claims.concat()[..]), &folder.path().join("log")).is_err());
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}
