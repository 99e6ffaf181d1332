//! The live transactions of a node and the tables that they use.
//!
//! Every session has a slot. Its transaction enters a table there before a statement reads or writes it, and *then*
//! looks at the node's catalog. A node that adopts a catalog changes the catalog first, and *then* looks at the slots.
//! So either the statement sees that the table is closed, or the node sees that the statement uses it.
//!
//! Only writers hold up a schema change. A reader that entered a table before the node adopted its closing, with a
//! start_ts, has a snapshot from before the change commits, and reads the old rows to its end. One that takes its
//! start_ts later looks at the catalog again, after its read.
//!
//! A writer that entered a table before the node adopted its closing may still commit: within the same term of the
//! node's lease the schema change waits for it. If the lease was over in between, the change may be complete.
//!
//! Invariants of a slot:
//! 1. A transaction commits only after [`LiveTransaction::begin_commit`], which refuses one that writes to a table that
//!    has changed, or that is closed and was entered under an older term.
//! 2. A doomed transaction never begins a commit. One that has begun its commit is never doomed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tso::Timestamp;
use txn::CommitBound;

use super::snapshot::{Access, Catalog};
use crate::table::{StorageId, Table};

/// A node's lease with the catalog that it plans with.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) catalog: Arc<Catalog>,
    /// Where the catalog was loaded. It is that of every start_ts from here to the end of the lease.
    pub(crate) since: Timestamp,
    /// The start_ts of the acquisition.
    pub(super) term: Timestamp,
    /// The end of the lease.
    pub(super) bound: CommitBound,
}

impl Lease {
    /// Whether a statement with this start_ts holds the lease. Once true, always true.
    pub(crate) fn covers(&self, start_ts: Timestamp) -> bool {
        start_ts <= self.bound.get()
    }
}

/// The slots of a node's sessions.
#[derive(Debug, Default)]
pub(super) struct LiveTransactions {
    slots: Mutex<HashMap<u64, Arc<Slot>>>,
    next: AtomicU64,
    /// Whether a drain waits for transactions to end.
    draining: AtomicBool,
    /// Wakes the drain.
    ended: Notify,
}

/// The transaction of one session.
#[derive(Debug, Default)]
struct Slot {
    live: Mutex<Live>,
    /// Set with `Phase::Doomed`, for a look without the lock.
    doomed: AtomicBool,
}

#[derive(Debug, Default)]
struct Live {
    phase: Phase,
    start_ts: Timestamp,
    uses: Vec<Use>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// No transaction.
    #[default]
    Idle,
    /// A transaction that has not begun its commit.
    Active,
    /// A transaction that commits.
    Committing,
    /// A transaction that must not commit.
    Doomed,
}

#[derive(Debug)]
struct Use {
    table: Arc<Table>,
    writes: bool,
    /// The term of the lease under which the table was entered.
    term: Timestamp,
}

/// A session's slot. Its drop removes the slot.
#[derive(Debug)]
pub(crate) struct SessionSlot {
    id: u64,
    slot: Arc<Slot>,
    all: Arc<LiveTransactions>,
}

/// A transaction in its session's slot. Its drop ends the transaction there.
#[derive(Debug)]
pub(crate) struct LiveTransaction {
    slot: Arc<Slot>,
    all: Arc<LiveTransactions>,
}

/// A look at a transaction that a schema change runs in.
#[derive(Clone, Debug)]
pub(super) struct DoomWatch(Arc<Slot>);

/// Why a transaction may not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A table that it wants to use is closed.
    Closed,
    /// A table that it uses has changed or is gone, or a schema change has ended its patience.
    Changed,
}

impl LiveTransactions {
    /// A slot for a session.
    pub(super) fn register(self: &Arc<LiveTransactions>) -> SessionSlot {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(Slot::default());
        self.slots.lock().insert(id, slot.clone());
        SessionSlot { id, slot, all: self.clone() }
    }

