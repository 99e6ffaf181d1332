//! The queue by example, and random steps under the invariants.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

const TTL: Duration = Duration::from_secs(3);

fn ts(number: u64) -> Timestamp {
    Timestamp::new(number, 0)
}

fn key(name: &str) -> Key {
    Key::new(name.to_owned())
}

/// A table with a clock.
struct Bench {
    table: LockTable,
    now: Instant,
}

impl Bench {
    #[expect(clippy::disallowed_methods, reason = "any moment will do")]
    fn new(capacity: usize) -> Bench {
        Bench { table: LockTable::new(Term::new(1), capacity, TTL), now: Instant::now() }
    }

    fn lock(&mut self, name: &str, number: u64, mode: LockMode) -> Result<Vec<u64>, LocksFull> {
        let step = self.table.acquire(&key(name), (ts(number), mode), true, self.now)?;
        self.table.check();
        Ok(match step {
            Step::Held => Vec::new(),
            Step::Blocked(by) => by.into_iter().map(|ts| ts.physical_ms()).collect(),
        })
    }

    fn granted(&mut self) -> Vec<u64> {
        self.table.check();
        self.table.take_granted().into_iter().map(|(_, ts)| ts.physical_ms()).collect()
    }

    fn release(&mut self, name: &str, number: u64) -> Vec<u64> {
        self.table.release(&key(name), ts(number));
        self.granted()
    }
}

#[test]
fn a_lock_is_handed_to_the_first_in_the_queue() {
    let mut bench = Bench::new(10);
    assert_eq!(bench.lock("k", 1, LockMode::NoKeyUpdate), Ok(vec![]));
    assert_eq!(bench.lock("k", 2, LockMode::NoKeyUpdate), Ok(vec![1]));
    assert_eq!(bench.lock("k", 3, LockMode::NoKeyUpdate), Ok(vec![1, 2]));
    assert_eq!(bench.lock("k", 2, LockMode::NoKeyUpdate), Ok(vec![1]), "it keeps its place");
    assert_eq!(bench.release("k", 1), [2]);
    assert_eq!(bench.lock("k", 4, LockMode::NoKeyUpdate), Ok(vec![2, 3]), "nobody overtakes");
    assert_eq!(bench.lock("k", 2, LockMode::NoKeyUpdate), Ok(vec![]), "it has it");
    assert_eq!(bench.release("k", 3), [], "a waiter gives up");
    assert_eq!(bench.release("k", 2), [4]);
    assert_eq!(bench.release("k", 4), []);
    assert!(bench.table.is_empty());
}

#[test]
fn locks_that_do_not_conflict_are_shared_but_pass_no_waiter_that_does() {
    let mut bench = Bench::new(10);
    assert_eq!(bench.lock("k", 1, LockMode::Share), Ok(vec![]));
    assert_eq!(bench.lock("k", 2, LockMode::Share), Ok(vec![]));
    assert_eq!(bench.lock("k", 3, LockMode::NoKeyUpdate), Ok(vec![1, 2]));
    assert_eq!(bench.lock("k", 4, LockMode::Share), Ok(vec![3]), "a stream of readers starves no writer");
    assert_eq!(bench.lock("k", 5, LockMode::KeyShare), Ok(vec![]), "it conflicts with neither");
    assert_eq!(bench.release("k", 1), []);
    assert_eq!(bench.release("k", 2), [3]);
    assert_eq!(bench.release("k", 3), [4]);
}

/// Regression: the owner was kept, and a later step found that it owned nothing.
#[test]
fn who_gives_up_a_stronger_lock_and_has_lost_the_weaker_one_has_nothing() {
    let mut bench = Bench::new(10);
    assert_eq!(bench.lock("k", 1, LockMode::NoKeyUpdate), Ok(vec![]));
    // Its lock of the key was one of an earlier leader.
    assert_eq!(bench.lock("k", 2, LockMode::Update), Ok(vec![1]));
    bench.table.cancel(&key("k"), ts(2), Some(LockMode::KeyShare));
    bench.table.check();
    assert!(bench.table.waits_for(&key("k"), ts(2)).is_empty());
    bench.table.cancel(&key("other"), ts(2), Some(LockMode::KeyShare));
    bench.release("k", 1);
    assert!(bench.table.is_empty() && !bench.table.is_owner(ts(2)));
}

#[test]
fn a_stronger_lock_goes_before_those_who_hold_none() {
    let mut bench = Bench::new(10);
    assert_eq!(bench.lock("k", 1, LockMode::Share), Ok(vec![]));
    assert_eq!(bench.lock("k", 2, LockMode::Share), Ok(vec![]));
    assert_eq!(bench.lock("k", 3, LockMode::Update), Ok(vec![1, 2]));
    assert_eq!(bench.lock("k", 1, LockMode::Update), Ok(vec![2]), "it waits for the other holder alone");
    assert_eq!(bench.release("k", 2), [1]);
    assert_eq!(bench.table.held(&key("k"), ts(1)), Some(LockMode::Update));
    assert_eq!(bench.release("k", 1), [3]);
}

