//! Row locks: the requests for locks that live in the memory of a region's leader, and their answers.
//!
//! A transaction that locks a row before it writes it, as PostgreSQL does, asks the leader. The lock is no record: it
//! is lost with its leader, and it frees itself when its transaction is not heard of for a while. So it makes others
//! wait and protects nothing by itself. The prewrite checks again that nobody has changed the row since
//! ([`Mutation::seen_ts`](super::Mutation::seen_ts)), and leaves the lock that counts. Whoever relies on more than
//! that, because others that share the row leave no trace on it, has the prewrite check that the lock was held all the
//! time ([`Mutation::lock`](super::Mutation::lock)).

use std::fmt;

use bytes::Bytes;
use tso::Timestamp;

use crate::key::Key;

/// A lock that blocks a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// The locked key.
    pub key: Key,
    /// The primary of the holder.
    pub primary: Key,
    /// The holder.
    pub start_ts: Timestamp,
    /// Life of the lock, in milliseconds from the physical part of `start_ts`.
    pub ttl_ms: u64,
}

impl fmt::Display for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} by {} for {} ms, primary {:?}", self.key, self.start_ts, self.ttl_ms, self.primary)
    }
}

/// The strength of a row lock, weakest first, as of PostgreSQL's `FOR KEY SHARE` to `FOR UPDATE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockMode {
    /// The row stays, and its key.
    KeyShare,
    /// The row stays as it is.
    Share,
    /// The row is about to be changed, but not its key.
    NoKeyUpdate,
    /// The row is about to be changed, deleted or inserted.
    Update,
}

impl LockMode {
    /// Whether two transactions cannot hold these locks on one row. A stronger lock conflicts with all that a weaker
    /// one conflicts with.
    pub const fn conflicts_with(self, other: LockMode) -> bool {
        match self {
            LockMode::KeyShare => matches!(other, LockMode::Update),
            LockMode::Share => matches!(other, LockMode::NoKeyUpdate | LockMode::Update),
            LockMode::NoKeyUpdate => !matches!(other, LockMode::KeyShare),
            LockMode::Update => true,
        }
    }
}

/// One holding of a row lock at one strength. A lock that was lost and taken again, or changed its strength, has
/// another number. Numbers are told apart for one row and transaction only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockId(u64);

impl LockId {
    /// Of a row that is not locked.
    pub const NONE: LockId = LockId(0);

    /// The number.
    pub const fn from_raw(raw: u64) -> LockId {
        LockId(raw)
    }

    /// As [`LockId::from_raw`] takes it.
    pub const fn raw(self) -> u64 {
        self.0
    }
}

/// Which rows are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// All: also a key that has no row.
    Any,
    /// Those that exist, for UPDATE, DELETE and SELECT FOR UPDATE.
    Present,
    /// Those that do not exist, for INSERT ON CONFLICT DO NOTHING.
    Absent,
    /// As `Absent`; a row that exists is an error, for INSERT.
    MustBeAbsent,
}

/// What to do about a lock of another transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Queue up, and answer with what was locked after this many milliseconds. The place in the queue stays for the
    /// next request.
    Queue {
        /// The time.
        ms: u32,
    },
    /// Answer at once with what was locked.
    Fail,
    /// Leave the row out.
    Skip,
}

/// A transaction, and a row that it may have locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRef {
    /// The row.
    pub key: Key,
    /// The transaction.
    pub start_ts: Timestamp,
}

/// A transaction waits for others. Reported again and again while it does, to the detector of deadlocks, which the
/// leader of the first region has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitReport {
    /// A key of the first region.
    pub at: Key,
    /// The transaction that waits.
    pub waiter: Timestamp,
    /// Those that it waits for. Empty: it does not wait any more.
    pub holders: Vec<Timestamp>,
    /// The session of the transaction, for people.
    pub session: u32,
    /// The row.
    pub row: Key,
    /// The newest clock of the detector that the waiter had heard before it asked for whom it waits.
    pub as_of: DetectorClock,
}

/// The number of reports that a detector of deadlocks has taken, on top of the term of its leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DetectorClock(pub u64);

/// Asks for locks on rows of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireRequest {
    /// The rows, distinct. They are locked in this order.
    pub keys: Vec<Key>,
    /// The transaction.
    pub start_ts: Timestamp,
    /// The strength.
    pub mode: LockMode,
    /// Which of the rows.
    pub presence: Presence,
    /// The snapshot of a transaction that must not see what was committed after it. `None`: the newest row counts.
    pub snapshot: Option<Timestamp>,
    /// The timestamp at which the transaction has read the rows. A row that has changed since is answered with its new
    /// value. [`Timestamp::ZERO`]: it has not read them.
    pub seen_ts: Timestamp,
    /// What to do about the locks of others.
    pub waiting: Waiting,
}

/// The answer to an [`AcquireRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acquired {
    /// What became of the first rows of the request, in its order. There may be more left although none is blocked, if
    /// the answer is long.
    pub rows: Vec<LockedRow>,
    /// Who holds the lock of the next one. `None` if there is no next one.
    pub blocked: Option<Blocked>,
}

/// What became of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedRow {
    /// Whether the transaction has the lock.
    pub is_locked: bool,
    /// Its holding of the lock; [`LockId::NONE`] if it has none.
    pub lock: LockId,
    /// When the newest record of the key was committed; [`Timestamp::ZERO`] if there is none, or if the row is skipped.
    pub commit_ts: Timestamp,
    /// The row.
    pub row: RowFound,
}

/// The newest state of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowFound {
    /// That of `seen_ts`.
    Unchanged,
    /// It has changed, or was not read before: it does not exist, or not for this transaction.
    Absent,
    /// It has changed, or was not read before.
    Present(Bytes),
    /// Another transaction has the lock, and the row is left out.
    Skipped,
}

/// Who is in the way of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The transactions that hold the row.
    pub holders: Vec<Timestamp>,
    /// The lock record in the way, if it is one. Its transaction commits, or it is dead.
    pub record: Option<LockInfo>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of PostgreSQL's manual (13.3.2, row-level locks).
    #[test]
    fn modes_conflict_as_in_postgresql() {
        use LockMode::{KeyShare, NoKeyUpdate, Share, Update};
        let modes = [KeyShare, Share, NoKeyUpdate, Update];
        let expected = ["...#", "..##", ".###", "####"];
        for (a, row) in modes.into_iter().zip(expected) {
            let found: String = modes.iter().map(|b| if a.conflicts_with(*b) { '#' } else { '.' }).collect();
            assert_eq!(found, row, "{a:?}");
        }
        assert!(modes.is_sorted(), "weakest first");
    }
}
