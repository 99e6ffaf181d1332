//! The names that WITH gives to queries, and which of these change rows.

use sqlparser::ast::{Query, SetExpr, Statement};

use super::node::ResultColumn;
use crate::expr::Expr;

/// A name of WITH.
#[derive(Clone, Debug)]
pub(super) struct WithName {
    pub(super) name: String,
    pub(super) columns: Vec<ResultColumn>,
    /// Whether it gives rows: a change without RETURNING does not.
    pub(super) has_rows: bool,
    /// The place of its query.
    pub(super) query: usize,
    /// The values of the queries around it that it uses, as expressions of the query that has the WITH.
    pub(super) args: Vec<Expr>,
    /// The number of queries around that one.
    pub(super) depth: usize,
    /// Whether the query is being bound: a reference is the recursion.
    pub(super) is_recursion: bool,
}

/// The statement of a query that changes rows.
pub(super) fn changing(query: &Query) -> Option<&Statement> {
    match &*query.body {
        SetExpr::Insert(change) | SetExpr::Update(change) | SetExpr::Delete(change) => Some(change),
        _ => None,
    }
}

/// Whether a query has a change in its WITH.
pub(crate) fn has_changes(query: &Query) -> bool {
    query.with.iter().flat_map(|with| &with.cte_tables).any(|cte| changing(&cte.query).is_some())
}
