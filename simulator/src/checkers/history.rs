//! Checks the answers that clients got: registers are linearizable, and lists lose nothing.
//!
//! **Registers.** Every write writes a value never written before, so a read identifies its write. The *zone* of a
//! value runs between the earliest end `e` and the latest begin `b` of the operations on it, that is the write and its
//! reads. If `e < b` the zone is forward, `[e, b]`: the register held the value all that time. Otherwise it is
//! backward, `[b, e]`: the register held the value at some moment in it. A history of one register is linearizable
//! exactly if no read ends before its write begins, no two forward zones overlap, and no forward zone contains a
//! backward zone (Gibbons and Korach, "Testing Shared Memories", 1997). A write of unknown outcome never ends; if
//! nobody read it, it is ignored.
//!
//! **Lists.** Only one client appends to its list, each time to the list it read when it evaluated the write. So in the
//! end the list holds every confirmed append, in order, and no refused append.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checked, Violation, violated};
use raftstore::RegionId;

/// The number of an event of the run. No two begins or ends share one.
pub type Moment = u64;
/// A value of a register, unique to its write. [`INITIAL`] is the value before any write.
pub type Value = u64;

/// The value before any write.
pub const INITIAL: Value = 0;
/// The end of an operation that never ended.
const NEVER: Moment = Moment::MAX;

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// Not ended, or ended without an answer: it may take effect at any later moment, or never.
    Unknown,
    /// Confirmed at this moment.
    Confirmed(Moment),
    /// Had no effect.
    Refused,
}

/// The confirmed writes of each region.
#[derive(Clone, Debug, Default)]
pub struct Confirmed {
    /// Their number, and the latest begin of one.
    regions: BTreeMap<RegionId, (u64, Moment)>,
}

impl Confirmed {
    /// Adds a write that began at this moment.
    pub fn add(&mut self, region: RegionId, begin: Moment) {
        let (writes, latest) = self.regions.entry(region).or_default();
        *writes += 1;
        *latest = begin.max(*latest);
    }

    /// The number of writes of a region.
    pub fn writes(&self, region: RegionId) -> u64 {
        self.regions.get(&region).map_or(0, |(writes, _)| *writes)
    }

    /// The latest begin of a write of a region; 0 if there is none.
    pub fn latest(&self, region: RegionId) -> Moment {
        self.regions.get(&region).map_or(0, |(_, latest)| *latest)
    }
}

#[derive(Clone, Copy, Debug)]
struct Write {
    begin: Moment,
    outcome: WriteOutcome,
}

/// The operations on one register.
#[derive(Clone, Debug, Default)]
pub struct Register {
    writes: BTreeMap<Value, Write>,
    /// Value read, beginning, end.
    reads: Vec<(Value, Moment, Moment)>,
}

/// The zone of a value: earliest end and latest begin.
#[derive(Clone, Copy, Debug)]
struct Zone {
    value: Value,
    first_end: Moment,
    last_begin: Moment,
}

impl Zone {
    fn is_forward(&self) -> bool {
        self.first_end < self.last_begin
    }
}

impl Register {
    /// A write of `value` begins.
    pub fn begin_write(&mut self, value: Value, begin: Moment) {
        let previous = self.writes.insert(value, Write { begin, outcome: WriteOutcome::Unknown });
        assert!(previous.is_none() && value != INITIAL, "value {value} is written twice");
    }

    /// The write of `value` ended.
    pub fn end_write(&mut self, value: Value, outcome: WriteOutcome) {
        if let Some(write) = self.writes.get_mut(&value) {
            write.outcome = outcome;
        }
    }

    /// A read returned `value`.
    pub fn read(&mut self, value: Value, begin: Moment, end: Moment) {
        self.reads.push((value, begin, end));
    }

