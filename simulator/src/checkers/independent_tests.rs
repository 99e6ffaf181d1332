//! Both checkers on the same histories: made by hand, each with the model that it violates, and at random.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::super::snapshot_isolation;
use super::*;

fn txn(began: u64, ended: u64, ops: &[Op]) -> Txn {
    Txn { ops: ops.to_vec(), outcome: Outcome::Committed, began, ended }
}

fn read(key: u64, list: &[u64]) -> Op {
    Op::Read(key, list.to_vec())
}

/// The models in the order of their strength.
const MODELS: [Model; 3] = [Model::ReadCommitted, Model::SnapshotIsolation, Model::StrongSnapshotIsolation];

/// Asserts which is the first of [`MODELS`] that a history violates, with what anomaly, and that our own checker
/// rejects it, or accepts it if there is none.
fn violates(history: &[Txn], first: Option<(Model, &str)>) {
    for model in MODELS {
        let must_hold = first.is_none_or(|(first, _)| (model as u8) < first as u8);
        assert_eq!(check(history, model).is_ok(), must_hold, "{model:?}: {:?}", report(history, model));
    }
    if let Some((model, anomaly)) = first {
        let found = anomalies(history, model);
        assert!(found.iter().any(|found| found == anomaly), "{anomaly} is not among {found:?}");
    }
    assert_eq!(snapshot_isolation::check(history).is_ok(), first.is_none(), "our own checker");
}

#[test]
fn good_histories_are_accepted() {
    let serial =
        [txn(1, 2, &[Op::Append(0, 1)]), txn(3, 4, &[read(0, &[1]), Op::Append(0, 2)]), txn(5, 6, &[read(0, &[1, 2])])];
    violates(&serial, None);
    assert_eq!(anomalies(&serial, Model::Serializable), Vec::<String>::new());
    let unknown = Txn { outcome: Outcome::Unknown, ..txn(1, 2, &[read(0, &[]), Op::Append(0, 1)]) };
    violates(&[unknown.clone(), txn(3, 4, &[read(0, &[])]), txn(5, 6, &[read(0, &[1])])], None);
    // It has not taken effect, and its append must not count as one behind all others.
    violates(&[unknown, txn(3, 4, &[read(0, &[]), Op::Append(0, 2)]), txn(5, 6, &[read(0, &[2])])], None);
}

#[test]
fn write_skew_is_found_and_is_allowed() {
    let skew = [
        txn(1, 9, &[read(0, &[]), read(1, &[]), Op::Append(1, 1)]),
        txn(2, 8, &[read(0, &[]), read(1, &[]), Op::Append(0, 2)]),
        txn(10, 11, &[read(0, &[2]), read(1, &[1])]),
    ];
    violates(&skew, None);
    assert_eq!(anomalies(&skew, Model::Serializable), ["G2-item"]);
}

#[test]
fn bad_histories_are_rejected_by_both() {
    let end =
        |lists: &[(u64, &[u64])]| txn(100, 101, &lists.iter().map(|(key, list)| read(*key, list)).collect::<Vec<_>>());
    // Both appended to the empty list, and the second did not see the first.
    let lost = [
        txn(1, 9, &[read(0, &[]), Op::Append(0, 1)]),
        txn(2, 8, &[read(0, &[]), Op::Append(0, 2)]),
        end(&[(0, &[1, 2])]),
    ];
    violates(&lost, Some((Model::SnapshotIsolation, "lost-update")));
    let single = [
        txn(1, 9, &[Op::Append(0, 1), Op::Append(1, 2)]),
        txn(2, 8, &[read(0, &[1]), read(1, &[])]),
        end(&[(0, &[1]), (1, &[2])]),
    ];
    violates(&single, Some((Model::SnapshotIsolation, "G-single-item")));
    let fork = [
        txn(1, 9, &[Op::Append(0, 1)]),
        txn(1, 9, &[Op::Append(1, 2)]),
        txn(2, 8, &[read(0, &[1]), read(1, &[])]),
        txn(2, 8, &[read(0, &[]), read(1, &[2])]),
        end(&[(0, &[1]), (1, &[2])]),
    ];
    violates(&fork, Some((Model::SnapshotIsolation, "G-nonadjacent-item")));
    let aborted = Txn { outcome: Outcome::Aborted, ..txn(1, 2, &[Op::Append(0, 1)]) };
    violates(&[aborted, txn(3, 4, &[read(0, &[1])]), end(&[(0, &[])])], Some((Model::ReadCommitted, "G1a")));
    let dirty = [txn(1, 9, &[Op::Append(0, 1), Op::Append(0, 2)]), txn(2, 8, &[read(0, &[1])]), end(&[(0, &[1, 2])])];
    violates(&dirty, Some((Model::ReadCommitted, "G1b")));
    let circular = [
        txn(1, 9, &[Op::Append(0, 1), read(1, &[2])]),
        txn(2, 8, &[Op::Append(1, 2), read(0, &[1])]),
        end(&[(0, &[1]), (1, &[2])]),
    ];
    violates(&circular, Some((Model::ReadCommitted, "G1c")));
    let stale = [txn(1, 2, &[Op::Append(0, 1)]), txn(3, 4, &[read(0, &[])]), end(&[(0, &[1])])];
    violates(&stale, Some((Model::StrongSnapshotIsolation, "G-single-item-realtime")));
    // The acknowledged append is nowhere.
    let gone = [txn(1, 2, &[Op::Append(0, 1)]), txn(3, 4, &[read(0, &[1])]), end(&[(0, &[])])];
    violates(&gone, Some((Model::StrongSnapshotIsolation, "G-single-item-realtime")));
}

