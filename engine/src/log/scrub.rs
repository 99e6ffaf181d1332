//! Scrub: what a read or a restart needs of the log is read and verified again, a little at a time, round after round.
//!
//! Damage to what nobody reads is found only when it is needed: by a follower that lags, by a restart, when other replicas may be damaged
//! as well. So everything that would be needed then is gone through, file by file:
//!
//! - of the active file, every commit group that is in the index and synced when the round begins: a restart reads all of them;
//! - of each sealed file its header, under the file's name, its footer and the checksum of its index; then, in their order, the blocks
//!   that hold a live entry, each once, however many groups share it. Dead ones are nobody's.
//!
//! # What is read
//!
//! The disk. The log's cache is neither asked nor filled, and the system is told to forget its pages of a sealed file before it is begun: they
//! are there since they were written, and say nothing of the disk. They are clean, so nothing is lost by it but a reader's time; and what a reader
//! brings back comes from the disk. Those of the
//! active file are left alone: some of them are not written out, and the file will be sealed.
//!
//! # Memory
//!
//! The places of [`PLACES`] blocks, the numbers of all Raft groups while these are looked up, and the block, the commit group, the stored index or
//! the header that is being read.
//!
//! Each damaged place is told once as long as the log is open (`told.rs`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::GroupId;
use super::error::{Damage, LogError, Result};
use super::file::LogFile;
use super::format::{FOOTER, FileHeader, GROUP_HEADER, PAGE};
use super::read::Shared;
use super::reader::{CommitGroup, GroupReader, Head};
use super::runs::Span;
use super::tools::{Finding, sound_block};

/// What one call of scrub came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Bytes that were read.
    pub bytes: u64,
    /// What is damaged and was not told before.
    pub damage: Vec<Finding>,
    /// Whether a round ended with this call; the next one begins anew.
    pub done: bool,
}

/// So many blocks are looked up in one pass through the index, which takes a few MB: of usual ones what dozens of files hold, of the smallest, half a
/// dozen.
const PLACES: usize = 256 << 10;
/// No more runs of a group are looked up at once: whoever appends to the group waits.
const RUNS: usize = 1024;

/// A block, by file and offset.
type BlockPlace = (u64, u64);

/// How far a round is.
pub(crate) struct Round {
    /// The active file, until it is done.
    tail: Option<Tail>,
    /// Sealed files that are left, the next one last, and the newest of them all.
    files: Vec<u64>,
    newest: u64,
    /// The number of the one whose blocks are being read.
    current: Option<u64>,
    /// Blocks to be read, and the place before which all are looked up.
    places: BTreeSet<BlockPlace>,
    looked_up: BlockPlace,
    /// Memory to read blocks into.
    space: Vec<u8>,
}

/// The file that was active when the round began, up to what was in the index and durable then.
struct Tail {
    seq: u64,
    upto: u64,
    /// Once the header is read.
    at: Option<Position>,
}

/// Between two commit groups.
struct Position {
    offset: u64,
    /// Of the group before.
    lsn: u64,
    chain: u32,
}

impl Shared {
    /// Goes on with the round, or begins one, until about `most` bytes are read: at most a block, a commit group or an index more. One caller at a
    /// time; others wait.
    ///
    /// A log that was salvaged is damaged, and its report says where; of a poisoned one nobody knows what is on the disk. There is nothing to
    /// look for.
    pub(crate) fn scrub(&self, most: u64) -> ScrubReport {
        let mut scrub = self.scrub.lock();
        let mut report = ScrubReport::default();
        if self.read_only().is_some() || self.poisoned().is_some() {
            return ScrubReport { done: true, ..report };
        }
        let mut round = scrub.take().unwrap_or_else(|| Round::begin(self));
        while report.bytes < most.max(1) && !report.done {
            report.done = !round.step(self, most, &mut report);
        }
        if !report.done {
            *scrub = Some(round);
        }
        if let Some(metrics) = &self.metrics {
            metrics.scrubbed_bytes.inc_by(report.bytes);
        }
        report
    }

