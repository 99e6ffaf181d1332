//! What the store knows of the log's space: which regions keep old files from being given up, and whether purge has more to do.

use std::collections::BTreeMap;

use crate::region::{LogIndex, RegionId};

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct LogSpace {
    /// The last entry of each region that is in the way.
    pinning: BTreeMap<RegionId, LogIndex>,
    /// Whether a step of purge is under way.
    busy: bool,
    more: bool,
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
        !self.busy
    }

    /// A step is under way.
    pub(super) fn begin(&mut self) {
        self.busy = true;
    }

    /// A step is done; it may have looked for what is in the way.
    pub(super) fn purged(&mut self, pinning: Option<Vec<(RegionId, LogIndex)>>, more: bool) {
        self.busy = false;
        self.more = more;
        if let Some(pinning) = pinning {
            self.pinning = pinning.into_iter().collect();
        }
    }

    /// Whether the last step left more to do.
    pub(super) fn has_more(&self) -> bool {
        self.more
    }
}
