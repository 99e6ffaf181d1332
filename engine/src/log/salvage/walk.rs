//! Walks a file from commit group to commit group, and skips damage in between.
//!
//! An unreadable group is handled by the rule of `read/scan.rs`. If its position is proven to be synced, it is damage, and
//! the walk continues at the next group that passes its checksum. Otherwise it is a torn tail, and the walk ends.

use crate::log::error::{Damage, Result};
use crate::log::read::{CommitGroup, GroupReader, HeadRef, LogFile, Verified};

/// Position and checksum of a commit group: its place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainPosition {
    pub(crate) lsn: u64,
    pub(crate) chain: u32,
}

/// Facts about a file from its header and footer, and from other files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileFacts {
    /// The offset of its first group; 0 for a file without a header, which is searched from its beginning.
    pub(crate) start: u64,
    /// The last group of the file before, if known.
    pub(crate) before: Option<ChainPosition>,
    /// Its last group, if known.
    pub(crate) last: Option<ChainPosition>,
    /// Whether a later file is in use. All groups of this one were then synced.
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
    /// Where it begins.
    pub(crate) from: u64,
    /// Where the next readable group or the end of the file is.
    pub(crate) to: u64,
    /// The first and last missing position, if known. (None may be missing: then a group does not continue the one
    /// before.)
    pub(crate) first_lsn: Option<u64>,
    pub(crate) last_lsn: Option<u64>,
    /// The damage at its beginning.
    pub(crate) damage: Damage,
}

/// A walk through one file.
pub(crate) struct GroupWalk<'a> {
    pub(crate) reader: GroupReader<'a>,
    facts: FileFacts,
    /// Where the next group may begin.
    pub(crate) offset: u64,
    /// The group before.
    pub(crate) at: Option<ChainPosition>,
    /// Groups after the first damage.
    heads: Option<Vec<HeadRef>>,
    /// Where garbage ends, as far as the walk has read; more than `offset` after a torn tail.
    pub(crate) garbage_end: u64,
    done: bool,
}

impl<'a> GroupWalk<'a> {
    /// A walk from the first group. Parts that cannot be read count as damaged.
    pub(crate) fn new(file: &'a LogFile, facts: FileFacts) -> GroupWalk<'a> {
        GroupWalk {
            reader: GroupReader::tolerant(file),
            facts,
            offset: facts.start,
            at: facts.before,
            heads: None,
            garbage_end: facts.start,
            done: false,
        }
    }

    /// The next group or gap; `None` at the end.
    pub(crate) fn step(&mut self) -> Result<Option<Step>> {
        while !self.done {
            match self.group()? {
                Ok(group) => {
                    self.offset = group.end();
                    self.at = Some(ChainPosition { lsn: group.header.lsn, chain: group.checksum });
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

    /// Whether a fact or a readable group proves that the group at `lsn` was synced.
    fn is_proven(&mut self, lsn: u64) -> Result<bool> {
        let by_facts = self.facts.followed || self.facts.last.is_some_and(|last| last.lsn >= lsn);
        Ok(by_facts || self.heads()?.iter().any(|head| head.lsn >= lsn && head.synced >= lsn))
    }

    /// All readable groups after the first damage. Searched once.
    fn heads(&mut self) -> Result<&[HeadRef]> {
        if self.heads.is_none() {
            let rest = self.reader.scan_rest(self.offset, self.facts.reused, None)?;
            self.garbage_end = rest.garbage_end;
            self.heads = Some(rest.heads);
        }
        Ok(self.heads.as_deref().unwrap_or_default())
    }

    /// Skips damage. Returns the gap, or `None` if no group is missing: at the end of the groups, torn or not, or if the
    /// next readable group continues the one before.
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
            let last = self.facts.last.filter(|last| expected.is_some_and(|expected| expected <= last.lsn));
            let to = self.garbage_end.max(from);
            self.garbage_end = to;
            return Ok(last.map(|last| Gap { from, to, first_lsn: expected, last_lsn: Some(last.lsn), damage }));
        };
        self.offset = next.offset;
        if self.at.is_some_and(|at| expected == Some(next.lsn) && at.chain == next.chain) {
            return Ok(None);
        }
        // The next group is not chained to the one before the gap.
        self.at = None;
        Ok(Some(Gap { from, to: next.offset, first_lsn: expected, last_lsn: next.lsn.checked_sub(1), damage }))
    }
}
