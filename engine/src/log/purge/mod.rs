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
//! in them will live on (`victim.rs`, the rule of log-structured file systems, Rosenblum and Ousterhout 1991). None that would come back about as
//! large as it is ([`makeup`]), so that purge comes to an end. Groups
//! that hold many live entries in old files are not written again but reported, so that their owner compacts them ([`laggards`]).
//!
//! A file that the disk does not let go of stays until a later call, and keeps no other, nor the next step. One that cannot be read does not stand in the way of the others: it is reported, and not chosen again ([`victim`]). On a poisoned
//! log nothing is deleted: what it says of itself is not trusted any more, and an old file may hold the only good copy.

mod laggards;
mod makeup;
pub(crate) mod rewrite;
mod victim;

use std::sync::atomic::Ordering;

use self::laggards::lagging;
use super::GroupId;
use super::error::Result;
use super::read::Shared;
use super::tools::Finding;
use super::writer::Work;

pub(crate) use self::victim::Victims;

/// No commit group of purge has more bytes, whatever the budget: a bound on how long one synced write waits behind it.
const GROUP_BYTES: usize = 256 << 10;

/// How much one call of purge may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes written by this call, about: of live entries, keys and values that are written again, and of a reserve in the making. Exceeded
    /// by at most one block or key. More than 256 KiB count as that much, because others wait for one commit group of purge at most: who
    /// wants more done calls more often.
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
    /// Bytes of live entries, and of what else is needed of a file, queued to be written again by this call.
    pub rewritten: u64,
    /// Whether this call queued a step, which the writer is to write.
    pub queued: bool,
    /// Whether this call did, or queued, anything at all. Where it did not though there is more, as when the queue is full, the next call at once
    /// would fare no better.
    pub progressed: bool,
    /// Whether another call, once the writer has had its turn, would do more.
    pub more: bool,
    /// Whether the log takes half as much again as its threshold, or finds no space: then steps should follow each other at
    /// once, as long as they succeed.
    pub pressed: bool,
    /// Groups whose entries keep old files alive, the worst first. Empty while the log takes no more than its threshold and finds space, and
    /// where the budget does not ask for them.
    pub lagging: Vec<Lagging>,
    /// What could not be done, the first of it: a file that the disk did not let go of, or a reserve that it did not take. Everything else was
    /// done; it is tried again with a later call where that may help.
    pub failed: Option<String>,
    /// What could not be read of a file that was to be written again. Such a file stays and is not tried again until the log is opened anew, so
    /// each is reported once, and not here where scrub has told of the same place. It is what a read of the same bytes would meet, and no better news.
    pub damage: Vec<Finding>,
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

/// The sealed files, which are those that can go.
struct Sealed {
    /// Number and length of each, oldest first.
    files: Vec<(u64, u64)>,
    /// Whether the log, with its active file, takes more than its threshold, and whether it takes half as much again. A log whose disk is full takes too
    /// much in any case.
    over: bool,
    pressed: bool,
}

impl Sealed {
    fn of(shared: &Shared) -> Sealed {
        let mut files = shared.files.lengths();
        let total: u64 = files.iter().map(|(_, len)| len).sum();
        files.pop();
        // What is recorded as dropped is no part of the log any more, though it takes space until the disk lets go of it.
        let released = shared.released.lock().clone();
        files.retain(|(seq, _)| !released.contains(seq));
        let threshold = shared.options.purge_threshold;
        let full = shared.full.load(Ordering::Acquire);
        Sealed { files, over: full || total > threshold, pressed: full || total > threshold + threshold / 2 }
    }

    /// Whether it is one of them.
    fn has(&self, file: u64) -> bool {
        self.files.binary_search_by_key(&file, |(seq, _)| *seq).is_ok()
    }
}

impl Shared {
    /// Deletes what was released, and says what to write next, if anything.
    pub(crate) fn purge(&self, budget: Budget) -> Result<(PurgeReport, Option<Work>)> {
        if self.poisoned().is_some() {
            return Ok((PurgeReport::default(), None));
        }
        let (freed, failed) = self.release()?;
        let mut report = PurgeReport { freed, failed, progressed: freed > 0, ..PurgeReport::default() };
        // Who sets it sees to it that it is taken back: here, or when the work is answered. While it is set no file is dropped behind our back.
        let is_busy = self.purging.swap(true, Ordering::AcqRel);
        let sealed = Sealed::of(self);
        report.pressed = sealed.pressed;
        if sealed.over && budget.laggards {
            report.lagging = lagging(&self.index, &sealed);
        }
        report.more = is_busy || !self.released.lock().is_empty();
        if is_busy {
            return Ok((report, None));
        }
        let work = self.next_work(&sealed, budget, &mut report);
        if !matches!(work, Ok(Some(_))) {
            self.purging.store(false, Ordering::Release);
        }
        if !report.more {
            self.look_for_space();
        }
        Ok((report, work?))
    }

    /// The next step, where none is under way.
    fn next_work(&self, sealed: &Sealed, budget: Budget, report: &mut PurgeReport) -> Result<Option<Work>> {
        let dead = self.dead(&sealed.files);
        if !dead.is_empty() {
            report.more = true;
            return Ok(Some(Work::Drop(dead)));
        }
        let most = budget.bytes.clamp(1, GROUP_BYTES);
        let reserved = match self.keep_reserve(most as u64) {
            Ok(bytes) => bytes as usize,
            Err(error) if self.poisoned().is_some() => return Err(error),
            Err(error) => {
                report.failed.get_or_insert(format!("reserve: {error}"));
                0
            }
        };
        report.progressed |= reserved > 0;
        if reserved >= most {
            report.more = true;
            return Ok(None);
        }
        if !sealed.over {
            return Ok(None);
        }
        let work = self.next_rewrite(sealed, most - reserved, report);
        if let Some(rewrite) = &work {
            report.rewritten = rewrite.bytes() as u64;
            report.more = true;
        }
        Ok(work.map(Work::Rewrite))
    }

    /// A log whose disk was full and that writes nothing now does not learn from its writes that there is space again. Asked only when there is nothing to do:
    /// where a disk says that it has space and takes nothing all the same, purge goes on as on a full one.
    fn look_for_space(&self) {
        if self.full.load(Ordering::Acquire) && self.disk.free_bytes().is_ok_and(|free| free >= self.options.file_bytes)
        {
            self.full.store(false, Ordering::Release);
        }
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
}
