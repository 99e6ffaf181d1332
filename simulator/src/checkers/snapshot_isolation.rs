//! A checker of snapshot isolation for list-append histories.
//!
//! Transactions read whole lists and append unique elements. The longest read of a list gives the order of its
//! versions, and thereby every dependency between transactions. Snapshot isolation holds if and only if every cycle of
//! dependencies contains two anti-dependencies in a row (Cerone and Gotsman, PODC 2016). With real time among the
//! dependencies the property is *strong* snapshot isolation: a transaction sees every commit acknowledged before it
//! began.
//!
//! The cycle search splits each transaction into two nodes: one reached by dependencies, one reached by an
//! anti-dependency. The second node has only dependencies as outgoing edges, so no path contains two anti-dependencies
//! in a row. Any cycle found is a violation.
//!
//! An acknowledged append must be in the last version of its list, once. So the history ends with a read of every list.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Checked, Violation, violated};

/// One operation of a transaction, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Saw these elements under a key.
    Read(u64, Vec<u64>),
    /// Appended an element, unique over the history, to a key.
    Append(u64, u64),
}

/// The outcome of a transaction, as its client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged.
    Committed,
    /// Certainly not committed.
    Aborted,
    /// Undetermined.
    Unknown,
}

/// A transaction of a history. `began` and `ended` are positions in one global order of events.
#[derive(Clone, Debug)]
pub struct Txn {
    /// What it did, in this order.
    pub ops: Vec<Op>,
    /// What became of it.
    pub outcome: Outcome,
    /// Before its snapshot was taken.
    pub began: u64,
    /// After its outcome was known.
    pub ended: u64,
}

/// Checks a history for strong snapshot isolation.
pub fn check(history: &[Txn]) -> Checked {
    let appenders = appenders(history)?;
    let versions = versions(history)?;
    let seen: HashSet<u64> = versions.values().flatten().copied().collect();
    // A transaction with an unknown outcome counts only if one of its appends was read.
    let counts = |txn: &Txn| match txn.outcome {
        Outcome::Committed => true,
        Outcome::Aborted => false,
        Outcome::Unknown => txn.ops.iter().any(|op| matches!(op, Op::Append(_, element) if seen.contains(element))),
    };
    for element in &seen {
        match appenders.get(element) {
            None => return violated(format!("element {element} was never appended")),
            Some(txn) if history[*txn].outcome == Outcome::Aborted => {
                return violated(format!("element {element} of the aborted transaction {txn} was seen"));
            }
            Some(_) => {}
        }
    }
    let txns: Vec<usize> = (0..history.len()).filter(|n| counts(&history[*n])).collect();
    for n in &txns {
        check_inside(*n, &history[*n].ops, &appenders)?;
    }
    lost_appends(history, &txns, &versions)?;
    let mut graph = Graph::new(history, &txns, &appenders, &versions);
    if let Some(cycle) = graph.cycle() {
        return violated(format!("cycle through transactions {cycle:?}"));
    }
    graph.add_real_time(history, &txns);
    match graph.cycle() {
        Some(cycle) => violated(format!("stale: cycle through transactions {cycle:?} and real time")),
        None => Ok(()),
    }
}

fn appenders(history: &[Txn]) -> Result<HashMap<u64, usize>, Violation> {
    let mut appenders = HashMap::new();
    for (n, txn) in history.iter().enumerate() {
        for op in &txn.ops {
            if let Op::Append(_, element) = op
                && appenders.insert(*element, n).is_some()
            {
                return violated(format!("element {element} is appended twice: the history is useless"));
            }
        }
    }
    Ok(appenders)
}

