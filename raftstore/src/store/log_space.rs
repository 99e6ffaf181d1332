//! The state of the log's space: which regions pin old log files, and when the next purge step is due.
//!
//! Purge runs in steps. A step is at most one commit group of the log, and the next step begins only when that group is
//! written, so foreground batches wait for one step at most. One step a tick suffices while the log is near its target
//! size. When the log exceeds one and a half times its threshold, or its disk is full, the next step follows at once,
//! because the log would otherwise grow faster than purge frees space. After a step that failed or did nothing, the
//! next one waits for a tick: on a full disk without a reserve, the same step would read, compress and fail again as
//! fast as it can.
//!
//! Pinning regions are looked for once after each truncation, by the next step. Under pressure some step
//! is nearly always running, and that is when pinning regions matter most.
//!
//! Pure: events come in by calls, and the answers say what to do.

use std::collections::BTreeMap;

use engine::log::PurgeOutcome;

use crate::messages::PurgeStep;
use crate::region::{LogIndex, RegionId};

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct LogSpace {
    /// The last entry of each region that pins old files.
    pinning: BTreeMap<RegionId, LogIndex>,
    /// Whether the next step looks for pinning regions.
    pinning_check_due: bool,
    /// Whether the current step does.
    checking_pinning: bool,
    /// Whether a step has been started and its outcome has not arrived.
    running: bool,
    /// Whether the log has not reported the end of the step. That report may precede the step's outcome.
    unwritten: bool,
    /// Whether the last step failed.
    failed: bool,
    /// The outcome of the last step.
    outcome: PurgeOutcome,
}

impl LogSpace {
    /// The last entry of a region that pins old files; 0 if it pins none.
    pub(super) fn pinning(&self, region: RegionId) -> LogIndex {
        self.pinning.get(&region).copied().unwrap_or_default()
    }

    /// The regions that pin old files, each with its last entry there.
    pub(super) fn pinned(&self) -> impl Iterator<Item = (RegionId, LogIndex)> {
        self.pinning.iter().map(|(region, last)| (*region, *last))
    }

    /// Whether a step may begin.
    pub(super) fn may_purge(&self) -> bool {
        !self.running && !self.unwritten
    }

    /// Requests a look for pinning regions, after the regions have truncated their logs.
    pub(super) fn request_pinning_check(&mut self) {
        self.pinning_check_due = true;
    }

    /// Whether the next step looks for pinning regions.
    pub(super) fn is_pinning_check_due(&self) -> bool {
        self.pinning_check_due
    }

    /// A step begins.
    pub(super) fn begin(&mut self) {
        self.running = true;
        self.unwritten = true;
        self.failed = false;
        self.checking_pinning = std::mem::take(&mut self.pinning_check_due);
    }

    /// The outcome of a step.
    pub(super) fn on_purged(&mut self, step: PurgeStep) {
        self.running = false;
        self.outcome = step.outcome;
        if let Some(pinning) = step.pinning {
            self.pinning = pinning.into_iter().collect();
        }
    }

    /// A step failed before it had an outcome. The earlier state still holds.
    pub(super) fn on_failed(&mut self) {
        self.running = false;
        self.failed = true;
        self.pinning_check_due |= self.checking_pinning;
    }

    /// The step is over in the log: it was written, there was nothing to write, or writing failed.
    pub(super) fn on_settled(&mut self, written: bool) {
        self.unwritten = false;
        self.failed |= !written;
    }

    /// Whether the next step is due with the next tick.
    pub(super) fn is_due(&self) -> bool {
        (self.outcome != PurgeOutcome::Idle || self.pinning_check_due) && self.may_purge()
    }

