//! The binder: from a syntax tree and the catalog to a typed plan.
//!
//! [`bind`] resolves names, types and parameters ([`names`], [`coerce`], [`bind_expr`], [`operators`], [`comparison`],
//! [`functions`]) and builds one of a few shapes of plan: a query over at most one table ([`select`]), a change of rows ([`dml`]), a change of schema
//! ([`ddl`]). [`access`] reads the key bounds off the filter and so decides between point get, range scan and full
//! scan; [`explain`] prints the result.

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
mod fold;
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

/// A column of a result, as RowDescription tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultColumn {
    /// The name PostgreSQL would give it (`?column?`, `count`, ...).
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// OID of the table and number of the column it comes from; (0, 0) if computed.
    pub origin: (u32, i16),
}

/// A bound statement: reusable while the catalog version stays the same.
#[derive(Debug)]
pub struct Plan {
    /// The catalog version it was bound to.
    pub catalog_version: u64,
    /// Types of `$1`, `$2`, ...
    pub params: Vec<SqlType>,
    /// Columns of its result; `None` for a statement that returns no rows.
    pub columns: Option<Vec<ResultColumn>>,
    /// Whether it changes data or schema.
    pub writes: bool,
    /// Whether it changes the schema.
    pub is_ddl: bool,
    /// Whether it must not be part of a transaction with others.
    pub outside_block_only: bool,
    /// What the client is told when it runs.
    pub notices: Vec<Notice>,
    pub(crate) body: Body,
}

impl Plan {
    /// Where the rows are that it inserts, changes or locks; `None` if it does nothing of that.
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

/// Something for the client that is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its SQLSTATE.
    pub code: SqlState,
    /// Its text.
    pub message: String,
}

/// What a plan does.
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
    /// CREATE TABLE; `None` where IF NOT EXISTS finds it there.
    CreateTable(Option<NewTable>),
    /// DROP TABLE of those that exist.
    DropTable(Vec<Arc<Table>>),
    /// A statement that has nothing to do: its tag.
    Nothing(&'static str),
    /// EXPLAIN: the lines.
    Explain(Vec<String>),
}

/// A query: rows of a source go through filter, aggregation, projection, DISTINCT, sort and limit, in this order.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    pub(crate) source: Source,
    /// Over the source's row.
    pub(crate) filter: Option<Expr>,
    pub(crate) aggregation: Option<Aggregation>,
    /// Over the source's row, or the aggregation's; those after `visible` serve the sort alone.
    pub(crate) output: Vec<Expr>,
    pub(crate) visible: usize,
    pub(crate) distinct: bool,
    /// Over the output; empty when the source's order is the one asked for.
    pub(crate) sort: Vec<SortKey>,
    pub(crate) limit: Option<Expr>,
    pub(crate) offset: Option<Expr>,
    /// FOR UPDATE and the like: rows that come out are locked.
    pub(crate) lock: bool,
    /// Names of the source's columns, for EXPLAIN.
    pub(crate) names: Vec<String>,
}

/// Where a query's rows come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// One row without columns.
    Single,
    /// Rows of expressions.
    Values(Vec<Vec<Expr>>),
    /// A table.
    Table(TableAccess),
}

/// Aggregation of all rows into one.
#[derive(Debug)]
pub(crate) struct Aggregation {
    pub(crate) calls: Vec<AggregateCall>,
    /// HAVING, over the aggregation's row.
    pub(crate) having: Option<Expr>,
}

/// One key of a sort.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SortKey {
    /// Column of the output.
    pub(crate) column: usize,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// INSERT.
#[derive(Debug)]
pub(crate) struct InsertPlan {
    pub(crate) table: Arc<Table>,
    pub(crate) source: SelectPlan,
    /// The table's columns over a row of the source; `None` where the source gives them as they are.
    pub(crate) columns: Option<Vec<Expr>>,
    /// Whether the source reads the table that is inserted into, so that it must be read to its end first.
    pub(crate) reads_itself: bool,
    pub(crate) conflict: Conflict,
    /// Over the new row.
    pub(crate) returning: Option<Vec<Expr>>,
}

/// What INSERT does about a row whose key is taken.
#[derive(Debug)]
pub(crate) enum Conflict {
    /// Fails.
    Fail,
    /// Leaves it.
    DoNothing,
    /// Changes it. The expressions are over the old row followed by the row proposed (`excluded`).
    DoUpdate { assignments: Vec<(usize, Expr)>, filter: Option<Expr> },
}

/// UPDATE.
#[derive(Debug)]
pub(crate) struct UpdatePlan {
    pub(crate) access: TableAccess,
    pub(crate) filter: Option<Expr>,
    /// Columns and their new values, over the old row.
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
/// these). `declared` are the parameter types that the client declared (`Unknown` or missing: inferred). Transaction
/// control and SET/SHOW never come here.
pub fn bind(statement: &Parsed, declared: &[SqlType], catalog: &Catalog) -> Result<Arc<Plan>, SqlError> {
    // The binder itself goes down a limited way, but what it asks of the tree (where something ends) walks over all of it.
    deep_stack::run(statement.is_deep(), || bind_here(statement, declared, catalog))
}

fn bind_here(statement: &Parsed, declared: &[SqlType], catalog: &Catalog) -> Result<Arc<Plan>, SqlError> {
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
