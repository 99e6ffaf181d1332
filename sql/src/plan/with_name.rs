//! The names that WITH gives to queries.

use super::node::ResultColumn;
use crate::expr::Expr;

/// A name of WITH.
#[derive(Clone, Debug)]
pub(super) struct WithName {
    pub(super) name: String,
    pub(super) columns: Vec<ResultColumn>,
    /// The place of its query.
    pub(super) query: usize,
    /// The values of the queries around it that it uses, as expressions of the query that has the WITH.
    pub(super) args: Vec<Expr>,
    /// The number of queries around that one.
    pub(super) depth: usize,
    /// Whether the query is being bound: a reference is the recursion.
    pub(super) is_recursion: bool,
}
