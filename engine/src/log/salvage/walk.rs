//! Walks a file from commit group to commit group, and over damage in between.
//!
//! At an unreadable group, what else is known decides, by the rule of `read/scan.rs`. If the position is proven to be
//! synced, this is damage, and the walk goes on at the next group that passes its checksum. If not, it is a torn tail,
//! which was never acknowledged and is left alone.

use crate::log::error::{Damage, Result};
use crate::log::read::{CommitGroup, GroupReader, HeadRef, LogFile, Verified};

/// Position and checksum of a commit group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) lsn: u64,
    pub(crate) chain: u32,
}

/// What is known of a file from outside of its groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// The offset of its first group; 0 for a file without a header, which is searched from its beginning.
    pub(crate) start: u64,
    /// The group before its first one.
    pub(crate) before: Option<Position>,
    /// Its last group.
    pub(crate) last: Option<Position>,
    /// Whether a later file is in use: then all of this one was synced.
    pub(crate) followed: bool,
    /// Whether an earlier file used its space.
    pub(crate) reused: bool,
}

/// A step of the walk.
pub(crate) enum Step {
    /// A group whose header and meta are sound. Its blocks may be damaged if the group is proven to be synced.
    Group(CommitGroup),
    /// A range without readable groups.
    Gap(Gap),
}

/// Commit groups that existed and cannot be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    /// Where it begins, and where reading goes on or the file ends.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The first and last missing position, if known. (None may be missing: then a group does not continue the one
    /// before.)
    pub(crate) first_lsn: Option<u64>,
    pub(crate) last_lsn: Option<u64>,
    /// What is wrong at its beginning.
    pub(crate) damage: Damage,
}

/// A walk through one file.
pub(crate) struct Walk<'a> {
    pub(crate) reader: GroupReader<'a>,
    known: Known,
    /// Where the next group may begin.
    pub(crate) offset: u64,
    /// The group before.
    pub(crate) at: Option<Position>,
    /// Groups after the first damage.
    heads: Option<Vec<HeadRef>>,
    /// Where garbage ends, as far as the walk has seen; more than `offset` after a torn tail.
    pub(crate) garbage_end: u64,
    done: bool,
}

impl<'a> Walk<'a> {
    /// Begins at the first group. Parts that the disk does not return count as damaged.
    pub(crate) fn new(file: &'a LogFile, known: Known) -> Walk<'a> {
        Walk {
            reader: GroupReader::tolerant(file),
            known,
            offset: known.start,
            at: known.before,
            heads: None,
            garbage_end: known.start,
            done: false,
        }
    }

    /// The next group or gap; `None` at the end.
    pub(crate) fn step(&mut self) -> Result<Option<Step>> {
        while !self.done {
            match self.group()? {
                Ok(group) => {
                    self.offset = group.end();
                    self.at = Some(Position { lsn: group.header.lsn, chain: group.checksum });
                    return Ok(Some(Step::Group(group)));
                }
                Err(damage) => {
                    if let Some(gap) = self.skip(damage)? {
                        return Ok(Some(Step::Gap(gap)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The group at the offset, if it continues the one before.
    fn group(&mut self) -> Result<Verified<CommitGroup>> {
        let head = match self.reader.head(self.offset)? {
            Ok(head) => head,
            Err(damage) => return Ok(Err(damage)),
        };
        if self.at.is_some_and(|at| !head.continues(at.lsn, at.chain)) {
            return Ok(Err(Damage("commit group does not continue the chain")));
        }
        let group = match head.open() {
            Ok(group) => group,
            Err(damage) => return Ok(Err(damage)),
        };
        if let Some((_, damage)) = self.reader.damaged_block(&group)?
            && !self.is_proven(group.header.lsn)?
        {
            return Ok(Err(damage));
        }
        Ok(Ok(group))
    }

    /// Whether something that survived proves that the group at `lsn` was synced.
    fn is_proven(&mut self, lsn: u64) -> Result<bool> {
        let from_outside = self.known.followed || self.known.last.is_some_and(|last| last.lsn >= lsn);
        Ok(from_outside || self.heads()?.iter().any(|head| head.lsn >= lsn && head.synced >= lsn))
    }

    /// All groups after the first damage. Searched for once.
    fn heads(&mut self) -> Result<&[HeadRef]> {
        if self.heads.is_none() {
            let rest = self.reader.scan_rest(self.offset, self.known.reused, None)?;
            self.garbage_end = rest.garbage_end;
            self.heads = Some(rest.heads);
        }
        Ok(self.heads.as_deref().unwrap_or_default())
    }

    /// Goes on after damage, if there is more. `None` if nothing is missing: at the end, torn or not, or if the next
    /// group continues the one before all the same.
    fn skip(&mut self, damage: Damage) -> Result<Option<Gap>> {
        let from = self.offset;
        let expected = self.at.map(|at| at.lsn.saturating_add(1));
        let next = self.heads()?.iter().find(|head| head.offset > from && Some(head.lsn) >= expected).copied();
        let proven = match expected {
            Some(expected) => self.is_proven(expected)?,
            None => true,
        };
        let Some(next) = next.filter(|_| proven) else {
            self.done = true;
            let last = self.known.last.filter(|last| expected.is_some_and(|expected| expected <= last.lsn));
            let to = self.garbage_end.max(from);
            self.garbage_end = to;
            return Ok(last.map(|last| Gap { from, to, first_lsn: expected, last_lsn: Some(last.lsn), damage }));
        };
        self.offset = next.offset;
        if self.at.is_some_and(|at| expected == Some(next.lsn) && at.chain == next.chain) {
            return Ok(None);
        }
        // Whatever the next group continues, groups between are missing.
        self.at = None;
        Ok(Some(Gap { from, to: next.offset, first_lsn: expected, last_lsn: next.lsn.checked_sub(1), damage }))
    }
}
