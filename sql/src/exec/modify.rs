//! UPDATE and DELETE.
//!
//! A page of rows is changed right after it is read ([`super::writer`]). A statement that may write what it has not
//! read yet reads the transaction as it was at its start: one that reads an index, or that changes keys. Otherwise the
//! write goes to the key just read, behind the cursor, so the scan does not see it.
//!
//! A statement that locks its rows (`locking`) locks a page of them before it changes them. If it names their keys and
//! nothing else, it does not read them before.

use kv::Key;
use kv::api::LockMode;
use txn::View;

use super::budget::Budget;
use super::changes::{Changes, STORE_UNITS, rehearse};
use super::context::ExecContext;
use super::cursor::{self, Cursor};
use super::joined::JoinedRows;
use super::locking::{Lock, lock_newest, lock_read, passes};
use super::measure::Measure;
use super::rows::Row;
use super::writer::{RowChange, RowWriter};
use crate::coop::Turn;
use crate::error::SqlError;
use crate::expr::Expr;
use crate::expr::eval::{Env, eval};
use crate::plan::{AccessPath, DeletePlan, Joined, NodeKey, RowCounts, Source, TableAccess, UpdatePlan};
use pgtypes::Datum;

/// Rows per page.
const FIRST_PAGE: u32 = 256;

/// The rows to change, in pages.
pub(super) struct Target<'p> {
    source: Source,
    access: &'p TableAccess,
    filter: Option<&'p Expr>,
    /// The strength of the locks.
    mode: LockMode,
    cursor: Cursor,
    /// The state of the transaction that it reads, if that is not the newest.
    view: Option<View>,
    /// Work for a row.
    row_units: usize,
    turn: Turn,
    /// What it has counted for EXPLAIN ANALYZE.
    counts: RowCounts,
    is_started: bool,
}

impl<'p> Target<'p> {
    pub(super) async fn new(
        access: &'p TableAccess,
        filter: Option<&'p Expr>,
        mode: LockMode,
        row_units: usize,
        (ctx, params): (&mut ExecContext<'_>, &[Datum]),
    ) -> Result<Target<'p>, SqlError> {
        let source = Source::Table(access.clone());
        rehearse(access.path.exprs(), &Row::new(), ctx, params).await?;
        let cursor = Cursor::new(&source, FIRST_PAGE, row_units, &ctx.env(params)).await?;
        let (turn, counts) = (Turn::new(), RowCounts::default());
        Ok(Target { source, access, filter, mode, cursor, view: None, row_units, turn, counts, is_started: false })
    }

    /// Keeps it from reading what the statement writes.
    fn freeze(&mut self, ctx: &ExecContext<'_>) {
        self.view = Some(ctx.start_view());
    }

