//! Access paths: the part of a table that a statement reads, derived from its filter.
//!
//! Conditions that compare a primary key column, or a column of an index ([`super::index_path`]), with a
//! row-independent value become key bounds. The remaining conditions stay in the filter. Bounds are expressions
//! evaluated at execution, so one plan serves all parameters.
//!
//! Of the paths that serve, a point get is always used. Otherwise it is the cheapest one ([`super::path_cost`]) if the
//! table is analyzed, and the one that the rules of [`super::index_path`] prefer if not.

use std::sync::Arc;

use super::bound_index::{BoundIndex, TableWrite};
use super::conditions::{
    Bounds, KeyBound, MAX_LISTED, MAX_POINTS, alternatives, comparison, conjunction, conjuncts, is_list, with_column,
};
use super::index_path::{self, IndexScan, OrderBy, Score, Wanted};
use super::known::Known;
use super::path_cost::{self, Estimate, PathRead};
use super::selectivity::Rows;
use crate::expr::{Children, CompareOp, Expr};
use crate::table::Table;

/// How a table is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableAccess {
    /// The table.
    pub(crate) table: Arc<Table>,
    /// The name that the statement gives it, if that is another one.
    pub(crate) alias: Option<Box<str>>,
    /// The rows to read.
    pub(crate) path: AccessPath,
    /// Whether to read in descending key order.
    pub(crate) reverse: bool,
    /// The columns in use. The others stay NULL.
    pub(crate) needed: Vec<bool>,
    /// Whether the key of each row follows its columns.
    pub(crate) with_key: bool,
    /// The indexes that may serve, in the order of the table's; none once the path is chosen.
    pub(super) indexes: Vec<BoundIndex>,
    /// The rows that it is expected to give behind the filter; `None` if the table is not analyzed.
    pub(crate) estimate: Option<f64>,
}

impl TableAccess {
    /// All columns of all rows.
    pub(super) fn whole(table: Arc<Table>, indexes: Vec<BoundIndex>) -> TableAccess {
        let needed = vec![true; table.columns.len()];
        TableAccess {
            table,
            alias: None,
            path: AccessPath::Full,
            reverse: false,
            needed,
            with_key: false,
            indexes,
            estimate: None,
        }
    }

    /// Some columns of all rows.
    pub(crate) fn of_columns(table: Arc<Table>, columns: &[usize]) -> TableAccess {
        let needed = (0..table.columns.len()).map(|at| columns.contains(&at)).collect();
        TableAccess { needed, ..TableAccess::whole(table, Vec::new()) }
    }
}

/// A part of a table. Values are expressions without columns; NULL matches nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AccessPath {
    /// The rows with these primary keys.
    Points(Vec<Vec<Expr>>),
    /// Rows whose key starts with `prefix` and whose next key column satisfies all bounds.
    Range { prefix: Vec<Expr>, lower: Vec<KeyBound>, upper: Vec<KeyBound> },
    /// Rows by the entries of a secondary index.
    Index(Box<IndexScan>),
    /// All rows.
    Full,
}

/// The most columns of a [`PlainOutput`]. The executor keeps the values of a row on its stack.
pub(crate) const PLAIN_COLUMNS: usize = 32;

/// The output of a query for plain columns of a table's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlainOutput {
    /// For each column of the table, its place in the output.
    pub(crate) places: Vec<Option<usize>>,
    /// Whether a column of the primary key is in the output.
    pub(crate) reads_key: bool,
    /// The number of output columns.
    pub(crate) width: usize,
}

impl AccessPath {
    /// The expressions of the keys, and of arrays of keys.
    pub(crate) fn exprs(&self) -> Children<'_> {
        let mut exprs: Children<'_> = match self {
            AccessPath::Full => Children::new(),
            AccessPath::Points(points) => points.iter().flatten().collect(),
            AccessPath::Range { prefix, lower, upper } => {
                prefix.iter().chain(lower.iter().chain(upper).map(|bound| &bound.value)).collect()
            }
            AccessPath::Index(scan) => {
                let bounds = scan.lower.iter().chain(&scan.upper).map(|bound| &bound.value);
                scan.prefixes.iter().flatten().flatten().chain(bounds).collect()
            }
        };
        for expr in &mut exprs {
            if let Expr::Each(array) = *expr {
                *expr = array;
            }
        }
        exprs
    }
}

/// Access to all columns of a table, for statements that change rows.
pub(super) fn whole_rows(write: &TableWrite, filter: Option<Expr>, known: &Known) -> (TableAccess, Option<Expr>) {
    let TableWrite { table, indexes, .. } = write;
    let Choice { path, filter, estimate, .. } = choose((table, indexes), filter, &Wanted::default(), known);
    let estimate = estimate.map(|estimate| estimate.rows);
    let access = TableAccess { path, estimate, ..TableAccess::whole(table.clone(), Vec::new()) };
    (access, filter)
}

