//! Latches: requests that write the same keys take turns, in the order in which they came.
//!
//! A write is evaluated on a snapshot and takes effect only later, when it is applied. In between, nobody else may evaluate against the same
//! keys: it would not see the first one's writes. A latch is memory of this process, held for the length of one request; a *lock* is a record in the
//! store, held for the length of a transaction.
//!
//! [`Latches`] decides and is pure; [`LatchTable`] lets tasks wait for it. Keys are latched by their hash: two keys of one hash merely
//! wait for each other. They are hashed without their region, so that a split changes nothing.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::key::Key;

/// A request's place in the queues. Earlier requests have smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// As many requests hold latches or wait for them as are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests hold or await latches")]
pub struct LatchesFull;

/// The hash under which a key is latched.
pub fn slot_of(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// The queues. A request enters all its queues at once and is granted when it is the first in each.
///
/// Invariants:
/// 1. Every queue holds tickets in ascending order, and none is empty. So the smallest ticket is first wherever it stands, hence granted:
///    there is no deadlock, and nobody is overtaken by a later request for the same key.
/// 2. `blocked` of a ticket is the number of its queues in which it is not the first; it is granted if and only if that is 0.
/// 3. Two granted tickets share no slot.
/// 4. There are at most `capacity` tickets.
#[derive(Debug)]
pub struct Latches {
    queues: HashMap<u64, VecDeque<Ticket>>,
    requests: HashMap<Ticket, Claim>,
    next: u64,
    capacity: usize,
}

#[derive(Debug)]
struct Claim {
    slots: Vec<u64>,
    blocked: usize,
}

impl Latches {
    /// Without a request, for at most `capacity` at a time.
    pub fn new(capacity: usize) -> Latches {
        Latches { queues: HashMap::new(), requests: HashMap::new(), next: 0, capacity }
    }

    /// Queues a request for `slots` (in any order, repeated or not). Says whether it is granted at once.
    pub fn acquire(&mut self, mut slots: Vec<u64>) -> Result<(Ticket, bool), LatchesFull> {
        if self.requests.len() >= self.capacity {
            return Err(LatchesFull);
        }
        slots.sort_unstable();
        slots.dedup();
        let ticket = Ticket(self.next);
        self.next += 1;
        let mut blocked = 0;
        for slot in &slots {
            let queue = self.queues.entry(*slot).or_default();
            blocked += usize::from(!queue.is_empty());
            queue.push_back(ticket);
        }
        self.requests.insert(ticket, Claim { slots, blocked });
        Ok((ticket, blocked == 0))
    }

    /// Takes a request out, granted or still waiting, and returns those that are granted by it, in their order. A ticket is released once.
    pub fn release(&mut self, ticket: Ticket) -> Vec<Ticket> {
        let Some(claim) = self.requests.remove(&ticket) else { panic!("{ticket:?} is released once") };
        let mut granted = Vec::new();
        for slot in claim.slots {
            let Entry::Occupied(mut queue) = self.queues.entry(slot) else {
                panic!("invariant 1: slot {slot} has a queue")
            };
            let was_first = queue.get().front() == Some(&ticket);
            queue.get_mut().retain(|other| *other != ticket);
            let first = queue.get().front().copied();
            match first {
                None => drop(queue.remove()),
                Some(first) if was_first => granted.extend(self.advance(first)),
                Some(_) => (),
            }
        }
        granted.sort_unstable();
        granted
    }

    /// How many requests hold latches or wait for them.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The ticket has become the first of one more queue.
    fn advance(&mut self, ticket: Ticket) -> Option<Ticket> {
        let Some(claim) = self.requests.get_mut(&ticket) else { panic!("invariant 2: {ticket:?} is in a queue") };
        assert!(claim.blocked > 0, "invariant 2: {ticket:?} was first everywhere");
        claim.blocked -= 1;
        (claim.blocked == 0).then_some(ticket)
    }
}

/// Latches that tasks wait for. Clones share them.
#[derive(Clone, Debug)]
pub struct LatchTable {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    latches: Latches,
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
}

/// The right to write the keys; ends when dropped.
#[derive(Debug)]
pub struct LatchGuard {
    shared: Arc<Mutex<Shared>>,
    ticket: Ticket,
}

impl LatchTable {
    /// For at most `capacity` requests at a time.
    pub fn new(capacity: usize) -> LatchTable {
        let shared = Shared { latches: Latches::new(capacity), waiting: HashMap::new() };
        LatchTable { shared: Arc::new(Mutex::new(shared)) }
    }

    /// Waits for the latches of `keys`. Dropping the future gives up the place in the queues.
    pub async fn acquire(&self, keys: &[&Key]) -> Result<LatchGuard, LatchesFull> {
        let slots = keys.iter().map(|key| slot_of(key)).collect();
        let (guard, granted) = self.enqueue(slots)?;
        if let Some(granted) = granted {
            // The sender stays in the table until the grant, so that this only fails if the table is gone, which the guard keeps.
            let _ = granted.await;
        }
        Ok(guard)
    }

    /// How many requests hold latches or wait for them.
    pub fn len(&self) -> usize {
        self.shared.lock().latches.len()
    }

    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn enqueue(&self, slots: Vec<u64>) -> Result<(LatchGuard, Option<oneshot::Receiver<()>>), LatchesFull> {
        let mut shared = self.shared.lock();
        let (ticket, granted) = shared.latches.acquire(slots)?;
        let receiver = (!granted).then(|| {
            let (sender, receiver) = oneshot::channel();
            shared.waiting.insert(ticket, sender);
            receiver
        });
        Ok((LatchGuard { shared: Arc::clone(&self.shared), ticket }, receiver))
    }
}

impl Drop for LatchGuard {
    fn drop(&mut self) {
        let mut shared = self.shared.lock();
        shared.waiting.remove(&self.ticket);
        for granted in shared.latches.release(self.ticket) {
            if let Some(waiter) = shared.waiting.remove(&granted) {
                // A waiter that has just gone gives the latches back when its guard is dropped.
                let _ = waiter.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn requests_for_a_key_take_turns_in_order() {
        let mut latches = Latches::new(8);
        let (a, granted) = latches.acquire(vec![1, 2]).unwrap();
        assert!(granted);
        let (b, granted) = latches.acquire(vec![2, 3]).unwrap();
        assert!(!granted);
        // Behind b on 3, although nobody holds 3 yet: being fair costs a little concurrency.
        let (c, granted) = latches.acquire(vec![3]).unwrap();
        assert!(!granted);
        let (d, granted) = latches.acquire(vec![4, 4]).unwrap();
        assert!(granted);
        assert_eq!(latches.release(a), [b]);
        assert_eq!(latches.release(b), [c]);
        assert_eq!(latches.release(d), []);
        assert_eq!(latches.release(c), []);
        assert!(latches.is_empty());
    }

    #[test]
    fn a_waiter_that_gives_up_lets_the_next_one_in() {
        let mut latches = Latches::new(8);
        let (a, _) = latches.acquire(vec![1]).unwrap();
        let (b, _) = latches.acquire(vec![1, 2]).unwrap();
        let (c, _) = latches.acquire(vec![2]).unwrap();
        assert_eq!(latches.release(b), [c]);
        assert_eq!(latches.release(a), []);
        assert_eq!(latches.len(), 1);
    }

    #[test]
    fn requests_are_bounded() {
        let mut latches = Latches::new(1);
        let (a, _) = latches.acquire(vec![1]).unwrap();
        assert_eq!(latches.acquire(vec![2]), Err(LatchesFull));
        latches.release(a);
        assert!(latches.acquire(vec![2]).is_ok());
    }

    /// Random requests and releases against the obvious model: granted sets are disjoint, nobody is overtaken on a slot, all end.
    #[test]
    fn random_requests_are_exclusive_and_fair() {
        for seed in 0..200 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut latches = Latches::new(64);
            let mut asked: BTreeMap<Ticket, HashSet<u64>> = BTreeMap::new();
            let mut granted: Vec<Ticket> = Vec::new();
            let mut left = 200;
            while left > 0 || !asked.is_empty() {
                if left > 0 && rng.random_bool(0.5) {
                    left -= 1;
                    let slots: Vec<u64> = (0..rng.random_range(1..4)).map(|_| rng.random_range(0..6)).collect();
                    if let Ok((ticket, now)) = latches.acquire(slots.clone()) {
                        asked.insert(ticket, slots.into_iter().collect());
                        granted.extend(now.then_some(ticket));
                    }
                } else if let Some(gives_up) = asked.keys().nth(rng.random_range(0..asked.len().max(1))).copied() {
                    let waits = !granted.contains(&gives_up);
                    if waits && rng.random_bool(0.9) {
                        continue;
                    }
                    asked.remove(&gives_up);
                    granted.retain(|t| *t != gives_up);
                    granted.extend(latches.release(gives_up));
                }
                for (i, ticket) in granted.iter().enumerate() {
                    let clash = granted[..i].iter().any(|other| !asked[other].is_disjoint(&asked[ticket]));
                    assert!(!clash, "seed {seed}: {ticket:?} shares a slot");
                    let overtaken = asked.range(..ticket).any(|(_, slots)| !slots.is_disjoint(&asked[ticket]));
                    assert!(!overtaken, "seed {seed}: {ticket:?} overtook");
                }
                let first = asked.keys().next();
                assert!(first.is_none_or(|t| granted.contains(t)), "seed {seed}: the oldest request waits");
            }
            assert!(latches.is_empty());
        }
    }

    #[tokio::test]
    async fn a_dropped_waiter_does_not_keep_its_place() {
        let table = LatchTable::new(8);
        let keys = [&Key::from_static(b"k")];
        let held = table.acquire(&keys).await.unwrap();
        let mut waiter = Box::pin(table.acquire(&keys));
        assert!(futures::poll!(&mut waiter).is_pending());
        assert_eq!(table.len(), 2);
        drop(waiter);
        assert_eq!(table.len(), 1);
        let mut waiter = Box::pin(table.acquire(&keys));
        assert!(futures::poll!(&mut waiter).is_pending());
        drop(held);
        drop(waiter.await.unwrap());
        assert!(table.is_empty());
    }
}
