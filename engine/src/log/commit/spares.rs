//! Spare files: disk space that is kept for the next log files.
//!
//! A file that purge drops is renamed to a spare instead of deleted, until there are enough spares. The next log file
//! is made from a spare: an empty page overwrites the beginning, and the file is renamed. Overwrites change no
//! metadata, so a sync of them commits none. Old content never passes a checksum, because every checksum includes the
//! file's number.
//!
//! The last spare is a reserve for a full disk. Only work that frees space may use it (purge, and batches that only
//! truncate), and only if the disk has no space for a new file. If there is no spare, purge makes one from zeros, one
//! step per call ([`SpareFiles::keep_reserve`]), under a name that marks it as unfinished. Recovery deletes an
//! unfinished spare.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::disk::{DiskFile, is_full};
use crate::log::error::Result;
use crate::log::format::{Place, REUSED};
use crate::log::read::{CreateError, LogFile, LogState, UNUSED, read_header, rename};

/// Spares have lower numbers, so that there is always a next one. Files with higher numbers are not part of the log.
const SPARE_END: u64 = 1 << 63;

/// The name of spare number `number`.
pub(crate) fn spare_name(number: u64) -> String {
    format!("{number:016}.spare")
}

/// The number of a spare by its name; `None` for other names.
pub(crate) fn parse_spare_name(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".spare")?.parse().ok()?;
    (number < SPARE_END && spare_name(number) == name).then_some(number)
}

/// The name of spare number `number` before it is complete.
fn unfinished_name(number: u64) -> String {
    format!("{}.tmp", spare_name(number))
}

/// Whether a name is that of an unfinished spare.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.strip_suffix(".tmp").and_then(parse_spare_name).is_some()
}

/// Whether a file of `len` bytes is worth keeping as a spare, if log files have `file_bytes`.
pub(crate) fn is_reusable(len: u64, file_bytes: u64) -> bool {
    (file_bytes / 2..=file_bytes * 2).contains(&len)
}

/// The spare files of one log.
pub(crate) struct SpareFiles {
    state: Arc<LogState>,
    /// Their numbers.
    spares: Mutex<BTreeSet<u64>>,
    next_number: AtomicU64,
    /// The reserve in progress, if there is no spare. Also serializes [`SpareFiles::recycle`].
    reserve: Mutex<Reserve>,
}

/// The progress of making a reserve.
#[derive(Default)]
enum Reserve {
    /// Not started.
    #[default]
    Absent,
    /// The first `len` bytes exist and are synced.
    Started { number: u64, file: Arc<dyn DiskFile>, len: u64 },
    /// The disk ran out of space, although it reported enough. Retried after purge frees a file.
    OutOfSpace,
    /// The disk failed. Retried after the log is reopened.
    Failed,
}

impl SpareFiles {
    /// The spares with these numbers.
    pub(crate) fn new(state: Arc<LogState>, spares: BTreeSet<u64>) -> SpareFiles {
        SpareFiles {
            state,
            next_number: AtomicU64::new(spares.last().map_or(1, |last| last + 1)),
            spares: Mutex::new(spares),
            reserve: Mutex::default(),
        }
    }

    /// Number of spares.
    pub(crate) fn len(&self) -> usize {
        self.spares.lock().len()
    }

    /// Takes a spare, if there are more than `keep`.
    fn take(&self, keep: usize) -> Option<u64> {
        let mut spares = self.spares.lock();
        if spares.len() <= keep { None } else { spares.pop_first() }
    }

    /// Prepares the file at `place`: from a spare besides the reserve, otherwise a new one. If the disk has no space
    /// for a new file and `may_use_reserve` is set, from the reserve. It has no header yet.
    pub(crate) fn prepare(&self, place: Place, may_use_reserve: bool) -> std::result::Result<LogFile, CreateError> {
        if let Some(file) = self.reuse(1, place, &UNUSED)? {
            return Ok(file);
        }
        match LogFile::create(self.state.disk.as_ref(), place, &UNUSED) {
            Err(CreateError::NotCreated(error)) if may_use_reserve && is_full(&error) => {
                self.reuse(0, place, &UNUSED)?.ok_or(CreateError::NotCreated(error))
            }
            created => created,
        }
    }

