//! Scrub: verifies on disk what a read or a restart would need, in small steps, round after round.
//!
//! Without scrub, damage in cold data is found only when the data is needed: for a slow follower, or by a restart. By
//! then other replicas may be damaged as well. A round reads file by file:
//!
//! - of the active file, and of the one before it until that is sealed, every commit group that is published and synced
//!   when the round starts: a restart reads all of them;
//! - of each sealed file its header, under the file's name, its footer and the checksum of its index; then, in order,
//!   each block with a live entry, once. Dead blocks are skipped: no group references them.
//!
//! # Caches
//!
//! Scrub reads from the disk. It bypasses the block cache. It drops the page cache of a sealed file before it reads the
//! file: pages that date from the write prove nothing about the disk. They are clean, so nothing is lost but time, and
//! the pages that a reader loads afterwards come from the disk. The active file keeps its pages: some are not written
//! back yet, and the file is scrubbed again once it is sealed.
//!
//! # Memory
//!
//! The locations of [`MAX_PLACES`] blocks; the numbers of all Raft groups during a lookup of these locations; one
//! block, commit group, stored index or header.
//!
//! Each damaged location is reported once while the log is open ([`LogState::report_once`]).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use crate::log::error::{Damage, Finding, LogError, Result};
use crate::log::format::{FOOTER, FileHeader, GROUP_HEADER, PAGE, Span};
use crate::log::purge::Purger;
use crate::log::read::{CommitGroup, GroupReader, Head, LogFile, LogState};
use crate::log::types::GroupId;

/// The result of one call of scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Bytes read.
    pub bytes: u64,
    /// Newly found damage.
    pub damage: Vec<Finding>,
    /// Whether a round ended with this call. The next call begins a new one.
    pub done: bool,
}

/// Maximum number of blocks that one pass through the index looks up. Their locations take a few MB. Dozens of files
/// have as many blocks, or half a dozen files with the smallest blocks.
const MAX_PLACES: usize = 256 << 10;
/// Maximum number of runs of a group that are looked up at once. Appends to the group wait meanwhile.
const MAX_RUNS: usize = 1024;

/// A block, by file and offset.
type BlockPlace = (u64, u64);

/// The progress of a round.
struct Round {
    /// The unsealed files that are not finished, the next one last.
    tails: Vec<Tail>,
    /// Sealed files not read yet, the next one last.
    files: Vec<u64>,
    /// The newest sealed file of the round.
    newest: u64,
    /// The file whose blocks are being read.
    current: Option<u64>,
    /// Blocks to read.
    places: BTreeSet<BlockPlace>,
    /// All blocks before this one were looked up.
    looked_up: BlockPlace,
    /// A buffer for blocks.
    buffer: Vec<u8>,
}

/// A file that was not sealed when the round started, up to the position that was published and synced then.
struct Tail {
    seq: u64,
    end_lsn: u64,
    /// Set once the header is read.
    at: Option<GroupBoundary>,
}

/// The boundary between two commit groups.
struct GroupBoundary {
    offset: u64,
    /// Position and checksum of the group before.
    lsn: u64,
    chain: u32,
}

/// The scrub of one log.
pub(crate) struct Scrubber {
    purger: Arc<Purger>,
    round: Mutex<Option<Round>>,
}

impl Scrubber {
    /// For the log that `purger` purges.
    pub(crate) fn new(purger: Arc<Purger>) -> Scrubber {
        Scrubber { purger, round: Mutex::default() }
    }

    /// Continues the round, or starts one, until `max_bytes` are read. Exceeds them by at most one block, commit group
    /// or index. One caller at a time; others wait.
    ///
    /// Does nothing for a salvaged log, whose damage is in the recovery report, nor for a poisoned one, whose content
    /// on disk is unknown.
    pub(crate) fn scrub(&self, max_bytes: u64) -> ScrubReport {
        let mut current = self.round.lock();
        let mut report = ScrubReport::default();
        let reader = Reader { state: self.purger.state(), purger: &self.purger };
        let state = reader.state;
        if state.read_only().is_some() || state.poisoned().is_some() {
            return ScrubReport { done: true, ..report };
        }
        let mut round = current.take().unwrap_or_else(|| Round::begin(state));
        while report.bytes < max_bytes.max(1) && !report.done {
            report.done = !round.step(reader, max_bytes, &mut report);
        }
        if !report.done {
            *current = Some(round);
        }
        if let Some(metrics) = &state.metrics {
            metrics.scrubbed_bytes.inc_by(report.bytes);
        }
        report
    }
}

