//! The active file: where the next commit group goes.
//!
//! A group is one write. Before it, room is taken for the group and for the seal of the file. A write that fails is wiped out again, with zeros that
//! are synced, so that no later process finds a whole group in what got there; then its batches are refused and the log goes on. Only where
//! that cannot be done, and after a sync that failed, is it unknown what is on disk: then the log is poisoned. The change to the next file is
//! in `rotation.rs`.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::disk::is_full;

use super::block::DraftBlock;
use super::compress::Compressor;
use super::error::LogError;
use super::file::LogFile;
use super::format::{Codec, FOOTER, GROUP_HEADER, GroupHeader, UNIT, align};
use super::items::{BlockRef, encode_blocks, encode_items, replay};
use super::pieces::Pieces;
use super::read::Shared;
use super::rotation::Next;
use super::touched::Touched;
use super::writer::Draft;

/// For a larger commit group space is only reserved: its metadata costs little beside it, and zeros would be as much to write again.
const PREFILL_BELOW: usize = 16 << 10;
/// The disk is told to begin with so much at a time.
const WRITE_BACK: u64 = 1 << 20;
/// What a block takes in the meta at most.
const BLOCK_ROOM: usize = 16;

/// Why a group was not written.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing is left of the group, and later ones may be written.
    Refused(LogError),
    /// What is on disk is unknown.
    Fatal(String),
}

/// The file that is appended to.
pub(crate) struct Active {
    pub(super) file: Arc<LogFile>,
    /// What the file changes so far, besides what the index says.
    pub(super) touched: Touched,
    /// Where the next group goes.
    pub(super) offset: u64,
    /// Up to where the disk was told to begin writing what is not synced.
    pub(super) told: u64,
    /// Whether the file has a group.
    pub(super) used: bool,
    /// Whether the last group was a small one that was synced; true before the first one.
    pub(super) small_syncs: bool,
    /// Position and checksum of the last group.
    pub(super) lsn: u64,
    pub(super) chain: u32,
    /// The position up to which a group on disk says that all is synced.
    pub(super) vouched: u64,
    /// The older files of the log.
    pub(super) older: BTreeSet<u64>,
    /// The file after this one, where it is there already and the seal of this one could not be written: no group is added here any more.
    pub(super) next: Option<Next>,
}

/// A failure that leaves the disk in doubt.
pub(super) fn fatal(what: &str) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| Failure::Fatal(format!("{what}: {error}"))
}

/// A failure that leaves nothing behind which counts.
pub(super) fn refused(what: &str) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| Failure::Refused(io::Error::new(error.kind(), format!("{what}: {error}")).into())
}

