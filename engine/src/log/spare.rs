//! Spare files: space that is taken already, kept for the next log file.
//!
//! A file that purge gives up is not deleted but renamed, until there are enough; the next log file takes one, writes its
//! header over the beginning and renames it. Writing into space that a file has had real bytes in changes no metadata, so
//! a sync of it commits none. Nothing of the old content is ever believed: every checksum is bound to the file's number.
//!
//! The last spare is a reserve for a full disk: only what gives space back takes it, purge and batches that let entries go, and only when the disk
//! has no room for a new file. Where there is none, purge makes one of zeros, a step at each call ([`Shared::keep_reserve`]), under a name
//! that says that it is not whole; a crash half way leaves it so, and recovery deletes it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::disk::{DiskFile, is_full};

use super::error::Result;
use super::file::{LogFile, Unmade, read_header, rename};
use super::format::FileHeader;
use super::read::Shared;

/// No spare has this number or a higher one: there is always a next one. Files named so are not ours.
const SPARE_END: u64 = 1 << 63;

/// The name of spare number `number`.
pub(crate) fn spare_name(number: u64) -> String {
    format!("{number:016}.spare")
}

/// The number of a spare by its name; `None` for a name that is none.
pub(crate) fn parse_spare_name(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".spare")?.parse().ok()?;
    (number < SPARE_END && spare_name(number) == name).then_some(number)
}

/// The name of spare number `number` while it is being made.
fn unfinished_name(number: u64) -> String {
    format!("{}.tmp", spare_name(number))
}

/// Whether a name is that of a spare that was being made.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.strip_suffix(".tmp").and_then(parse_spare_name).is_some()
}

/// Whether a file of `len` bytes is worth keeping as a spare, where files are to be of `file_bytes`.
pub(crate) fn fits(len: u64, file_bytes: u64) -> bool {
    (file_bytes / 2..=file_bytes * 2).contains(&len)
}

/// Whether and how far a reserve is made.
#[derive(Default)]
pub(crate) enum Reserve {
    /// It is not begun.
    #[default]
    Absent,
    /// So many bytes of it are there, and synced.
    Begun { number: u64, file: Arc<dyn DiskFile>, len: u64 },
    /// The disk took less than it said there was room for: not tried again before a file is given up.
    Refused,
    /// The disk failed: not tried again until the log is opened anew.
    Failed,
}

impl Shared {
    /// Takes a spare for the next log file, but leaves so many.
    fn take_spare(&self, left: usize) -> Option<u64> {
        let mut spares = self.spares.lock();
        if spares.len() <= left { None } else { spares.pop_first() }
    }

    /// Makes the next log file: of a spare, or else a new one, and where the disk has no room for that and it is `urgent`, of the reserve.
    pub(crate) fn next_file(&self, header: &mut FileHeader, urgent: bool) -> std::result::Result<LogFile, Unmade> {
        if let Some(file) = self.reuse(1, header)? {
            return Ok(file);
        }
        match LogFile::create(self.disk.as_ref(), header) {
            Err(Unmade::Absent(error)) if urgent && is_full(&error) => {
                self.reuse(0, header)?.ok_or(Unmade::Absent(error))
            }
            made => made,
        }
    }

    /// Puts the reserve in the place of `unused`, the newest file, which holds no group and cannot grow. `Ok(None)` where there is no reserve, or the
    /// disk had no room for this either; with [`Unmade::Unknown`] it cannot be told which of the two has the name.
    pub(crate) fn refit(&self, unused: &LogFile) -> std::result::Result<Option<LogFile>, Unmade> {
        let header = read_header(unused.file.as_ref(), unused.len(), &unused.name);
        let mut header = header.map_err(|error| Unmade::Absent(io::Error::other(error.to_string())))?;
        match self.reuse(0, &mut header) {
            Err(Unmade::Absent(error)) if is_full(&error) => Ok(None),
            outcome => outcome,
        }
    }

    /// Makes the file of `header` of a spare, of which it leaves so many. `Ok(None)` where there are no more.
    fn reuse(&self, left: usize, header: &mut FileHeader) -> std::result::Result<Option<LogFile>, Unmade> {
        while let Some(spare) = self.take_spare(left) {
            match LogFile::reuse(self.disk.as_ref(), &spare_name(spare), header) {
                Ok(file) => return Ok(Some(file)),
                // Someone deleted it.
                Err(Unmade::Absent(error)) if error.kind() == io::ErrorKind::NotFound => {
                    tracing::warn!(spare, "a spare file of the log is gone");
                }
                Err(unmade) => {
                    if matches!(unmade, Unmade::Absent(_)) {
                        self.spares.lock().insert(spare);
                    }
                    return Err(unmade);
                }
            }
        }
        Ok(None)
    }

