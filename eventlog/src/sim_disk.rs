//! A disk that loses what was not synced: for tests of the log and of what is built on it.
//!
//! It lies over a real folder, which is what the page cache would hold: readers read it as ever. Beside it stands what
//! the platters hold. A process that is killed leaves the first; a power cut leaves the second, and of what lies between
//! the two any part, sector by sector:
//!
//! ```text
//!           append                sync                     sync_folder
//!  process ───────► page cache ──────────► platters  name ─────────────► platters
//!                       │ power cut: each sector written or not, the length anything between, the name there or not
//!                       └───────────────────────► platters
//! ```
//!
//! What is chosen comes from a seed, so a run can be repeated exactly.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::segment::disk::{Disk, DiskFile};

/// What a disk writes as a whole.
pub const SECTOR_BYTES: usize = 512;

/// What a coming operation of the disk meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// The power fails in the middle of it.
    PowerCut,
    /// It fails as a broken disk does. After half of a write; a sync makes nothing durable.
    Broken,
    /// There is no room for it, as [`Broken`](Self::Broken) otherwise.
    Full,
}

impl DiskFault {
    fn error(self) -> io::Error {
        match self {
            Self::PowerCut => io::Error::other("the power is off"),
            Self::Broken => io::Error::other("the disk is broken"),
            Self::Full => io::ErrorKind::StorageFull.into(),
        }
    }
}

/// What became of the bytes that a power cut found unsynced, over all cuts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CutCounts {
    /// Power cuts.
    pub cuts: u64,
    /// Files that had something unsynced.
    pub files: u64,
    /// Sectors that were there after it.
    pub sectors_kept: u64,
    /// Sectors that were not.
    pub sectors_lost: u64,
    /// Files whose name was not there after it.
    pub names_lost: u64,
}

/// The disk. Cheap to clone; every clone is the same disk.
#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<State>>);

struct State {
    random: StdRng,
    /// What the platters hold of each file that was opened for writing.
    platters: BTreeMap<PathBuf, Vec<u8>>,
    /// Files whose name is in no synced folder.
    unnamed: BTreeSet<PathBuf>,
    fault: Option<(u64, DiskFault)>,
    off: bool,
    free_bytes: u64,
    counts: CutCounts,
}

impl SimDisk {
    /// A disk that is well.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: StdRng::seed_from_u64(seed),
            platters: BTreeMap::new(),
            unnamed: BTreeSet::new(),
            fault: None,
            off: false,
            free_bytes: u64::MAX,
            counts: CutCounts::default(),
        })))
    }

    /// Lets the operation number `nth` from now (1 = the next write or sync) meet this fault.
    pub fn fail(&self, nth: u64, fault: DiskFault) {
        self.0.lock().fault = Some((nth, fault));
    }

    /// Takes back a fault that has not come yet.
    pub fn heal(&self) {
        self.0.lock().fault = None;
    }

    /// Says that so much is free from now on.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.0.lock().free_bytes = bytes;
    }

    /// Whether the power is off: nothing that was asked since was done.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.0.lock().off
    }

    /// Turns the power off: every later operation fails.
    pub fn turn_off(&self) {
        self.0.lock().off = true;
    }

    /// What a machine finds that is started again after its power failed. Nobody may have the files open for writing.
    ///
    /// # Errors
    /// The real folder can't be written.
    pub fn power_cut(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.counts.cuts += 1;
        let paths: Vec<PathBuf> = state.platters.keys().cloned().collect();
        for path in paths {
            state.cut(&path)?;
        }
        (state.off, state.fault) = (false, None);
        Ok(())
    }

    /// What a machine finds whose process was killed: everything that was written, synced or not.
    pub fn process_killed(&self) {
        let mut state = self.0.lock();
        (state.off, state.fault) = (false, None);
    }

    /// What all power cuts so far came to.
    #[must_use]
    pub fn counts(&self) -> CutCounts {
        self.0.lock().counts
    }
}