impl Active {
    /// A file without groups that the log goes on in at `offset`, after the group at `lsn` with the checksum `chain`; there are no older ones.
    pub(super) fn new(file: Arc<LogFile>, offset: u64, lsn: u64, chain: u32) -> Active {
        Active {
            file,
            touched: Touched::default(),
            offset,
            told: offset,
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

    /// The file that the last group stands in.
    pub(super) fn file(&self) -> Arc<LogFile> {
        self.file.clone()
    }

    /// Position of the last group.
    pub(super) fn last_lsn(&self) -> u64 {
        self.lsn
    }

    /// Whether a group on disk says of every group with content that it is synced.
    pub(super) fn is_vouched(&self) -> bool {
        self.vouched >= self.lsn
    }

    /// Whether `file` holds nothing live, and what it undoes of older files is said elsewhere, or there are only dead ones.
    pub(super) fn is_droppable(&self, shared: &Shared, file: u64) -> bool {
        let dead = |file: u64| shared.index.usage(file).refs == 0;
        let said = || shared.settled.lock().contains(&file) || self.older.range(..file).all(|older| dead(*older));
        self.older.contains(&file) && dead(file) && said()
    }

    /// `file` was dropped.
    pub(super) fn forget(&mut self, file: u64) {
        self.older.remove(&file);
    }

    /// Makes everything written durable.
    pub(super) fn sync(&self, shared: &Shared) -> Result<(), Failure> {
        shared.sync(&self.file, self.lsn)
    }

    /// Writes a group; returns its position and where its blocks stand. It is not durable yet.
    pub(super) fn write(
        &mut self,
        shared: &Shared,
        draft: &Draft,
        compressor: &mut Compressor,
    ) -> Result<(u64, Vec<BlockRef>), Failure> {
        let items = encode_items(&draft.items);
        let body: u64 = draft.blocks.iter().map(DraftBlock::total).sum();
        let meta_most = (items.len() + draft.blocks.len() * BLOCK_ROOM) as u64;
        let most = GROUP_HEADER as u64 + body + meta_most + shared.options.align_bytes;
        if body + meta_most > u64::from(u32::MAX) / 2 {
            return Err(Failure::Fatal("commit group is too large".to_owned()));
        }
        if self.next.is_some() || self.used && self.offset + most > shared.options.file_bytes {
            match self.rotate(shared, draft.urgent) {
                // What gives space, and files, back goes past the bound of this file where there is no next one.
                Err(Failure::Refused(_)) if draft.urgent && self.next.is_none() => {}
                outcome => outcome?,
            }
        }
        // What is known to be durable when the group is encoded, and so before it is on disk.
        let synced = shared.synced.load(Ordering::Acquire);
        let mut encoded = self.encode(shared, draft, &items, synced, compressor);
        let mut outcome = self.put(shared, &encoded, draft.synced);
        // No room to grow: in another file there may be; and if there is none in that either, the reserve has room.
        for step in [Active::rotate_urgently, Active::refit] {
            let full = matches!(outcome, Err(Failure::Refused(LogError::NoSpace(_))));
            if draft.urgent && full && step(self, shared)? {
                encoded = self.encode(shared, draft, &items, synced, compressor);
                outcome = self.put(shared, &encoded, draft.synced);
            }
        }
        outcome?;
        if let Err(damage) = replay(&draft.items, &encoded.blocks, self.seq(), &mut self.touched) {
            return Err(Failure::Fatal(format!("commit group does not fit its file: {}", damage.0)));
        }
        if let Some(metrics) = &shared.metrics {
            metrics.bytes_raw.inc_by(encoded.raw);
            metrics.bytes_stored.inc_by(encoded.bytes.len() as u64);
            metrics.bytes_padding.inc_by(encoded.padding);
        }
        self.offset += encoded.bytes.len() as u64;
        self.write_back(draft.synced);
        self.used = true;
        self.lsn += 1;
        self.chain = encoded.checksum;
        // A marker of a clean stop vouches for all but itself, and nothing needs to vouch for it.
        self.vouched = if draft.items.is_empty() { self.lsn } else { synced };
        Ok((self.lsn, encoded.blocks))
    }

    /// The group as it stands at the offset; `items` are the draft's, encoded.
    fn encode<'d>(
        &self,
        shared: &Shared,
        draft: &'d Draft,
        items: &[u8],
        synced: u64,
        compressor: &mut Compressor,
    ) -> Encoded<'d> {
        let options = &shared.options;
        let place = self.file.place;
        let mut bytes = Pieces::default();
        bytes.zeros(GROUP_HEADER);
        let mut blocks = Vec::with_capacity(draft.blocks.len());
        for block in &draft.blocks {
            let offset = self.offset + bytes.len() as u64;
            blocks.push(block.write(&mut bytes, place, offset));
        }
        let body = bytes.len() - GROUP_HEADER;
        let mut raw = encode_blocks(&blocks);
        raw.extend_from_slice(items);
        let packed = compressor.shrink(&raw);
        let meta_codec = packed.as_ref().map_or(Codec::Raw, |(codec, _)| *codec);
        let meta = packed.as_ref().map_or(&raw, |(_, packed)| packed);
        bytes.copy(meta);
        let unit = if draft.synced { options.align_bytes } else { UNIT };
        let end = align(self.offset + bytes.len() as u64, unit);
        let pad = end - self.offset - bytes.len() as u64;
        let header = GroupHeader {
            lsn: self.lsn + 1,
            synced,
            chain: self.chain,
            pad: pad as u32,
            meta_stored: meta.len() as u32,
            meta_raw: raw.len() as u32,
            body: body as u32,
            blocks: blocks.len() as u32,
            batches: draft.batches,
            meta_codec,
        };
        let (head, checksum) = header.encode(place, self.offset, meta);
        bytes.zeros(pad as usize);
        bytes.set_head(&head);
        // What the group adds to the file's index: keys, values and numbers as in the meta, and a place for each block.
        let room = 4 * raw.len() + 128 * blocks.len();
        let raw = (GROUP_HEADER + raw.len()) as u64 + draft.blocks.iter().map(DraftBlock::raw_total).sum::<u64>();
        Encoded { bytes, checksum, blocks, room, raw, padding: pad }
    }

