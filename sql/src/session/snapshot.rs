//! Which snapshot a statement reads, and how its reads choose their replicas: decided by the session's settings, the
//! statement's hints and AS OF SYSTEM TIME, and the state of its transaction.
//!
//! A transaction that may write has a snapshot of its own, a timestamp that no other transaction has. The snapshots of
//! the others are shared: one in the past, or the newest that a replica can prove. Only a transaction that cannot write
//! gets one: a statement that is known to be alone in its transaction and only reads, or a READ ONLY transaction; and
//! where old data is asked for, every other statement is refused (25006). So no write depends on data that was old.
//!
//! The catalog of a shared snapshot: one in the past is planned with the catalog of that time. One that a replica takes
//! is not below the timestamp at which the node has loaded its catalog: the floor is raised to it. After a schema
//! change such reads wait for a replica to catch up, for some 200 ms, and no statement looks for another catalog.

use std::sync::Arc;
use std::time::Duration;

use kv::client::{ReadOptions, ReadTrace};
use tso::Timestamp;
use txn::Transaction;

use super::fault::Fault;
use super::interrupt::in_time;
use super::reads::{Hints, ReadSettings, Resolved, Staleness, Wanted};
use super::state::{ActiveTxn, Session};
use super::statement::{BoundStatement, Query};
use super::txn_state::Block;
use crate::catalog::Lease;
use crate::error::{SqlError, SqlState};
use crate::exec::KeyLines;

/// A transaction that begins.
struct Begun {
    lease: Arc<Lease>,
    txn: Transaction,
    /// The least snapshot that a replica may take.
    floor: Option<Timestamp>,
}

impl Session {
    /// Sees to it that the transaction has the snapshot that a statement wants.
    pub(crate) async fn begin_for(&mut self, query: &Query) -> Result<(), Fault> {
        let wanted = self.wanted(query)?;
        if let Some(active) = &self.active {
            if active.wanted == wanted {
                if let Some(active) = self.active.as_mut().filter(|_| self.executed > 0) {
                    active.look_again(&self.node.catalog);
                }
                return Ok(());
            }
            let in_block = self.state.block() == Block::Explicit;
            let is_unused = self.executed == 0 && active.schema.is_none();
            // A statement that has read a snapshot of its own has ended, and nothing was written beside it.
            let is_apart = !in_block && active.wanted != Wanted::Own && !self.has_open_run();
            if !is_unused && !is_apart {
                let asks = query.as_of.is_some() || staleness_of(query).is_some();
                return if asks { Err(not_alone().into()) } else { Ok(()) };
            }
            self.active = None;
        }
        let reads = self.read_settings(query.hints.as_deref()).for_snapshot(&wanted);
        let Begun { lease, txn, floor } = if wanted == Wanted::Own {
            let begin = async { Ok::<_, Fault>(self.node.catalog.begin_deferred().await?) };
            let (lease, txn) = match reads.patience().filter(|_| query.is_read) {
                None => self.interrupt.guard(self.deadline, begin).await?,
                patience => Box::pin(self.interrupt.guard(self.deadline, in_time(patience, begin))).await?,
            };
            Begun { lease, txn, floor: None }
        } else {
            let begin = in_time(reads.patience(), self.begin_shared(&wanted, reads));
            Box::pin(self.interrupt.guard(self.deadline, begin)).await?
        };
        if wanted == Wanted::Session {
            self.settings.live.confirm();
        }
        let mut txn = txn;
        txn.set_session(self.pid.cast_unsigned());
        self.advisory.introduce(&mut txn);
        let live = self.slot.begin(txn.start_ts());
        let is_started = txn.start_ts() > Timestamp::ZERO;
        // One in the past has no other.
        let by_statement = self.state.isolation().is_by_statement() && (wanted == Wanted::Own || floor.is_some());
        let (schema, writes, copied) = (None, false, KeyLines::default());
        self.active =
            Some(ActiveTxn { txn, lease, wanted, floor, is_started, live, schema, by_statement, writes, copied });
        Ok(())
    }

    /// Whether a portal or cursor has to read more rows of the transaction.
    fn has_open_run(&self) -> bool {
        self.portals.iter().any(|(_, portal)| portal.is_running())
    }

