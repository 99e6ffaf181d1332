//! The file system interface of the engine: the same code runs on a real disk and on a simulated one.
//!
//! The log engine and snapshot files access a directory only through [`Disk`]. [`RealDisk`] calls the operating system.
//! [`SimDisk`] keeps files in memory and distinguishes synced from pending bytes. Its `crash` loses, tears or keeps
//! pending writes and renames; a seed decides.
//!
//! # Layers
//!
//! 1. `real`, `sim`: the two disks, independent of each other

mod real;
mod sim;

use std::io::{self, IoSlice};
use std::sync::Arc;

use rustix::io::Errno;

pub use real::RealDisk;
pub use sim::{Applied, Lie, Operation, SimDisk};

/// One flat directory of files: names have no separators. All methods may be called from any thread.
pub trait Disk: Send + Sync + 'static {
    /// Opens an existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Creates a file that must not exist, for reading and writing. Its name is durable after `sync_dir`.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames, replacing `to`. Durable after `sync_dir`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. Durable after `sync_dir`.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Removes a file that may not exist.
    fn remove_if_there(&self, name: &str) -> io::Result<()> {
        match self.remove(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }
    /// The names of all files, sorted.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals durable.
    fn sync_dir(&self) -> io::Result<()>;
    /// Free space in bytes, approximately; `u64::MAX` if unknown. Other processes may use it at any time.
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

/// An open file.
pub trait DiskFile: Send + Sync + 'static {
    /// Reads exactly `buf.len()` bytes at `offset`; `UnexpectedEof` past the end.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    /// Reads like `read_at` if the page cache holds the bytes. Returns `Ok(false)`, with arbitrary bytes in `buf`, if
    /// the call would wait for the disk. Advisory: an implementation that cannot tell may wait.
    fn read_cached_at(&self, buf: &mut [u8], offset: u64) -> io::Result<bool> {
        self.read_at(buf, offset).map(|()| true)
    }
    /// Starts to read `len` bytes at `offset` into the page cache. Advisory; never waits.
    fn prefetch(&self, _offset: u64, _len: u64) {}
    /// Starts to write back `len` dirty bytes at `offset`, so that a later sync has less to do. Advisory: makes nothing
    /// durable, and leaves write errors to the next sync.
    fn start_writeback(&self, _offset: u64, _len: u64) {}
    /// Drops `len` bytes at `offset` from the page cache, so that the next read comes from the disk. Advisory: dirty
    /// pages stay cached, and a system may ignore the call. The kernel caches pages in units of up to megabytes and
    /// drops only whole units, so a small part of a file may stay cached even if the caller drops all of it.
    fn drop_cached(&self, _offset: u64, _len: u64) {}
    /// Writes all of `data` at `offset`, extending the file as needed.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;
    /// Writes all of `parts`, one after another, at `offset`; as one write if the system supports it. May change the
    /// slices.
    fn write_vectored_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.write_at(&whole, offset)
    }
    /// Makes the data written so far, and the length, durable (fdatasync).
    fn sync(&self) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Truncates, or extends with zeros, to `len`.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// The number of hard links, in all directories; 0 for a removed file that is still open.
    fn links(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Extends the file to `len` and reserves the space for later writes (fallocate). Reads return zeros there; none
    /// are written. Does nothing if the file is that long already.
    fn reserve(&self, len: u64) -> io::Result<()> {
        if self.len()? < len { self.set_len(len) } else { Ok(()) }
    }
    /// Extends the file to `len` with written zeros: later writes below `len` change no metadata, and a sync of them
    /// commits none. Does nothing if the file is that long already. Advisory: the file may still be shorter than `len`
    /// afterwards.
    fn prefill(&self, len: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        let mut at = self.len()?;
        while at < len {
            let step = (len - at).min(ZEROS.len() as u64);
            self.write_at(&ZEROS[..step as usize], at)?;
            at += step;
        }
        Ok(())
    }
}

/// Whether a call failed because the disk or the quota is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether a call failed because the process or the machine ran out of file descriptors or memory. Such a failure says
/// nothing about the disk.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// The file that carries the lock of a real directory. It is never listed and cannot be opened by name.
const LOCK_NAME: &str = "LOCK";

/// Refuses names that point outside of the directory, and reserved ones.
fn check_name(name: &str) -> io::Result<()> {
    if name.is_empty() || name == "." || name == ".." || name == LOCK_NAME || name.contains(['/', '\0']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("not a file name: {name:?}")));
    }
    Ok(())
}
