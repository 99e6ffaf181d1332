//! The locks of one region and the transactions that wait for them: a state machine.
//!
//! A lock is handed over: whoever releases it makes the first waiter its holder in the same step, so that nobody
//! overtakes the queue. A waiter may be without a task for a while, because its request was answered and the next one
//! is on its way: it keeps its place. Who is not heard of for a while loses its locks and its places.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use raftstore::Term;
use tso::Timestamp;

use super::handover::PackedKey;
use super::queue::{Holder, KeyLocks, LockIds, Waiter};
use crate::api::{LockId, LockMode};
use crate::key::Key;

/// Settings of the row locks of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLocksConfig {
    /// How long a transaction keeps its locks after it was last heard of. Default 3 s.
    pub ttl: Duration,
    /// The most locks and waiters of a region. Default 1,000,000: about 300 MB.
    pub capacity: usize,
}

impl Default for RowLocksConfig {
    fn default() -> RowLocksConfig {
        RowLocksConfig { ttl: Duration::from_secs(3), capacity: 1_000_000 }
    }
}

/// The table is full: nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocksFull;

/// The outcome of [`LockTable::acquire`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The transaction has the lock.
    Held,
    /// These transactions are in the way; see [`KeyLocks::behind`].
    Blocked(Vec<Timestamp>),
}

/// A holder or a waiter; see [`LockTable::list`].
pub(crate) struct Listed<'a> {
    pub(crate) key: &'a Key,
    pub(crate) start_ts: Timestamp,
    pub(crate) mode: LockMode,
    /// Of a waiter: since when it waits, and who is in its way.
    pub(crate) wait: Option<(Instant, Vec<Timestamp>)>,
    /// Whether anybody waits for the key.
    pub(crate) is_awaited: bool,
}

/// Locks and queues.
///
/// Invariants:
/// 1. Two holders of a key do not conflict.
/// 2. The first waiter of a key conflicts with a holder, and each other one with a holder or with a waiter before it.
/// 3. A transaction holds a key once, and waits for it once. If it does both, it waits for a stronger lock.
/// 4. `owners` names every key of a holder or waiter, and no other. A key without both is not in `keys`.
/// 5. `entries` is the number of holders and waiters, at most `capacity`.
#[derive(Debug)]
pub(crate) struct LockTable {
    keys: HashMap<Key, KeyLocks>,
    owners: HashMap<Timestamp, Owner>,
    /// Waiters that have become holders, until [`LockTable::take_granted`].
    granted: Vec<(Key, Timestamp)>,
    /// No owner expires before.
    none_expires_before: Option<Instant>,
    entries: usize,
    ids: LockIds,
    capacity: usize,
    ttl: Duration,
}

#[derive(Debug)]
struct Owner {
    alive_until: Instant,
    keys: BTreeSet<Key>,
}

impl LockTable {
    /// An empty table for at most `capacity` holders and waiters, whose owners live for `ttl` after they were last
    /// heard of. It is that of `term`.
    pub(crate) fn new(term: Term, capacity: usize, ttl: Duration) -> LockTable {
        LockTable {
            keys: HashMap::new(),
            owners: HashMap::new(),
            granted: Vec::new(),
            none_expires_before: None,
            entries: 0,
            ids: LockIds::of(term),
            capacity,
            ttl,
        }
    }

    /// The table that a new leader inherits. Owners live for `ttl` from now on, and waiters have waited as long as it
    /// says. Who stands in nobody's way any more gets the lock. `None`: it has more than `capacity`, or contradicts
    /// itself.
    pub(super) fn inherit(
        term: Term,
        (capacity, ttl): (usize, Duration),
        packed: &[PackedKey],
        now: Instant,
    ) -> Option<LockTable> {
        let mut table = LockTable::new(term, capacity, ttl);
        for PackedKey { key, holders, waiting } in packed {
            let mut locks = KeyLocks::default();
            for holder @ Holder { start_ts, mode, .. } in holders {
                let is_new = locks.held(*start_ts).is_none() && locks.holders_against(*start_ts, *mode).is_empty();
                if !is_new {
                    return None;
                }
                locks.holders.push(*holder);
            }
            for (start_ts, mode, waited) in waiting {
                if locks.place(*start_ts).is_some() || locks.held(*start_ts).is_some_and(|held| held >= *mode) {
                    return None;
                }
                let since = now.checked_sub(Duration::from_millis((*waited).into())).unwrap_or(now);
                locks.waiting.push_back(Waiter { start_ts: *start_ts, mode: *mode, since });
            }
            table.entries += locks.holders.len() + locks.waiting.len();
            if table.entries > capacity || table.keys.insert(key.clone(), locks).is_some() {
                return None;
            }
            let waiting = waiting.iter().map(|(start_ts, ..)| start_ts);
            for start_ts in holders.iter().map(|holder| &holder.start_ts).chain(waiting) {
                table.own(*start_ts, key, now);
            }
            table.promote(key);
            // A correct leader sends no such queue. The next request of the waiter would find it out.
            if table.keys.get(key).is_some_and(KeyLocks::has_idle_waiter) {
                return None;
            }
        }
        table.granted.clear();
        Some(table)
    }

