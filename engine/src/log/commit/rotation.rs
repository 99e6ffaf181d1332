//! Rotation: the change from the active file to the next one.
//!
//! Each step leaves a valid log:
//!
//! 1. The groups of the old file are synced and published.
//! 2. The next file becomes durable under its name.
//! 3. The index and the footer of the old file are written and synced.
//! 4. The next file takes groups.
//!
//! So a sealed file always has a successor, and an unsealed file before an empty one is still the active one.
//!
//! A step that fails leaves the same as a crash there: a header under a temporary name or in a spare, or, if the seal
//! fails, an empty next file. That file is kept, and the next write retries the seal first. The old file takes no group
//! meanwhile, because the header of the next file records its last group.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::active::{ActiveFile, CommitContext, NextFile};
use crate::log::error::LogError;
use crate::log::format::{FileHeader, Place};
use crate::log::read::{LogFile, Seal, WriteError};

impl ActiveFile {
    /// Seals this file and continues in the next one. A rejected rotation can be retried.
    pub(super) fn rotate(&mut self, context: &CommitContext, may_use_reserve: bool) -> Result<(), WriteError> {
        let state = &context.state;
        let next = match self.next.take() {
            Some(next) => next,
            None => self.prepare_next(context, may_use_reserve)?,
        };
        if let Err(error) = next.seal.write(&self.file) {
            self.next = Some(next);
            return Err(WriteError::rejected("seal")(error));
        }
        state.sync_file(&self.file)?;
        let file = Arc::new(next.file);
        state.files.insert(file.clone());
        if let Some(metrics) = &state.metrics {
            metrics.rotations.inc();
        }
        let mut older = std::mem::take(&mut self.older);
        older.insert(self.seq());
        *self = ActiveFile {
            small_syncs: self.small_syncs,
            proven_synced: self.proven_synced,
            older,
            ..ActiveFile::new(file, next.data_offset, self.lsn, self.chain)
        };
        Ok(())
    }

    /// If this file has a group, continues in the next file, which may be the reserve. Returns whether it did.
    pub(super) fn rotate_to_reserve(&mut self, context: &CommitContext) -> Result<bool, WriteError> {
        if !self.used {
            return Ok(false);
        }
        self.rotate(context, true).map(|()| true)
    }

    /// If this file has no group, replaces it by the reserve. Returns whether it did.
    pub(super) fn replace_by_reserve(&mut self, context: &CommitContext) -> Result<bool, WriteError> {
        if self.used {
            return Ok(false);
        }
        let Some(file) = context.spares.replace_empty_file(&self.file)?.map(Arc::new) else { return Ok(false) };
        context.state.files.insert(file.clone());
        self.file = file;
        Ok(true)
    }

    /// Creates the next file, and encodes the seal of this one.
    fn prepare_next(&self, context: &CommitContext, may_use_reserve: bool) -> Result<NextFile, WriteError> {
        self.sync(&context.state)?;
        context.wait_until_published(self.lsn)?;
        // The footer must be the last bytes of the file, and a failed call may have left the file longer than recorded.
        self.file.refresh_len().map_err(WriteError::rejected("length"))?;
        let index = self.changes.encode(self.seq(), &context.state.index);
        let seal = Seal::new(&self.file, self.offset, index, self.lsn, self.chain);
        // Space first: a full disk then fails before any other step.
        self.file.prefill(seal.file_len()).map_err(WriteError::rejected("space for the seal"))?;
        let (file, data_offset) = self.create_next(context, may_use_reserve)?;
        Ok(NextFile { file, data_offset, seal })
    }

    /// Creates the next file, from a spare if there is one. Returns it and the offset of its first group.
    fn create_next(&self, context: &CommitContext, may_use_reserve: bool) -> Result<(LogFile, u64), WriteError> {
        let mut header = self.next_header();
        if !header.fits() {
            let what = format!("the log has {} files, more than a file header can list", self.older.len() + 1);
            return Err(WriteError::Rejected(LogError::Invalid(what)));
        }
        let file = context.spares.next_file(&mut header, may_use_reserve)?;
        Ok((file, u64::from(header.data_offset)))
    }

    fn next_header(&self) -> FileHeader {
        let place = self.file.place;
        let mut older = self.older.clone();
        older.insert(place.seq);
        FileHeader {
            place: Place { seq: place.seq + 1, ..place },
            prev_seq: place.seq,
            first_lsn: self.lsn + 1,
            chain: self.chain,
            data_offset: 0,
            flags: 0,
            live: ranges(&older),
            changed: Some(self.changes.groups().collect()),
        }
    }
}

/// Numbers as ranges, ascending.
fn ranges(numbers: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match out.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => out.push((*number, *number)),
        }
    }
    out
}
