//! INSERT.
//!
//! Uniqueness of the primary key costs no read: the write requires that the key does not exist, and the commit checks
//! it. A statement that locks its rows locks the keys in batches: it waits for others that insert them, and reports the
//! error itself, as in PostgreSQL.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use kv::Key;
use kv::api::{LockMode, Presence, RowFound};

use super::budget::Budget;
use super::changes::{Changes, STORE_UNITS, find_used, lock_unused, rehearse, store_error};
use super::context::ExecContext;
use super::cursor;
use super::locking::{Lock, lock_keys};
use super::query::QueryRun;
use super::rows::{Row, check_not_null, row_bytes};
use crate::catalog::duplicate_key;
use crate::codec::{CodecError, key, row};
use crate::coop::Turn;
use crate::error::{SqlError, SqlState, storage_error};
use crate::expr::Expr;
use crate::expr::eval::{Env, eval, qualifies};
use crate::plan::{Conflict, InsertPlan};
use crate::table::Table;
use pgtypes::Datum;

/// Rows processed together.
const CHUNK: usize = 512;

/// The state of one INSERT.
struct Inserter<'p> {
    plan: &'p InsertPlan,
    done: Changes,
    budget: Budget,
    /// The first hidden row id of this statement.
    first_id: u64,
    /// Keys that this statement has inserted or changed, for ON CONFLICT.
    changed_keys: HashSet<Key>,
    /// Work for a row.
    row_units: usize,
    turn: Turn,
}