    /// Whether the history is linearizable.
    pub fn check(&self) -> Checked {
        let mut zones = self.zones()?;
        zones.sort_by_key(|zone| zone.first_end.min(zone.last_begin));
        let (forward, backward): (Vec<Zone>, Vec<Zone>) = zones.into_iter().partition(Zone::is_forward);
        for pair in forward.windows(2) {
            if pair[1].first_end < pair[0].last_begin {
                return violated(format!(
                    "values {} and {} were both current: {:?} overlaps {:?}",
                    pair[0].value, pair[1].value, pair[0], pair[1]
                ));
            }
        }
        // Forward zones are disjoint, so only the last one that begins before a backward zone can contain it.
        for zone in backward {
            let before = forward.partition_point(|other| other.first_end < zone.last_begin);
            let Some(other) = before.checked_sub(1).map(|at| forward[at]) else { continue };
            if zone.first_end < other.last_begin {
                return violated(format!(
                    "value {} was read or confirmed while {} was current: {zone:?} lies in {other:?}",
                    zone.value, other.value
                ));
            }
        }
        Ok(())
    }

    fn zones(&self) -> Result<Vec<Zone>, Violation> {
        let mut zones: BTreeMap<Value, Zone> = BTreeMap::new();
        zones.insert(INITIAL, Zone { value: INITIAL, first_end: 0, last_begin: 0 });
        for (&value, write) in &self.writes {
            let end = if let WriteOutcome::Confirmed(end) = write.outcome { end } else { NEVER };
            zones.insert(value, Zone { value, first_end: end, last_begin: write.begin });
        }
        let mut read = BTreeSet::new();
        for &(value, begin, end) in &self.reads {
            let Some(zone) = zones.get_mut(&value) else {
                return violated(format!("value {value} was read but never written"));
            };
            if let Some(write) = self.writes.get(&value) {
                if write.outcome == WriteOutcome::Refused {
                    return violated(format!("value {value} was read though its write was refused"));
                }
                if end < write.begin {
                    return violated(format!("value {value} was read before it was written"));
                }
            }
            zone.first_end = zone.first_end.min(end);
            zone.last_begin = zone.last_begin.max(begin);
            read.insert(value);
        }
        let constrains = |zone: &Zone| {
            let confirmed =
                matches!(self.writes.get(&zone.value), Some(Write { outcome: WriteOutcome::Confirmed(_), .. }));
            zone.value == INITIAL || confirmed || read.contains(&zone.value)
        };
        Ok(zones.into_values().filter(constrains).collect())
    }
}

/// The appends of one client to its own list, in the order of their begins.
#[derive(Clone, Debug, Default)]
pub struct List {
    appends: Vec<(Value, WriteOutcome)>,
}

impl List {
    /// An append begins.
    pub fn begin(&mut self, value: Value) {
        self.appends.push((value, WriteOutcome::Unknown));
    }

    /// The append of `value` ended.
    pub fn end(&mut self, value: Value, outcome: WriteOutcome) {
        if let Some(append) = self.appends.iter_mut().rev().find(|append| append.0 == value) {
            append.1 = outcome;
        }
    }

