//! What the tests of the log on disk share.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::{fs, path::Path, path::PathBuf};

use eventlog::{
    AppendError, Appended, EventLog, OpenError, OpenOptions, Position, RecordedEvent, SegmentLog, Stored,
    fixture::{append, command, recovered, space},
};
use futures::TryStreamExt;

/// So small that every few appends seal a segment.
pub const TINY_SEGMENT_BYTES: u64 = 4 * 1024;

pub fn options(folder: &Path) -> OpenOptions {
    OpenOptions { free_bytes_min: 0, ..OpenOptions::new(folder) }
}

pub fn tiny(folder: &Path) -> OpenOptions {
    OpenOptions { segment_bytes: TINY_SEGMENT_BYTES, ..options(folder) }
}

pub fn open(folder: &Path) -> SegmentLog {
    SegmentLog::open(options(folder)).expect("the log opens")
}

#[track_caller]
pub fn expect_damaged(answer: Result<SegmentLog, OpenError>) -> (PathBuf, u64, String) {
    match answer {
        Err(OpenError::Damaged { file, offset, what }) => (file, offset, what),
        Err(other) => panic!("not damaged, but: {other}"),
        Ok(_) => panic!("it opened"),
    }
}

pub async fn ask(log: &impl EventLog, n: u64) -> Result<Appended, AppendError> {
    log.append(append(command(n), space(n % 3), vec![recovered(n)])).await
}

pub async fn fill(log: &impl EventLog, appends: std::ops::Range<u64>) -> Vec<Stored> {
    let mut all = Vec::new();
    for n in appends {
        match ask(log, n).await {
            Ok(Appended::Stored(stored)) => all.push(stored),
            other => panic!("append {n}: {other:?}"),
        }
    }
    all
}

pub async fn all(log: &impl EventLog) -> Vec<RecordedEvent> {
    log.read_all(Position(1)).try_collect().await.expect("the log reads")
}

/// `docs/log-format.md`: what precedes the frames of a segment, and the body of a frame.
pub const FILE_HEADER_BYTES: usize = 64;
pub const FRAME_HEADER_BYTES: usize = 12;

/// The segment files, first to last.
pub fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder lists");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it lists").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    paths.sort();
    paths
}

pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("it is made");
    for entry in fs::read_dir(from).expect("it lists") {
        let entry = entry.expect("it lists");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("it has a type").is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("it copies");
        }
    }
}

pub fn flip(path: &Path, offset: usize) {
    let mut bytes = fs::read(path).expect("it reads");
    bytes[offset] ^= 0x10;
    fs::write(path, bytes).expect("it writes");
}

/// Where each frame of a segment begins, and its bytes: magic, length, checksum, body.
pub fn frames(segment: &[u8]) -> Vec<(usize, &[u8])> {
    let mut frames = Vec::new();
    let mut at = FILE_HEADER_BYTES;
    while let Some(length) = segment.get(at + 4..at + 8) {
        let body = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        frames.push((at, &segment[at..at + FRAME_HEADER_BYTES + body]));
        at += FRAME_HEADER_BYTES + body;
    }
    frames
}
