//! Replays a history of lists in the order of its timestamps.
//!
//! The checkers beside this one know nothing of timestamps: they infer an order from what was seen. This one takes the
//! order that the system claims, and demands that everything fits it:
//!
//! 1. A transaction commits above its snapshot, and no two commit one list at one timestamp.
//! 2. A read shows what was committed at or below its snapshot, in the order of the commits, and then the
//!    transaction's own appends.
//! 3. No two committed transactions with overlapping intervals `(read_ts, commit_ts]` appended to one list.
//! 4. A commit that was acknowledged before a transaction began is at or below its snapshot. Without this an oracle
//!    could go back in time unnoticed.
//!
//! Where nobody knows at which timestamp a transaction has committed, or whether, its appends must be there from some
//! timestamp on, and before that not.

use std::collections::{BTreeMap, HashMap};

use super::snapshot_isolation::{Op, Outcome, Txn};
use super::{Checked, violated};

/// A timestamp of the oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

/// The timestamps of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The transaction, by its place in the history.
    pub txn: usize,
    /// Of its snapshot.
    pub read: Time,
    /// If it has committed, and its client knows when.
    pub commit: Option<Time>,
}

/// An append whose transaction has committed at a known timestamp.
#[derive(Clone, Copy)]
struct Append {
    commit: Time,
    read: Time,
    element: u64,
    txn: usize,
}

/// Checks that a history fits its timestamps. Reads of a transaction without timestamps are not looked at.
pub fn check(history: &[Txn], times: &[Times]) -> Checked {
    let times: BTreeMap<usize, Times> = times.iter().map(|times| (times.txn, *times)).collect();
    for (number, Times { read, commit, .. }) in &times {
        if commit.is_some_and(|commit| commit <= *read) {
            return violated(format!("transaction {number} committed at {commit:?}, not above its snapshot {read:?}"));
        }
    }
    let appends = appends(history, &times);
    overlaps(&appends)?;
    reads(history, &times, &appends)?;
    real_time(history, &times)
}

/// The appends of known timestamps, by list, in the order of their commits.
fn appends(history: &[Txn], times: &BTreeMap<usize, Times>) -> BTreeMap<u64, Vec<Append>> {
    let mut appends: BTreeMap<u64, Vec<Append>> = BTreeMap::new();
    for (number, txn) in history.iter().enumerate() {
        let Some(&Times { read, commit: Some(commit), .. }) = times.get(&number) else { continue };
        for op in &txn.ops {
            if let Op::Append(key, element) = *op {
                appends.entry(key).or_default().push(Append { commit, read, element, txn: number });
            }
        }
    }
    // Stable: a transaction appends in its order.
    appends.values_mut().for_each(|appends| appends.sort_by_key(|append| append.commit));
    appends
}

fn overlaps(appends: &BTreeMap<u64, Vec<Append>>) -> Checked {
    for (key, appends) in appends {
        for pair in appends.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            if first.txn != second.txn && second.read < first.commit {
                return violated(format!(
                    "transactions {} and {} both appended to {key}: one committed at {:?}, the other one read at {:?} \
                     and committed at {:?}",
                    first.txn, second.txn, first.commit, second.read, second.commit
                ));
            }
        }
    }
    Ok(())
}

/// From where on an append of unknown timestamp is there: the last snapshot without it, the first with it.
#[derive(Default)]
struct Appears {
    last_without: Option<Time>,
    first_with: Option<Time>,
}

