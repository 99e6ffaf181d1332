//! The executor: runs a plan over a transaction and returns rows in batches.
//!
//! A query is a [`cursor`] that reads pages of rows from the transaction, and a [`pipeline`] over them (filter,
//! aggregate, project, distinct, sort, limit). [`insert`] and [`modify`] change rows, all by one [`writer`]; they do
//! all their work in the first call. [`budget`] bounds buffered memory. Every loop over rows counts its work in a
//! [`crate::coop::Turn`].
//!
//! # Layers
//!
//! 1. `budget`, `key_values`, `ranges`, `rows`: memory accounting; keys of an access path; where tables are stored;
//!    operations on rows
//! 2. `reference_queue`: what foreign keys ask for
//! 3. `context`: the environment
//! 4. `aggregate`, `constraints`, `index_cursor`, `measure`: accumulators, what a table demands of a row, scans of
//!    indexes; counts for EXPLAIN ANALYZE
//! 5. `cursor`, `foreign_key`, `plain`, `sample`: reading, the keys that a row refers to, rows of plain columns,
//!    what ANALYZE makes of rows
//! 6. `input`, `locking`, `pipeline`: inputs of nodes; locks of rows; the stages of a query
//! 7. `frame`, `locked_join`: the frames of windows; locks of the rows of a join
//! 8. `functions`, `join`, `set_operation`, `window`, `with_reader`: nodes over inputs; readers of queries of WITH
//! 9. `query`: running queries and the nodes that they read
//! 10. `changes`, `joined`, `parents`, `subqueries`, `with_query`: changes of rows; rows of a target joined with
//!     others; rows that others refer to; runs of sub-queries and of queries of WITH
//! 11. `writer`: the writer of rows and of their entries in indexes
//! 12. `stored_references`, `upsert`: foreign keys of rows that are stored; ON CONFLICT
//! 13. `build`, `check`, `insert`, `modify`: builds indexes and new rows, compares indexes with their tables; INSERT;
//!     UPDATE and DELETE
//! 14. `references`: foreign keys, when the changes of a statement are done
//! 15. `alter`, `copy`, `statistics`, `with_changes`: changes of tables; COPY FROM; ANALYZE; changes inside WITH
//! 16. `analyze`, `objects`: EXPLAIN ANALYZE; CREATE and ALTER of other objects

mod aggregate;
mod alter;
mod analyze;
mod budget;
mod build;
mod changes;
mod check;
mod constraints;
mod context;
mod copy;
mod cursor;
mod foreign_key;
mod frame;
mod functions;
mod index_cursor;
mod input;
mod insert;
mod join;
mod joined;
mod key_values;
mod locked_join;
mod locking;
mod measure;
mod modify;
mod objects;
mod parents;
mod pipeline;
mod plain;
mod query;
mod ranges;
mod reference_queue;
mod references;
mod rows;
mod sample;
mod set_operation;
mod statistics;
mod stored_references;
mod subqueries;
mod upsert;
mod window;
mod with_changes;
mod with_query;
mod with_reader;
mod writer;

use std::collections::VecDeque;
use std::sync::Arc;

use txn::View;

pub use crate::advisory::AdvisorySession;
use crate::catalog::SchemaChange;
use crate::catalog::ddl::NewTable;
use crate::coop::{MANY, drop_elsewhere};
use crate::error::SqlError;
pub use crate::expr::{LockLog, NoSession, SessionAccess};
use crate::plan::{Body, PlainOutput, Plan, SelectPlan, Source, TableAccess, TableWrite};
pub(crate) use check::check_with_progress;
pub use check::{CheckedTable, check_table};
use context::Runs;
pub use context::{ExecContext, StatementState};
pub(crate) use copy::{CopyIn, KeyLines};
use pgtypes::Datum;
use plain::Sink;
use query::QueryRun;
pub use reference_queue::ReferenceQueue;
pub use rows::Row;
use writer::RowWriter;

/// Rows of CREATE TABLE AS that are written together.
const CREATED_AT_ONCE: usize = 512;

/// A plan under execution. A portal keeps it between fetches.
pub struct Execution {
    plan: Arc<Plan>,
    params: Vec<Datum>,
    state: State,
    tag: Tag,
    /// The view of a query that has not started.
    view: Option<View>,
    statement: Option<Arc<StatementState>>,
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
    /// `SELECT n`, of CREATE TABLE AS.
    CreatedFrom(u64),
    /// A fixed tag: `CREATE TABLE`, `EXPLAIN`, ...
    Plain(&'static str),
}

impl Execution {
    /// Prepares the execution of `plan`. `params` have the plan's parameter types. Does no I/O.
    pub fn new(plan: Arc<Plan>, params: Vec<Datum>) -> Result<Execution, SqlError> {
        let has_state = !plan.subplans.is_empty() || !plan.with.is_empty() || plan.analyze.is_some();
        let runs = Runs { subquery: subqueries::run_subquery, with: with_query::begin };
        let statement = has_state.then(|| Arc::new(StatementState::new(Arc::clone(&plan), runs)));
        Ok(Execution { plan, params, state: State::New, tag: Tag::Select, view: None, statement })
    }

