//! Writing a group, and the change from the active file to the next one.
//!
//! The order leaves a whole log at every step. First the old file's groups are synced; then the next file becomes
//! durable under its name; then the old file's index and footer are written and synced; only then is the next file
//! written to. So a sealed file always has a successor, and an unsealed file before an empty one is still the active
//! one.
//!
//! Each step may fail and leaves what a crash there would: a header under a temporary name or in a spare, or, if the
//! seal fails, an empty next file. That one is kept, and the seal is written again before anything else is. The old
//! file takes no group meanwhile, because the next one says which is its last.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::active::{ActiveFile, NextFile};
use super::context::CommitContext;
use super::draft::Draft;
use crate::log::error::LogError;
use crate::log::format::{BlockRef, Compressor, FileHeader, GROUP_HEADER, Place, encode_items, replay};
use crate::log::read::{LogFile, Seal, WriteError};

impl ActiveFile {
    /// Writes a group, in the next file if it does not fit into this one. Returns its position and the locations of its
    /// blocks. It is not durable yet.
    pub(super) fn write(
        &mut self,
        context: &CommitContext,
        draft: &Draft,
        compressor: &mut Compressor,
    ) -> Result<(u64, Vec<BlockRef>), WriteError> {
        let state = &context.state;
        let items = encode_items(&draft.items);
        let (body, meta) = (draft.body_len(), draft.max_meta_len(items.len()));
        if body + meta > u64::from(u32::MAX) / 2 {
            return Err(WriteError::Fatal("commit group is too large".to_owned()));
        }
        let max_len = GROUP_HEADER as u64 + body + meta + state.options.align_bytes;
        if self.next.is_some() || self.used && self.offset + max_len > state.options.file_bytes {
            match self.rotate(context, draft.may_use_reserve) {
                // Without a next file, groups that give space back exceed the size of this one.
                Err(WriteError::Rejected(_)) if draft.may_use_reserve && self.next.is_none() => {}
                outcome => outcome?,
            }
        }
        // What is durable when the group is encoded, and so before it is on disk.
        let synced = state.synced.load(Ordering::Acquire);
        let mut encoded = self.encode(state, draft, &items, synced, compressor);
        let mut outcome = self.put(context, &encoded, draft.synced);
        // This file cannot grow: try another one; if that has no room either, the reserve has.
        for step in [ActiveFile::rotate_to_reserve, ActiveFile::replace_by_reserve] {
            let full = matches!(outcome, Err(WriteError::Rejected(LogError::NoSpace(_))));
            if draft.may_use_reserve && full && step(self, context)? {
                encoded = self.encode(state, draft, &items, synced, compressor);
                outcome = self.put(context, &encoded, draft.synced);
            }
        }
        outcome?;
        if let Err(damage) = replay(&draft.items, &encoded.blocks, self.seq(), &mut self.changes) {
            return Err(WriteError::Fatal(format!("commit group does not fit its file: {}", damage.0)));
        }
        if let Some(metrics) = &state.metrics {
            metrics.bytes_raw.inc_by(encoded.raw);
            metrics.bytes_stored.inc_by(encoded.bytes.len() as u64);
            metrics.bytes_padding.inc_by(encoded.padding);
        }
        self.advance(draft, &encoded, synced);
        Ok((self.lsn, encoded.blocks))
    }

    /// Seals this file and goes on in the next. A rejected rotation can be tried again.
    pub(crate) fn rotate(&mut self, context: &CommitContext, may_use_reserve: bool) -> Result<(), WriteError> {
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
        let (small_syncs, vouched) = (self.small_syncs, self.vouched);
        *self =
            ActiveFile { small_syncs, vouched, older, ..ActiveFile::new(file, next.data_offset, self.lsn, self.chain) };
        Ok(())
    }

    /// Goes on in the next file, which may be the reserve, if this one has a group. Returns whether it did.
    fn rotate_to_reserve(&mut self, context: &CommitContext) -> Result<bool, WriteError> {
        if !self.used {
            return Ok(false);
        }
        self.rotate(context, true).map(|()| true)
    }

    /// Replaces this file by the reserve, if this one has no group. Returns whether it did.
    fn replace_by_reserve(&mut self, context: &CommitContext) -> Result<bool, WriteError> {
        if self.used {
            return Ok(false);
        }
        let Some(file) = context.spares.replace_empty_file(&self.file)?.map(Arc::new) else { return Ok(false) };
        context.state.files.insert(file.clone());
        self.file = file;
        Ok(true)
    }

    /// Makes the next file, and the seal of this one.
    fn prepare_next(&self, context: &CommitContext, may_use_reserve: bool) -> Result<NextFile, WriteError> {
        self.sync(&context.state)?;
        context.wait_until_published(self.lsn)?;
        // The footer must be the last bytes of the file, and a failed call may have left the file longer than is known.
        self.file.refresh_len().map_err(WriteError::rejected("length"))?;
        let index = self.changes.encode(self.seq(), &context.state.index);
        let seal = Seal::new(&self.file, self.offset, index, self.lsn, self.chain);
        // Space first: a full disk is then noticed while nothing is half done.
        self.file.prefill(seal.file_len()).map_err(WriteError::rejected("space for the seal"))?;
        let (file, data_offset) = self.create_next(context, may_use_reserve)?;
        Ok(NextFile { file, data_offset, seal })
    }

    /// Makes the next file, of a spare or new. Returns it and where its first group goes.
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
