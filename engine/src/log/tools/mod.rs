//! Tools for a log that nobody has open: [`check()`] it, [`dump()`] it, count what it holds ([`stats()`]), and make of a damaged one a new
//! one that opens ([`repair()`]).
//!
//! Functions over a [`Disk`](crate::disk::Disk) that read everything they need, tell how far they are, and change nothing on the disk they
//! read. They see a log through the same survey, walk and replay as [`RecoveryMode::Salvage`](super::RecoveryMode::Salvage), so that
//! what they say of damage is what opening it so shows.

mod check;
mod dump;
mod repair;
mod stats;

use std::fmt;

use super::GroupId;
use super::block::Block;
use super::error::{LogError, Result, concerned};
use super::format::parse_file_name;
use super::items::BlockRef;
use super::reader::{CommitGroup, GroupReader, Verified};
use super::salvage::survey::{Found, Survey};
use super::salvage::walk::{Gap, Walk};
use super::scan::scan;

pub use self::check::{CheckReport, CheckedFile, TornTail, check};
pub use self::dump::{Change, DumpOptions, EntryRecord, FileRecord, GroupRecord, Record, SealRecord, dump};
pub use self::repair::{RepairOptions, RepairReport, RepairedGroup, repair};
pub use self::stats::{CountedFile, CountedGroup, StatsReport, stats};

/// How far a tool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes done.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// One thing that is wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file's name.
    pub file: String,
    /// Where in it, in bytes.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// The groups that it concerns, ascending; empty where that cannot be known.
    pub groups: Vec<GroupId>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}{}", self.file, self.offset, self.what, concerned(&self.groups))
    }
}

impl Finding {
    fn new(file: &str, offset: u64, what: impl Into<String>, groups: Vec<GroupId>) -> Finding {
        Finding { file: file.to_owned(), offset, what: what.into(), groups }
    }

    /// What an error says of `file`.
    pub(super) fn of(error: &LogError, file: &str) -> Finding {
        let name = error.file().unwrap_or(file);
        let (offset, what) = match error {
            LogError::Corrupt { offset, what, .. } => (*offset, what.clone()),
            LogError::Missing { .. } => (0, "file is missing".to_owned()),
            LogError::Misplaced { what, .. } => (0, format!("file is not what its name says: {what}")),
            other => (0, other.to_string()),
        };
        Finding::new(name, offset, what, error.groups().to_vec())
    }

    /// The same for an error that was met at `offset`, where it does not name a place itself.
    pub(super) fn met(error: &LogError, file: &str, offset: u64) -> Finding {
        let finding = Finding::of(error, file);
        if error.file().is_some() { finding } else { Finding { offset, ..finding } }
    }
}

/// What is wrong with the blocks of a commit group: all of them are read, verified and expanded.
fn damaged_blocks(reader: &mut GroupReader<'_>, group: &CommitGroup) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for block in &group.blocks {
        if let Err(damage) = sound_block(reader, block)? {
            findings.push(Finding::new(&reader.file.name, block.offset, damage.0, group.groups_in(block)));
        }
    }
    Ok(findings)
}

/// Reads, verifies and expands a block.
pub(super) fn sound_block(reader: &mut GroupReader<'_>, block: &BlockRef) -> Result<Verified<()>> {
    // All of it at once, so that it is read once.
    reader.get(block.offset, block.total())?;
    match reader.verify_block(block)? {
        Ok(()) => expand(reader, block),
        damaged => Ok(damaged),
    }
}

/// Expands a block whose checksum is right.
fn expand(reader: &mut GroupReader<'_>, block: &BlockRef) -> Result<Verified<()>> {
    let place = reader.file.place;
    let bytes = reader.get(block.offset, block.total())?.unwrap_or_default();
    Ok(Block::decode(bytes, place, block.offset).map(drop))
}

/// What a gap between the commit groups of the file at this place of the list is.
fn gap_finding(survey: &Survey, at: usize, found: &Found, gap: &Gap) -> Finding {
    Finding::new(&found.file.name, gap.from, gap.damage.0, survey.changed_in(at).unwrap_or_default())
}

/// What is wrong with the seal of the file at this place of the list, which must have one unless it is the newest that is in use.
fn seal_finding(survey: &Survey, at: usize, found: &Found) -> Option<Finding> {
    if may_be_unsealed(survey, at) {
        return None;
    }
    found.file.sealed().err().map(|error| file_finding(survey, &error))
}

/// Whether the file at this place of the list is the newest one, or the one before a newest that was never written to.
fn may_be_unsealed(survey: &Survey, at: usize) -> bool {
    at + 1 == survey.files.len() || is_unused(survey, at + 1)
}

/// Whether the file at this place of the list is the newest, and was never written to, by the rule by which a start tells.
fn is_unused(survey: &Survey, at: usize) -> bool {
    if at + 1 != survey.files.len() {
        return false;
    }
    let found = survey.files.get(at).and_then(|file| file.found.as_ref());
    let (Some(found), Some(known)) = (found, survey.known(at, None)) else { return false };
    // A file with groups need not be read to its end.
    let has_groups = !matches!(Walk::new(&found.file, known).step(), Ok(None));
    let header = found.header.as_ref().filter(|_| !has_groups);
    header.is_some_and(|header| scan(&found.file, header).is_ok_and(|scan| !scan.in_use))
}

/// What is wrong with a file as a whole, with the groups that it changes where the file after it tells.
fn file_finding(survey: &Survey, problem: &LogError) -> Finding {
    let mut finding = Finding::of(problem, "");
    // There may be many files, and all of them missing.
    let seq = parse_file_name(&finding.file);
    let at = seq.and_then(|seq| survey.files.binary_search_by_key(&seq, |file| file.seq).ok());
    if finding.groups.is_empty() {
        finding.groups = at.and_then(|at| survey.changed_in(at)).unwrap_or_default();
    }
    finding
}

/// Tells how far a tool is, not more often than something has changed that is worth it.
struct Meter<'a> {
    tell: &'a mut dyn FnMut(Progress),
    progress: Progress,
    told: u64,
}

/// So many bytes are worth telling.
const STEP: u64 = 256 << 10;

impl<'a> Meter<'a> {
    fn new(total: u64, tell: &'a mut dyn FnMut(Progress)) -> Meter<'a> {
        let progress = Progress { done: 0, total };
        tell(progress);
        Meter { tell, progress, told: 0 }
    }

    /// So many bytes are done, of all.
    fn at(&mut self, done: u64) {
        self.progress.done = done.clamp(self.progress.done, self.progress.total.max(self.progress.done));
        if self.progress.done - self.told >= STEP {
            self.tell();
        }
    }

    /// So many more are done.
    fn add(&mut self, bytes: u64) {
        self.at(self.progress.done.saturating_add(bytes));
    }

    /// There are so many more to do than was known.
    fn more(&mut self, bytes: u64) {
        self.progress.total = self.progress.total.saturating_add(bytes);
    }

    /// All is done.
    fn end(&mut self) {
        self.progress.done = self.progress.total;
        self.tell();
    }

    fn tell(&mut self) {
        self.told = self.progress.done;
        (self.tell)(self.progress);
    }
}
