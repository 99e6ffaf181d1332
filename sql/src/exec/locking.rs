//! Locks of the rows that a statement writes or returns, and what it makes of rows that have changed.
//!
//! A statement finds its rows in its snapshot and then locks them. A row that another transaction holds is waited for.
//! If the row has changed meanwhile, the condition of the statement is evaluated again, on the newest row: the row
//! counts if it still passes, as it is now (PostgreSQL's EvalPlanQual). A row that is gone does not count. What the
//! transaction has written itself is its own, and cannot have changed. But others may have locked its key meanwhile, so
//! it may have to wait before it deletes the row.

use std::collections::HashSet;

use bytes::Bytes;
use kv::Key;
use kv::api::{LockMode, LockedRow, Presence, RowFound};
use txn::{LockAsk, LockWait, TxnError};

use super::context::ExecContext;
use super::cursor;
use super::rows::Row;
use crate::error::{SqlError, SqlState, storage_error};
use crate::expr::Expr;
use crate::expr::eval::qualifies;
use crate::plan::{AccessPath, RowLock, RowWait, TableAccess};
use crate::table::Table;
use pgtypes::Datum;

/// The lock that a statement takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    pub(super) mode: LockMode,
    pub(super) wait: LockWait,
}

impl Lock {
    /// That of a statement that changes rows.
    pub(super) fn to_change(mode: LockMode, ctx: &ExecContext<'_>) -> Lock {
        Lock { mode, wait: LockWait::Queue(ctx.lock_timeout) }
    }

    /// That of a query.
    pub(super) fn of(lock: RowLock, ctx: &ExecContext<'_>) -> Lock {
        let wait = match lock.wait {
            RowWait::Queue => LockWait::Queue(ctx.lock_timeout),
            RowWait::Skip => LockWait::Skip,
            RowWait::NoWait => LockWait::NoWait,
        };
        Lock { mode: lock.mode, wait }
    }
}

/// What became of a row that was read, when it is locked.
pub(super) enum Found<T> {
    /// It is as it was read.
    Unchanged,
    /// It is another one now.
    Newest(T),
    /// It is gone, or left out because others have locked it.
    Nothing,
}

/// Locks rows by their keys, which are distinct and not written by the transaction. The answer has their order.
pub(super) async fn lock_keys(
    table: &Table,
    keys: Vec<Key>,
    (lock, presence, was_read): (Lock, Presence, bool),
    ctx: &mut ExecContext<'_>,
) -> Result<Vec<LockedRow>, SqlError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let ask = LockAsk { mode: lock.mode, presence, was_read, wait: lock.wait };
    ctx.txn.lock_rows(keys, ask).await.map_err(|error| lock_error(table, error))
}

/// Has the commit confirm the lock of a row that a query returns. Weak locks are confirmed anyway.
pub(super) fn confirm(key: Key, mode: LockMode, ctx: &mut ExecContext<'_>) -> Result<(), SqlError> {
    if mode < LockMode::NoKeyUpdate || ctx.commit_follows {
        return Ok(());
    }
    let confirmed = match mode {
        LockMode::Update => ctx.txn.lock(key),
        mode => ctx.txn.share(key, mode),
    };
    confirmed.map_err(storage_error)
}

/// Locks keys that must have no row, which the transaction has not written. Returns the first one that has a row.
pub(super) async fn lock_absent(
    table: &Table,
    keys: Vec<Key>,
    ctx: &mut ExecContext<'_>,
) -> Result<Option<Key>, SqlError> {
    let Lock { mode, wait } = Lock::to_change(LockMode::Update, ctx);
    let ask = LockAsk { mode, presence: Presence::MustBeAbsent, was_read: false, wait };
    match ctx.txn.lock_rows(keys, ask).await {
        Ok(_) => Ok(None),
        Err(TxnError::AlreadyExists { key }) => Ok(Some(key)),
        Err(error) => Err(lock_error(table, error)),
    }
}

/// Locks rows that the transaction has written and locked less strongly. Returns those of `keys` that are left out
/// because others have locked them (SKIP LOCKED).
async fn strengthen(
    table: &Table,
    keys: impl Iterator<Item = &Key>,
    lock: Lock,
    ctx: &mut ExecContext<'_>,
) -> Result<HashSet<Key>, SqlError> {
    let weak = keys.filter(|key| ctx.txn.row_lock(key).is_some_and(|mode| mode < lock.mode));
    let keys: Vec<Key> = weak.cloned().collect();
    let locked = lock_keys(table, keys.clone(), (lock, Presence::Any, true), ctx).await?;
    Ok(keys.into_iter().zip(locked).filter(|(_, row)| !row.is_locked).map(|(key, _)| key).collect())
}

