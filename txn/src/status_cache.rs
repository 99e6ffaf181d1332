//! The cache of other transactions' final statuses, as far as this node knows them.
//!
//! A committed or rolled-back transaction stays so, and its start_ts is unique: an entry never becomes stale. The cache
//! is bounded and evicts the oldest entry.

use std::collections::{HashMap, VecDeque};

use tso::Timestamp;

use crate::error::TxnError;

/// The final status of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalStatus {
    /// Committed at this timestamp.
    Committed(Timestamp),
    /// Rolled back.
    RolledBack,
}

impl FinalStatus {
    /// The commit_ts; `None` if the transaction was rolled back.
    pub(crate) fn commit_ts(self) -> Option<Timestamp> {
        match self {
            FinalStatus::Committed(commit_ts) => Some(commit_ts),
            FinalStatus::RolledBack => None,
        }
    }
}

/// Final statuses by start_ts.
///
/// Invariant: `order` holds exactly the keys of `statuses`, oldest first, and at most `capacity` of them.
#[derive(Debug)]
pub(crate) struct StatusCache {
    statuses: HashMap<Timestamp, FinalStatus>,
    order: VecDeque<Timestamp>,
    capacity: usize,
}

impl StatusCache {
    pub(crate) fn new(capacity: usize) -> StatusCache {
        StatusCache { statuses: HashMap::new(), order: VecDeque::new(), capacity: capacity.max(1) }
    }

    pub(crate) fn get(&self, start_ts: Timestamp) -> Option<FinalStatus> {
        self.statuses.get(&start_ts).copied()
    }

    /// Records a final status. Fails if a different one is known: then the store contradicts itself, and to continue
    /// would spread the damage.
    pub(crate) fn insert(&mut self, start_ts: Timestamp, status: FinalStatus) -> Result<(), TxnError> {
        match self.statuses.get(&start_ts) {
            Some(known) if *known == status => return Ok(()),
            Some(known) => {
                return Err(TxnError::Internal(format!("transaction {start_ts} is {status:?}, and was {known:?}")));
            }
            None => {}
        }
        self.statuses.insert(start_ts, status);
        self.order.push_back(start_ts);
        if self.order.len() > self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.statuses.remove(&oldest);
        }
        assert_eq!(self.order.len(), self.statuses.len(), "one place in the order per status");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ts(raw: u64) -> Timestamp {
        Timestamp::from_raw(raw)
    }

    #[test]
    fn the_oldest_entry_is_evicted() {
        let mut cache = StatusCache::new(2);
        for (start_ts, status) in [
            (1, FinalStatus::RolledBack),
            (1, FinalStatus::RolledBack),
            (2, FinalStatus::Committed(ts(5))),
            (3, FinalStatus::RolledBack),
        ] {
            assert_eq!(cache.insert(ts(start_ts), status), Ok(()));
        }
        assert_eq!(cache.get(ts(1)), None);
        assert_eq!(cache.get(ts(2)).and_then(FinalStatus::commit_ts), Some(ts(5)));
        assert_eq!(cache.get(ts(3)), Some(FinalStatus::RolledBack));
    }

    #[test]
    fn contradicting_statuses_are_rejected() {
        let mut cache = StatusCache::new(2);
        assert_eq!(cache.insert(ts(1), FinalStatus::RolledBack), Ok(()));
        assert!(matches!(cache.insert(ts(1), FinalStatus::Committed(ts(2))), Err(TxnError::Internal(_))));
        assert_eq!(cache.get(ts(1)), Some(FinalStatus::RolledBack));
    }
}
