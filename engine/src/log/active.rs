//! The active file: where the next commit group goes, and the change to the next file.
//!
//! Change of file, in an order that leaves a whole log at every step: the old file's groups are synced; the next file is
//! made durable under its name; the old file's index and footer are written and synced; only then is the next file
//! written to. So a sealed file always has a successor, and an unsealed file before an empty one is still the active one.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::disk::is_full;

use super::block::DraftBlock;
use super::checkpoint::Standing;
use super::compress::Compressor;
use super::error::LogError;
use super::file::{LogFile, Seal};
use super::format::{Codec, FOOTER, FileHeader, GROUP_HEADER, GroupHeader, Place, UNIT, align, file_name};
use super::items::{BlockRef, encode, replay};
use super::pieces::Pieces;
use super::read::Shared;
use super::touched::Touched;
use super::writer::Draft;

/// For a larger commit group space is only reserved: its metadata costs little beside it, and zeros would be as much to write again.
const PREFILL_BELOW: usize = 16 << 10;

/// Why a group was not written.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The disk is full; nothing is left of the group.
    NoSpace(String),
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
}

fn fatal(what: &str) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| Failure::Fatal(format!("{what}: {error}"))
}

/// A full disk is survived where nothing is half done.
fn survivable(what: &str) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| if is_full(&error) { Failure::NoSpace(format!("{what}: {error}")) } else { fatal(what)(error) }
}

impl Active {
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

    /// Where the log stands; all of it must be synced.
    pub(super) fn standing(&self, shared: &Shared, compressor: &mut Compressor) -> Result<Standing, LogError> {
        let file = |seq: &u64| shared.files.get(*seq).ok_or_else(|| LogError::Missing { file: file_name(*seq) });
        let mark = Draft::mark();
        Ok(Standing {
            lsn: self.lsn,
            active: self.file.clone(),
            end: self.offset,
            mark: self.encode(shared, &mark, self.lsn, compressor).bytes.to_vec(),
            sealed: self.older.iter().map(file).collect::<Result<_, _>>()?,
        })
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
        let body: u64 = draft.blocks.iter().map(|block| block.total()).sum();
        let meta_most = encode(&[], &draft.items).len() as u64 + draft.blocks.len() as u64 * 16;
        let most = GROUP_HEADER as u64 + body + meta_most + shared.options.align_bytes;
        if body + meta_most > u64::from(u32::MAX) / 2 {
            return Err(Failure::Fatal("commit group is too large".to_owned()));
        }
        if self.used && self.offset + most > shared.options.file_bytes {
            self.rotate(shared, draft.urgent)?;
        }
        // What is known to be durable when the group is encoded, and so before it is on disk.
        let synced = shared.synced.load(Ordering::Acquire);
        let mut encoded = self.encode(shared, draft, synced, compressor);
        let mut outcome = self.put(shared, &encoded, draft.synced);
        // No room to grow: in another file there may be; and if there is none in that either, the reserve has room.
        for step in [Active::rotate_urgently, Active::refit] {
            if draft.urgent && matches!(outcome, Err(Failure::NoSpace(_))) && step(self, shared)? {
                encoded = self.encode(shared, draft, synced, compressor);
                outcome = self.put(shared, &encoded, draft.synced);
            }
        }
        outcome?;
        if let Err(damage) = replay(&draft.items, &encoded.blocks, self.seq(), &mut self.touched) {
            return Err(Failure::Fatal(format!("commit group does not fit its file: {}", damage.0)));
        }
        if let Some(metrics) = &shared.metrics {
            metrics.bytes_stored.inc_by(encoded.bytes.len() as u64);
        }
        self.offset += encoded.bytes.len() as u64;
        self.used = true;
        self.lsn += 1;
        self.chain = encoded.checksum;
        // A marker of a clean stop vouches for all but itself, and nothing needs to vouch for it.
        self.vouched = if draft.items.is_empty() { self.lsn } else { synced };
        Ok((self.lsn, encoded.blocks))
    }

