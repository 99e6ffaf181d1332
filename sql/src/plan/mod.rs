//! The binder: turns a syntax tree into a typed plan.
//!
//! [`bind`] resolves names, types and parameters ([`names`], [`coerce`], [`bind_expr`], [`operators`], [`comparison`],
//! [`calls`]). It builds one of a few kinds of plan ([`node`]): a query, which is a tree ([`select`], [`rel`]), a
//! change of rows ([`insert`], [`modify`]), a change of schema ([`ddl`], [`index_ddl`]). [`access`] derives key bounds
//! from the filter and so chooses between point get, range scan, scan of an index and full scan. [`explain`] shows a
//! plan.
//!
//! # Layers
//!
//! 1. `aggregation`, `bound_index`, `conditions`, `explained`, `show`: parts without knowledge of the binder:
//!    aggregations, indexes as expressions, conjuncts that bound a key, options of EXPLAIN, expressions as text
//! 2. `index_path`: scans of secondary indexes
//! 3. `access`, `window`: access paths; window functions and their frames
//! 4. `found`, `rel`: what was found of a query; queries and the nodes that they read
//!    (`windowed` makes that of window functions)
//! 5. `joins`, `node`: where conditions go; the plan of a statement
//! 6. `correlated`, `settle`, `with_name`: rows that sub-queries keep; access paths and methods of joins; names of
//!    WITH
//! 7. `binder`, `constants`, `plain`: the binder's state, names in scope; errors of constant expressions; queries for
//!    plain columns
//! 8. `coerce`, `cost`, `explain`, `names`: conversions, EXPLAIN, reserved words
//! 9. `calls`, `relations`, `type_name`: calls of functions, names of relations, types
//! 10. `object_names`, `operators`: names in literals, operators
//! 11. `comparison`: comparisons and constructs built from them
//! 12. `bind_expr`, `functions`, `special`, `subquery`: expressions
//! 13. `aggregate`, `deparse`, `index`: aggregates; conditions as text; binding of indexes
//! 14. `assign`, `dependents`, `from`, `projection`, `rename`, `view_uses`: values for columns; what goes with a
//!     column; FROM, output columns; names in stored texts; what views read
//! 15. `grouping`, `order_limit`, `references`, `set_operation`: GROUP BY; ORDER BY, LIMIT, OFFSET; foreign keys of a
//!     statement; UNION and its kin, WITH
//! 16. `frames`, `over`, `select`, `sequence_ddl`, `with_change`: window functions; queries; sequences; INSERT, UPDATE and DELETE inside WITH
//! 17. `constraints`, `drops`, `index_ddl`, `insert`, `modify`: checks, generated columns, foreign keys; what a DROP
//!     takes along; changes of indexes; INSERT; UPDATE and DELETE
//! 18. `comments`, `create_as`, `enum_ddl`, `object_ddl`, `views`: tables that are made from others; enums; schemas, databases,
//!     DROP; views
//! 19. `ddl`: CREATE TABLE, TRUNCATE
//! 20. `alter_identity`: sequences in ALTER TABLE
//! 21. `alter_table`: ALTER TABLE
//! 22. `statement`: statements to plans
//! 23. `copy`: COPY
//! 24. `parameters`: the parameters of EXECUTE

mod access;
mod aggregate;
mod aggregation;
mod alter_identity;
mod alter_table;
mod assign;
mod bind_expr;
mod binder;
mod bound_index;
mod calls;
mod coerce;
mod comments;
mod comparison;
mod conditions;
mod constants;
mod constraints;
mod copy;
mod correlated;
mod cost;
mod create_as;
mod ddl;
mod deparse;
mod dependents;
mod drops;
mod enum_ddl;
mod explain;
mod explained;
mod found;
mod frames;
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
mod over;
mod parameters;
mod plain;
mod projection;
mod references;
mod rel;
mod relations;
mod rename;
mod select;
mod sequence_ddl;
mod set_operation;
mod settle;
mod show;
mod special;
mod statement;
mod subquery;
mod type_name;
mod view_uses;
mod views;
mod window;
mod windowed;
mod with_change;
mod with_name;

pub(crate) use access::{AccessPath, PLAIN_COLUMNS, PlainOutput, TableAccess};
pub(crate) use aggregation::{AggregateCall, AggregateOrder};
pub(crate) use bound_index::{BoundIndex, TableWrite};
pub(crate) use conditions::KeyBound;
pub(crate) use copy::{CopySpec, bind_copy};
pub(crate) use explain::{
    NodeKey, Profile, StatementRun, column as explain_column, format_of as explain_format, show_report,
};
pub(crate) use explained::Explain;
pub(crate) use index_path::{IndexScan, PrefixValue};
pub(crate) use node::{
    Alteration, Arbiters, Body, ChildAction, Conflict, CopyFromPlan, DeletePlan, InsertPlan, Joined, NewObject,
    References, Referring, RowCounts, UpdatePlan, WithBody,
};
pub use node::{Notice, Plan, ResultColumn};
pub(crate) use parameters::{bind_parameters, wrong_number};
pub(crate) use rel::{
    Aggregation, FunctionScan, Join, JoinMethod, KeptRows, Rel, RowLock, RowWait, SelectPlan, SetCall, SetKind,
    SetOperation, SetValues, SortKey, Source, Subplan, Window, WindowCall, Windows, WithScan,
};
pub use statement::bind;
pub(crate) use type_name::resolve as type_of_name;
pub(crate) use window::{Frame, FrameBound, FrameUnits, RangeBound, WindowFunction};
pub(crate) use with_name::has_changes;

#[cfg(test)]
mod tests;
