//! UPDATE and DELETE.
//!
//! A row is changed right after it is read. The write goes to the key just read, behind the cursor, so the scan does
//! not see it. An UPDATE that changes keys reads all rows first, then deletes, then inserts, so that rows may exchange
//! keys.
//!
//! A statement that locks its rows (`locking`) locks a page of them before it changes them. If it names their keys and
//! nothing else, it does not read them before.

use kv::Key;
use kv::api::LockMode;

use super::budget::Budget;
use super::changes::{Changes, STORE_UNITS, lock_unused, rehearse, store_error};
use super::context::ExecContext;
use super::cursor::{self, Cursor};
use super::locking::{Lock, lock_newest, lock_read, passes};
use super::rows::{Row, check_not_null, row_bytes};
use crate::codec::{CodecError, key, row};
use crate::coop::Turn;
use crate::error::{SqlError, storage_error};
use crate::expr::Expr;
use crate::expr::eval::{Env, eval};
use crate::plan::{DeletePlan, RowCounts, Source, TableAccess, UpdatePlan};
use crate::table::Table;
use pgtypes::Datum;

/// Rows per page.
const FIRST_PAGE: u32 = 256;

/// The rows to change, in pages.
struct Target<'p> {
    source: Source,
    access: &'p TableAccess,
    filter: Option<&'p Expr>,
    /// The strength of the locks.
    mode: LockMode,
    cursor: Cursor,
    /// Work for a row.
    row_units: usize,
    turn: Turn,
    counts: RowCounts,
}

impl<'p> Target<'p> {
    async fn new(
        access: &'p TableAccess,
        filter: Option<&'p Expr>,
        mode: LockMode,
        row_units: usize,
        env: &Env<'_>,
    ) -> Result<Target<'p>, SqlError> {
        let source = Source::Table(access.clone());
        let cursor = Cursor::new(&source, FIRST_PAGE, row_units, env).await?;
        Ok(Target { source, access, filter, mode, cursor, row_units, turn: Turn::new(), counts: RowCounts::default() })
    }

    async fn next(&mut self, ctx: &mut ExecContext<'_>, params: &[Datum]) -> Result<Option<Vec<(Key, Row)>>, SqlError> {
        if !ctx.locks_rows {
            return self.read(ctx, params).await;
        }
        let lock = Lock::to_change(self.mode, ctx);
        // With several keys, a row that is committed while the statement waits for another one is none of its snapshot.
        if self.filter.is_none() && self.cursor.is_of_one_point() && ctx.txn.has_statements() {
            return self.lock_points(lock, ctx).await;
        }
        let Some(rows) = self.read(ctx, params).await? else { return Ok(None) };
        let filter = self.filter;
        let again = |row: Row, ctx: &ExecContext<'_>| Ok(passes(filter, &row, ctx, params)?.then_some(row));
        lock_read(self.access, rows, lock, ctx, again).await.map(Some)
    }

    /// Locks the rows of the next keys.
    async fn lock_points(
        &mut self,
        lock: Lock,
        ctx: &mut ExecContext<'_>,
    ) -> Result<Option<Vec<(Key, Row)>>, SqlError> {
        let Some(keys) = self.cursor.take_points().filter(|keys| !keys.is_empty()) else { return Ok(None) };
        let mut rows = Vec::with_capacity(keys.len());
        for (key, value) in lock_newest(self.access, &keys, lock, ctx).await? {
            let row = cursor::decode(&self.access.table, &key, &value, &self.access.needed)?;
            (self.counts.source, self.counts.passed) = (self.counts.source + 1, self.counts.passed + 1);
            rows.push((key, row));
            self.turn.spend(self.row_units).await;
        }
        Ok(Some(rows))
    }

    /// Reads the next page. Returns the rows that pass.
    async fn read(&mut self, ctx: &mut ExecContext<'_>, params: &[Datum]) -> Result<Option<Vec<(Key, Row)>>, SqlError> {
        let env = ctx.env(params);
        let Some(page) = self.cursor.next(&self.source, ctx.txn, &env, FIRST_PAGE).await? else { return Ok(None) };
        let mut rows = Vec::with_capacity(page.len());
        for (key, row) in page {
            let Some(key) = key else { continue };
            self.counts.source += 1;
            rehearse(self.filter, &row, ctx, params).await?;
            if passes(self.filter, &row, ctx, params)? {
                self.counts.passed += 1;
                rows.push((key, row));
            }
            self.turn.spend(self.row_units).await;
        }
        Ok(Some(rows))
    }

    /// Counts the change of a row.
    async fn spend(&mut self) {
        self.turn.spend(self.row_units + STORE_UNITS).await;
    }
}

