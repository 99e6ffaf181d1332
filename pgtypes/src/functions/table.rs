//! The table of all functions, by OID and by name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::row::ProcRow;
use super::{
    aggregates, arrays, casts, catalog, compare, enums, forms, json, keywords, numbers, session, text, times, windows,
};
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
    keywords::ROWS,
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
    windows::ROWS,
];

/// The functions of `information_schema`, by their names with it: no name without it leads to them.
static QUALIFIED: &[(&str, &ProcRow)] = &[("information_schema._pg_expandarray", &arrays::EXPAND)];

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
    for (name, row) in QUALIFIED {
        index.by_oid.insert(row.oid, row);
        index.by_name.entry(name).or_default().push(row);
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

/// The functions of a name; of `information_schema` with that before it.
pub fn named(name: &str) -> &'static [&'static ProcRow] {
    INDEX.by_name.get(name).map_or(&[], Vec::as_slice)
}