    /// What its context needs: [`ExecContext::statement`].
    pub fn statement(&self) -> Option<Arc<StatementState>> {
        self.statement.clone()
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

    /// Passes the next batch of at most `max_rows` rows to `sink`. Returns their number, which is smaller only at the
    /// end. Otherwise as [`Execution::next`].
    pub(crate) async fn send(
        &mut self,
        ctx: &mut ExecContext<'_>,
        max_rows: usize,
        sink: &mut Sink<'_>,
    ) -> Result<usize, SqlError> {
        if let State::New = self.state
            && let Some(count) = self.try_point(ctx, sink)?
        {
            self.state = State::Rows(VecDeque::new());
            return Ok(count);
        }
        // In a box, so that the future of a point read is small: the session moves it several times.
        Box::pin(self.send_batch(ctx, max_rows.max(1), sink)).await
    }

    async fn send_batch(
        &mut self,
        ctx: &mut ExecContext<'_>,
        max_rows: usize,
        sink: &mut Sink<'_>,
    ) -> Result<usize, SqlError> {
        if let State::New = self.state {
            self.state = self.start(ctx).await?;
        }
        if let (State::Query(run), Some(query)) = (&mut self.state, plain_query(&self.plan)) {
            return run.send(query, ctx.txn, max_rows, sink).await;
        }
        let rows = self.next(ctx, max_rows).await?;
        let mut values = Vec::new();
        for row in &rows {
            values.clear();
            values.extend(row.iter().map(Datum::borrow));
            sink(&values)?;
        }
        // Fewer rows mean the end to the caller: an error behind them is the end.
        if rows.len() < max_rows
            && let State::Query(run) = &mut self.state
            && let Some(error) = run.take_error()
        {
            return Err(error);
        }
        Ok(rows.len())
    }

    /// Keeps a query from seeing writes after `view`, unless it has a view already. It starts with this view if it has
    /// not started. `view` is called only if it is needed, because each view makes later writes cost memory.
    pub fn freeze(&mut self, view: impl FnOnce() -> View) {
        match &mut self.state {
            State::Query(run) => run.freeze(view),
            State::New => drop(self.view.get_or_insert_with(view)),
            State::Rows(_) => {}
        }
    }

    /// The tag. Valid after `next` has returned an empty batch.
    pub fn tag(&self) -> Tag {
        self.tag.clone()
    }

    /// Reads the row of a query for one row by its key within this call, and passes it to `sink` if it exists. Returns
    /// the number of rows. `None`: it is another statement, or the read takes a message or a wait.
    fn try_point(&self, ctx: &ExecContext<'_>, sink: &mut Sink<'_>) -> Result<Option<usize>, SqlError> {
        match plain_query(&self.plan) {
            Some((access, output)) if self.view.is_none() && !ctx.rehearses() => {
                plain::try_point(access, output, ctx.txn, &ctx.env(&self.params), sink)
            }
            _ => Ok(None),
        }
    }

    async fn start(&mut self, ctx: &mut ExecContext<'_>) -> Result<State, SqlError> {
        let plan = Arc::clone(&self.plan);
        let row_units = plan.cost.row;
        if let (Some(statement), true) = (&self.statement, plan.writes) {
            *statement.view.lock() = Some(ctx.txn.view());
        }
        ctx.references.begin(&plan);
        if let Some(explain) = plan.analyze {
            let lines = Box::pin(analyze::run(&plan, explain, self.view.take(), ctx, &self.params)).await?;
            self.tag = Tag::Plain("EXPLAIN");
            return Ok(State::Rows(lines.iter().map(|line| vec![Datum::Text(line.as_str().into())]).collect()));
        }
        if plan.changes_in_with {
            let done = Box::pin(with_changes::run(&plan, ctx, &self.params)).await?;
            self.tag = match &plan.body {
                Body::Insert(_) => Tag::Insert(done.count),
                Body::Update(_) => Tag::Update(done.count),
                Body::Delete(_) => Tag::Delete(done.count),
                _ => Tag::Select,
            };
            return Ok(State::Rows(done.returned));
        }
        let (tag, rows) = match &plan.body {
            Body::Select(select) => {
                let mut run = QueryRun::new(select, row_units, ctx, &self.params).await?;
                if let Some(view) = self.view.take() {
                    run.freeze(|| view);
                }
                return Ok(State::Query(Box::new(run)));
            }
            Body::Insert(insert) => {
                let done = Box::pin(insert::run(insert, row_units, ctx, &self.params)).await?;
                settle(&plan, ctx).await?;
                (Tag::Insert(done.count), done.returned)
            }
            Body::Update(update) => {
                let done = Box::pin(modify::update(update, row_units, ctx, &self.params)).await?;
                settle(&plan, ctx).await?;
                (Tag::Update(done.count), done.returned)
            }
            Body::Delete(delete) => {
                let done = Box::pin(modify::delete(delete, row_units, ctx, &self.params)).await?;
                settle(&plan, ctx).await?;
                (Tag::Delete(done.count), done.returned)
            }
            Body::CreateTableAs(parts) => {
                let count = Box::pin(create_as(parts, row_units, ctx, &self.params)).await?;
                (Tag::CreatedFrom(count), VecDeque::new())
            }
            Body::Explain(lines) => {
                let rows = lines.iter().map(|line| vec![Datum::Text(line.as_str().into())]).collect();
                (Tag::Plain("EXPLAIN"), rows)
            }
            Body::Analyze(tag, targets) => {
                Box::pin(statistics::run(targets.as_deref(), ctx, &self.params)).await?;
                (Tag::Plain(tag), VecDeque::new())
            }
            Body::Nothing(tag) => (Tag::Plain(tag), VecDeque::new()),
            schema => (Tag::Plain(Box::pin(change_schema(schema, ctx)).await?), VecDeque::new()),
        };
        self.tag = tag;
        Ok(State::Rows(rows))
    }
}

impl Drop for Execution {
    /// A portal that was not read to its end leaves rows behind.
    fn drop(&mut self) {
        if let State::Rows(rows) = &mut self.state
            && rows.len() > MANY
        {
            drop_elsewhere(std::mem::take(rows));
        }
    }
}

/// Does what foreign keys say of the changes that a statement has made.
async fn settle(plan: &Plan, ctx: &mut ExecContext<'_>) -> Result<(), SqlError> {
    match &plan.references {
        Some(found) => Box::pin(references::settle(found, ctx)).await,
        None => Ok(()),
    }
}

/// The table access and the output of a query for plain columns.
fn plain_query(plan: &Plan) -> Option<(&TableAccess, &PlainOutput)> {
    match &plan.body {
        Body::Select(SelectPlan { source: Source::Table(access), .. }) => Some((access, plan.plain.as_ref()?)),
        _ => None,
    }
}

/// Creates a table and writes the rows of a query to it. Returns their number.
async fn create_as(
    (new, query): &(NewTable, SelectPlan),
    row_units: usize,
    ctx: &mut ExecContext<'_>,
    params: &[Datum],
) -> Result<u64, SqlError> {
    let Some(schema) = ctx.schema.as_deref_mut() else {
        return Err(SqlError::internal("a schema change has no place to go"));
    };
    let id = alter::create_table(new, schema, ctx.txn).await?;
    let catalog = Arc::clone(schema.catalog());
    let table = catalog.by_id(id).cloned().ok_or_else(|| SqlError::internal("a new table is missing"))?;
    let write = TableWrite::bind(table, &catalog)?;
    let mut writer = RowWriter::new(&write, ctx);
    let mut run = QueryRun::new(query, row_units, ctx, params).await?;
    let mut count = 0;
    loop {
        let rows = run.next(query, ctx, params, CREATED_AT_ONCE).await?;
        if rows.is_empty() {
            return Ok(count);
        }
        count += rows.len() as u64;
        writer.insert_rows(rows, ctx).await?;
    }
}

/// Executes a schema change. Returns its tag.
async fn change_schema(body: &Body, ctx: &mut ExecContext<'_>) -> Result<&'static str, SqlError> {
    let Some(schema) = ctx.schema.take() else {
        return Err(SqlError::internal("a schema change has no place to go"));
    };
    let done = change_with(body, schema, ctx).await;
    ctx.schema = Some(schema);
    done
}

async fn change_with(
    body: &Body,
    schema: &mut SchemaChange,
    ctx: &mut ExecContext<'_>,
) -> Result<&'static str, SqlError> {
    Ok(match body {
        Body::CreateTable(new) => {
            if let Some(new) = new {
                alter::create_table(new, schema, ctx.txn).await?;
            }
            "CREATE TABLE"
        }
        Body::CreateObject(tag, new) => {
            if let Some(new) = new {
                objects::create(new, schema, ctx.txn).await?;
            }
            tag
        }
        Body::Comment(object, part, text) => {
            schema.comment(ctx.txn, (*object, *part), text.as_deref())?;
            "COMMENT"
        }
        Body::AlterObject(tag, old, new) => {
            objects::alter(old, new, schema, ctx).await?;
            tag
        }
        Body::AlterObjects(tag, objects, tables) => {
            for (old, new) in objects {
                objects::alter(old, new, schema, ctx).await?;
            }
            for change in tables {
                alter::run(change, schema, ctx).await?;
            }
            tag
        }
        Body::Drop(tag, drops) => {
            for change in &drops.changes {
                alter::run(change, schema, ctx).await?;
            }
            alter::drop_tables(&drops.tables, schema, ctx.txn).await?;
            for object in &drops.objects {
                schema.drop_object(ctx.txn, object)?;
            }
            tag
        }
        Body::Truncate(tables, restarted) => {
            schema.truncate(ctx.txn, tables).await?;
            for (old, new) in restarted {
                schema.alter_object(ctx.txn, old, new.clone())?;
            }
            "TRUNCATE TABLE"
        }
        Body::AlterTables(tag, changes) => {
            for change in changes {
                alter::run(change, schema, ctx).await?;
            }
            tag
        }
        _ => "",
    })
}
