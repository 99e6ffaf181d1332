//! What purge is asked to do, and what it reports.

use crate::log::error::Finding;
use crate::log::types::GroupId;

/// No commit group of purge has more bytes, whatever the budget: a bound on how long one synced write waits behind it.
pub(super) const MAX_STEP_BYTES: usize = 256 << 10;

/// How much one call of purge may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// About how many bytes this call writes: rewritten entries, keys and values, and the step of a reserve. Exceeded
    /// by at most one block or key. Capped at 256 KiB, because other batches wait for one commit group of purge at
    /// most. To do more, call more often.
    pub bytes: usize,
    /// Whether to look for the groups that pin old files, which visits every group.
    pub find_pinning: bool,
}

impl Default for Budget {
    /// 256 KiB, with a look for pinning groups.
    fn default() -> Budget {
        Budget { bytes: MAX_STEP_BYTES, find_pinning: true }
    }
}

/// When to call purge again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PurgeOutcome {
    /// When something has changed: nothing is left to do.
    #[default]
    Idle,
    /// At the next tick: there is more to do, and either it is not urgent or this call could not do any of it.
    NextTick,
    /// As soon as this step is written: there is more to do, and the log takes half as much again as its threshold or
    /// finds no space. If the step could not be written, at the next tick: the same step would fail again.
    Now,
}

/// What one call of purge did, and what pins old files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Bytes of files deleted, or kept for reuse, by this call.
    pub freed: u64,
    /// Bytes of live entries, and of what else is needed of a file, that this call queued to be rewritten.
    pub rewritten: u64,
    /// When to call again.
    pub outcome: PurgeOutcome,
    /// Groups whose entries keep old files alive, the worst first. Empty while the log takes no more than its threshold
    /// and finds space, and if the budget does not ask for them.
    pub pinning: Vec<PinningGroup>,
    /// The first thing that could not be done: a file that could not be deleted, or a reserve that the disk did not
    /// take. Everything else was done. A later call tries again if that may help.
    pub failed: Option<String>,
    /// Damage in a file that was to be rewritten. Such a file stays and is not tried again until the log is opened
    /// anew, so each is reported once, and not here if scrub reported the same location. A read of the same bytes would
    /// fail.
    pub damage: Vec<Finding>,
}

/// A group whose old entries keep files alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinningGroup {
    /// The group.
    pub group: GroupId,
    /// The first index to keep so that the group no longer pins old files.
    pub compact_to: u64,
    /// Bytes of its entries in old files.
    pub pinned_bytes: u64,
}
