//! Functions, operators and aggregates: tables with the OIDs of PostgreSQL 15, and what each computes.
//!
//! A function is a row ([`ProcRow`]) in the file of its topic. An operator is a row that names its function
//! ([`OperatorRow`]). What needs the catalog, locks or settings is a row here, and computed by the session.
//!
//! # Layers
//!
//! 1. `args`, `common`, `operator`: arguments of a call; the common type of values; the rows of operators
//! 2. `aggregate`: what an aggregate does
//! 3. `row`: the rows of functions
//! 4. `casts`, `catalog`, `compare`, `enums`, `forms`, `json`, `keywords`, `session`, `text`, `times`: the topics
//! 5. `arrays`, `numbers`: topics that use others
//! 6. `aggregates`, `windows`: the aggregates; the functions of windows
//! 7. `polymorphic`, `table`: what polymorphic types stand for; all functions
//! 8. `operators`, `row_types`: the operators; the types of rows
//! 9. `resolve`: which function a call means

mod aggregate;
mod aggregates;
mod args;
mod arrays;
mod casts;
mod catalog;
mod common;
mod compare;
mod enums;
mod forms;
mod json;
mod keywords;
mod numbers;
mod operator;
pub mod operators;
mod polymorphic;
pub mod resolve;
mod row;
mod row_types;
mod session;
mod table;
mod text;
mod times;
mod windows;

pub use aggregate::Aggregate;
pub use aggregates::array_of_arrays;
pub use args::Args;
pub use common::common_type;
pub use compare::{check_fields, has_equality, has_order};
pub use operator::OperatorRow;
pub use polymorphic::Mismatch;
pub use row::{AggregateFn, ProcRow, Run, ScalarFn, SetFn, SetRows, Volatility, WindowFn};
pub use row_types::{fields_of, row_type};
pub use table::{all, find, named};

#[cfg(test)]
mod tests;
