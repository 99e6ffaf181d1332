//! The row locks of one region, and the tasks that wait for them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use raftstore::{RegionId, Term};
use tokio::sync::oneshot;
use tso::Timestamp;

use super::handover::Packed;
use super::status::{RowLockStatus, RowWait};
use super::table::{Listed, LockTable, LocksFull, RowLocksConfig, Step};
use crate::api::{LockId, LockMode};
use crate::key::Key;

/// Names that may be left behind by transactions that have ended.
const NAMES_SPARE: usize = 64;

/// The row locks of one region.
pub(crate) struct RegionLocks {
    state: Mutex<State>,
    /// Whether there may be a lock, a waiter, or a task that waits for a record. Set before one is added.
    in_use: AtomicBool,
    config: RowLocksConfig,
}

struct State {
    /// The term of all locks.
    term: Term,
    table: LockTable,
    /// Wakes the task of a transaction that gets a lock: the newest one, by its number.
    waiters: BTreeMap<(Timestamp, Key), (u64, oneshot::Sender<()>)>,
    /// The names under which transactions with locks commit, if they have others, with those that they have here.
    names: HashMap<Timestamp, Timestamp>,
    next_task: u64,
    /// Wakes the tasks that wait for the record of a key to go away.
    on_record: BTreeMap<Key, Vec<oneshot::Sender<()>>>,
    /// Nothing may change: the leader is about to hand over, with what is here.
    is_frozen: bool,
    /// The transactions that end on a key with a write that is in the log and not applied yet.
    ending: HashMap<Key, Timestamp>,
    /// The locks of a term that has not begun here.
    inherited: Option<Inherited>,
}

/// What this leader begins a term with.
struct Inherited {
    term: Term,
    table: LockTable,
    names: HashMap<Timestamp, Timestamp>,
}

/// What an attempt to lock a key came to.
pub(crate) enum Attempt {
    /// The transaction has the lock.
    Held {
        /// What it held before.
        before: Option<LockMode>,
        /// What it has now.
        lock: LockId,
    },
    /// Others are in the way, and it is in the queue.
    Queued(Place),
    /// These transactions are in the way.
    Refused(Vec<Timestamp>),
    /// Nobody gets a lock now: the leader is about to hand over.
    Frozen,
}

impl Attempt {
    /// Whether other transactions are in the way.
    pub(crate) fn is_blocked(&self) -> bool {
        match self {
            Attempt::Queued(..) => true,
            Attempt::Refused(holders) => !holders.is_empty(),
            Attempt::Held { .. } | Attempt::Frozen => false,
        }
    }
}

/// A task's place in the queue. If it is dropped, the transaction gives its place up, unless it was left there.
pub(crate) struct Place {
    locks: Arc<RegionLocks>,
    key: Key,
    start_ts: Timestamp,
    term: Term,
    held: Option<LockMode>,
    task: u64,
    handed: oneshot::Receiver<()>,
    is_left: bool,
}

impl Place {
    /// Completes when the transaction has got the lock. False: another task of it waits now, or the term is over.
    pub(crate) async fn handed(&mut self) -> bool {
        (&mut self.handed).await.is_ok()
    }

    /// Whom the transaction waits for now.
    pub(crate) fn waits_for(&self) -> Vec<Timestamp> {
        self.locks.within(self.term, |state| state.table.waits_for(&self.key, self.start_ts)).unwrap_or_default()
    }

    /// Leaves the place in the queue, or the lock that was handed over, to the transaction, although the task goes.
    pub(crate) fn leave(mut self) {
        self.is_left = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.locks.within(self.term, |state| {
            let waiter = (self.start_ts, self.key.clone());
            if state.waiters.get(&waiter).is_some_and(|(task, _)| *task != self.task) {
                // The place is the other task's.
                return;
            }
            state.waiters.remove(&waiter);
            // Once they are packed, the locks stay as they are; its transaction gives the place up at the next leader.
            if !self.is_left && !state.is_frozen {
                state.table.cancel(&self.key, self.start_ts, self.held);
            }
        });
    }
}

impl RegionLocks {
    pub(super) fn new(config: RowLocksConfig) -> RegionLocks {
        let term = Term::new(0);
        let table = LockTable::new(term, config.capacity, config.ttl);
        let state = State {
            term,
            table,
            waiters: BTreeMap::new(),
            names: HashMap::new(),
            next_task: 0,
            on_record: BTreeMap::new(),
            is_frozen: false,
            ending: HashMap::new(),
            inherited: None,
        };
        RegionLocks { state: Mutex::new(state), in_use: AtomicBool::new(false), config }
    }

