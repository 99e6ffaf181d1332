//! Counts snapshots that were built anew although nothing was wrong with the last one but its receiver. Crashes and
//! elections excuse that, so only a run without them may demand that there is none.

use std::collections::BTreeMap;

use raftstore::ports::Delivery;
use raftstore::snapshot::SnapshotKey;
use raftstore::{PeerId, Term};

/// See the module documentation.
#[derive(Default)]
pub(crate) struct SnapshotChecker {
    /// By receiver: the last snapshot sent, the term in which it was, and whether its receiver was busy.
    last: BTreeMap<PeerId, (SnapshotKey, Term, bool)>,
    /// Snapshots built anew after one of the same term that met a busy receiver.
    pub(crate) rebuilt: u64,
    /// Deliveries that met a busy receiver.
    pub(crate) busy: u64,
}

impl SnapshotChecker {
    /// A leader sends a snapshot.
    pub(crate) fn on_sent(&mut self, to: PeerId, key: SnapshotKey, term: Term) {
        let last = self.last.insert(to, (key, term, false));
        let rebuilt = last.is_some_and(|(before, of, busy)| busy && of == term && before != key);
        self.rebuilt += u64::from(rebuilt);
    }

    /// The delivery of the last snapshot sent to this receiver has ended.
    pub(crate) fn on_ended(&mut self, to: PeerId, delivery: Delivery) {
        let busy = delivery == Delivery::Busy;
        self.busy += u64::from(busy);
        self.last.entry(to).and_modify(|last| last.2 = busy);
    }
}

#[cfg(test)]
mod tests {
    use raftstore::{LogIndex, RegionId};

    use super::*;

    #[test]
    fn builds_for_busy_receivers_are_counted() {
        let key = |index| SnapshotKey { region: RegionId::new(1), term: Term::new(2), index: LogIndex::new(index) };
        let (to, term) = (PeerId::new(3), Term::new(2));
        let mut checker = SnapshotChecker::default();
        for (index, delivery) in [(5, Delivery::Busy), (5, Delivery::Delivered), (9, Delivery::Busy)] {
            checker.on_sent(to, key(index), term);
            checker.on_ended(to, delivery);
        }
        assert_eq!((checker.rebuilt, checker.busy), (0, 2));
        checker.on_sent(to, key(9), Term::new(3));
        checker.on_ended(to, Delivery::Busy);
        checker.on_sent(to, key(12), Term::new(3));
        assert_eq!(checker.rebuilt, 1);
    }
}
