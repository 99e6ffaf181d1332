//! The file that is written again: which one it is, and how far that has got.
//!
//! A file is given up where its index or a live block of it cannot be read: that is told, unless scrub has told it, and another one is tried. What lives in it stays
//! where it is, and it goes like any other when nothing in it lives any more and no older one is left.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::super::GroupId;
use super::super::error::{LogError, Result};
use super::super::format::file_name;
use super::super::group::Group;
use super::super::read::{Shared, entries_of};
use super::super::runs::Span;
use super::super::told::is_exhausted;
use super::makeup::Makeup;
use super::rewrite::{Rewrite, Undone, are_absent};
use super::{PurgeReport, Sealed};

/// A file is written again when at most this share of its bytes would be, in percent; the second number counts while the log
/// takes half as much again as it should.
const LIVE_MOST: (u64, u64) = (50, 80);

/// What purge knows of files to be written again.
#[derive(Default)]
pub(crate) struct Victims {
    /// The one under way.
    current: Option<Victim>,
    /// Those that cannot be read.
    unreadable: BTreeSet<u64>,
    /// What files are made of, as far as they were looked at.
    makeups: BTreeMap<u64, Makeup>,
}

/// The file that is being written again, and how far that is.
struct Victim {
    file: u64,
    /// Groups that are left, the next one last.
    groups: Vec<GroupId>,
    /// What is left to be said of what it undoes.
    undone: Undone,
    /// All groups that it removed.
    removed: Vec<GroupId>,
}

/// What of one group stands in a file.
struct Live {
    spans: Vec<Span>,
    /// With the bytes that key and value take.
    keys: Vec<(Bytes, usize)>,
    floor: bool,
}

impl Victims {
    /// What was looked at was not written: it is looked at anew, from the beginning.
    pub(crate) fn start_over(&mut self) {
        self.current = None;
    }

    /// Nothing more is tried with this file.
    fn give_up(&mut self, file: u64) {
        self.unreadable.insert(file);
        self.current = None;
    }
}

impl Shared {
    /// The next part of the file that is being written again, choosing one if there is none. What cannot be read on the way is added to the report.
    pub(super) fn next_rewrite(&self, sealed: &Sealed, most: usize, report: &mut PurgeReport) -> Option<Rewrite> {
        let mut victims = self.victims.lock();
        victims.unreadable.retain(|file| sealed.has(*file));
        victims.makeups.retain(|file, _| sealed.has(*file));
        if !victims.current.as_ref().is_some_and(|victim| sealed.has(victim.file)) {
            victims.current = None;
        }
        // Each round ends it or gives up one more file.
        loop {
            let mut victim = match victims.current.take() {
                Some(victim) => victim,
                None => self.choose(sealed, &mut victims, report)?,
            };
            match self.look(&mut victim, most) {
                Ok(rewrite) => {
                    victims.current = (!rewrite.is_last()).then_some(victim);
                    return Some(rewrite);
                }
                Err((_, error)) if is_exhausted(&error) => {
                    // The process, not the file: another time.
                    report.failed.get_or_insert_with(|| format!("{}: {error}", file_name(victim.file)));
                    return None;
                }
                Err((offset, error)) => {
                    victims.give_up(victim.file);
                    let concerned = || self.index.groups_at(victim.file, offset);
                    self.tell(victim.file, offset, &error, concerned, &mut report.damage);
                }
            }
        }
    }

