//! The operating system's file system as a [`Disk`].
//!
//! A [`RealDisk`] holds an exclusive lock on its directory for its whole life: no second process, and no second engine
//! of this process, writes the same files. A directory opened read-only is never written.
//!
//! Reads and writes are positioned. Every call is retried if a signal interrupts it, and continued if the kernel does
//! only part of it. The standard library does the same for its calls, except renames and removals: an error of these
//! does not tell the outcome, and the caller checks it. A sync is fdatasync, which also commits a changed length.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, FallocateFlags, FlockOperation};
use rustix::io::{Errno, ReadWriteFlags};

use super::{Disk, DiskFile, LOCK_NAME, check_name};

/// A locked directory of the operating system.
#[derive(Debug)]
pub struct RealDisk {
    dir: PathBuf,
    /// Open only for `sync_dir`.
    handle: File,
    /// Holds the lock. The kernel releases it when the file is closed, also when the process dies.
    _lock: Option<File>,
    read_only: bool,
}

struct RealFile(File);

/// The most slices that the kernel takes in one call (IOV_MAX).
const MAX_SLICES: usize = 1024;

/// The smallest page size. With larger pages, some pages at the edges of a range stay cached.
const PAGE: u64 = 4096;

impl RealDisk {
    /// Opens `dir`, creating it if it does not exist, and locks it. Fails with `WouldBlock`, naming the directory, if
    /// the lock is taken.
    pub fn open(dir: impl AsRef<Path>) -> io::Result<Arc<RealDisk>> {
        let dir = dir.as_ref().to_path_buf();
        let missing: Vec<&Path> =
            dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()).collect();
        if !missing.is_empty() {
            std::fs::create_dir_all(&dir)?;
            missing.into_iter().try_for_each(sync_parent)?;
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(dir.join(LOCK_NAME))?;
        let lock = Some(lock(file, &dir)?);
        let handle = File::open(&dir)?;
        Ok(Arc::new(RealDisk { dir, handle, _lock: lock, read_only: false }))
    }

    /// Opens `dir`, which must exist, read-only: creations, renames, removals and writes are refused. Fails with
    /// `WouldBlock`, naming the directory, if the lock is taken. A directory without a lock file (never opened before,
    /// or a copy) is read without a lock; nothing is created in it.
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

    /// The path of a file to change. Fails if the directory is read-only.
    fn path_to_change(&self, name: &str) -> io::Result<PathBuf> {
        self.writable()?;
        self.path(name)
    }

    fn writable(&self) -> io::Result<()> {
        if !self.read_only {
            return Ok(());
        }
        let what = format!("directory {} is open read-only", self.dir.display());
        Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, what))
    }
}

/// Takes the lock of `dir`.
fn lock(file: File, dir: &Path) -> io::Result<File> {
    retry_interrupted(|| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)).map_err(|errno| {
        let kind = io::Error::from(errno).kind();
        io::Error::new(kind, format!("directory {} is in use by another process: {errno}", dir.display()))
    })?;
    Ok(file)
}

/// Repeats a call while signals interrupt it.
fn retry_interrupted<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            outcome => return outcome,
        }
    }
}

/// Reserves space. If the kernel or the file system does not support that, only extends the file: later writes allocate
/// the space.
fn reserve_space(
    allocate: impl FnMut() -> Result<(), Errno>,
    extend: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    match retry_interrupted(allocate) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => extend(),
        outcome => outcome.map_err(io::Error::from),
    }
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

    fn free_bytes(&self) -> io::Result<u64> {
        let system = rustix::fs::fstatvfs(&self.handle)?;
        Ok(system.f_bavail.saturating_mul(system.f_frsize))
    }
}

/// Starts the write-back of a part of a file. The call waits only for a place in the device queue. With this flag alone
/// it does not consume write errors: the next sync reports them.
#[expect(unsafe_code, reason = "there is no safe binding of sync_file_range")]
fn write_back(file: &File, offset: u64, len: u64) {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else { return };
    // SAFETY: the descriptor is open for as long as `file` is borrowed, and the call touches no memory of ours.
    // Advisory: the sync writes the rest.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Makes the name of a directory durable in its parent.
fn sync_parent(dir: &Path) -> io::Result<()> {
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

impl DiskFile for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }

    fn read_cached_at(&self, buf: &mut [u8], offset: u64) -> io::Result<bool> {
        match rustix::io::preadv2(&self.0, &mut [IoSliceMut::new(buf)], offset, ReadWriteFlags::NOWAIT) {
            Ok(read) if read == buf.len() => Ok(true),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            // The file system does not support NOWAIT.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.read_at(buf, offset).map(|()| true),
            Err(errno) => Err(errno.into()),
        }
    }

    fn prefetch(&self, offset: u64, len: u64) {
        // Advisory: on an error the later read does the work.
        let _ = rustix::fs::fadvise(&self.0, offset, NonZeroU64::new(len), Advice::WillNeed);
    }

    fn start_writeback(&self, offset: u64, len: u64) {
        write_back(&self.0, offset, len);
    }

    fn drop_cached(&self, offset: u64, len: u64) {
        // The kernel drops whole pages only. No length means to the end of the file.
        let from = offset - offset % PAGE;
        let to = offset.saturating_add(len).checked_next_multiple_of(PAGE).filter(|to| i64::try_from(*to).is_ok());
        if len > 0 {
            // Advisory: on an error the pages stay cached.
            let _ = rustix::fs::fadvise(&self.0, from, to.and_then(|to| NonZeroU64::new(to - from)), Advice::DontNeed);
        }
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn write_vectored_at(&self, mut parts: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let count = parts.len().min(MAX_SLICES);
            match retry_interrupted(|| rustix::io::pwritev(&self.0, &parts[..count], offset))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => {
                    offset += written as u64;
                    IoSlice::advance_slices(&mut parts, written);
                }
            }
        }
        Ok(())
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        let have = self.len()?;
        if have >= len {
            return Ok(());
        }
        let allocate = || rustix::fs::fallocate(&self.0, FallocateFlags::empty(), have, len - have);
        reserve_space(allocate, || self.set_len(len))
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

    fn links(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.nlink())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that fails with each of `errnos` in turn, and succeeds after them.
    fn failing_with(errnos: &'static [Errno]) -> impl FnMut() -> Result<(), Errno> {
        let mut left = errnos.iter();
        move || left.next().map_or(Ok(()), |errno| Err(*errno))
    }

    #[test]
    fn reserving_space_retries_interrupts_and_falls_back_to_extending() {
        for (errnos, extended, error) in [
            (&[][..], false, None),
            (&[Errno::INTR, Errno::INTR], false, None),
            (&[Errno::OPNOTSUPP], true, None),
            (&[Errno::INTR, Errno::NOSYS], true, None),
            (&[Errno::INTR, Errno::NOSPC], false, Some(io::ErrorKind::StorageFull)),
            (&[Errno::IO], false, Some(io::Error::from(Errno::IO).kind())),
        ] {
            let mut was_extended = false;
            let outcome = reserve_space(failing_with(errnos), || {
                was_extended = true;
                Ok(())
            });
            assert_eq!((was_extended, outcome.err().map(|error| error.kind())), (extended, error), "{errnos:?}");
        }
    }
}
