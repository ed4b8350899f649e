//! What the log makes of a disk that fails: never an acknowledgement that may not hold.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use eventlog::{
    AppendError, Appended, EventLog, OpenOptions, Position, SegmentLog,
    segment::disk::{Disk, DiskFile, RealDisk},
};
use parking_lot::Mutex;
use support::{all, ask, fill, open, options, tiny};

mod support;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failing {
    Nothing,
    /// A sync fails once; the bytes are there.
    Sync,
    /// A write fails with this after half of its bytes.
    Write(io::ErrorKind),
    /// As `Write`, and the half cannot be cut off.
    WriteAndCut(io::ErrorKind),
}

/// A real disk that fails on demand.
#[derive(Clone)]
struct Faulty {
    failing: Arc<Mutex<Failing>>,
    free: Arc<AtomicU64>,
}

impl Faulty {
    fn new() -> Self {
        Self { failing: Arc::new(Mutex::new(Failing::Nothing)), free: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    fn options(&self, options: OpenOptions) -> OpenOptions {
        OpenOptions { disk: Arc::new(self.clone()), free_bytes_min: 1_000, ..options }
    }

    fn fail(&self, failing: Failing) {
        *self.failing.lock() = failing;
    }
}

impl Disk for Faulty {
    fn open(&self, path: &Path, length: u64) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(FaultyFile { file: RealDisk.open(path, length)?, failing: Arc::clone(&self.failing) }))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        RealDisk.sync_folder(folder)
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.free.load(Ordering::SeqCst))
    }
}

struct FaultyFile {
    file: Box<dyn DiskFile>,
    failing: Arc<Mutex<Failing>>,
}

impl DiskFile for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let failing = *self.failing.lock();
        match failing {
            Failing::Write(kind) | Failing::WriteAndCut(kind) => {
                self.file.append(&bytes[..bytes.len() / 2])?;
                Err(kind.into())
            }
            Failing::Nothing | Failing::Sync => self.file.append(bytes),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut failing = self.failing.lock();
        if *failing == Failing::Sync {
            *failing = Failing::Nothing;
            return Err(io::Error::other("the disk lost a page"));
        }
        self.file.sync()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        match *self.failing.lock() {
            Failing::WriteAndCut(kind) => Err(kind.into()),
            _ => self.file.truncate(length),
        }
    }
}

async fn opened(disk: &Faulty) -> (tempfile::TempDir, SegmentLog) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SegmentLog::open(disk.options(options(folder.path()))).expect("it opens");
    fill(&log, 0..3).await;
    (folder, log)
}

#[track_caller]
fn assert_unavailable(answer: &Result<Appended, AppendError>) {
    assert!(matches!(answer, Err(AppendError::Unavailable(_))), "{answer:?}");
}

#[tokio::test]
async fn a_failed_sync_poisons_the_log_and_is_never_tried_again() {
    let disk = Faulty::new();
    let (folder, log) = opened(&disk).await;
    disk.fail(Failing::Sync);
    assert!(matches!(ask(&log, 3).await, Err(AppendError::Unknown)));
    // The disk is well again, and still nothing is acknowledged.
    assert_unavailable(&ask(&log, 4).await);
    assert_unavailable(&ask(&log, 0).await);
    assert!(log.check_writable().is_err());
    assert_eq!(*log.durable_head().borrow(), Position(3), "what is unknown is not told");
    assert_eq!(all(&log).await.len(), 3, "reads stay");
    log.close().await;
    // The same id settles it: here the bytes were there.
    let log = open(folder.path());
    assert!(matches!(ask(&log, 3).await, Ok(Appended::Duplicate { same: true, .. })));
    assert!(matches!(ask(&log, 4).await, Ok(Appended::Stored(_))));
}

