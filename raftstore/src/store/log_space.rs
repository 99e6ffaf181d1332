//! What the store knows of the log's space: which regions keep old files from being given up, and whether and how soon purge goes on.
//!
//! Purge works in steps. Each is a commit group of the log at most, and the next is begun only when that one is written: so foreground
//! batches wait for one step at most. A step a tick is enough as long as the log is about as large as it should be; once it is pressed
//! (half as much again, or its disk is full) the next step follows at once, because it would grow faster than it is given back. But not after a
//! step that failed or came to nothing: on a disk that is full for good, with the reserve spent, the same step would read, compress and fail again
//! as fast as it can. It is tried again with the next tick.
//!
//! Whether regions are in the way is looked for once after each checkpoint of the store, by whichever step comes next: under pressure there is
//! hardly a moment without one, and that is when it matters most who is in the way.
//!
//! Pure: it is told what happened, and says what is to be done.

use std::collections::BTreeMap;

use engine::log::PurgeOutcome;

use crate::region::{LogIndex, RegionId};

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct LogSpace {
    /// The last entry of each region that is in the way.
    pinning: BTreeMap<RegionId, LogIndex>,
    /// Whether it is to be looked for anew what is in the way, and whether the step being decided upon does.
    laggards_due: bool,
    looking: bool,
    /// Whether a step is being decided upon.
    busy: bool,
    /// Whether the log has not said yet that the step is over. It may say so before the step is decided upon.
    unwritten: bool,
    /// Whether the last step failed.
    failed: bool,
    /// What the last step that was decided upon came to.
    outcome: PurgeOutcome,
}

/// What a step of purge came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PurgeStep {
    /// The last entry of each region that is in the way, where it was looked for.
    pub(crate) pinning: Option<Vec<(RegionId, LogIndex)>>,
    /// When the next step is due.
    pub(crate) outcome: PurgeOutcome,
}

impl LogSpace {
    /// The last entry of a region that pins old files; 0 where it pins none.
    pub(super) fn pinning(&self, region: RegionId) -> LogIndex {
        self.pinning.get(&region).copied().unwrap_or_default()
    }

    /// Whether any region pins old files.
    pub(super) fn is_pinned(&self) -> bool {
        !self.pinning.is_empty()
    }

    /// Whether a step may be begun.
    pub(super) fn may_purge(&self) -> bool {
        !self.busy && !self.unwritten
    }

    /// The regions have let go of what they could: it is to be looked for what is in the way still.
    pub(super) fn look_for_laggards(&mut self) {
        self.laggards_due = true;
    }

    /// Whether the next step is to look for what is in the way.
    pub(super) fn wants_laggards(&self) -> bool {
        self.laggards_due
    }

    /// A step is begun, as wanted.
    pub(super) fn begin(&mut self) {
        self.busy = true;
        self.unwritten = true;
        self.failed = false;
        self.looking = std::mem::take(&mut self.laggards_due);
    }

    /// A step is decided upon.
    pub(super) fn purged(&mut self, step: PurgeStep) {
        self.busy = false;
        self.outcome = step.outcome;
        if let Some(pinning) = step.pinning {
            self.pinning = pinning.into_iter().collect();
        }
    }

    /// A step failed before anything was decided upon. What was known before still holds.
    pub(super) fn failed(&mut self) {
        self.busy = false;
        self.failed = true;
        self.laggards_due |= self.looking;
    }

    /// The step is over in the log: it is written, or nothing was to be written, or that failed.
    pub(super) fn landed(&mut self, written: bool) {
        self.unwritten = false;
        self.failed |= !written;
    }

