//! The binder: turns a syntax tree into a typed plan.
//!
//! [`bind`] resolves names, types and parameters ([`names`], [`coerce`], [`bind_expr`], [`operators`], [`comparison`],
//! [`functions`]). It builds one of a few kinds of plan: a query over at most one table ([`select`]), a change of rows
//! ([`dml`]), a change of schema ([`ddl`]). [`access`] derives key bounds from the filter and so chooses between point
//! get, range scan and full scan. [`explain`] prints a plan.
//!
//! # Layers
//!
//! 1. `access`, `aggregate`, `decimal`, `type_name`: parts without knowledge of the binder
//! 2. `binder`: the binder's state, names in scope
//! 3. `coerce`, `explain`, `names`, `operators`: conversions, EXPLAIN, reserved words, operators
//! 4. `comparison`: comparisons and constructs built from them
//! 5. `bind_expr`, `functions`: expressions
//! 6. `select`: queries
//! 7. `dml`: changes of rows
//! 8. `ddl`: changes of schema

pub(crate) mod access;
pub(crate) mod aggregate;
mod bind_expr;
mod binder;
mod coerce;
mod comparison;
mod ddl;
mod decimal;
mod dml;
mod explain;
mod functions;
mod names;
mod operators;
mod select;
mod type_name;

use std::sync::Arc;

use sqlparser::ast::{FromTable, ObjectType, Spanned, Statement};

pub(crate) use access::{AccessPath, KeyBound, TableAccess};
pub(crate) use aggregate::{AggregateCall, AggregateKind};

use crate::catalog::Catalog;
use crate::catalog::ddl::NewTable;
use crate::deep_stack;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::parse::Parsed;
use crate::table::{StorageId, Table};
use crate::types::SqlType;
use binder::Binder;

/// A result column, as RowDescription describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// The name, as in PostgreSQL (`?column?`, `count`, ...).
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// OID of its table and its number there; (0, 0) if computed.
    pub origin: (u32, i16),
}

/// A bound statement. Reusable while the catalog version stays the same.
#[derive(Debug)]
pub struct Plan {
    /// The catalog version it was bound to.
    pub catalog_version: u64,
    /// Types of `$1`, `$2`, ...
    pub params: Vec<SqlType>,
    /// The result columns; `None` for a statement without rows.
    pub columns: Option<Vec<ResultColumn>>,
    /// Whether it changes data or schema.
    pub writes: bool,
    /// Whether it changes the schema.
    pub is_ddl: bool,
    /// Whether it cannot run in a transaction with other statements.
    pub outside_block_only: bool,
    /// Notices for the client, sent at execution.
    pub notices: Vec<Notice>,
    pub(crate) body: Body,
}

impl Plan {
    /// The storage of the rows that it inserts, changes or locks, if any.
    pub(crate) fn written_storage(&self) -> Option<StorageId> {
        let table = match &self.body {
            Body::Insert(plan) => &plan.table,
            Body::Update(plan) => &plan.access.table,
            Body::Delete(plan) => &plan.access.table,
            Body::Select(SelectPlan { source: Source::Table(access), lock: true, .. }) => &access.table,
            _ => return None,
        };
        Some(table.storage)
    }
}

/// A notice for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its SQLSTATE.
    pub code: SqlState,
    /// Its text.
    pub message: String,
}

/// The body of a plan.
#[derive(Debug)]
pub(crate) enum Body {
    /// A query.
    Select(SelectPlan),
    /// INSERT.
    Insert(InsertPlan),
    /// UPDATE.
    Update(UpdatePlan),
    /// DELETE.
    Delete(DeletePlan),
    /// TRUNCATE.
    Truncate(Vec<Arc<Table>>),
    /// CREATE TABLE; `None` if IF NOT EXISTS found the table.
    CreateTable(Option<NewTable>),
    /// DROP TABLE of the existing tables.
    DropTable(Vec<Arc<Table>>),
    /// A statement without effect. Holds its tag.
    Nothing(&'static str),
    /// EXPLAIN. Holds the lines.
    Explain(Vec<String>),
}

/// A query. Rows of a source pass filter, aggregation, projection, DISTINCT, sort and limit, in this order.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    pub(crate) source: Source,
    /// Over the source's row.
    pub(crate) filter: Option<Expr>,
    pub(crate) aggregation: Option<Aggregation>,
    /// Over the source's or the aggregation's row. Expressions from `visible` on serve the sort only.
    pub(crate) output: Vec<Expr>,
    pub(crate) visible: usize,
    pub(crate) distinct: bool,
    /// Over the output. Empty if the source has the order already.
    pub(crate) sort: Vec<SortKey>,
    pub(crate) limit: Option<Expr>,
    pub(crate) offset: Option<Expr>,
    /// FOR UPDATE and the like: returned rows are locked.
    pub(crate) lock: bool,
    /// Names of the source's columns, for EXPLAIN.
    pub(crate) names: Vec<String>,
}

/// The source of a query's rows.
#[derive(Debug)]
pub(crate) enum Source {
    /// One row without columns.
    Single,
    /// Rows of expressions.
    Values(Vec<Vec<Expr>>),
    /// A table.
    Table(TableAccess),
}

/// An aggregation of all rows into one.
#[derive(Debug)]
pub(crate) struct Aggregation {
    pub(crate) calls: Vec<AggregateCall>,
    /// HAVING, over the aggregation's row.
    pub(crate) having: Option<Expr>,
}