fn reads(history: &[Txn], times: &BTreeMap<usize, Times>, appends: &BTreeMap<u64, Vec<Append>>) -> Checked {
    // Appends of unknown timestamp: their list, and when they appear.
    let mut unknown: HashMap<u64, (u64, Appears)> = HashMap::new();
    for (number, txn) in history.iter().enumerate() {
        if txn.outcome != Outcome::Aborted && times.get(&number).is_none_or(|times| times.commit.is_none()) {
            for op in &txn.ops {
                if let Op::Append(key, element) = *op {
                    unknown.insert(element, (key, Appears::default()));
                }
            }
        }
    }
    let mut unknown_of: HashMap<u64, Vec<u64>> = HashMap::new();
    for (element, (key, _)) in &unknown {
        unknown_of.entry(*key).or_default().push(*element);
    }
    for (number, Times { read, .. }) in times {
        let Some(txn) = history.get(*number) else { return violated(format!("no transaction {number}")) };
        let mut own: HashMap<u64, Vec<u64>> = HashMap::new();
        for op in &txn.ops {
            match op {
                Op::Append(key, element) => own.entry(*key).or_default().push(*element),
                Op::Read(key, found) => {
                    let own = own.get(key).map_or(&[][..], Vec::as_slice);
                    let committed = appends.get(key).map_or(&[][..], Vec::as_slice);
                    let until = committed.partition_point(|append| append.commit <= *read);
                    let expected: Vec<u64> =
                        committed[..until].iter().map(|append| append.element).chain(own.iter().copied()).collect();
                    let is_known = |element: &&u64| own.contains(element) || !unknown.contains_key(element);
                    let known: Vec<u64> = found.iter().filter(is_known).copied().collect();
                    if known != expected {
                        return violated(format!(
                            "transaction {number} read list {key} at {read:?}: {found:?}, and of those whose time is \
                             known there were {expected:?}"
                        ));
                    }
                    for element in unknown_of.get(key).into_iter().flatten().filter(|element| !own.contains(element)) {
                        if let Some((_, appears)) = unknown.get_mut(element) {
                            appears.see(*read, found.contains(element));
                        }
                    }
                }
            }
        }
    }
    for (element, (key, Appears { last_without, first_with })) in &unknown {
        if let (Some(without), Some(with)) = (last_without, first_with)
            && without >= with
        {
            return violated(format!("element {element} of list {key} was there at {with:?} and not at {without:?}"));
        }
    }
    Ok(())
}

impl Appears {
    fn see(&mut self, at: Time, is_there: bool) {
        match is_there {
            true => self.first_with = Some(self.first_with.map_or(at, |first| first.min(at))),
            false => self.last_without = Some(self.last_without.map_or(at, |last| last.max(at))),
        }
    }
}

