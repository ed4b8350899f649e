//! What the writer asks of a disk, as a trait, so that a test can let it fail. Reading needs none of it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// A folder's disk.
pub trait Disk: Send + Sync + 'static {
    /// Opens a file for appending at `length`, creating it if it is not there; what lies behind `length` is cut off.
    ///
    /// # Errors
    /// As the file system has them.
    fn open(&self, path: &Path, length: u64) -> io::Result<Box<dyn DiskFile>>;

    /// Makes durable what is in a file, whoever wrote it.
    ///
    /// # Errors
    /// As the file system has them.
    fn sync_file(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_data()
    }

    /// Makes the folder's list of names durable.
    ///
    /// # Errors
    /// As the file system has them.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// How many bytes an unprivileged process may still write there.
    ///
    /// # Errors
    /// As the file system has them.
    fn free_bytes(&self, folder: &Path) -> io::Result<u64>;
}

/// A file that grows at its end.
pub trait DiskFile: Send {
    /// Writes all bytes at the end.
    ///
    /// # Errors
    /// Any: part of the bytes may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes content and length durable.
    ///
    /// # Errors
    /// Any: nothing written since the last success can be trusted, and asking again proves nothing.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file to `length`.
    ///
    /// # Errors
    /// As the file system has them.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// The real disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, length: u64) -> io::Result<Box<dyn DiskFile>> {
        // The log is nobody else's to read.
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true).mode(0o600);
        let mut file = options.open(path)?;
        file.set_len(length)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Box::new(file))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn free_bytes(&self, folder: &Path) -> io::Result<u64> {
        let stats = rustix::fs::statvfs(folder)?;
        Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
    }
}

impl DiskFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }
}
