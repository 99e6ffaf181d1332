//! The stages between source and client: filter, aggregation, projection, DISTINCT, sort, OFFSET and LIMIT.
//!
//! Rows are pushed in and results taken out. Aggregation and sort produce results in [`Pipeline::finish`]; otherwise a
//! row passes straight through. A sort under a LIMIT buffers at most twice the rows that can be returned, or 1024. Many
//! rows are sorted, and dropped, on another thread.

use std::cmp::Ordering;
use std::collections::{HashSet, VecDeque};

use kv::Key;

use super::aggregate::Groups;
use super::budget::Budget;
use super::context::ExecContext;
use super::rows::{Row, distinct_key, key_order, row_bytes};
use crate::coop::{MANY, Turn, drop_elsewhere, on_other_thread};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::eval::{Env, eval, is_true, qualifies};
use crate::plan::{Aggregation, RowCounts, SelectPlan, SortKey};
use pgtypes::Datum;

/// First page when all rows will be read.
const FULL_PAGE: u32 = 1024;
/// First page when the client may stop at any row.
const INITIAL_PAGE: u32 = 128;

/// The state of a query's stages.
pub(crate) struct Pipeline {
    skip: u64,
    /// Rows that may still be returned.
    remaining: u64,
    groups: Groups,
    seen: HashSet<Vec<u8>>,
    /// Rows to sort, with their keys if they are to be locked.
    unsorted: Vec<(Option<Key>, Row)>,
    /// Finished rows.
    out: VecDeque<(Option<Key>, Row)>,
    budget: Budget,
    /// Whether the output is distinct columns of the input, which can be moved.
    plain: bool,
    /// Outputs that are evaluated after the sort.
    deferred: Vec<usize>,
    counts: RowCounts,
    /// Whether DISTINCT ON drops rows behind the sort, so that all are needed.
    keeps_all: bool,
}

impl Pipeline {
    /// The stages of a plan. Evaluates LIMIT and OFFSET.
    pub(crate) fn new(plan: &SelectPlan, env: &Env<'_>) -> Result<Pipeline, SqlError> {
        // Rows that are locked count towards the limit once they are.
        let (skip, remaining) = if plan.lock.is_some() { (0, u64::MAX) } else { limits(plan, env)? };
        let columns: Option<Vec<usize>> = plan
            .output
            .iter()
            .map(|expr| match expr {
                Expr::Column(at) => Some(*at),
                _ => None,
            })
            .collect();
        let plain = plan.locked_join.is_none();
        let plain = plain
            && columns.is_some_and(|columns| columns.iter().enumerate().all(|(i, at)| !columns[..i].contains(at)));
        Ok(Pipeline {
            skip,
            remaining,
            groups: Groups::new(plan.aggregation.as_ref()),
            seen: HashSet::new(),
            unsorted: Vec::new(),
            out: VecDeque::new(),
            budget: Budget::of_work(env.session),
            plain,
            deferred: Vec::new(),
            counts: RowCounts::default(),
            keeps_all: false,
        })
    }

    /// The number of source rows likely to be needed first.
    pub(crate) fn first_page_rows(&self, plan: &SelectPlan) -> u32 {
        if plan.aggregation.is_some() || !plan.sort.is_empty() {
            return FULL_PAGE;
        }
        let rows = u32::try_from(self.remaining.saturating_add(self.skip)).unwrap_or(u32::MAX);
        // A filter drops some rows.
        let least = if plan.filter.is_some() || plan.distinct { 32 } else { 1 };
        rows.clamp(least, INITIAL_PAGE)
    }

    /// Whether no further source row can change the result.
    pub(crate) fn is_satisfied(&self) -> bool {
        self.remaining == 0 && !self.groups.is_used && self.unsorted.is_empty()
    }

    /// The rows that have passed its stages since the last call.
    pub(crate) fn take_counts(&mut self) -> RowCounts {
        std::mem::take(&mut self.counts)
    }

    /// The number of finished rows.
    pub(crate) fn ready(&self) -> usize {
        self.out.len()
    }

