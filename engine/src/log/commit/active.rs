//! The active file: the file that commit groups are appended to.
//!
//! A group is one write. Space for the group and for the seal of the file is allocated first. If the write fails, its
//! bytes are overwritten with zeros and synced, so that no later process finds a whole group in them. The batches of
//! the group fail, and later groups may succeed. If the bytes cannot be overwritten, or after a failed sync, the
//! content of the disk is unknown and the log is poisoned. `rotation.rs` changes to the next file.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::draft::{Draft, EncodedGroup, GroupPlace};
use super::file_work::{CommitContext, Wanted};
use super::next_file::NextFile;
use crate::disk::is_full;
use crate::log::error::LogError;
use crate::log::format::{BlockRef, Compressor, FOOTER, GROUP_HEADER, PAGE, align, encode_items, replay};
use crate::log::index::{ActiveChanges, Index};
use crate::log::read::{LogFile, LogState, Scan, WriteError};

/// Minimum size of a commit group whose space is reserved and not filled with zeros, in bytes. A sync of such a group
/// costs little more for the metadata, and zeros would double the bytes written.
const PREFILL_BELOW: usize = 16 << 10;
/// Space that is only reserved is taken in steps of this part of a file: it costs one call, however much it is.
const RESERVE_STEPS: u64 = 16;
/// Size of a background flush of unsynced data, in bytes.
const WRITE_BACK: u64 = 1 << 20;

/// See the module documentation.
pub(crate) struct ActiveFile {
    pub(super) file: Arc<LogFile>,
    /// Changes that the index of the sealed file needs and the in-memory index does not hold.
    pub(super) changes: ActiveChanges,
    /// The offset of the next group.
    pub(super) offset: u64,
    /// The end of the unsynced data that was handed to the background flush.
    pub(super) flushed_to: u64,
    /// Whether the file has a group.
    pub(super) used: bool,
    /// Whether the last group was a small one that was synced; true before the first one.
    pub(super) small_syncs: bool,
    /// Position and checksum of the last group.
    pub(super) lsn: u64,
    pub(super) chain: u32,
    /// The position up to which a group on disk proves that everything is synced.
    pub(super) proven_synced: u64,
    /// The older files of the log.
    pub(super) older: BTreeSet<u64>,
    /// What was asked for of the next file.
    pub(super) next: NextFile,
}

impl ActiveFile {
    /// A file without groups. Its first group goes to `offset` and follows the group at `lsn` with checksum `chain`.
    /// There are no older files.
    pub(crate) fn new(file: Arc<LogFile>, offset: u64, lsn: u64, chain: u32) -> ActiveFile {
        file.last_lsn.store(lsn, Ordering::Release);
        ActiveFile {
            file,
            changes: ActiveChanges::default(),
            offset,
            flushed_to: offset,
            used: false,
            small_syncs: true,
            lsn,
            chain,
            proven_synced: lsn,
            older: BTreeSet::new(),
            next: NextFile::default(),
        }
    }

    /// The newest file of a recovered log, with the groups that `scan` found.
    pub(crate) fn recovered(file: Arc<LogFile>, scan: &Scan, older: BTreeSet<u64>) -> ActiveFile {
        ActiveFile {
            changes: ActiveChanges::of(&scan.summary),
            used: scan.groups > 0,
            proven_synced: if scan.stopped_cleanly { scan.last_lsn } else { scan.proven_synced },
            older,
            ..ActiveFile::new(file, scan.end, scan.last_lsn, scan.chain)
        }
    }

    /// The file's number.
    pub(super) fn seq(&self) -> u64 {
        self.file.place.seq
    }

    /// The file.
    pub(crate) fn file(&self) -> Arc<LogFile> {
        self.file.clone()
    }

    /// Position of the last group.
    pub(crate) fn last_lsn(&self) -> u64 {
        self.lsn
    }

    /// Whether a group on disk proves that every group with content is synced.
    pub(super) fn is_proven_synced(&self) -> bool {
        self.proven_synced >= self.lsn
    }

    /// Asserts that files may be dropped: they are the oldest of the log, and nothing in them is live. This is the last
    /// check before a drop that cannot be undone.
    pub(super) fn assert_droppable(&self, files: &[u64], index: &Index) {
        assert!(self.older.iter().take(files.len()).eq(files), "{files:?} are not the oldest of {:?}", self.older);
        for file in files {
            assert_eq!(index.usage(*file).refs, 0, "file {file} holds live records");
        }
    }

    /// Removes a dropped file from the list of the older files.
    pub(crate) fn forget(&mut self, file: u64) {
        self.older.remove(&file);
    }

    /// Makes everything written durable.
    pub(crate) fn sync(&self, state: &LogState) -> Result<(), WriteError> {
        state.sync(&self.file, self.lsn)
    }

