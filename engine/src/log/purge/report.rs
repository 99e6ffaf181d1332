//! The budget of a call of purge, and its report.

use crate::log::error::Finding;
use crate::log::types::GroupId;

/// The most bytes of a commit group of purge, whatever the budget. It bounds how long a synced write waits behind it.
pub(super) const MAX_STEP_BYTES: usize = 256 << 10;

/// The smallest budget that counts. With less, the headers of the commit groups would outweigh the records.
pub(super) const MIN_STEP_BYTES: usize = 4 << 10;

/// How much one call of purge may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// About how many bytes this call writes: rewritten entries, keys and values, and the step of a reserve. Exceeded
    /// by at most one block or key. At least 4 KiB. At most 256 KiB, because other batches wait for one commit group of
    /// purge at most. To do more, call more often.
    pub bytes: usize,
    /// Whether to look for pinning groups, which visits every group.
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
    /// After a change of the log: nothing is left to do.
    #[default]
    Idle,
    /// At the next tick: there is more to do, but it is not urgent, or this call could not do any of it.
    NextTick,
    /// As soon as this step is written: there is more to do, and the log exceeds one and a half times its threshold or
    /// the disk is full. If the step could not be written, at the next tick: the same step would fail again.
    Now,
}

/// What one call of purge did, and what pins old files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Bytes of files deleted, or kept for reuse, by this call.
    pub freed: u64,
    /// Bytes of live entries, keys and floors that this call queued to be rewritten.
    pub rewritten: u64,
    /// When to call again.
    pub outcome: PurgeOutcome,
    /// Groups whose entries keep old files alive, those that pin most first. Empty while the log is within its
    /// threshold and its disk has space, and if the budget does not ask for them.
    pub pinning: Vec<PinningGroup>,
    /// The first failure that is no damage: a file could not be deleted, or the disk refused a reserve. The call
    /// continues after it, and a later call retries.
    pub failed: Option<String>,
    /// Damage in the file to rewrite. A read of the same bytes would fail. The file stays, and purge does not read it
    /// again until the log is reopened, so each location is reported once; not here if scrub reported it before.
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
