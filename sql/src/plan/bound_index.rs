//! Indexes as expressions over a table's rows: what a writer of a table evaluates to know a row's entries, and what a
//! reader compares with its conditions.

use std::sync::Arc;

use crate::expr::{DomainCheck, Expr};
use crate::table::Table;

/// An index as expressions over a row of its table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoundIndex {
    /// The values of its columns.
    pub(crate) columns: Vec<Expr>,
    /// The condition of the rows that have entries.
    pub(crate) predicate: Option<Expr>,
}

/// A table with all that a writer of its rows needs.
#[derive(Clone, Debug)]
pub(crate) struct TableWrite {
    pub(crate) table: Arc<Table>,
    /// The table's indexes, in their order.
    pub(crate) indexes: Vec<BoundIndex>,
    /// The values of generated columns, over a row.
    pub(crate) generated: Vec<(usize, Expr)>,
    /// The constraints of the domains of columns, with the places of these.
    pub(crate) domains: Vec<(usize, Arc<DomainCheck>)>,
    /// The conditions of the CHECK constraints, in their order.
    pub(crate) checks: Vec<Expr>,
    /// The columns that foreign keys refer to.
    pub(crate) referenced: Vec<usize>,
}
