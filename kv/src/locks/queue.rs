//! The holders of one key and the queue behind them.
//!
//! A lock mode is in the way of all that a weaker one is in the way of. So whoever conflicts with anybody conflicts
//! with the strongest of them.

use std::collections::VecDeque;
use std::time::Instant;

use raftstore::Term;
use tso::Timestamp;

use crate::api::{LockId, LockMode};

/// So many holders are named to a waiter, even if somebody before it waits for them too: people ask who it is.
const NAMED_HOLDERS: usize = 8;

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) start_ts: Timestamp,
    pub(super) mode: LockMode,
    /// Of this holding at this strength.
    pub(super) lock: LockId,
}

/// Numbers holdings of locks: above those of all earlier terms.
#[derive(Debug)]
pub(super) struct LockIds(u64);

/// The bits of a number below the term. Nothing depends on it that a term counts no further.
const COUNT_BITS: u32 = 40;

impl LockIds {
    pub(super) fn of(term: Term) -> LockIds {
        LockIds(term.get() << COUNT_BITS)
    }

    /// The next number. None is [`LockId::NONE`].
    pub(super) fn take(&mut self) -> LockId {
        self.0 = self.0.wrapping_add(1).max(1);
        LockId::from_raw(self.0)
    }
}

/// The locks of one key.
#[derive(Debug, Default)]
pub(super) struct KeyLocks {
    pub(super) holders: Vec<Holder>,
    pub(super) waiting: VecDeque<Waiter>,
}

/// A place in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) start_ts: Timestamp,
    pub(super) mode: LockMode,
    pub(super) since: Instant,
}

impl KeyLocks {
    pub(super) fn held(&self, start_ts: Timestamp) -> Option<LockMode> {
        self.holder(start_ts).map(|holder| holder.mode)
    }

    pub(super) fn holder(&self, start_ts: Timestamp) -> Option<Holder> {
        self.holders.iter().find(|holder| holder.start_ts == start_ts).copied()
    }

    pub(super) fn place(&self, start_ts: Timestamp) -> Option<usize> {
        self.waiting.iter().position(|waiter| waiter.start_ts == start_ts)
    }

    /// The holders that are in the way of another transaction.
    pub(super) fn holders_against(&self, start_ts: Timestamp, mode: LockMode) -> Vec<Timestamp> {
        let conflicts = |holder: &&Holder| holder.start_ts != start_ts && mode.conflicts_with(holder.mode);
        self.holders.iter().filter(conflicts).map(|holder| holder.start_ts).collect()
    }

    /// Whom a transaction waits for that comes behind the first `ahead` waiters: the holders in its way, and the
    /// waiters in its way up to one that waits for all others of them itself. Empty if nobody is in its way. One that
    /// holds the key already waits for holders only.
    ///
    /// So a queue of n waiters has about n edges in the graph of waits, not n squared, and each waiter still reaches
    /// all that are in its way.
    pub(super) fn behind(&self, start_ts: Timestamp, mode: LockMode, ahead: usize) -> Vec<Timestamp> {
        let mut holders = self.holders_against(start_ts, mode);
        if self.held(start_ts).is_some() {
            return holders;
        }
        let mut waiters = Vec::new();
        for waiter in self.waiting.iter().take(ahead).rev().filter(|waiter| waiter.mode.conflicts_with(mode)) {
            waiters.push(waiter.start_ts);
            if waiter.mode >= mode && self.held(waiter.start_ts).is_none() {
                holders.truncate(NAMED_HOLDERS);
                break;
            }
        }
        holders.extend(waiters.into_iter().rev());
        holders
    }

    /// Locks the key for a transaction that nobody is in the way of. Returns whether it had no lock before.
    pub(super) fn hold(&mut self, start_ts: Timestamp, mode: LockMode, ids: &mut LockIds) -> bool {
        match self.holders.iter_mut().find(|holder| holder.start_ts == start_ts) {
            Some(held) => {
                if mode > held.mode {
                    (held.mode, held.lock) = (mode, ids.take());
                }
                false
            }
            None => {
                self.holders.push(Holder { start_ts, mode, lock: ids.take() });
                true
            }
        }
    }

    /// Makes holders of the waiters that nobody is in the way of any more. Returns them, and whether they had no lock
    /// before.
    pub(super) fn promote(&mut self, ids: &mut LockIds) -> Vec<(Timestamp, bool)> {
        let mut promoted = Vec::new();
        let mut strongest_holder = self.holders.iter().map(|holder| holder.mode).max();
        // Of those that go on waiting.
        let mut strongest_waiter: Option<LockMode> = None;
        let mut place = 0;
        while let Some(Waiter { start_ts, mode, .. }) = self.waiting.get(place).copied() {
            let conflicts = |other: &Option<LockMode>| other.is_some_and(|other| other.conflicts_with(mode));
            let holds = self.held(start_ts).is_some();
            // One that holds the key waits for other holders only.
            let is_blocked = (conflicts(&strongest_holder) || conflicts(&strongest_waiter))
                && (!holds || !self.holders_against(start_ts, mode).is_empty());
            if is_blocked {
                // Whoever comes behind it waits for it, but for those that hold the key: they come first.
                if mode == LockMode::Update && !holds {
                    break;
                }
                strongest_waiter = strongest_waiter.max(Some(mode));
                place += 1;
                continue;
            }
            self.waiting.remove(place);
            promoted.push((start_ts, self.hold(start_ts, mode, ids)));
            strongest_holder = strongest_holder.max(Some(mode));
        }
        promoted
    }

    /// Whether anybody waits for nobody.
    pub(super) fn has_idle_waiter(&self) -> bool {
        let mut waiting = self.waiting.iter().enumerate();
        waiting.any(|(ahead, waiter)| self.behind(waiter.start_ts, waiter.mode, ahead).is_empty())
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
