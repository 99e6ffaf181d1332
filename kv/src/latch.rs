//! Latches: writes of the same keys take turns, in the order of their arrival.
//!
//! A write is evaluated on a snapshot and takes effect later, when it is applied. In between, no other write of the
//! same keys may be evaluated, because it would not see the first one. A latch is in-memory and lives for one request.
//! A *lock* is a record in the store and lives for one transaction.
//!
//! [`Latches`] is the pure state machine; [`LatchTable`] lets tasks wait on it. Keys are latched by their hash: two
//! keys with the same hash only wait for each other. The hash excludes the region, so a split changes nothing.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::key::Key;

/// Identifies a request. A later request has a greater ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// The table is full: the request was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests hold or await latches")]
pub struct LatchesFull;

/// The latch slot of a key: its hash.
pub fn slot_of(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// One FIFO queue per slot. A request enters all its queues at once and is granted when it is first in each.
///
/// Invariants:
/// 1. Every queue holds tickets in ascending order, and no queue is empty. So the smallest ticket is first in all its
///    queues and is granted: there is no deadlock, and no later request for the same key overtakes.
/// 2. `blocked` of a request is the number of its queues in which it is not first. It is granted if and only if
///    `blocked` is 0.
/// 3. Two granted requests share no slot.
/// 4. There are at most `capacity` requests.
#[derive(Debug)]
pub struct Latches {
    queues: HashMap<u64, VecDeque<Ticket>>,
    requests: HashMap<Ticket, QueuedRequest>,
    next: u64,
    capacity: usize,
}

#[derive(Debug)]
struct QueuedRequest {
    slots: Vec<u64>,
    /// The number of queues in which the request is not first.
    blocked: usize,
}

impl Latches {
    /// An empty state for at most `capacity` requests at a time.
    pub fn new(capacity: usize) -> Latches {
        Latches { queues: HashMap::new(), requests: HashMap::new(), next: 0, capacity }
    }

    /// Queues a request for `slots`, which may be unordered and repeated. Returns its ticket and whether it is granted
    /// at once.
    ///
    /// # Errors
    ///
    /// [`LatchesFull`] if there are `capacity` requests already.
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
        self.requests.insert(ticket, QueuedRequest { slots, blocked });
        Ok((ticket, blocked == 0))
    }

    /// Removes a request, granted or waiting, and returns the requests that this grants, in ascending order. Panics if
    /// the ticket was released before.
    pub fn release(&mut self, ticket: Ticket) -> Vec<Ticket> {
        let Some(request) = self.requests.remove(&ticket) else { panic!("{ticket:?} is released once") };
        let mut granted = Vec::new();
        for slot in request.slots {
            let Entry::Occupied(mut queue) = self.queues.entry(slot) else {
                panic!("invariant 1: slot {slot} has a queue")
            };
            let was_first = queue.get().front() == Some(&ticket);
            queue.get_mut().retain(|other| *other != ticket);
            let first = queue.get().front().copied();
            match first {
                None => drop(queue.remove()),
                Some(first) if was_first => granted.extend(self.unblock(first)),
                Some(_) => (),
            }
        }
        granted.sort_unstable();
        granted
    }

    /// The number of requests that hold latches or wait for them.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.requests.len()
    }

    /// Records that the request is first in one more queue. Returns its ticket if that grants it.
    fn unblock(&mut self, ticket: Ticket) -> Option<Ticket> {
        let Some(request) = self.requests.get_mut(&ticket) else { panic!("invariant 2: {ticket:?} is in a queue") };
        assert!(request.blocked > 0, "invariant 2: {ticket:?} was first everywhere");
        request.blocked -= 1;
        (request.blocked == 0).then_some(ticket)
    }
}

/// Latches that tasks can wait for. Clones share the latches.
#[derive(Clone, Debug)]
pub struct LatchTable {
    state: Arc<Mutex<LatchState>>,
}

#[derive(Debug)]
struct LatchState {
    latches: Latches,
    /// Wakes the task of each request that is not granted yet.
    waiters: HashMap<Ticket, oneshot::Sender<()>>,
}

/// Holds the latches of one request; releases them when dropped.
#[derive(Debug)]
pub struct LatchGuard {
    state: Arc<Mutex<LatchState>>,
    ticket: Ticket,
}

impl LatchTable {
    /// A table for at most `capacity` requests at a time.
    pub fn new(capacity: usize) -> LatchTable {
        let state = LatchState { latches: Latches::new(capacity), waiters: HashMap::new() };
        LatchTable { state: Arc::new(Mutex::new(state)) }
    }

