//! What a coordinator asks of the prewrite of a transaction, and what the regions made of it.

use tso::Timestamp;

use super::error::ClientError;
use crate::api::{CommitBounds, Response};
use crate::key::Key;

/// How far a prewrite may take the commit of its transaction.
#[derive(Clone, Copy, Debug)]
pub struct CommitAttempt<'a> {
    /// The key whose record decides the transaction.
    pub primary: &'a Key,
    /// The transaction.
    pub start_ts: Timestamp,
    /// The name of its row locks, if that is another one; see [`PrewriteRequest::locker`](crate::api::PrewriteRequest).
    pub locker: Option<Timestamp>,
    /// The bounds of a computed commit_ts.
    pub bounds: CommitBounds,
    /// Whether a region that holds all keys may commit them at once.
    pub one_phase: bool,
    /// Whether the regions may lock the keys with the async flag. No mutation is a `CheckNotExists` then.
    pub async_commit: bool,
}

/// The result of a prewrite that may have been the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitAttempted {
    /// What became of the keys, or the first error.
    pub result: Result<Prewritten, ClientError>,
    /// Whether every request held all mutations of the transaction.
    pub is_whole: bool,
    /// Whether a request may have been delivered and was not answered: it may still take effect. A whole request that
    /// was answered later settles the earlier copies too; see `percolator::prewrite`.
    pub unanswered: bool,
}

/// What a prewrite did with the keys of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prewritten {
    /// They are locked for two phases. Some may have the async flag, but not all.
    Locked,
    /// All are locked with the async flag: the transaction is committed.
    AsyncLocked {
        /// Its commit_ts.
        commit_ts: Timestamp,
    },
    /// The transaction is committed.
    Committed {
        /// Its commit_ts.
        commit_ts: Timestamp,
    },
}

impl Prewritten {
    /// What the answers of all requests say together.
    pub(super) fn of(answers: &[Response]) -> Prewritten {
        let (mut committed, mut locked, mut is_async) = (None, Timestamp::ZERO, !answers.is_empty());
        for answer in answers {
            match answer {
                Response::Committed { commit_ts } => committed = Some(*commit_ts),
                Response::AsyncLocked { min_commit_ts } => locked = locked.max(*min_commit_ts),
                _ => is_async = false,
            }
        }
        match committed {
            Some(commit_ts) => Prewritten::Committed { commit_ts },
            None if is_async => Prewritten::AsyncLocked { commit_ts: locked },
            None => Prewritten::Locked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lock_without_the_async_flag_means_two_phases() {
        let ts = |raw| Timestamp::from_raw(raw);
        let locked = |raw| Response::AsyncLocked { min_commit_ts: ts(raw) };
        let committed = Response::Committed { commit_ts: ts(9) };
        assert_eq!(Prewritten::of(&[]), Prewritten::Locked);
        assert_eq!(Prewritten::of(&[locked(5), locked(7)]), Prewritten::AsyncLocked { commit_ts: ts(7) });
        assert_eq!(Prewritten::of(&[locked(5), Response::Done]), Prewritten::Locked);
        assert_eq!(Prewritten::of(&[locked(5), committed]), Prewritten::Committed { commit_ts: ts(9) });
    }
}
