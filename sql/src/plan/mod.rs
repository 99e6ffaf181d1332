//! The binder: turns a syntax tree into a typed plan.
//!
//! [`bind`] resolves names, types and parameters ([`names`], [`coerce`], [`bind_expr`], [`operators`], [`comparison`],
//! [`calls`]). It builds one of a few kinds of plan ([`node`]): a query, which is a tree ([`select`], [`rel`]), a
//! change of rows ([`insert`], [`modify`]), a change of schema ([`ddl`]). [`access`] derives key bounds from the filter
//! and so chooses between point get, range scan and full scan. [`explain`] prints a plan.
//!
//! # Layers
//!
//! 1. `access`, `aggregation`, `show`: parts without knowledge of the binder
//! 2. `rel`: queries and the nodes that they read
//! 3. `joins`, `node`: where conditions go; the plan of a statement
//! 4. `with_name`: names of WITH
//! 5. `binder`, `constants`, `plain`: the binder's state, names in scope; errors of constant expressions; queries for
//!    plain columns
//! 6. `coerce`, `cost`, `explain`, `names`: conversions, EXPLAIN, reserved words
//! 7. `calls`, `type_name`: calls of functions, types
//! 8. `object_names`, `operators`: names in literals, operators
//! 9. `comparison`: comparisons and constructs built from them
//! 10. `bind_expr`, `functions`, `special`, `subquery`: expressions
//! 11. `aggregate`: aggregates
//! 12. `assign`, `from`, `projection`: values for columns, FROM, output columns
//! 13. `grouping`, `order_limit`, `set_operation`: GROUP BY; ORDER BY, LIMIT, OFFSET; UNION and its kin, WITH
//! 14. `select`: queries
//! 15. `ddl`, `insert`, `modify`: changes of schema; INSERT; UPDATE and DELETE
//! 16. `statement`: statements to plans
//! 17. `copy`: COPY
//! 18. `parameters`: the parameters of EXECUTE

mod access;
mod aggregate;
mod aggregation;
mod assign;
mod bind_expr;
mod binder;
mod calls;
mod coerce;
mod comparison;
mod constants;
mod copy;
mod cost;
mod ddl;
mod explain;
mod from;
mod functions;
mod grouping;
mod insert;
mod joins;
mod modify;
mod names;
mod node;
mod object_names;
mod operators;
mod order_limit;
mod parameters;
mod plain;
mod projection;
mod rel;
mod select;
mod set_operation;
mod show;
mod special;
mod statement;
mod subquery;
mod type_name;
mod with_name;

pub(crate) use access::{AccessPath, KeyBound, PLAIN_COLUMNS, PlainOutput, TableAccess};
pub(crate) use aggregation::{AggregateCall, AggregateOrder};
pub(crate) use copy::{CopySpec, bind_copy};
pub(crate) use explain::{analyzed_lines, column as explain_column};
pub(crate) use node::{Actual, Analyze, Body, Conflict, CopyFromPlan, DeletePlan, InsertPlan, RowCounts, UpdatePlan};
pub use node::{Notice, Plan, ResultColumn};
pub(crate) use parameters::{bind_parameters, wrong_number};
pub(crate) use rel::{
    Aggregation, FunctionScan, Join, JoinMethod, Rel, RowLock, RowWait, SelectPlan, SetCall, SetKind, SetOperation,
    SetValues, SortKey, Source, WithBody, WithScan,
};
pub use statement::bind;
pub(crate) use type_name::resolve as type_of_name;

#[cfg(test)]
mod tests;
