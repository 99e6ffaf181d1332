//! Gives space back: files without anything live go, and the live rest of a mostly dead file is written again.
//!
//! Steps, each of which may be the last one before a crash:
//! 1. What is live in the file, and what it undoes of older files ([`rewrite`]), is written again, and synced. Nothing needs
//!    the file now.
//! 2. A record that drops the file is written and synced. Recovery no longer asks for it, and deletes it.
//! 3. The file is deleted or kept for reuse (`spare.rs`), and the directory synced.
//!
//! A file before which no older one is left skips the first step once nothing in it is live. Steps 1 and 2 are commit groups
//! like any other; [`Shared::purge`] only queues one at a time, so it never waits for the writer and a single thread may
//! drive both. One call writes at most its budget: so others wait for at most that much.
//!
//! Which file: the one that gives back most for what must be written, counting old files for more, because what has lived long
//! in them will live on ([`Shared::victim`], the rule of log-structured file systems, Rosenblum and Ousterhout 1991). Groups
//! that hold many live entries in old files are not written again but reported, so that their owner compacts them.

pub(crate) mod rewrite;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use self::rewrite::{Rewrite, Undone};
use super::GroupId;
use super::error::Result;
use super::read::{Shared, entries_of};
use super::runs::Span;
use super::writer::Work;

/// No commit group of purge has more bytes, whatever the budget: a bound on how long one synced write waits behind it.
const GROUP_BYTES: usize = 256 << 10;
/// A file is written again when at most this share of its bytes is live, in percent; the second number counts while the log
/// takes half as much again as it should.
const LIVE_MOST: (u64, u64) = (50, 80);
/// A group that pins fewer bytes of old files is not worth reporting.
const LAG_BYTES: u64 = 4 << 10;
/// No report names more groups; those that pin most come first.
const LAG_GROUPS: usize = 1024;

/// How much one call of purge may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of live entries written again, about.
    pub bytes: usize,
    /// Whether to look for the groups that stand in the way, which takes a look at every group.
    pub laggards: bool,
}

impl Default for Budget {
    /// 256 KiB, and laggards are looked for.
    fn default() -> Budget {
        Budget { bytes: GROUP_BYTES, laggards: true }
    }
}

/// What one call of purge did, and what stands in its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Bytes of files deleted, or kept for reuse, by this call.
    pub freed: u64,
    /// Bytes of live entries queued to be written again by this call.
    pub rewritten: u64,
    /// Whether another call, once the writer has had its turn, would do more.
    pub more: bool,
    /// Groups whose entries keep old files alive, the worst first. Empty while the log takes no more than its threshold, and where the budget
    /// does not ask for them.
    pub lagging: Vec<Lagging>,
}

/// A group whose old entries keep files alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagging {
    /// The group.
    pub group: GroupId,
    /// The first index to keep so that it pins no old file any more.
    pub compact_to: u64,
    /// Bytes of its entries in old files.
    pub pinned_bytes: u64,
}

/// The file that is being written again, and how far that is.
pub(crate) struct Victim {
    file: u64,
    groups: Vec<GroupId>,
    undone: Undone,
}

/// What of one group stands in a file.
struct Live {
    spans: Vec<Span>,
    keys: Vec<Bytes>,
    floor: bool,
}

impl Shared {
    /// Deletes what was released, and says what to write next, if anything.
    pub(crate) fn purge(&self, budget: Budget) -> Result<(PurgeReport, Option<Work>)> {
        let mut report = PurgeReport { freed: self.release()?, ..PurgeReport::default() };
        if self.poisoned().is_some() {
            return Ok((report, None));
        }
        let mut files = self.files.lengths();
        let total: u64 = files.iter().map(|(_, len)| len).sum();
        files.pop();
        let threshold = self.options.purge_threshold;
        if total > threshold && budget.laggards {
            report.lagging = self.lagging(&files);
        }
        if self.purging.load(Ordering::Acquire) || !self.released.lock().is_empty() {
            report.more = true;
            return Ok((report, None));
        }
        self.keep_reserve()?;
        let dead = self.dead(&files);
        if !dead.is_empty() {
            report.more = true;
            return Ok((report, Some(Work::Drop(dead))));
        }
        if total <= threshold {
            return Ok((report, None));
        }
        let pressed = total > threshold + threshold / 2;
        let work = self.next_rewrite(&files, pressed, budget)?;
        if let Some(rewrite) = &work {
            report.rewritten = rewrite.bytes() as u64;
            report.more = true;
        }
        Ok((report, work.map(Work::Rewrite)))
    }

    /// Files that can be dropped now.
    fn dead(&self, files: &[(u64, u64)]) -> Vec<u64> {
        let settled = self.settled.lock();
        let mut oldest = true;
        let mut out = Vec::new();
        for (seq, _) in files {
            let dead = self.index.usage(*seq).refs == 0;
            if dead && (oldest || settled.contains(seq)) {
                out.push(*seq);
            }
            oldest &= dead;
        }
        out
    }

