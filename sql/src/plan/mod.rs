//! The binder: turns a syntax tree into a typed plan.
//!
//! [`bind`] resolves names, types and parameters ([`names`], [`coerce`], [`bind_expr`], [`operators`], [`comparison`],
//! [`calls`]). It builds one of a few kinds of plan ([`node`]): a query, which is a tree ([`select`], [`rel`]), a
//! change of rows ([`insert`], [`modify`]), a change of schema ([`ddl`], [`index_ddl`]). [`access`] derives key bounds
//! from the filter and so chooses between point get, range scan, scan of an index and full scan. [`explain`] prints a
//! plan.
//!
//! # Layers
//!
//! 1. `aggregation`, `bound_index`, `conditions`, `show`: parts without knowledge of the binder: aggregations, indexes
//!    as expressions, conjuncts that bound a key, expressions as text
//! 2. `index_path`: scans of secondary indexes
//! 3. `access`: access paths
//! 4. `rel`: queries and the nodes that they read
//! 5. `joins`, `node`: where conditions go; the plan of a statement
//! 6. `settle`, `with_name`: access paths and methods of joins; names of WITH
//! 7. `binder`, `constants`, `plain`: the binder's state, names in scope; errors of constant expressions; queries for
//!    plain columns
//! 8. `coerce`, `cost`, `explain`, `names`: conversions, EXPLAIN, reserved words
//! 9. `calls`, `relations`, `type_name`: calls of functions, names of relations, types
//! 10. `object_names`, `operators`: names in literals, operators
//! 11. `comparison`: comparisons and constructs built from them
//! 12. `bind_expr`, `functions`, `special`, `subquery`: expressions
//! 13. `aggregate`, `index`: aggregates; binding of indexes
//! 14. `assign`, `from`, `projection`: values for columns, FROM, output columns
//! 15. `grouping`, `order_limit`, `set_operation`: GROUP BY; ORDER BY, LIMIT, OFFSET; UNION and its kin, WITH
//! 16. `select`, `sequence_ddl`: queries; sequences
//! 17. `ddl`, `drops`, `index_ddl`, `insert`, `modify`: tables; what a DROP takes along; indexes; INSERT; UPDATE and
//!     DELETE
//! 18. `object_ddl`: schemas, databases, DROP
//! 19. `statement`: statements to plans
//! 20. `copy`: COPY
//! 21. `parameters`: the parameters of EXECUTE

mod access;
mod aggregate;
mod aggregation;
mod assign;
mod bind_expr;
mod binder;
mod bound_index;
mod calls;
mod coerce;
mod comparison;
mod conditions;
mod constants;
mod copy;
mod cost;
mod ddl;
mod drops;
mod explain;
mod from;
mod functions;
mod grouping;
mod index;
mod index_ddl;
mod index_path;
mod insert;
mod joins;
mod modify;
mod names;
mod node;
mod object_ddl;
mod object_names;
mod operators;
mod order_limit;
mod parameters;
mod plain;
mod projection;
mod rel;
mod relations;
mod select;
mod sequence_ddl;
mod set_operation;
mod settle;
mod show;
mod special;
mod statement;
mod subquery;
mod type_name;
mod with_name;

pub(crate) use access::{AccessPath, PLAIN_COLUMNS, PlainOutput, TableAccess};
pub(crate) use aggregation::{AggregateCall, AggregateOrder};
pub(crate) use bound_index::{BoundIndex, TableWrite};
pub(crate) use conditions::KeyBound;
pub(crate) use copy::{CopySpec, bind_copy};
pub(crate) use explain::{analyzed_lines, column as explain_column};
pub(crate) use index_path::{IndexScan, PrefixValue};
pub(crate) use node::{
    Actual, Alteration, Analyze, Arbiters, Body, Conflict, CopyFromPlan, DeletePlan, InsertPlan, NewObject, RowCounts,
    UpdatePlan,
};
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
