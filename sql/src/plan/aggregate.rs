//! Aggregate functions: what the binder collects of them, and their types.
//!
//! PostgreSQL's `sum(bigint)` and `avg` are `numeric`. Here `sum(bigint)` is a `bigint` and fails with 22003 where it
//! does not fit; `avg` of integers is `double precision`, computed from the exact sum.

use sqlparser::tokenizer::Location;

use crate::expr::Expr;
use crate::types::SqlType;

/// What an aggregate computes.
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

/// One aggregate of a query; its result is a column of the one row that the aggregation gives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AggregateCall {
    /// What it computes.
    pub(crate) kind: AggregateKind,
    /// Over what; `None` for `count(*)`.
    pub(crate) arg: Option<Expr>,
    /// Over distinct values only.
    pub(crate) distinct: bool,
    /// Over the rows for which this is true.
    pub(crate) filter: Option<Expr>,
    /// As in SQL, for EXPLAIN.
    pub(crate) name: &'static str,
}

/// What the binder knows of the aggregates of the query at hand.
#[derive(Debug, Default)]
pub(super) struct AggregateState {
    /// Whether the clause at hand may contain them.
    pub(super) allowed: bool,
    /// Whether the argument of one is being bound.
    pub(super) inside: bool,
    /// Those found so far.
    pub(super) calls: Vec<AggregateCall>,
    /// The first column named outside of any.
    pub(super) ungrouped: Option<(String, Location)>,
}

/// The kind and type of an aggregate over an argument of a type; `None` if there is no such function.
pub(super) fn resolve(name: &str, arg: SqlType) -> Option<(AggregateKind, SqlType, &'static str)> {
    use AggregateKind::{AvgFloat, AvgInt, BoolAnd, BoolOr, Count, Max, Min, SumFloat, SumInt};
    let ordered = arg.is_number() || arg.is_text() || arg == SqlType::Timestamptz;
    // min and max exist for text, which varchar becomes.
    let extreme = if arg.is_text() { SqlType::Text } else { arg };
    Some(match name {
        "count" => (Count, SqlType::Int8, "count"),
        "sum" if arg.is_integer() => (SumInt, SqlType::Int8, "sum"),
        "sum" if arg == SqlType::Float8 => (SumFloat, SqlType::Float8, "sum"),
        "avg" if arg.is_integer() => (AvgInt, SqlType::Float8, "avg"),
        "avg" if arg == SqlType::Float8 => (AvgFloat, SqlType::Float8, "avg"),
        "min" if ordered => (Min, extreme, "min"),
        "max" if ordered => (Max, extreme, "max"),
        "bool_and" | "every" if arg == SqlType::Bool => (BoolAnd, SqlType::Bool, "bool_and"),
        "bool_or" if arg == SqlType::Bool => (BoolOr, SqlType::Bool, "bool_or"),
        _ => return None,
    })
}

/// Whether a name is that of an aggregate function.
pub(super) fn is_aggregate(name: &str) -> bool {
    ["count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every"].contains(&name)
}