    /// Whether no transaction but the owner of each closing writes to a table that `catalog` closes. With `doom`, those
    /// that have not begun to commit are doomed and count no more. The node has adopted `catalog` before.
    pub(super) fn is_drained(&self, catalog: &Catalog, doom: bool) -> bool {
        if catalog.is_open() {
            self.draining.store(false, Ordering::Release);
            return true;
        }
        self.draining.store(true, Ordering::Release);
        let slots: Vec<Arc<Slot>> = self.slots.lock().values().cloned().collect();
        let busy = slots.iter().filter(|slot| slot.holds_up(catalog, doom)).count();
        self.draining.store(busy > 0, Ordering::Release);
        busy == 0
    }

    /// Whether a drain waits.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Completes when a transaction may have ended for which a drain waits.
    pub(super) async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Whether no session has a transaction.
    pub(super) fn are_idle(&self) -> bool {
        self.slots.lock().values().all(|slot| slot.live.lock().phase == Phase::Idle)
    }
}

impl Live {
    /// Whether the transaction has entered a table, to write to it if `written` has its storage.
    fn has_entered(&self, table: &Table, written: &[StorageId]) -> bool {
        let writes = written.contains(&table.storage);
        self.uses.iter().any(|used| used.table.storage == table.storage && (used.writes || !writes))
    }
}

impl Slot {
    /// Whether the transaction writes to a table that `catalog` closes for another one.
    fn holds_up(&self, catalog: &Catalog, doom: bool) -> bool {
        let mut live = self.live.lock();
        let start_ts = live.start_ts;
        let closed = |used: &Use| catalog.closed_by(used.table.id).is_some_and(|owner| owner != start_ts);
        if !live.uses.iter().any(|used| used.writes && closed(used)) {
            return false;
        }
        match live.phase {
            Phase::Active if doom => {
                live.phase = Phase::Doomed;
                self.doomed.store(true, Ordering::Release);
                false
            }
            Phase::Active | Phase::Committing => true,
            Phase::Idle | Phase::Doomed => false,
        }
    }
}

impl SessionSlot {
    /// Begins a transaction. The session has no other. `start_ts` is [`Timestamp::ZERO`] if it has none yet: then it
    /// owns no schema change.
    pub(crate) fn begin(&self, start_ts: Timestamp) -> LiveTransaction {
        let mut live = self.slot.live.lock();
        assert_eq!(live.phase, Phase::Idle, "a session has one transaction at a time");
        live.phase = Phase::Active;
        live.start_ts = start_ts;
        drop(live);
        LiveTransaction { slot: self.slot.clone(), all: self.all.clone() }
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        self.all.slots.lock().remove(&self.id);
    }
}

