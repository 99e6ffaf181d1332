//! A running query: a cursor that reads its source, and the pipeline over the rows.

use std::collections::VecDeque;

use bytes::Bytes;
use kv::Key;
use kv::api::LockMode;
use txn::{LockWait, Transaction, View};

use super::context::ExecContext;
use super::cursor::{Cursor, KeyedRow};
use super::locking::{Lock, lock_read};
use super::pipeline::{Pipeline, limits, output_again};
use super::plain::{self, Sink};
use super::rows::Row;
use crate::coop::Turn;
use crate::error::{SqlError, storage_error};
use crate::expr::eval::{Env, eval};
use crate::plan::{PlainOutput, RowCounts, RowLock, RowWait, SelectPlan, Source, TableAccess};
use pgtypes::Datum;

/// A running query.
pub(super) struct QueryRun {
    cursor: Cursor,
    pipeline: Pipeline,
    exhausted: bool,
    /// Stored rows that are read and not sent, of a query for plain columns.
    pairs: VecDeque<(Key, Bytes)>,
    /// Rows that are read and not evaluated, of a query whose expressions take advisory locks.
    waiting: VecDeque<KeyedRow>,
    /// The state of the transaction that it reads, once others write to it.
    view: Option<View>,
    /// Of a query that locks its rows: those that it still skips, and those that it may still return.
    limits: (u64, u64),
    /// Work for a row.
    row_units: usize,
    turn: Turn,
}

/// The most rows of a query that are locked at a time.
const LOCKED_AT_ONCE: usize = 256;

impl QueryRun {
    /// Computes the bounds of the source. Does no I/O. `row_units`: the work for a row, in units of [`Turn`].
    pub(super) async fn new(plan: &SelectPlan, row_units: usize, env: &Env<'_>) -> Result<QueryRun, SqlError> {
        let mut pipeline = Pipeline::new(plan, env)?;
        pipeline.defer(plan);
        let cursor = Cursor::new(&plan.source, pipeline.first_page_rows(plan), row_units, env).await?;
        let limits = limits(plan, env)?;
        let (pairs, turn) = (VecDeque::new(), Turn::new());
        Ok(QueryRun {
            cursor,
            pipeline,
            exhausted: false,
            pairs,
            waiting: VecDeque::new(),
            view: None,
            limits,
            row_units,
            turn,
        })
    }

    /// From now on reads the transaction as it was at `view`, unless it has a view already or reads no more.
    pub(super) fn freeze(&mut self, view: impl FnOnce() -> View) {
        if !self.exhausted {
            self.view.get_or_insert_with(view);
        }
    }

    /// The rows that have passed its stages so far.
    pub(super) fn counts(&self) -> RowCounts {
        self.pipeline.counts()
    }

    /// The next batch, empty only at the end.
    pub(super) async fn next(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        max_rows: usize,
    ) -> Result<Vec<Row>, SqlError> {
        if let (Some(lock), Source::Table(access)) = (plan.lock, &plan.source) {
            return self.next_locked((plan, access, lock), ctx, params, max_rows).await;
        }
        self.read_through_view(plan, ctx, params, max_rows).await?;
        if ctx.takes_locks() {
            Box::pin(self.pipeline.complete(plan, max_rows, ctx, params)).await?;
        }
        Ok(self.pipeline.take(plan, max_rows))
    }

    async fn read_through_view(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        max_rows: usize,
    ) -> Result<(), SqlError> {
        ctx.txn.set_view(self.view.take());
        let read = self.read(plan, ctx, params, max_rows).await;
        self.view = ctx.txn.set_view(None);
        read
    }

    /// The next batch of a query that locks its rows. Rows count towards OFFSET and LIMIT when they are locked: those
    /// that do not pass any more, or that are left out, are replaced by others. No more are locked than that.
    async fn next_locked(
        &mut self,
        (plan, access, lock): (&SelectPlan, &TableAccess, RowLock),
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        max_rows: usize,
    ) -> Result<Vec<Row>, SqlError> {
        let wait = match lock.wait {
            RowWait::Queue => LockWait::Queue(ctx.lock_timeout),
            RowWait::Skip => LockWait::Skip,
            RowWait::NoWait => LockWait::NoWait,
        };
        // A lock that the commit has to confirm. Weaker ones are confirmed anyway.
        let is_confirmed = lock.mode >= LockMode::NoKeyUpdate && !ctx.commit_follows;
        let mut rows = Vec::new();
        while rows.len() < max_rows && self.limits.1 > 0 {
            let (skip, left) = self.limits;
            let wanted = usize::try_from(skip.saturating_add(left)).unwrap_or(usize::MAX);
            let wanted = wanted.min(max_rows - rows.len()).min(LOCKED_AT_ONCE);
            self.read_through_view(plan, ctx, params, wanted).await?;
            let read = self.pipeline.take_keyed(plan, wanted);
            if read.is_empty() {
                break;
            }
            let again = |row: Row, ctx: &ExecContext<'_>| output_again(plan, &row, &ctx.env(params));
            let locked = lock_read(access, read, (Lock { mode: lock.mode, wait }, params), ctx, again).await?;
            for (key, row) in locked {
                if is_confirmed {
                    let confirmed = match lock.mode {
                        LockMode::Update => ctx.txn.lock(key),
                        mode => ctx.txn.share(key, mode),
                    };
                    confirmed.map_err(storage_error)?;
                }
                match &mut self.limits {
                    (0, left) => {
                        *left -= 1;
                        rows.push(row);
                    }
                    (skip, _) => *skip -= 1,
                }
            }
            self.pipeline.count_locked(skip - self.limits.0, left - self.limits.1);
        }
        Ok(rows)
    }

