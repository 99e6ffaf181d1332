//! Statements with INSERT, UPDATE or DELETE inside WITH.
//!
//! As in PostgreSQL all parts of such a statement read the transaction as it was at its start, so none sees what
//! another one has written; rows pass from one to another by RETURNING alone. Each change runs once and to its end, in
//! this order: those whose rows are read, the statement itself, the others from the last to the first. A row that one
//! part has changed is none for the parts after it. The result is kept until the end, because foreign keys may still
//! fail then.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::budget::Budget;
use super::changes::Changes;
use super::context::{ExecContext, StatementState, WithRest, WithRun};
use super::query::QueryRun;
use super::rows::{Row, row_bytes};
use super::{insert, modify, references};
use crate::error::SqlError;
use crate::plan::{Body, Plan, SelectPlan};
use pgtypes::Datum;

/// Rows that are taken at a time.
const BATCH_ROWS: usize = 512;

/// Runs a statement. Returns what its last part, the statement itself, has changed and returns.
pub(super) fn run<'f>(
    plan: &'f Plan,
    ctx: &'f mut ExecContext<'_>,
    params: &'f [Datum],
) -> BoxFuture<'f, Result<Changes, SqlError>> {
    Box::pin(run_parts(plan, ctx, params))
}

async fn run_parts(plan: &Plan, ctx: &mut ExecContext<'_>, params: &[Datum]) -> Result<Changes, SqlError> {
    let statement = ctx.statement.ok_or_else(|| SqlError::internal("WITH without a statement"))?;
    let changes = plan.with.iter().enumerate().filter_map(|(at, query)| Some((at, query.is_read, query.change()?)));
    let changes: Vec<(usize, bool, &Body)> = changes.collect();
    *statement.starts.lock() = (0..=changes.len()).map(|_| ctx.txn.view()).collect();
    for (at, _, body) in changes.iter().filter(|(_, is_read, _)| *is_read) {
        let done = change(body, plan.cost.row, ctx, params).await?;
        keep(statement, *at, done);
    }
    let done = match &plan.body {
        Body::Select(select) => query(select, plan.cost.row, ctx, params).await?,
        body => change(body, plan.cost.row, ctx, params).await?,
    };
    for (_, _, body) in changes.iter().rev().filter(|(_, is_read, _)| !is_read) {
        change(body, plan.cost.row, ctx, params).await?;
    }
    if let Some(found) = &plan.references {
        Box::pin(references::settle(found, ctx)).await?;
    }
    Ok(done)
}

/// Keeps the rows of a change for those who read them.
fn keep(statement: &StatementState, at: usize, done: Changes) {
    let run = WithRun { args: Row::new(), rows: done.returned.into(), rest: WithRest::Done };
    statement.with.lock().insert(at, Arc::new(Mutex::new(run)));
}

async fn change(
    body: &Body,
    row_units: usize,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Changes, SqlError> {
    match body {
        Body::Insert(plan) => insert::run(plan, row_units, ctx, params).await,
        Body::Update(plan) => modify::update(plan, row_units, ctx, params).await,
        Body::Delete(plan) => modify::delete(plan, row_units, ctx, params).await,
        _ => Err(SqlError::internal("a statement that changes no rows is among changes")),
    }
}

/// All rows of the query that the statement is.
async fn query(
    plan: &SelectPlan,
    row_units: usize,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Changes, SqlError> {
    let mut run = QueryRun::new(plan, row_units, ctx, params).await?;
    run.freeze(|| ctx.start_view());
    let (mut returned, mut budget) = (VecDeque::new(), Budget::of_statement());
    loop {
        let rows = run.next(plan, ctx, params, BATCH_ROWS).await?;
        if rows.is_empty() {
            return Ok(Changes { count: 0, returned });
        }
        for row in rows {
            budget.charge(row_bytes(&row))?;
            returned.push_back(row);
        }
    }
}
