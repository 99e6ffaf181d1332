//! The upkeep of the log: what is let go of it and when, which of its files are given up, and what is done while its disk is full.
//!
//! Every so many ticks the background worker finds out what a crash would not lose, and the regions let go of what nobody needs beyond that; then it
//! gives up files. So a log that has filled its disk makes room by itself: what is let go, and the records of purge, have a reserve in the log, and
//! do not wait behind what found no space (`log_queue`).

use super::StoreLoop;
use crate::messages::Job;
use crate::region::{LogIndex, RegionId};
use crate::time::MonoTime;

impl StoreLoop {
    /// Tries again what met a full disk. A store that can write nothing lets others lead, once: they may have space.
    pub(super) fn retry_full_log(&mut self, now: MonoTime) {
        let full = self.log.is_full();
        if full && !self.was_full {
            self.transfer_leaderships(now);
        }
        self.was_full = full;
        self.log.retry();
    }

    pub(super) fn start_log_gc(&mut self, now: MonoTime) {
        if self.reading_flushed.is_some() {
            return;
        }
        // What pins old log files cannot be let go before its effects are flushed.
        let flush = self.unflushed_bytes >= self.parts.config.flush_log_bytes || self.log_space.is_pinned();
        let regions = self.peers.keys().copied().collect();
        if self.parts.background.push(Job::ReadFlushed { regions, flush }).is_ok() {
            self.reading_flushed = Some(self.unflushed_bytes);
        }
        // A file that is being built is not among those kept yet, so it must not be swept.
        if self.building_snapshots.is_empty() {
            let keep = self.peers.values_mut().flat_map(|slot| slot.peer.snapshots_in_use(now)).collect();
            let applied = self.peers.iter().map(|(id, slot)| (*id, slot.peer.applied().index)).collect();
            self.queue_job(Job::Sweep { keep, applied });
        }
    }

    /// Shortens the logs. Where that was done before and the disk is full still, nothing is kept but what a restart needs: who needs what is gone gets a
    /// snapshot.
    pub(super) fn truncate_logs(&mut self, flushed: &[(RegionId, LogIndex)], now: MonoTime) {
        let full = self.log.is_full();
        let pressed = std::mem::replace(&mut self.was_full_at_truncation, full) && full;
        for (region, index) in flushed {
            let pinning = if pressed { *index } else { self.log_space.pinning(*region) };
            let Some(slot) = self.peers.get_mut(region) else { continue };
            self.truncations.extend(slot.peer.truncate_log(*index, pinning, now).map(|start| (*region, start)));
            self.dirty.insert(*region);
        }
    }

    /// Apart from what the peers want: there may be no room for that until this is done.
    pub(super) fn submit_truncations(&mut self) {
        let truncations = std::mem::take(&mut self.truncations);
        if truncations.is_empty() || self.parts.health.poisoned().is_some() {
            return;
        }
        self.parts.metrics.log_batches.inc();
        self.log.truncate(truncations);
    }

    /// Reads on in the log for damage, where some of it is due.
    pub(super) fn scrub(&mut self, now: MonoTime) {
        let per_second = self.parts.config.log_scrub_bytes;
        if let Some(bytes) = self.scrub_pace.due(now, per_second)
            && self.queue_job(Job::Scrub { bytes })
        {
            self.scrub_pace.begin(now, per_second, bytes);
        }
    }

    /// Goes on giving up log files, where that must not wait for the next tick.
    pub(super) fn continue_purge(&mut self) {
        if self.log_space.is_urgent() {
            self.purge();
        }
    }

    /// Gives up log files, one step at a time, and not two at once.
    pub(super) fn purge(&mut self) {
        let laggards = self.log_space.wants_laggards();
        if self.log_space.may_purge() && self.queue_job(Job::Purge { laggards }) {
            self.log_space.begin();
        }
    }
}
