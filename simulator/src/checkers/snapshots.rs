//! Counts snapshots that were built anew although nothing was wrong with the last one but its receiver. Crashes and
//! elections excuse that, so only a run without them may demand that there is none.
//!
//! Also counts what clients write meanwhile: a snapshot that is quick, or of an idle region, tests little.

use std::collections::{BTreeMap, BTreeSet};

use raftstore::ports::Delivery;
use raftstore::snapshot::SnapshotKey;
use raftstore::{PeerId, RegionId, Term};

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

/// A step of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SnapshotStep {
    /// From taking the region's data until the file is written.
    Build,
    /// From sending the file until it has arrived.
    Send,
    /// From the arrival of the file until its data is in place.
    Install,
}

/// Counts the writes that were confirmed in a region while a snapshot of it was built, sent or installed. Steps that
/// failed count nothing.
#[derive(Debug, Default)]
pub(crate) struct SnapshotTraffic {
    /// For each step that ended well: the number of writes confirmed in the region before it and by its end.
    spans: BTreeMap<(SnapshotStep, RegionId), BTreeSet<(u64, u64)>>,
}

impl SnapshotTraffic {
    /// A step has ended well. `before` writes were confirmed in the region before it, and `after` are now.
    pub(crate) fn on_step(&mut self, step: SnapshotStep, region: RegionId, before: u64, after: u64) {
        self.spans.entry((step, region)).or_default().insert((before, after));
    }

    /// The writes confirmed during such steps. A write counts once, however many steps it falls into.
    pub(crate) fn writes_during(&self, step: SnapshotStep) -> u64 {
        let of_step = self.spans.iter().filter(|((of, _), _)| *of == step);
        of_step.map(|(_, spans)| covered(spans)).sum()
    }
}

/// The number of writes in the union of these spans.
fn covered(spans: &BTreeSet<(u64, u64)>) -> u64 {
    let (mut writes, mut counted): (u64, u64) = (0, 0);
    for (before, after) in spans {
        writes += after.saturating_sub(counted.max(*before));
        counted = counted.max(*after);
    }
    writes
}

#[cfg(test)]
mod tests {
    use raftstore::LogIndex;

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

    #[test]
    fn writes_in_overlapping_steps_count_once() {
        let (one, two) = (RegionId::new(1), RegionId::new(2));
        let mut traffic = SnapshotTraffic::default();
        for (region, before, after) in [(one, 3, 7), (one, 2, 5), (one, 9, 9), (one, 10, 12), (two, 3, 7)] {
            traffic.on_step(SnapshotStep::Send, region, before, after);
        }
        traffic.on_step(SnapshotStep::Build, one, 0, 3);
        let steps = [SnapshotStep::Build, SnapshotStep::Send, SnapshotStep::Install];
        assert_eq!(steps.map(|step| traffic.writes_during(step)), [3, 5 + 2 + 4, 0]);
    }
}