/// Reads parts of a log and reports damage.
#[derive(Clone, Copy)]
struct Reader<'a> {
    state: &'a LogState,
    purger: &'a Purger,
}

impl Reader<'_> {
    /// Reads the header of `file` under its name, as a restart would. Returns the file as found by name; `None` if it
    /// is damaged or purge deleted it.
    fn reload(&self, file: &Arc<LogFile>, report: &mut ScrubReport) -> Option<(LogFile, FileHeader)> {
        // A file with an open handle is not reused, so the file with this name is this one.
        let loaded = LogFile::load(self.state.disk.as_ref(), file.place.seq, Some(file.place.identity));
        report.bytes += loaded.as_ref().map_or(PAGE, |(_, header)| u64::from(header.data_offset));
        loaded.map_err(|error| self.report_file(file, 0, &error, report)).ok()
    }

    /// Reports an error of a whole file, unless purge deletes it.
    fn report_file(&self, file: &Arc<LogFile>, offset: u64, error: &LogError, report: &mut ScrubReport) {
        let seq = file.place.seq;
        if self.state.files.has(file) && !self.purger.is_dropped(seq) {
            self.state.report_once(seq, offset, error, || self.state.groups_changed_in(seq), &mut report.damage);
        }
    }

    /// Reads header and seal of a sealed file; `false` if the file was deleted.
    fn scrub_file(&self, seq: u64, report: &mut ScrubReport) -> bool {
        let Some(file) = self.state.files.get(seq) else { return false };
        file.file.drop_cached(0, u64::MAX);
        let loaded = self.reload(&file, report);
        let found = loaded.as_ref().map_or(file.as_ref(), |(found, _)| found);
        match read_seal(found) {
            Ok(bytes) => report.bytes += bytes,
            Err(error) => {
                report.bytes += FOOTER as u64;
                self.report_file(&file, file.len(), &error, report);
            }
        }
        true
    }

    /// Reads a block of a sealed file.
    fn scrub_block(&self, seq: u64, offset: u64, buffer: &mut Vec<u8>, report: &mut ScrubReport) {
        // Purge may have deleted it.
        let Some(file) = self.state.files.get(seq) else { return };
        let error = match file.verify_block(offset, buffer) {
            Ok(bytes) => {
                report.bytes += bytes;
                return;
            }
            Err(error) => error,
        };
        report.bytes += PAGE;
        // A block that died or was rewritten since the lookup is no longer needed.
        let groups = self.state.index.groups_at(seq, offset);
        if !groups.is_empty() {
            self.state.report_once(seq, offset, &error, || groups, &mut report.damage);
        }
    }

    /// The first [`MAX_PLACES`] blocks in use from `from` on, in files up to `newest`.
    fn blocks_from(&self, from: BlockPlace, newest: u64) -> BTreeSet<BlockPlace> {
        let mut places = BTreeSet::new();
        for group in self.state.index.groups() {
            let mut next = Some(0);
            while let Some(first) = next {
                let runs = self
                    .state
                    .index
                    .with(group, |group| group.runs.iter_from(first).take(MAX_RUNS).collect::<Vec<Span>>());
                let runs = runs.unwrap_or_default();
                for span in &runs {
                    let place = (span.file, span.offset);
                    // Most are beyond the first `MAX_PLACES`: do not insert them only to remove them again.
                    let is_past = places.len() == MAX_PLACES && places.last().is_some_and(|last| place > *last);
                    if place < from || span.file > newest || is_past {
                        continue;
                    }
                    if places.insert(place) && places.len() > MAX_PLACES {
                        places.pop_last();
                    }
                }
                next = runs.last().filter(|_| runs.len() == MAX_RUNS).map(Span::end);
            }
        }
        places
    }
}

impl Round {
    fn begin(state: &LogState) -> Round {
        // Loaded before the files are listed: groups published by now are in the listed files.
        let end_lsn = state.published.load(Ordering::Acquire).min(state.synced.load(Ordering::Acquire));
        let mut files: Vec<u64> = state.files.lengths().into_iter().map(|(seq, _)| seq).collect();
        let unsealed = state.unsealed();
        let tail = |seq, last_lsn: u64| Tail { seq, end_lsn: end_lsn.min(last_lsn), at: None };
        let mut tails: Vec<Tail> = files.pop().map(|active| tail(active, u64::MAX)).into_iter().collect();
        if let Some(full) = unsealed.filter(|full| files.pop_if(|last| *last == full.place.seq).is_some()) {
            tails.push(tail(full.place.seq, full.last_lsn.load(Ordering::Acquire)));
        }
        let newest = files.last().copied().unwrap_or(0);
        files.reverse();
        Round { tails, files, newest, current: None, places: BTreeSet::new(), looked_up: (0, 0), buffer: Vec::new() }
    }