/// A chosen path.
pub(super) struct Choice {
    pub(super) path: AccessPath,
    /// The remaining filter.
    pub(super) filter: Option<Expr>,
    /// The direction in which the path returns rows in the wanted order (true: reverse). `None` if neither does.
    pub(super) direction: Option<bool>,
    pub(super) score: Score,
    /// What is expected of it; `None` if the table is not analyzed, and for point gets.
    pub(super) estimate: Option<Estimate>,
}

/// A path that serves.
struct Candidate {
    path: AccessPath,
    /// The conditions that it takes over.
    used: Vec<bool>,
    /// As [`Choice::direction`].
    direction: Option<bool>,
    score: Score,
}

/// Splits a filter into an access path and the remaining filter.
pub(super) fn choose(
    (table, indexes): (&Table, &[BoundIndex]),
    filter: Option<Expr>,
    wanted: &Wanted,
    known: &Known,
) -> Choice {
    let mut conditions = Vec::new();
    filter.into_iter().for_each(|filter| conjuncts(filter, &mut conditions));
    let mut used = vec![false; conditions.len()];
    let found = points(table, &conditions, &mut used);
    let is_point = found.is_some();
    let path = found.unwrap_or_else(|| range(table, &conditions, &mut used));
    let direction = gives_order(table, &path, &wanted.order);
    let score = score(&path, direction.is_some() && !wanted.order.is_empty());
    let by_key = Candidate { path, used, direction, score };
    // Point gets are the best whatever the rows are.
    let (chosen, estimate) = if is_point {
        (by_key, None)
    } else {
        let scans = index_path::candidates(table, indexes, &conditions, wanted).into_iter();
        let scans = scans.map(|found| Candidate {
            path: AccessPath::Index(Box::new(found.scan)),
            used: found.used,
            direction: found.direction,
            score: found.score,
        });
        let statistics = known.of(table);
        match statistics.as_deref().and_then(|statistics| Rows::of(table, statistics)) {
            Some(rows) => {
                let (candidate, estimate) = cheapest(by_key, scans, &conditions, wanted, &rows);
                (candidate, Some(estimate))
            }
            // By rule: the best score, of several the first.
            None => (scans.fold(by_key, |best, next| if next.score > best.score { next } else { best }), None),
        }
    };
    let Candidate { path, used, direction, score } = chosen;
    let mut rest: Vec<Expr> = conditions.into_iter().zip(used).filter(|(_, used)| !used).map(|(c, _)| c).collect();
    // A lock is taken for a row that passes everything else.
    rest.sort_by_key(Expr::takes_locks);
    Choice { path, filter: conjunction(rest), direction, score, estimate }
}

/// The candidate that costs least; of several the one with the best score.
fn cheapest(
    by_key: Candidate,
    scans: impl Iterator<Item = Candidate>,
    conditions: &[Expr],
    wanted: &Wanted,
    rows: &Rows<'_>,
) -> (Candidate, Estimate) {
    let result = rows.satisfying(conditions);
    let estimated = |candidate: Candidate| {
        let estimate = estimate(&candidate, (conditions, result), wanted, rows);
        (candidate, estimate)
    };
    let first = estimated(by_key);
    scans.map(estimated).fold(first, |best, next| {
        let is_cheaper = next.1.cost < best.1.cost || (next.1.cost == best.1.cost && next.0.score > best.0.score);
        if is_cheaper { next } else { best }
    })
}

/// What is expected of a candidate. `result`: the rows that satisfy all conditions.
fn estimate(candidate: &Candidate, (conditions, result): (&[Expr], f64), wanted: &Wanted, rows: &Rows<'_>) -> Estimate {
    let taken = conditions.iter().zip(&candidate.used).filter(|(_, used)| **used).map(|(condition, _)| condition);
    let found = rows.satisfying(taken);
    let (parts, is_index, fetches) = match &candidate.path {
        AccessPath::Index(scan) => (scan.number_of_prefixes() as f64, true, !scan.covers),
        _ => (1.0, false, false),
    };
    let found = if candidate.score.is_unique { found.min(parts) } else { found };
    let read = PathRead { rows: found, parts, is_index, fetches, gives_order: candidate.direction.is_some() };
    path_cost::estimate(rows.number, result.min(found), &read, wanted)
}

