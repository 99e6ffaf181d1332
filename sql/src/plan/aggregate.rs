//! Aggregate functions: their resolution and result types.
//!
//! In PostgreSQL `sum(bigint)` and `avg` are `numeric`. Here `sum(bigint)` is a `bigint` and fails with 22003 on
//! overflow; `avg` of integers is `double precision`, computed from the exact sum.

use sqlparser::tokenizer::Location;

use crate::expr::Expr;
use pgtypes::SqlType;

/// The function of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AggregateKind {
    /// `count(*)`, and `count(x)` over non-NULL values
    Count,
    /// `sum` of integers, as `bigint`
    SumInt,
    /// `sum` of floats
    SumFloat,
    /// `avg` of integers
    AvgInt,
    /// `avg` of floats
    AvgFloat,
    /// `min`
    Min,
    /// `max`
    Max,
    /// `bool_and`, `every`
    BoolAnd,
    /// `bool_or`
    BoolOr,
}

/// An aggregate of a query. Its result is a column of the aggregation's row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AggregateCall {
    /// The function.
    pub(crate) kind: AggregateKind,
    /// The argument; `None` for `count(*)`.
    pub(crate) arg: Option<Expr>,
    /// Whether to aggregate distinct values only.
    pub(crate) distinct: bool,
    /// FILTER: only rows for which this is true.
    pub(crate) filter: Option<Expr>,
    /// The SQL name, for EXPLAIN.
    pub(crate) name: &'static str,
}

/// The aggregates of the current query.
#[derive(Debug, Default)]
pub(super) struct AggregateState {
    /// Whether the current clause allows aggregates.
    pub(super) allowed: bool,
    /// Whether an aggregate's argument is being bound.
    pub(super) inside: bool,
    /// The aggregates found so far.
    pub(super) calls: Vec<AggregateCall>,
    /// The first column reference outside of an aggregate.
    pub(super) ungrouped: Option<(String, Location)>,
}

/// The function, result type and name of an aggregate; `None` if it does not exist for the argument type.
pub(super) fn resolve(name: &str, arg: SqlType) -> Option<(AggregateKind, SqlType, &'static str)> {
    use AggregateKind::{AvgFloat, AvgInt, BoolAnd, BoolOr, Count, Max, Min, SumFloat, SumInt};
    let ordered = arg.is_number() || arg.is_text() || arg == SqlType::TIMESTAMPTZ;
    // `min` and `max` exist for text only; varchar becomes text.
    let extreme = if arg.is_text() { SqlType::TEXT } else { arg };
    Some(match name {
        "count" => (Count, SqlType::INT8, "count"),
        "sum" if arg.is_integer() => (SumInt, SqlType::INT8, "sum"),
        "sum" if arg == SqlType::FLOAT8 => (SumFloat, SqlType::FLOAT8, "sum"),
        "avg" if arg.is_integer() => (AvgInt, SqlType::FLOAT8, "avg"),
        "avg" if arg == SqlType::FLOAT8 => (AvgFloat, SqlType::FLOAT8, "avg"),
        "min" if ordered => (Min, extreme, "min"),
        "max" if ordered => (Max, extreme, "max"),
        "bool_and" | "every" if arg == SqlType::BOOL => (BoolAnd, SqlType::BOOL, "bool_and"),
        "bool_or" if arg == SqlType::BOOL => (BoolOr, SqlType::BOOL, "bool_or"),
        _ => return None,
    })
}

/// Whether a name is that of an aggregate function.
pub(super) fn is_aggregate(name: &str) -> bool {
    ["count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every"].contains(&name)
}
