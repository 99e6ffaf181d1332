//! What the store knows of the log's space: which regions keep old files from being given up, and whether and how soon purge goes on.
//!
//! Purge works in steps. Each is a commit group of the log at most, and the next is begun only when that one is written: so foreground
//! batches wait for one step at most. A step a tick is enough as long as the log is about as large as it should be; once it is pressed
//! (half as much again, or its disk is full) the next step follows at once, because it would grow faster than it is given back.
//!
//! Pure: it is told what happened, and says what is to be done.

use std::collections::BTreeMap;

use crate::region::{LogIndex, RegionId};

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct LogSpace {
    /// The last entry of each region that is in the way.
    pinning: BTreeMap<RegionId, LogIndex>,
    /// Whether a step is being decided upon.
    busy: bool,
    /// Steps that were handed to the log, and those that it has written or given up. The word of the second may come first.
    queued: u64,
    landed: u64,
    more: bool,
    pressed: bool,
}

/// What a step of purge came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PurgeStep {
    /// The last entry of each region that is in the way, where it was looked for.
    pub(crate) pinning: Option<Vec<(RegionId, LogIndex)>>,
    /// Whether the log is to write something for it, and tells when it has.
    pub(crate) queued: bool,
    /// Whether there is more to do.
    pub(crate) more: bool,
    /// Whether the log takes far more than it should.
    pub(crate) pressed: bool,
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
        !self.busy && self.landed >= self.queued
    }

    /// A step is begun.
    pub(super) fn begin(&mut self) {
        self.busy = true;
    }

    /// A step is decided upon.
    pub(super) fn purged(&mut self, step: PurgeStep) {
        self.busy = false;
        self.queued += u64::from(step.queued);
        self.more = step.more;
        self.pressed = step.pressed;
        if let Some(pinning) = step.pinning {
            self.pinning = pinning.into_iter().collect();
        }
    }

    /// The log has written what a step handed to it, or has failed to.
    pub(super) fn landed(&mut self) {
        self.landed += 1;
    }

    /// Whether the next step is due with the next tick.
    pub(super) fn has_more(&self) -> bool {
        self.more && self.may_purge()
    }

    /// Whether the next step is due now.
    pub(super) fn is_urgent(&self) -> bool {
        self.has_more() && self.pressed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(queued: bool, more: bool, pressed: bool) -> PurgeStep {
        PurgeStep { pinning: None, queued, more, pressed }
    }

    #[test]
    fn a_step_waits_for_the_one_before_to_be_written() {
        let mut space = LogSpace::default();
        assert!(space.may_purge() && !space.has_more());
        space.begin();
        assert!(!space.may_purge());
        space.purged(step(true, true, true));
        assert!(!space.may_purge() && !space.has_more() && !space.is_urgent(), "not written yet");
        space.landed();
        assert!(space.may_purge() && space.has_more() && space.is_urgent());
        // The log may be quicker than whoever asked it.
        space.begin();
        space.landed();
        assert!(!space.may_purge());
        space.purged(step(true, true, true));
        assert!(space.is_urgent());
        space.begin();
        space.purged(step(false, false, true));
        assert!(space.may_purge() && !space.has_more() && !space.is_urgent(), "nothing left to do");
    }

    #[test]
    fn without_pressure_a_step_a_tick_is_enough() {
        let mut space = LogSpace::default();
        space.begin();
        space.purged(step(false, true, false));
        assert!(space.has_more() && !space.is_urgent());
    }

    #[test]
    fn what_is_in_the_way_is_known_until_it_was_looked_for_again() {
        let mut space = LogSpace::default();
        let (region, last) = (RegionId::new(7), LogIndex::new(9));
        space.purged(PurgeStep { pinning: Some(vec![(region, last)]), ..PurgeStep::default() });
        assert_eq!((space.pinning(region), space.is_pinned()), (last, true));
        space.purged(PurgeStep::default());
        assert!(space.is_pinned());
        space.purged(PurgeStep { pinning: Some(Vec::new()), ..PurgeStep::default() });
        assert_eq!((space.pinning(region), space.is_pinned()), (LogIndex::default(), false));
    }
}
