//! The file system as the engine sees it, so that the same code runs on a real disk and on one that fails.
//!
//! Everything the log engine and snapshot files do to a directory goes through [`Disk`]. [`RealDisk`] is the operating
//! system; [`SimDisk`] keeps files in memory, tells synced from pending bytes, and on `crash` loses, tears
//! or keeps pending writes and renames as a seeded choice. A [`DiskCopy`] is a second directory in the making that shares
//! files with the first.

mod real;
mod sim;

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;

pub use real::RealDisk;
pub use sim::{Left, Lie, Operation, SimDisk};

/// One directory of files, flat: names have no separators. All methods may be called from any thread.
pub trait Disk: Send + Sync + 'static {
    /// Opens an existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Creates a file that must not exist, for reading and writing. Durable in the directory after `sync_dir`.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames over whatever `to` was. Durable after `sync_dir`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. Durable after `sync_dir`.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// The same for a file that may be gone already.
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
    /// How many bytes may still be written, about; `u64::MAX` where that cannot be told. Others take of it at any time.
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
    /// Begins a second directory at `path`, which must be absent or an empty directory: `AlreadyExists` otherwise. Until it is
    /// published it stands beside `path` under a name that ends with `.partial`; what an earlier one left there is removed.
    /// `WouldBlock` where another copy to the same path is under way. A simulated disk takes a plain name as the path.
    fn begin_copy(&self, path: &Path) -> io::Result<Box<dyn DiskCopy>>;
}

/// A directory in the making. Dropped before it was published it is removed, as far as that succeeds.
pub trait DiskCopy: Send + 'static {
    /// Gives the file `name` of the directory that is copied the same name here as well: no bytes are copied, and each name
    /// keeps the file when the other is removed. Durable after `publish`.
    fn link(&self, name: &str) -> io::Result<()>;
    /// Creates a file that must not exist. What is written to it must be synced before `publish`.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Makes the names durable and then, in one step, the directory what is at the path. Once. After an error there is nothing at
    /// the path, or all of it, perhaps not durably.
    fn publish(&mut self) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Send + Sync + 'static {
    /// Reads exactly `buf.len()` bytes at `offset`; `UnexpectedEof` past the end.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    /// The same where it need not wait for the disk; `Ok(false)`, with anything in `buf`, where it would have to. Advisory: an
    /// implementation that cannot tell may wait.
    fn read_now_at(&self, buf: &mut [u8], offset: u64) -> io::Result<bool> {
        self.read_at(buf, offset).map(|()| true)
    }
    /// Says that `len` bytes at `offset` will be read soon, so that the disk can begin. Advisory, and never waits.
    fn will_read(&self, _offset: u64, _len: u64) {}
    /// Says that what was written at `offset`, `len` bytes of it, will be synced some time later, so that the disk can begin. Advisory:
    /// nothing is durable by it, and errors are left for the sync to tell.
    fn will_sync(&self, _offset: u64, _len: u64) {}
    /// Says that what memory holds of `len` bytes at `offset` need not be kept, so that they are read from the disk the next time. Advisory: what
    /// was not written out yet is kept, and so is anything where the system does not listen. Systems keep pages in pieces of up to megabytes and
    /// forget these whole or not at all, so that little of a file may be kept where all of it is forgotten.
    fn forget(&self, _offset: u64, _len: u64) {}
    /// Writes all of `data` at `offset`, extending the file as needed.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;
    /// Writes all of `parts`, one after another, at `offset`, as one write where the system knows such. May change the slices.
    fn write_vectored_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.write_at(&whole, offset)
    }
    /// Makes the data written so far durable (fdatasync).
    fn sync(&self) -> io::Result<()>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Cuts or extends (with zeros) to `len`.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// How many names it has, in all directories; 0 when it is removed and only held open.
    fn links(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Extends the file to `len` with zeros that need not have been written, so that there is space for what is written there later. Does
    /// nothing where the file is that long already.
    fn reserve(&self, len: u64) -> io::Result<()> {
        if self.len()? < len { self.set_len(len) } else { Ok(()) }
    }
    /// Extends the file to `len` with real zeros, so that later writes below `len` change no metadata and a sync of them
    /// commits none. Does nothing where the file is that long already. Advisory: an implementation may do less, and
    /// the file may still be shorter than `len` afterwards.
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

/// Whether a call failed because there is no space left.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether a call failed because this process, or the machine, has no more of what it takes to make it: that says nothing of the disk.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// The name of a directory in the making that will be named `name`.
fn partial_name(name: &str) -> String {
    format!("{name}.partial")
}

/// Refuses a name that would leave the directory or means something to it.
fn check_name(name: &str) -> io::Result<()> {
    if name.is_empty() || name == "." || name == ".." || name == real::LOCK_NAME || name.contains(['/', '\0']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("not a file name: {name:?}")));
    }
    Ok(())
}