/// Runs an INSERT to its end. `row_units`: the work for a row, in units of [`Turn`].
pub(super) async fn run(
    plan: &InsertPlan,
    row_units: usize,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Changes, SqlError> {
    let mut source = QueryRun::new(&plan.source, row_units, ctx, params).await?;
    // The undo log grows with every new key, so row ids are unique within a transaction.
    let first_id = ctx.txn.changes() as u64;
    let mut inserter = Inserter {
        plan,
        done: Changes::default(),
        budget: Budget::of_statement(),
        first_id,
        changed_keys: HashSet::new(),
        row_units: row_units + STORE_UNITS,
        turn: Turn::new(),
    };
    let mut waiting: Vec<Row> = Vec::new();
    loop {
        let rows = source.next(&plan.source, ctx, params, CHUNK).await?;
        let at_end = rows.is_empty();
        if plan.reads_itself && !at_end {
            // The scan must not return rows inserted here.
            for row in rows {
                inserter.budget.charge(row_bytes(&row))?;
                waiting.push(row);
            }
            continue;
        }
        if at_end {
            let mut waiting = waiting.into_iter();
            while waiting.len() > 0 {
                inserter.chunk(waiting.by_ref().take(CHUNK).collect(), ctx, params).await?;
            }
            return Ok(Changes { read: source.counts(), ..inserter.done });
        }
        inserter.chunk(rows, ctx, params).await?;
    }
}

/// Inserts complete rows of a table, which have passed its checks. An error names its row, if it is of one.
pub(super) async fn insert_rows(
    table: &Table,
    rows: Vec<Row>,
    ctx: &mut ExecContext<'_>,
) -> Result<(), (SqlError, Option<usize>)> {
    let of_all = |error: SqlError| (error, None);
    let hidden = if table.has_hidden_key() {
        Some(ctx.txn.take_start_ts().await.map_err(|error| of_all(storage_error(error)))?)
    } else {
        None
    };
    // The undo log grows with every new key, so row ids are unique within a transaction.
    let first = ctx.txn.changes() as u64;
    let mut prepared = Vec::with_capacity(rows.len());
    for (sequence, row) in (first..).zip(rows) {
        let key = match hidden {
            Some(start_ts) => key::hidden_key(table.storage, start_ts, sequence),
            None => key::row_key(table, &row)
                .ok_or_else(|| of_all(CodecError::new("row", "its key is not complete").into()))?,
        };
        prepared.push((key, row));
    }
    if ctx.locks_rows
        && let Some(at) = find_used(table, &prepared, ctx).await.map_err(of_all)?
    {
        let duplicate = prepared.get(at).map(|(_, row)| duplicate_key(table, row, &ctx.io));
        return Err((duplicate.unwrap_or_else(|| SqlError::internal("a duplicate key is of no row")), Some(at)));
    }
    for (at, (key, row)) in prepared.into_iter().enumerate() {
        let value = row::encode(table, &row);
        let stored = if hidden.is_some() { ctx.txn.put(key, value) } else { ctx.txn.insert(key, value) };
        stored.map_err(|error| (store_error(table, &row, error, ctx), Some(at)))?;
    }
    Ok(())
}

impl Inserter<'_> {
    async fn chunk(&mut self, rows: Vec<Row>, ctx: &mut ExecContext<'_>, params: &[Datum]) -> Result<(), SqlError> {
        let table = &*self.plan.table;
        let hidden =
            if table.has_hidden_key() { Some(ctx.txn.take_start_ts().await.map_err(storage_error)?) } else { None };
        let mut prepared = Vec::with_capacity(rows.len());
        for source in rows {
            let env = ctx.env(params);
            let row = match &self.plan.columns {
                None => source,
                Some(columns) => table_row(columns, source, &env)?,
            };
            check_not_null(table, &row, &ctx.io)?;
            let key = if let Some(start_ts) = hidden {
                let sequence = self.first_id + self.done.count + prepared.len() as u64;
                key::hidden_key(table.storage, start_ts, sequence)
            } else {
                key::row_key(table, &row).ok_or(CodecError::new("row", "its key is not complete"))?
            };
            prepared.push((key, row));
            self.turn.spend(self.row_units).await;
        }
        match &self.plan.conflict {
            Conflict::Fail => {
                if ctx.locks_rows {
                    lock_unused(table, &prepared, ctx).await?;
                }
                self.store_all(prepared, ctx, params).await
            }
            _ if table.has_hidden_key() => self.store_all(prepared, ctx, params).await,
            conflict => self.resolve(conflict, prepared, ctx, params).await,
        }
    }

    async fn store_all(
        &mut self,
        rows: Vec<(Key, Row)>,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<(), SqlError> {
        for (key, row) in rows {
            rehearse(self.plan.returning.iter().flatten(), &row, ctx, params).await?;
            self.store(key, row, ctx, params)?;
            self.turn.spend(self.row_units).await;
        }
        Ok(())
    }

    /// Stores a row whose key must not exist.
    fn store(&mut self, key: Key, row: Row, ctx: &mut ExecContext<'_>, params: &[Datum]) -> Result<(), SqlError> {
        let table = &*self.plan.table;
        let value = row::encode(table, &row);
        if table.has_hidden_key() {
            ctx.txn.put(key, value).map_err(storage_error)?;
        } else {
            ctx.txn.insert(key, value).map_err(|error| store_error(table, &row, error, ctx))?;
        }
        self.record(&row, &ctx.env(params))
    }

    fn record(&mut self, row: &Row, env: &Env<'_>) -> Result<(), SqlError> {
        self.done.record(self.plan.returning.as_ref(), row, env, &mut self.budget)
    }

    /// ON CONFLICT: looks the keys up, locked if the statement locks rows, and skips or updates existing rows. New rows
    /// are plain puts: without locks, if another transaction inserts the same key, the commit conflicts and the retried
    /// statement sees that row.
    async fn resolve(
        &mut self,
        conflict: &Conflict,
        prepared: Vec<(Key, Row)>,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<(), SqlError> {
        let table = &*self.plan.table;
        let keys: Vec<Key> = prepared.iter().map(|(key, _)| key.clone()).collect();
        let found = if ctx.locks_rows {
            lock_proposed(table, keys, conflict, ctx).await?
        } else {
            let mut found: HashMap<_, _> = ctx.txn.batch_get(&keys).await.map_err(storage_error)?.into_iter().collect();
            if matches!(conflict, Conflict::DoNothing) && !found.is_empty() {
                // Other transactions may be about to delete them.
                let present = keys.into_iter().filter(|key| found.contains_key(key)).collect();
                let stays = lock_proposed(table, present, conflict, ctx).await?;
                found.retain(|key, _| stays.contains_key(key));
            }
            found
        };
        for (key, row) in prepared {
            self.turn.spend(self.row_units).await;
            let changed_here = self.changed_keys.contains(&key);
            let existing = found.get(&key).cloned();
            match conflict {
                Conflict::DoUpdate { .. } if changed_here => {
                    let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
                    let hint = "Ensure that no rows proposed for insertion within the same command have duplicate \
                                constrained values.";
                    return Err(SqlError::new(SqlState::CARDINALITY_VIOLATION, message).hint(hint));
                }
                Conflict::DoUpdate { assignments, filter } if existing.is_some() => {
                    let old = existing.unwrap_or_default();
                    let old = cursor::decode(table, &key, &old, &vec![true; table.columns.len()])?;
                    self.changed_keys.insert(key.clone());
                    self.change(key, old, row, (assignments, filter.as_ref()), ctx, params).await?;
                }
                _ if changed_here || existing.is_some() => {}
                _ => {
                    self.changed_keys.insert(key.clone());
                    ctx.txn.put(key, row::encode(table, &row)).map_err(storage_error)?;
                    rehearse(self.plan.returning.iter().flatten(), &row, ctx, params).await?;
                    self.record(&row, &ctx.env(params))?;
                }
            }
        }
        Ok(())
    }

    /// DO UPDATE of one row. The expressions see the old row followed by the proposed row.
    async fn change(
        &mut self,
        key: Key,
        old: Row,
        proposed: Row,
        (assignments, filter): (&[(usize, Expr)], Option<&Expr>),
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<(), SqlError> {
        let table = &*self.plan.table;
        let env = ctx.env(params);
        let mut new = old.clone();
        let both: Row = old.into_iter().chain(proposed).collect();
        if let Some(filter) = filter
            && !qualifies(filter, &both, &env)?
        {
            return Ok(());
        }
        for (column, expr) in assignments {
            new[*column] = eval(expr, &both, &env)?.into_owned();
        }
        check_not_null(table, &new, &ctx.io)?;
        ctx.txn.put(key, row::encode(table, &new)).map_err(storage_error)?;
        rehearse(self.plan.returning.iter().flatten(), &new, ctx, params).await?;
        self.record(&new, &env)
    }
}

/// Locks the keys of proposed rows as far as the statement writes them: those that do not exist, and for DO UPDATE the
/// others too. Returns the rows that exist, as they are now.
async fn lock_proposed(
    table: &Table,
    keys: Vec<Key>,
    conflict: &Conflict,
    ctx: &mut ExecContext<'_>,
) -> Result<HashMap<Key, Bytes>, SqlError> {
    let (own, mut others): (Vec<Key>, Vec<Key>) = keys.into_iter().partition(|key| ctx.txn.has_written(key));
    let mut found: HashMap<Key, Bytes> = ctx.txn.batch_get(&own).await.map_err(storage_error)?.into_iter().collect();
    let mut seen = HashSet::with_capacity(others.len());
    others.retain(|key| seen.insert(key.clone()));
    let updates = matches!(conflict, Conflict::DoUpdate { .. });
    let presence = if updates { Presence::Any } else { Presence::Absent };
    let lock = Lock::to_change(LockMode::Update, ctx);
    let rows = lock_keys(table, others.clone(), (lock, presence, false), ctx).await?;
    for (key, row) in others.into_iter().zip(rows) {
        if let RowFound::Present(value) = row.row {
            found.insert(key, value);
        }
    }
    Ok(found)
}

/// Builds a row of the table from a row of the source. Each source column is used at most once.
fn table_row(columns: &[Expr], mut source: Row, env: &Env<'_>) -> Result<Row, SqlError> {
    let mut row = Vec::with_capacity(columns.len());
    for expr in columns {
        row.push(match expr {
            Expr::Column(at) => source.get_mut(*at).map(std::mem::take).unwrap_or_default(),
            expr => eval(expr, &source, env)?.into_owned(),
        });
    }
    Ok(row)
}
