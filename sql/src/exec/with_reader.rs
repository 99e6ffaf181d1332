//! Readers of the queries of WITH.
//!
//! A query runs once for all its readers, or anew whenever the values around it that it uses have changed. Its rows are
//! kept. It runs no farther than its readers ask, as in PostgreSQL: whoever wants a row behind the last one reads on.

use std::sync::Arc;

use parking_lot::Mutex;

use super::budget::Budget;
use super::context::{ExecContext, StatementState, WithRest, WithRun};
use super::rows::Row;
use crate::error::SqlError;
use crate::expr::eval::eval;
use crate::plan::WithScan;
use pgtypes::Datum;

/// A reader of a query of WITH.
pub(super) struct WithReader {
    /// What it reads; `None` before its first row.
    source: Option<WithSource>,
    /// The rows that it has given.
    given: usize,
}

#[derive(Clone)]
enum WithSource {
    Run(Arc<Mutex<WithRun>>),
    /// The rows of the last step, for the recursion itself.
    Step(Arc<Vec<Row>>),
}

impl WithReader {
    /// A reader before the first row.
    pub(super) fn new() -> WithReader {
        WithReader { source: None, given: 0 }
    }

    /// The next rows, at most `most`, and none only at the end. `frame`: the statement's parameters, then the values of
    /// the row around it.
    pub(super) async fn next(
        &mut self,
        scan: &WithScan,
        ctx: &mut ExecContext<'_>,
        frame: &[Datum],
        most: usize,
    ) -> Result<Vec<Row>, SqlError> {
        let source = match &self.source {
            Some(source) => source.clone(),
            None => self.source.insert(source_of(scan, ctx, frame)?).clone(),
        };
        let run = match source {
            WithSource::Run(run) => run,
            WithSource::Step(rows) => return Ok(self.page(&rows, most)),
        };
        loop {
            let mut query = {
                let run = &mut *run.lock();
                let page = self.page(&run.rows, most);
                if !page.is_empty() {
                    return Ok(page);
                }
                match std::mem::replace(&mut run.rest, WithRest::Taken) {
                    WithRest::Open(query) => query,
                    WithRest::Done => {
                        run.rest = WithRest::Done;
                        return Ok(page);
                    }
                    WithRest::Taken => return Err(SqlError::internal("a query of WITH has failed, or reads itself")),
                }
            };
            let rows = query.next(ctx, most).await?;
            let run = &mut *run.lock();
            run.rest = if rows.is_empty() { WithRest::Done } else { WithRest::Open(query) };
            run.rows.extend(rows);
        }
    }

    fn page(&mut self, rows: &[Row], most: usize) -> Vec<Row> {
        let page: Vec<Row> = rows.iter().skip(self.given).take(most).cloned().collect();
        self.given += page.len();
        page
    }
}

fn source_of(scan: &WithScan, ctx: &ExecContext<'_>, frame: &[Datum]) -> Result<WithSource, SqlError> {
    let statement = ctx.statement.ok_or_else(|| SqlError::internal("WITH without a statement"))?;
    if scan.is_recursion {
        let rows = statement.recursion.lock().get(&scan.query).cloned();
        return Ok(WithSource::Step(rows.unwrap_or_default()));
    }
    let env = ctx.env(frame);
    let args = scan.args.iter().map(|arg| Ok(eval(arg, &[], &env)?.into_owned())).collect::<Result<Row, SqlError>>()?;
    Ok(WithSource::Run(run_for(scan, args, (statement, ctx), frame)))
}

/// The run for the values around it: the last one, if it is for the same.
fn run_for(
    scan: &WithScan,
    args: Row,
    (statement, ctx): (&StatementState, &ExecContext<'_>),
    frame: &[Datum],
) -> Arc<Mutex<WithRun>> {
    let mut runs = statement.with.lock();
    if let Some(last) = runs.get(&scan.query)
        && last.lock().args == args
    {
        return Arc::clone(last);
    }
    // It sees the parameters of the statement, and the values around it that it uses.
    let mut own = frame.get(..ctx.params).unwrap_or(frame).to_vec();
    own.extend(args.iter().cloned());
    let query = (statement.runs.with)(&statement.plan, scan.query, own, Budget::of_work(ctx.session));
    let run = Arc::new(Mutex::new(WithRun { args, rows: Vec::new(), rest: WithRest::Open(query) }));
    runs.insert(scan.query, Arc::clone(&run));
    run
}