    fn encode<'d>(&self, shared: &Shared, draft: &'d Draft, synced: u64, compressor: &mut Compressor) -> Encoded<'d> {
        let body: u64 = draft.blocks.iter().map(DraftBlock::total).sum();
        let options = &shared.options;
        let place = self.file.place;
        let mut bytes = Pieces::default();
        bytes.zeros(GROUP_HEADER);
        let mut blocks = Vec::with_capacity(draft.blocks.len());
        for block in &draft.blocks {
            let offset = self.offset + bytes.len() as u64;
            blocks.push(block.write(&mut bytes, place, offset));
        }
        let raw = encode(&blocks, &draft.items);
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
        Encoded { bytes, checksum, blocks, room }
    }

    /// Puts a group's bytes at the offset; on a full disk wipes out what got there.
    fn put(&mut self, shared: &Shared, group: &Encoded<'_>, synced: bool) -> Result<(), Failure> {
        let options = &shared.options;
        // Room for the seal as well: so that a full disk does not keep the file from being followed by the reserve.
        if self.touched.is_rough(self.offset) {
            self.wait_for_landing(shared)?;
            self.touched.count(self.seq(), &shared.index);
        }
        let small = synced && group.bytes.len() < PREFILL_BELOW;
        let end = self.offset + (group.bytes.len() + self.touched.room() + group.room + FOOTER) as u64;
        if end > self.file.len() && options.prefill_bytes > 0 {
            let target = align(end, options.prefill_bytes).min(options.file_bytes.max(end));
            // Zeros pay where small groups are synced one after another: a sync that finds its space written before commits no metadata.
            if small && self.small_syncs {
                self.file.prefill(target).map_err(survivable("prefill"))?;
            } else {
                self.file.reserve(target).map_err(survivable("reserve"))?;
            }
        }
        self.small_syncs = small;
        let bytes = &group.bytes;
        let Err(error) = self.file.write_vectored_at(&mut bytes.slices(), self.offset) else { return Ok(()) };
        let failure = survivable("write")(error);
        if matches!(failure, Failure::NoSpace(_)) {
            let there = self.file.len().saturating_sub(self.offset).min(bytes.len() as u64);
            if there > 0 {
                self.file.write_at(&vec![0; there as usize], self.offset).map_err(fatal("wipe"))?;
                shared.sync_file(&self.file)?;
            }
        }
        Err(failure)
    }

    /// Waits until everything written before the group at hand is in the index.
    fn wait_for_landing(&self, shared: &Shared) -> Result<(), Failure> {
        drop(shared.landing.lock());
        if let Some(LogError::Poisoned(why)) = shared.poisoned() {
            return Err(Failure::Fatal(why));
        }
        let landed = shared.landed.load(Ordering::Acquire);
        assert!(landed >= self.lsn, "group {} was written and has not landed, the last that has is {landed}", self.lsn);
        Ok(())
    }

    /// Goes on in the next file, which may be the reserve, if this one has a group; returns whether it did.
    fn rotate_urgently(&mut self, shared: &Shared) -> Result<bool, Failure> {
        if !self.used {
            return Ok(false);
        }
        self.rotate(shared, true).map(|()| true)
    }

    /// Goes on in the reserve, which takes the place of this file, if this one has no group; returns whether it did.
    fn refit(&mut self, shared: &Shared) -> Result<bool, Failure> {
        if self.used {
            return Ok(false);
        }
        let fitted = shared.refit(&self.file).map_err(|error| Failure::Fatal(format!("reserve: {error}")))?;
        let Some(fitted) = fitted.map(Arc::new) else { return Ok(false) };
        shared.files.insert(fitted.clone());
        self.file = fitted;
        Ok(true)
    }

    /// Seals this file and goes on in the next.
    fn rotate(&mut self, shared: &Shared, urgent: bool) -> Result<(), Failure> {
        self.sync(shared)?;
        self.wait_for_landing(shared)?;
        let index = self.touched.encode(self.seq(), &shared.index);
        let seal = Seal::new(&self.file, self.offset, index, self.lsn, self.chain);
        // With the space taken first, a full disk is noticed while nothing is half done.
        self.file.prefill(seal.file_len()).map_err(survivable("prefill"))?;
        self.older.insert(self.seq());
        let (next, data_offset) = match self.next(shared, urgent) {
            Ok((next, data_offset)) => (Arc::new(next), data_offset),
            Err(failure) => {
                self.older.remove(&self.seq());
                return Err(failure);
            }
        };
        seal.write(&self.file).map_err(fatal("seal"))?;
        shared.files.insert(next.clone());
        if let Some(metrics) = &shared.metrics {
            metrics.rotations.inc();
        }
        self.offset = data_offset;
        self.used = false;
        self.file = next;
        self.touched = Touched::default();
        Ok(())
    }

    /// The file after this one, of a spare or new, and where its first group goes.
    fn next(&self, shared: &Shared, urgent: bool) -> Result<(LogFile, u64), Failure> {
        let place = self.file.place;
        let mut header = FileHeader {
            place: Place { seq: place.seq + 1, ..place },
            prev_seq: place.seq,
            first_lsn: self.lsn + 1,
            chain: self.chain,
            data_offset: 0,
            flags: 0,
            live: ranges(&self.older),
            changed: Some(self.touched.groups().collect()),
        };
        let disk = shared.disk.as_ref();
        let (next, spare) = shared.next_file(&mut header, urgent);
        let next = next.map_err(|error| {
            // Only before the new name exists is a full disk harmless: then there is but a temporary file, or the spare.
            let named = disk.open(&file_name(header.place.seq)).is_ok();
            shared.spares.lock().extend(spare.filter(|_| !named));
            if named { fatal("next file")(error) } else { survivable("next file")(error) }
        })?;
        Ok((next, u64::from(header.data_offset)))
    }
}

/// A group as bytes.
struct Encoded<'d> {
    bytes: Pieces<'d>,
    checksum: u32,
    blocks: Vec<BlockRef>,
    /// No fewer bytes than it adds to the index of the file.
    room: usize,
}

/// Numbers as ranges.
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
