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
//! 4. `arrays`, `casts`, `catalog`, `compare`, `enums`, `forms`, `json`, `operators`, `session`, `text`, `times`: the
//!    topics, and the operators
//! 5. `aggregates`, `numbers`: topics that use others
//! 6. `polymorphic`: what polymorphic types stand for
//! 7. `resolve`: which function a call means

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
mod numbers;
mod operator;
pub mod operators;
mod polymorphic;
pub mod resolve;
mod row;
mod session;
mod text;
mod times;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use aggregate::Aggregate;
pub use args::Args;
pub use common::common_type;
pub use operator::OperatorRow;
pub use polymorphic::Mismatch;
pub use row::{AggregateFn, ProcRow, Run, ScalarFn, SetFn, SetRows, Volatility};

use crate::oid::Oid;

/// The rows of each topic.
static TOPICS: &[&[ProcRow]] = &[
    aggregates::ROWS,
    aggregates::EXTREMES,
    aggregates::JSON,
    aggregates::SUMS,
    aggregates::VARIANCES,
    aggregates::PAIRS,
    arrays::ROWS,
    casts::ROWS,
    catalog::ROWS,
    catalog::SIZES,
    compare::NUMBERS,
    compare::TEXTS,
    compare::TIMES,
    compare::VALUES,
    enums::ROWS,
    forms::ROWS,
    json::BUILD,
    json::EDIT,
    json::TEXT,
    json::TREE,
    numbers::INTEGERS,
    numbers::FLOATS,
    numbers::DECIMALS,
    numbers::BUCKETS,
    numbers::PICTURES,
    numbers::SERIES,
    numbers::POSITIONS,
    session::ROWS,
    text::BYTES,
    text::LISTS,
    text::PATTERNS,
    text::REGEXES,
    text::STRINGS,
    times::arithmetic::ROWS,
    times::fields::ROWS,
    times::forms::ROWS,
    times::make::ROWS,
    times::periods::ROWS,
    times::zones::ROWS,
];

struct Index {
    by_oid: HashMap<Oid, &'static ProcRow>,
    by_name: HashMap<&'static str, Vec<&'static ProcRow>>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index { by_oid: HashMap::new(), by_name: HashMap::new() };
    for row in all() {
        index.by_oid.insert(row.oid, row);
        index.by_name.entry(row.name).or_default().push(row);
    }
    index
});

/// All functions.
pub fn all() -> impl Iterator<Item = &'static ProcRow> {
    TOPICS.iter().copied().flatten()
}

/// The function of an OID.
pub fn find(oid: Oid) -> Option<&'static ProcRow> {
    INDEX.by_oid.get(&oid).copied()
}

/// The functions of a name.
pub fn named(name: &str) -> &'static [&'static ProcRow] {
    INDEX.by_name.get(name).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
