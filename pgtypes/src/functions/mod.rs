//! Functions, operators and aggregates: tables with the OIDs of PostgreSQL 15, and what each computes.
//!
//! A function is a row ([`ProcRow`]) in the file of its topic. An operator is a row that names its function
//! ([`OperatorRow`]). What needs the catalog, locks or settings is a row here, and computed by the session.
//!
//! # Layers
//!
//! 1. `args`, `operator`: arguments of a call; the rows of operators
//! 2. `aggregate`: what an aggregate does
//! 3. `row`: the rows of functions
//! 4. `text`: the rows of a topic

mod aggregate;
mod args;
mod operator;
mod row;
mod text;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use aggregate::Aggregate;
pub use args::Args;
pub use operator::OperatorRow;
pub use row::{AggregateFn, ProcRow, Run, ScalarFn, SetFn, SetRows, Volatility};

use crate::oid::Oid;

/// The rows of each topic.
static TOPICS: [&[ProcRow]; 5] = [text::BYTES, text::LISTS, text::PATTERNS, text::REGEXES, text::STRINGS];

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
