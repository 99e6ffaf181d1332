//! Locks that a session holds under a name of its own, across its transactions: keys that nobody writes, in the memory
//! of their leaders.
//!
//! They are row locks (`row_locks.rs`) whose owner is no transaction: with the same queues, kept by the same keeper,
//! and found by the same detector of deadlocks. Like them they are lost with their leader, so they protect nothing by
//! themselves: they are the queue before a record that does.

use std::time::Duration;

use kv::Key;
use kv::api::{LockMode, Presence};
use tso::Timestamp;

use crate::database::Database;
use crate::error::TxnError;
use crate::row_locks::{LockAsk, LockWait, RowLocks};

/// The locks of a session under a name of its own. All are given up when it is dropped.
pub struct SessionLocks {
    locks: RowLocks,
}

impl Database {
    /// Locks for a session, under a new name. `session` is for people.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub async fn session_locks(&self, session: u32) -> Result<SessionLocks, TxnError> {
        let name = self.coordinator().tso.timestamp().await?;
        Ok(SessionLocks { locks: RowLocks::new(self.coordinator(), name, session) })
    }
}

impl SessionLocks {
    /// The name: a timestamp that nothing else has.
    pub fn name(&self) -> Timestamp {
        self.locks.name()
    }

    /// Sets a byte that the reports of its waits have behind the key: it says what the wait is for.
    pub fn set_mark(&mut self, mark: u8) {
        self.locks.set_mark(mark);
    }

    /// Locks a key, and waits for others as `wait` says. `transaction` is that of the session, if it may hold row
    /// locks.
    ///
    /// # Errors
    /// - [`TxnError::NotAvailable`], [`TxnError::LockTimeout`]: another one has the lock.
    /// - [`TxnError::Deadlock`]: it waits for this session.
    /// - [`TxnError::Unavailable`], [`TxnError::Internal`]: as for reads.
    ///
    /// After an error the key may be locked, or have a place in the queue, until it is given up.
    ///
    /// # Cancel safety
    /// The future may be dropped, with the effect of an error.
    pub async fn acquire(
        &mut self,
        key: &Key,
        (mode, wait): (LockMode, LockWait),
        transaction: Option<Timestamp>,
    ) -> Result<(), TxnError> {
        self.locks.set_companion(transaction);
        let ask = LockAsk { mode, presence: Presence::Any, was_read: false, wait };
        self.locks.acquire(vec![key.clone()], ask, (None, Timestamp::ZERO)).await.map(drop)
    }

    /// Waits for `pause`, on the word that `holders` are in the way at `key`.
    ///
    /// # Errors
    /// [`TxnError::Deadlock`]: they wait for this session.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time.
    pub async fn wait_for(
        &mut self,
        (key, holders): (&Key, Vec<Timestamp>),
        transaction: Option<Timestamp>,
        wait: impl Future<Output = ()>,
    ) -> Result<(), TxnError> {
        self.locks.set_companion(transaction);
        self.locks.report_while((key.clone(), holders), wait).await
    }

    /// Gives up keys, and places in their queues. Waits until they are given up, for `limit` at most; later they are
    /// given up all the same.
    ///
    /// # Cancel safety
    /// The future may be dropped once it was polled: the keys are given up all the same.
    pub async fn give_up(&mut self, keys: &[Key], limit: Duration) {
        // Later they end with their ttl, once the session is gone.
        let _ = tokio::time::timeout(limit, self.locks.give_up(keys)).await;
    }
}