/// Found by the random steps: the first upgrade, which still waits, hid the second one.
#[test]
fn a_blocked_upgrade_does_not_keep_another_one_waiting() {
    let mut bench = Bench::new(10);
    bench.lock("k", 1, LockMode::KeyShare).unwrap();
    bench.lock("k", 2, LockMode::KeyShare).unwrap();
    bench.lock("k", 3, LockMode::Share).unwrap();
    assert_eq!(bench.lock("k", 1, LockMode::Update), Ok(vec![2, 3]));
    assert_eq!(bench.lock("k", 2, LockMode::NoKeyUpdate), Ok(vec![3]));
    assert_eq!(bench.release("k", 3), [2]);
}

#[test]
fn who_gives_up_a_stronger_lock_keeps_the_weaker_one() {
    let mut bench = Bench::new(10);
    bench.lock("k", 1, LockMode::KeyShare).unwrap();
    bench.lock("k", 2, LockMode::KeyShare).unwrap();
    assert_eq!(bench.lock("k", 1, LockMode::Update), Ok(vec![2]));
    assert_eq!(bench.lock("k", 3, LockMode::KeyShare), Ok(vec![1]));
    bench.table.cancel(&key("k"), ts(1), Some(LockMode::KeyShare));
    assert_eq!(bench.granted(), [3]);
    assert_eq!(bench.table.held(&key("k"), ts(1)), Some(LockMode::KeyShare));
}

/// A writer of other columns was refused when it committed, by the locks that had let it in.
#[test]
fn a_writer_of_other_columns_shares_its_row_with_key_locks() {
    let mut bench = Bench::new(10);
    assert_eq!(bench.lock("k", 1, LockMode::KeyShare), Ok(vec![]));
    assert_eq!(bench.lock("k", 2, LockMode::NoKeyUpdate), Ok(vec![]));
    let mut blockers = |number| bench.table.blockers(&key("k"), ts(number), LockMode::Update, bench.now);
    assert_eq!(blockers(2), [], "it has the row");
    assert_eq!((blockers(1), blockers(3)), (vec![ts(2)], vec![ts(1), ts(2)]));
}

#[test]
fn who_is_not_heard_of_loses_its_locks_and_places() {
    let mut bench = Bench::new(10);
    bench.lock("k", 1, LockMode::Update).unwrap();
    bench.lock("k", 2, LockMode::Update).unwrap();
    bench.now += TTL / 2;
    bench.lock("k", 3, LockMode::Update).unwrap();
    assert!(bench.table.refresh(ts(1), bench.now));
    bench.now += TTL / 2;
    assert!(!bench.table.refresh(ts(2), bench.now), "it was silent");
    assert_eq!(bench.granted(), []);
    bench.now += TTL / 2;
    assert!(bench.table.blockers(&key("k"), ts(9), LockMode::NoKeyUpdate, bench.now).is_empty());
    assert!(bench.table.is_empty());
}

#[test]
fn a_full_table_refuses_and_changes_nothing() {
    let mut bench = Bench::new(2);
    bench.lock("a", 1, LockMode::Update).unwrap();
    bench.lock("a", 2, LockMode::Update).unwrap();
    assert_eq!(bench.lock("b", 3, LockMode::Update), Err(LocksFull));
    assert_eq!(bench.lock("a", 3, LockMode::Update), Err(LocksFull));
    assert_eq!(bench.lock("a", 2, LockMode::Update), Ok(vec![1]), "it is in there");
    assert_eq!(bench.release("a", 1), [2]);
    assert_eq!(bench.lock("b", 3, LockMode::Update), Ok(vec![]));
}

fn holder(number: u64, mode: LockMode) -> Holder {
    Holder { start_ts: ts(number), mode, lock: LockId::from_raw(number) }
}

/// What a transaction relies on is one holding at one strength.
#[test]
fn a_lock_has_a_number_until_it_is_lost_or_changes() {
    let mut bench = Bench::new(10);
    let number = |bench: &Bench| bench.table.lock(&key("k"), ts(1));
    assert_eq!(number(&bench), None);
    let mut seen = BTreeSet::new();
    for (mode, is_new) in [
        (LockMode::KeyShare, true),
        (LockMode::KeyShare, false),
        (LockMode::Update, true),
        (LockMode::NoKeyUpdate, false),
        (LockMode::Update, false),
    ] {
        bench.lock("k", 1, mode).unwrap();
        assert_eq!(seen.insert(number(&bench)), is_new, "{mode:?}");
    }
    bench.table.cancel(&key("k"), ts(1), Some(LockMode::Update));
    assert!(!seen.insert(number(&bench)), "nothing was given up");
    bench.table.cancel(&key("k"), ts(1), Some(LockMode::KeyShare));
    assert!(seen.insert(number(&bench)), "it is weaker");
    bench.lock("k", 1, LockMode::Update).unwrap();
    assert!(seen.insert(number(&bench)), "others may have had it meanwhile");
    let packed = bench.table.pack(|_, _| false, bench.now);
    let next = |term: u64| LockTable::inherit(Term::new(term), (10, TTL), &packed, bench.now).unwrap();
    assert!(!seen.insert(next(2).lock(&key("k"), ts(1))), "whoever inherits it has the same");
    bench.release("k", 1);
    bench.lock("k", 1, LockMode::Update).unwrap();
    assert!(seen.insert(number(&bench)), "it was lost");
    let mut other = LockTable::new(Term::new(2), 10, TTL);
    other.acquire(&key("k"), (ts(1), LockMode::Update), true, bench.now).unwrap();
    assert!(seen.insert(other.lock(&key("k"), ts(1))), "the next leader knew nothing of it");
}

