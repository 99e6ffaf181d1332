//! The file that purge rewrites: which one, and how far that is.
//!
//! A file whose index or a live block cannot be read is reported, unless scrub reported it, and given up: another file
//! is tried. It goes like any other once nothing in it is live and no older file is left.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::report::PurgeReport;
use super::rewrite_cost::RewriteCost;
use super::sealed_files::SealedFiles;
use crate::log::commit::{Rewrite, Undone, are_absent};
use crate::log::error::{LogError, Result};
use crate::log::format::{Span, file_name};
use crate::log::index::Group;
use crate::log::read::{LogState, Lookup, entries_of, is_exhausted};
use crate::log::types::GroupId;

/// A file is rewritten if at most this share of its bytes would be, in percent. The second number counts while the log
/// takes half as much again as its threshold.
const MAX_LIVE_PERCENT: (u64, u64) = (50, 80);

/// What purge knows of the files to rewrite.
#[derive(Default)]
pub(super) struct Victims {
    /// The one under way.
    current: Option<Victim>,
    /// Those that cannot be read.
    unreadable: BTreeSet<u64>,
    /// The cost of rewriting files, as far as they were looked at.
    costs: BTreeMap<u64, RewriteCost>,
}

/// The file that is being rewritten, and how far that is.
struct Victim {
    file: u64,
    /// Groups that are left, the next one last.
    groups: Vec<GroupId>,
    /// What is left to say again of what the file undoes.
    undone: Undone,
    /// All groups that the file removed.
    removed: Vec<GroupId>,
}

/// What of one group is live in a file.
struct LiveRecords {
    spans: Vec<Span>,
    /// With the bytes of key and value.
    keys: Vec<(Bytes, usize)>,
    floor: bool,
}

/// What a victim is selected from.
#[derive(Clone, Copy)]
pub(super) struct Selection<'a> {
    pub(super) state: &'a LogState,
    pub(super) sealed: &'a SealedFiles,
    /// Files that need no rewrite any more.
    pub(super) superseded: &'a BTreeSet<u64>,
}

impl Victims {
    /// A part was not written: the file is looked at anew, from its beginning.
    pub(super) fn start_over(&mut self) {
        self.current = None;
    }

    /// Does not try this file again.
    fn give_up(&mut self, file: u64) {
        self.unreadable.insert(file);
        self.current = None;
    }

    /// The next part of the file that is being rewritten; selects a file if there is none. Adds what cannot be read on
    /// the way to the report.
    pub(super) fn next_rewrite(
        &mut self,
        selection: &Selection<'_>,
        max_bytes: usize,
        report: &mut PurgeReport,
    ) -> Option<Rewrite> {
        let Selection { state, sealed, .. } = *selection;
        self.unreadable.retain(|file| sealed.has(*file));
        self.costs.retain(|file, _| sealed.has(*file));
        if !self.current.as_ref().is_some_and(|victim| sealed.has(victim.file)) {
            self.current = None;
        }
        // Each round returns or gives up one more file.
        loop {
            let mut victim = match self.current.take() {
                Some(victim) => victim,
                None => self.select(selection, report)?,
            };
            match victim.next_part(state, max_bytes) {
                Ok(rewrite) => {
                    self.current = (!rewrite.is_last()).then_some(victim);
                    return Some(rewrite);
                }
                Err((_, error)) if is_exhausted(&error) => {
                    // Not the file's fault: tried again later.
                    report.failed.get_or_insert_with(|| format!("{}: {error}", file_name(victim.file)));
                    return None;
                }
                Err((offset, error)) => {
                    self.give_up(victim.file);
                    let concerned = || state.index.groups_at(victim.file, offset);
                    state.report_once(victim.file, offset, &error, concerned, &mut report.damage);
                }
            }
        }
    }

    /// Selects the file to rewrite, if one is worth it.
    fn select(&mut self, selection: &Selection<'_>, report: &mut PurgeReport) -> Option<Victim> {
        let Selection { state, sealed, .. } = *selection;
        let oldest = sealed.files.first().map_or(0, |(seq, _)| *seq);
        let max_percent = if sealed.pressed { MAX_LIVE_PERCENT.1 } else { MAX_LIVE_PERCENT.0 };
        let pays = |seq: u64, cost: &RewriteCost| cost.pays(state.index.usage(seq).bytes, seq == oldest, max_percent);
        for seq in self.candidates(selection, max_percent) {
            let Some(file) = state.files.get(seq) else { continue };
            let (footer, summary) = match file.sealed() {
                Ok(sealed) => sealed,
                Err(error) if is_exhausted(&error) => {
                    report.failed.get_or_insert_with(|| format!("{}: {error}", file.name));
                    return None;
                }
                Err(error) => {
                    self.give_up(seq);
                    let concerned = || state.groups_changed_in(seq);
                    state.report_once(seq, file.len(), &error, concerned, &mut report.damage);
                    continue;
                }
            };
            let cost = RewriteCost::of(file.len(), &footer, &summary, &state.options);
            self.costs.insert(seq, cost);
            if !pays(seq, &cost) {
                continue;
            }
            let undone = if seq == oldest { Undone::default() } else { Undone::of(&summary) };
            if are_absent(&undone.removed, &state.index) {
                let mut groups: Vec<GroupId> = summary.groups().map(|(group, _)| group).collect();
                groups.reverse();
                let removed = undone.removed.clone();
                return Some(Victim { file: seq, groups, undone, removed });
            }
        }
        None
    }