    /// Whether the next step is due with the next tick.
    pub(super) fn is_due(&self) -> bool {
        (self.outcome != PurgeOutcome::Idle || self.laggards_due) && self.may_purge()
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

    /// A step for which the log had nothing to write.
    fn not_queued(space: &mut LogSpace, step: PurgeStep) {
        space.landed(true);
        space.purged(step);
    }

    /// The last entry of region 7 is in the way.
    fn pinned() -> PurgeStep {
        let pinning = Some(vec![(RegionId::new(7), LogIndex::new(9))]);
        PurgeStep { pinning, ..PurgeStep::default() }
    }

    #[test]
    fn a_step_waits_for_the_one_before_to_be_written() {
        let mut space = LogSpace::default();
        assert!(space.may_purge() && !space.is_due());
        space.begin();
        assert!(!space.may_purge());
        space.purged(step(PurgeOutcome::Now));
        assert!(!space.may_purge() && !space.is_due() && !space.is_urgent(), "not written yet");
        space.landed(true);
        assert!(space.may_purge() && space.is_due() && space.is_urgent());
        // The log may be quicker than whoever asked it.
        space.begin();
        space.landed(true);
        assert!(!space.may_purge());
        space.purged(step(PurgeOutcome::Now));
        assert!(space.is_urgent());
        space.begin();
        not_queued(&mut space, step(PurgeOutcome::Idle));
        assert!(space.may_purge() && !space.is_due() && !space.is_urgent(), "nothing left to do");
    }

    #[test]
    fn without_pressure_a_step_a_tick_is_enough() {
        let mut space = LogSpace::default();
        space.begin();
        not_queued(&mut space, step(PurgeOutcome::NextTick));
        assert!(space.is_due() && !space.is_urgent());
    }

    /// The disk stays full, and the reserve is spent: a step that the log could not write is tried again with the next tick, and not at once.
    #[test]
    fn a_step_that_failed_is_not_urgent_before_the_next_tick() {
        let mut space = LogSpace::default();
        for log_is_quicker in [false, true] {
            space.begin();
            if log_is_quicker {
                space.landed(false);
                space.purged(step(PurgeOutcome::Now));
            } else {
                space.purged(step(PurgeOutcome::Now));
                space.landed(false);
            }
            assert!(space.is_due() && !space.is_urgent(), "the log was quicker: {log_is_quicker}");
        }
        // It failed before the log was asked.
        space.begin();
        space.landed(true);
        space.failed();
        assert!(space.is_due() && !space.is_urgent());
        // With the next tick the disk has space again.
        space.begin();
        space.purged(step(PurgeOutcome::Now));
        space.landed(true);
        assert!(space.is_urgent());
    }

    /// The log's queue is full: there is more to do, and nothing was done.
    #[test]
    fn a_step_that_came_to_nothing_is_not_urgent_before_the_next_tick() {
        let mut space = LogSpace::default();
        space.begin();
        not_queued(&mut space, step(PurgeOutcome::NextTick));
        assert!(space.is_due() && !space.is_urgent());
        space.begin();
        not_queued(&mut space, step(PurgeOutcome::Now));
        assert!(space.is_urgent());
    }

    /// Under pressure the next step is under way before a checkpoint can ask for one: then that, or the one after it, looks.
    #[test]
    fn laggards_are_looked_for_while_step_follows_step() {
        let mut space = LogSpace::default();
        space.begin();
        space.look_for_laggards();
        assert!(!space.may_purge());
        space.purged(step(PurgeOutcome::Now));
        space.landed(true);
        assert!(space.is_urgent() && space.wants_laggards());
        space.begin();
        assert!(!space.wants_laggards(), "once");
        not_queued(&mut space, pinned());
        assert!(!space.is_due() && space.is_pinned());
        // It need not be anything else that makes a step due.
        space.look_for_laggards();
        assert!(space.is_due() && !space.is_urgent());
    }

    #[test]
    fn what_is_in_the_way_is_known_until_it_was_looked_for_again() {
        let mut space = LogSpace::default();
        let (region, last) = (RegionId::new(7), LogIndex::new(9));
        space.purged(pinned());
        assert_eq!((space.pinning(region), space.is_pinned()), (last, true));
        space.purged(PurgeStep::default());
        assert!(space.is_pinned());
        space.purged(PurgeStep { pinning: Some(Vec::new()), ..PurgeStep::default() });
        assert_eq!((space.pinning(region), space.is_pinned()), (LogIndex::default(), false));
    }

    /// A purge that failed has found out nothing: who was in the way still is, what there was to do is, and it is looked for again.
    #[test]
    fn a_purge_that_failed_changes_nothing_of_what_is_known() {
        let mut space = LogSpace::default();
        space.begin();
        not_queued(&mut space, PurgeStep { outcome: PurgeOutcome::Now, ..pinned() });
        space.look_for_laggards();
        space.begin();
        space.failed();
        assert_eq!(space.pinning(RegionId::new(7)), LogIndex::new(9));
        space.landed(true);
        assert!(space.is_pinned() && space.is_due() && space.wants_laggards());
        space.begin();
        space.failed();
        space.landed(true);
        space.begin();
        not_queued(&mut space, step(PurgeOutcome::Idle));
        assert!(space.is_pinned() && !space.is_due(), "asked for once, by the step that came to something");
    }
}
