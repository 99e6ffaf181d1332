//! INSERT.
//!
//! Uniqueness costs no read: the write requires that its unique keys do not exist, and the commit checks it. A
//! statement that locks its rows locks the keys in batches: it waits for others that insert them, and reports the error
//! itself, as in PostgreSQL ([`super::writer`]). ON CONFLICT looks them up ([`super::upsert`]).

use super::budget::Budget;
use super::changes::{Changes, STORE_UNITS, rehearse};
use super::context::ExecContext;
use super::query::QueryRun;
use super::rows::{Row, row_bytes};
use super::upsert::Upsert;
use super::writer::RowWriter;
use crate::coop::Turn;
use crate::error::SqlError;
use crate::expr::Expr;
use crate::expr::eval::{Env, eval};
use crate::plan::{Conflict, InsertPlan};
use pgtypes::Datum;

/// Rows processed together.
const CHUNK: usize = 512;

/// The state of one INSERT.
struct Inserter<'p> {
    plan: &'p InsertPlan,
    writer: RowWriter<'p>,
    /// Set for ON CONFLICT.
    upsert: Option<Upsert<'p>>,
    done: Changes,
    budget: Budget,
    /// Work for a row.
    row_units: usize,
    turn: Turn,
}

/// Runs an INSERT to its end. `row_units`: the work for a row, in units of [`Turn`].
pub(super) async fn run(
    plan: &InsertPlan,
    row_units: usize,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<Changes, SqlError> {
    let mut source = QueryRun::new(&plan.source, row_units, ctx, params).await?;
    if ctx.has_several_changes() {
        source.freeze(|| ctx.start_view());
    }
    let upsert = match &*plan.conflict {
        Conflict::Fail => None,
        // Without a unique key nothing can be in the way.
        Conflict::DoNothing(arbiters) if arbiters.is_empty() => None,
        conflict => Upsert::new(&plan.write, conflict),
    };
    let mut inserter = Inserter {
        plan,
        writer: RowWriter::new(&plan.write, ctx),
        upsert,
        done: Changes::default(),
        budget: Budget::of_statement(),
        row_units: row_units + STORE_UNITS,
        turn: Turn::new(),
    };
    let mut waiting: Vec<Row> = Vec::new();
    loop {
        let rows = source.next(&plan.source, ctx, params, CHUNK).await?;
        let at_end = rows.is_empty();
        if plan.reads_itself && !at_end {
            // The scan must not return rows inserted here.
            for row in rows {
                inserter.budget.charge(row_bytes(&row))?;
                waiting.push(row);
            }
            continue;
        }
        if at_end {
            let mut waiting = waiting.into_iter();
            while waiting.len() > 0 {
                inserter.chunk(waiting.by_ref().take(CHUNK).collect(), ctx, params).await?;
            }
            return Ok(inserter.done);
        }
        inserter.chunk(rows, ctx, params).await?;
    }
}

impl Inserter<'_> {
    async fn chunk(&mut self, rows: Vec<Row>, ctx: &mut ExecContext<'_>, params: &[Datum]) -> Result<(), SqlError> {
        let mut prepared = Vec::with_capacity(rows.len());
        for source in rows {
            prepared.push(match &self.plan.columns {
                None => source,
                Some(columns) => {
                    rehearse(columns, &source, ctx, params).await?;
                    table_row(columns, source, &ctx.env(params))?
                }
            });
            self.turn.spend(self.row_units).await;
        }
        // What takes advisory locks sees each row written before the next one.
        let at_once = if ctx.takes_locks() { 1 } else { CHUNK };
        let mut rows = prepared.into_iter();
        while rows.len() > 0 {
            let chunk: Vec<Row> = rows.by_ref().take(at_once).collect();
            let written = match &mut self.upsert {
                None => self.writer.insert_rows(chunk, ctx).await?,
                Some(upsert) => upsert.write(&mut self.writer, chunk, ctx, params).await?,
            };
            for row in written {
                rehearse(self.plan.returning.iter().flatten(), &row, ctx, params).await?;
                self.done.record(self.plan.returning.as_ref(), &row, &ctx.env(params), &mut self.budget)?;
                self.turn.spend(self.row_units).await;
            }
        }
        Ok(())
    }
}

/// Builds a row of the table from a row of the source. Each source column is used at most once.
fn table_row(columns: &[Expr], mut source: Row, env: &Env<'_>) -> Result<Row, SqlError> {
    let mut row = Vec::with_capacity(columns.len());
    for expr in columns {
        row.push(match expr {
            Expr::Column(at) => source.get_mut(*at).map(std::mem::take).unwrap_or_default(),
            expr => eval(expr, &source, env)?.into_owned(),
        });
    }
    Ok(row)
}