    /// Sends the next batch of a query for plain columns. Returns the number of rows, zero only at the end.
    pub(super) async fn send(
        &mut self,
        (access, output): (&TableAccess, &PlainOutput),
        txn: &mut Transaction,
        max_rows: usize,
        sink: &mut Sink<'_>,
    ) -> Result<usize, SqlError> {
        txn.set_view(self.view.take());
        let sent = self.send_pairs((access, output), txn, max_rows, sink).await;
        self.view = txn.set_view(None);
        sent
    }

    async fn send_pairs(
        &mut self,
        (access, output): (&TableAccess, &PlainOutput),
        txn: &Transaction,
        max_rows: usize,
        sink: &mut Sink<'_>,
    ) -> Result<usize, SqlError> {
        let mut scratch = plain::scratch(access, output);
        let mut sent = 0;
        while sent < max_rows {
            if let Some((key, value)) = self.pairs.pop_front() {
                plain::emit(access, output, (&key, &value), &mut scratch, sink)?;
                sent += 1;
            } else if self.exhausted {
                break;
            } else {
                match self.cursor.pairs(txn).await? {
                    Some(pairs) => self.pairs = pairs.into(),
                    None => self.exhausted = true,
                }
            }
        }
        Ok(sent)
    }

    /// Reads until `max_rows` rows are ready, or to the end.
    async fn read(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        max_rows: usize,
    ) -> Result<(), SqlError> {
        while !self.exhausted && self.pipeline.ready() < max_rows {
            if self.pipeline.is_satisfied() {
                self.exhausted = true;
                self.pipeline.finish(plan, ctx, params).await?;
                break;
            }
            if ctx.takes_locks() {
                Box::pin(self.read_with_locks(plan, ctx, params, max_rows)).await?;
                continue;
            }
            let wanted = u32::try_from(max_rows - self.pipeline.ready()).unwrap_or(u32::MAX);
            let env = ctx.env(params);
            match self.cursor.next(&plan.source, ctx.txn, &env, wanted).await? {
                Some(rows) => {
                    for (key, row) in rows {
                        self.pipeline.push(plan, key, row, &env)?;
                        if self.pipeline.is_overfull() {
                            self.pipeline.sort(plan).await?;
                        }
                        self.turn.spend(self.row_units).await;
                    }
                }
                None => {
                    self.exhausted = true;
                    self.pipeline.finish(plan, ctx, params).await?;
                }
            }
        }
        Ok(())
    }

    /// Reads a page of a query whose expressions take advisory locks: row by row, and no row more than is asked for.
    async fn read_with_locks(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        max_rows: usize,
    ) -> Result<(), SqlError> {
        let mut rows = std::mem::take(&mut self.waiting);
        if rows.is_empty() {
            if let Some(values) = self.cursor.next_values(&plan.source) {
                let evaluate = |env: &Env<'_>| values.iter().try_for_each(|expr| eval(expr, &[], env).map(drop));
                ctx.rehearse(params, evaluate).await?;
            }
            let env = ctx.env(params);
            match self.cursor.next(&plan.source, ctx.txn, &env, 1).await? {
                Some(page) => rows = page.into(),
                None => {
                    self.exhausted = true;
                    return self.pipeline.finish(plan, ctx, params).await;
                }
            }
        }
        while let Some((key, row)) = rows.pop_front() {
            ctx.rehearse(params, |env| self.pipeline.rehearse(plan, &row, env)).await?;
            self.pipeline.push(plan, key, row, &ctx.env(params))?;
            if self.pipeline.is_overfull() {
                self.pipeline.sort(plan).await?;
            }
            self.turn.spend(self.row_units).await;
            if self.pipeline.ready() >= max_rows || self.pipeline.is_satisfied() {
                break;
            }
        }
        self.waiting = rows;
        Ok(())
    }
}
