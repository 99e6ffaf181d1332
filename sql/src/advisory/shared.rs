//! The advisory locks of one session, as the work that outlives a statement sees them.
//!
//! A statement may be cancelled at any time, also while it takes a lock, and a session may end. So what changes records
//! runs in tasks of its own, one at a time for each session, and what is to be given up is noted first and given up
//! until that has succeeded.
//!
//! Invariants:
//! 1. Whoever changes the records or the queues of the session holds `queue`.
//! 2. A lock that the session may have in a record, and does not want, is in `dirty`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tso::Timestamp;
use txn::{SessionLocks, TxnError};

use super::node::{Claim, NodeLocks, Taken};
use crate::clock;
use crate::error::SqlError;
use crate::lock_name::{LockName, Mode};

/// How long one attempt to leave the queues of locks may take.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
/// The longest pause between two attempts to give locks up.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The locks of a session, shared with its tasks.
pub(super) struct Shared {
    pub(super) node: NodeLocks,
    pub(super) name: Timestamp,
    /// The places of the session in the queues of locks.
    pub(super) queue: Arc<tokio::sync::Mutex<SessionLocks>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The term of the node's lease under which the session holds locks.
    term: Timestamp,
    /// What the session wants to keep of the locks in `dirty`.
    wanted: BTreeMap<LockName, Mode>,
    dirty: BTreeMap<LockName, Dirty>,
    notes: u64,
}

/// What is to be done about a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dirty {
    /// Whether the record is to be changed, beside the queue.
    in_record: bool,
    /// Tells a later note of the same lock apart.
    note: u64,
}

impl Shared {
    pub(super) fn new(node: NodeLocks, queue: SessionLocks) -> Shared {
        let (name, queue) = (queue.name(), Arc::new(tokio::sync::Mutex::new(queue)));
        Shared { node, name, queue, state: Mutex::default() }
    }

    pub(super) fn term(&self) -> Timestamp {
        self.state.lock().term
    }

    pub(super) fn set_term(&self, term: Timestamp) {
        self.state.lock().term = term;
    }

    /// Notes that the session wants only this much of a lock.
    fn note(&self, lock: LockName, wanted: Option<Mode>, in_record: bool) {
        let mut state = self.state.lock();
        state.notes += 1;
        let note = state.notes;
        let in_record = in_record || state.dirty.get(&lock).is_some_and(|dirty| dirty.in_record);
        state.dirty.insert(lock, Dirty { in_record, note });
        match wanted {
            Some(mode) => drop(state.wanted.insert(lock, mode)),
            None => drop(state.wanted.remove(&lock)),
        }
    }

    /// Gives up locks but for these modes, in the background.
    pub(super) fn lower(self: &Arc<Shared>, locks: impl IntoIterator<Item = (LockName, Option<Mode>)>) {
        for (lock, wanted) in locks {
            self.note(lock, wanted, true);
        }
        self.start();
    }

    fn start(self: &Arc<Shared>) {
        if tokio::runtime::Handle::try_current().is_ok() {
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.settle().await });
        }
    }

    /// Whether [`Shared::settle`] has something to do.
    pub(super) fn is_unsettled(&self) -> bool {
        !self.state.lock().dirty.is_empty()
    }

    /// Returns once everything is given up that is to be.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time: a task goes on.
    pub(super) async fn settle(&self) {
        if !self.is_unsettled() {
            return;
        }
        let mut queue = self.queue.lock().await;
        let mut pause = Duration::from_millis(10);
        loop {
            let (term, dirty, wanted) = {
                let state = self.state.lock();
                (state.term, state.dirty.clone(), state.wanted.clone())
            };
            if dirty.is_empty() {
                return;
            }
            let in_record = dirty.iter().filter(|(_, dirty)| dirty.in_record);
            let lowered: Vec<_> = in_record.map(|(lock, _)| (*lock, wanted.get(lock).copied())).collect();
            let is_lost = self.node.current().is_none_or(|lease| lease.term != term);
            match self.node.lower(self.name, &lowered).await {
                Ok(()) => {}
                // What is held under a term that is over is held no more.
                Err(_) if is_lost => {}
                Err(TxnError::Conflict(_) | TxnError::Undetermined { .. }) => {
                    clock::sleep(clock::jitter(Duration::from_millis(10))).await;
                    continue;
                }
                Err(error) => {
                    tracing::debug!(%error, "advisory locks are not given up yet");
                    clock::sleep(clock::jitter(pause)).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                    continue;
                }
            }
            // One that is kept in a weaker mode leaves the queue too: nobody shares it there with a stronger one.
            let left: Vec<_> = dirty.keys().map(|lock| lock.queue_key()).collect();
            queue.give_up(&left, LEAVE_LIMIT).await;
            let mut state = self.state.lock();
            state.dirty.retain(|lock, now| dirty.get(lock) != Some(now));
            let State { dirty, wanted, .. } = &mut *state;
            wanted.retain(|lock, _| dirty.contains_key(lock));
        }
    }

    /// Takes a lock as its record allows, in a task of its own.
    ///
    /// # Cancel safety
    /// The future may be dropped: `attempt` gives the lock up.
    pub(super) async fn take(&self, claim: Claim, attempt: &mut Attempt) -> Result<Taken, SqlError> {
        let queue = Arc::clone(&self.queue).lock_owned().await;
        attempt.in_record = true;
        let (sender, receiver) = oneshot::channel();
        let node = self.node.clone();
        tokio::spawn(async move {
            let mut unknown = false;
            let taken = node.take(&claim, &mut unknown).await;
            // The task that gives the lock up waits until here.
            drop(queue);
            // Nobody may be there any more.
            let _ = sender.send((taken, unknown));
        });
        let Ok((taken, unknown)) = receiver.await else {
            return Err(SqlError::internal("a task that takes an advisory lock has failed"));
        };
        // The caller says at once that it has it.
        attempt.in_record = unknown || taken == Ok(Taken::Held);
        taken
    }
}

/// An attempt to take a lock. If it is dropped without success, what it has got is given up.
pub(super) struct Attempt {
    shared: Arc<Shared>,
    lock: LockName,
    /// What the session had of the lock.
    before: Option<Mode>,
    /// Whether the record may say more now.
    in_record: bool,
    /// Whether the session holds no other lock.
    is_first: bool,
    is_over: bool,
}

impl Attempt {
    pub(super) fn new(shared: &Arc<Shared>, (lock, before): (LockName, Option<Mode>), is_first: bool) -> Attempt {
        Attempt { shared: Arc::clone(shared), lock, before, in_record: false, is_first, is_over: false }
    }

    /// The session has the lock.
    pub(super) fn succeed(mut self) {
        self.is_over = true;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_over {
            if self.is_first {
                self.shared.node.leave(self.shared.name);
            }
            self.shared.note(self.lock, self.before, self.in_record);
            self.shared.start();
        }
    }
}
