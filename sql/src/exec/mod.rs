//! The executor: runs a plan over a transaction and returns rows in batches.
//!
//! A query is a [`cursor`] that reads pages of rows from the transaction, and a [`pipeline`] over them (filter,
//! aggregate, project, distinct, sort, limit). [`insert`] and [`modify`] change rows; they do all their work in the
//! first call. [`mod@budget`] bounds buffered memory.
//!
//! # Layers
//!
//! 1. `budget`, `cursor`, `rows`: memory accounting, reading, operations on rows
//! 2. `aggregate`, `insert`: accumulators, INSERT
//! 3. `modify`, `pipeline`: UPDATE and DELETE, the stages of a query

mod aggregate;
mod budget;
mod cursor;
mod insert;
mod modify;
mod pipeline;
mod rows;

use std::collections::VecDeque;
use std::sync::Arc;

use txn::Transaction;

use crate::catalog::{CatalogCache, ddl};
use crate::error::SqlError;
use crate::expr::eval::Env;
use crate::plan::{Body, Plan, SelectPlan};
use crate::table::Table;
use crate::types::{Datum, TimeZone};
use budget::Budget;
use cursor::Cursor;
use pipeline::Pipeline;

/// A row of a result.
pub type Row = Vec<Datum>;

/// The environment of a statement's execution.
pub struct ExecContext<'a> {
    /// The transaction.
    pub txn: &'a mut Transaction,
    /// The node's catalog cache.
    pub catalog: &'a CatalogCache,
    /// The session's time zone.
    pub zone: &'a TimeZone,
    /// `now()`: the start of the transaction, in microseconds since 2000-01-01 UTC.
    pub now: i64,
    /// The session's user, for `current_user`.
    pub user: &'a str,
    /// The database's name.
    pub database: &'a str,
    /// Whether more statements may follow in the transaction. Duplicate keys are then looked up at once, not left to
    /// the commit.
    pub explicit: bool,
}

impl<'a> ExecContext<'a> {
    fn env<'p>(&self, params: &'p [Datum]) -> Env<'p>
    where
        'a: 'p,
    {
        Env { params, zone: self.zone, now: self.now, user: self.user, database: self.database, locals: &[] }
    }
}

/// A plan under execution. A portal keeps it between fetches.
pub struct Execution {
    plan: Arc<Plan>,
    params: Vec<Datum>,
    state: State,
    tag: Tag,
}

enum State {
    /// Not started.
    New,
    /// A running query.
    Query(Box<QueryRun>),
    /// Finished, with these rows left to return.
    Rows(VecDeque<Row>),
}

/// The command tag of a finished statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    /// `SELECT n`. The session counts the rows.
    Select,
    /// `INSERT 0 n`
    Insert(u64),
    /// `UPDATE n`
    Update(u64),
    /// `DELETE n`
    Delete(u64),
    /// A fixed tag: `CREATE TABLE`, `EXPLAIN`, ...
    Plain(&'static str),
}

impl Execution {
    /// Prepares the execution of `plan`. `params` have the plan's parameter types. Does no I/O.
    pub fn new(plan: Arc<Plan>, params: Vec<Datum>) -> Result<Execution, SqlError> {
        Ok(Execution { plan, params, state: State::New, tag: Tag::Select })
    }

    /// The next batch of at most `max_rows` rows, empty only at the end. A statement that changes rows does all its
    /// work in the first call. After an error the caller drops the transaction or rolls its buffer back to the
    /// statement's start.
    pub async fn next(&mut self, ctx: &mut ExecContext<'_>, max_rows: usize) -> Result<Vec<Row>, SqlError> {
        let max_rows = max_rows.max(1);
        if let State::New = self.state {
            self.state = self.start(ctx).await?;
        }
        match &mut self.state {
            State::Rows(rows) => Ok(rows.drain(..max_rows.min(rows.len())).collect()),
            State::Query(run) => match &self.plan.body {
                Body::Select(select) => run.next(select, ctx, &self.params, max_rows).await,
                _ => Ok(Vec::new()),
            },
            State::New => Ok(Vec::new()),
        }
    }

    /// The tag. Valid after `next` has returned an empty batch.
    pub fn tag(&self) -> Tag {
        self.tag.clone()
    }

    async fn start(&mut self, ctx: &mut ExecContext<'_>) -> Result<State, SqlError> {
        let plan = Arc::clone(&self.plan);
        let (tag, rows) = match &plan.body {
            Body::Select(select) => {
                let run = QueryRun::new(select, &ctx.env(&self.params))?;
                return Ok(State::Query(Box::new(run)));
            }
            Body::Insert(insert) => {
                let done = insert::run(insert, ctx, &self.params).await?;
                (Tag::Insert(done.count), done.returned)
            }
            Body::Update(update) => {
                let done = modify::update(update, ctx, &self.params).await?;
                (Tag::Update(done.count), done.returned)
            }
            Body::Delete(delete) => {
                let done = modify::delete(delete, ctx, &self.params).await?;
                (Tag::Delete(done.count), done.returned)
            }
            Body::Explain(lines) => {
                let rows = lines.iter().map(|line| vec![Datum::Text(line.as_str().into())]).collect();
                (Tag::Plain("EXPLAIN"), rows)
            }
            Body::Nothing(tag) => (Tag::Plain(tag), VecDeque::new()),
            schema => (Tag::Plain(change_schema(schema, ctx).await?), VecDeque::new()),
        };
        self.tag = tag;
        Ok(State::Rows(rows))
    }
}

/// Executes a schema change. Returns its tag.
async fn change_schema(body: &Body, ctx: &mut ExecContext<'_>) -> Result<&'static str, SqlError> {
    Ok(match body {
        Body::CreateTable(new) => {
            if let Some(new) = new {
                ddl::create_table(ctx.catalog, ctx.txn, new).await?;
            }
            "CREATE TABLE"
        }
        Body::DropTable(tables) => {
            for table in tables {
                ddl::drop_table(ctx.catalog, ctx.txn, table).await?;
            }
            "DROP TABLE"
        }
        Body::Truncate(tables) => {
            for table in tables {
                ddl::truncate(ctx.catalog, ctx.txn, table).await?;
            }
            "TRUNCATE TABLE"
        }
        _ => "",
    })
}

/// The result of a change of rows.
#[derive(Default)]
struct Changes {
    count: u64,
    returned: VecDeque<Row>,
}

/// A running query.
struct QueryRun {
    cursor: Cursor,
    pipeline: Pipeline,
    exhausted: bool,
}

impl QueryRun {
    fn new(plan: &SelectPlan, env: &Env<'_>) -> Result<QueryRun, SqlError> {
        let pipeline = Pipeline::new(plan, env)?;
        let cursor = Cursor::new(&plan.source, pipeline.first_page_rows(plan), env)?;
        Ok(QueryRun { cursor, pipeline, exhausted: false })
    }

    /// The next batch, empty only at the end.
    async fn next(
        &mut self,
        plan: &SelectPlan,
        ctx: &mut ExecContext<'_>,
        params: &[Datum],
        max_rows: usize,
    ) -> Result<Vec<Row>, SqlError> {
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
        let (rows, keys) = self.pipeline.take(plan, max_rows);
        for key in keys {
            ctx.txn.lock(key).map_err(crate::catalog::storage_error)?;
        }
        Ok(rows)
    }
}

/// The memory budget of a statement.
fn budget() -> Budget {
    Budget::new(budget::STATEMENT_LIMIT)
}

/// A row of NULLs.
fn empty_row(table: &Table) -> Row {
    vec![Datum::Null; table.columns.len()]
}