    /// Puts off the evaluation of outputs that take advisory locks or draw from sequences until rows are sorted, as
    /// PostgreSQL does: nothing is taken for a row that LIMIT drops.
    pub(crate) fn defer(&mut self, plan: &SelectPlan) {
        if plan.sort.is_empty() || plan.distinct || plan.aggregation.is_some() || plan.lock.is_some() {
            return;
        }
        let is_key = |at: &usize| plan.sort.iter().any(|key| key.column == *at);
        let outputs = plan.output.iter().enumerate().filter(|(_, expr)| expr.takes_locks() || expr.uses_sequences());
        self.deferred = outputs.map(|(at, _)| at).filter(|at| !is_key(at)).collect();
    }

    /// Evaluates what [`Pipeline::push`] will evaluate for a row. Changes nothing.
    pub(crate) fn rehearse(&self, plan: &SelectPlan, row: &Row, env: &Env<'_>) -> Result<(), SqlError> {
        if let Some(filter) = &plan.filter
            && !qualifies(filter, row, env)?
        {
            return Ok(());
        }
        match &plan.aggregation {
            Some(aggregation) => {
                aggregation.keys.iter().try_for_each(|key| eval(key, row, env).map(drop))?;
                aggregation.calls.iter().try_for_each(|call| {
                    let counts = call.filter.as_ref().map_or(Ok(true), |filter| is_true(filter, row, env))?;
                    call.inputs().filter(|_| counts).try_for_each(|arg| eval(arg, row, env).map(drop))
                })
            }
            None => self.evaluated(plan).try_for_each(|(_, expr)| eval(expr, row, env).map(drop)),
        }
    }

