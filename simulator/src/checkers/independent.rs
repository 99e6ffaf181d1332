//! A second opinion on list-append histories, by a checker that we did not write: the crate `adya`, which implements
//! the approach of Jepsen's Elle (Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
//! Observations", VLDB 2020).
//!
//! It also names anomalies that a level allows. So a test shows that its workload is sharp: under snapshot isolation
//! write skew must be found, or the transactions hardly met.
//!
//! Both checkers are compared on histories made by hand and at random (`tests`).

use std::collections::HashSet;

use adya::history::{Interner, Mop, Op as Event, OpType, ReadValue, Scalar};
use adya::{History, Opts, Report, Valid, Workload};

use super::snapshot_isolation::{Op, Outcome, Txn};
use super::{Checked, violated};

/// A consistency model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// No dirty, aborted or intermediate reads.
    ReadCommitted,
    /// Every transaction reads from one snapshot, and no update is lost.
    SnapshotIsolation,
    /// As above, and a snapshot has all that was acknowledged before its transaction began.
    StrongSnapshotIsolation,
    /// As if one after the other.
    Serializable,
}

impl Model {
    fn name(self) -> &'static str {
        match self {
            Model::ReadCommitted => "read-committed",
            Model::SnapshotIsolation => "snapshot-isolation",
            Model::StrongSnapshotIsolation => "strong-snapshot-isolation",
            Model::Serializable => "serializable",
        }
    }
}

/// Checks a history for a model.
pub fn check(history: &[Txn], model: Model) -> Checked {
    let report = report(history, model);
    let is_undecided = report.anomalies.contains_key("cycle-search-timeout");
    if report.valid != Valid::False && !is_undecided {
        return Ok(());
    }
    let first = report.anomalies.values().flatten().next();
    let why = first.map_or_else(String::new, |anomaly| anomaly.explanation.clone());
    violated(format!("not {}: {:?}: {why}", model.name(), report.anomaly_types))
}

/// The names of the anomalies that a model forbids and the history has, in Elle's terms.
pub fn anomalies(history: &[Txn], model: Model) -> Vec<String> {
    report(history, model).anomaly_types
}

fn report(history: &[Txn], model: Model) -> Report {
    let options = Opts { models: vec![model.name().to_string()], ..Opts::default() };
    adya::check(&to_events(history), Workload::ListAppend, &options)
}

/// The history as invocations and completions, in the order of their moments. Each transaction is a process of its
/// own, so the order of a session is that of real time. A transaction of unknown outcome has taken effect if one of its
/// appends was seen; otherwise it is left out, since the last reads of the history see all that has.
fn to_events(history: &[Txn]) -> History {
    let mut seen: HashSet<u64> = HashSet::new();
    for txn in history.iter().filter(|txn| txn.outcome == Outcome::Committed) {
        seen.extend(txn.ops.iter().flat_map(|op| if let Op::Read(_, list) = op { &list[..] } else { &[] }));
    }
    let took_effect =
        |txn: &Txn| txn.ops.iter().any(|op| matches!(op, Op::Append(_, element) if seen.contains(element)));
    let mut moments: Vec<(u64, bool, usize)> = Vec::new();
    for (number, txn) in history.iter().enumerate() {
        if txn.outcome != Outcome::Unknown || took_effect(txn) {
            moments.push((txn.began, false, number));
            // Nobody was told that it has ended.
            let ended = if txn.outcome == Outcome::Unknown { u64::MAX } else { txn.ended };
            moments.push((ended, true, number));
        }
    }
    // At one moment, transactions begin before others end: they overlap.
    moments.sort_unstable();
    let mut interner = Interner::default();
    let mut events = Vec::new();
    for (index, (_, is_end, number)) in moments.into_iter().enumerate() {
        let txn = &history[number];
        let kind = match txn.outcome {
            _ if !is_end => OpType::Invoke,
            Outcome::Committed => OpType::Ok,
            Outcome::Aborted => OpType::Fail,
            Outcome::Unknown => OpType::Info,
        };
        let value = txn.ops.iter().map(|op| micro_operation(op, is_end, &mut interner)).collect();
        let (index, process) = (index as u64, Some(number as i64));
        events.push(Event { index, kind, process, value, time: None });
    }
    History::from_ops(events, interner)
}

fn micro_operation(op: &Op, is_end: bool, interner: &mut Interner) -> Mop {
    let mut id = |number: u64| interner.intern(Scalar::Int(number as i64));
    match op {
        Op::Append(key, element) => Mop::Append { key: id(*key), value: id(*element) },
        Op::Read(key, _) if !is_end => Mop::Read { key: id(*key), value: ReadValue::Nil },
        Op::Read(key, list) => {
            let key = id(*key);
            Mop::Read { key, value: ReadValue::List(list.iter().map(|element| id(*element)).collect()) }
        }
    }
}

#[cfg(test)]
#[path = "independent_tests.rs"]
mod tests;
