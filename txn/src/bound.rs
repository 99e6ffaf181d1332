//! The greatest commit_ts of a transaction: a limit that its caller sets and may raise until the commit has its
//! timestamp.
//!
//! The caller plans under a lease that ends at a timestamp, such as the lease on the SQL catalog. A commit above the
//! end of the lease could change what others have changed meanwhile in the belief that the lease is over. So the commit
//! fails with a conflict instead, before its primary is committed. While the caller renews its lease, it raises the
//! limit, and a commit that takes long still succeeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tso::Timestamp;

/// The greatest commit_ts of the transactions that carry it. Clones share the limit. It never falls.
#[derive(Clone, Debug)]
pub struct CommitBound(Arc<AtomicU64>);

impl CommitBound {
    /// A limit.
    pub fn new(greatest: Timestamp) -> CommitBound {
        CommitBound(Arc::new(AtomicU64::new(greatest.raw())))
    }

    /// Raises the limit. A lower value changes nothing.
    pub fn raise(&self, greatest: Timestamp) {
        self.0.fetch_max(greatest.raw(), Ordering::AcqRel);
    }

    /// The limit now.
    pub fn get(&self) -> Timestamp {
        Timestamp::from_raw(self.0.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shared_and_never_falls() {
        let bound = CommitBound::new(Timestamp::from_raw(7));
        let clone = bound.clone();
        bound.raise(Timestamp::from_raw(9));
        bound.raise(Timestamp::from_raw(8));
        assert_eq!(clone.get(), Timestamp::from_raw(9));
    }
}
