//! Applies the readable part of a surveyed log, in order, and collects the losses.

use std::fmt;

use super::survey::{ExistingFile, Survey, before_first};
use super::walk::{ChainPosition, Gap, GroupWalk, Step};
use crate::log::error::Result;
use crate::log::format::{FOOTER, Footer, Sink, file_name, replay};
use crate::log::index::{DoubtTracker, Doubts, FileSummary, Index};
use crate::log::read::Seal;
use crate::log::types::{GroupId, Lsn};

/// A part of the log that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The file's name.
    pub file: String,
    /// The offset where the part begins; 0 for a whole file.
    pub from: u64,
    /// The offset where the part ends; 0 for a whole file.
    pub to: u64,
    /// The position of the first missing commit group, if known.
    pub first_lsn: Option<Lsn>,
    /// The position of the last missing commit group, if known.
    pub last_lsn: Option<Lsn>,
    /// What is wrong.
    pub what: String,
    /// The groups that it may concern, ascending; `None` means any group.
    pub concerns: Option<Vec<GroupId>>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.to > self.from {
            write!(f, " at {} to {}", self.from, self.to)?;
        }
        write!(f, ": {}", self.what)?;
        match (self.first_lsn, self.last_lsn) {
            (Some(Lsn(first)), Some(Lsn(last))) if first == last => write!(f, "; commit group {first} is lost"),
            (Some(Lsn(first)), Some(Lsn(last))) => write!(f, "; commit groups {first} to {last} are lost"),
            (Some(Lsn(first)), None) => write!(f, "; commit groups from {first} on are lost"),
            (None, Some(Lsn(last))) => write!(f, "; commit groups up to {last} are lost"),
            (None, None) => Ok(()),
        }
    }
}

/// The readable part of a log.
pub(crate) struct Replay {
    pub(crate) index: Index,
    pub(crate) doubts: Doubts,
    pub(crate) losses: Vec<Loss>,
    /// Files whose index is damaged and whose groups were read instead.
    pub(crate) salvaged: Vec<String>,
    /// File and offset of a torn tail, and its bytes in this file.
    pub(crate) tail: Option<(String, u64, u64)>,
    pub(crate) files_by_index: usize,
    pub(crate) files_scanned: usize,
    pub(crate) bytes_read: u64,
    /// Whether doubtful records stay in the index.
    keep_doubtful: bool,
    /// The last group read, if known.
    pub(crate) at: Option<ChainPosition>,
}

impl Replay {
    /// Applies all files of `survey`. With `keep_doubtful` the index also holds records before a loss that may concern
    /// them. `done` is called with the bytes of each finished file.
    pub(crate) fn run(survey: &Survey, keep_doubtful: bool, done: &mut dyn FnMut(u64)) -> Result<Replay> {
        let mut replay = Replay {
            index: Index::new(),
            doubts: Doubts::default(),
            losses: Vec::new(),
            salvaged: Vec::new(),
            tail: None,
            files_by_index: 0,
            files_scanned: 0,
            bytes_read: 0,
            keep_doubtful,
            // File 1 is the first.
            at: survey.files.first().filter(|file| file.seq == 1).map(|_| ChainPosition { lsn: 0, chain: 0 }),
        };
        for (at, file) in survey.files.iter().enumerate() {
            match &file.found {
                Some(found) => {
                    replay.file(survey, at, found)?;
                    done(found.file.len());
                }
                None => replay.add_file_loss(survey, at, "file is missing"),
            }
        }
        Ok(replay)
    }

    fn file(&mut self, survey: &Survey, at: usize, found: &ExistingFile) -> Result<()> {
        let header = found.header.as_ref();
        let follows = at.checked_sub(1).and_then(|before| survey.files.get(before)).map(|before| before.seq);
        if let (Some(header), Some(before)) = (header, self.at)
            && Some(header.prev_seq) == follows
            && before_first(header) != before
        {
            let (first, last) = (before.lsn.saturating_add(1), header.first_lsn.saturating_sub(1));
            let what = "file does not continue the one before";
            self.add_loss(&found.file.name, (0, 0), (Some(first), Some(last)), what, None);
        }
        self.bytes_read += header.map_or(0, |header| u64::from(header.data_offset)) + FOOTER as u64;
        if let Some(footer) = found.footer
            && let Ok((_, summary)) = found.file.sealed()
        {
            self.files_by_index += 1;
            self.bytes_read += u64::from(footer.index_stored);
            self.apply(survey, at, &footer, &summary);
            return Ok(());
        }
        if !survey.may_be_unsealed(at) {
            self.salvaged.push(found.file.name.clone());
        }
        self.walk(survey, at, found)
    }

