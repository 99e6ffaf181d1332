//! The advisory locks of one session: how often it holds which, and until when. Pure.
//!
//! As in PostgreSQL: a lock is held as often as it was taken, in each mode, for the session and for the transaction
//! apart. Those of the transaction end with it, or with the savepoint before them; those of the session end only when
//! it gives them up. What the record of the lock has to say follows from the counts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::lock_name::{LockName, Mode};

/// Until when a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Until the session gives it up, or ends.
    Session,
    /// Until the transaction ends.
    Transaction,
}

/// How often a lock is held, by level and mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    session: [u64; 2],
    transaction: [u64; 2],
}

impl Counts {
    fn of(&mut self, level: Level, mode: Mode) -> &mut u64 {
        let counts = match level {
            Level::Session => &mut self.session,
            Level::Transaction => &mut self.transaction,
        };
        match mode {
            Mode::Shared => &mut counts[0],
            Mode::Exclusive => &mut counts[1],
        }
    }

    fn strongest(&self) -> Option<Mode> {
        let held = |at: usize| self.session[at] + self.transaction[at] > 0;
        match (held(1), held(0)) {
            (true, _) => Some(Mode::Exclusive),
            (false, true) => Some(Mode::Shared),
            (false, false) => None,
        }
    }
}

/// So many entries of a lock in the journal, on average, are made one of each mode.
const ENTRIES_PER_LOCK: usize = 8;

/// A lock of which the session holds less than before: what is left.
pub(crate) type Lowered = (LockName, Option<Mode>);

/// The locks of a session.
///
/// Invariants: a lock that is not held is not in `locks`; the counts in `journal` are those of the transaction. It has
/// few entries for a lock since the newest savepoint, however often the lock was taken.
#[derive(Debug, Default)]
pub(crate) struct Held {
    locks: BTreeMap<LockName, Counts>,
    /// What the transaction has taken, and how often, in order.
    journal: Vec<(LockName, Mode, u64)>,
    /// The position of the newest savepoint.
    floor: usize,
    /// What the running attempt of a statement has taken for the session, and how often.
    attempt: BTreeMap<(LockName, Mode), u64>,
}

impl Held {
    /// Whether the session holds no lock.
    pub(crate) fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// The number of locks.
    pub(crate) fn len(&self) -> usize {
        self.locks.len()
    }

    /// The strongest mode in which a lock is held.
    pub(crate) fn mode(&self, name: LockName) -> Option<Mode> {
        self.locks.get(&name)?.strongest()
    }

    /// Counts a lock that was taken.
    pub(crate) fn add(&mut self, name: LockName, mode: Mode, level: Level) {
        let count = self.locks.entry(name).or_default().of(level, mode);
        *count = count.saturating_add(1);
        match level {
            Level::Transaction => {
                self.journal.push((name, mode, 1));
                self.compact();
            }
            Level::Session => *self.attempt.entry((name, mode)).or_default() += 1,
        }
    }

    /// Makes one entry of those since the newest savepoint that say the same, if there are many.
    fn compact(&mut self) {
        let since = self.journal.len() - self.floor;
        if since > ENTRIES_PER_LOCK * self.locks.len() {
            let mut counts = BTreeMap::<(LockName, Mode), u64>::new();
            for (name, mode, count) in self.journal.drain(self.floor..) {
                *counts.entry((name, mode)).or_default() += count;
            }
            self.journal.extend(counts.into_iter().map(|((name, mode), count)| (name, mode, count)));
        }
    }

    /// Gives up one count of the session. `None`: it does not hold the lock so.
    pub(crate) fn unlock(&mut self, name: LockName, mode: Mode) -> Option<Option<Lowered>> {
        let lowered = self.remove((name, mode), 1, Level::Session)?;
        if let Entry::Occupied(mut taken) = self.attempt.entry((name, mode)) {
            *taken.get_mut() -= 1;
            if *taken.get() == 0 {
                taken.remove();
            }
        }
        Some(lowered)
    }

    /// Gives up all that is held for the session.
    pub(crate) fn unlock_all(&mut self) -> Vec<Lowered> {
        self.attempt.clear();
        self.lower_all(|counts| counts.session = [0; 2])
    }

    /// A savepoint begins. Returns its position, for [`Held::rollback_to`].
    pub(crate) fn savepoint(&mut self) -> usize {
        self.compact();
        self.floor = self.journal.len();
        self.floor
    }

    /// Nobody goes back to a savepoint above this one.
    pub(crate) fn release(&mut self, savepoint: usize) {
        self.floor = savepoint.min(self.journal.len());
        self.compact();
    }

    /// Gives up what the transaction has taken since `savepoint`; from 0, all of it.
    pub(crate) fn rollback_to(&mut self, savepoint: usize) -> Vec<Lowered> {
        self.floor = savepoint.min(self.journal.len());
        let taken = self.journal.split_off(self.floor);
        self.remove_all(taken, Level::Transaction)
    }

    /// A statement begins, or begins again.
    pub(crate) fn begin_attempt(&mut self) {
        self.attempt.clear();
    }

    /// Gives up what the attempt has taken for the session, because the statement runs again.
    pub(crate) fn undo_attempt(&mut self) -> Vec<Lowered> {
        let taken = std::mem::take(&mut self.attempt).into_iter();
        self.remove_all(taken.map(|((name, mode), count)| (name, mode, count)), Level::Session)
    }

