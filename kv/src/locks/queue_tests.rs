//! The edges of a queue, against all that are in the way.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

const MODES: [LockMode; 4] = [LockMode::KeyShare, LockMode::Share, LockMode::NoKeyUpdate, LockMode::Update];

type Edges = BTreeMap<Timestamp, BTreeSet<Timestamp>>;

fn ts(number: u64) -> Timestamp {
    Timestamp::new(number, 0)
}

#[expect(clippy::disallowed_methods, reason = "any moment will do")]
fn waiter(number: u64, mode: LockMode) -> Waiter {
    Waiter { start_ts: ts(number), mode, since: Instant::now() }
}

/// A random key that somebody waits for: holders, upgrades, and a queue.
fn random_locks(rng: &mut StdRng) -> KeyLocks {
    let (mut locks, mut ids) = (KeyLocks::default(), LockIds::of(Term::new(1)));
    let size = rng.random_range(2..14);
    for number in 1..size {
        let mode = MODES[rng.random_range(0..MODES.len())];
        if locks.behind(ts(number), mode, locks.waiting.len()).is_empty() {
            locks.hold(ts(number), mode, &mut ids);
        } else {
            locks.waiting.push_back(waiter(number, mode));
        }
        let upgrade = waiter(rng.random_range(1..=number), MODES[rng.random_range(0..MODES.len())]);
        let held = locks.held(upgrade.start_ts);
        let is_new = locks.place(upgrade.start_ts).is_none() && held.is_some_and(|held| held < upgrade.mode);
        if is_new && !locks.holders_against(upgrade.start_ts, upgrade.mode).is_empty() {
            let upgrades = locks.waiting.iter().take_while(|w| locks.held(w.start_ts).is_some()).count();
            locks.waiting.insert(upgrades, upgrade);
        }
    }
    locks
}

/// Each waiter's way to all that it conflicts with: holders, and, if it holds nothing, the waiters before it.
fn all_edges(locks: &KeyLocks) -> Edges {
    let edges = locks.waiting.iter().enumerate().map(|(ahead, waiter)| {
        let mut to: BTreeSet<_> = locks.holders_against(waiter.start_ts, waiter.mode).into_iter().collect();
        if locks.held(waiter.start_ts).is_none() {
            let before = locks.waiting.iter().take(ahead).filter(|other| other.mode.conflicts_with(waiter.mode));
            to.extend(before.map(|other| other.start_ts));
        }
        (waiter.start_ts, to)
    });
    edges.collect()
}

fn edges(locks: &KeyLocks) -> Edges {
    let waiting = locks.waiting.iter().enumerate();
    waiting.map(|(at, w)| (w.start_ts, locks.behind(w.start_ts, w.mode, at).into_iter().collect())).collect()
}

fn reached(edges: &Edges, from: Timestamp) -> BTreeSet<Timestamp> {
    let (mut found, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(next) = left.pop() {
        for to in edges.get(&next).into_iter().flatten() {
            if found.insert(*to) {
                left.push(*to);
            }
        }
    }
    found
}

#[test]
fn each_waiter_reaches_all_that_are_in_its_way() {
    let mut rng = StdRng::seed_from_u64(7);
    let (mut waiters, mut spared) = (0, 0);
    for round in 0..20_000 {
        let locks = random_locks(&mut rng);
        let (all, some) = (all_edges(&locks), edges(&locks));
        for (waiter, to) in &some {
            assert!(to.is_subset(&all[waiter]), "round {round}: {locks:?}");
            assert_eq!(reached(&some, *waiter), reached(&all, *waiter), "round {round}: {waiter} of {locks:?}");
            spared += all[waiter].len() - to.len();
        }
        waiters += some.len();
    }
    assert!(waiters > 10_000 && spared > 10_000, "{waiters} waiters, {spared} edges less");
}

/// A row with 900 waiters took a second of every four, and leaders were lost.
#[test]
fn a_long_queue_has_few_edges() {
    let (mut locks, mut ids) = (KeyLocks::default(), LockIds::of(Term::new(1)));
    (1..=300).for_each(|number| assert!(locks.hold(ts(number), LockMode::Share, &mut ids)));
    for number in 301..=1_200 {
        let mode = if number % 3 == 0 { LockMode::Share } else { LockMode::NoKeyUpdate };
        locks.waiting.push_back(waiter(number, mode));
    }
    let edges: usize = edges(&locks).values().map(BTreeSet::len).sum();
    assert!(edges < 900 * (NAMED_HOLDERS + 2) + 300, "{edges}");
}

#[test]
fn promotion_leaves_who_is_blocked_and_nobody_else() {
    let mut rng = StdRng::seed_from_u64(8);
    let mut promoted = 0;
    for round in 0..20_000 {
        let mut locks = random_locks(&mut rng);
        if let Some(gone) = locks.holders.first().copied() {
            locks.holders.remove(0);
            locks.waiting.retain(|waiter| waiter.start_ts != gone.start_ts);
        }
        promoted += locks.promote(&mut LockIds::of(Term::new(2))).len();
        assert!(!locks.has_idle_waiter(), "round {round}: {locks:?}");
        for holder in &locks.holders {
            assert!(locks.holders_against(holder.start_ts, holder.mode).is_empty(), "round {round}: {locks:?}");
        }
    }
    assert!(promoted > 10_000, "{promoted}");
}