    /// The next part of the file that is being written again, choosing one if there is none.
    fn next_rewrite(&self, files: &[(u64, u64)], pressed: bool, budget: Budget) -> Result<Option<Rewrite>> {
        let mut slot = self.victim.lock();
        let known = |victim: &Victim| files.iter().any(|(seq, _)| *seq == victim.file);
        if !slot.as_ref().is_some_and(known) {
            *slot = self.victim(files, pressed)?;
        }
        let Some(victim) = slot.as_mut() else { return Ok(None) };
        let rewrite = self.look(victim, budget.bytes.clamp(1, GROUP_BYTES))?;
        if rewrite.is_last() {
            *slot = None;
        }
        Ok(Some(rewrite))
    }

    /// The file to write again, if it is worth it.
    fn victim(&self, files: &[(u64, u64)], pressed: bool) -> Result<Option<Victim>> {
        let most = if pressed { LIVE_MOST.1 } else { LIVE_MOST.0 };
        let settled = self.settled.lock().clone();
        let newest = files.last().map_or(0, |(seq, _)| *seq);
        let mut worth: Vec<(u64, u64)> = Vec::new();
        for (seq, len) in files.iter().filter(|(seq, _)| !settled.contains(seq)) {
            let live = self.index.usage(*seq).bytes.min(*len);
            if live * 100 <= len * most {
                // (1 - u) * age / (1 + u), with u = live / len, in whole numbers.
                worth.push(((len - live) * 1024 / (len + live).max(1) * (newest - seq + 1), *seq));
            }
        }
        worth.sort_unstable_by(|a, b| b.cmp(a));
        let oldest = files.first().map_or(0, |(seq, _)| *seq);
        for (_, seq) in worth {
            let Some(file) = self.files.get(seq) else { continue };
            let (_, effects) = file.sealed()?;
            let undone = if seq == oldest { Undone::default() } else { Undone::of(&effects) };
            if undone.can_be_said(&self.index) {
                let mut groups: Vec<GroupId> = effects.groups().map(|(group, _)| group).collect();
                groups.reverse();
                return Ok(Some(Victim { file: seq, groups, undone }));
            }
        }
        Ok(None)
    }

    /// Collects the next of what is live in the victim, up to `most` bytes, or one group's first block.
    fn look(&self, victim: &mut Victim, most: usize) -> Result<Rewrite> {
        let file = victim.file;
        let mut rewrite = Rewrite { file, ..Rewrite::default() };
        let mut bytes = 0;
        while let Some(id) = victim.groups.last().copied() {
            let live = self.index.with(id, |group| Live {
                spans: group.runs.iter().filter(|span| span.file == file).collect(),
                keys: group
                    .keys
                    .iter()
                    .filter(|kv| kv.file == file)
                    .map(|kv| Bytes::copy_from_slice(kv.key()))
                    .collect(),
                floor: group.floor > 0 && group.floor_file == file,
            });
            for span in live.iter().flat_map(|live| &live.spans) {
                if bytes >= most {
                    // The rest of this group is looked up again by the next call: by then this part is elsewhere.
                    return Ok(rewrite);
                }
                let Some(block) = self.block_in_passing(span, || {})? else { continue };
                let entries = entries_of(&block, span, span.first).collect::<Result<Vec<Bytes>>>()?;
                bytes += entries.iter().map(|entry| entry.len() + 8).sum::<usize>();
                rewrite.entries.push((id, span.first, entries));
            }
            if let Some(live) = live {
                bytes += live.keys.len() * 64 + 16;
                rewrite.keys.extend(live.keys.into_iter().map(|key| (id, key)));
                rewrite.floors.extend(live.floor.then_some(id));
            }
            victim.groups.pop();
            if bytes >= most && !victim.groups.is_empty() {
                return Ok(rewrite);
            }
        }
        rewrite.last = Some(std::mem::take(&mut victim.undone));
        Ok(rewrite)
    }

    /// Groups that pin old files: those that make up the oldest fifth of the log.
    fn lagging(&self, files: &[(u64, u64)]) -> Vec<Lagging> {
        let total: u64 = files.iter().map(|(_, len)| len).sum();
        let mut taken = 0;
        let old: BTreeSet<u64> = files
            .iter()
            .take_while(|(_, len)| {
                taken += len;
                taken <= total / 5
            })
            .map(|(seq, _)| *seq)
            .collect();
        let live: u64 = old.iter().map(|seq| self.index.usage(*seq).bytes).sum();
        if live < LAG_BYTES {
            return Vec::new();
        }
        let mut lagging: Vec<Lagging> = Vec::new();
        for id in self.index.groups() {
            let pinned = self.index.with(id, |group| {
                let spans = group.runs.iter().filter(|span| old.contains(&span.file));
                spans.fold((0, 0), |(end, bytes), span| (span.end().max(end), bytes + span.bytes))
            });
            let Some((compact_to, pinned_bytes)) = pinned else { continue };
            if pinned_bytes >= LAG_BYTES {
                lagging.push(Lagging { group: id, compact_to, pinned_bytes });
            }
        }
        lagging.sort_unstable_by_key(|lag| (std::cmp::Reverse(lag.pinned_bytes), lag.group));
        lagging.truncate(LAG_GROUPS);
        lagging
    }
}