/// Runs a DELETE to its end. `row_units`: the work for a row, in units of [`Turn`].
pub(super) async fn delete(
    plan: &DeletePlan,
    row_units: usize,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Changes, SqlError> {
    let mut target =
        Target::new(&plan.access, plan.filter.as_ref(), LockMode::Update, row_units, &ctx.env(params)).await?;
    let (mut done, mut budget) = (Changes::default(), Budget::of_statement());
    while let Some(rows) = target.next(ctx, params).await? {
        for (key, row) in rows {
            ctx.txn.delete(key).map_err(storage_error)?;
            rehearse(plan.returning.iter().flatten(), &row, ctx, params).await?;
            done.record(plan.returning.as_ref(), &row, &ctx.env(params), &mut budget)?;
            target.spend().await;
        }
    }
    done.read = target.counts;
    Ok(done)
}

/// Runs an UPDATE to its end. `row_units`: the work for a row, in units of [`Turn`].
pub(super) async fn update(
    plan: &UpdatePlan,
    row_units: usize,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Changes, SqlError> {
    let table = &*plan.access.table;
    let mode = if plan.changes_key { LockMode::Update } else { LockMode::NoKeyUpdate };
    let mut target = Target::new(&plan.access, plan.filter.as_ref(), mode, row_units, &ctx.env(params)).await?;
    let (mut done, mut budget) = (Changes::default(), Budget::of_statement());
    let mut moved: Vec<(Key, Row)> = Vec::new();
    while let Some(rows) = target.next(ctx, params).await? {
        for (key, old) in rows {
            target.spend().await;
            rehearse(plan.assignments.iter().map(|(_, expr)| expr), &old, ctx, params).await?;
            let new = changed(plan, old, &ctx.env(params))?;
            check_not_null(table, &new, &ctx.io)?;
            if plan.changes_key {
                budget.charge(row_bytes(&new) + key.as_bytes().len())?;
                moved.push((key, new));
                continue;
            }
            ctx.txn.put(key, row::encode(table, &new)).map_err(storage_error)?;
            rehearse(plan.returning.iter().flatten(), &new, ctx, params).await?;
            done.record(plan.returning.as_ref(), &new, &ctx.env(params), &mut budget)?;
        }
    }
    for (_, row) in move_rows(table, moved, ctx).await? {
        rehearse(plan.returning.iter().flatten(), &row, ctx, params).await?;
        done.record(plan.returning.as_ref(), &row, &ctx.env(params), &mut budget)?;
        target.spend().await;
    }
    done.read = target.counts;
    Ok(done)
}

/// Applies the assignments to a row. All of them see the old row.
fn changed(plan: &UpdatePlan, old: Row, env: &Env<'_>) -> Result<Row, SqlError> {
    let mut values = Vec::with_capacity(plan.assignments.len());
    for (_, expr) in &plan.assignments {
        values.push(eval(expr, &old, env)?.into_owned());
    }
    let mut new = old;
    for ((column, _), value) in plan.assignments.iter().zip(values) {
        new[*column] = value;
    }
    Ok(new)
}

/// Stores rows under their new keys after deleting all old keys. Returns the rows with their new keys.
async fn move_rows(
    table: &Table,
    rows: Vec<(Key, Row)>,
    ctx: &mut ExecContext<'_>,
) -> Result<Vec<(Key, Row)>, SqlError> {
    let mut placed = Vec::with_capacity(rows.len());
    let mut relocated = Vec::new();
    let (mut turn, units) = (Turn::new(), STORE_UNITS + table.columns.len());
    for (old_key, row) in rows {
        turn.spend(units).await;
        let new_key = key::row_key(table, &row).ok_or(CodecError::new("row", "its key is not complete"))?;
        if new_key != old_key {
            ctx.txn.delete(old_key).map_err(storage_error)?;
            relocated.push((new_key.clone(), row.clone()));
        } else {
            ctx.txn.put(old_key, row::encode(table, &row)).map_err(storage_error)?;
        }
        placed.push((new_key, row));
    }
    if ctx.locks_rows {
        lock_unused(table, &relocated, ctx).await?;
    }
    for (key, row) in relocated {
        turn.spend(units).await;
        ctx.txn.insert(key, row::encode(table, &row)).map_err(|error| store_error(table, &row, error, ctx))?;
    }
    Ok(placed)
}