/// How good a path by the primary key is.
fn score(path: &AccessPath, gives_order: bool) -> Score {
    let (equal, bounds) = match path {
        AccessPath::Points(keys) => (keys.first().map_or(0, Vec::len), 0),
        AccessPath::Range { prefix, lower, upper } => {
            (prefix.len(), usize::from(!lower.is_empty() || !upper.is_empty()))
        }
        _ => (0, 0),
    };
    Score { is_unique: matches!(path, AccessPath::Points(_)), equal, bounds, gives_order, needs_no_rows: 2 }
}

/// Point gets, if every key column has a list of values.
fn points(table: &Table, conditions: &[Expr], used: &mut [bool]) -> Option<AccessPath> {
    if table.has_hidden_key() {
        return None;
    }
    if let Some((at, keys)) =
        conditions.iter().enumerate().find_map(|(at, condition)| Some((at, disjunction(table, condition)?)))
    {
        used[at] = true;
        return Some(AccessPath::Points(keys));
    }
    let mut keys: Vec<Vec<Expr>> = vec![Vec::new()];
    let mut taken = Vec::new();
    let most = if table.primary_key.len() == 1 { MAX_LISTED } else { MAX_POINTS };
    for column in &table.primary_key {
        let key = Expr::Column(*column);
        let (at, values) = conditions.iter().enumerate().find_map(|(at, c)| Some((at, alternatives(c, &key)?)))?;
        keys = with_column(&keys, &values, (most, is_list))?;
        taken.push(at);
    }
    taken.into_iter().for_each(|at| used[at] = true);
    Some(AccessPath::Points(keys))
}

/// The keys of `(a, b) IN ((1, 2), ...)` and `a = 1 OR a = 2`, if every arm is exactly one whole key.
fn disjunction(table: &Table, condition: &Expr) -> Option<Vec<Vec<Expr>>> {
    let Expr::Or(arms) = condition else { return None };
    if arms.len() > MAX_LISTED {
        return None;
    }
    arms.iter()
        .map(|arm| {
            let parts = match arm {
                Expr::And(parts) => parts.as_slice(),
                single => std::slice::from_ref(single),
            };
            if parts.len() != table.primary_key.len() {
                return None;
            }
            let value = |column: &usize| {
                parts.iter().find_map(|part| match comparison(part, &Expr::Column(*column))? {
                    (CompareOp::Eq, value) => Some(value.clone()),
                    _ => None,
                })
            };
            table.primary_key.iter().map(value).collect()
        })
        .collect()
}

/// A range: equality on leading key columns, then bounds on the next one.
fn range(table: &Table, conditions: &[Expr], used: &mut [bool]) -> AccessPath {
    let mut prefix = Vec::new();
    let mut bounds = Bounds::default();
    for column in &table.primary_key {
        let key = Expr::Column(*column);
        let equal = conditions.iter().enumerate().find_map(|(at, c)| match comparison(c, &key)? {
            (CompareOp::Eq, value) => Some((at, value.clone())),
            _ => None,
        });
        let Some((at, value)) = equal else {
            bounds = Bounds::of(conditions, &key, used);
            break;
        };
        used[at] = true;
        prefix.push(value);
    }
    let Bounds { lower, upper } = bounds;
    if prefix.is_empty() && lower.is_empty() && upper.is_empty() {
        AccessPath::Full
    } else {
        AccessPath::Range { prefix, lower, upper }
    }
}

/// The direction (true: reverse) in which a path by the primary key returns rows in an order. `None` if neither
/// direction does.
fn gives_order(table: &Table, path: &AccessPath, order: &[OrderBy]) -> Option<bool> {
    let fixed = match path {
        AccessPath::Points(keys) if keys.len() <= 1 && !keys.iter().flatten().any(is_list) => return Some(false),
        AccessPath::Range { prefix, .. } => prefix.len(),
        AccessPath::Points(_) | AccessPath::Full | AccessPath::Index(_) => 0,
    };
    let key = &table.primary_key;
    let mut next = fixed;
    let mut direction = None;
    // Key columns are never NULL, so the place of NULLs does not matter.
    for OrderBy { expr, descending, .. } in order {
        if next == key.len() && !key.is_empty() {
            // The whole key is compared: no rows are left to order.
            break;
        }
        let Expr::Column(column) = expr else { return None };
        if key[..fixed].contains(column) {
            continue;
        }
        if key.get(next) != Some(column) || direction.is_some_and(|d| d != *descending) {
            return None;
        }
        direction = Some(*descending);
        next += 1;
    }
    let reverse = direction.unwrap_or(false);
    // Point gets come in ascending order only.
    (!reverse || !matches!(path, AccessPath::Points(_))).then_some(reverse)
}
