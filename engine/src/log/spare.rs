//! Spare files: space that is taken already, kept for the next log file.
//!
//! A file that purge gives up is not deleted but renamed, until there are enough; the next log file takes one, writes its
//! header over the beginning and renames it. Writing into space that a file has had real bytes in changes no metadata, so
//! a sync of it commits none. Nothing of the old content is ever believed: every checksum is bound to the file's number.
//!
//! The last spare is a reserve for a full disk: only what gives space back takes it, purge and batches that let entries go.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::disk::{DiskFile, is_full};

use super::error::Result;
use super::file::{LogFile, Unmade, rename};
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

impl Shared {
    /// Takes a spare for the next log file; the last one only for what gives space back.
    pub(crate) fn take_spare(&self, urgent: bool) -> Option<u64> {
        let mut spares = self.spares.lock();
        let reserved = usize::from(!urgent);
        if spares.len() <= reserved { None } else { spares.pop_first() }
    }

    /// Gives up files that are recorded as dropped; returns their bytes.
    pub(crate) fn release(&self) -> Result<u64> {
        let released = std::mem::take(&mut *self.released.lock());
        let mut freed = 0;
        for (at, seq) in released.iter().enumerate() {
            let Some(file) = self.files.remove(*seq) else { continue };
            let len = file.len();
            if let Err((file, error)) = self.give_up(file) {
                // Nothing is lost: it is tried again, and recovery gives it up too.
                self.files.insert(file);
                self.released.lock().extend_from_slice(&released[at..]);
                return Err(error.into());
            }
            freed += len;
        }
        if freed > 0 {
            self.disk.sync_dir().map_err(|error| self.poison(format!("sync of the directory: {error}")))?;
        }
        Ok(freed)
    }

    /// Keeps a file as a spare, or deletes it. A reader or a checkpoint under way may still hold it, or a checkpoint may have it
    /// under a second name, and must not see other bytes: then it is deleted, and stays readable to them.
    fn give_up(&self, file: Arc<LogFile>) -> std::result::Result<(), (Arc<LogFile>, io::Error)> {
        let fits = (self.options.file_bytes / 2..=self.options.file_bytes * 2).contains(&file.len());
        let wanted = fits && self.spares.lock().len() < self.options.spare_files;
        if wanted && Arc::strong_count(&file) == 1 && file.file.links().is_ok_and(|links| links == 1) {
            let spare = self.next_spare.fetch_add(1, Ordering::AcqRel);
            return match rename(self.disk.as_ref(), &file.name, &spare_name(spare)) {
                Ok(()) => {
                    self.spares.lock().insert(spare);
                    Ok(())
                }
                Err(Unmade::Absent(error) | Unmade::Unknown(error)) => Err((file, error)),
            };
        }
        self.disk.remove_if_there(&file.name).map_err(|error| (file, error))
    }

    /// Sees to it that there is a spare, where spares are wanted: a file of zeros. A disk that is too full for it is no error;
    /// one that cannot sync it is not trusted with anything else.
    pub(crate) fn keep_reserve(&self) -> Result<()> {
        if self.options.spare_files == 0 || !self.spares.lock().is_empty() {
            return Ok(());
        }
        let number = self.next_spare.fetch_add(1, Ordering::AcqRel);
        let name = spare_name(number);
        match self.make_spare(&name) {
            Ok(file) => {
                let synced = file.sync().and_then(|()| self.disk.sync_dir());
                synced.map_err(|error| self.poison(format!("sync of a spare file: {error}")))?;
                self.spares.lock().insert(number);
                Ok(())
            }
            Err(error) => {
                // What was written of it takes space that others need.
                let removed = self.disk.remove_if_there(&name);
                if is_full(&error) { Ok(removed?) } else { Err(error.into()) }
            }
        }
    }

    fn make_spare(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.create(name)?;
        file.prefill(self.options.file_bytes)?;
        Ok(file)
    }
}