    /// Files that look worth rewriting by the index, the best first.
    fn candidates(&self, selection: &Selection<'_>, max_percent: u64) -> Vec<u64> {
        let Selection { state, sealed, superseded } = *selection;
        let newest = sealed.files.last().map_or(0, |(seq, _)| *seq);
        let oldest = sealed.files.first().map_or(0, |(seq, _)| *seq);
        let is_passed_over = |seq: &u64| superseded.contains(seq) || self.unreadable.contains(seq);
        let mut worth: Vec<(u64, u64)> = Vec::new();
        for (seq, len) in sealed.files.iter().filter(|(seq, _)| !is_passed_over(seq)) {
            let live = state.index.usage(*seq).bytes.min(*len);
            let pays = |cost: &RewriteCost| cost.pays(state.index.usage(*seq).bytes, *seq == oldest, max_percent);
            // By the index a file never looks fuller than it is. So most files are not read, and none that does not pay
            // is read twice.
            if live * 100 <= len * max_percent && self.costs.get(seq).is_none_or(pays) {
                worth.push((benefit(*len, live, newest - seq + 1), *seq));
            }
        }
        worth.sort_unstable_by(|a, b| b.cmp(a));
        worth.into_iter().map(|(_, seq)| seq).collect()
    }
}

impl Victim {
    /// Collects the next part to rewrite, of about `max_bytes`. An error comes with the offset of the block.
    fn next_part(&mut self, state: &LogState, max_bytes: usize) -> std::result::Result<Rewrite, (u64, LogError)> {
        let file = self.file;
        let mut rewrite = Rewrite { file, ..Rewrite::default() };
        while let Some(id) = self.groups.last().copied() {
            let Some(live) = state.index.with(id, |group| LiveRecords::of(group, file)) else {
                self.groups.pop();
                continue;
            };
            // What does not fit is looked up again by the next call: by then this part is elsewhere.
            for span in &live.spans {
                if rewrite.bytes >= max_bytes {
                    return Ok(rewrite);
                }
                let at = |error| (span.offset, error);
                let Some(block) = Lookup(state).block_uncached(span, || {}).map_err(at)? else { continue };
                let entries = entries_of(&block, span, span.first).collect::<Result<Vec<Bytes>>>().map_err(at)?;
                rewrite.bytes += entries.iter().map(|entry| entry.len() + 8).sum::<usize>();
                rewrite.entries.push((id, span.first, entries));
            }
            for (key, bytes) in live.keys {
                if rewrite.bytes >= max_bytes {
                    return Ok(rewrite);
                }
                rewrite.bytes += bytes + 16;
                rewrite.keys.push((id, key));
            }
            if live.floor {
                rewrite.bytes += 16;
                rewrite.floors.push(id);
            }
            self.groups.pop();
            if rewrite.bytes >= max_bytes && !self.groups.is_empty() {
                return Ok(rewrite);
            }
        }
        let (undone, bytes) = self.undone.take(max_bytes.saturating_sub(rewrite.bytes));
        rewrite.undone = undone;
        rewrite.bytes += bytes;
        if self.undone.is_empty() {
            rewrite.last = Some(std::mem::take(&mut self.removed));
        }
        Ok(rewrite)
    }
}

impl LiveRecords {
    fn of(group: &Group, file: u64) -> LiveRecords {
        let keys = group.keys.iter().filter(|kv| kv.file == file);
        LiveRecords {
            spans: group.runs.iter().filter(|span| span.file == file).collect(),
            keys: keys.map(|kv| (Bytes::copy_from_slice(kv.key()), kv.key().len() + kv.value().len())).collect(),
            floor: group.floor > 0 && group.floor_file == file,
        }
    }
}

/// The benefit of rewriting a file of `len` bytes with `live` live bytes against its cost, for the `age`-th newest
/// file: `(1 - u) * age / (1 + u)` with `u = live / len`, in whole numbers.
fn benefit(len: u64, live: u64, age: u64) -> u64 {
    (len - live) * 1024 / (len + live).max(1) * age
}