    /// The file to write again, if one is worth it.
    fn choose(&self, sealed: &Sealed, victims: &mut Victims, report: &mut PurgeReport) -> Option<Victim> {
        let files = &sealed.files;
        let most = if sealed.pressed { LIVE_MOST.1 } else { LIVE_MOST.0 };
        let passed: BTreeSet<u64> = self.settled.lock().union(&victims.unreadable).copied().collect();
        let newest = files.last().map_or(0, |(seq, _)| *seq);
        let oldest = files.first().map_or(0, |(seq, _)| *seq);
        let pays = |seq: u64, makeup: &Makeup| makeup.pays(self.index.usage(seq).bytes, seq == oldest, most);
        let mut worth: Vec<(u64, u64)> = Vec::new();
        for (seq, len) in files.iter().filter(|(seq, _)| !passed.contains(seq)) {
            let live = self.index.usage(*seq).bytes.min(*len);
            // By the index it never looks fuller than it is: so most need not be looked at, and none twice that does not pay.
            if live * 100 <= len * most && victims.makeups.get(seq).is_none_or(|makeup| pays(*seq, makeup)) {
                worth.push((benefit(*len, live, newest - seq + 1), *seq));
            }
        }
        worth.sort_unstable_by(|a, b| b.cmp(a));
        for (_, seq) in worth {
            let Some(file) = self.files.get(seq) else { continue };
            let (footer, effects) = match file.sealed() {
                Ok(sealed) => sealed,
                Err(error) if is_exhausted(&error) => {
                    report.failed.get_or_insert_with(|| format!("{}: {error}", file.name));
                    return None;
                }
                Err(error) => {
                    victims.give_up(seq);
                    self.tell(seq, file.len(), &error, || self.concerned_by(seq), &mut report.damage);
                    continue;
                }
            };
            let makeup = Makeup::of(file.len(), &footer, &effects, &self.options);
            victims.makeups.insert(seq, makeup);
            if !pays(seq, &makeup) {
                continue;
            }
            let undone = if seq == oldest { Undone::default() } else { Undone::of(&effects) };
            if are_absent(&undone.removed, &self.index) {
                let mut groups: Vec<GroupId> = effects.groups().map(|(group, _)| group).collect();
                groups.reverse();
                let removed = undone.removed.clone();
                return Some(Victim { file: seq, groups, undone, removed });
            }
        }
        None
    }

    /// Collects the next of what is to be written again of the victim, until it has `most` bytes. An error comes with the offset of the block.
    fn look(&self, victim: &mut Victim, most: usize) -> std::result::Result<Rewrite, (u64, LogError)> {
        let file = victim.file;
        let mut rewrite = Rewrite { file, ..Rewrite::default() };
        while let Some(id) = victim.groups.last().copied() {
            let Some(live) = self.index.with(id, |group| Live::of(group, file)) else {
                victim.groups.pop();
                continue;
            };
            // What does not fit is looked up again by the next call: by then this part is elsewhere.
            for span in &live.spans {
                if rewrite.bytes >= most {
                    return Ok(rewrite);
                }
                let at = |error| (span.offset, error);
                let Some(block) = self.block_in_passing(span, || {}).map_err(at)? else { continue };
                let entries = entries_of(&block, span, span.first).collect::<Result<Vec<Bytes>>>().map_err(at)?;
                rewrite.bytes += entries.iter().map(|entry| entry.len() + 8).sum::<usize>();
                rewrite.entries.push((id, span.first, entries));
            }
            for (key, bytes) in live.keys {
                if rewrite.bytes >= most {
                    return Ok(rewrite);
                }
                rewrite.bytes += bytes + 16;
                rewrite.keys.push((id, key));
            }
            if live.floor {
                rewrite.bytes += 16;
                rewrite.floors.push(id);
            }
            victim.groups.pop();
            if rewrite.bytes >= most && !victim.groups.is_empty() {
                return Ok(rewrite);
            }
        }
        let (undone, bytes) = victim.undone.take(most.saturating_sub(rewrite.bytes));
        rewrite.undone = undone;
        rewrite.bytes += bytes;
        if victim.undone.is_empty() {
            rewrite.last = Some(std::mem::take(&mut victim.removed));
        }
        Ok(rewrite)
    }
}

impl Live {
    fn of(group: &Group, file: u64) -> Live {
        let keys = group.keys.iter().filter(|kv| kv.file == file);
        Live {
            spans: group.runs.iter().filter(|span| span.file == file).collect(),
            keys: keys.map(|kv| (Bytes::copy_from_slice(kv.key()), kv.key().len() + kv.value().len())).collect(),
            floor: group.floor > 0 && group.floor_file == file,
        }
    }
}

/// What it brings to write a file of `len` bytes again of which `live` are live, against what it costs, for one that is the `age`-th newest:
/// (1 - u) * age / (1 + u), with u = live / len, in whole numbers.
fn benefit(len: u64, live: u64, age: u64) -> u64 {
    (len - live) * 1024 / (len + live).max(1) * age
}