impl LiveTransaction {
    /// Whether the transaction has entered all these tables.
    pub(crate) fn has_entered<'t>(
        &self,
        mut tables: impl Iterator<Item = &'t Arc<Table>>,
        written: &[StorageId],
    ) -> bool {
        let live = self.slot.live.lock();
        tables.all(|table| live.has_entered(table, written))
    }

    /// Enters the tables of a statement; `written`: the storages that it writes to. `current` gives the node's lease
    /// and is called after the tables are entered. After a refusal the statement must not run.
    pub(crate) fn enter<'t>(
        &self,
        tables: impl Iterator<Item = &'t Arc<Table>>,
        written: &[StorageId],
        current: impl FnOnce() -> Option<Arc<Lease>>,
    ) -> Result<(), Refusal> {
        let mut live = self.slot.live.lock();
        if live.phase != Phase::Active {
            return Err(Refusal::Changed);
        }
        let (before, start_ts) = (live.uses.len(), live.start_ts);
        for table in tables {
            let writes = written.contains(&table.storage);
            if !live.has_entered(table, written) {
                live.uses.push(Use { table: table.clone(), writes, term: Timestamp::ZERO });
            }
        }
        if live.uses.len() == before {
            return Ok(());
        }
        let lease = current();
        let entered = live.uses.get_mut(before..).unwrap_or_default();
        let refusal = entered.iter_mut().find_map(|used| {
            let lease = lease.as_deref()?;
            used.term = lease.term;
            match lease.catalog.access(&used.table, start_ts) {
                Access::Open => None,
                Access::Closed => Some(Refusal::Closed),
                Access::Changed => Some(Refusal::Changed),
            }
        });
        let refusal = if lease.is_none() { Some(Refusal::Changed) } else { refusal };
        if refusal.is_some() {
            live.uses.truncate(before);
        }
        refusal.map_or(Ok(()), Err)
    }

    /// Begins a later statement, with a snapshot of its own. What earlier ones have read does not matter any more.
    pub(crate) fn begin_statement(&self) {
        self.slot.live.lock().uses.retain(|used| used.writes);
    }

    /// The transaction `start_ts` has taken the snapshot of its statement, after it entered its tables, and has read
    /// with it. `current` gives the node's lease and is called now: it must cover the snapshot and show the tables as
    /// they were planned. So the plan was the right one at `read_ts`, although it was made before. A table that the
    /// transaction writes to may be closed, as in [`LiveTransaction::begin_commit`]: the schema change waits. After a
    /// refusal, what was read does not count.
    pub(crate) fn started(
        &self,
        start_ts: Timestamp,
        read_ts: Timestamp,
        current: impl FnOnce() -> Option<Arc<Lease>>,
    ) -> Result<(), Refusal> {
        let mut live = self.slot.live.lock();
        live.start_ts = start_ts;
        let lease = current().filter(|lease| lease.covers(read_ts)).ok_or(Refusal::Changed)?;
        live.uses.iter().try_for_each(|used| match lease.catalog.access(&used.table, start_ts) {
            Access::Open => Ok(()),
            Access::Closed if used.writes && used.term == lease.term => Ok(()),
            Access::Closed => Err(Refusal::Closed),
            Access::Changed => Err(Refusal::Changed),
        })
    }

    /// Begins the commit. `current` gives the node's lease. The transaction may commit within that lease, whose bound
    /// is returned, if every table that it writes to is the same, and open or entered under the same term.
    pub(crate) fn begin_commit(&self, current: impl FnOnce() -> Option<Arc<Lease>>) -> Result<CommitBound, Refusal> {
        let mut live = self.slot.live.lock();
        if live.phase != Phase::Active {
            return Err(Refusal::Changed);
        }
        live.uses.retain(|used| used.writes);
        let Some(lease) = current() else { return Err(Refusal::Changed) };
        for used in &live.uses {
            match lease.catalog.access(&used.table, live.start_ts) {
                Access::Open => {}
                Access::Closed if used.term == lease.term => {}
                Access::Closed => return Err(Refusal::Closed),
                Access::Changed => return Err(Refusal::Changed),
            }
        }
        live.phase = Phase::Committing;
        Ok(lease.bound.clone())
    }

    /// Whether a schema change has doomed the transaction.
    pub(crate) fn is_doomed(&self) -> bool {
        self.slot.doomed.load(Ordering::Acquire)
    }

    /// For the schema change that runs in the transaction.
    pub(super) fn watch(&self) -> DoomWatch {
        DoomWatch(self.slot.clone())
    }
}

impl Drop for LiveTransaction {
    fn drop(&mut self) {
        let mut live = self.slot.live.lock();
        live.phase = Phase::Idle;
        live.uses.clear();
        self.slot.doomed.store(false, Ordering::Release);
        drop(live);
        if self.all.is_draining() {
            self.all.ended.notify_one();
        }
    }
}

impl DoomWatch {
    /// Whether another schema change has doomed the transaction.
    pub(super) fn is_doomed(&self) -> bool {
        self.0.doomed.load(Ordering::Acquire)
    }
}