    /// Begins a transaction with a shared snapshot.
    async fn begin_shared(&self, wanted: &Wanted, reads: ReadSettings) -> Result<Begun, Fault> {
        let catalog = &self.node.catalog;
        let resolved = match wanted {
            Wanted::Own => return Err(SqlError::internal("a shared snapshot for a writer").into()),
            Wanted::At(at) => Resolved::At(*at),
            Wanted::Clause(moment) => moment.resolve(catalog.now().await?, self.settings.zone())?,
            Wanted::Stale(Staleness::Exact(age)) => Resolved::At(before(catalog.now().await?, *age)),
            Wanted::Stale(Staleness::AtMost(age)) => Resolved::NotBelow(before(catalog.now().await?, *age)),
            Wanted::Stale(Staleness::Fresh | Staleness::Unbounded) => Resolved::NotBelow(Timestamp::ZERO),
            Wanted::Session => {
                if let Some(claimed) = self.settings.live.unconfirmed() {
                    catalog.check_issued(claimed).await?;
                }
                Resolved::NotBelow(self.settings.live.token())
            }
        };
        match resolved {
            Resolved::At(at) => {
                let options = (!reads.is_plain()).then(|| reads.options(wanted, None, (true, false)));
                let (lease, txn) = catalog.begin_at(at, options).await?;
                Ok(Begun { lease, txn, floor: None })
            }
            Resolved::NotBelow(floor) => {
                if matches!(wanted, Wanted::Clause(_)) {
                    catalog.check_issued(floor).await?;
                }
                let (lease, txn) = catalog.begin_shared().await?;
                let floor = if wanted.is_unproven() { floor } else { floor.max(lease.since) };
                Ok(Begun { lease, txn, floor: Some(floor) })
            }
        }
    }

    /// The snapshot that a statement wants. 25001 if it asks for one of its own within a block.
    fn wanted(&self, query: &Query) -> Result<Wanted, SqlError> {
        let in_block = self.state.block() == Block::Explicit;
        if (query.as_of.is_some() || staleness_of(query).is_some()) && in_block {
            return Err(not_alone());
        }
        if let Some(moment) = query.as_of.as_ref().filter(|_| query.is_read) {
            return Ok(Wanted::Clause(moment.clone()));
        }
        let reads = self.read_settings(query.hints.as_deref());
        if let Some(at) = self.state.as_of() {
            return Ok(Wanted::At(at));
        }
        if reads.staleness != Staleness::Fresh && (query.is_read || in_block) {
            return Ok(Wanted::Stale(reads.staleness));
        }
        let cannot_write = self.state.read_only() || (self.is_alone && query.is_read && !in_block);
        Ok(if reads.session_snapshot && cannot_write { Wanted::Session } else { Wanted::Own })
    }

    /// The settings of reads, with a statement's hints.
    fn read_settings(&self, hints: Option<&Hints>) -> ReadSettings {
        let settings = self.settings.reads();
        hints.map_or(settings, |hints| hints.over(settings))
    }

    /// 25006 for a statement that writes where old data is asked for.
    pub(crate) fn check_stale_write(&self, query: &Query, command: &str) -> Result<(), SqlError> {
        let is_old = self.active.as_ref().is_some_and(|active| active.wanted.is_stale());
        let asked = query.as_of.is_some() || self.read_settings(query.hints.as_deref()).staleness != Staleness::Fresh;
        if !is_old && !asked {
            return Ok(());
        }
        let message = format!("cannot execute {command} in a read-only transaction");
        let error = SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, message);
        Err(error.detail("The transaction reads a snapshot of the past, so it cannot write."))
    }

    /// How the reads of a statement choose their replicas, in the transaction that has begun for it. `None`: leaders
    /// serve them, and nobody counts.
    pub(crate) fn read_options(&self, query: &Query, bound: &BoundStatement) -> Option<Arc<ReadOptions>> {
        let active = self.active.as_ref()?;
        let counts_regions = bound.plan.counts_reads();
        if bound.plan.writes {
            // Leaders serve what writes.
            return counts_regions
                .then(|| Arc::new(ReadOptions { trace: ReadTrace::with_regions(), ..ReadOptions::default() }));
        }
        let settings = self.read_settings(query.hints.as_deref()).for_snapshot(&active.wanted);
        let is_counted = self.counts_reads || counts_regions;
        if settings.is_plain() && active.floor.is_none() && !is_counted {
            return None;
        }
        // SET TRANSACTION READ ONLY may follow a write. What is not committed is nobody else's.
        let cannot_write = active.wanted != Wanted::Own || self.is_alone || self.state.read_only();
        let read_only = cannot_write && active.txn.is_unwritten();
        Some(settings.options(&active.wanted, active.floor, (read_only, counts_regions)))
    }
}

/// The staleness that a statement's hint asks for.
fn staleness_of(query: &Query) -> Option<Staleness> {
    query.hints.as_ref().and_then(|hints| hints.staleness()).filter(|staleness| *staleness != Staleness::Fresh)
}

fn before(now: Timestamp, age: Duration) -> Timestamp {
    // A part of a millisecond makes it older.
    let ms = u64::try_from(age.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
    // Not zero, which stands for no timestamp.
    Timestamp::new(now.physical_ms().saturating_sub(ms).max(1), 0)
}

fn not_alone() -> SqlError {
    let message = "a statement in a transaction block cannot have a snapshot of its own";
    SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message).hint("Use BEGIN AS OF SYSTEM TIME.")
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
