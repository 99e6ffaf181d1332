//! The operating system's file system as a [`Disk`].
//!
//! One directory, held by an exclusive lock for as long as the [`RealDisk`] lives, so that no second process (and no
//! second engine of this one) writes the same files. Reads and writes are positioned and retried where the kernel
//! interrupts or shortens them; a sync is fdatasync, which also commits a changed length.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FlockOperation};

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
    _lock: File,
}

struct RealFile(File);

/// The kernel takes no more pieces in one call.
const PIECES_MOST: usize = 1024;

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
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(dir.join(LOCK_NAME))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
            let kind = io::Error::from(errno).kind();
            io::Error::new(kind, format!("directory {} is in use by another process: {errno}", dir.display()))
        })?;
        let handle = File::open(&dir)?;
        Ok(Arc::new(RealDisk { dir, handle, _lock: lock }))
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        check_name(name)?;
        Ok(self.dir.join(name))
    }
}

impl Disk for RealDisk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).open(self.path(name)?)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(self.path(name)?)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from)?, self.path(to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(name)?)
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

    fn write_vectored_at(&self, mut parts: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let most = parts.len().min(PIECES_MOST);
            match rustix::io::pwritev(&self.0, &parts[..most], offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    offset += written as u64;
                    IoSlice::advance_slices(&mut parts, written);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        let have = self.len()?;
        if have >= len {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), have, len - have) {
            // A file system without it takes the space as it is written to.
            Err(rustix::io::Errno::OPNOTSUPP) => self.set_len(len),
            outcome => outcome.map_err(io::Error::from),
        }
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