#[tokio::test]
async fn a_failed_write_poisons_the_log_and_its_half_is_cut_at_the_next_open() {
    let disk = Faulty::new();
    let (folder, log) = opened(&disk).await;
    disk.fail(Failing::Write(io::ErrorKind::Other));
    assert!(matches!(ask(&log, 3).await, Err(AppendError::Unknown)));
    disk.fail(Failing::Nothing);
    assert_unavailable(&ask(&log, 4).await);
    log.close().await;
    let log = open(folder.path());
    assert!(matches!(ask(&log, 3).await, Ok(Appended::Stored(stored)) if stored.first == Position(4)));
}

#[tokio::test]
async fn a_full_disk_refuses_appends_keeps_reads_and_goes_on_when_there_is_room() {
    let disk = Faulty::new();
    let (folder, log) = opened(&disk).await;
    disk.fail(Failing::Write(io::ErrorKind::StorageFull));
    let full = 5_000;
    disk.free.store(full, Ordering::SeqCst);
    assert!(log.check_writable().is_ok(), "nobody has met the full disk yet");
    assert_unavailable(&ask(&log, 3).await);
    assert_eq!(all(&log).await.len(), 3);
    let refused =
        || matches!(log.check_writable(), Err(AppendError::Unavailable(why)) if why.contains("full"));
    assert!(refused() && refused(), "it is told as long as it lasts");
    disk.free.store(full + 10_000_000, Ordering::SeqCst);
    assert!(!refused(), "room is noticed without an append");
    disk.free.store(full, Ordering::SeqCst);
    assert_unavailable(&ask(&log, 3).await);
    assert!(refused());
    disk.fail(Failing::Nothing);
    assert!(matches!(ask(&log, 3).await, Ok(Appended::Stored(stored)) if stored.first == Position(4)));
    assert!(!refused(), "an append that was taken says that there is room");
    log.close().await;
    assert_eq!(all(&open(folder.path())).await.len(), 4);
}

#[tokio::test]
async fn a_full_disk_whose_half_written_batch_cannot_be_cut_off_poisons() {
    let disk = Faulty::new();
    let (_folder, log) = opened(&disk).await;
    disk.fail(Failing::WriteAndCut(io::ErrorKind::StorageFull));
    assert!(matches!(ask(&log, 3).await, Err(AppendError::Unknown)));
    disk.fail(Failing::Nothing);
    assert_unavailable(&ask(&log, 4).await);
}

#[tokio::test]
async fn appends_are_refused_below_the_threshold_of_free_space_and_not_above() {
    let disk = Faulty::new();
    let (_folder, log) = opened(&disk).await;
    disk.free.store(999, Ordering::SeqCst);
    assert!(
        matches!(log.check_writable(), Err(AppendError::Unavailable(why)) if why.contains("nearly full"))
    );
    assert_unavailable(&ask(&log, 3).await);
    assert_eq!(all(&log).await.len(), 3);
    disk.free.store(1_000, Ordering::SeqCst);
    assert!(log.check_writable().is_ok());
    assert!(matches!(ask(&log, 3).await, Ok(Appended::Stored(_))));
}

#[tokio::test]
async fn a_fault_while_a_segment_is_sealed_loses_nothing_that_was_acknowledged() {
    for failing in [Failing::Sync, Failing::Write(io::ErrorKind::StorageFull)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let disk = Faulty::new();
        let log = SegmentLog::open(disk.options(tiny(folder.path()))).expect("it opens");
        fill(&log, 0..10).await;
        let mut stored = 10;
        // Whichever of the next appends meets the fault, sealing or not, the acknowledged ones stand.
        for n in 10..40 {
            if n == 22 {
                disk.fail(failing);
            }
            if let Ok(Appended::Stored(_)) = ask(&log, n).await {
                stored += 1;
            }
        }
        disk.fail(Failing::Nothing);
        log.close().await;
        let log = SegmentLog::open(tiny(folder.path())).expect("it opens");
        let kept = all(&log).await.len();
        assert!(kept >= stored, "{kept} of {stored} are there");
    }
}
