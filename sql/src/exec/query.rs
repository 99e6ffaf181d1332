//! A running query: a cursor or a node that it reads, and the pipeline over the rows. Nodes read queries again.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use kv::Key;
use txn::{Transaction, View};

use super::context::ExecContext;
use super::cursor::{Cursor, KeyedRow};
use super::functions::{FunctionRun, SetValuesRun};
use super::input::{Input, ROW_UNITS};
use super::join::JoinRun;
use super::locked_join::JoinLocks;
use super::locking::{Lock, confirm, lock_read};
use super::measure::Measure;
use super::pipeline::{Pipeline, limits, output_again};
use super::plain::{self, Sink};
use super::rows::Row;
use super::set_operation::SetRun;
use super::window::WindowRun;
use super::with_reader::WithReader;
use crate::coop::Turn;
use crate::error::SqlError;
use crate::expr::eval::{Env, eval};
use crate::plan::{NodeKey, PlainOutput, Rel, RowCounts, SelectPlan, Source, TableAccess};
use crate::system;
use pgtypes::Datum;

/// A running query.
pub(super) struct QueryRun {
    cursor: Cursor,
    /// The node that it reads, of a source that is one.
    rel: Option<RelRun>,
    pipeline: Pipeline,
    exhausted: bool,
    /// The error of the row behind those that are ready. It is reported when they are taken.
    failed: Option<SqlError>,
    /// Stored rows that are read and not sent, of a query for plain columns.
    pairs: VecDeque<(Key, Bytes)>,
    /// Rows that it reads instead of its source, and how many it has taken.
    kept: Option<(Arc<Vec<Row>>, usize)>,
    /// Rows that are read and not evaluated, of a query whose expressions take advisory locks.
    waiting: VecDeque<KeyedRow>,
    /// The state of the transaction that it reads, once others write to it.
    view: Option<View>,
    /// Of a query that locks its rows: those that it still skips, and those that it may still return.
    limits: (u64, u64),
    /// Of a join: what became of its locks.
    join_locks: JoinLocks,
    /// Work for a row.
    row_units: usize,
    turn: Turn,
    /// Whether EXPLAIN ANALYZE has counted it, and a read of its source.
    is_started: bool,
    has_read: bool,
}

/// Rows that are taken from a node at a time, at least.
const NODE_ROWS: u32 = 32;

/// Kept rows that are taken at a time.
const KEPT_ROWS: usize = 256;

/// The most rows of a query that are locked at a time.
const LOCKED_AT_ONCE: usize = 256;