    /// Waits until all latches of `keys` are granted.
    ///
    /// # Errors
    ///
    /// [`LatchesFull`] at once if the table is full.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future removes the request from the queues.
    pub async fn acquire(&self, keys: &[&Key]) -> Result<LatchGuard, LatchesFull> {
        let slots = keys.iter().map(|key| slot_of(key)).collect();
        let (guard, granted) = self.enqueue(slots)?;
        if let Some(granted) = granted {
            // The sender stays in the table until the grant, and the guard keeps the table alive: this cannot fail.
            let _ = granted.await;
        }
        Ok(guard)
    }

    /// The number of requests that hold latches or wait for them.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.state.lock().latches.len()
    }

    fn enqueue(&self, slots: Vec<u64>) -> Result<(LatchGuard, Option<oneshot::Receiver<()>>), LatchesFull> {
        let mut state = self.state.lock();
        let (ticket, granted) = state.latches.acquire(slots)?;
        let receiver = (!granted).then(|| {
            let (sender, receiver) = oneshot::channel();
            state.waiters.insert(ticket, sender);
            receiver
        });
        Ok((LatchGuard { state: Arc::clone(&self.state), ticket }, receiver))
    }
}

impl Drop for LatchGuard {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.waiters.remove(&self.ticket);
        for granted in state.latches.release(self.ticket) {
            if let Some(waiter) = state.waiters.remove(&granted) {
                // If the waiter was just cancelled, dropping its guard releases the latches.
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
        // Queued behind b on slot 3, although no request holds it yet: FIFO order costs some concurrency.
        let (c, granted) = latches.acquire(vec![3]).unwrap();
        assert!(!granted);
        let (d, granted) = latches.acquire(vec![4, 4]).unwrap();
        assert!(granted);
        assert_eq!(latches.release(a), [b]);
        assert_eq!(latches.release(b), [c]);
        assert_eq!(latches.release(d), []);
        assert_eq!(latches.release(c), []);
        assert_eq!(latches.len(), 0);
    }

    #[test]
    fn releasing_a_waiting_request_grants_the_next_one() {
        let mut latches = Latches::new(8);
        let (a, _) = latches.acquire(vec![1]).unwrap();
        let (b, _) = latches.acquire(vec![1, 2]).unwrap();
        let (c, _) = latches.acquire(vec![2]).unwrap();
        assert_eq!(latches.release(b), [c]);
        assert_eq!(latches.release(a), []);
        assert_eq!(latches.len(), 1);
    }

    #[test]
    fn acquire_fails_at_the_capacity() {
        let mut latches = Latches::new(1);
        let (a, _) = latches.acquire(vec![1]).unwrap();
        assert_eq!(latches.acquire(vec![2]), Err(LatchesFull));
        latches.release(a);
        assert!(latches.acquire(vec![2]).is_ok());
    }

    /// Random requests and releases against a model: granted requests share no slot, no request is overtaken on a slot,
    /// and the oldest request is always granted.
    #[test]
    fn random_requests_are_exclusive_and_served_in_order() {
        for seed in 0..200 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut latches = Latches::new(64);
            let mut queued: BTreeMap<Ticket, HashSet<u64>> = BTreeMap::new();
            let mut granted: Vec<Ticket> = Vec::new();
            let mut left = 200;
            while left > 0 || !queued.is_empty() {
                if left > 0 && rng.random_bool(0.5) {
                    left -= 1;
                    let slots: Vec<u64> = (0..rng.random_range(1..4)).map(|_| rng.random_range(0..6)).collect();
                    if let Ok((ticket, now)) = latches.acquire(slots.clone()) {
                        queued.insert(ticket, slots.into_iter().collect());
                        granted.extend(now.then_some(ticket));
                    }
                } else if let Some(released) = queued.keys().nth(rng.random_range(0..queued.len().max(1))).copied() {
                    let waits = !granted.contains(&released);
                    if waits && rng.random_bool(0.9) {
                        continue;
                    }
                    queued.remove(&released);
                    granted.retain(|t| *t != released);
                    granted.extend(latches.release(released));
                }
                for (i, ticket) in granted.iter().enumerate() {
                    let clash = granted[..i].iter().any(|other| !queued[other].is_disjoint(&queued[ticket]));
                    assert!(!clash, "seed {seed}: {ticket:?} shares a slot");
                    let overtaken = queued.range(..ticket).any(|(_, slots)| !slots.is_disjoint(&queued[ticket]));
                    assert!(!overtaken, "seed {seed}: {ticket:?} overtook");
                }
                let first = queued.keys().next();
                assert!(first.is_none_or(|t| granted.contains(t)), "seed {seed}: the oldest request waits");
            }
            assert_eq!(latches.len(), 0);
        }
    }

    #[tokio::test]
    async fn a_dropped_waiter_leaves_the_queue() {
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
        assert_eq!(table.len(), 0);
    }
}
