//! EXPLAIN ANALYZE: runs a statement to its end, drops its rows, and shows the plan with what was counted
//! ([`super::measure`]). As in PostgreSQL the statement has its effects.

use txn::View;

use super::context::ExecContext;
use super::query::QueryRun;
use super::references;
use super::{insert, modify, with_changes};
use crate::clock;
use crate::error::SqlError;
use crate::plan::{Body, Explain, Plan, StatementRun};
use pgtypes::Datum;

/// Rows that are produced and dropped at a time.
const BATCH_ROWS: usize = 512;

/// Runs the plan of an EXPLAIN ANALYZE. Returns its rows. `view`: what a query sees, if it was kept from later writes.
pub(super) async fn run(
    plan: &Plan,
    explain: Explain,
    view: Option<View>,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Vec<String>, SqlError> {
    let begin = clock::instant();
    let returning = execute(plan, view, ctx, params).await?;
    let elapsed = clock::instant().duration_since(begin);
    let profile = ctx.profile().ok_or_else(|| SqlError::internal("EXPLAIN ANALYZE without a profile"))?;
    Ok(explain.rows(&plan.whole(), Some(&StatementRun { profile, returning, elapsed }), ctx.io.names))
}

/// Runs the statement. Returns the number of the rows of RETURNING.
async fn execute(
    plan: &Plan,
    view: Option<View>,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<u64, SqlError> {
    let units = plan.cost.row;
    if plan.changes_in_with {
        let done = with_changes::run(plan, ctx, params).await?;
        return Ok(if matches!(plan.body, Body::Select(_)) { 0 } else { done.returned.len() as u64 });
    }
    let changes = match &plan.body {
        Body::Select(select) => {
            let mut run = QueryRun::new(select, units, ctx, params).await?;
            if let Some(view) = view {
                run.freeze(|| view);
            }
            while !run.next(select, ctx, params, BATCH_ROWS).await?.is_empty() {}
            return Ok(0);
        }
        Body::Insert(insert) => insert::run(insert, units, ctx, params).await?,
        Body::Update(update) => modify::update(update, units, ctx, params).await?,
        Body::Delete(delete) => modify::delete(delete, units, ctx, params).await?,
        _ => return Err(SqlError::internal("EXPLAIN ANALYZE of a statement that does not run")),
    };
    if let Some(found) = &plan.references {
        Box::pin(references::settle(found, ctx)).await?;
    }
    Ok(changes.returned.len() as u64)
}
