//! A running query: a cursor that reads its source, and the pipeline over the rows.

use txn::View;

use super::context::ExecContext;
use super::cursor::Cursor;
use super::pipeline::Pipeline;
use super::rows::Row;
use crate::error::{SqlError, storage_error};
use crate::expr::eval::Env;
use crate::plan::SelectPlan;
use crate::types::Datum;

/// A running query.
pub(super) struct QueryRun {
    cursor: Cursor,
    pipeline: Pipeline,
    exhausted: bool,
    /// The state of the transaction that it reads, once others write to it.
    view: Option<View>,
}

impl QueryRun {
    /// Computes the bounds of the source. Does no I/O.
    pub(super) fn new(plan: &SelectPlan, env: &Env<'_>) -> Result<QueryRun, SqlError> {
        let pipeline = Pipeline::new(plan, env)?;
        let cursor = Cursor::new(&plan.source, pipeline.first_page_rows(plan), env)?;
        Ok(QueryRun { cursor, pipeline, exhausted: false, view: None })
    }

    /// From now on reads the transaction as it was at `view`, unless it has a view already or reads no more.
    pub(super) fn freeze(&mut self, view: impl FnOnce() -> View) {
        if !self.exhausted {
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
        ctx.txn.set_view(self.view.take());
        let read = self.read(plan, ctx, params, max_rows).await;
        self.view = ctx.txn.set_view(None);
        read?;
        let (rows, keys) = self.pipeline.take(plan, max_rows);
        for key in keys {
            ctx.txn.lock(key).map_err(storage_error)?;
        }
        Ok(rows)
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
                self.pipeline.finish(plan, &ctx.env(params))?;
                break;
            }
            let wanted = u32::try_from(max_rows - self.pipeline.ready()).unwrap_or(u32::MAX);
            let env = ctx.env(params);
            match self.cursor.next(&plan.source, ctx.txn, &env, wanted).await? {
                Some(rows) => {
                    for (key, row) in rows {
                        self.pipeline.push(plan, key, row, &env)?;
                    }
                }
                None => {
                    self.exhausted = true;
                    self.pipeline.finish(plan, &env)?;
                }
            }
        }
        Ok(())
    }
}