    /// Gives up files that are recorded as dropped; returns their bytes, and why the first of those is still there that the disk did not let go of. That keeps
    /// no other, and is tried again with the next call; recovery gives it up, too.
    pub(crate) fn release(&self) -> Result<(u64, Option<String>)> {
        // One caller at a time.
        let mut reserve = self.reserve.lock();
        // They count as released until they are given up: whoever misses a name meanwhile (scrub) is to know why.
        let released = self.released.lock().clone();
        let (mut freed, mut failed) = (0, None);
        for seq in released {
            if let Some(file) = self.files.remove(seq) {
                if let Err(error) = self.give_up(&file) {
                    failed.get_or_insert_with(|| format!("{}: {error}", file.name));
                    self.files.insert(file);
                    continue;
                }
                freed += file.len();
            }
            self.released.lock().retain(|released| *released != seq);
        }
        if freed > 0 {
            if matches!(*reserve, Reserve::Refused) {
                *reserve = Reserve::Absent;
            }
            self.disk.sync_dir().map_err(|error| self.poison(format!("sync of the directory: {error}")))?;
        }
        Ok((freed, failed))
    }

    /// Keeps a file as a spare, or deletes it. A reader may still hold it, or someone may have given it a second name (a backup
    /// by links), and must not see other bytes: then it is deleted, and stays readable to them. Also where the disk has no room
    /// for another name: then the space is needed more than a spare.
    fn give_up(&self, file: &Arc<LogFile>) -> io::Result<()> {
        let wanted = fits(file.len(), self.options.file_bytes) && self.spares.lock().len() < self.options.spare_files;
        if wanted && Arc::strong_count(file) == 1 && file.file.links().is_ok_and(|links| links == 1) {
            // An attempt before this one may have done it, and nobody could tell: with the same name it is found there.
            let spare = file.spare.get().copied();
            let spare = spare.unwrap_or_else(|| self.next_spare.fetch_add(1, Ordering::AcqRel));
            match rename(self.disk.as_ref(), &file.name, &spare_name(spare)) {
                Ok(()) => {
                    self.spares.lock().insert(spare);
                    return Ok(());
                }
                Err(Unmade::Absent(error)) => tracing::debug!(file = file.name, %error, "no spare is made of it"),
                Err(Unmade::Unknown(error)) => {
                    file.spare.get_or_init(|| spare);
                    return Err(error);
                }
            }
        }
        // It is gone already where an attempt before this one deleted it, and was told otherwise.
        self.disk.remove_if_there(&file.name)?;
        file.spare.get().map_or(Ok(()), |spare| self.disk.remove_if_there(&spare_name(*spare)))
    }

    /// Sees to it that there is a spare, where spares are wanted, by a step of at most `most` bytes; returns how many that were. None while the disk
    /// has not room for as much again: what is left there others need more. A disk that cannot sync it is not trusted with anything else.
    pub(crate) fn keep_reserve(&self, most: u64) -> Result<u64> {
        let mut reserve = self.reserve.lock();
        if matches!(*reserve, Reserve::Refused | Reserve::Failed) {
            return Ok(0);
        }
        let size = self.options.file_bytes;
        let left = if let Reserve::Begun { len, .. } = &*reserve { size - len } else { size };
        let wanted = self.options.spare_files > 0 && self.spares.lock().is_empty();
        let grown = match wanted.then(|| self.disk.free_bytes()).transpose() {
            Ok(Some(free)) if free >= left.saturating_add(size) => self.grow_reserve(&mut reserve, left.min(most)),
            Ok(_) => return self.drop_reserve(&mut reserve, Reserve::Absent).map(|()| 0),
            Err(error) => Err(error),
        };
        match grown {
            Ok(bytes) => self.finish_reserve(&mut reserve).map(|()| bytes),
            Err(error) if is_full(&error) => self.drop_reserve(&mut reserve, Reserve::Refused).map(|()| 0),
            Err(error) => {
                self.drop_reserve(&mut reserve, Reserve::Failed)?;
                Err(error.into())
            }
        }
    }

    /// Adds `step` bytes to the reserve.
    fn grow_reserve(&self, reserve: &mut Reserve, step: u64) -> io::Result<u64> {
        if !matches!(reserve, Reserve::Begun { .. }) {
            let number = self.next_spare.fetch_add(1, Ordering::AcqRel);
            let file = self.disk.create(&unfinished_name(number))?;
            *reserve = Reserve::Begun { number, file, len: 0 };
        }
        if let Reserve::Begun { file, len, .. } = reserve {
            file.prefill(*len + step)?;
            *len += step;
        }
        Ok(step)
    }

    /// Makes durable what there is of the reserve; when it is whole it is a spare.
    fn finish_reserve(&self, reserve: &mut Reserve) -> Result<()> {
        let Reserve::Begun { number, file, len } = &*reserve else { return Ok(()) };
        let number = *number;
        // At each step, so that no sync has much to write at once.
        file.sync().map_err(|error| self.poison(format!("sync of a spare file: {error}")))?;
        if *len < self.options.file_bytes {
            return Ok(());
        }
        *reserve = Reserve::Absent;
        if let Err(unmade) = rename(self.disk.as_ref(), &unfinished_name(number), &spare_name(number)) {
            *reserve = Reserve::Failed;
            return Err(unmade.into());
        }
        self.disk.sync_dir().map_err(|error| self.poison(format!("sync of the directory: {error}")))?;
        self.spares.lock().insert(number);
        Ok(())
    }

    /// Gives up what there is of the reserve: it takes space that others need.
    fn drop_reserve(&self, reserve: &mut Reserve, then: Reserve) -> Result<()> {
        match std::mem::replace(reserve, then) {
            Reserve::Begun { number, .. } => Ok(self.disk.remove_if_there(&unfinished_name(number))?),
            _ => Ok(()),
        }
    }
}
