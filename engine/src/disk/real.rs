//! The operating system's file system as a [`Disk`].
//!
//! One directory, held by an exclusive lock for as long as the [`RealDisk`] lives, so that no second process (and no
//! second engine of this one) writes the same files. It can be opened to be read only: then nothing here writes, whatever is called. Reads and writes are positioned and retried where the kernel
//! interrupts or shortens them; a sync is fdatasync, which also commits a changed length.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FlockOperation;

use super::{Disk, DiskFile, check_name};

/// The file whose lock is the directory's; never listed and never opened by name.
pub(super) const LOCK_NAME: &str = "LOCK";

/// A locked directory of the operating system.
#[derive(Debug)]
pub struct RealDisk {
    dir: PathBuf,
    /// Open only for `sync_dir`.
    handle: File,
    /// Holds the lock; the kernel lets go of it when the file is closed, also when the process dies.
    _lock: Option<File>,
    read_only: bool,
}

struct RealFile(File);

impl RealDisk {
    /// Opens `dir`, creating it where it does not exist, and locks it. `WouldBlock`, naming the directory, when someone
    /// else holds the lock.
    pub fn open(dir: impl AsRef<Path>) -> io::Result<Arc<RealDisk>> {
        let dir = dir.as_ref().to_path_buf();
        if !dir.is_dir() {
            std::fs::create_dir_all(&dir)?;
            if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                File::open(parent)?.sync_all()?;
            }
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(dir.join(LOCK_NAME))?;
        let lock = Some(lock(file, &dir)?);
        let handle = File::open(&dir)?;
        Ok(Arc::new(RealDisk { dir, handle, _lock: lock, read_only: false }))
    }

    /// Opens `dir`, which must be there, to be read only: creations, renames and removals are refused, and files cannot be written.
    /// `WouldBlock`, naming the directory, when someone else holds its lock. A directory without a lock file is read without: it was
    /// never opened, or is a copy, and nothing is created in it.
    pub fn open_existing(dir: impl AsRef<Path>) -> io::Result<Arc<RealDisk>> {
        let dir = dir.as_ref().to_path_buf();
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
        let handle = File::open(&dir).map_err(named)?;
        if !handle.metadata().map_err(named)?.is_dir() {
            return Err(named(io::ErrorKind::NotADirectory.into()));
        }
        let lock = match File::open(dir.join(LOCK_NAME)) {
            Ok(file) => Some(lock(file, &dir)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(named(error)),
        };
        Ok(Arc::new(RealDisk { dir, handle, _lock: lock, read_only: true }))
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        check_name(name)?;
        Ok(self.dir.join(name))
    }

    /// The path of a file that is about to be changed.
    fn path_to_change(&self, name: &str) -> io::Result<PathBuf> {
        if self.read_only {
            let what = format!("directory {} is open to be read only", self.dir.display());
            return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, what));
        }
        self.path(name)
    }
}

/// Takes the lock of `dir`.
fn lock(file: File, dir: &Path) -> io::Result<File> {
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
        let kind = io::Error::from(errno).kind();
        io::Error::new(kind, format!("directory {} is in use by another process: {errno}", dir.display()))
    })?;
    Ok(file)
}

impl Disk for RealDisk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(!self.read_only).open(self.path(name)?)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(self.path_to_change(name)?)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path_to_change(from)?, self.path_to_change(to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path_to_change(name)?)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name != LOCK_NAME && entry.file_type()?.is_file() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}