    /// Locks a key under `term`, or queues up if `queue` is set.
    pub(crate) fn acquire(
        self: &Arc<RegionLocks>,
        term: Term,
        key: &Key,
        (start_ts, mode): (Timestamp, LockMode),
        queue: bool,
        now: Instant,
    ) -> Result<Attempt, LocksFull> {
        let mut state = self.state.lock();
        if !state.enter(term, self.config) {
            // Its basis is from before; what it evaluates is refused.
            return Ok(Attempt::Refused(Vec::new()));
        }
        if state.is_frozen {
            return Ok(Attempt::Frozen);
        }
        self.in_use.store(true, Ordering::SeqCst);
        let held = state.table.held(key, start_ts);
        let step = state.table.acquire(key, (start_ts, mode), queue, now);
        state.wake();
        Ok(match step? {
            Step::Held => {
                let Some(lock) = state.table.lock(key, start_ts) else { panic!("a lock that is held has no number") };
                Attempt::Held { before: held, lock }
            }
            Step::Blocked(by) if !queue => Attempt::Refused(by),
            Step::Blocked(_) => {
                let (sender, handed) = oneshot::channel();
                let task = state.next_task;
                state.next_task += 1;
                state.waiters.insert((start_ts, key.clone()), (task, sender));
                let (locks, key) = (Arc::clone(self), key.clone());
                Attempt::Queued(Place { locks, key, start_ts, term, held, task, handed, is_left: false })
            }
        })
    }

    /// Completes when the record of a key may have gone away, after the call.
    pub(crate) fn record_gone(&self, term: Term, key: &Key) -> oneshot::Receiver<()> {
        let (sender, gone) = oneshot::channel();
        let mut state = self.state.lock();
        if state.term == term && !state.is_frozen {
            self.in_use.store(true, Ordering::SeqCst);
            let waiting = state.on_record.entry(key.clone()).or_default();
            waiting.retain(|other| !other.is_closed());
            waiting.push(sender);
        }
        gone
    }

    /// The transactions that hold locks in the way of a write under `term`.
    pub(crate) fn blockers(
        &self,
        term: Term,
        key: &Key,
        (start_ts, mode): (Timestamp, LockMode),
        now: Instant,
    ) -> Vec<Timestamp> {
        if !self.is_in_use() {
            return Vec::new();
        }
        let blockers = self.within(term, |state| state.table.blockers(key, start_ts, mode, now));
        blockers.unwrap_or_default()
    }

    /// Whether a transaction has this very holding of a key under `term`.
    pub(crate) fn holds(&self, term: Term, key: &Key, (start_ts, lock): (Timestamp, LockId), now: Instant) -> bool {
        let holds = |state: &mut State| {
            state.table.expire(now);
            state.table.lock(key, start_ts) == Some(lock)
        };
        self.within(term, holds).unwrap_or(false)
    }

    /// A write is evaluated in `term`. What it ends has to end in the locks that the term inherits.
    pub(crate) fn begin(&self, term: Term) {
        self.within(term, |_| ());
    }

    /// Takes back what an attempt has brought: `held` is what the transaction held before.
    pub(crate) fn undo(&self, term: Term, key: &Key, start_ts: Timestamp, held: Option<LockMode>) {
        self.within(term, |state| state.table.cancel(key, start_ts, held));
    }

    /// Gives up the locks and places of a transaction on `keys`, or what is stronger than `keep`. False: the leader is
    /// about to hand over, and the next one has to be asked.
    pub(crate) fn release(&self, term: Term, start_ts: Timestamp, keys: &[Key], keep: Option<LockMode>) -> bool {
        if !self.is_in_use() {
            return true;
        }
        let released = self.within(term, |state| {
            if !state.is_frozen {
                keys.iter().for_each(|key| state.table.cancel(key, start_ts, keep));
            }
            !state.is_frozen
        });
        released.unwrap_or(true)
    }

    /// A write that ends `start_ts` on `keys` is in the log.
    pub(crate) fn ending(&self, keys: &[Key], start_ts: Timestamp) {
        if self.is_in_use() {
            self.change(|state| state.ending.extend(keys.iter().map(|key| (key.clone(), start_ts))));
        }
    }

    /// The outcome of such a write is known, or never will be.
    pub(crate) fn ended(&self, keys: &[Key]) {
        let mut state = self.state.lock();
        for key in keys {
            state.ending.remove(key);
        }
    }

    /// The locks as the leader of the next term inherits them: those that are in the log's way to end have ended. From
    /// now on nothing changes here, and whoever waits asks again. `None`: nothing is handed over, because there is
    /// nothing, or too much.
    pub(super) fn pack(&self, term: Term, now: Instant) -> Option<Vec<u8>> {
        let mut state = self.state.lock();
        if !state.enter(term, self.config) {
            return None;
        }
        state.table.expire(now);
        state.wake();
        let State { table, names, ending, .. } = &mut *state;
        let has_ended = |key: &Key, start_ts: Timestamp| {
            let ended = ending.get(key).map(|ended| names.get(ended).copied().unwrap_or(*ended));
            ended == Some(start_ts)
        };
        let keys = table.pack(has_ended, now);
        let mut names: Vec<_> = names.iter().map(|(name, locker)| (*name, *locker)).collect();
        names.retain(|(_, locker)| table.is_owner(*locker));
        names.sort_unstable();
        let packed = Packed { keys, names }.encode()?;
        state.is_frozen = true;
        state.waiters.clear();
        state.on_record.clear();
        Some(packed)
    }