    /// Writes a group: to this file, or to the next one if it does not fit. Returns its position and the locations of
    /// its blocks. It is not durable yet.
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
        if self.used && self.offset + max_len > state.options.file_bytes {
            match self.rotate(context, draft.may_use_reserve) {
                // Without a next file, a group that frees space may exceed the size limit of this one.
                Err(WriteError::Rejected(_)) if draft.may_use_reserve => {}
                outcome => outcome?,
            }
        }
        // Loaded before the group is encoded: a group records what is durable before it is on disk.
        let synced = state.synced.load(Ordering::Acquire);
        let mut encoded = self.encode(state, draft, &items, synced, compressor);
        let mut outcome = self.append(context, &encoded, draft.synced);
        // This file cannot grow: try the next one, then the reserve in its place.
        for step in [ActiveFile::rotate_to_reserve, ActiveFile::replace_by_reserve] {
            let full = matches!(outcome, Err(WriteError::Rejected(LogError::NoSpace(_))));
            if draft.may_use_reserve && full && step(self, context)? {
                encoded = self.encode(state, draft, &items, synced, compressor);
                outcome = self.append(context, &encoded, draft.synced);
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
        self.ask_for_next(context);
        Ok((self.lsn, encoded.blocks))
    }

    /// Encodes a group for the current offset. `items` are the encoded items of the draft.
    fn encode<'d>(
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

    /// Appends the bytes of a group. After an error nothing of them is left.
    fn append(&mut self, context: &CommitContext, group: &EncodedGroup<'_>, synced: bool) -> Result<(), WriteError> {
        self.allocate(context, group, synced)?;
        let bytes = &group.bytes;
        let Err(error) = self.file.write_vectored_at(&mut bytes.slices(), self.offset) else { return Ok(()) };
        context.state.wipe(&self.file, self.offset, bytes.len() as u64)?;
        Err(WriteError::rejected("write")(error))
    }

    /// Moves the offset past a group that was written.
    fn advance(&mut self, draft: &Draft, group: &EncodedGroup<'_>, synced: u64) {
        self.offset += group.bytes.len() as u64;
        self.flush_in_background(draft.synced);
        self.used = true;
        self.lsn += 1;
        self.file.last_lsn.store(self.lsn, Ordering::Release);
        self.chain = group.checksum;
        // The mark of a clean stop proves that everything before it is synced. It needs no proof itself.
        self.proven_synced = if draft.items.is_empty() { self.lsn } else { synced };
    }

    /// Asks for the next file early, and for zeros in it under the condition of [`ActiveFile::allocate`].
    fn ask_for_next(&mut self, context: &CommitContext) {
        let options = &context.state.options;
        let pays_off = self.small_syncs && options.prefill_bytes > 0;
        let step = pays_off.then_some(options.prefill_bytes);
        let Some(zeros) = self.next.ask(self.offset, options.file_bytes, step) else { return };
        let is_last = pays_off && zeros == options.file_bytes;
        let whole = is_last.then(|| zeros + self.expected_seal(zeros));
        context.files.want(Wanted { place: self.next_place(), zeros, whole });
    }

    /// Space for the seal of a file of `file_bytes` that is filled as this one: an eighth more than it needs once it is
    /// full, in pages. A file that runs short of it grows near its end, group by group.
    fn expected_seal(&self, file_bytes: u64) -> u64 {
        let index = self.changes.max_index_len() as u64;
        let full = index.saturating_mul(file_bytes) / self.offset.max(1);
        align(full + full / 8 + FOOTER as u64, PAGE)
    }

    /// Starts a background flush of the unsynced data once it reaches [`WRITE_BACK`]. So neither the seal nor a later
    /// synced batch waits for the whole file.
    fn flush_in_background(&mut self, synced: bool) {
        let unsynced = self.offset - self.flushed_to;
        if synced {
            self.flushed_to = self.offset;
        } else if unsynced >= WRITE_BACK {
            self.file.file.start_writeback(self.flushed_to, unsynced);
            self.flushed_to = self.offset;
        }
    }

    /// Allocates space for a group and for the seal. Because the space for the seal exists, the file can be sealed and
    /// followed by the reserve on a full disk.
    fn allocate(&mut self, context: &CommitContext, group: &EncodedGroup<'_>, synced: bool) -> Result<(), WriteError> {
        let state = &context.state;
        let options = &state.options;
        if self.changes.is_overestimated(self.offset) {
            context.wait_until_published(self.lsn)?;
            self.changes.measure(self.seq(), &state.index);
        }
        let small = synced && group.bytes.len() < PREFILL_BELOW;
        let end = self.offset + (group.bytes.len() + self.changes.max_index_len() + group.index_room + FOOTER) as u64;
        if end > self.file.len() && options.prefill_bytes > 0 {
            let full = options.file_bytes;
            // Zeros pay off if small groups are synced one after another: a sync after an overwrite commits no
            // metadata.
            let zeros = small && self.small_syncs;
            let reserve_step = options.prefill_bytes.max(full / RESERVE_STEPS);
            let step = match end <= full {
                true => align(end, if zeros { options.prefill_bytes } else { reserve_step }).min(full),
                // Only the seal follows. The sync after each of its steps commits metadata, too.
                false => align(end, options.prefill_bytes),
            };
            let groups_end = full.max(self.offset + group.bytes.len() as u64);
            let grow_to = |len: u64| {
                if zeros {
                    self.file.prefill(len.min(groups_end))?;
                }
                self.file.reserve(len)
            };
            let grown = match grow_to(step) {
                // A disk without space for a whole step may have space for the group.
                Err(error) if is_full(&error) && step > end => grow_to(end),
                outcome => outcome,
            };
            grown.map_err(WriteError::rejected("space"))?;
        }
        self.small_syncs = small;
        Ok(())
    }
}
