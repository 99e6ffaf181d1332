//! Access paths: the part of a table that a statement reads, derived from its filter.
//!
//! Conditions that compare a primary key column with a row-independent value become key bounds. The remaining
//! conditions stay in the filter. Bounds are expressions evaluated at execution, so one plan serves all parameters.

use std::sync::Arc;

use crate::expr::{CompareOp, Expr};
use crate::table::Table;
use pgtypes::Datum;

/// Limit of keys of one list: IN, or ORs of whole keys.
const MAX_LISTED: usize = 65_536;
/// Limit of keys in the product of the lists of several key columns.
const MAX_POINTS: usize = 4096;

/// How a table is read.
#[derive(Clone, Debug)]
pub(crate) struct TableAccess {
    /// The table.
    pub(crate) table: Arc<Table>,
    /// The rows to read.
    pub(crate) path: AccessPath,
    /// Whether to read in descending key order.
    pub(crate) reverse: bool,
    /// The columns in use. The others stay NULL.
    pub(crate) needed: Vec<bool>,
}

/// A part of a table. Values are expressions without columns; NULL matches nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AccessPath {
    /// The rows with these primary keys.
    Points(Vec<Vec<Expr>>),
    /// Rows whose key starts with `prefix` and whose next key column satisfies all bounds.
    Range { prefix: Vec<Expr>, lower: Vec<KeyBound>, upper: Vec<KeyBound> },
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
    /// The expressions of the keys.
    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        match self {
            AccessPath::Full => Vec::new(),
            AccessPath::Points(points) => points.iter().flatten().collect(),
            AccessPath::Range { prefix, lower, upper } => {
                prefix.iter().chain(lower.iter().chain(upper).map(|bound| &bound.value)).collect()
            }
        }
    }
}

/// A bound of a key column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyBound {
    /// The value.
    pub(crate) value: Expr,
    /// Whether the value itself satisfies the bound.
    pub(crate) inclusive: bool,
}

/// Access to all columns of a table, for statements that change rows.
pub(super) fn whole_rows(table: Arc<Table>, filter: Option<Expr>) -> (TableAccess, Option<Expr>) {
    let (path, filter) = choose(&table, filter);
    let needed = vec![true; table.columns.len()];
    (TableAccess { table, path, reverse: false, needed }, filter)
}

/// Splits a filter into an access path and the remaining filter.
pub(super) fn choose(table: &Table, filter: Option<Expr>) -> (AccessPath, Option<Expr>) {
    let mut conditions = Vec::new();
    flatten(filter, &mut conditions);
    let mut used = vec![false; conditions.len()];
    let path = points(table, &conditions, &mut used).unwrap_or_else(|| range(table, &conditions, &mut used));
    let mut rest: Vec<Expr> = conditions.into_iter().zip(used).filter(|(_, used)| !used).map(|(c, _)| c).collect();
    // A lock is taken for a row that passes everything else.
    rest.sort_by_key(Expr::takes_locks);
    let filter = if rest.len() > 1 { Some(Expr::And(rest)) } else { rest.pop() };
    (path, filter)
}

/// The parts of a conjunction. `TRUE` has none.
fn flatten(filter: Option<Expr>, out: &mut Vec<Expr>) {
    match filter {
        Some(Expr::And(items)) => items.into_iter().for_each(|item| flatten(Some(item), out)),
        Some(Expr::Const(Datum::Bool(true))) | None => {}
        Some(other) => out.push(other),
    }
}

/// `column op value`, with the column on either side.
fn comparison(expr: &Expr) -> Option<(usize, CompareOp, &Expr)> {
    let Expr::Compare { op, left, right } = expr else { return None };
    match (&**left, &**right) {
        (Expr::Column(column), value) if value.is_fixed() => Some((*column, *op, value)),
        (value, Expr::Column(column)) if value.is_fixed() => Some((*column, op.flip(), value)),
        _ => None,
    }
}

/// The values that a condition allows for a column: one for `=`, several for IN.
fn alternatives(expr: &Expr, column: usize) -> Option<Vec<Expr>> {
    match expr {
        Expr::Compare { .. } => match comparison(expr)? {
            (found, CompareOp::Eq, value) if found == column => Some(vec![value.clone()]),
            _ => None,
        },
        Expr::InList { expr, list, negated: false } => {
            let fits = **expr == Expr::Column(column) && list.len() <= MAX_LISTED && list.iter().all(Expr::is_fixed);
            fits.then(|| list.clone())
        }
        Expr::InSet { expr, values, negated: false, .. } => {
            let fits = **expr == Expr::Column(column) && values.len() <= MAX_LISTED;
            fits.then(|| values.iter().cloned().map(Expr::Const).collect())
        }
        _ => None,
    }
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
        let (at, values) = conditions.iter().enumerate().find_map(|(at, c)| Some((at, alternatives(c, *column)?)))?;
        if keys.len().saturating_mul(values.len()) > most {
            return None;
        }
        keys = keys
            .iter()
            .flat_map(|key| values.iter().map(|value| key.iter().chain([value]).cloned().collect()))
            .collect();
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
                parts.iter().find_map(|part| match comparison(part)? {
                    (found, CompareOp::Eq, value) if found == *column => Some(value.clone()),
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
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    for column in &table.primary_key {
        let on_column = |condition: &Expr| {
            comparison(condition).filter(|(found, _, _)| found == column).map(|(_, op, value)| (op, value.clone()))
        };
        let equal = conditions.iter().enumerate().find_map(|(at, c)| match on_column(c)? {
            (CompareOp::Eq, value) => Some((at, value)),
            _ => None,
        });
        if let Some((at, value)) = equal {
            used[at] = true;
            prefix.push(value);
            continue;
        }
        for (at, condition) in conditions.iter().enumerate() {
            let Some((op, value)) = on_column(condition) else { continue };
            let (bounds, inclusive) = match op {
                CompareOp::Greater => (&mut lower, false),
                CompareOp::GreaterEq => (&mut lower, true),
                CompareOp::Less => (&mut upper, false),
                CompareOp::LessEq => (&mut upper, true),
                CompareOp::Eq | CompareOp::NotEq => continue,
            };
            used[at] = true;
            bounds.push(KeyBound { value, inclusive });
        }
        break;
    }
    if prefix.is_empty() && lower.is_empty() && upper.is_empty() {
        AccessPath::Full
    } else {
        AccessPath::Range { prefix, lower, upper }
    }
}

/// The direction (true: reverse) in which the path returns rows in this order of columns, each with its descending
/// flag. `None` if neither direction does.
pub(super) fn gives_order(table: &Table, path: &AccessPath, order: &[(usize, bool)]) -> Option<bool> {
    let fixed = match path {
        AccessPath::Points(keys) if keys.len() <= 1 => return Some(false),
        AccessPath::Points(_) => 0,
        AccessPath::Range { prefix, .. } => prefix.len(),
        AccessPath::Full => 0,
    };
    let key = &table.primary_key;
    let mut next = fixed;
    let mut direction = None;
    for (column, descending) in order {
        if next == key.len() && !key.is_empty() {
            // The whole key is compared: no rows are left to order.
            break;
        }
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