impl State {
    /// Counts one operation and tells what it meets.
    fn operate(&mut self) -> Result<(), DiskFault> {
        if self.off {
            return Err(DiskFault::PowerCut);
        }
        let Some((nth, fault)) = &mut self.fault else { return Ok(()) };
        *nth = nth.saturating_sub(1);
        if *nth > 0 {
            return Ok(());
        }
        let fault = *fault;
        self.fault = None;
        self.off = fault == DiskFault::PowerCut;
        Err(fault)
    }

    /// Makes the real file what the platters hold of it after a power cut.
    fn cut(&mut self, path: &Path) -> io::Result<()> {
        if self.unnamed.contains(path) && self.random.random_bool(0.5) {
            self.counts.names_lost += 1;
            self.platters.remove(path);
            self.unnamed.remove(path);
            return fs::remove_file(path);
        }
        self.unnamed.remove(path);
        let cached = fs::read(path)?;
        let platter = self.platters.get(path).cloned().unwrap_or_default();
        if cached == platter {
            return Ok(());
        }
        self.counts.files += 1;
        let after = match self.random.random_range(0..4) {
            0 => platter,
            1 => cached,
            _ => self.mix(&platter, &cached),
        };
        fs::write(path, &after)?;
        self.platters.insert(path.to_owned(), after);
        Ok(())
    }

    /// A length between the two, and of each sector the one or the other.
    fn mix(&mut self, platter: &[u8], cached: &[u8]) -> Vec<u8> {
        let (shorter, longer) = (platter.len().min(cached.len()), platter.len().max(cached.len()));
        let mut length = self.random.random_range(shorter..=longer);
        if self.random.random_bool(0.5) {
            length = length.next_multiple_of(SECTOR_BYTES).min(longer);
        }
        let mut after = vec![0; length];
        for start in (0..length).step_by(SECTOR_BYTES) {
            let end = (start + SECTOR_BYTES).min(length);
            let of = |bytes: &[u8]| bytes.get(start..end.min(bytes.len())).unwrap_or_default().to_vec();
            let (old, new) = (of(platter), of(cached));
            if old == new {
                after[start..start + old.len()].copy_from_slice(&old);
                continue;
            }
            let kept = self.random.random_bool(0.5);
            *(if kept { &mut self.counts.sectors_kept } else { &mut self.counts.sectors_lost }) += 1;
            let sector = if kept { new } else { old };
            after[start..start + sector.len()].copy_from_slice(&sector);
        }
        after
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, length: u64) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.0.lock();
        if state.off {
            return Err(DiskFault::PowerCut.error());
        }
        let is_new = !path.exists();
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        if is_new {
            state.unnamed.insert(path.to_owned());
            state.platters.insert(path.to_owned(), Vec::new());
        } else if !state.platters.contains_key(path) {
            // Written before this disk was: it lies where it lies.
            state.platters.insert(path.to_owned(), fs::read(path)?);
        }
        file.set_len(length)?;
        Ok(Box::new(SimFile { disk: self.clone(), path: path.to_owned(), file, length }))
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.operate().map_err(DiskFault::error)?;
        state.platters.insert(path.to_owned(), fs::read(path)?);
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.operate().map_err(DiskFault::error)?;
        state.unnamed.retain(|path| path.parent() != Some(folder));
        Ok(())
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.0.lock().free_bytes)
    }
}

struct SimFile {
    disk: SimDisk,
    path: PathBuf,
    file: fs::File,
    length: u64,
}

impl SimFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        self.file.flush()
    }
}

impl DiskFile for SimFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (was_off, met) = {
            let mut state = self.disk.0.lock();
            (state.off, state.operate())
        };
        match met {
            Ok(()) => self.write(bytes),
            Err(fault) if was_off => Err(fault.error()),
            Err(fault) => {
                self.write(&bytes[..bytes.len() / 2])?;
                Err(fault.error())
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        state.operate().map_err(DiskFault::error)?;
        let cached = fs::read(&self.path)?;
        state.platters.insert(self.path.clone(), cached);
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.disk.0.lock().operate().map_err(DiskFault::error)?;
        self.file.set_len(length)?;
        self.length = length;
        Ok(())
    }
}
