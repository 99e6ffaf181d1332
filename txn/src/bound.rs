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
pub struct CommitBound {
    own: Arc<AtomicU64>,
    /// Another limit that counts too.
    other: Option<Arc<AtomicU64>>,
}

impl CommitBound {
    /// A limit.
    pub fn new(greatest: Timestamp) -> CommitBound {
        CommitBound { own: Arc::new(AtomicU64::new(greatest.raw())), other: None }
    }

    /// The lower one of this limit and another, whichever of them is raised later. `other` is not such a pair itself.
    pub fn and(&self, other: &CommitBound) -> CommitBound {
        assert!(self.other.is_none() && other.other.is_none(), "two limits at most");
        CommitBound { own: Arc::clone(&self.own), other: Some(Arc::clone(&other.own)) }
    }

    /// Raises the limit. A lower value changes nothing.
    pub fn raise(&self, greatest: Timestamp) {
        self.own.fetch_max(greatest.raw(), Ordering::AcqRel);
    }

    /// The limit now.
    pub fn get(&self) -> Timestamp {
        let own = self.own.load(Ordering::Acquire);
        let other = self.other.as_ref().map_or(u64::MAX, |other| other.load(Ordering::Acquire));
        Timestamp::from_raw(own.min(other))
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

    #[test]
    fn of_two_limits_the_lower_one_counts() {
        let (a, b) = (CommitBound::new(Timestamp::from_raw(7)), CommitBound::new(Timestamp::from_raw(5)));
        let both = a.and(&b);
        assert_eq!(both.get(), Timestamp::from_raw(5));
        b.raise(Timestamp::from_raw(9));
        assert_eq!(both.get(), Timestamp::from_raw(7));
        a.raise(Timestamp::from_raw(8));
        assert_eq!((both.get(), a.get()), (Timestamp::from_raw(8), Timestamp::from_raw(8)));
    }
}