    /// All holders and waiters, in the order of the keys, but those that `has_ended` says have ended on a key.
    pub(super) fn pack(&self, has_ended: impl Fn(&Key, Timestamp) -> bool, now: Instant) -> Vec<PackedKey> {
        let mut packed: Vec<PackedKey> = Vec::with_capacity(self.keys.len());
        for (key, locks) in &self.keys {
            let lives = |start_ts: &Timestamp| !has_ended(key, *start_ts);
            let holders = locks.holders.iter().filter(|holder| lives(&holder.start_ts)).copied().collect();
            let waiting = locks.waiting.iter().filter(|waiter| lives(&waiter.start_ts));
            let waited = |since| u32::try_from(now.saturating_duration_since(since).as_millis()).unwrap_or(u32::MAX);
            let waiting = waiting.map(|waiter| (waiter.start_ts, waiter.mode, waited(waiter.since))).collect();
            packed.push(PackedKey { key: key.clone(), holders, waiting });
        }
        packed.retain(|packed| !packed.holders.is_empty() || !packed.waiting.is_empty());
        packed.sort_by(|a, b| a.key.cmp(&b.key));
        packed
    }

    /// A planted bug: the table forgets whose its locks are.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn forget_owners(&mut self) {
        self.owners.clear();
        self.none_expires_before = None;
    }

    /// Whether nobody holds anything or waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Locks a key for a transaction, or queues it up if `queue` is set. A transaction that waits already keeps its
    /// place.
    ///
    /// # Errors
    ///
    /// [`LocksFull`]: the key was neither locked nor queued for.
    pub(crate) fn acquire(
        &mut self,
        key: &Key,
        (start_ts, mode): (Timestamp, LockMode),
        queue: bool,
        now: Instant,
    ) -> Result<Step, LocksFull> {
        self.expire(now);
        let is_full = self.entries >= self.capacity;
        let locks = self.keys.entry(key.clone()).or_default();
        let (held, place) = (locks.held(start_ts), locks.place(start_ts));
        if held.is_some_and(|held| held >= mode) {
            self.hear_of(start_ts, now);
            return Ok(Step::Held);
        }
        // Who has queued up for a stronger lock still wants that.
        let mode = place.and_then(|place| locks.waiting.get(place)).map_or(mode, |waiter| waiter.mode.max(mode));
        let found = locks.behind(start_ts, mode, place.unwrap_or(locks.waiting.len()));
        let adds = if found.is_empty() { held.is_none() && place.is_none() } else { queue && place.is_none() };
        if adds && is_full {
            self.drop_if_unused(key);
            return Err(LocksFull);
        }
        if found.is_empty() {
            // One that waits and is not in anybody's way has been handed the lock.
            assert!(place.is_none(), "invariant 2: {start_ts} waits for nothing");
            self.entries += usize::from(locks.hold(start_ts, mode, &mut self.ids));
        } else if queue {
            match place.and_then(|place| locks.waiting.get_mut(place)) {
                Some(waiter) => waiter.mode = mode,
                None => {
                    let waiter = Waiter { start_ts, mode, since: now };
                    // Who holds a weaker lock goes first: the others would wait for it anyway.
                    let upgrades = locks.waiting.iter().take_while(|w| locks.held(w.start_ts).is_some()).count();
                    let at = if held.is_some() { upgrades } else { locks.waiting.len() };
                    locks.waiting.insert(at, waiter);
                    self.entries += 1;
                }
            }
        } else {
            self.drop_if_unused(key);
            return Ok(Step::Blocked(found));
        }
        self.own(start_ts, key, now);
        Ok(if found.is_empty() { Step::Held } else { Step::Blocked(found) })
    }

    /// The transactions that hold a lock in the way of a write. One that holds the key to change it has nobody in the
    /// way (invariant 1), whatever it writes.
    pub(crate) fn blockers(&mut self, key: &Key, start_ts: Timestamp, mode: LockMode, now: Instant) -> Vec<Timestamp> {
        self.expire(now);
        let Some(locks) = self.keys.get(key) else { return Vec::new() };
        match locks.held(start_ts) {
            Some(LockMode::NoKeyUpdate | LockMode::Update) => Vec::new(),
            Some(LockMode::KeyShare | LockMode::Share) | None => locks.holders_against(start_ts, mode),
        }
    }

    /// The number of transactions that hold locks or wait for them.
    pub(crate) fn owners(&self) -> usize {
        self.owners.len()
    }

    /// Whether a transaction holds any lock or waits for one.
    pub(crate) fn is_owner(&self, start_ts: Timestamp) -> bool {
        self.owners.contains_key(&start_ts)
    }

    /// Gives up a transaction's lock on a key, and its place in the queue.
    pub(crate) fn release(&mut self, key: &Key, start_ts: Timestamp) {
        let Entry::Occupied(mut owner) = self.owners.entry(start_ts) else { return };
        if !owner.get_mut().keys.remove(key) {
            return;
        }
        if owner.get().keys.is_empty() {
            owner.remove();
        }
        self.remove(key, start_ts);
    }

    /// Gives up a transaction's place in the queue for a key, and with it what it has of a lock beyond `held`: what it
    /// was handed and has not seen, or wants no longer. `None`: all of it.
    pub(crate) fn cancel(&mut self, key: &Key, start_ts: Timestamp, held: Option<LockMode>) {
        // What it held is lost: there is nothing to keep.
        let held = held.filter(|_| self.held(key, start_ts).is_some());
        let Some(held) = held else { return self.release(key, start_ts) };
        let Some(locks) = self.keys.get_mut(key) else { return };
        if let Some(place) = locks.place(start_ts) {
            locks.waiting.remove(place);
            self.entries -= 1;
        }
        if let Some(holder) = locks.holders.iter_mut().find(|holder| holder.start_ts == start_ts && holder.mode > held)
        {
            (holder.mode, holder.lock) = (held, self.ids.take());
        }
        self.promote(key);
    }

    /// Whom a transaction in the queue of a key waits for, see [`KeyLocks::behind`]. Empty: it does not wait there.
    pub(crate) fn waits_for(&self, key: &Key, start_ts: Timestamp) -> Vec<Timestamp> {
        let waits = |locks: &KeyLocks| {
            let place = locks.place(start_ts)?;
            let mode = locks.waiting.get(place)?.mode;
            Some(locks.behind(start_ts, mode, place))
        };
        self.keys.get(key).and_then(waits).unwrap_or_default()
    }

    /// What a transaction holds of a key.
    pub(crate) fn held(&self, key: &Key, start_ts: Timestamp) -> Option<LockMode> {
        self.keys.get(key)?.held(start_ts)
    }

    /// Which holding of a key a transaction has.
    pub(crate) fn lock(&self, key: &Key, start_ts: Timestamp) -> Option<LockId> {
        self.keys.get(key)?.holder(start_ts).map(|holder| holder.lock)
    }

    /// Gives up all locks and places of a transaction.
    pub(crate) fn release_all(&mut self, start_ts: Timestamp) {
        let Some(owner) = self.owners.remove(&start_ts) else { return };
        owner.keys.iter().for_each(|key| self.remove(key, start_ts));
    }

    /// The transaction lives. Returns whether it has anything here.
    pub(crate) fn refresh(&mut self, start_ts: Timestamp, now: Instant) -> bool {
        self.expire(now);
        self.hear_of(start_ts, now)
    }

    /// The waiters that have become holders since the last call, in the order in which they did.
    pub(crate) fn take_granted(&mut self) -> Vec<(Key, Timestamp)> {
        std::mem::take(&mut self.granted)
    }

    /// At most `limit` holders and waiters: first those of the keys that somebody waits for, then by key; those of a
    /// key in their order.
    pub(crate) fn list(&self, limit: usize) -> impl Iterator<Item = Listed<'_>> {
        let mut keys: Vec<(bool, &Key, &KeyLocks)> =
            self.keys.iter().map(|(key, locks)| (locks.waiting.is_empty(), key, locks)).collect();
        let order = |(quiet, key, _): &(bool, &Key, &KeyLocks), (b_quiet, b, _): &(bool, &Key, &KeyLocks)| {
            (quiet, key).cmp(&(b_quiet, b))
        };
        if keys.len() > limit {
            keys.select_nth_unstable_by(limit, order);
            keys.truncate(limit);
        }
        keys.sort_unstable_by(order);
        let of_key = |(is_quiet, key, locks): (bool, _, &'_ KeyLocks)| {
            let holders = locks.holders.iter().map(|holder| (holder.start_ts, holder.mode, None));
            let waiting = locks.waiting.iter().enumerate().map(|(ahead, waiter)| {
                let Waiter { start_ts, mode, since } = *waiter;
                (start_ts, mode, Some((since, locks.behind(start_ts, mode, ahead))))
            });
            let all = holders.chain(waiting);
            all.map(move |(start_ts, mode, wait)| Listed { key, start_ts, mode, wait, is_awaited: !is_quiet })
                .collect::<Vec<_>>()
        };
        keys.into_iter().flat_map(of_key).take(limit)
    }

    /// The number of holders and waiters.
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    fn hear_of(&mut self, start_ts: Timestamp, now: Instant) -> bool {
        match self.owners.get_mut(&start_ts) {
            Some(owner) => {
                owner.alive_until = owner.alive_until.max(now + self.ttl);
                true
            }
            None => false,
        }
    }

    fn own(&mut self, start_ts: Timestamp, key: &Key, now: Instant) {
        let alive_until = now + self.ttl;
        let owner = self.owners.entry(start_ts).or_insert_with(|| Owner { alive_until, keys: BTreeSet::new() });
        owner.alive_until = owner.alive_until.max(alive_until);
        if !owner.keys.contains(key) {
            owner.keys.insert(key.clone());
        }
        self.none_expires_before = Some(self.none_expires_before.map_or(alive_until, |first| first.min(alive_until)));
    }

    /// Releases what belongs to transactions that were not heard of for the ttl.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.none_expires_before.is_none_or(|first| now < first) {
            return;
        }
        let mut dead: Vec<Timestamp> =
            self.owners.iter().filter(|(_, owner)| owner.alive_until <= now).map(|(start_ts, _)| *start_ts).collect();
        // The simulator replays it.
        dead.sort_unstable();
        dead.into_iter().for_each(|start_ts| self.release_all(start_ts));
        self.none_expires_before = self.owners.values().map(|owner| owner.alive_until).min();
    }

    /// Removes a transaction from a key, and hands its lock over.
    fn remove(&mut self, key: &Key, start_ts: Timestamp) {
        let Some(locks) = self.keys.get_mut(key) else { panic!("invariant 4: {start_ts} owns {key:?}") };
        let before = locks.holders.len() + locks.waiting.len();
        locks.holders.retain(|holder| holder.start_ts != start_ts);
        locks.waiting.retain(|waiter| waiter.start_ts != start_ts);
        self.entries -= before - locks.holders.len() - locks.waiting.len();
        self.promote(key);
    }

    /// Makes holders of the waiters that nobody is in the way of any more.
    fn promote(&mut self, key: &Key) {
        let Some(locks) = self.keys.get_mut(key) else { return };
        for (start_ts, is_new) in locks.promote(&mut self.ids) {
            // An upgrade makes one entry of two.
            self.entries -= usize::from(!is_new);
            self.granted.push((key.clone(), start_ts));
        }
        self.drop_if_unused(key);
    }

    fn drop_if_unused(&mut self, key: &Key) {
        if self.keys.get(key).is_some_and(|locks| locks.holders.is_empty() && locks.waiting.is_empty()) {
            self.keys.remove(key);
        }
    }

    /// Checks the invariants.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut entries = 0;
        for (key, locks) in &self.keys {
            entries += locks.holders.len() + locks.waiting.len();
            assert!(!locks.holders.is_empty(), "{key:?} has only waiters");
            for (at, Holder { start_ts: holder, mode, .. }) in locks.holders.iter().enumerate() {
                assert!(locks.holders_against(*holder, *mode).is_empty(), "two holders of {key:?} conflict");
                assert!(locks.holders.iter().skip(at + 1).all(|other| other.start_ts != *holder), "a holder twice");
                assert!(self.owners.get(holder).is_some_and(|owner| owner.keys.contains(key)));
            }
            for (place, waiter) in locks.waiting.iter().enumerate() {
                let against = locks.behind(waiter.start_ts, waiter.mode, place);
                assert!(!against.is_empty(), "{waiter:?} of {key:?} waits for nothing");
                assert_eq!(locks.place(waiter.start_ts), Some(place), "a waiter twice");
                assert!(locks.held(waiter.start_ts).is_none_or(|held| held < waiter.mode));
                assert!(self.owners.get(&waiter.start_ts).is_some_and(|owner| owner.keys.contains(key)));
            }
        }
        assert_eq!((entries, self.entries <= self.capacity), (self.entries, true));
        for (start_ts, owner) in &self.owners {
            let is_there = |key: &Key| {
                self.keys.get(key).is_some_and(|l| l.held(*start_ts).is_some() || l.place(*start_ts).is_some())
            };
            assert!(!owner.keys.is_empty() && owner.keys.iter().all(is_there), "{start_ts} owns what it has not");
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
