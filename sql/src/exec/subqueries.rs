//! Runs of sub-queries in expressions.
//!
//! A correlated one may keep the rows of its table between its runs, by the values around it
//! ([`crate::plan::KeptRows`]). They are those of the statement's snapshot, so each run would read the same. Memory is
//! bounded: if they do not fit, the sub-query reads the table each time, as before.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::budget::Budget;
use super::context::{ByKey, ExecContext, Kept, StatementState};
use super::input::{BATCH, ROW_UNITS};
use super::query::QueryRun;
use super::rows::{Row, equality_key, row_bytes};
use crate::coop::Turn;
use crate::error::{SqlError, SqlState};
use crate::expr::eval::{Env, eval};
use crate::expr::{Expr, Pending, SubqueryRows};
use crate::plan::{KeptRows, SelectPlan, Subplan};
use pgtypes::Datum;

/// The runs of a sub-query that read its table, before the rows are kept.
const RUNS: u32 = 8;
/// Rows that are read at a time.
const KEPT_BATCH: usize = 512;
/// About the memory of a key, beside its bytes.
const KEY_BYTES: usize = 96;
/// The work of keeping a row, in units of [`Turn`].
const UNITS: usize = 8;

/// Runs a sub-query that an evaluation waits for.
pub(super) fn run_subquery<'f>(
    ctx: &'f mut ExecContext<'_>,
    pending: &'f Pending,
) -> BoxFuture<'f, Result<SubqueryRows, SqlError>> {
    Box::pin(async move {
        let statement = ctx.statement.ok_or_else(|| SqlError::internal("a sub-query without a statement"))?;
        let plan = Arc::clone(&statement.plan);
        let subplan = plan.subplans.get(pending.plan).ok_or_else(|| SqlError::internal("a sub-query is missing"))?;
        let view = statement.view.lock().take();
        let has_view = view.is_some();
        let outer = if has_view { ctx.txn.set_view(view) } else { None };
        let rows = subquery_rows(statement, (pending.plan, subplan), ctx, &pending.frame).await;
        if has_view {
            *statement.view.lock() = ctx.txn.set_view(outer);
        }
        SubqueryRows::new(rows?, subplan.is_set)
    })
}

async fn subquery_rows(
    statement: &StatementState,
    (place, subplan): (usize, &Subplan),
    ctx: &mut ExecContext<'_>,
    frame: &[Datum],
) -> Result<Vec<Row>, SqlError> {
    let kept = match &subplan.kept {
        Some(kept) => rows_of_run(statement, (place, kept), ctx, frame).await?,
        None => None,
    };
    some_rows(&subplan.plan, kept, (ctx, frame), subplan.most).await
}

/// The first rows of a query. `kept`: those that it reads instead of its source.
async fn some_rows(
    plan: &SelectPlan,
    kept: Option<Arc<Vec<Row>>>,
    (ctx, frame): (&mut ExecContext<'_>, &[Datum]),
    most: usize,
) -> Result<Vec<Row>, SqlError> {
    let mut budget = Budget::of_work(ctx.session);
    let mut run = QueryRun::new(plan, ROW_UNITS, ctx, frame).await?;
    if let Some(rows) = kept {
        run = run.over(rows);
    }
    let mut rows: Vec<Row> = Vec::new();
    while rows.len() < most {
        let batch = run.next(plan, ctx, frame, BATCH.min(most - rows.len())).await?;
        if batch.is_empty() {
            break;
        }
        for row in batch {
            budget.charge(row_bytes(&row))?;
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The rows that a run of the sub-query at a place reads instead of its table; `None`: it reads the table.
async fn rows_of_run(
    statement: &StatementState,
    (place, kept): (usize, &KeptRows),
    ctx: &mut ExecContext<'_>,
    frame: &[Datum],
) -> Result<Option<Arc<Vec<Row>>>, SqlError> {
    let known = match statement.kept.lock().entry(place).or_insert(Kept::Runs(0)) {
        Kept::Rows(rows) => Some(Arc::clone(rows)),
        Kept::Runs(runs) if *runs >= RUNS => None,
        Kept::Runs(runs) => {
            *runs += 1;
            return Ok(None);
        }
        Kept::TooLarge => return Ok(None),
    };
    let rows = match known {
        Some(rows) => rows,
        None => {
            let read = match read(kept, ctx, frame).await {
                Ok(rows) => Arc::new(rows),
                Err(error) if error.code == SqlState::OUT_OF_MEMORY => {
                    statement.kept.lock().insert(place, Kept::TooLarge);
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            statement.kept.lock().insert(place, Kept::Rows(Arc::clone(&read)));
            read
        }
    };
    let env = ctx.env(frame);
    let key = key_of(kept.keys.iter().map(|(_, around)| around), &Row::new(), &env)?;
    Ok(Some(key.and_then(|key| rows.get(&key).cloned()).unwrap_or_default()))
}

async fn read(kept: &KeptRows, ctx: &mut ExecContext<'_>, frame: &[Datum]) -> Result<ByKey, SqlError> {
    let (mut budget, mut turn) = (Budget::of_work(ctx.session), Turn::new());
    let mut run = QueryRun::new(&kept.base, UNITS, ctx, frame).await?;
    let mut found: HashMap<Vec<u8>, Vec<Row>> = HashMap::new();
    loop {
        let rows = run.next(&kept.base, ctx, frame, KEPT_BATCH).await?;
        if rows.is_empty() {
            return Ok(found.into_iter().map(|(key, rows)| (key, Arc::new(rows))).collect());
        }
        for row in rows {
            turn.spend(UNITS).await;
            let Some(key) = key_of(kept.keys.iter().map(|(own, _)| own), &row, &ctx.env(frame))? else { continue };
            budget.charge(row_bytes(&row) + KEY_BYTES + key.len())?;
            found.entry(key).or_default().push(row);
        }
    }
}

/// The values of a key; `None` if one is NULL, which equals nothing.
fn key_of<'e>(exprs: impl Iterator<Item = &'e Expr>, row: &Row, env: &Env<'_>) -> Result<Option<Vec<u8>>, SqlError> {
    let values = exprs.map(|expr| Ok(eval(expr, row, env)?.into_owned())).collect::<Result<Vec<Datum>, SqlError>>()?;
    (!values.iter().any(Datum::is_null)).then(|| equality_key(&values)).transpose()
}