impl QueryRun {
    /// Computes the bounds of the source. Does no I/O. `row_units`: the work for a row, in units of [`Turn`].
    pub(super) async fn new(
        plan: &SelectPlan,
        row_units: usize,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<QueryRun, SqlError> {
        if rehearses(plan, ctx) {
            ctx.rehearse(params, |env| plan.fixed().try_for_each(|expr| eval(expr, &[], env).map(drop))).await?;
        }
        if let Source::System(relation) = &plan.source
            && let Some(source) = system::cluster_source(relation)
        {
            ctx.session.gather(source).await?;
        }
        let env = &ctx.env(params);
        let mut pipeline = Pipeline::new(plan, env)?;
        pipeline.defer(plan);
        let cursor = Cursor::new(&plan.source, pipeline.first_page_rows(plan), row_units, env).await?;
        let limits = limits(plan, env)?;
        let (pairs, turn) = (VecDeque::new(), Turn::new());
        Ok(QueryRun {
            cursor,
            pipeline,
            rel: match &plan.source {
                Source::Rel(rel) => Some(RelRun::new(rel)),
                _ => None,
            },
            exhausted: false,
            failed: None,
            pairs,
            kept: None,
            waiting: VecDeque::new(),
            view: None,
            limits,
            join_locks: JoinLocks::default(),
            row_units,
            turn,
            is_started: false,
            has_read: false,
        })
    }

    /// The error of the row behind those that were taken.
    pub(super) fn take_error(&mut self) -> Option<SqlError> {
        self.failed.take()
    }

    /// Reads these rows instead of its source.
    pub(super) fn over(mut self, rows: Arc<Vec<Row>>) -> QueryRun {
        self.kept = Some((rows, 0));
        self
    }

    /// From now on reads the transaction as it was at `view`, unless it has a view already or reads no more.
    pub(super) fn freeze(&mut self, view: impl FnOnce() -> View) {
        if !self.exhausted || self.pipeline.has_deferred() {
            self.view.get_or_insert_with(view);
        }
    }

    /// The next batch, empty only at the end.
    pub(super) async fn next(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        max_rows: usize,
    ) -> Result<Vec<Row>, SqlError> {
        let Some(measure) = Measure::begin(ctx) else { return self.next_rows(plan, ctx, params, max_rows).await };
        let rows = self.next_rows(plan, ctx, params, max_rows).await;
        measure.call(NodeKey::query(plan), !self.is_started, self.pipeline.take_counts());
        self.is_started = true;
        rows
    }

    async fn next_rows(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        max_rows: usize,
    ) -> Result<Vec<Row>, SqlError> {
        if plan.lock.is_some() {
            return self.next_locked(plan, ctx, params, max_rows).await;
        }
        self.read_through_view(plan, ctx, params, max_rows).await?;
        let rows = self.pipeline.take(plan, max_rows);
        match self.failed.take_if(|_| rows.is_empty()) {
            Some(error) => Err(error),
            None => Ok(rows),
        }
    }

    /// Reads until `max_rows` rows are complete. A query that has no view reads through that of the query around it.
    async fn read_through_view(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        max_rows: usize,
    ) -> Result<(), SqlError> {
        let Some(view) = self.view.take() else { return self.read_complete(plan, ctx, params, max_rows).await };
        let outer = ctx.txn.set_view(Some(view));
        let read = self.read_complete(plan, ctx, params, max_rows).await;
        self.view = ctx.txn.set_view(outer);
        read
    }

    async fn read_complete(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        max_rows: usize,
    ) -> Result<(), SqlError> {
        self.read(plan, ctx, params, max_rows).await?;
        if rehearses(plan, ctx) {
            Box::pin(self.pipeline.complete(plan, max_rows, ctx, params)).await?;
        }
        Ok(())
    }

    /// The next batch of a query that locks its rows. Rows count towards OFFSET and LIMIT when they are locked: those
    /// that do not pass any more, or that are left out, are replaced by others. No more are locked than that.
    async fn next_locked(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        max_rows: usize,
    ) -> Result<Vec<Row>, SqlError> {
        let mut rows = Vec::new();
        while rows.len() < max_rows && self.limits.1 > 0 {
            let (skip, left) = self.limits;
            let wanted = usize::try_from(skip.saturating_add(left)).unwrap_or(usize::MAX);
            let wanted = wanted.min(max_rows - rows.len()).min(LOCKED_AT_ONCE);
            self.read_through_view(plan, ctx, params, wanted).await?;
            let Some(locked) = self.lock_ready(plan, wanted, ctx, params).await? else {
                match self.failed.take_if(|_| rows.is_empty()) {
                    Some(error) => return Err(error),
                    None => break,
                }
            };
            for row in locked {
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

    /// Locks rows that are ready. Returns those that count; `None` if none is ready.
    async fn lock_ready(
        &mut self,
        plan: &SelectPlan,
        most: usize,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<Option<Vec<Row>>, SqlError> {
        if let Some(join) = &plan.locked_join {
            let read = self.pipeline.take_with_source(plan, most);
            if read.is_empty() {
                return Ok(None);
            }
            return self.join_locks.lock((plan, join), read, ctx, params).await.map(Some);
        }
        let (Some(lock), Source::Table(access)) = (plan.lock, &plan.source) else { return Ok(None) };
        let read = self.pipeline.take_keyed(plan, most);
        if read.is_empty() {
            return Ok(None);
        }
        let again = |_: &Key, row: Row, ctx: &ExecContext<'_>| output_again(plan, &row, &ctx.env(params));
        let locked = lock_read(access, read, (Lock::of(lock, ctx), params), ctx, again).await?;
        let mut rows = Vec::with_capacity(locked.len());
        for (key, row) in locked {
            confirm(key, lock.mode, ctx)?;
            rows.push(row);
        }
        Ok(Some(rows))
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
            if rehearses(plan, ctx) {
                Box::pin(self.read_with_locks(plan, ctx, params, max_rows)).await?;
                continue;
            }
            let wanted = u32::try_from(max_rows - self.pipeline.ready()).unwrap_or(u32::MAX);
            let page = self.page(plan, ctx, params, wanted).await?;
            let env = ctx.env(params);
            match page {
                Some(rows) => {
                    for (key, row) in rows {
                        if let Err(error) = self.pipeline.push(plan, key, row, &env) {
                            // The rows before it come first.
                            self.exhausted = true;
                            self.failed = Some(error);
                            break;
                        }
                        if self.pipeline.is_satisfied() {
                            break;
                        }
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

    /// The next page of the source, possibly empty; `None` at the end.
    async fn page(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        wanted: u32,
    ) -> Result<Option<Vec<KeyedRow>>, SqlError> {
        if let Some((rows, taken)) = &mut self.kept {
            let page: Vec<KeyedRow> = rows.iter().skip(*taken).take(KEPT_ROWS).map(|row| (None, row.clone())).collect();
            *taken += page.len();
            return Ok(Some(page).filter(|page| !page.is_empty()));
        }
        match (&mut self.rel, &plan.source) {
            (Some(run), Source::Rel(rel)) => {
                let most = (wanted.clamp(NODE_ROWS, NODE_ROWS * 8)) as usize;
                let rows = run.next(rel, ctx, params, most).await?;
                Ok(Some(rows)
                    .filter(|rows| !rows.is_empty())
                    .map(|rows| rows.into_iter().map(|row| (None, row)).collect()))
            }
            _ => {
                let measure = Measure::begin(ctx);
                let env = ctx.env(params);
                let page = self.cursor.next(&plan.source, ctx.txn, &env, wanted).await;
                if let Some(measure) = measure {
                    measure.end(NodeKey::source(&plan.source), !self.has_read, RowCounts::default(), ctx.txn);
                    self.has_read = true;
                }
                page
            }
        }
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
            match self.page(plan, ctx, params, 1).await? {
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

/// A running node.
pub(super) struct RelRun {
    state: RelState,
    /// Whether EXPLAIN ANALYZE has counted it.
    is_started: bool,
}

enum RelState {
    /// A query; `None` before its first row.
    Query(Option<Box<QueryRun>>),
    /// A join of two nodes.
    Join(Box<(JoinRun, RelRun, RelRun)>),
    /// A set operation of two nodes.
    Set(Box<(SetRun, RelRun, RelRun)>),
    /// A function in FROM.
    Function(FunctionRun),
    /// Functions over the rows of a node.
    SetValues(Box<(SetValuesRun, RelRun)>),
    /// Window functions over the rows of a node.
    Windows(Box<(WindowRun, RelRun)>),
    /// A reader of a query of WITH.
    With(WithReader),
}

/// A running node with its plan.
struct Node<'n> {
    run: &'n mut RelRun,
    rel: &'n Rel,
}

impl Input for Node<'_> {
    fn next<'f>(
        &'f mut self,
        ctx: &'f mut ExecContext<'_>,
        frame: &'f [Datum],
        most: usize,
    ) -> BoxFuture<'f, Result<Vec<Row>, SqlError>> {
        self.run.next(self.rel, ctx, frame, most)
    }

    fn restart(&mut self) {
        *self.run = RelRun::new(self.rel);
    }
}

impl RelRun {
    /// A node before its first row.
    pub(super) fn new(rel: &Rel) -> RelRun {
        let state = match rel {
            Rel::Query(_) => RelState::Query(None),
            Rel::Join(join) => {
                RelState::Join(Box::new((JoinRun::new(), RelRun::new(&join.left), RelRun::new(&join.right))))
            }
            Rel::Set(set) => RelState::Set(Box::new((SetRun::new(), RelRun::new(&set.left), RelRun::new(&set.right)))),
            Rel::Function(_) => RelState::Function(FunctionRun::new()),
            Rel::SetValues(values) => RelState::SetValues(Box::new((SetValuesRun::new(), RelRun::new(&values.input)))),
            Rel::Windows(windows) => RelState::Windows(Box::new((WindowRun::new(), RelRun::new(&windows.input)))),
            Rel::With(_) => RelState::With(WithReader::new()),
        };
        RelRun { state, is_started: false }
    }

    /// The next rows, at most `most`, and none only at the end. `frame`: the statement's parameters, then the values of
    /// the row around it.
    fn next<'f>(
        &'f mut self,
        rel: &'f Rel,
        ctx: &'f mut ExecContext<'_>,
        frame: &'f [Datum],
        most: usize,
    ) -> BoxFuture<'f, Result<Vec<Row>, SqlError>> {
        let Some(measure) = Measure::begin(ctx).filter(|_| !matches!(rel, Rel::Query(_))) else {
            return self.state.next(rel, ctx, frame, most);
        };
        Box::pin(async move {
            let rows = self.state.next(rel, ctx, frame, most).await?;
            let counts = RowCounts { returned: rows.len() as u64, ..RowCounts::default() };
            measure.call(NodeKey::rel(rel), !self.is_started, counts);
            self.is_started = true;
            Ok(rows)
        })
    }
}

impl RelState {
    fn next<'f>(
        &'f mut self,
        rel: &'f Rel,
        ctx: &'f mut ExecContext<'_>,
        frame: &'f [Datum],
        most: usize,
    ) -> BoxFuture<'f, Result<Vec<Row>, SqlError>> {
        Box::pin(async move {
            match (self, rel) {
                (RelState::Query(run), Rel::Query(plan)) => {
                    if run.is_none() {
                        *run = Some(Box::new(QueryRun::new(plan, ROW_UNITS, ctx, frame).await?));
                    }
                    match run {
                        Some(run) => run.next(plan, ctx, frame, most).await,
                        None => Ok(Vec::new()),
                    }
                }
                (RelState::Join(run), Rel::Join(join)) => {
                    let (run, left, right) = &mut **run;
                    let mut left = Node { run: left, rel: &join.left };
                    let mut right = Node { run: right, rel: &join.right };
                    run.next(join, (&mut left, &mut right), ctx, frame, most).await
                }
                (RelState::Set(run), Rel::Set(set)) => {
                    let (run, left, right) = &mut **run;
                    let mut left = Node { run: left, rel: &set.left };
                    let mut right = Node { run: right, rel: &set.right };
                    run.next(set, (&mut left, &mut right), ctx, frame, most).await
                }
                (RelState::Function(run), Rel::Function(scan)) => run.next(scan, ctx, frame, most).await,
                (RelState::SetValues(run), Rel::SetValues(values)) => {
                    let (run, input) = &mut **run;
                    let mut input = Node { run: input, rel: &values.input };
                    run.next(values, &mut input, ctx, frame, most).await
                }
                (RelState::Windows(run), Rel::Windows(windows)) => {
                    let (run, input) = &mut **run;
                    let mut input = Node { run: input, rel: &windows.input };
                    run.next(windows, &mut input, ctx, frame, most).await
                }
                (RelState::With(reader), Rel::With(scan)) => reader.next(scan, ctx, frame, most).await,
                _ => Err(SqlError::internal("a node runs another one's plan")),
            }
        })
    }
}

/// Whether the expressions of a query are to be rehearsed.
fn rehearses(plan: &SelectPlan, ctx: &ExecContext<'_>) -> bool {
    ctx.rehearses_always() || (plan.has_subqueries && ctx.rehearses())
}