/// What no correct leader sends is refused before it breaks an invariant.
#[test]
fn a_table_that_contradicts_itself_is_not_inherited() {
    let bench = Bench::new(10);
    let inherit = |holders: &[(u64, LockMode)], waiting: &[(u64, LockMode)]| {
        let holders = holders.iter().map(|(number, mode)| holder(*number, *mode)).collect();
        let waiting = waiting.iter().map(|(number, mode)| (ts(*number), *mode, 0)).collect();
        let packed = PackedKey { key: key("k"), holders, waiting };
        LockTable::inherit(Term::new(2), (3, TTL), &[packed], bench.now).inspect(LockTable::check).is_some()
    };
    let (weak, strong) = (LockMode::KeyShare, LockMode::Update);
    assert!(inherit(&[(1, weak), (2, weak)], &[(1, strong)]));
    assert!(inherit(&[], &[(1, strong), (2, strong)]), "the first one is next");
    assert!(!inherit(&[(1, strong), (2, weak)], &[]), "two holders conflict");
    assert!(!inherit(&[(1, weak), (1, weak)], &[]), "a holder twice");
    assert!(!inherit(&[(1, strong)], &[(2, weak), (2, weak)]), "a waiter twice");
    assert!(!inherit(&[(1, strong)], &[(1, weak)]), "it has more than it waits for");
    assert!(!inherit(&[(1, weak)], &[(2, strong), (1, strong)]), "nobody is in the way of an upgrade");
    assert!(!inherit(&[(1, weak), (2, weak), (3, weak), (4, weak)], &[]), "more than fit");
    let twice = vec![PackedKey { key: key("k"), holders: vec![holder(1, weak)], waiting: Vec::new() }; 2];
    assert!(LockTable::inherit(Term::new(2), (3, TTL), &twice, bench.now).is_none(), "a key twice");
}

/// All holders and waiters, without the numbers of locks: who gets a lock by the handover gets a new one.
fn unnumbered(table: &LockTable, now: Instant) -> Vec<PackedKey> {
    let mut packed = table.pack(|_, _| false, now);
    packed.iter_mut().flat_map(|key| &mut key.holders).for_each(|holder| holder.lock = LockId::NONE);
    packed
}

/// Random steps. After each of them the invariants hold, and in the end everybody has had a turn.
#[test]
fn random_steps_keep_the_invariants() {
    const MODES: [LockMode; 4] = [LockMode::KeyShare, LockMode::Share, LockMode::NoKeyUpdate, LockMode::Update];
    for seed in 0..300 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut bench = Bench::new(20);
        for _ in 0..200 {
            let (name, number) = (["a", "b", "c"][rng.random_range(0..3)], rng.random_range(1..8));
            match rng.random_range(0..11) {
                0..6 => {
                    let mode = MODES[rng.random_range(0..4)];
                    let queue = rng.random_bool(0.8);
                    let _ = bench.table.acquire(&key(name), (ts(number), mode), queue, bench.now);
                }
                6 => bench.table.release_all(ts(number)),
                7 => {
                    // What it held before, or believes that it held.
                    let held = bench.table.held(&key(name), ts(number));
                    let kept = if rng.random_bool(0.5) { held } else { Some(MODES[rng.random_range(0..4)]) };
                    bench.table.cancel(&key(name), ts(number), kept);
                }
                8 => bench.now += TTL / 4,
                9 => {
                    // A handover: one transaction has ended on a key with a write that is in the log.
                    let ended = |at: &Key, start_ts| *at == key(name) && start_ts == ts(number);
                    let packed = bench.table.pack(ended, bench.now);
                    let inherited =
                        LockTable::inherit(Term::new(2), (20, TTL), &packed, bench.now).expect("a correct leader's");
                    bench.table.release(&key(name), ts(number));
                    assert_eq!(unnumbered(&inherited, bench.now), unnumbered(&bench.table, bench.now));
                    bench.table = inherited;
                }
                _ => bench.table.release(&key(name), ts(number)),
            }
            bench.table.check();
        }
        (1..8).for_each(|number| bench.table.release_all(ts(number)));
        assert!(bench.table.is_empty() && bench.table.keys.is_empty(), "seed {seed}");
    }
}