    /// Puts a group's bytes at the offset, or leaves nothing of them.
    fn put(&mut self, shared: &Shared, group: &Encoded<'_>, synced: bool) -> Result<(), Failure> {
        self.make_room(shared, group, synced)?;
        let bytes = &group.bytes;
        let Err(error) = self.file.write_vectored_at(&mut bytes.slices(), self.offset) else { return Ok(()) };
        self.wipe(shared, bytes.len() as u64)?;
        Err(refused("write")(error))
    }

    /// Lets the disk begin with what nobody asked to be synced, so that the seal, or whoever asks, has not all of the file to wait for.
    fn write_back(&mut self, synced: bool) {
        let unsynced = self.offset - self.told;
        if synced {
            self.told = self.offset;
        } else if unsynced >= WRITE_BACK {
            self.file.file.start_writeback(self.told, unsynced);
            self.told = self.offset;
        }
    }

    /// Takes space for a group and for the seal as well: so that a full disk does not keep the file from being followed by the reserve.
    fn make_room(&mut self, shared: &Shared, group: &Encoded<'_>, synced: bool) -> Result<(), Failure> {
        let options = &shared.options;
        if self.touched.is_rough(self.offset) {
            self.wait_for_landing(shared)?;
            self.touched.count(self.seq(), &shared.index);
        }
        let small = synced && group.bytes.len() < PREFILL_BELOW;
        let end = self.offset + (group.bytes.len() + self.touched.room() + group.room + FOOTER) as u64;
        if end > self.file.len() && options.prefill_bytes > 0 {
            let step = align(end, options.prefill_bytes).min(options.file_bytes.max(end));
            // Zeros pay where small groups are synced one after another: a sync that finds its space written before commits no metadata.
            let zeros = small && self.small_syncs;
            let take = |len| if zeros { self.file.prefill(len) } else { self.file.reserve(len) };
            let taken = match take(step) {
                // A disk without room for a whole step may have room for the group.
                Err(error) if is_full(&error) && step > end => take(end),
                outcome => outcome,
            };
            taken.map_err(refused("space"))?;
        }
        self.small_syncs = small;
        Ok(())
    }

    /// Wipes out what got there of `len` bytes at the offset, durably: a later process must not find a group in it.
    fn wipe(&self, shared: &Shared, len: u64) -> Result<(), Failure> {
        self.file.look_up_len().map_err(fatal("length after a failed write"))?;
        let there = self.file.len().saturating_sub(self.offset).min(len);
        if there > 0 {
            self.file.write_at(&vec![0; there as usize], self.offset).map_err(fatal("wipe"))?;
            shared.sync_file(&self.file)?;
        }
        Ok(())
    }

    /// Waits until everything written before the group at hand is in the index.
    pub(super) fn wait_for_landing(&self, shared: &Shared) -> Result<(), Failure> {
        shared.wait_for_landing();
        if let Some(LogError::Poisoned(why)) = shared.poisoned() {
            return Err(Failure::Fatal(why));
        }
        let landed = shared.landed.load(Ordering::Acquire);
        assert!(landed >= self.lsn, "group {} was written and has not landed, the last that has is {landed}", self.lsn);
        Ok(())
    }
}

/// A group as bytes.
struct Encoded<'d> {
    bytes: Pieces<'d>,
    checksum: u32,
    blocks: Vec<BlockRef>,
    /// No fewer bytes than it adds to the index of the file.
    room: usize,
    /// Its bytes before compression, and without padding.
    raw: u64,
    padding: u64,
}