    /// The outputs that are evaluated at once.
    fn evaluated<'p>(&self, plan: &'p SelectPlan) -> impl Iterator<Item = (usize, &'p Expr)> {
        plan.output.iter().enumerate().filter(|(at, _)| !self.deferred.contains(at))
    }

    /// Whether outputs were put off, which may read tables.
    pub(crate) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Evaluates the outputs that were put off, of the next `most` rows.
    pub(crate) async fn complete(
        &mut self,
        plan: &SelectPlan,
        most: usize,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<(), SqlError> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        for (_, row) in self.out.iter_mut().take(most) {
            // The row of the source stands behind the outputs.
            let source = row.split_off(plan.output.len().min(row.len()));
            if source.is_empty() {
                continue;
            }
            for at in &self.deferred {
                let Some(expr) = plan.output.get(*at) else { continue };
                row[*at] = ctx.rehearse(params, |env| Ok(eval(expr, &source, env)?.into_owned())).await?;
            }
        }
        Ok(())
    }

    /// Adds a row of the source.
    pub(crate) fn push(
        &mut self,
        plan: &SelectPlan,
        key: Option<Key>,
        row: Row,
        env: &Env<'_>,
    ) -> Result<(), SqlError> {
        self.counts.source += 1;
        if let Some(filter) = &plan.filter
            && !qualifies(filter, &row, env)?
        {
            return Ok(());
        }
        self.counts.passed += 1;
        if let Some(aggregation) = &plan.aggregation {
            return self.groups.add(aggregation, &row, env, &mut self.budget);
        }
        self.project(plan, key, row, env)
    }

    fn project(&mut self, plan: &SelectPlan, key: Option<Key>, mut row: Row, env: &Env<'_>) -> Result<(), SqlError> {
        let mut output = Vec::with_capacity(plan.output.len());
        for (at, expr) in plan.output.iter().enumerate() {
            output.push(match expr {
                Expr::Column(at) if self.plain => row.get_mut(*at).map(std::mem::take).unwrap_or_default(),
                _ if self.deferred.contains(&at) => Datum::Null,
                expr => eval(expr, &row, env)?.into_owned(),
            });
        }
        if !self.deferred.is_empty() || plan.locked_join.is_some() {
            output.append(&mut row);
        }
        if plan.distinct {
            let key = distinct_key(&output[..plan.visible])?;
            let bytes = key.len() + size_of::<Vec<u8>>();
            if !self.seen.insert(key) {
                return Ok(());
            }
            self.budget.charge(bytes)?;
            self.counts.distinct += 1;
        }
        if plan.sort.is_empty() {
            if !plan.distinct_on.is_empty() {
                let key = distinct_key(plan.distinct_on.iter().filter_map(|at| output.get(*at)))?;
                self.budget.charge(key.len() + size_of::<Vec<u8>>())?;
                if !self.seen.insert(key) {
                    return Ok(());
                }
            }
            self.emit(key, output);
            return Ok(());
        }
        self.budget.charge(row_bytes(&output))?;
        self.keeps_all = !plan.distinct_on.is_empty();
        self.unsorted.push((key, output));
        Ok(())
    }

    /// The number of first rows of the order that can be returned.
    fn most(&self) -> usize {
        if self.keeps_all {
            return usize::MAX;
        }
        usize::try_from(self.remaining.saturating_add(self.skip)).unwrap_or(usize::MAX)
    }

    /// Whether so many rows are buffered for a sort that it has to drop some.
    pub(crate) fn is_overfull(&self) -> bool {
        self.unsorted.len() >= self.most().saturating_mul(2).max(1024)
    }

    /// Sorts the buffered rows, and drops those that cannot be returned. Many rows are sorted on a thread for blocking
    /// work, because they would delay the other sessions of this thread.
    pub(crate) async fn sort(&mut self, plan: &SelectPlan) -> Result<(), SqlError> {
        let (mut rows, most) = (std::mem::take(&mut self.unsorted), self.most());
        let dropped = if rows.len() > MANY {
            let keys = plan.sort.clone();
            let sorting = on_other_thread(move || (sort_first(&mut rows, &keys, most), rows));
            let (dropped, sorted) = sorting.await?;
            self.unsorted = sorted;
            dropped
        } else {
            let dropped = sort_first(&mut rows, &plan.sort, most);
            self.unsorted = rows;
            dropped
        };
        self.budget.release(dropped);
        Ok(())
    }

    fn emit(&mut self, key: Option<Key>, row: Row) {
        if self.skip > 0 {
            self.skip -= 1;
            self.counts.skipped += 1;
        } else if self.remaining > 0 {
            self.remaining -= 1;
            self.out.push_back((key, row));
        }
    }

    /// Finishes aggregation and sort at the end of the source.
    pub(crate) async fn finish(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<(), SqlError> {
        let mut turn = Turn::new();
        if let Some(aggregation) = &plan.aggregation {
            for group in std::mem::take(&mut self.groups).finish() {
                turn.spend(1 + aggregation.calls.len()).await;
                if ctx.rehearses() {
                    ctx.rehearse(params, |env| group.rehearse(aggregation, env)).await?;
                }
                let row = group.row(aggregation, &ctx.env(params), &mut self.budget)?;
                self.group(plan, aggregation, row, ctx, params).await?;
                if self.is_overfull() {
                    self.sort(plan).await?;
                }
            }
        }
        if self.unsorted.is_empty() {
            return Ok(());
        }
        self.sort(plan).await?;
        let mut sorted = std::mem::take(&mut self.unsorted);
        if self.keeps_all {
            let key = |row: &Row| distinct_key(plan.distinct_on.iter().filter_map(|at| row.get(*at)));
            let mut outcome = Ok(());
            sorted.dedup_by(|(_, a), (_, b)| match key(a).and_then(|a| Ok(a == key(b)?)) {
                Ok(is_same) => is_same,
                Err(error) => {
                    outcome = Err(error);
                    false
                }
            });
            outcome?;
            self.counts.distinct += sorted.len() as u64;
            let most = usize::try_from(self.remaining.saturating_add(self.skip)).unwrap_or(usize::MAX);
            sorted.truncate(most);
        }
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(sorted.len());
        self.counts.skipped += skipped as u64;
        if skipped > MANY {
            drop_elsewhere(sorted.drain(..skipped).collect::<Vec<_>>());
        } else {
            sorted.drain(..skipped);
        }
        self.out = sorted.into();
        Ok(())
    }

    /// Adds the row of a group, if it passes HAVING.
    async fn group(
        &mut self,
        plan: &SelectPlan,
        aggregation: &Aggregation,
        row: Row,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
    ) -> Result<(), SqlError> {
        if ctx.rehearses() {
            let rehearsed = |env: &Env<'_>| {
                let passes = aggregation.having.as_ref().map_or(Ok(true), |having| qualifies(having, &row, env))?;
                let outputs = plan.output.iter().filter(|_| passes);
                outputs.into_iter().try_for_each(|expr| eval(expr, &row, env).map(drop))
            };
            ctx.rehearse(params, rehearsed).await?;
        }
        let env = &ctx.env(params);
        let passes = match &aggregation.having {
            Some(having) => qualifies(having, &row, env)?,
            None => true,
        };
        if passes {
            self.counts.grouped += 1;
            self.project(plan, None, row, env)?;
        }
        Ok(())
    }

    /// Takes at most `most` rows.
    pub(crate) fn take(&mut self, plan: &SelectPlan, most: usize) -> Vec<Row> {
        let count = most.min(self.out.len());
        self.counts.returned += count as u64;
        let rows = self.out.drain(..count).map(|(_, mut row)| {
            row.truncate(plan.visible);
            row
        });
        rows.collect()
    }

    /// Takes at most `most` rows of a table, with their keys, to be locked.
    pub(crate) fn take_keyed(&mut self, plan: &SelectPlan, most: usize) -> Vec<(Key, Row)> {
        let rows = self.out.drain(..most.min(self.out.len())).filter_map(|(key, mut row)| {
            row.truncate(plan.visible);
            Some((key?, row))
        });
        rows.collect()
    }

    /// Takes at most `most` rows of a join, each with the row of the source, to be locked.
    pub(crate) fn take_with_source(&mut self, plan: &SelectPlan, most: usize) -> Vec<(Row, Row)> {
        let rows = self.out.drain(..most.min(self.out.len())).map(|(_, mut row)| {
            let source = row.split_off(plan.output.len().min(row.len()));
            row.truncate(plan.visible);
            (row, source)
        });
        rows.collect()
    }

    /// Counts rows that were skipped and returned after they were locked.
    pub(crate) fn count_locked(&mut self, skipped: u64, returned: u64) {
        self.counts.skipped += skipped;
        self.counts.returned += returned;
    }
}