    /// Nobody inherits the locks of `term`: they may change again.
    pub(super) fn keep(&self, term: Term) {
        self.within(term, |state| state.is_frozen = false);
    }

    /// This leader begins `term` with the locks of the one before.
    pub(super) fn inherit(&self, term: Term, packed: &[u8], now: Instant) -> Result<(), &'static str> {
        let Packed { keys, names } = Packed::decode(packed).map_err(|_| "they are malformed")?;
        let table = LockTable::inherit(term, (self.config.capacity, self.config.ttl), &keys, now);
        let table = table.ok_or("they contradict each other, or are too many")?;
        let mut state = self.state.lock();
        state.inherited = Some(Inherited { term, table, names: names.into_iter().collect() });
        self.in_use.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// A planted bug: what is inherited forgets whose it is.
    #[cfg(feature = "planted-bugs")]
    pub(super) fn forget_owners(&self) {
        if let Some(inherited) = &mut self.state.lock().inherited {
            inherited.table.forget_owners();
        }
    }

    /// These transactions live.
    pub(crate) fn refresh(&self, term: Term, live: impl Iterator<Item = Timestamp>, now: Instant) {
        if self.is_in_use() {
            self.within(term, |state| {
                for start_ts in live {
                    state.table.refresh(start_ts, now);
                }
            });
        }
    }

    /// The transaction that has locks here as `locker` commits as `start_ts`.
    pub(crate) fn rename(&self, term: Term, locker: Timestamp, start_ts: Timestamp) {
        self.within(term, |state| {
            if state.table.is_owner(locker) {
                state.names.insert(start_ts, locker);
            }
        });
    }

    /// A write of `keys` is applied, or has resolved their locks. `ended` is the transaction that it ends there.
    pub(crate) fn written(&self, keys: &[Key], ended: Timestamp) {
        if !self.is_in_use() {
            return;
        }
        self.change(|state| {
            let locker = state.names.get(&ended).copied().unwrap_or(ended);
            for key in keys {
                state.ending.remove(key);
                state.table.release(key, locker);
                for waiter in state.on_record.remove(key).unwrap_or_default() {
                    // A task that is gone hears nothing.
                    let _ = waiter.send(());
                }
            }
        });
    }

    /// At most `limit` locks and waiters of `term`, and the number of all. Does not begin it: what the term inherits
    /// may be about to come.
    pub(super) fn list(&self, region: RegionId, term: Term, limit: usize, now: Instant) -> (Vec<RowLockStatus>, usize) {
        self.change(|state| {
            let table = match &mut state.inherited {
                Some(inherited) if inherited.term == term => &mut inherited.table,
                _ if state.term == term => &mut state.table,
                _ => return (Vec::new(), 0),
            };
            table.expire(now);
            let status = |listed: Listed<'_>| {
                let Listed { key, start_ts, mode, wait, is_awaited } = listed;
                let wait = wait.map(|(since, behind)| RowWait { time: now.saturating_duration_since(since), behind });
                RowLockStatus { region, key: key.clone(), start_ts, mode, wait, is_awaited }
            };
            (table.list(limit).map(status).collect(), table.len())
        })
    }

    /// Whether a write has to look here.
    pub(crate) fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::SeqCst)
    }

    /// Runs `step` if the locks are those of `term`; see [`RegionLocks::change`].
    fn within<T>(&self, term: Term, step: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.change(|state| state.enter(term, self.config).then(|| step(state)))
    }

    /// Runs `step`, and wakes whom it concerns.
    fn change<T>(&self, step: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let result = step(&mut state);
        state.wake();
        self.settle(&mut state);
        result
    }

    /// Writes need not look here once nothing is left.
    fn settle(&self, state: &mut State) {
        let State { names, table, .. } = &mut *state;
        if names.len() > NAMES_SPARE + 2 * table.owners() {
            names.retain(|_, locker| table.is_owner(*locker));
        }
        if state.table.is_empty() && state.on_record.is_empty() && state.inherited.is_none() {
            self.in_use.store(false, Ordering::SeqCst);
        }
    }
}

impl State {
    /// Begins `term`, if it is a later one: with the locks that it inherits. Others of earlier terms are lost, and
    /// their waiters look elsewhere.
    /// Returns whether the locks are those of `term`.
    fn enter(&mut self, term: Term, config: RowLocksConfig) -> bool {
        if term > self.term {
            self.term = term;
            let inherited = self.inherited.take().filter(|inherited| inherited.term == term);
            (self.table, self.names) = match inherited {
                Some(inherited) => (inherited.table, inherited.names),
                None => (LockTable::new(term, config.capacity, config.ttl), HashMap::new()),
            };
            self.waiters.clear();
            self.on_record.clear();
            self.ending.clear();
            self.is_frozen = false;
        }
        term == self.term
    }

    /// Wakes the tasks of the transactions that were handed a lock.
    fn wake(&mut self) {
        for (key, start_ts) in self.table.take_granted() {
            if let Some((_, waiter)) = self.waiters.remove(&(start_ts, key)) {
                // The place of a task that is gone is given up when it is dropped.
                let _ = waiter.send(());
            }
        }
    }
}