/// What the versions of the lists are at a timestamp.
fn at(versions: &[Vec<(u64, u64)>], key: usize, time: u64) -> Vec<u64> {
    versions[key].iter().filter(|(commit, _)| *commit <= time).map(|(_, element)| *element).collect()
}

/// A history of a store with snapshot isolation, which forgets with a small probability to look for newer commits, to
/// use one snapshot, or to use a fresh one.
fn random(rng: &mut StdRng, fault: f64) -> Vec<Txn> {
    const KEYS: usize = 3;
    let (mut versions, mut history) = (vec![Vec::new(); KEYS], Vec::new());
    let (mut clock, mut element) = (0_u64, 0);
    for _ in 0..rng.random_range(4..14) {
        clock += rng.random_range(1..4);
        // It may have begun before the last ones ended.
        let begun = clock - rng.random_range(1..6).min(clock);
        let snapshot = if rng.random_bool(fault) { begun.saturating_sub(6) } else { begun };
        let (mut ops, mut writes): (Vec<Op>, Vec<(usize, u64)>) = (Vec::new(), Vec::new());
        for _ in 0..rng.random_range(1..4) {
            let key = rng.random_range(0..KEYS);
            let time = if rng.random_bool(fault) { clock } else { snapshot };
            let mut list = at(&versions, key, time);
            list.extend(writes.iter().filter(|(written, _)| *written == key).map(|(_, element)| *element));
            ops.push(Op::Read(key as u64, list));
            if rng.random_bool(0.5) {
                element += 1;
                ops.push(Op::Append(key as u64, element));
                writes.push((key, element));
            }
        }
        let is_newer = |key: usize| versions[key].last().is_some_and(|(commit, _): &(u64, u64)| *commit > snapshot);
        let conflicts = writes.iter().any(|(key, _)| is_newer(*key)) && !rng.random_bool(fault);
        if !conflicts {
            writes.iter().for_each(|(key, element)| versions[*key].push((clock, *element)));
        }
        let outcome = if conflicts { Outcome::Aborted } else { Outcome::Committed };
        history.push(Txn { ops, outcome, began: begun * 2 + 2, ended: clock * 2 + 1 });
    }
    let (began, ended) = (clock * 2 + 2, clock * 2 + 3);
    let ops = (0..KEYS).map(|key| Op::Read(key as u64, at(&versions, key, u64::MAX))).collect();
    history.push(Txn { ops, outcome: Outcome::Committed, began, ended });
    history
}

#[test]
fn both_agree_on_random_histories() {
    let seed = 23;
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut good, mut bad, mut skewed) = (0, 0, 0);
    for round in 0..4_000 {
        let fault = if rng.random_bool(0.5) { 0.0 } else { 0.05 };
        let history = random(&mut rng, fault);
        let ours = snapshot_isolation::check(&history);
        let theirs = check(&history, Model::StrongSnapshotIsolation);
        assert_eq!(ours.is_ok(), theirs.is_ok(), "seed {seed} round {round}: {ours:?}, {theirs:?}: {history:#?}");
        assert!(ours.is_ok() || fault > 0.0, "round {round}: {ours:?}: {history:#?}");
        if ours.is_ok() {
            good += 1
        } else {
            bad += 1
        }
        skewed += u64::from(ours.is_ok() && !anomalies(&history, Model::Serializable).is_empty());
    }
    assert!(good > 1_000 && bad > 200 && skewed > 100, "{good} good, {bad} bad, {skewed} skewed");
}