/// Checks one transaction by itself. Its reads end with its own earlier appends, and two reads of a key differ only by
/// them.
fn check_inside(n: usize, ops: &[Op], appenders: &HashMap<u64, usize>) -> Checked {
    let mut expected: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut appended: HashMap<u64, Vec<u64>> = HashMap::new();
    for op in ops {
        match op {
            Op::Append(key, element) => {
                appended.entry(*key).or_default().push(*element);
                if let Some(expected) = expected.get_mut(key) {
                    expected.push(*element);
                }
            }
            Op::Read(key, list) => {
                let own = appended.get(key).cloned().unwrap_or_default();
                if !list.ends_with(&own) {
                    return violated(format!(
                        "transaction {n} does not see its own appends {own:?} to {key}: {list:?}"
                    ));
                }
                let others = &list[..list.len() - own.len()];
                if others.iter().any(|element| appenders.get(element) == Some(&n)) {
                    return violated(format!("transaction {n} sees an append of its own in the wrong place: {list:?}"));
                }
                if expected.get(key).is_some_and(|expected| expected != list) {
                    return violated(format!("transaction {n} read {key} twice, and it changed to {list:?}"));
                }
                expected.insert(*key, list.clone());
            }
        }
    }
    Ok(())
}

/// The versions of every key: the longest list that was read. All other reads must be prefixes of it.
fn versions(history: &[Txn]) -> Result<BTreeMap<u64, Vec<u64>>, Violation> {
    let mut versions: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for txn in history.iter().filter(|txn| txn.outcome != Outcome::Aborted) {
        for (key, list) in external_reads(txn) {
            let longest = versions.entry(key).or_default();
            let (short, long) = if list.len() < longest.len() { (&list, &*longest) } else { (&*longest, &list) };
            if !long.starts_with(short) {
                return violated(format!("key {key} was read as {short:?} and as {long:?}"));
            }
            *longest = long.clone();
        }
    }
    for (key, list) in &versions {
        if list.iter().collect::<HashSet<_>>().len() != list.len() {
            return violated(format!("an element is twice in {key}: {list:?}"));
        }
    }
    Ok(versions)
}

/// A transaction's reads of the snapshot: its reads without its own appends.
fn external_reads(txn: &Txn) -> Vec<(u64, Vec<u64>)> {
    let mut own: HashMap<u64, usize> = HashMap::new();
    let mut reads = Vec::new();
    for op in &txn.ops {
        match op {
            Op::Append(key, _) => *own.entry(*key).or_default() += 1,
            Op::Read(key, list) => {
                let others = list.len().saturating_sub(own.get(key).copied().unwrap_or(0));
                reads.push((*key, list[..others].to_vec()));
            }
        }
    }
    reads
}

/// Acknowledged appends must be in the last versions read.
fn lost_appends(history: &[Txn], txns: &[usize], versions: &BTreeMap<u64, Vec<u64>>) -> Checked {
    let kept: HashSet<(u64, u64)> =
        versions.iter().flat_map(|(key, list)| list.iter().map(|element| (*key, *element))).collect();
    for n in txns {
        for op in &history[*n].ops {
            if let Op::Append(key, element) = op
                && !kept.contains(&(*key, *element))
            {
                return violated(format!("the append of {element} to {key} by transaction {n} is lost"));
            }
        }
    }
    Ok(())
}

/// Dependencies (`forced`: write-write, write-read, and real time once added) and anti-dependencies (`anti`:
/// read-write), by the index of their first node. The nodes are the transactions of the history, and behind them a
/// moment for each acknowledged commit once real time is added.
struct Graph {
    transactions: usize,
    forced: Vec<Vec<usize>>,
    anti: Vec<Vec<usize>>,
}

impl Graph {
    fn new(
        history: &[Txn],
        txns: &[usize],
        appenders: &HashMap<u64, usize>,
        versions: &BTreeMap<u64, Vec<u64>>,
    ) -> Graph {
        let none = vec![Vec::new(); history.len()];
        let mut graph = Graph { transactions: history.len(), forced: none.clone(), anti: none };
        for list in versions.values() {
            for pair in list.windows(2) {
                graph.force(appenders[&pair[0]], appenders[&pair[1]]);
            }
        }
        for n in txns {
            for (key, list) in external_reads(&history[*n]) {
                if let Some(last) = list.last() {
                    graph.force(appenders[last], *n);
                }
                if let Some(next) = versions.get(&key).and_then(|all| all.get(list.len()))
                    && appenders[next] != *n
                {
                    graph.anti[*n].push(appenders[next]);
                }
            }
        }
        graph
    }

