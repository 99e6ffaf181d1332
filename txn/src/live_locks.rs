//! The transactions of a node that may have row locks, and the rows that they have asked for: what the keeper tells the
//! leaders (`row_locks.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use kv::Key;
use kv::api::LockRef;
use kv::client::Client;
use parking_lot::Mutex;
use tso::Timestamp;

/// The rows that a transaction has asked for. Shared with the keeper.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) start_ts: Timestamp,
    /// The session of the transaction, for people.
    pub(crate) session: u32,
    pub(crate) keys: Mutex<BTreeSet<Key>>,
    /// What it waits for now: 0 for nothing, else a [`LockKind`].
    waits_for: AtomicU8,
}

/// What the locks of a name are: those of a transaction, or those of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Of rows, until the transaction ends.
    Row,
    /// Of what a session locks under a name of its own.
    Session,
}

impl Asked {
    pub(crate) fn new(start_ts: Timestamp, session: u32) -> Asked {
        Asked { start_ts, session, keys: Mutex::default(), waits_for: AtomicU8::new(0) }
    }

    /// Notes that it waits, until the note is dropped.
    pub(crate) fn note_wait(&self, kind: LockKind) -> WaitNote<'_> {
        let number = match kind {
            LockKind::Row => 1,
            LockKind::Session => 2,
        };
        self.waits_for.store(number, Ordering::Relaxed);
        WaitNote(&self.waits_for)
    }

    fn wait(&self) -> Option<LockKind> {
        match self.waits_for.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(LockKind::Row),
            _ => Some(LockKind::Session),
        }
    }
}

/// The note that a name waits for a lock.
pub(crate) struct WaitNote<'a>(&'a AtomicU8);

impl Drop for WaitNote<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The transactions of a node that may have row locks.
#[derive(Debug, Default)]
pub(crate) struct LiveLocks {
    state: Mutex<LiveState>,
}

#[derive(Debug, Default)]
struct LiveState {
    asked: BTreeMap<Timestamp, Arc<Asked>>,
    is_kept: bool,
}

impl LiveLocks {
    /// Keeps the row locks of a transaction until it leaves. Returns whether the caller has to start the keeper.
    pub(crate) fn enter(&self, asked: Arc<Asked>) -> bool {
        let mut state = self.state.lock();
        state.asked.insert(asked.start_ts, asked);
        !std::mem::replace(&mut state.is_kept, true)
    }

    /// The transaction has ended.
    pub(crate) fn leave(&self, start_ts: Timestamp) {
        self.state.lock().asked.remove(&start_ts);
    }

    /// The transactions, with their sessions.
    pub(crate) fn sessions(&self) -> Vec<(Timestamp, u32)> {
        self.state.lock().asked.values().map(|asked| (asked.start_ts, asked.session)).collect()
    }

    /// The sessions that wait for locks of others, and for what.
    pub(crate) fn waiting(&self) -> Vec<(u32, LockKind)> {
        self.state.lock().asked.values().filter_map(|asked| Some((asked.session, asked.wait()?))).collect()
    }

    /// What the leaders are to be told. `None`, and the keeper ends, if there is no transaction.
    pub(crate) fn to_refresh(&self, kv: &Client) -> Option<Vec<LockRef>> {
        let mut state = self.state.lock();
        if state.asked.is_empty() {
            state.is_kept = false;
            return None;
        }
        let of_one = |asked: &Arc<Asked>| {
            let start_ts = asked.start_ts;
            let keys = kv.one_of_each_region(&asked.keys.lock());
            keys.into_iter().map(move |key| LockRef { key, start_ts })
        };
        Some(state.asked.values().flat_map(of_one).collect())
    }
}
