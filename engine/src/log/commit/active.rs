//! The active file: the file that commit groups are appended to.
//!
//! A group is one write. Space for the group and for the seal of the file is taken first. A write that fails is wiped
//! out again with zeros, which are synced, so that no later process finds a whole group in what reached the file. Its
//! batches then fail and the log goes on. If the bytes cannot be wiped out, or after a failed sync, what is on disk is
//! unknown and the log is poisoned. `rotation.rs` changes to the next file.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::draft::{Draft, EncodedGroup, GroupPlace};
use super::publish::CommitContext;
use crate::disk::is_full;
use crate::log::format::{Compressor, FOOTER, align};
use crate::log::index::ActiveChanges;
use crate::log::read::{LogFile, LogState, Seal, WriteError};

/// For a larger commit group space is only reserved. Its metadata costs little beside it, and zeros would double the
/// bytes written.
const PREFILL_BELOW: usize = 16 << 10;
/// Unsynced data is flushed in the background, so many bytes at a time.
const WRITE_BACK: u64 = 1 << 20;

/// See the module documentation.
pub(crate) struct ActiveFile {
    pub(crate) file: Arc<LogFile>,
    /// What the file changes so far beyond what the index says.
    pub(crate) changes: ActiveChanges,
    /// Where the next group goes.
    pub(crate) offset: u64,
    /// Up to where unsynced data was handed to the background flush.
    pub(super) flushed_to: u64,
    /// Whether the file has a group.
    pub(crate) used: bool,
    /// Whether the last group was a small one that was synced; true before the first one.
    pub(super) small_syncs: bool,
    /// Position and checksum of the last group.
    pub(super) lsn: u64,
    pub(super) chain: u32,
    /// The position up to which a group on disk says that everything is synced.
    pub(crate) vouched: u64,
    /// The older files of the log.
    pub(crate) older: BTreeSet<u64>,
    /// The next file, if it exists already because the seal of this one failed. No more groups are added here.
    pub(super) next: Option<NextFile>,
}

/// The next file, durable and empty, and the seal of the one before it.
pub(super) struct NextFile {
    pub(super) file: LogFile,
    /// Where its first group goes.
    pub(super) data_offset: u64,
    pub(super) seal: Seal,
}

impl ActiveFile {
    /// A file without groups, continued at `offset` after the group at `lsn` with checksum `chain`. There are no older
    /// files.
    pub(crate) fn new(file: Arc<LogFile>, offset: u64, lsn: u64, chain: u32) -> ActiveFile {
        ActiveFile {
            file,
            changes: ActiveChanges::default(),
            offset,
            flushed_to: offset,
            used: false,
            small_syncs: true,
            lsn,
            chain,
            vouched: lsn,
            older: BTreeSet::new(),
            next: None,
        }
    }

    /// The file's number.
    pub(super) fn seq(&self) -> u64 {
        self.file.place.seq
    }

    /// The file of the last group.
    pub(crate) fn file(&self) -> Arc<LogFile> {
        self.file.clone()
    }

    /// Position of the last group.
    pub(crate) fn last_lsn(&self) -> u64 {
        self.lsn
    }

    /// Whether a group on disk says of every group with content that it is synced.
    pub(crate) fn is_vouched(&self) -> bool {
        self.vouched >= self.lsn
    }

    /// Removes a dropped file from the list of the older files.
    pub(crate) fn forget(&mut self, file: u64) {
        self.older.remove(&file);
    }

    /// Makes everything written durable.
    pub(crate) fn sync(&self, state: &LogState) -> Result<(), WriteError> {
        state.sync(&self.file, self.lsn)
    }

    /// Encodes a group for the current offset. `items` are the draft's, encoded.
    pub(super) fn encode<'d>(
        &self,
        state: &LogState,
        draft: &'d Draft,
        items: &[u8],
        synced: u64,
        compressor: &mut Compressor,
    ) -> EncodedGroup<'d> {
        let at = GroupPlace {
            place: self.file.place,
            offset: self.offset,
            last_lsn: self.lsn,
            chain: self.chain,
            synced,
            align_bytes: state.options.align_bytes,
        };
        draft.encode(&at, items, compressor)
    }

    /// Writes a group's bytes at the offset, or leaves nothing of them.
    pub(super) fn put(
        &mut self,
        context: &CommitContext,
        group: &EncodedGroup<'_>,
        synced: bool,
    ) -> Result<(), WriteError> {
        self.make_room(context, group, synced)?;
        let bytes = &group.bytes;
        let Err(error) = self.file.write_vectored_at(&mut bytes.slices(), self.offset) else { return Ok(()) };
        self.wipe(&context.state, bytes.len() as u64)?;
        Err(WriteError::rejected("write")(error))
    }

    /// Goes on after a group that was written.
    pub(super) fn advance(&mut self, draft: &Draft, group: &EncodedGroup<'_>, synced: u64) {
        self.offset += group.bytes.len() as u64;
        self.flush_in_background(draft.synced);
        self.used = true;
        self.lsn += 1;
        self.chain = group.checksum;
        // The mark of a clean stop vouches for everything but itself, and nothing needs to vouch for it.
        self.vouched = if draft.items.is_empty() { self.lsn } else { synced };
    }

    /// Unsynced data is flushed in the background, 1 MiB at a time. So neither the seal nor a later synced batch waits
    /// for the whole file.
    fn flush_in_background(&mut self, synced: bool) {
        let unsynced = self.offset - self.flushed_to;
        if synced {
            self.flushed_to = self.offset;
        } else if unsynced >= WRITE_BACK {
            self.file.file.start_writeback(self.flushed_to, unsynced);
            self.flushed_to = self.offset;
        }
    }

    /// Takes space for a group and for the seal. With room for the seal, a full disk does not keep the file from being
    /// followed by the reserve.
    fn make_room(&mut self, context: &CommitContext, group: &EncodedGroup<'_>, synced: bool) -> Result<(), WriteError> {
        let state = &context.state;
        let options = &state.options;
        if self.changes.is_overestimated(self.offset) {
            context.wait_until_published(self.lsn)?;
            self.changes.measure(self.seq(), &state.index);
        }
        let small = synced && group.bytes.len() < PREFILL_BELOW;
        let end = self.offset + (group.bytes.len() + self.changes.max_index_len() + group.index_room + FOOTER) as u64;
        if end > self.file.len() && options.prefill_bytes > 0 {
            let step = align(end, options.prefill_bytes).min(options.file_bytes.max(end));
            // Zeros pay when small groups are synced one after another: a sync of space written before commits no
            // metadata.
            let zeros = small && self.small_syncs;
            let take = |len| if zeros { self.file.prefill(len) } else { self.file.reserve(len) };
            let taken = match take(step) {
                // A disk without room for a whole step may have room for the group.
                Err(error) if is_full(&error) && step > end => take(end),
                outcome => outcome,
            };
            taken.map_err(WriteError::rejected("space"))?;
        }
        self.small_syncs = small;
        Ok(())
    }

    /// Wipes out, durably, what a failed write of `len` bytes left at the offset: a later process must not find a group
    /// in it.
    fn wipe(&self, state: &LogState, len: u64) -> Result<(), WriteError> {
        self.file.refresh_len().map_err(WriteError::fatal("length after a failed write"))?;
        let left = self.file.len().saturating_sub(self.offset).min(len);
        if left > 0 {
            self.file.write_at(&vec![0; left as usize], self.offset).map_err(WriteError::fatal("wipe"))?;
            state.sync_file(&self.file)?;
        }
        Ok(())
    }
}
