//! Aggregates of a query: their calls.

use crate::expr::Expr;
use pgtypes::SqlType;
use pgtypes::functions::ProcRow;

/// An aggregate of a query. Its result is a column of the aggregation's row.
#[derive(Clone, Debug)]
pub(crate) struct AggregateCall {
    /// The function.
    pub(crate) function: &'static ProcRow,
    /// The arguments of each row.
    pub(crate) args: Vec<Expr>,
    /// Their types.
    pub(crate) types: Vec<SqlType>,
    /// The direct arguments of an ordered-set aggregate, with their types. Over the keys of the group.
    pub(crate) direct: Vec<(Expr, SqlType)>,
    /// The type of the result.
    pub(crate) result: SqlType,
    /// Whether to aggregate distinct values only.
    pub(crate) distinct: bool,
    /// FILTER: only rows for which this is true.
    pub(crate) filter: Option<Expr>,
    /// The order of the rows.
    pub(crate) order: Vec<AggregateOrder>,
}

impl PartialEq for AggregateCall {
    fn eq(&self, other: &AggregateCall) -> bool {
        let is_function = self.function.oid == other.function.oid && self.distinct == other.distinct;
        let is_typed = self.types == other.types && self.result == other.result;
        let is_call = self.args == other.args && self.direct == other.direct;
        is_function && is_typed && is_call && self.filter == other.filter && self.order == other.order
    }
}

/// A key of ORDER BY in an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AggregateOrder {
    /// The key.
    pub(crate) expr: Expr,
    /// DESC
    pub(crate) descending: bool,
    /// Where NULL goes.
    pub(crate) nulls_first: bool,
}

impl AggregateCall {
    /// All expressions over a row of the input.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Expr> {
        self.args.iter().chain(&self.filter).chain(self.order.iter().map(|key| &key.expr))
    }
}