impl Drop for Pipeline {
    /// A query that ends early leaves rows behind, DISTINCT all its keys.
    fn drop(&mut self) {
        if self.unsorted.len() + self.out.len() + self.seen.len() > MANY {
            let rows = (std::mem::take(&mut self.unsorted), std::mem::take(&mut self.out));
            drop_elsewhere((rows, std::mem::take(&mut self.seen)));
        }
    }
}

/// The rows to skip, and those that may be returned then.
pub(crate) fn limits(plan: &SelectPlan, env: &Env<'_>) -> Result<(u64, u64), SqlError> {
    let skip = row_count(plan.offset.as_ref(), env, "OFFSET")?.unwrap_or(0);
    Ok((skip, row_count(plan.limit.as_ref(), env, "LIMIT")?.unwrap_or(u64::MAX)))
}

/// The output of a source's row that has changed since it was read; `None` if it does not pass the filter any more.
pub(crate) fn output_again(plan: &SelectPlan, row: &Row, env: &Env<'_>) -> Result<Option<Row>, SqlError> {
    if let Some(filter) = &plan.filter
        && !qualifies(filter, row, env)?
    {
        return Ok(None);
    }
    let visible = plan.output.iter().take(plan.visible);
    visible.map(|expr| Ok(eval(expr, row, env)?.into_owned())).collect::<Result<Row, SqlError>>().map(Some)
}

/// The value of LIMIT or OFFSET; `None` if NULL or absent.
fn row_count(expr: Option<&Expr>, env: &Env<'_>, clause: &str) -> Result<Option<u64>, SqlError> {
    let Some(expr) = expr else { return Ok(None) };
    match &*eval(expr, &[], env)? {
        Datum::Int(count) => u64::try_from(*count).map(Some).map_err(|_| {
            let code = if clause == "LIMIT" { SqlState::INVALID_LIMIT } else { SqlState::INVALID_OFFSET };
            SqlError::new(code, format!("{clause} must not be negative"))
        }),
        _ => Ok(None),
    }
}

/// Sorts rows and keeps the first `most`. Returns the bytes of the others.
fn sort_first(rows: &mut Vec<(Option<Key>, Row)>, keys: &[SortKey], most: usize) -> usize {
    rows.sort_by(|(_, a), (_, b)| order(keys, a, b));
    rows.drain(most.min(rows.len())..).map(|(_, row)| row_bytes(&row)).sum()
}

/// The order of two output rows.
fn order(keys: &[SortKey], a: &Row, b: &Row) -> Ordering {
    let mut orders = keys.iter().map(|key| key_order(&a[key.column], &b[key.column], key.descending, key.nulls_first));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
