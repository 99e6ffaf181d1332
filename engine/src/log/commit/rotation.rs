//! Rotation: the change from the active file to the next one.
//!
//! The next file is prepared ahead, and the full file is sealed behind (`file_work.rs`). Then the change itself only
//! writes the header of the next file, and waits for no sync. If the file before is not sealed yet, the rotation seals
//! it first, with three syncs; if no file is prepared, it creates one. The next file may take groups while groups of
//! the full one are in flight. The publisher syncs the full file before the next one, so the durable groups are always
//! a prefix of the log.
//!
//! A change that fails is retried by the next write. Until then the old file may take groups that free space. If the
//! write of the header fails, zeros overwrite it and are synced first: a header that a crash leaves always continues
//! the last group of the full file.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::active::ActiveFile;
use super::file_work::{CommitContext, FullFile};
use crate::log::error::LogError;
use crate::log::format::{FileHeader, Place};
use crate::log::read::WriteError;

impl ActiveFile {
    /// Continues in the next file. A rejected rotation can be retried.
    pub(super) fn rotate(&mut self, context: &CommitContext, may_use_reserve: bool) -> Result<(), WriteError> {
        let mut header = self.next_header();
        if !header.fits() {
            let what = format!("the log has {} files, more than a file header can list", self.older.len() + 1);
            return Err(WriteError::Rejected(LogError::Invalid(what)));
        }
        let mut around = context.files.lock();
        let next = around.take_next(context, &mut header, may_use_reserve)?;
        let mut older = std::mem::take(&mut self.older);
        older.insert(self.seq());
        let active = ActiveFile {
            small_syncs: self.small_syncs,
            proven_synced: self.proven_synced,
            older,
            ..ActiveFile::new(next.clone(), u64::from(header.data_offset), self.lsn, self.chain)
        };
        let full = std::mem::replace(self, active);
        let ActiveFile { file, changes, offset: end, lsn: last_lsn, chain, .. } = full;
        let full = FullFile { file, next: next.clone(), end, last_lsn, chain, seal: None };
        around.seal_later(context, full, changes);
        // After the full file is known as unsealed: purge and scrub take all but the newest file for sealed.
        context.state.files.insert(next);
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
        // The sealing of the file before may be about to sync this one.
        let _around = context.files.lock();
        let Some(file) = context.spares.replace_empty_file(&self.file)?.map(Arc::new) else { return Ok(false) };
        file.last_lsn.store(self.lsn, Ordering::Release);
        context.state.files.insert(file.clone());
        self.file = file;
        Ok(true)
    }

    /// The place of the next file.
    pub(super) fn next_place(&self) -> Place {
        let place = self.file.place;
        Place { seq: place.seq + 1, ..place }
    }

    fn next_header(&self) -> FileHeader {
        let place = self.file.place;
        let mut older = self.older.clone();
        older.insert(place.seq);
        FileHeader {
            place: self.next_place(),
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
