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
//! 1. `aggregation`, `bound_index`, `conditions`, `explained`, `kinds`, `known`, `show`, `view_text`: parts without
//!    knowledge of the binder: aggregations, indexes as expressions, conjuncts that bound a key, options of EXPLAIN,
//!    kinds of joins and locks, statistics, expressions as text, the texts of views
//! 2. `index_path`, `selectivity`, `set_call`: scans of secondary indexes; what conditions leave of a table's rows;
//!    calls of functions that return sets
//! 3. `path_cost`, `window`: what paths cost; window functions and their frames
//! 4. `access`, `found`, `locked_join`: access paths; what was found of a query; joins that lock rows
//! 5. `rel`: queries and the nodes that they read
//! 6. `join_method`, `joins`, `node`, `windowed`: how joins find partners; where conditions go; the plan of a
//!    statement; window functions in a plan
//! 7. `correlated`, `set_values`, `settle`, `visit`, `with_name`: rows that sub-queries keep; functions that return
//!    sets in a plan; access paths and methods of joins; all expressions of a plan; names of WITH
//! 8. `binder`, `plain`, `read`: the binder's state, names in scope; queries for plain columns; what a statement reads
//!    of its queries
//! 9. `name_notes`: names in a text that ids are to stand for
//! 10. `coerce`, `constants`, `cost`, `depth`, `explain`, `names`, `stored`: conversions, errors of constants, EXPLAIN,
//!     the depth of a plan, reserved words, expressions of the catalog
//! 11. `calls`, `fixed_names`, `mentions`, `relations`, `type_name`: calls of functions, ids in stored texts, relations
//!     that a query's text names, names of relations, types
//! 12. `domains`, `object_names`, `operators`, `recursion`, `row_locks`: constraints of domains, names in literals,
//!     operators, the form of WITH RECURSIVE, FOR UPDATE
//! 13. `comparison`: comparisons and constructs built from them
//! 14. `bind_expr`, `functions`, `special`, `subquery`: expressions
//! 15. `aggregate`, `deparse`, `frames`, `index`, `subscripted`, `using`, `whole_row`: aggregates; conditions as text;
//!     frames of windows; binding of indexes; elements and slices that are assigned; columns of USING; rows as values
//! 16. `assign`, `conflict_target`, `dependents`, `from`, `outer_aggregate`, `projection`, `rename`, `view_uses`:
//!     values for columns; targets of ON CONFLICT; what goes with a column; FROM; aggregates of a query around, output
//!     columns; names in stored texts; what views read
//! 17. `default_names`, `grouping`, `order_limit`, `references`, `set_operation`, `table_change`: relations that
//!     defaults name; GROUP BY; ORDER BY, LIMIT, OFFSET; foreign keys of a statement; UNION and its kin, WITH; changes
//!     of tables under construction
//! 18. `over`, `select`, `sequence_ddl`, `with_change`: window functions; queries; sequences; INSERT, UPDATE and DELETE
//!     inside WITH
//! 19. `constraints`, `drops`, `index_ddl`, `insert`, `maintenance`, `modify`, `relabel`, `schema_names`: checks,
//!     generated columns, foreign keys; what a DROP takes along; changes of indexes; INSERT; VACUUM and ANALYZE; UPDATE
//!     and DELETE; new labels, and new names of schemas, in stored texts
//! 20. `comments`, `create_as`, `domain_ddl`, `enum_ddl`, `object_ddl`, `views`: comments; tables that are made from
//!     others; domains; enums; schemas, databases, DROP; views
//! 21. `ddl`: CREATE TABLE, TRUNCATE
//! 22. `alter_constraint`, `alter_identity`, `alter_type`, `set_schema`: constraints, sequences and types in ALTER
//!     TABLE; SET SCHEMA
//! 23. `alter_table`: ALTER TABLE
//! 24. `statement`: statements to plans
//! 25. `copy`: COPY
//! 26. `parameters`: the parameters of EXECUTE

mod access;
mod aggregate;
mod aggregation;
mod alter_constraint;
mod alter_identity;
mod alter_table;
mod alter_type;
mod assign;
mod bind_expr;
mod binder;
mod bound_index;
mod calls;
mod coerce;
mod comments;
mod comparison;
mod conditions;
mod conflict_target;
mod constants;
mod constraints;
mod copy;
mod correlated;
mod cost;
mod create_as;
mod ddl;
mod default_names;
mod deparse;
mod dependents;
mod depth;
mod domain_ddl;
mod domains;
mod drops;
mod enum_ddl;
mod explain;
mod explained;
mod fixed_names;
mod found;
mod frames;
mod from;
mod functions;
mod grouping;
mod index;
mod index_ddl;
mod index_path;
mod insert;
mod join_method;
mod joins;
mod kinds;
mod known;
mod locked_join;
mod maintenance;
mod mentions;
mod modify;
mod name_notes;
mod names;
mod node;
mod object_ddl;
mod object_names;
mod operators;
mod order_limit;
mod outer_aggregate;
mod over;
mod parameters;
mod path_cost;
mod plain;
mod projection;
mod read;
mod recursion;
mod references;
mod rel;
mod relabel;
mod relations;
mod rename;
mod row_locks;
mod schema_names;
mod select;
mod selectivity;
mod sequence_ddl;
mod set_call;
mod set_operation;
mod set_schema;
mod set_values;
mod settle;
mod show;
mod special;
mod statement;
mod stored;
mod subquery;
mod subscripted;
mod table_change;
mod type_name;
mod using;
mod view_text;
mod view_uses;
mod views;
mod visit;
mod whole_row;
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
pub(crate) use index_path::IndexScan;
pub(crate) use locked_join::{JoinTree, LockedJoin, LockedTable};
pub(crate) use node::{
    Alteration, AnalyzeTarget, Arbiters, Body, ChildAction, Conflict, CopyFromPlan, DeletePlan, InsertPlan, Joined,
    NewObject, References, Referring, RowCounts, UpdatePlan, WithBody,
};
pub use node::{Notice, Plan, ResultColumn};
pub(crate) use parameters::{bind_parameters, wrong_number};
pub(crate) use rel::{
    Aggregation, FunctionScan, Join, JoinMethod, KeptRows, Rel, RowLock, RowWait, SelectPlan, SetCall, SetKind,
    SetOperation, SetValues, SortKey, Source, Subplan, Window, WindowCall, Windows, WithScan,
};
pub use statement::bind;
pub(crate) use type_name::resolve_in as type_of_name;
pub(crate) use window::{Frame, FrameBound, FrameUnits, RangeBound, WindowFunction};
pub(crate) use with_name::has_changes;

#[cfg(test)]
mod tests;