    /// Whether the next step is due now.
    pub(super) fn is_urgent(&self) -> bool {
        self.is_due() && self.outcome == PurgeOutcome::Now && !self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(outcome: PurgeOutcome) -> PurgeStep {
        PurgeStep { pinning: None, outcome }
    }

    fn is_pinned(space: &LogSpace) -> bool {
        space.pinned().next().is_some()
    }

    /// A step for which the log had nothing to write.
    fn nothing_to_write(space: &mut LogSpace, step: PurgeStep) {
        space.on_settled(true);
        space.on_purged(step);
    }

    /// The last entry of region 7 pins old files.
    fn pinned() -> PurgeStep {
        let pinning = Some(vec![(RegionId::new(7), LogIndex::new(9))]);
        PurgeStep { pinning, ..PurgeStep::default() }
    }

    #[test]
    fn step_waits_until_the_one_before_is_written() {
        let mut space = LogSpace::default();
        assert!(space.may_purge() && !space.is_due());
        space.begin();
        assert!(!space.may_purge());
        space.on_purged(step(PurgeOutcome::Now));
        assert!(!space.may_purge() && !space.is_due() && !space.is_urgent(), "not written yet");
        space.on_settled(true);
        assert!(space.may_purge() && space.is_due() && space.is_urgent());
        // The log may report before the outcome arrives.
        space.begin();
        space.on_settled(true);
        assert!(!space.may_purge());
        space.on_purged(step(PurgeOutcome::Now));
        assert!(space.is_urgent());
        space.begin();
        nothing_to_write(&mut space, step(PurgeOutcome::Idle));
        assert!(space.may_purge() && !space.is_due() && !space.is_urgent(), "nothing left to do");
    }

    #[test]
    fn without_pressure_one_step_a_tick_is_due() {
        let mut space = LogSpace::default();
        space.begin();
        nothing_to_write(&mut space, step(PurgeOutcome::NextTick));
        assert!(space.is_due() && !space.is_urgent());
    }

    /// The disk stays full and the reserve is used up: a step that the log could not write is retried with the next
    /// tick, not at once.
    #[test]
    fn failed_step_is_not_urgent() {
        let mut space = LogSpace::default();
        for log_reports_first in [false, true] {
            space.begin();
            if log_reports_first {
                space.on_settled(false);
                space.on_purged(step(PurgeOutcome::Now));
            } else {
                space.on_purged(step(PurgeOutcome::Now));
                space.on_settled(false);
            }
            assert!(space.is_due() && !space.is_urgent(), "the log reports first: {log_reports_first}");
        }
        // It failed before it had an outcome.
        space.begin();
        space.on_settled(true);
        space.on_failed();
        assert!(space.is_due() && !space.is_urgent());
        // At the next tick the disk has space again.
        space.begin();
        space.on_purged(step(PurgeOutcome::Now));
        space.on_settled(true);
        assert!(space.is_urgent());
    }

    /// The log's queue is full: there is work, and none was done.
    #[test]
    fn step_without_progress_is_not_urgent() {
        let mut space = LogSpace::default();
        space.begin();
        nothing_to_write(&mut space, step(PurgeOutcome::NextTick));
        assert!(space.is_due() && !space.is_urgent());
        space.begin();
        nothing_to_write(&mut space, step(PurgeOutcome::Now));
        assert!(space.is_urgent());
    }

    /// Under pressure the next step runs before a truncation can request a check: then that step or the one after it
    /// checks.
    #[test]
    fn pinning_is_checked_while_steps_follow_each_other() {
        let mut space = LogSpace::default();
        space.begin();
        space.request_pinning_check();
        assert!(!space.may_purge());
        space.on_purged(step(PurgeOutcome::Now));
        space.on_settled(true);
        assert!(space.is_urgent() && space.is_pinning_check_due());
        space.begin();
        assert!(!space.is_pinning_check_due(), "once");
        nothing_to_write(&mut space, pinned());
        assert!(!space.is_due() && is_pinned(&space));
        // The check alone makes a step due.
        space.request_pinning_check();
        assert!(space.is_due() && !space.is_urgent());
    }

    #[test]
    fn pinning_is_known_until_the_next_check() {
        let mut space = LogSpace::default();
        let (region, last) = (RegionId::new(7), LogIndex::new(9));
        space.on_purged(pinned());
        assert_eq!((space.pinning(region), is_pinned(&space)), (last, true));
        space.on_purged(PurgeStep::default());
        assert!(is_pinned(&space));
        space.on_purged(PurgeStep { pinning: Some(Vec::new()), ..PurgeStep::default() });
        assert_eq!((space.pinning(region), is_pinned(&space)), (LogIndex::default(), false));
    }

    /// A failed purge has no result: the pinning regions and the due work stay, and the check is repeated.
    #[test]
    fn failed_purge_keeps_the_earlier_state() {
        let mut space = LogSpace::default();
        space.begin();
        nothing_to_write(&mut space, PurgeStep { outcome: PurgeOutcome::Now, ..pinned() });
        space.request_pinning_check();
        space.begin();
        space.on_failed();
        assert_eq!(space.pinning(RegionId::new(7)), LogIndex::new(9));
        space.on_settled(true);
        assert!(is_pinned(&space) && space.is_due() && space.is_pinning_check_due());
        space.begin();
        space.on_failed();
        space.on_settled(true);
        space.begin();
        nothing_to_write(&mut space, step(PurgeOutcome::Idle));
        assert!(is_pinned(&space) && !space.is_due(), "checked once, by the step that succeeded");
    }
}