/// See the fourth rule.
fn real_time(history: &[Txn], times: &BTreeMap<usize, Times>) -> Checked {
    let mut commits: Vec<(u64, Time, usize)> = Vec::new();
    let mut begins: Vec<(u64, Time, usize)> = Vec::new();
    for (number, Times { read, commit, .. }) in times {
        begins.push((history[*number].began, *read, *number));
        commits.extend(commit.map(|commit| (history[*number].ended, commit, *number)));
    }
    commits.sort_unstable();
    begins.sort_unstable();
    let mut commits = commits.into_iter().peekable();
    let mut newest: Option<(Time, usize)> = None;
    for (began, read, number) in begins {
        while let Some((_, commit, other)) = commits.next_if(|(ended, _, _)| *ended < began) {
            newest = newest.max(Some((commit, other)));
        }
        if let Some((commit, other)) = newest.filter(|(commit, _)| *commit > read) {
            return violated(format!(
                "transaction {number} read at {read:?}, below {commit:?} of transaction {other}, which was \
                 acknowledged before it began"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::super::Violation;
    use super::*;

    fn txn(began: u64, ended: u64, ops: &[Op]) -> Txn {
        Txn { ops: ops.to_vec(), outcome: Outcome::Committed, began, ended }
    }

    fn times(txn: usize, read: u64, commit: Option<u64>) -> Times {
        Times { txn, read: Time(read), commit: commit.map(Time) }
    }

    fn read(key: u64, list: &[u64]) -> Op {
        Op::Read(key, list.to_vec())
    }

    /// Asserts that the violation contains `why`, or that there is none if it is empty.
    fn verdict(history: &[Txn], times: &[Times], why: &str) {
        match check(history, times) {
            Ok(()) => assert!(why.is_empty(), "accepted, but: {why}"),
            Err(Violation(error)) => assert!(!why.is_empty() && error.contains(why), "{error}"),
        }
    }

    #[test]
    fn each_rule_is_checked() {
        let serial = [
            txn(1, 2, &[Op::Append(0, 1)]),
            txn(3, 4, &[read(0, &[1]), Op::Append(0, 2), read(0, &[1, 2])]),
            txn(5, 6, &[read(0, &[1, 2])]),
        ];
        verdict(&serial, &[times(0, 10, Some(11)), times(1, 12, Some(13)), times(2, 14, None)], "");
        verdict(&serial, &[times(0, 10, Some(10))], "not above its snapshot");
        // The second one would have read before the first one committed.
        verdict(&serial, &[times(0, 10, Some(15)), times(1, 12, Some(16))], "both appended to 0");
        verdict(&serial, &[times(0, 10, Some(11)), times(1, 12, Some(15)), times(2, 14, None)], "read list 0");
        // An oracle that went back: each transaction by itself fits.
        let [first, second] = [txn(1, 2, &[Op::Append(0, 1)]), txn(3, 4, &[read(0, &[])])];
        verdict(&[first.clone(), second.clone()], &[times(0, 10, Some(11)), times(1, 9, None)], "acknowledged before");
        verdict(&[first, Txn { began: 0, ..second }], &[times(0, 10, Some(11)), times(1, 9, None)], "");
    }

    #[test]
    fn appends_of_unknown_time_appear_once() {
        let unknown = Txn { outcome: Outcome::Unknown, ..txn(1, 2, &[Op::Append(0, 1)]) };
        let history = [unknown, txn(3, 4, &[read(0, &[])]), txn(5, 6, &[read(0, &[1])]), txn(7, 8, &[read(0, &[])])];
        verdict(&history[..3], &[times(1, 10, None), times(2, 11, None)], "");
        verdict(&history[..3], &[times(1, 11, None), times(2, 11, None)], "was there at");
        verdict(&history, &[times(1, 10, None), times(2, 11, None), times(3, 12, None)], "was there at");
        let aborted = Txn { outcome: Outcome::Aborted, ..history[0].clone() };
        verdict(&[aborted, history[2].clone()], &[times(1, 11, None)], "read list 0");
    }

    /// A store with snapshot isolation, and its history. Each bug planted into it is found.
    #[test]
    fn planted_bugs_of_a_store_are_found() {
        for (bug, least) in [("", 0), ("a conflict is missed", 30), ("a read is late", 30), ("the oracle", 30)] {
            let mut found = 0;
            for seed in 0..100 {
                let (history, times) = of_store(&mut StdRng::seed_from_u64(seed), bug);
                found += u64::from(check(&history, &times).is_err());
            }
            assert!(found >= least && (bug.is_empty() == (found == 0)), "{bug}: {found} of 100");
        }
    }

    fn of_store(rng: &mut StdRng, bug: &str) -> (Vec<Txn>, Vec<Times>) {
        let mut versions: Vec<Vec<(u64, u64)>> = vec![Vec::new(); 3];
        let (mut history, mut all) = (Vec::new(), Vec::new());
        for number in 0..40_usize {
            let now = 10 * (number as u64 + 1);
            // It began up to three transactions ago.
            let began = now - rng.random_range(1..30).min(now - 1);
            let is_planted = rng.random_bool(0.2);
            let mut snapshot = began;
            if is_planted && bug == "the oracle" {
                snapshot = began.saturating_sub(50);
            }
            let seen = if is_planted && bug == "a read is late" { now } else { snapshot };
            let (mut ops, mut writes) = (Vec::new(), Vec::new());
            for (key, versions) in versions.iter().enumerate() {
                let list = versions.iter().filter(|version| version.0 <= seen).map(|version| version.1);
                ops.push(Op::Read(key as u64, list.collect()));
            }
            let key = rng.random_range(0..3);
            let conflicts = versions[key].last().is_some_and(|(commit, _)| *commit > snapshot);
            if !conflicts || (is_planted && bug == "a conflict is missed") {
                writes.push((key, number as u64));
            }
            for (key, element) in &writes {
                ops.push(Op::Append(*key as u64, *element));
                versions[*key].push((now, *element));
            }
            let commit = (!writes.is_empty()).then_some(now);
            history.push(txn(began, now, &ops));
            all.push(times(number, snapshot, commit));
        }
        (history, all)
    }
}
