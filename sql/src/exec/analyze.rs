//! EXPLAIN ANALYZE: runs a statement to its end, drops its rows, and prints the plan with what was counted.
//!
//! As in PostgreSQL the statement has its effects. The rows of a node are those that it gives to the one above; they
//! are counted in every run, which costs an addition each. Times of single nodes are not taken (TIMING OFF).

use tso::Timestamp;
use txn::View;

use super::context::ExecContext;
use super::query::QueryRun;
use super::references;
use super::report::show_report;
use super::{insert, modify, with_changes};
use crate::clock;
use crate::error::SqlError;
use crate::plan::{Actual, Analyze, Body, Plan, RowCounts, analyzed_lines};
use pgtypes::Datum;

/// Rows that are produced and dropped at a time.
const BATCH_ROWS: usize = 512;

/// Runs the plan of an EXPLAIN ANALYZE. Returns its lines. `view`: what a query sees, if it was kept from later writes.
pub(super) async fn run(
    plan: &Plan,
    options: Analyze,
    view: Option<View>,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Vec<String>, SqlError> {
    let begin = clock::instant();
    let (rows, returning) = execute(plan, view, ctx, params).await?;
    let elapsed = clock::instant().duration_since(begin);
    let start_ts = ctx.txn.start_ts();
    let read = match ctx.txn.reads() {
        Some(reads) => reads.trace.take().map(|report| {
            // The session shows it too.
            reads.trace.add(report);
            show_report(&report)
        }),
        None => (start_ts > Timestamp::ZERO).then(|| format!("path=leader start_ts={start_ts}")),
    };
    let mut lines = analyzed_lines(&plan.whole(), &Actual { rows, returning, read });
    if options.summary {
        lines.push(format!("Execution Time: {:.3} ms", elapsed.as_secs_f64() * 1_000.0));
    }
    Ok(lines)
}

/// Runs the statement. Returns the rows of its query or scan, and the number of those of RETURNING.
async fn execute(
    plan: &Plan,
    view: Option<View>,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<(RowCounts, u64), SqlError> {
    let units = plan.cost.row;
    if plan.changes_in_with {
        let done = with_changes::run(plan, ctx, params).await?;
        let returning = if matches!(plan.body, Body::Select(_)) { 0 } else { done.returned.len() as u64 };
        return Ok((done.read, returning));
    }
    let changes = match &plan.body {
        Body::Select(select) => {
            let mut run = QueryRun::new(select, units, ctx, params).await?;
            if let Some(view) = view {
                run.freeze(|| view);
            }
            while !run.next(select, ctx, params, BATCH_ROWS).await?.is_empty() {}
            return Ok((run.counts(), 0));
        }
        Body::Insert(insert) => insert::run(insert, units, ctx, params).await?,
        Body::Update(update) => modify::update(update, units, ctx, params).await?,
        Body::Delete(delete) => modify::delete(delete, units, ctx, params).await?,
        _ => return Err(SqlError::internal("EXPLAIN ANALYZE of a statement that does not run")),
    };
    if let Some(found) = &plan.references {
        Box::pin(references::settle(found, ctx)).await?;
    }
    Ok((changes.read, changes.returned.len() as u64))
}
