//! INSERT ... ON CONFLICT: looks the unique keys of proposed rows up, and skips or updates the rows that have them.
//!
//! The keys of the arbiters are looked up together, locked if the statement locks rows. An entry of a unique index
//! leads to a row, which is then read, and locked for DO UPDATE. Whoever holds the lock of an entry keeps others from
//! giving it to another row, so the row still has the key; otherwise the statement has met a conflict, and is run
//! again.
//!
//! New rows are plain puts: without locks, if another transaction inserts the same key, the commit conflicts and the
//! retried statement sees that row. A duplicate of a unique key that is no arbiter is an error.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use kv::Key;
use kv::api::{LockMode, Presence, RowFound};
use txn::TxnError;

use super::changes::{STORE_UNITS, rehearse};
use super::context::ExecContext;
use super::cursor;
use super::locking::{Lock, lock_keys};
use super::rows::Row;
use super::writer::{PreparedChange, RowChange, RowWriter, Uniqueness, entry_of};
use crate::codec::index::row_key;
use crate::coop::Turn;
use crate::error::{SqlError, SqlState, storage_error};
use crate::expr::Expr;
use crate::expr::eval::{eval, qualifies};
use crate::plan::{Arbiters, Conflict, TableWrite};
use pgtypes::Datum;

/// The state of an INSERT with ON CONFLICT.
pub(super) struct Upsert<'p> {
    write: &'p TableWrite,
    arbiters: &'p Arbiters,
    /// DO UPDATE; `None` for DO NOTHING.
    update: Option<Update<'p>>,
    /// The keys of the rows that this statement has inserted or changed.
    changed: HashSet<Key>,
    turn: Turn,
}

/// What DO UPDATE assigns, and its condition.
type Update<'p> = (&'p [(usize, Expr)], Option<&'p Expr>);

/// A unique key of a proposed row: of the primary key, or of the index at a position.
type UniqueKey = (Option<usize>, Key);