    /// The header of `file`, under its name, as a restart would read it, and the file as it is found so; `None` where it was told to be damaged, or
    /// is given up.
    fn reload(&self, file: &Arc<LogFile>, report: &mut ScrubReport) -> Option<(LogFile, FileHeader)> {
        // While somebody holds it no other file takes its space, so what has the name is this one.
        let loaded = LogFile::load(self.disk.as_ref(), file.place.seq, Some(file.place.identity));
        report.bytes += loaded.as_ref().map_or(PAGE, |(_, header)| u64::from(header.data_offset));
        loaded.map_err(|error| self.tell_of_file(file, 0, &error, report)).ok()
    }

    /// Tells what is wrong with a file as a whole, unless purge gives it up.
    fn tell_of_file(&self, file: &Arc<LogFile>, offset: u64, error: &LogError, report: &mut ScrubReport) {
        let seq = file.place.seq;
        if self.files.has(file) && !self.released.lock().contains(&seq) {
            self.tell(seq, offset, error, || self.concerned_by(seq), &mut report.damage);
        }
    }

    /// Reads header and seal of a sealed file; `false` where there is none any more.
    fn scrub_file(&self, seq: u64, report: &mut ScrubReport) -> bool {
        let Some(file) = self.files.get(seq) else { return false };
        file.file.drop_cached(0, u64::MAX);
        let loaded = self.reload(&file, report);
        let found = loaded.as_ref().map_or(file.as_ref(), |(found, _)| found);
        match read_seal(found) {
            Ok(bytes) => report.bytes += bytes,
            Err(error) => {
                report.bytes += FOOTER as u64;
                self.tell_of_file(&file, file.len(), &error, report);
            }
        }
        true
    }

    /// Reads a block of a sealed file.
    fn scrub_block(&self, seq: u64, offset: u64, space: &mut Vec<u8>, report: &mut ScrubReport) {
        // Purge may have given it up.
        let Some(file) = self.files.get(seq) else { return };
        let error = match file.verify_block(offset, space) {
            Ok(bytes) => {
                report.bytes += bytes;
                return;
            }
            Err(error) => error,
        };
        report.bytes += PAGE;
        // What died or was moved since it was looked up needs it no more.
        let groups = self.index.groups_at(seq, offset);
        if !groups.is_empty() {
            self.tell(seq, offset, &error, || groups, &mut report.damage);
        }
    }

    /// The blocks in use from `from` on, in files up to `newest`: the first [`PLACES`] of them.
    fn blocks_from(&self, from: BlockPlace, newest: u64) -> BTreeSet<BlockPlace> {
        let mut places = BTreeSet::new();
        for group in self.index.groups() {
            let mut next = Some(0);
            while let Some(first) = next {
                let runs =
                    self.index.with(group, |group| group.runs.iter_from(first).take(RUNS).collect::<Vec<Span>>());
                let runs = runs.unwrap_or_default();
                for span in &runs {
                    let place = (span.file, span.offset);
                    // Most are too far on: what is not kept is not inserted first.
                    let is_past = places.len() == PLACES && places.last().is_some_and(|last| place > *last);
                    if place < from || span.file > newest || is_past {
                        continue;
                    }
                    if places.insert(place) && places.len() > PLACES {
                        places.pop_last();
                    }
                }
                next = runs.last().filter(|_| runs.len() == RUNS).map(Span::end);
            }
        }
        places
    }
}

impl Round {
    fn begin(shared: &Shared) -> Round {
        // Before the files are looked at: what is in the index by now stands in these.
        let upto = shared.landed.load(Ordering::Acquire).min(shared.synced.load(Ordering::Acquire));
        let mut files: Vec<u64> = shared.files.lengths().into_iter().map(|(seq, _)| seq).collect();
        let active = files.pop();
        let newest = files.last().copied().unwrap_or(0);
        files.reverse();
        Round {
            tail: active.map(|seq| Tail { seq, upto, at: None }),
            files,
            newest,
            current: None,
            places: BTreeSet::new(),
            looked_up: (0, 0),
            space: Vec::new(),
        }
    }

