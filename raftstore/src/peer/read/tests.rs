//! The read queue and its property: an index is taken after the request arrived and is never lowered.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::reply::testing::{Probe, probe as reply};

type Outcome = Probe<Result<ReadReady, RegionError>>;

fn at(millis: u64) -> MonoTime {
    MonoTime::from_millis(millis)
}

const FAR: MonoTime = MonoTime::from_millis(1 << 40);
const TERM: Term = Term::new(3);

#[test]
fn requests_that_arrive_together_share_a_round() {
    let mut queue = ReadQueue::new(8);
    let ((a, first), (b, second)) = (reply(), reply());
    queue.enqueue(a, FAR);
    queue.enqueue(b, FAR);
    let context = queue.open_round(at(10), false).unwrap();
    assert_eq!(queue.open_round(at(11), false), None);
    assert_eq!(queue.confirm(&context, LogIndex::new(7)), Some(at(10)));
    queue.on_applied(LogIndex::new(6), TERM);
    assert_eq!(first.try_get(), None);
    queue.on_applied(LogIndex::new(7), TERM);
    let ready = Some(Ok(ReadReady { index: LogIndex::new(7), term: TERM }));
    assert_eq!((first.try_get(), second.try_get()), (ready.clone(), ready));
    assert!(!queue.is_full() && !queue.waits_for_apply());
}

/// tikv#7971: a request that arrives after a round was sent must not be answered with that round's index.
#[test]
fn later_request_does_not_join_an_open_round() {
    let mut queue = ReadQueue::new(8);
    let ((a, first), (b, second)) = (reply(), reply());
    queue.enqueue(a, FAR);
    let early = queue.open_round(at(10), false).unwrap();
    queue.enqueue(b, FAR);
    queue.confirm(&early, LogIndex::new(5));
    queue.on_applied(LogIndex::new(9), TERM);
    assert!(first.try_get().is_some());
    assert!(second.try_get().is_none());
}

/// tikv#10347: a request of an ended leadership fails; it is not kept for the next one.
#[test]
fn step_down_fails_requests_in_every_stage() {
    let region = RegionId::new(2);
    let mut queue = ReadQueue::new(8);
    let ((a, waiting), (b, open), (c, arrived)) = (reply(), reply(), reply());
    queue.enqueue(a, FAR);
    let first = queue.open_round(at(9), false).unwrap();
    queue.enqueue(b, FAR);
    queue.open_round(at(10), false).unwrap();
    queue.enqueue(c, FAR);
    queue.confirm(&first, LogIndex::new(5));
    let error = RegionError::NotLeader { region, leader: None };
    queue.fail_all(&error);
    for outcome in [waiting, open, arrived] {
        assert_eq!(outcome.try_get(), Some(Err(error.clone())));
    }
    assert!(!queue.has_open_round());
}

#[test]
fn requests_expire_in_every_stage() {
    let region = RegionId::new(2);
    let mut queue = ReadQueue::new(2);
    let ((a, open), (b, arrived)) = (reply(), reply());
    queue.enqueue(a, at(20));
    queue.open_round(at(10), false).unwrap();
    queue.enqueue(b, at(21));
    assert!(queue.is_full());
    queue.expire(at(20), region);
    assert!(matches!(open.try_get(), Some(Err(RegionError::NotReady { .. }))));
    assert!(arrived.try_get().is_none());
    assert!(!queue.is_full());
}

/// Random arrivals, commits, rounds, losses and applies: each answer is at least the commit index at its arrival.
#[test]
fn index_is_never_below_the_commit_index_at_arrival() {
    for seed in 0..200 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut queue = ReadQueue::new(1000);
        let (mut commit, mut applied) = (1u64, 1u64);
        let mut rounds: VecDeque<([u8; 8], u64)> = VecDeque::new();
        let mut asked: Vec<(u64, Outcome)> = Vec::new();
        for step in 0..200 {
            match rng.random_range(0..5) {
                0 => commit += rng.random_range(1..4),
                1 => {
                    let (reply, outcome) = reply();
                    queue.enqueue(reply, FAR);
                    asked.push((commit, outcome));
                }
                2 => rounds.extend(queue.open_round(at(step), rng.random()).map(|context| (context, commit))),
                3 => {
                    // Like raft-rs: an answer confirms its round and all earlier ones.
                    for _ in 0..rng.random_range(0..3usize).min(rounds.len()) {
                        let (context, index) = rounds.pop_front().unwrap();
                        queue.confirm(&context, LogIndex::new(index));
                    }
                }
                _ => {
                    applied = rng.random_range(applied..=commit);
                    queue.on_applied(LogIndex::new(applied), TERM);
                }
            }
        }
        for (floor, outcome) in asked {
            if let Some(Ok(ready)) = &outcome.try_get() {
                assert!(ready.index.get() >= floor, "seed {seed}: {} below {floor}", ready.index);
            }
        }
    }
}
