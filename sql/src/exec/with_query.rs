//! Runs of the queries of WITH, as far as their readers ask.
//!
//! A recursion goes on by whole steps, since all rows of a step read the same rows of the step before. So a LIMIT ends
//! a recursion that has no end.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::budget::Budget;
use super::context::{ExecContext, WithQuery};
use super::input::{BATCH, ROW_UNITS};
use super::query::QueryRun;
use super::rows::{Row, distinct_key, row_bytes};
use crate::coop::Turn;
use crate::error::SqlError;
use crate::plan::{Plan, SelectPlan, WithBody};
use pgtypes::Datum;

/// The work of a step of a recursion beside its rows, in units of [`Turn`].
const STEP_UNITS: usize = 200;

/// Begins the query of WITH at a place.
pub(super) fn begin(plan: &Arc<Plan>, at: usize, frame: Vec<Datum>, budget: Budget) -> Box<dyn WithQuery> {
    let (seen, turn) = (HashSet::new(), Turn::new());
    Box::new(Running { plan: Arc::clone(plan), at, frame, budget, run: None, seen, last: None, turn })
}

/// A query that runs.
struct Running {
    plan: Arc<Plan>,
    at: usize,
    /// The statement's parameters, then the values around the query.
    frame: Vec<Datum>,
    budget: Budget,
    /// The run of a query that is no recursion; `None` before its first row.
    run: Option<Box<QueryRun>>,
    /// The rows so far, of a recursion whose rows are distinct.
    seen: HashSet<Vec<u8>>,
    /// The rows of the last step of a recursion; `None` before the first.
    last: Option<Arc<Vec<Row>>>,
    turn: Turn,
}

impl WithQuery for Running {
    fn next<'f>(&'f mut self, ctx: &'f mut ExecContext<'_>, most: usize) -> BoxFuture<'f, Result<Vec<Row>, SqlError>> {
        Box::pin(async move {
            let plan = Arc::clone(&self.plan);
            let with = plan.with.get(self.at).ok_or_else(|| SqlError::internal("a query of WITH is missing"))?;
            match &with.body {
                WithBody::Query(query) => self.rows(query, ctx, most).await,
                WithBody::Recursive { first, step, all, inner } => {
                    let query = if self.begin_step(inner, ctx).await? { step } else { first };
                    let mut rows = all_rows(query, ctx, &self.frame, &mut self.budget).await?;
                    if !*all {
                        let keys = rows.iter().map(distinct_key).collect::<Result<Vec<_>, SqlError>>()?;
                        let mut is_new = keys.into_iter().map(|key| self.seen.insert(key));
                        rows.retain(|_| is_new.next().unwrap_or_default());
                    }
                    self.last = Some(Arc::new(rows.clone()));
                    Ok(rows)
                }
                WithBody::Change(_) => Err(SqlError::internal("a change of WITH has not run")),
            }
        })
    }
}

impl Running {
    /// The next rows of a query that is no recursion.
    async fn rows(&mut self, plan: &SelectPlan, ctx: &mut ExecContext<'_>, most: usize) -> Result<Vec<Row>, SqlError> {
        let run = match self.run.take() {
            Some(run) => run,
            None => Box::new(QueryRun::new(plan, ROW_UNITS, ctx, &self.frame).await?),
        };
        let rows = self.run.insert(run).next(plan, ctx, &self.frame, most.min(BATCH)).await?;
        rows.iter().try_for_each(|row| self.budget.charge(row_bytes(row)))?;
        Ok(rows)
    }

    /// Gives the rows of the last step to the next one. What stands inside of the recursion (queries of WITH,
    /// sub-queries) is read anew. False if there was no step.
    async fn begin_step(
        &mut self,
        (queries, subplans): &(Range<usize>, Range<usize>),
        ctx: &ExecContext<'_>,
    ) -> Result<bool, SqlError> {
        let Some(last) = &self.last else { return Ok(false) };
        let statement = ctx.statement.ok_or_else(|| SqlError::internal("WITH without a statement"))?;
        self.turn.spend(STEP_UNITS.saturating_add(last.len().saturating_mul(ROW_UNITS))).await;
        statement.recursion.lock().insert(self.at, Arc::clone(last));
        statement.with.lock().retain(|query, _| !queries.contains(query));
        statement.log.forget(subplans);
        Ok(true)
    }
}

/// All rows of a query.
async fn all_rows(
    plan: &SelectPlan,
    ctx: &mut ExecContext<'_>,
    frame: &[Datum],
    budget: &mut Budget,
) -> Result<Vec<Row>, SqlError> {
    let mut run = QueryRun::new(plan, ROW_UNITS, ctx, frame).await?;
    let mut rows = Vec::new();
    loop {
        let batch = run.next(plan, ctx, frame, BATCH).await?;
        if batch.is_empty() {
            return Ok(rows);
        }
        for row in batch {
            budget.charge(row_bytes(&row))?;
            rows.push(row);
        }
    }
}