    /// Adds that a transaction follows every commit that was acknowledged before it began. A chain of moments carries
    /// this: each commit leads to the moment of its acknowledgement, each moment to the next one, and the last moment
    /// before a transaction began to that transaction.
    fn add_real_time(&mut self, history: &[Txn], txns: &[usize]) {
        let mut commits: Vec<usize> =
            txns.iter().copied().filter(|n| history[*n].outcome == Outcome::Committed).collect();
        commits.sort_by_key(|n| history[*n].ended);
        self.forced.resize(self.transactions + commits.len(), Vec::new());
        self.anti.resize(self.transactions + commits.len(), Vec::new());
        for (at, commit) in commits.iter().enumerate() {
            let moment = self.transactions + at;
            self.force(*commit, moment);
            if at > 0 {
                self.force(moment - 1, moment);
            }
        }
        for n in txns {
            let before = commits.partition_point(|commit| history[*commit].ended < history[*n].began);
            if before > 0 {
                self.force(self.transactions + before - 1, *n);
            }
        }
    }

    fn force(&mut self, from: usize, to: usize) {
        if from != to {
            self.forced[from].push(to);
        }
    }

    /// The transactions of some forbidden cycle, by a depth-first search.
    fn cycle(&self) -> Option<Vec<usize>> {
        let mut states = vec![Visit::Unseen; self.forced.len() * 2];
        for start in 0..states.len() {
            if states[start] != Visit::Unseen {
                continue;
            }
            // The path, each node with the number of its edges that were followed.
            let mut path: Vec<(usize, usize)> = vec![(start, 0)];
            states[start] = Visit::OnPath;
            while let Some((node, followed)) = path.last_mut() {
                let Some(next) = self.edge(*node, *followed) else {
                    states[*node] = Visit::Done;
                    path.pop();
                    continue;
                };
                *followed += 1;
                match states[next] {
                    Visit::Unseen => {
                        states[next] = Visit::OnPath;
                        path.push((next, 0));
                    }
                    Visit::OnPath => {
                        let cycle = path.iter().skip_while(|(node, _)| *node != next).map(|(node, _)| node / 2);
                        return Some(cycle.filter(|node| *node < self.transactions).collect());
                    }
                    Visit::Done => {}
                }
            }
        }
        None
    }

    /// The node at the end of an edge. A node of the search is twice the index, plus 1 if reached by an
    /// anti-dependency.
    fn edge(&self, node: usize, number: usize) -> Option<usize> {
        let (index, by_anti) = (node / 2, node % 2 == 1);
        let forced = &self.forced[index];
        match number.checked_sub(forced.len()) {
            None => Some(forced[number] * 2),
            Some(_) if by_anti => None,
            Some(anti) => self.anti[index].get(anti).map(|next| next * 2 + 1),
        }
    }
}

/// The state of a node of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    Unseen,
    OnPath,
    Done,
}

#[cfg(test)]
mod tests {
    //! Hand-made histories, each with its expected verdict.

    use super::*;

    fn txn(began: u64, ended: u64, ops: &[Op]) -> Txn {
        Txn { ops: ops.to_vec(), outcome: Outcome::Committed, began, ended }
    }

    fn read(key: u64, list: &[u64]) -> Op {
        Op::Read(key, list.to_vec())
    }

    /// Asserts that the checker's error contains `why`, or that the history is valid if `why` is empty.
    fn verdict(history: &[Txn], why: &str) {
        match check(history) {
            Ok(()) => assert!(why.is_empty(), "accepted, but: {why}"),
            Err(Violation(error)) => assert!(!why.is_empty() && error.contains(why), "{error}"),
        }
    }

