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

use std::collections::{BTreeMap, HashMap, HashSet};

/// One operation of a transaction, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Saw these elements under a key.
    Read(u64, Vec<u64>),
    /// Appended an element, unique over the history, to a key.
    Append(u64, u64),
}

/// The outcome of a transaction, as its client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Acknowledged.
    Committed,
    /// Certainly not committed.
    Aborted,
    /// Undetermined.
    Unknown,
}

/// A transaction of a history. `began` and `ended` are positions in one global order of events.
#[derive(Clone, Debug)]
pub(crate) struct Txn {
    pub(crate) ops: Vec<Op>,
    pub(crate) outcome: Outcome,
    pub(crate) began: u64,
    pub(crate) ended: u64,
}

/// Checks a history for strong snapshot isolation; the error describes a violation.
pub(crate) fn check(history: &[Txn]) -> Result<(), String> {
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
            None => return Err(format!("element {element} was never appended")),
            Some(txn) if history[*txn].outcome == Outcome::Aborted => {
                return Err(format!("element {element} of the aborted transaction {txn} was seen"));
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
        return Err(format!("cycle through transactions {cycle:?}"));
    }
    graph.add_real_time(history);
    match graph.cycle() {
        Some(cycle) => Err(format!("stale: cycle through transactions {cycle:?} and real time")),
        None => Ok(()),
    }
}

fn appenders(history: &[Txn]) -> Result<HashMap<u64, usize>, String> {
    let mut appenders = HashMap::new();
    for (n, txn) in history.iter().enumerate() {
        for op in &txn.ops {
            if let Op::Append(_, element) = op
                && appenders.insert(*element, n).is_some()
            {
                return Err(format!("element {element} is appended twice: the history is useless"));
            }
        }
    }
    Ok(appenders)
}

/// Checks one transaction by itself. Its reads end with its own earlier appends, and two reads of a key differ only by
/// them.
fn check_inside(n: usize, ops: &[Op], appenders: &HashMap<u64, usize>) -> Result<(), String> {
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
                    return Err(format!("transaction {n} does not see its own appends {own:?} to {key}: {list:?}"));
                }
                let others = &list[..list.len() - own.len()];
                if others.iter().any(|element| appenders.get(element) == Some(&n)) {
                    return Err(format!("transaction {n} sees an append of its own in the wrong place: {list:?}"));
                }
                if expected.get(key).is_some_and(|expected| expected != list) {
                    return Err(format!("transaction {n} read {key} twice, and it changed to {list:?}"));
                }
                expected.insert(*key, list.clone());
            }
        }
    }
    Ok(())
}

/// The versions of every key: the longest list that was read. All other reads must be prefixes of it.
fn versions(history: &[Txn]) -> Result<BTreeMap<u64, Vec<u64>>, String> {
    let mut versions: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for txn in history.iter().filter(|txn| txn.outcome != Outcome::Aborted) {
        for (key, list) in external_reads(txn) {
            let longest = versions.entry(key).or_default();
            let (short, long) = if list.len() < longest.len() { (&list, &*longest) } else { (&*longest, &list) };
            if !long.starts_with(short) {
                return Err(format!("key {key} was read as {short:?} and as {long:?}"));
            }
            *longest = long.clone();
        }
    }
    for (key, list) in &versions {
        if list.iter().collect::<HashSet<_>>().len() != list.len() {
            return Err(format!("an element is twice in {key}: {list:?}"));
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

/// Acknowledged appends must be in the last versions read: the history ends with a read of every key.
fn lost_appends(history: &[Txn], txns: &[usize], versions: &BTreeMap<u64, Vec<u64>>) -> Result<(), String> {
    for n in txns {
        for op in &history[*n].ops {
            if let Op::Append(key, element) = op
                && !versions.get(key).is_some_and(|list| list.contains(element))
            {
                return Err(format!("the append of {element} to {key} by transaction {n} is lost"));
            }
        }
    }
    Ok(())
}

/// Dependencies (`forced`: write-write, write-read, and real time once added) and anti-dependencies (`anti`:
/// read-write) between transactions.
struct Graph {
    nodes: Vec<usize>,
    forced: HashMap<usize, HashSet<usize>>,
    anti: HashMap<usize, HashSet<usize>>,
}

impl Graph {
    fn new(
        history: &[Txn],
        txns: &[usize],
        appenders: &HashMap<u64, usize>,
        versions: &BTreeMap<u64, Vec<u64>>,
    ) -> Graph {
        let mut graph = Graph { nodes: txns.to_vec(), forced: HashMap::new(), anti: HashMap::new() };
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
                    graph.anti.entry(*n).or_default().insert(appenders[next]);
                }
            }
        }
        graph
    }

    /// Adds that a transaction follows every commit that was acknowledged before it began.
    fn add_real_time(&mut self, history: &[Txn]) {
        let nodes = self.nodes.clone();
        for a in nodes.iter().filter(|n| history[**n].outcome == Outcome::Committed) {
            for b in &nodes {
                if history[*a].ended < history[*b].began {
                    self.force(*a, *b);
                }
            }
        }
    }

    fn force(&mut self, from: usize, to: usize) {
        if from != to {
            self.forced.entry(from).or_default().insert(to);
        }
    }

    /// The transactions of some forbidden cycle.
    fn cycle(&self) -> Option<Vec<usize>> {
        let mut state: HashMap<(usize, bool), bool> = HashMap::new();
        let mut path = Vec::new();
        self.nodes
            .iter()
            .flat_map(|n| [(*n, false), (*n, true)])
            .find_map(|node| self.visit(node, &mut state, &mut path))
    }

    /// Depth-first search. `state` is true for a node on the path, false for a finished one.
    fn visit(
        &self,
        node: (usize, bool),
        state: &mut HashMap<(usize, bool), bool>,
        path: &mut Vec<usize>,
    ) -> Option<Vec<usize>> {
        match state.get(&node) {
            Some(true) => return Some(path.clone()),
            Some(false) => return None,
            None => {}
        }
        state.insert(node, true);
        path.push(node.0);
        let (txn, by_anti) = node;
        let forced = self.forced.get(&txn).into_iter().flatten().map(|next| (*next, false));
        let anti = self.anti.get(&txn).into_iter().flatten().map(|next| (*next, true)).filter(|_| !by_anti);
        let found = forced.chain(anti).find_map(|next| self.visit(next, state, path));
        path.pop();
        state.insert(node, false);
        found
    }
}