    /// The next rows that count. They are locked, if the statement locks rows.
    pub(super) async fn next(
        &mut self,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<Option<Vec<(Key, Row)>>, SqlError> {
        let measure = Measure::begin(ctx);
        let rows = self.next_locked(ctx, params).await;
        if let Some(measure) = measure {
            let counts = std::mem::take(&mut self.counts);
            measure.end(NodeKey::table(self.access), !self.is_started, counts, ctx.txn);
            self.is_started = true;
        }
        rows
    }

    async fn next_locked(
        &mut self,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<Option<Vec<(Key, Row)>>, SqlError> {
        if !ctx.locks_rows {
            return self.read(ctx, params).await;
        }
        let lock = Lock::to_change(self.mode, ctx);
        // With several keys, a row that is committed while the statement waits for another one is none of its snapshot.
        let is_point = self.filter.is_none() && self.cursor.is_of_one_point();
        if is_point && ctx.txn.has_statements() && !ctx.has_several_changes() {
            return self.lock_points(lock, ctx).await;
        }
        let Some(rows) = self.read(ctx, params).await? else { return Ok(None) };
        let filter = self.filter;
        let again = |_: &Key, row: Row, ctx: &ExecContext<'_>| Ok(passes(filter, &row, ctx, params)?.then_some(row));
        lock_read(self.access, rows, (lock, params), ctx, again).await.map(Some)
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
    pub(super) async fn read(
        &mut self,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<Option<Vec<(Key, Row)>>, SqlError> {
        let env = ctx.env(params);
        let has_view = self.view.is_some();
        if has_view {
            ctx.txn.set_view(self.view.take());
        }
        let page = self.cursor.next(&self.source, ctx.txn, &env, FIRST_PAGE).await;
        if has_view {
            self.view = ctx.txn.set_view(None);
        }
        let Some(page) = page? else { return Ok(None) };
        let mut rows = Vec::with_capacity(page.len());
        for (key, row) in page {
            let Some(key) = key.filter(|key| !ctx.has_changed(key)) else { continue };
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

/// The rows to change: those of the target by itself, or joined with other tables.
enum Rows<'p> {
    Plain(Box<Target<'p>>),
    Joined(Box<JoinedRows<'p>>),
}

impl<'p> Rows<'p> {
    /// Those of a target, with a filter, by itself or joined with other tables. `is_frozen`: those of a target by
    /// itself are those of the statement's start.
    async fn of(
        (access, filter, joined): (&'p TableAccess, Option<&'p Expr>, Option<&'p Joined>),
        (mode, is_frozen): (LockMode, bool),
        row_units: usize,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<Rows<'p>, SqlError> {
        if let Some(joined) = joined {
            let rows = JoinedRows::new((joined, access), mode, row_units, ctx, params).await?;
            return Ok(Rows::Joined(Box::new(rows)));
        }
        let mut target = Target::new(access, filter, mode, row_units, (ctx, params)).await?;
        if is_frozen || ctx.has_several_changes() || matches!(access.path, AccessPath::Index(_)) {
            target.freeze(ctx);
        }
        Ok(Rows::Plain(Box::new(target)))
    }

    /// The next rows, with their keys. The columns of the target come first.
    async fn next(&mut self, ctx: &mut ExecContext<'_>, params: &[Datum]) -> Result<Option<Vec<(Key, Row)>>, SqlError> {
        match self {
            Rows::Plain(target) => target.next(ctx, params).await,
            Rows::Joined(rows) => rows.next(ctx, params).await,
        }
    }

    /// Counts the change of a row.
    async fn spend(&mut self) {
        match self {
            Rows::Plain(target) => target.spend().await,
            Rows::Joined(rows) => rows.spend(STORE_UNITS).await,
        }
    }
}

/// A new row, or a deleted one, with the columns of the tables that its target was joined with.
fn with_others(mut row: Row, others: Row) -> Row {
    row.extend(others);
    row
}

/// Runs a DELETE to its end. `row_units`: the work for a row, in units of [`Turn`].
pub(super) async fn delete(
    plan: &DeletePlan,
    row_units: usize,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Changes, SqlError> {
    let source = (&plan.access, plan.filter.as_ref(), plan.joined.as_deref());
    let rows = Rows::of(source, (LockMode::Update, false), row_units, ctx, params).await?;
    delete_rows(plan, rows, ctx, params).await
}

async fn delete_rows(
    plan: &DeletePlan,
    mut target: Rows<'_>,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Changes, SqlError> {
    let (mut done, mut budget) = (Changes::default(), Budget::of_statement());
    let mut writer = RowWriter::new(&plan.write, ctx);
    let width = plan.write.table.columns.len();
    while let Some(rows) = target.next(ctx, params).await? {
        let mut rows = rows.into_iter();
        while rows.len() > 0 {
            let (mut changes, mut others) = (Vec::new(), Vec::new());
            for (key, mut old) in rows.by_ref().take(at_once(ctx)) {
                others.push(old.split_off(width.min(old.len())));
                changes.push(RowChange::Delete { key, old });
            }
            for (row, others) in writer.write(changes, ctx).await?.into_iter().zip(others) {
                let row = with_others(row, others);
                rehearse(plan.returning.iter().flatten(), &row, ctx, params).await?;
                done.record(plan.returning.as_ref(), &row, &ctx.env(params), &mut budget)?;
                target.spend().await;
            }
        }
    }
    Ok(done)
}

/// The rows that are written together. What takes advisory locks sees each row written before the next one.
fn at_once(ctx: &ExecContext<'_>) -> usize {
    if ctx.takes_locks() { 1 } else { usize::MAX }
}

/// Runs an UPDATE to its end. `row_units`: the work for a row, in units of [`Turn`].
pub(super) async fn update(
    plan: &UpdatePlan,
    row_units: usize,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Changes, SqlError> {
    let mode = if plan.changes_unique { LockMode::Update } else { LockMode::NoKeyUpdate };
    let source = (&plan.access, plan.filter.as_ref(), plan.joined.as_deref());
    let rows = Rows::of(source, (mode, plan.changes_key), row_units, ctx, params).await?;
    update_rows(plan, rows, ctx, params).await
}

async fn update_rows(
    plan: &UpdatePlan,
    mut target: Rows<'_>,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Changes, SqlError> {
    let (mut done, mut budget) = (Changes::default(), Budget::of_statement());
    let mut writer = RowWriter::new(&plan.write, ctx);
    let width = plan.write.table.columns.len();
    while let Some(rows) = target.next(ctx, params).await? {
        let mut rows = rows.into_iter();
        while rows.len() > 0 {
            let (mut changes, mut others) = (Vec::new(), Vec::new());
            for (key, mut old) in rows.by_ref().take(at_once(ctx)) {
                target.spend().await;
                rehearse(plan.assignments.iter().map(|(_, expr)| expr), &old, ctx, params).await?;
                let new = changed(plan, &old, &ctx.env(params))?;
                others.push(old.split_off(width.min(old.len())));
                changes.push(RowChange::Update { key, old, new });
            }
            for (row, others) in writer.write(changes, ctx).await?.into_iter().zip(others) {
                let row = with_others(row, others);
                rehearse(plan.returning.iter().flatten(), &row, ctx, params).await?;
                done.record(plan.returning.as_ref(), &row, &ctx.env(params), &mut budget)?;
            }
        }
    }
    Ok(done)
}

/// Applies the assignments to a row. All of them see the old row, and what it was joined with.
fn changed(plan: &UpdatePlan, old: &Row, env: &Env<'_>) -> Result<Row, SqlError> {
    let mut new = old.get(..plan.write.table.columns.len()).unwrap_or(old).to_vec();
    for (column, expr) in &plan.assignments {
        new[*column] = eval(expr, old, env)?.into_owned();
    }
    Ok(new)
}