    /// Reads the next piece; `false` at the end of the round.
    fn step(&mut self, reader: Reader<'_>, max_bytes: u64, report: &mut ScrubReport) -> bool {
        if let Some(tail) = self.tails.last_mut() {
            if !tail.read(reader, max_bytes, report) {
                self.tails.pop();
            }
        } else if let Some(seq) = self.current {
            match self.next_block(reader, seq) {
                Some(offset) => reader.scrub_block(seq, offset, &mut self.buffer, report),
                None => self.current = None,
            }
        } else if let Some(seq) = self.files.pop() {
            self.current = reader.scrub_file(seq, report).then_some(seq);
        } else {
            return false;
        }
        true
    }

    /// The next block in use of file `seq`.
    fn next_block(&mut self, reader: Reader<'_>, seq: u64) -> Option<u64> {
        // Drops blocks of deleted files.
        self.places = self.places.split_off(&(seq, 0));
        if self.places.is_empty() && self.looked_up.0 <= seq {
            self.places = reader.blocks_from(self.looked_up.max((seq, 0)), self.newest);
            let last = self.places.last().filter(|_| self.places.len() == MAX_PLACES);
            self.looked_up = last.map_or((self.newest + 1, 0), |(file, offset)| (*file, offset + 1));
        }
        let place = self.places.first().copied().filter(|(file, _)| *file == seq)?;
        self.places.remove(&place);
        Some(place.1)
    }
}

/// Reads footer and index of a sealed file. Returns their bytes.
fn read_seal(file: &LogFile) -> Result<u64> {
    let footer = file.seal()?;
    file.sound_index(&footer)?;
    Ok(FOOTER as u64 + u64::from(footer.index_stored))
}

impl Tail {
    /// Reads commit groups until `max_bytes` are read. Returns `false` at the end, or after damage.
    fn read(&mut self, reader: Reader<'_>, max_bytes: u64, report: &mut ScrubReport) -> bool {
        // Purge may have deleted the file. If the reserve replaced it, neither has a group.
        let Some(file) = reader.state.files.get(self.seq) else { return false };
        if self.at.is_none() {
            let Some((_, header)) = reader.reload(&file, report) else { return false };
            let lsn = header.first_lsn.saturating_sub(1);
            self.at = Some(GroupBoundary { offset: u64::from(header.data_offset), lsn, chain: header.chain });
        }
        let Some(at) = &mut self.at else { return false };
        let mut groups = GroupReader::exact(&file);
        let mut failed = None;
        while failed.is_none() && at.lsn < self.end_lsn && report.bytes + groups.bytes_read < max_bytes.max(1) {
            match next_group(&mut groups, at) {
                Ok(group) => {
                    scrub_group(reader.state, &mut groups, &group, &mut report.damage);
                    *at = GroupBoundary { offset: group.end(), lsn: group.header.lsn, chain: group.checksum };
                }
                Err(error) => failed = Some(error),
            }
        }
        report.bytes += groups.bytes_read;
        if let Some(error) = &failed {
            report.bytes += GROUP_HEADER as u64;
            reader.report_file(&file, at.offset, error, report);
        }
        failed.is_none() && at.lsn < self.end_lsn
    }
}

/// The group at the boundary, which must exist.
fn next_group(reader: &mut GroupReader<'_>, at: &GroupBoundary) -> Result<CommitGroup> {
    let continues = |head: Head| {
        let damage = Damage("commit group does not continue the chain");
        if head.continues(at.lsn, at.chain) { Ok(head) } else { Err(damage) }
    };
    let group = reader.head(at.offset)?.and_then(continues).and_then(Head::open);
    group.map_err(|damage| damage.at(&reader.file.name, at.offset))
}

/// Reads the blocks of a group.
fn scrub_group(state: &LogState, reader: &mut GroupReader<'_>, group: &CommitGroup, damage: &mut Vec<Finding>) {
    let file = reader.file;
    for block in &group.blocks {
        let read =
            reader.check_block(block).and_then(|checked| checked.map_err(|what| what.at(&file.name, block.offset)));
        if let Err(error) = read {
            let concerned = || -> Vec<GroupId> { group.groups_in(block) };
            state.report_once(file.place.seq, block.offset, &error, concerned, damage);
        }
    }
}