    /// Forgets everything. Returns what was held.
    pub(crate) fn take_all(&mut self) -> Vec<LockName> {
        self.journal.clear();
        self.floor = 0;
        self.attempt.clear();
        std::mem::take(&mut self.locks).into_keys().collect()
    }

    fn remove_all(&mut self, taken: impl IntoIterator<Item = (LockName, Mode, u64)>, level: Level) -> Vec<Lowered> {
        let mut lowered = BTreeMap::new();
        for (name, mode, count) in taken {
            lowered.extend(self.remove((name, mode), count, level).flatten());
        }
        lowered.into_iter().collect()
    }

    /// `None`: it is not held so often. Otherwise what is left of the lock, if that is less in its record.
    fn remove(&mut self, (name, mode): (LockName, Mode), times: u64, level: Level) -> Option<Option<Lowered>> {
        let Entry::Occupied(mut entry) = self.locks.entry(name) else { return None };
        let before = entry.get().strongest();
        let count = entry.get_mut().of(level, mode);
        *count = count.checked_sub(times)?;
        let left = entry.get().strongest();
        if left.is_none() {
            entry.remove();
        }
        Some((left < before).then_some((name, left)))
    }

    fn lower_all(&mut self, change: impl Fn(&mut Counts)) -> Vec<Lowered> {
        let mut lowered = Vec::new();
        self.locks.retain(|name, counts| {
            let before = counts.strongest();
            change(counts);
            let left = counts.strongest();
            if left < before {
                lowered.push((*name, left));
            }
            left.is_some()
        });
        lowered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Level::{Session, Transaction};
    use Mode::{Exclusive, Shared};

    const A: LockName = LockName::Big(1);
    const B: LockName = LockName::Pair(0, 1);

    #[test]
    fn a_lock_is_held_as_often_as_it_was_taken() {
        let mut held = Held::default();
        held.add(A, Exclusive, Session);
        held.add(A, Exclusive, Session);
        assert_eq!(held.unlock(A, Shared), None, "not in this mode");
        assert_eq!(held.unlock(B, Exclusive), None, "another lock");
        assert_eq!(held.unlock(A, Exclusive), Some(None));
        assert_eq!(held.unlock(A, Exclusive), Some(Some((A, None))));
        assert_eq!((held.unlock(A, Exclusive), held.is_empty()), (None, true));
    }

    #[test]
    fn what_is_left_is_the_strongest_of_both_levels() {
        let mut held = Held::default();
        held.add(A, Shared, Session);
        held.add(A, Exclusive, Transaction);
        held.add(B, Shared, Transaction);
        assert_eq!(held.unlock(A, Exclusive), None, "it is the transaction's");
        assert_eq!(held.rollback_to(0), vec![(A, Some(Shared)), (B, None)]);
        held.add(A, Exclusive, Session);
        assert_eq!(held.unlock(A, Shared), Some(None));
        assert_eq!((held.mode(A), held.len()), (Some(Exclusive), 1));
        assert_eq!(held.unlock_all(), vec![(A, None)]);
    }

    #[test]
    fn a_rollback_to_a_savepoint_gives_up_what_the_transaction_took_since() {
        let mut held = Held::default();
        held.add(A, Exclusive, Transaction);
        let savepoint = held.savepoint();
        held.add(A, Exclusive, Transaction);
        held.add(B, Exclusive, Transaction);
        held.add(B, Exclusive, Session);
        assert_eq!(held.rollback_to(savepoint), vec![], "A is held from before, B for the session");
        assert_eq!(held.unlock_all(), vec![(B, None)]);
        assert_eq!(held.rollback_to(0), vec![(A, None)]);
    }

    /// Regression: each of them was kept by itself.
    #[test]
    fn locks_that_are_taken_again_and_again_take_no_memory() {
        let mut held = Held::default();
        for _ in 0..100 {
            held.savepoint();
            for _ in 0..1_000 {
                held.add(A, Exclusive, Transaction);
                held.add(B, Shared, Transaction);
                held.add(B, Shared, Session);
            }
            held.release(0);
        }
        assert!(held.journal.len() <= 2 * ENTRIES_PER_LOCK && held.attempt.len() == 1);
        let savepoint = held.savepoint();
        held.add(A, Exclusive, Transaction);
        assert_eq!(held.rollback_to(savepoint), vec![]);
        assert_eq!((0..100_000).find_map(|_| held.unlock(B, Shared).flatten()), None, "the transaction has it too");
        assert_eq!(held.rollback_to(0), vec![(A, None), (B, None)]);
        assert!(held.is_empty());
    }

    #[test]
    fn a_statement_that_runs_again_takes_its_locks_again() {
        let mut held = Held::default();
        held.add(A, Exclusive, Session);
        held.begin_attempt();
        held.add(A, Exclusive, Session);
        held.add(B, Exclusive, Session);
        held.add(B, Exclusive, Session);
        held.unlock(B, Exclusive);
        assert_eq!(held.undo_attempt(), vec![(B, None)]);
        assert_eq!(held.unlock(A, Exclusive), Some(Some((A, None))), "that of the statement before");
        assert_eq!(held.take_all(), vec![]);
    }
}