    #[test]
    fn serial_history_is_fine() {
        verdict(
            &[
                txn(1, 2, &[Op::Append(0, 1)]),
                txn(3, 4, &[read(0, &[1]), Op::Append(0, 2)]),
                txn(5, 6, &[read(0, &[1, 2])]),
            ],
            "",
        );
    }

    #[test]
    fn write_skew_is_allowed() {
        let skew = [
            txn(1, 9, &[read(0, &[]), Op::Append(1, 1)]),
            txn(2, 8, &[read(1, &[]), Op::Append(0, 2)]),
            txn(10, 11, &[read(0, &[2]), read(1, &[1])]),
        ];
        verdict(&skew, "");
    }

    #[test]
    fn lost_update_is_caught() {
        // Both appended to the empty list; the second overwrote the first.
        let lost = [
            txn(1, 9, &[read(0, &[]), Op::Append(0, 1)]),
            txn(2, 8, &[read(0, &[]), Op::Append(0, 2)]),
            txn(10, 11, &[read(0, &[2])]),
        ];
        verdict(&lost, "is lost");
        // Both elements are in the list, though neither transaction saw the other's.
        let both = [
            txn(1, 9, &[read(0, &[]), Op::Append(0, 1)]),
            txn(2, 8, &[read(0, &[]), Op::Append(0, 2)]),
            txn(10, 11, &[read(0, &[1, 2])]),
        ];
        verdict(&both, "cycle");
    }

    #[test]
    fn read_skew_is_caught() {
        let skew = [
            txn(1, 9, &[Op::Append(0, 1), Op::Append(1, 2)]),
            txn(2, 8, &[read(0, &[1]), read(1, &[])]),
            txn(10, 11, &[read(0, &[1]), read(1, &[2])]),
        ];
        verdict(&skew, "cycle");
    }

    #[test]
    fn long_fork_is_caught() {
        let fork = [
            txn(1, 9, &[Op::Append(0, 1)]),
            txn(1, 9, &[Op::Append(1, 2)]),
            txn(2, 8, &[read(0, &[1]), read(1, &[])]),
            txn(2, 8, &[read(0, &[]), read(1, &[2])]),
            txn(10, 11, &[read(0, &[1]), read(1, &[2])]),
        ];
        verdict(&fork, "cycle");
    }

    #[test]
    fn stale_read_is_caught() {
        verdict(&[txn(1, 2, &[Op::Append(0, 1)]), txn(3, 4, &[read(0, &[])]), txn(5, 6, &[read(0, &[1])])], "stale");
    }

    #[test]
    fn aborted_garbage_and_forked_reads_are_caught() {
        let aborted = Txn { outcome: Outcome::Aborted, ..txn(1, 2, &[Op::Append(0, 1)]) };
        verdict(&[aborted, txn(3, 4, &[read(0, &[1])])], "aborted");
        verdict(&[txn(3, 4, &[read(0, &[7])])], "never appended");
        let [one, two] = [1, 2].map(|element| txn(1, 9, &[Op::Append(0, element)]));
        verdict(&[one, two, txn(2, 3, &[read(0, &[1])]), txn(4, 5, &[read(0, &[2, 1])])], "was read as");
    }

    #[test]
    fn unknown_outcomes_count_only_if_seen() {
        let unknown = Txn { outcome: Outcome::Unknown, ..txn(1, 2, &[Op::Append(0, 1)]) };
        verdict(&[unknown.clone(), txn(3, 4, &[read(0, &[])])], "");
        verdict(&[unknown, txn(3, 4, &[read(0, &[])]), txn(5, 6, &[read(0, &[1])])], "");
    }

    #[test]
    fn own_appends_must_be_seen() {
        verdict(&[txn(1, 2, &[Op::Append(0, 1), read(0, &[])]), txn(3, 4, &[read(0, &[1])])], "its own");
        let changed = [txn(1, 9, &[read(0, &[]), read(0, &[5])]), txn(2, 3, &[Op::Append(0, 5)])];
        verdict(&changed, "twice");
    }
}