    /// Checks the final content of the list.
    pub fn check(&self, found: &[Value]) -> Checked {
        let mut rest = found.iter().peekable();
        for (value, outcome) in &self.appends {
            let present = rest.next_if_eq(&value).is_some();
            match outcome {
                WriteOutcome::Confirmed(_) if !present => return violated(format!("confirmed append {value} is lost")),
                WriteOutcome::Refused if present => return violated(format!("refused append {value} took effect")),
                _ => {}
            }
        }
        match rest.next() {
            Some(value) => violated(format!("append {value} is out of order, doubled or unknown in {found:?}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn register(writes: &[(Value, Moment, WriteOutcome)], reads: &[(Value, Moment, Moment)]) -> Register {
        let mut register = Register::default();
        for &(value, begin, outcome) in writes {
            register.begin_write(value, begin);
            register.end_write(value, outcome);
        }
        for &(value, begin, end) in reads {
            register.read(value, begin, end);
        }
        register
    }

    #[test]
    fn planted_anomalies_are_found() {
        use WriteOutcome::{Confirmed, Refused, Unknown};
        let two = [(1, 1, Confirmed(2)), (2, 3, Confirmed(4))];
        assert!(register(&two, &[(1, 2, 3), (2, 5, 6)]).check().is_ok());
        assert!(register(&two, &[(1, 5, 6)]).check().is_err(), "stale read");
        assert!(register(&two, &[(INITIAL, 5, 6)]).check().is_err(), "lost writes");
        assert!(register(&two, &[(9, 5, 6)]).check().is_err(), "a value out of thin air");
        assert!(register(&[(1, 5, Confirmed(6))], &[(1, 2, 3)]).check().is_err(), "read from the future");
        assert!(register(&[(1, 1, Refused)], &[(1, 2, 3)]).check().is_err(), "refused, yet read");
        assert!(register(&[(1, 1, Unknown)], &[(1, 8, 9)]).check().is_ok(), "unknown, took effect late");
        assert!(register(&[(1, 1, Unknown)], &[(1, 3, 4), (INITIAL, 5, 6)]).check().is_err(), "taken back");
        let concurrent = [(1, 1, Confirmed(10)), (2, 2, Confirmed(11))];
        assert!(register(&concurrent, &[(1, 3, 4), (2, 5, 6)]).check().is_ok());
        assert!(register(&concurrent, &[(1, 3, 4), (2, 5, 6), (1, 7, 8)]).check().is_err(), "back and forth");
    }

    #[test]
    fn lists_must_hold_confirmed_appends() {
        let mut list = List::default();
        for value in 1..=4 {
            list.begin(value);
        }
        list.end(1, WriteOutcome::Confirmed(1));
        list.end(3, WriteOutcome::Refused);
        list.end(4, WriteOutcome::Confirmed(2));
        assert!(list.check(&[1, 4]).is_ok() && list.check(&[1, 2, 4]).is_ok());
        for bad in [&[1][..], &[4], &[1, 3, 4], &[4, 1], &[1, 4, 4], &[1, 4, 9]] {
            assert!(list.check(bad).is_err(), "{bad:?}");
        }
    }

    /// Wing and Gong's search: tries every order that respects real time.
    fn search(ops: &[(bool, Value, Moment, Moment)], done: u32, current: Value) -> bool {
        let open: Vec<usize> = (0..ops.len()).filter(|at| done & (1 << at) == 0).collect();
        // Operations that never ended may never have happened.
        if open.iter().all(|&at| ops[at].3 == NEVER) {
            return true;
        }
        let first_end = open.iter().map(|&at| ops[at].3).min().unwrap_or(NEVER);
        open.iter().any(|&at| {
            let (is_write, value, begin, _) = ops[at];
            begin < first_end
                && (is_write || value == current)
                && search(ops, done | (1 << at), if is_write { value } else { current })
        })
    }

    #[test]
    fn agrees_with_an_exhaustive_search() {
        let seed = 17;
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut good, mut bad) = (0, 0);
        for round in 0..20_000 {
            let count = rng.random_range(2..=7);
            let mut moments: Vec<Moment> = (1..=2 * count).collect();
            for at in (1..moments.len()).rev() {
                moments.swap(at, rng.random_range(0..=at));
            }
            let mut ops = Vec::new();
            for (at, pair) in moments.chunks(2).enumerate() {
                let (begin, end) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
                let is_write = rng.random_bool(0.5);
                let end = if is_write && rng.random_bool(0.2) { NEVER } else { end };
                ops.push((is_write, if is_write { at as Value + 1 } else { INITIAL }, begin, end));
            }
            let written: Vec<Value> = ops.iter().filter(|op| op.0).map(|op| op.1).chain([INITIAL]).collect();
            for op in ops.iter_mut().filter(|op| !op.0) {
                op.1 = written[rng.random_range(0..written.len())];
            }
            let mut register = Register::default();
            for &(is_write, value, begin, end) in &ops {
                if is_write {
                    register.begin_write(value, begin);
                    register.end_write(
                        value,
                        if end == NEVER { WriteOutcome::Unknown } else { WriteOutcome::Confirmed(end) },
                    );
                } else {
                    register.read(value, begin, end);
                }
            }
            let expected = search(&ops, 0, INITIAL);
            assert_eq!(register.check().is_ok(), expected, "seed {seed} round {round}: {ops:?}");
            if expected { good += 1 } else { bad += 1 }
        }
        assert!(good > 1000 && bad > 1000, "{good} good, {bad} bad");
    }
}
