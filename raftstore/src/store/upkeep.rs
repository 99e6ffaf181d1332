//! Upkeep of the log: truncation, purge, scrub, and the retry after a full disk.
//!
//! Every `log_gc_ticks` the background worker reads the flushed index of each region. The region truncates its log to
//! that index, except for entries that followers need. Then purge frees log files. So a log that has filled its disk
//! frees space by itself: truncations and purge records may use the log's reserve file and bypass the stalled queue
//! (`log_queue`).

use super::state::StoreLoop;
use crate::messages::Job;
use crate::peer::LogPressure;
use crate::region::{LogIndex, RegionId};
use crate::time::MonoTime;

impl StoreLoop {
    /// Retries batches that met a full disk. While the store cannot write, offers its leaderships to other stores.
    pub(super) fn retry_full_log(&mut self, now: MonoTime) {
        if self.log.is_full() {
            self.transfer_leaderships(now);
        } else if self.is_log_stalled(now) {
            for (region, slot) in &mut self.peers {
                slot.peer.offer_unwritten(now);
                self.dirty.insert(*region);
            }
        }
        self.log.retry();
    }

    /// Whether the oldest batch has waited too long for its sync.
    fn is_log_stalled(&self, now: MonoTime) -> bool {
        #[cfg(feature = "planted-bugs")]
        if self.parts.config.planted(crate::config::PlantedBug::StalledLeaderStays) {
            return false;
        }
        self.batches.front().is_some_and(|oldest| now.since(oldest.submitted) >= self.parts.config.log_stall)
    }

    pub(super) fn start_log_gc(&mut self, now: MonoTime) {
        if self.reading_flushed.is_some() {
            return;
        }
        // Entries that pin old log files can be truncated only after their effects are flushed. A flush does not help
        // while a snapshot holds them.
        let is_held = |region: RegionId, last| self.peers.get(&region).is_none_or(|slot| slot.peer.is_held(last));
        let pinned = self.log_space.pinned().any(|(region, last)| !is_held(region, last));
        let flush = self.unflushed_bytes >= self.parts.config.flush_log_bytes || pinned;
        let regions = self.peers.keys().copied().collect();
        if self.parts.background.push(Job::ReadFlushed { regions, flush }).is_ok() {
            self.reading_flushed = Some(self.unflushed_bytes);
        }
        let keep = self.peers.values_mut().flat_map(|slot| slot.peer.snapshots_in_use(now)).collect();
        // A file that is still being built is in no peer's `snapshots_in_use` and must not be swept.
        let swept = self.peers.iter().filter(|(id, _)| !self.building_snapshots.contains(id));
        let applied = swept.map(|(id, slot)| (*id, slot.peer.applied().index)).collect();
        self.queue_job(Job::Sweep { keep, applied });
    }

    /// Truncates the logs of all regions. If the disk is short of space, holds nothing for snapshots. If it is still
    /// full after an earlier truncation, keeps only what a restart needs; followers that lag further get a snapshot.
    pub(super) fn truncate_logs(&mut self, flushed: &[(RegionId, LogIndex)], free_bytes: u64, now: MonoTime) {
        let full = self.log.is_full();
        let space_is_short = full || free_bytes < self.parts.config.log_hold_free_bytes;
        let pressed = std::mem::replace(&mut self.was_full_at_truncation, full) && full;
        for (region, index) in flushed {
            let pinning = if pressed { *index } else { self.log_space.pinning(*region) };
            let Some(slot) = self.peers.get_mut(region) else { continue };
            let pressure = LogPressure { pinning, space_is_short };
            self.truncations.extend(slot.peer.truncate_log(*index, pressure, now).map(|start| (*region, start)));
            self.dirty.insert(*region);
        }
    }

    /// Submits truncations apart from the peers' writes: those may have no room until space is freed.
    pub(super) fn submit_truncations(&mut self) {
        let truncations = std::mem::take(&mut self.truncations);
        if truncations.is_empty() || self.parts.health.poisoned().is_some() {
            return;
        }
        self.parts.metrics.log_batches.inc();
        self.log.truncate(truncations);
    }

    /// Scrubs the next chunk of the log, if one is due.
    pub(super) fn scrub(&mut self, now: MonoTime) {
        let per_second = self.parts.config.log_scrub_bytes;
        if let Some(bytes) = self.scrub_pace.due(now, per_second)
            && self.queue_job(Job::Scrub { bytes })
        {
            self.scrub_pace.begin(now, per_second, bytes);
        }
    }

    /// Runs the next purge step if it must not wait for a tick.
    pub(super) fn continue_purge(&mut self) {
        if self.log_space.is_urgent() {
            self.purge();
        }
    }

    /// Runs one purge step. Steps never overlap.
    pub(super) fn purge(&mut self) {
        let find_pinning = self.log_space.is_pinning_check_due();
        if self.log_space.may_purge() && self.queue_job(Job::Purge { find_pinning }) {
            self.log_space.begin();
        }
    }
}
