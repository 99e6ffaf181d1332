//! The operating system's file system as a [`Disk`].
//!
//! One directory, held by an exclusive lock for as long as the [`RealDisk`] lives, so that no second process (and no
//! second engine of this one) writes the same files. It can be opened to be read only: then nothing here writes, whatever is called.
//! Reads and writes are positioned, and every call is made again where the kernel interrupts it, or shortens it; a sync is fdatasync, which
//! also commits a changed length. (The standard library does so for its calls, but for renames, links and removals: of these an error tells
//! little about the outcome, and whoever made the call looks what is there.)

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Advice, FallocateFlags, FlockOperation};
use rustix::io::{Errno, ReadWriteFlags};

use super::{Disk, DiskCopy, DiskFile, check_name, partial_name};

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

/// The kernel takes no more pieces in one call.
const PIECES_MOST: usize = 1024;

/// No page of a kernel that this runs on is smaller; of larger ones some are kept that could have been let go of.
const PAGE: u64 = 4096;

/// A directory in the making. It has a lock file as any directory has, and takes it along when it gets its name.
struct RealCopy {
    source: PathBuf,
    staging: Arc<RealDisk>,
    path: PathBuf,
    published: bool,
}

impl RealDisk {
    /// Opens `dir`, creating it where it does not exist, and locks it. `WouldBlock`, naming the directory, when someone
    /// else holds the lock.
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
        self.writable()?;
        self.path(name)
    }

    fn writable(&self) -> io::Result<()> {
        if !self.read_only {
            return Ok(());
        }
        let what = format!("directory {} is open to be read only", self.dir.display());
        Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, what))
    }
}

/// Takes the lock of `dir`.
fn lock(file: File, dir: &Path) -> io::Result<File> {
    uninterrupted(|| rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)).map_err(|errno| {
        let kind = io::Error::from(errno).kind();
        io::Error::new(kind, format!("directory {} is in use by another process: {errno}", dir.display()))
    })?;
    Ok(file)
}

/// Makes a call until no signal interrupts it.
fn uninterrupted<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            outcome => return outcome,
        }
    }
}

/// Takes space; where kernel or file system have no such call the file is only extended, and takes the space as it is written to.
fn take_space(allocate: impl FnMut() -> Result<(), Errno>, extend: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    match uninterrupted(allocate) {
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

    fn begin_copy(&self, path: &Path) -> io::Result<Box<dyn DiskCopy>> {
        self.writable()?;
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("not a directory's name: {}", path.display()),
            ));
        };
        let partial = path.with_file_name(partial_name(name));
        let taken = |path: &Path| Err(io::Error::new(io::ErrorKind::AlreadyExists, path.display().to_string()));
        if !is_vacant(path)? {
            return taken(path);
        }
        // What an earlier copy left has a lock file; anything else is not ours to remove.
        if !is_vacant(&partial)? && !partial.join(LOCK_NAME).is_file() {
            return taken(&partial);
        }
        let staging = RealDisk::open(partial)?;
        let copy = RealCopy { source: self.dir.clone(), staging, path: path.to_path_buf(), published: false };
        copy.clear()?;
        Ok(Box::new(copy))
    }
}

impl RealCopy {
    fn clear(&self) -> io::Result<()> {
        self.staging.list()?.iter().try_for_each(|name| self.staging.remove(name))
    }

    fn discard(&self) -> io::Result<()> {
        self.clear()?;
        std::fs::remove_file(self.staging.dir.join(LOCK_NAME))?;
        std::fs::remove_dir(&self.staging.dir)
    }
}

impl DiskCopy for RealCopy {
    fn link(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        std::fs::hard_link(self.source.join(name), self.staging.path(name)?)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.staging.create(name)
    }

    fn publish(&mut self) -> io::Result<()> {
        self.staging.sync_dir()?;
        // In place of an empty directory, if there is one; the kernel refuses where it is not empty any more.
        std::fs::rename(&self.staging.dir, &self.path)?;
        self.published = true;
        sync_parent(&self.path)
    }
}

impl Drop for RealCopy {
    fn drop(&mut self) {
        if !self.published {
            // What cannot be removed now is removed by the next copy to the same place.
            drop(self.discard());
        }
    }
}

/// Whether nothing is there, or an empty directory.
fn is_vacant(path: &Path) -> io::Result<bool> {
    match std::fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

/// Lets the kernel begin to write a part of a file to the disk. It waits for nothing but a place in the disk's queue, and takes no notice of errors of
/// writing, which stay for the next sync: that is so with this flag alone.
#[expect(unsafe_code, reason = "there is no safe binding of sync_file_range")]
fn write_back(file: &File, offset: u64, len: u64) {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else { return };
    // SAFETY: the descriptor is open for as long as `file` is borrowed, and the call touches no memory of ours.
    // Advisory: what is not begun now is done by the sync.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Makes the name of a directory durable.
fn sync_parent(dir: &Path) -> io::Result<()> {
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

impl DiskFile for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }

    fn read_now_at(&self, buf: &mut [u8], offset: u64) -> io::Result<bool> {
        match rustix::io::preadv2(&self.0, &mut [IoSliceMut::new(buf)], offset, ReadWriteFlags::NOWAIT) {
            Ok(read) if read == buf.len() => Ok(true),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            // A file system that cannot tell.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.read_at(buf, offset).map(|()| true),
            Err(errno) => Err(errno.into()),
        }
    }

    fn will_read(&self, offset: u64, len: u64) {
        // Without the advice it is read when it is asked for.
        let _ = rustix::fs::fadvise(&self.0, offset, NonZeroU64::new(len), Advice::WillNeed);
    }

    fn will_sync(&self, offset: u64, len: u64) {
        write_back(&self.0, offset, len);
    }

    fn forget(&self, offset: u64, len: u64) {
        // The kernel lets go of whole pages only, and takes no length for all there is.
        let from = offset - offset % PAGE;
        let to = offset.saturating_add(len).checked_next_multiple_of(PAGE).filter(|to| i64::try_from(*to).is_ok());
        if len > 0 {
            // Without the advice it is read from memory where that has it.
            let _ = rustix::fs::fadvise(&self.0, from, to.and_then(|to| NonZeroU64::new(to - from)), Advice::DontNeed);
        }
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn write_vectored_at(&self, mut parts: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let most = parts.len().min(PIECES_MOST);
            match uninterrupted(|| rustix::io::pwritev(&self.0, &parts[..most], offset))? {
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
        take_space(allocate, || self.set_len(len))
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

    /// Answers as it is told, call by call, then well.
    fn answers(errnos: &'static [Errno]) -> impl FnMut() -> Result<(), Errno> {
        let mut left = errnos.iter();
        move || left.next().map_or(Ok(()), |errno| Err(*errno))
    }

    #[test]
    fn space_is_taken_through_interruptions_and_on_any_kernel() {
        for (errnos, extended, error) in [
            (&[][..], false, None),
            (&[Errno::INTR, Errno::INTR], false, None),
            (&[Errno::OPNOTSUPP], true, None),
            (&[Errno::INTR, Errno::NOSYS], true, None),
            (&[Errno::INTR, Errno::NOSPC], false, Some(io::ErrorKind::StorageFull)),
            (&[Errno::IO], false, Some(io::Error::from(Errno::IO).kind())),
        ] {
            let mut was_extended = false;
            let outcome = take_space(answers(errnos), || {
                was_extended = true;
                Ok(())
            });
            assert_eq!((was_extended, outcome.err().map(|error| error.kind())), (extended, error), "{errnos:?}");
        }
    }
}