    /// Reads on, a piece; `false` at the end of the round.
    fn step(&mut self, shared: &Shared, most: u64, report: &mut ScrubReport) -> bool {
        if let Some(mut tail) = self.tail.take() {
            self.tail = tail.read(shared, most, report).then_some(tail);
        } else if let Some(seq) = self.current {
            match self.next_block(shared, seq) {
                Some(offset) => shared.scrub_block(seq, offset, &mut self.space, report),
                None => self.current = None,
            }
        } else if let Some(seq) = self.files.pop() {
            self.current = shared.scrub_file(seq, report).then_some(seq);
        } else {
            return false;
        }
        true
    }

    /// The next block in use of file `seq`.
    fn next_block(&mut self, shared: &Shared, seq: u64) -> Option<u64> {
        // Of files that are gone since.
        self.places = self.places.split_off(&(seq, 0));
        if self.places.is_empty() && self.looked_up.0 <= seq {
            self.places = shared.blocks_from(self.looked_up.max((seq, 0)), self.newest);
            let last = self.places.last().filter(|_| self.places.len() == PLACES);
            self.looked_up = last.map_or((self.newest + 1, 0), |(file, offset)| (*file, offset + 1));
        }
        let place = self.places.first().copied().filter(|(file, _)| *file == seq)?;
        self.places.remove(&place);
        Some(place.1)
    }
}

/// Reads footer and index of a sealed file; returns their bytes.
fn read_seal(file: &LogFile) -> Result<u64> {
    let footer = file.seal()?;
    file.sound_index(&footer)?;
    Ok(FOOTER as u64 + u64::from(footer.index_stored))
}

impl Tail {
    /// Reads commit groups until `most` bytes are read; `false` at the end, or where there is no going on.
    fn read(&mut self, shared: &Shared, most: u64, report: &mut ScrubReport) -> bool {
        // Purge may have given it up. Where the reserve took its place, there is no group in either.
        let Some(file) = shared.files.get(self.seq) else { return false };
        if self.at.is_none() {
            let Some((_, header)) = shared.reload(&file, report) else { return false };
            let lsn = header.first_lsn.saturating_sub(1);
            self.at = Some(Position { offset: u64::from(header.data_offset), lsn, chain: header.chain });
        }
        let Some(at) = &mut self.at else { return false };
        let mut reader = GroupReader::exact(&file);
        let mut failed = None;
        while failed.is_none() && at.lsn < self.upto && report.bytes + reader.bytes_read < most.max(1) {
            match next_group(&mut reader, at) {
                Ok(group) => {
                    scrub_group(shared, &mut reader, &group, &mut report.damage);
                    *at = Position { offset: group.end(), lsn: group.header.lsn, chain: group.checksum };
                }
                Err(error) => failed = Some(error),
            }
        }
        report.bytes += reader.bytes_read;
        if let Some(error) = &failed {
            report.bytes += GROUP_HEADER as u64;
            shared.tell_of_file(&file, at.offset, error, report);
        }
        failed.is_none() && at.lsn < self.upto
    }
}

/// The group at the position, which is known to be there.
fn next_group(reader: &mut GroupReader<'_>, at: &Position) -> Result<CommitGroup> {
    let continues = |head: Head| {
        let damage = Damage("commit group does not continue the chain");
        if head.continues(at.lsn, at.chain) { Ok(head) } else { Err(damage) }
    };
    let group = reader.head(at.offset)?.and_then(continues).and_then(Head::open);
    group.map_err(|damage| damage.at(&reader.file.name, at.offset))
}

/// Reads the blocks of a group.
fn scrub_group(shared: &Shared, reader: &mut GroupReader<'_>, group: &CommitGroup, damage: &mut Vec<Finding>) {
    let file = reader.file;
    for block in &group.blocks {
        let read = sound_block(reader, block).and_then(|sound| sound.map_err(|what| what.at(&file.name, block.offset)));
        if let Err(error) = read {
            let concerned = || -> Vec<GroupId> { group.groups_in(block) };
            shared.tell(file.place.seq, block.offset, &error, concerned, damage);
        }
    }
}