/// A sort key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SortKey {
    /// The output column.
    pub(crate) column: usize,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// INSERT.
#[derive(Debug)]
pub(crate) struct InsertPlan {
    pub(crate) table: Arc<Table>,
    pub(crate) source: SelectPlan,
    /// The table's columns over a row of the source; `None` if the source's row is the table's.
    pub(crate) columns: Option<Vec<Expr>>,
    /// Whether the source reads the target table, so it must be read to its end first.
    pub(crate) reads_itself: bool,
    pub(crate) conflict: Conflict,
    /// Over the new row.
    pub(crate) returning: Option<Vec<Expr>>,
}

/// The action of INSERT for a duplicate key.
#[derive(Debug)]
pub(crate) enum Conflict {
    /// An error.
    Fail,
    /// DO NOTHING.
    DoNothing,
    /// DO UPDATE. The expressions are over the old row followed by the proposed row (`excluded`).
    DoUpdate { assignments: Vec<(usize, Expr)>, filter: Option<Expr> },
}

/// UPDATE.
#[derive(Debug)]
pub(crate) struct UpdatePlan {
    pub(crate) access: TableAccess,
    pub(crate) filter: Option<Expr>,
    /// Columns and their new values over the old row.
    pub(crate) assignments: Vec<(usize, Expr)>,
    pub(crate) changes_key: bool,
    /// Over the new row.
    pub(crate) returning: Option<Vec<Expr>>,
}

/// DELETE.
#[derive(Debug)]
pub(crate) struct DeletePlan {
    pub(crate) access: TableAccess,
    pub(crate) filter: Option<Expr>,
    /// Over the old row.
    pub(crate) returning: Option<Vec<Expr>>,
}

/// Binds a data or schema statement (SELECT, INSERT, UPDATE, DELETE, CREATE/DROP TABLE, TRUNCATE, VALUES, EXPLAIN of
/// these). `declared` are the client's parameter types; `Unknown` or missing ones are inferred. The session handles
/// transaction control and SET/SHOW itself.
pub fn bind(statement: &Parsed, declared: &[SqlType], catalog: &Catalog) -> Result<Arc<Plan>, SqlError> {
    // The binder bounds its own recursion, but the tree's span methods walk the whole tree.
    deep_stack::run(statement.is_deep(), || bind_on_this_stack(statement, declared, catalog))
}

fn bind_on_this_stack(statement: &Parsed, declared: &[SqlType], catalog: &Catalog) -> Result<Arc<Plan>, SqlError> {
    let mut binder = Binder::new(statement, declared, catalog);
    let (body, columns) = bind_tree(&mut binder, &statement.tree)?;
    let params = binder.finish_params()?;
    let (writes, is_ddl) = match &body {
        Body::Select(select) => (select.lock, false),
        Body::Insert(_) | Body::Update(_) | Body::Delete(_) => (true, false),
        Body::CreateTable(_) | Body::DropTable(_) | Body::Truncate(_) => (true, true),
        Body::Nothing(_) | Body::Explain(_) => (false, false),
    };
    let outside_block_only = matches!(&body, Body::Nothing(tag) if *tag == ddl::VACUUM);
    let notices = if matches!(body, Body::Explain(_)) { Vec::new() } else { binder.notices };
    Ok(Arc::new(Plan {
        catalog_version: catalog.version,
        params,
        columns,
        writes,
        is_ddl,
        outside_block_only,
        notices,
        body,
    }))
}

/// A plan's body and the columns of its result.
type BoundTree = (Body, Option<Vec<ResultColumn>>);

fn bind_tree(binder: &mut Binder<'_>, tree: &Statement) -> Result<BoundTree, SqlError> {
    match tree {
        Statement::Query(query) => {
            let (plan, columns) = binder.query(query)?;
            Ok((Body::Select(plan), Some(columns)))
        }
        Statement::Insert(insert) => {
            let (plan, columns) = binder.insert(insert)?;
            Ok((Body::Insert(plan), columns))
        }
        Statement::Update(update) => {
            let (plan, columns) = binder.update(update)?;
            Ok((Body::Update(plan), columns))
        }
        Statement::Delete(delete) => {
            let from = match &delete.from {
                FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from) => from,
            };
            let (plan, columns) = binder.delete(delete, from)?;
            Ok((Body::Delete(plan), columns))
        }
        Statement::Truncate(truncate) => Ok((binder.truncate(truncate)?, None)),
        Statement::CreateTable(create) => Ok((binder.create_table(create)?, None)),
        Statement::Drop { object_type: ObjectType::Table, if_exists, names, temporary: false, .. } => {
            Ok((binder.drop_table(names, *if_exists)?, None))
        }
        Statement::Drop { object_type, .. } => {
            Err(binder.unsupported(&format!("DROP {object_type} is"), tree.span().start))
        }
        Statement::Vacuum(vacuum) => Ok((binder.maintenance(vacuum.table_name.as_ref(), ddl::VACUUM)?, None)),
        Statement::Analyze(analyze) => Ok((binder.maintenance(analyze.table_name.as_ref(), "ANALYZE")?, None)),
        Statement::Explain { .. } => binder.explain(tree),
        other => Err(binder.unsupported(&format!("{} is", binder.statement.command()), other.span().start)),
    }
}

#[cfg(test)]
mod tests;