impl<'p> Upsert<'p> {
    /// `None` for a statement without ON CONFLICT.
    pub(super) fn new(write: &'p TableWrite, conflict: &'p Conflict) -> Option<Upsert<'p>> {
        let (arbiters, update) = match conflict {
            Conflict::Fail => return None,
            Conflict::DoNothing(arbiters) => (arbiters, None),
            Conflict::DoUpdate { arbiters, assignments, filter } => {
                (arbiters, Some((assignments.as_slice(), filter.as_ref())))
            }
        };
        Some(Upsert { write, arbiters, update, changed: HashSet::new(), turn: Turn::new() })
    }

    /// Writes proposed rows. Returns those that were inserted, and updated.
    pub(super) async fn write(
        &mut self,
        writer: &mut RowWriter<'p>,
        rows: Vec<Row>,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<Vec<Row>, SqlError> {
        let proposed = writer.prepare(rows.into_iter().map(RowChange::Insert).collect(), ctx).await?;
        let found = self.look_up(&proposed, ctx).await?;
        let others = self.lock_others(&proposed, &found, ctx).await?;
        let mut written = Vec::with_capacity(proposed.len());
        for change in proposed {
            self.turn.spend(STORE_UNITS).await;
            match (self.existing(&change, &found, ctx).await?, self.update) {
                (None, _) => written.push(self.insert(writer, change, &others, ctx)?),
                (Some(_), None) => {}
                (Some(existing), Some(update)) => {
                    let old = self.old_row(&existing, &found, ctx).await?;
                    let proposed = change.into_row();
                    written.extend(self.change(writer, (existing.1, old), proposed, update, ctx, params).await?);
                }
            }
        }
        Ok(written)
    }

    /// The unique keys of a proposed row: those of arbiters, or the others.
    fn unique_keys<'c>(&self, change: &'c PreparedChange, of_arbiters: bool) -> impl Iterator<Item = UniqueKey> + 'c {
        let has_key = !self.write.table.has_hidden_key() && self.arbiters.primary_key == of_arbiters;
        let indexes: Vec<bool> = self.arbiters.indexes.clone();
        let key = change.new_key().filter(|_| has_key).map(|key| (None, key.clone()));
        let entries = change.unique_entries().filter(move |(at, _)| indexes.get(*at) == Some(&of_arbiters));
        key.into_iter().chain(entries.map(|(at, key)| (Some(at), key.clone())))
    }

    /// The values of the arbiters' keys that exist, and the rows behind them if they are updated.
    async fn look_up(
        &self,
        proposed: &[PreparedChange],
        ctx: &mut ExecContext<'_>,
    ) -> Result<HashMap<Key, Bytes>, SqlError> {
        let unique: Vec<UniqueKey> = proposed.iter().flat_map(|change| self.unique_keys(change, true)).collect();
        let keys: Vec<Key> = unique.iter().map(|(_, key)| key.clone()).collect();
        let presence = if self.update.is_some() { Presence::Any } else { Presence::Absent };
        let mut found = if ctx.locks_rows {
            self.lock_proposed(keys, presence, ctx).await?
        } else {
            let mut found: HashMap<_, _> = ctx.txn.batch_get(&keys).await.map_err(storage_error)?.into_iter().collect();
            if self.update.is_none() && !found.is_empty() {
                // Other transactions may be about to delete them.
                let present = keys.into_iter().filter(|key| found.contains_key(key)).collect();
                let stays = self.lock_proposed(present, presence, ctx).await?;
                found.retain(|key, _| stays.contains_key(key));
            }
            found
        };
        if self.update.is_none() {
            return Ok(found);
        }
        let mut rows = Vec::new();
        for (index, key) in &unique {
            if let (Some(at), Some(value)) = (*index, found.get(key)) {
                rows.push(self.row_of(at, key, value)?);
            }
        }
        rows.retain(|key| !found.contains_key(key));
        let behind = if ctx.locks_rows {
            self.lock_proposed(rows, presence, ctx).await?
        } else {
            ctx.txn.batch_get(&rows).await.map_err(storage_error)?.into_iter().collect()
        };
        found.extend(behind);
        Ok(found)
    }

    /// The key of the row of an entry.
    fn row_of(&self, index: usize, key: &Key, value: &[u8]) -> Result<Key, SqlError> {
        let table = &*self.write.table;
        let index = table.indexes.get(index).ok_or_else(|| SqlError::internal("an index is missing"))?;
        Ok(row_key(table, index, (key, value))?)
    }

    /// Locks the unique keys that are no arbiters, of rows that will be inserted. Returns those that exist.
    async fn lock_others(
        &self,
        proposed: &[PreparedChange],
        found: &HashMap<Key, Bytes>,
        ctx: &mut ExecContext<'_>,
    ) -> Result<HashMap<Key, Bytes>, SqlError> {
        if !ctx.locks_rows {
            return Ok(HashMap::new());
        }
        let is_new =
            |change: &&PreparedChange| !self.unique_keys(change, true).any(|(_, key)| found.contains_key(&key));
        let keys = proposed.iter().filter(is_new).flat_map(|change| self.unique_keys(change, false));
        let keys: Vec<Key> = keys.map(|(_, key)| key).collect();
        self.lock_proposed(keys, Presence::Absent, ctx).await
    }

    /// Locks keys as far as the statement writes them. Returns those that exist, with their values as they are now.
    async fn lock_proposed(
        &self,
        keys: Vec<Key>,
        presence: Presence,
        ctx: &mut ExecContext<'_>,
    ) -> Result<HashMap<Key, Bytes>, SqlError> {
        let (own, mut others): (Vec<Key>, Vec<Key>) = keys.into_iter().partition(|key| ctx.txn.has_written(key));
        let mut found: HashMap<Key, Bytes> =
            ctx.txn.batch_get(&own).await.map_err(storage_error)?.into_iter().collect();
        let mut seen = HashSet::with_capacity(others.len());
        others.retain(|key| seen.insert(key.clone()));
        let lock = Lock::to_change(LockMode::Update, ctx);
        let rows = lock_keys(&self.write.table, others.clone(), (lock, presence, false), ctx).await?;
        for (key, row) in others.into_iter().zip(rows) {
            if let RowFound::Present(value) = row.row {
                found.insert(key, value);
            }
        }
        Ok(found)
    }

    /// The first arbiter's key of a proposed row that exists, and the key of the row that has it.
    async fn existing(
        &self,
        change: &PreparedChange,
        found: &HashMap<Key, Bytes>,
        ctx: &ExecContext<'_>,
    ) -> Result<Option<(UniqueKey, Key)>, SqlError> {
        for (index, key) in self.unique_keys(change, true) {
            let Some(value) = current(&key, found, ctx).await? else { continue };
            let row = match index {
                None => key.clone(),
                Some(at) => self.row_of(at, &key, &value)?,
            };
            return Ok(Some(((index, key), row)));
        }
        Ok(None)
    }

    fn insert(
        &mut self,
        writer: &RowWriter<'p>,
        change: PreparedChange,
        others: &HashMap<Key, Bytes>,
        ctx: &mut ExecContext<'_>,
    ) -> Result<Row, SqlError> {
        let taken =
            self.unique_keys(&change, false).find(|(_, key)| others.contains_key(key) && !ctx.txn.has_written(key));
        if let Some((_, key)) = taken {
            return Err(writer.duplicate(&change, &key, ctx));
        }
        writer.apply(&change, Uniqueness::Known(self.arbiters), ctx)?;
        self.changed.extend(change.new_key().cloned());
        Ok(change.into_row())
    }

    /// The row that is to be updated, which has the unique key.
    async fn old_row(
        &self,
        ((index, unique), key): &(UniqueKey, Key),
        found: &HashMap<Key, Bytes>,
        ctx: &ExecContext<'_>,
    ) -> Result<Row, SqlError> {
        if self.changed.contains(key) {
            return Err(second_time());
        }
        let moved = || SqlError::from(TxnError::Conflict("a row has changed its unique key meanwhile".to_owned()));
        let table = &*self.write.table;
        let value = current(key, found, ctx).await?.ok_or_else(moved)?;
        let old = cursor::decode(table, key, &value, &vec![true; table.columns.len()])?;
        let index = index.and_then(|at| Some((table.indexes.get(at)?, self.write.indexes.get(at)?)));
        if let Some(index) = index {
            let entry = entry_of(self.write, index, (key, &old), &ctx.env(&[]))?;
            if entry.is_none_or(|entry| entry.key != *unique) {
                return Err(moved());
            }
        }
        Ok(old)
    }

    /// DO UPDATE of one row. The expressions see the old row followed by the proposed row. Returns the new row; `None`
    /// if the row does not pass the condition.
    async fn change(
        &mut self,
        writer: &mut RowWriter<'p>,
        (key, old): (Key, Row),
        proposed: Row,
        (assignments, filter): Update<'_>,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<Option<Row>, SqlError> {
        let both: Row = old.iter().cloned().chain(proposed).collect();
        rehearse(filter.into_iter().chain(assignments.iter().map(|(_, expr)| expr)), &both, ctx, params).await?;
        let env = ctx.env(params);
        if ctx.has_changed(&key) {
            return Err(second_time());
        }
        if let Some(filter) = filter
            && !qualifies(filter, &both, &env)?
        {
            return Ok(None);
        }
        self.changed.insert(key.clone());
        let mut new = old.clone();
        for (column, expr) in assignments {
            new[*column] = eval(expr, &both, &env)?.into_owned();
        }
        let changes = writer.prepare(vec![RowChange::Update { key, old, new }], ctx).await?;
        writer.lock(&changes, ctx).await?;
        let Some(change) = changes.into_iter().next() else { return Ok(None) };
        writer.apply(&change, Uniqueness::Required, ctx)?;
        self.changed.extend(change.new_key().cloned());
        Ok(Some(change.into_row()))
    }
}

fn second_time() -> SqlError {
    let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    let hint = "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.";
    SqlError::new(SqlState::CARDINALITY_VIOLATION, message).hint(hint)
}

/// The value of a key: what the transaction has written last, or what was found.
async fn current(key: &Key, found: &HashMap<Key, Bytes>, ctx: &ExecContext<'_>) -> Result<Option<Bytes>, SqlError> {
    if ctx.txn.has_written(key) {
        return ctx.txn.get(key).await.map_err(storage_error);
    }
    Ok(found.get(key).cloned())
}