    /// Replaces `unused`, the newest file, by the reserve. `unused` holds no group and cannot grow. `Ok(None)` if there
    /// is no reserve, or if this fails for lack of space as well. After [`CreateError::Unknown`] either file may have
    /// the name.
    pub(crate) fn replace_empty_file(&self, unused: &LogFile) -> std::result::Result<Option<LogFile>, CreateError> {
        let header = read_header(unused.file.as_ref(), unused.len(), &unused.name);
        let mut header = header.map_err(|error| CreateError::NotCreated(io::Error::other(error.to_string())))?;
        header.flags |= REUSED;
        match self.reuse(0, header.place, &header.encode()) {
            Err(CreateError::NotCreated(error)) if is_full(&error) => Ok(None),
            outcome => outcome,
        }
    }

    /// Makes the file at `place`, which begins with `start`, from a spare. `Ok(None)` if there are no more than `keep`.
    fn reuse(&self, keep: usize, place: Place, start: &[u8]) -> std::result::Result<Option<LogFile>, CreateError> {
        while let Some(spare) = self.take(keep) {
            match LogFile::reuse(self.state.disk.as_ref(), &spare_name(spare), place, start) {
                Ok(file) => return Ok(Some(file)),
                // It was deleted from outside.
                Err(CreateError::NotCreated(error)) if error.kind() == io::ErrorKind::NotFound => {
                    tracing::warn!(spare, "a spare file of the log is gone");
                }
                Err(error) => {
                    if matches!(error, CreateError::NotCreated(_)) {
                        self.spares.lock().insert(spare);
                    }
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    /// Recycles files that are recorded as dropped: keeps them as spares or deletes them. `done` is called for each
    /// file that is no longer in the log. Returns their bytes, and the first failure. A file that cannot be removed
    /// does not delay the others; it stays until a later call, or until recovery deletes it.
    pub(crate) fn recycle(&self, dropped: &[u64], done: impl Fn(u64)) -> Result<(u64, Option<String>)> {
        // One caller at a time.
        let mut reserve = self.reserve.lock();
        let files = &self.state.files;
        let (mut freed, mut failed) = (0, None);
        for seq in dropped {
            if let Some(file) = files.remove(*seq) {
                if let Err(error) = self.keep_or_delete(&file) {
                    failed.get_or_insert_with(|| format!("{}: {error}", file.name));
                    files.insert(file);
                    continue;
                }
                freed += file.len();
            }
            done(*seq);
        }
        if freed > 0 {
            if matches!(*reserve, Reserve::OutOfSpace) {
                *reserve = Reserve::Absent;
            }
            self.state.sync_dir()?;
        }
        Ok((freed, failed))
    }

    /// Keeps a file as a spare, or deletes it. It is deleted if a reader still holds it or it has a second name (a
    /// backup by hard links): neither may see other bytes, and both can read a deleted file. It is also deleted if the
    /// rename fails, for instance because the disk has no space for another name.
    fn keep_or_delete(&self, file: &Arc<LogFile>) -> io::Result<()> {
        let (disk, options) = (self.state.disk.as_ref(), &self.state.options);
        let wanted = is_reusable(file.len(), options.file_bytes) && self.len() < options.spare_files;
        if wanted && Arc::strong_count(file) == 1 && file.file.links().is_ok_and(|links| links == 1) {
            // An earlier rename with unknown outcome may have succeeded: a retry uses the same number.
            let spare = file.spare.get().copied();
            let spare = spare.unwrap_or_else(|| self.next_number.fetch_add(1, Ordering::AcqRel));
            match rename(disk, &file.name, &spare_name(spare)) {
                Ok(()) => {
                    self.spares.lock().insert(spare);
                    return Ok(());
                }
                Err(CreateError::NotCreated(error)) => {
                    tracing::debug!(file = file.name, %error, "log file not kept as a spare");
                }
                Err(CreateError::Unknown(error)) => {
                    file.spare.get_or_init(|| spare);
                    return Err(error);
                }
            }
        }
        // An earlier attempt may have deleted it although it returned an error.
        disk.remove_if_there(&file.name)?;
        file.spare.get().map_or(Ok(()), |spare| disk.remove_if_there(&spare_name(*spare)))
    }

    /// Makes a reserve if there is no spare and spares are wanted, in steps of at most `max_bytes`. Returns the bytes
    /// of the step: 0 if the free space would not suffice for the reserve and one more file. A failed sync of the
    /// reserve poisons the log.
    pub(crate) fn keep_reserve(&self, max_bytes: u64) -> Result<u64> {
        let mut reserve = self.reserve.lock();
        if matches!(*reserve, Reserve::OutOfSpace | Reserve::Failed) {
            return Ok(0);
        }
        let size = self.state.options.file_bytes;
        let left = if let Reserve::Started { len, .. } = &*reserve { size - len } else { size };
        let wanted = self.state.options.spare_files > 0 && self.spares.lock().is_empty();
        let grown = match wanted.then(|| self.state.disk.free_bytes()).transpose() {
            Ok(Some(free)) if free >= left.saturating_add(size) => self.grow_reserve(&mut reserve, left.min(max_bytes)),
            Ok(_) => return self.delete_reserve(&mut reserve, Reserve::Absent).map(|()| 0),
            Err(error) => Err(error),
        };
        match grown {
            Ok(bytes) => self.finish_reserve(&mut reserve).map(|()| bytes),
            Err(error) if is_full(&error) => self.delete_reserve(&mut reserve, Reserve::OutOfSpace).map(|()| 0),
            Err(error) => {
                self.delete_reserve(&mut reserve, Reserve::Failed)?;
                Err(error.into())
            }
        }
    }

    /// Adds `step` bytes to the reserve.
    fn grow_reserve(&self, reserve: &mut Reserve, step: u64) -> io::Result<u64> {
        if !matches!(reserve, Reserve::Started { .. }) {
            let number = self.next_number.fetch_add(1, Ordering::AcqRel);
            let file = self.state.disk.create(&unfinished_name(number))?;
            *reserve = Reserve::Started { number, file, len: 0 };
        }
        if let Reserve::Started { file, len, .. } = reserve {
            file.prefill(*len + step)?;
            *len += step;
        }
        Ok(step)
    }

    /// Syncs the reserve, and makes it a spare when it is complete.
    fn finish_reserve(&self, reserve: &mut Reserve) -> Result<()> {
        let Reserve::Started { number, file, len } = &*reserve else { return Ok(()) };
        let number = *number;
        // At each step, so that each sync writes little.
        file.sync().map_err(|error| self.state.poison(format!("sync of a spare file: {error}")))?;
        if *len < self.state.options.file_bytes {
            return Ok(());
        }
        *reserve = Reserve::Absent;
        if let Err(error) = rename(self.state.disk.as_ref(), &unfinished_name(number), &spare_name(number)) {
            *reserve = Reserve::Failed;
            return Err(error.into());
        }
        self.state.sync_dir()?;
        self.spares.lock().insert(number);
        Ok(())
    }

    /// Deletes an unfinished reserve, so that its space is free.
    fn delete_reserve(&self, reserve: &mut Reserve, then: Reserve) -> Result<()> {
        match std::mem::replace(reserve, then) {
            Reserve::Started { number, .. } => Ok(self.state.disk.remove_if_there(&unfinished_name(number))?),
            _ => Ok(()),
        }
    }
}