/// Locks rows that were read in the snapshot, by their keys, which are distinct. Returns what became of each, in their
/// order. What the transaction has written itself is as it was read.
pub(super) async fn lock_found(
    table: &Table,
    keys: Vec<Key>,
    lock: Lock,
    ctx: &mut ExecContext<'_>,
) -> Result<Vec<Found<Bytes>>, SqlError> {
    let (own, others): (Vec<Key>, Vec<Key>) = keys.iter().cloned().partition(|key| ctx.txn.has_written(key));
    let skipped = strengthen(table, own.iter(), lock, ctx).await?;
    let own: HashSet<Key> = own.into_iter().collect();
    let mut locked = lock_keys(table, others, (lock, Presence::Present, true), ctx).await?.into_iter();
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        found.push(match own.contains(&key) {
            true if skipped.contains(&key) => Found::Nothing,
            true => Found::Unchanged,
            false => match locked.next().map(|locked| locked.row) {
                Some(RowFound::Unchanged) => Found::Unchanged,
                Some(RowFound::Present(newest)) => Found::Newest(newest),
                Some(RowFound::Absent) => {
                    ctx.references.note_gone();
                    Found::Nothing
                }
                Some(RowFound::Skipped) | None => Found::Nothing,
            },
        });
    }
    Ok(found)
}

/// Locks rows that were read in the snapshot. Returns those that count, as they are now. `again` evaluates a row that
/// has changed: the condition of the statement, and what else follows from the row. A row that was found by an index is
/// first compared with the conditions that the index has served: its key is the same, but its columns are not.
pub(super) async fn lock_read<T>(
    access: &TableAccess,
    rows: Vec<(Key, T)>,
    (lock, params): (Lock, &[Datum]),
    ctx: &mut ExecContext<'_>,
    mut again: impl FnMut(&Key, Row, &ExecContext<'_>) -> Result<Option<T>, SqlError>,
) -> Result<Vec<(Key, T)>, SqlError> {
    let keys = rows.iter().map(|(key, _)| key.clone()).collect();
    let found = lock_found(&access.table, keys, lock, ctx).await?;
    let recheck = if let AccessPath::Index(scan) = &access.path { scan.recheck.as_ref() } else { None };
    let mut again = |key: &Key, row: Row, ctx: &ExecContext<'_>| {
        if passes(recheck, &row, ctx, params)? { again(key, row, ctx) } else { Ok(None) }
    };
    let mut counted = Vec::with_capacity(rows.len());
    for ((key, row), found) in rows.into_iter().zip(found) {
        match found {
            Found::Unchanged => counted.push((key, row)),
            Found::Newest(newest) => {
                let newest = cursor::decode(&access.table, &key, &newest, &access.needed)?;
                let row = if ctx.rehearses() {
                    ctx.begin_rehearsal();
                    loop {
                        let row = again(&key, newest.clone(), ctx);
                        if !ctx.answer().await? {
                            break row?;
                        }
                    }
                } else {
                    again(&key, newest, ctx)?
                };
                counted.extend(row.map(|row| (key, row)));
            }
            Found::Nothing => {}
        }
    }
    Ok(counted)
}

/// Whether a row passes the condition of a statement.
pub(super) fn passes(
    filter: Option<&Expr>,
    row: &Row,
    ctx: &ExecContext<'_>,
    params: &[Datum],
) -> Result<bool, SqlError> {
    filter.map_or(Ok(true), |filter| qualifies(filter, row, &ctx.env(params)))
}

/// Locks the newest rows of keys, without a look at the snapshot first: for a statement that changes each row that
/// exists. Returns the stored rows.
pub(super) async fn lock_newest(
    access: &TableAccess,
    keys: &[Key],
    lock: Lock,
    ctx: &mut ExecContext<'_>,
) -> Result<Vec<(Key, Bytes)>, SqlError> {
    let (own, others): (Vec<&Key>, Vec<&Key>) = keys.iter().partition(|key| ctx.txn.has_written(key));
    let others: Vec<Key> = others.into_iter().cloned().collect();
    let own: Vec<Key> = own.into_iter().cloned().collect();
    let skipped = strengthen(&access.table, own.iter(), lock, ctx).await?;
    let mut rows = Vec::with_capacity(keys.len());
    for key in own.iter().filter(|key| !skipped.contains(*key)) {
        let value = ctx.txn.get(key).await.map_err(storage_error)?;
        rows.extend(value.map(|value| (key.clone(), value)));
    }
    let found = lock_keys(&access.table, others.clone(), (lock, Presence::Present, false), ctx).await?;
    for (key, found) in others.into_iter().zip(found) {
        if let (true, RowFound::Present(value)) = (found.is_locked, found.row) {
            rows.push((key, value));
        }
    }
    Ok(rows)
}

/// The error of a lock that was not taken.
fn lock_error(table: &Table, error: TxnError) -> SqlError {
    match error {
        TxnError::NotAvailable { .. } => {
            let message = format!("could not obtain lock on row in relation \"{}\"", table.name);
            SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message)
        }
        TxnError::Conflict(_) | TxnError::LockTimeout { .. } => error.into(),
        error => storage_error(error),
    }
}
