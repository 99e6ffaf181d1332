//! The fates of other transactions, as far as this node has learnt them.
//!
//! A transaction once committed or rolled back stays so, and its start_ts is its own; so an entry never becomes wrong.
//! Bounded: the oldest entry makes room for a new one.

use std::collections::{HashMap, VecDeque};

use tso::Timestamp;

use crate::error::TxnError;

/// A final fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Committed at this timestamp.
    Committed(Timestamp),
    /// Rolled back.
    RolledBack,
}

impl Fate {
    /// What `resolve_locks` wants to know.
    pub(crate) fn commit_ts(self) -> Option<Timestamp> {
        match self {
            Fate::Committed(commit_ts) => Some(commit_ts),
            Fate::RolledBack => None,
        }
    }
}

/// Fates by start_ts.
///
/// Invariant: `order` holds exactly the keys of `fates`, oldest first, and there are at most `capacity`.
#[derive(Debug)]
pub(crate) struct Decided {
    fates: HashMap<Timestamp, Fate>,
    order: VecDeque<Timestamp>,
    capacity: usize,
}

impl Decided {
    pub(crate) fn new(capacity: usize) -> Decided {
        Decided { fates: HashMap::new(), order: VecDeque::new(), capacity: capacity.max(1) }
    }

    pub(crate) fn get(&self, start_ts: Timestamp) -> Option<Fate> {
        self.fates.get(&start_ts).copied()
    }

    /// Learns a fate. An error if another one was known: then the store contradicts itself, and going on would spread
    /// it.
    pub(crate) fn insert(&mut self, start_ts: Timestamp, fate: Fate) -> Result<(), TxnError> {
        match self.fates.get(&start_ts) {
            Some(known) if *known == fate => return Ok(()),
            Some(known) => {
                return Err(TxnError::Internal(format!("transaction {start_ts} is {fate:?}, and was {known:?}")));
            }
            None => {}
        }
        self.fates.insert(start_ts, fate);
        self.order.push_back(start_ts);
        if self.order.len() > self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.fates.remove(&oldest);
        }
        assert_eq!(self.order.len(), self.fates.len(), "one place in the order per fate");
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
    fn remembers_the_newest() {
        let mut decided = Decided::new(2);
        for (start_ts, fate) in
            [(1, Fate::RolledBack), (1, Fate::RolledBack), (2, Fate::Committed(ts(5))), (3, Fate::RolledBack)]
        {
            assert_eq!(decided.insert(ts(start_ts), fate), Ok(()));
        }
        assert_eq!(decided.get(ts(1)), None);
        assert_eq!(decided.get(ts(2)).and_then(Fate::commit_ts), Some(ts(5)));
        assert_eq!(decided.get(ts(3)), Some(Fate::RolledBack));
    }

    #[test]
    fn two_fates_are_refused() {
        let mut decided = Decided::new(2);
        assert_eq!(decided.insert(ts(1), Fate::RolledBack), Ok(()));
        assert!(matches!(decided.insert(ts(1), Fate::Committed(ts(2))), Err(TxnError::Internal(_))));
        assert_eq!(decided.get(ts(1)), Some(Fate::RolledBack));
    }
}