    /// Applies the index of a sealed file.
    fn apply(&mut self, survey: &Survey, at: usize, footer: &Footer, summary: &FileSummary) {
        let Some(seq) = survey.files.get(at).map(|file| file.seq) else { return };
        let mut tracker = DoubtTracker { editor: self.index.editor(), doubts: &mut self.doubts };
        let applied = summary.apply(seq, &mut tracker);
        drop(tracker);
        match applied {
            Ok(()) => self.at = Some(ChainPosition { lsn: footer.last_lsn, chain: footer.chain }),
            Err(damage) => self.add_file_loss(survey, at, damage.0),
        }
    }

    /// Reads all groups of a file.
    fn walk(&mut self, survey: &Survey, at: usize, found: &ExistingFile) -> Result<()> {
        let Some(facts) = survey.facts(at, self.at) else { return Ok(()) };
        let (name, seq) = (found.file.name.as_str(), found.file.place.seq);
        let mut walk = GroupWalk::new(&found.file, facts);
        let mut is_empty = true;
        let is_last = at + 1 == survey.files.len();
        // Set if neither the footer nor the next file records the last group.
        let mut summary = (!is_last && facts.last.is_none()).then(FileSummary::default);
        while let Some(step) = walk.step()? {
            is_empty = false;
            let gap = match step {
                Step::Gap(gap) => gap,
                Step::Group(group) => {
                    if let Some(summary) = &mut summary {
                        // Damage is ignored here: the replay below turns it into a gap.
                        let _ = replay(&group.items, &group.blocks, seq, summary);
                    }
                    let mut tracker = DoubtTracker { editor: self.index.editor(), doubts: &mut self.doubts };
                    let Err(damage) = replay(&group.items, &group.blocks, seq, &mut tracker) else { continue };
                    let lsn = Some(group.header.lsn);
                    Gap { from: group.offset, to: group.end(), first_lsn: lsn, last_lsn: lsn, damage }
                }
            };
            let concerns = survey.changed_in(at);
            self.add_loss(name, (gap.from, gap.to), (gap.first_lsn, gap.last_lsn), gap.damage.0, concerns);
        }
        self.files_scanned += 1;
        self.bytes_read += walk.reader.bytes_read;
        if is_last && (walk.garbage_end > walk.offset || survey.cut_file.is_some()) {
            self.tail = Some((name.to_owned(), walk.offset, walk.garbage_end - walk.offset));
        }
        let ended = walk.at;
        let expected = facts.last.filter(|_| ended.is_some());
        if is_empty && found.header.is_none() && (ended.is_none() || facts.last != ended) {
            // It is unknown whether the file had groups.
            self.add_file_loss(survey, at, "nothing in the file can be read");
        } else if let (Some(last), Some(ended)) = (expected, ended)
            && ended.lsn >= last.lsn
            && ended != last
        {
            self.add_loss(name, (0, 0), (None, None), "file does not end as a later one says", None);
        } else if let Some(summary) = summary
            && !is_followed_by_index(found, &mut walk, &summary)?
        {
            let first = ended.map(|ended| ended.lsn.saturating_add(1));
            self.add_loss(
                name,
                (walk.offset, found.file.len()),
                (first, None),
                "nothing says which commit group is the last",
                None,
            );
        }
        self.at = facts.last.or(walk.at);
        Ok(())
    }

    /// Adds the loss of a whole file.
    fn add_file_loss(&mut self, survey: &Survey, at: usize, what: &str) {
        let first = self.at.map(|at| at.lsn.saturating_add(1));
        let name = survey.files.get(at).map_or_else(String::new, |file| file_name(file.seq));
        let last = survey.header_after(at).map(|after| before_first(after).lsn);
        self.add_loss(&name, (0, 0), (first, last), what, survey.changed_in(at));
        self.at = None;
    }

    fn add_loss(
        &mut self,
        file: &str,
        (from, to): (u64, u64),
        (first, last): (Option<u64>, Option<u64>),
        what: &str,
        concerns: Option<Vec<GroupId>>,
    ) {
        self.doubts.add_loss(&self.index, concerns.as_deref());
        if !self.keep_doubtful {
            match &concerns {
                None => self.index = Index::new(),
                Some(groups) => {
                    let mut editor = self.index.editor();
                    groups.iter().for_each(|group| editor.remove(*group));
                }
            }
        }
        let (first_lsn, last_lsn) = (first.map(Lsn), last.map(Lsn));
        self.losses.push(Loss {
            file: file.to_owned(),
            from,
            to,
            first_lsn,
            last_lsn,
            what: what.to_owned(),
            concerns,
        });
    }
}

/// Whether the index that a seal of the read groups would write follows them. Then no group is missing.
fn is_followed_by_index(found: &ExistingFile, walk: &mut GroupWalk<'_>, summary: &FileSummary) -> Result<bool> {
    // The index of a file without groups is one zero byte, which proves nothing.
    let Some(last) = walk.at.filter(|_| summary.groups().next().is_some()) else { return Ok(false) };
    let seal = Seal::new(&found.file, walk.offset, summary.encode(), last.lsn, last.chain);
    let stored = walk.reader.get(walk.offset, seal.index().len() as u64)?;
    Ok(stored == Some(seal.index()))
}
