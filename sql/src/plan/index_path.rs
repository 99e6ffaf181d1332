//! Scans of secondary indexes: which ones a statement may use, and which one it uses by rule.
//!
//! With statistics of the table the cheapest path is used ([`super::access`]). Otherwise the rules below count.
//!
//! The conditions on leading columns of an index become prefixes of its keys: one for equality and IS NULL, several for
//! IN. Conditions on the next column bound the range. A partial index is used if each conjunct of its predicate is one
//! of the filter, or says IS NOT NULL of what the filter compares. Of several indexes the first counts that is better
//! than the others in this order:
//!
//! 1. a unique index whose columns are all bound by equality,
//! 2. the most columns bound by equality,
//! 3. a range on the next one, a predicate,
//! 4. the order that the statement wants,
//! 5. the primary key, then an index that has all columns that the statement needs.
//!
//! Without a condition, an index is used for its order if the statement has a LIMIT or needs no other columns.

use super::bound_index::BoundIndex;
use super::conditions::{
    Bounds, KeyBound, MAX_LISTED, MAX_POINTS, alternatives, conjunction, is_list, number_of_keys, with_column,
};
use crate::expr::Expr;
use crate::table::{Index, IndexedValue, Table};

/// The value of a leading column; `None` is NULL.
pub(crate) type PrefixValue = Option<Expr>;

/// A scan of a secondary index. Values are expressions without columns. One that is NULL matches nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexScan {
    /// The position of the index in its table.
    pub(crate) index: usize,
    /// The values of the leading columns: the scan returns the entries with one of them. All have one length.
    pub(crate) prefixes: Vec<Vec<PrefixValue>>,
    /// The bounds of the next column.
    pub(crate) lower: Vec<KeyBound>,
    pub(crate) upper: Vec<KeyBound>,
    /// Whether the next column is not NULL.
    pub(crate) skips_null: bool,
    /// The conditions that every entry of the scan satisfies. A row that has changed since satisfies them no more.
    pub(crate) recheck: Option<Expr>,
    /// Whether the entries have all columns that the statement needs.
    pub(crate) covers: bool,
}

impl IndexScan {
    /// About the number of ranges that it scans.
    pub(super) fn number_of_prefixes(&self) -> usize {
        number_of_keys(self.prefixes.len(), self.prefixes.iter().flatten().flatten())
    }
}

/// What a statement wants of its access path beside the rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// The order of the rows; empty for any.
    pub(super) order: Vec<OrderBy>,
    /// Whether it may stop before the last row.
    pub(super) has_limit: bool,
    /// After how many rows it stops, if that is known.
    pub(super) limit: Option<f64>,
    /// The columns that it reads. Empty: it changes or locks whole rows.
    pub(super) columns: Vec<bool>,
}

/// A column of an order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OrderBy {
    pub(super) expr: Expr,
    pub(super) descending: bool,
    pub(super) nulls_first: bool,
}

/// How good a path is. The greater is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    pub(super) is_unique: bool,
    pub(super) equal: usize,
    pub(super) bounds: usize,
    pub(super) gives_order: bool,
    pub(super) needs_no_rows: usize,
}

/// A scan that a statement may use.
pub(super) struct Candidate {
    pub(super) scan: IndexScan,
    /// The conditions that the scan takes over.
    pub(super) used: Vec<bool>,
    /// The direction in which it gives the order, if it does (true: reverse).
    pub(super) direction: Option<bool>,
    pub(super) score: Score,
}

/// The scans of indexes that serve for these conditions, in the order of the indexes.
pub(super) fn candidates(
    table: &Table,
    indexes: &[BoundIndex],
    conditions: &[Expr],
    wanted: &Wanted,
) -> Vec<Candidate> {
    indexes.iter().enumerate().filter_map(|bound| candidate(table, bound, conditions, wanted)).collect()
}

fn candidate(
    table: &Table,
    (at, bound): (usize, &BoundIndex),
    conditions: &[Expr],
    wanted: &Wanted,
) -> Option<Candidate> {
    let index = table.indexes.get(at)?;
    let mut used = vec![false; conditions.len()];
    let implied = match &bound.predicate {
        Some(predicate) => implied(predicate, conditions, &mut used)?,
        None => 0,
    };
    let mut prefixes: Vec<Vec<PrefixValue>> = vec![Vec::new()];
    let (mut bounds, mut skips_null) = (Bounds::default(), false);
    for key in &bound.columns {
        let Some((condition, values)) = equal_values(conditions, key) else {
            bounds = Bounds::of(conditions, key, &mut used);
            skips_null = is_not_null(conditions, key, &mut used);
            break;
        };
        let most = if prefixes.len() == 1 { MAX_LISTED } else { MAX_POINTS };
        let is_list = |value: &PrefixValue| value.as_ref().is_some_and(is_list);
        let Some(longer) = with_column(&prefixes, &values, (most, is_list)) else { break };
        used[condition] = true;
        prefixes = longer;
    }
    let equal = prefixes.first().map_or(0, Vec::len);
    let covers = covers(table, index, &wanted.columns);
    let has_list = prefixes.iter().flatten().flatten().any(is_list);
    let fixed = if prefixes.len() == 1 && !has_list { equal } else { 0 };
    // What is compared is not NULL.
    let is_known = fixed == equal && (skips_null || !bounds.is_empty());
    let direction = direction(table, (index, bound), (fixed, is_known), &wanted.order);
    let gives_order = !wanted.order.is_empty() && direction.is_some();
    let is_bound = equal > 0 || !bounds.is_empty() || implied > 0;
    if !is_bound && !(gives_order && (wanted.has_limit || covers)) {
        return None;
    }
    let taken = conditions.iter().zip(&used).filter(|(_, used)| **used).map(|(condition, _)| condition.clone());
    let recheck = conjunction(taken.collect());
    let score = Score {
        is_unique: index.unique && equal == bound.columns.len(),
        equal,
        bounds: usize::from(!bounds.is_empty()) + usize::from(implied > 0),
        gives_order,
        needs_no_rows: usize::from(covers),
    };
    let Bounds { lower, upper } = bounds;
    Some(Candidate {
        scan: IndexScan { index: at, prefixes, lower, upper, skips_null, recheck, covers },
        used,
        direction,
        score,
    })
}

/// The number of conjuncts of a predicate, if the conditions imply all of them. Marks those that say the same.
pub(super) fn implied(predicate: &Expr, conditions: &[Expr], used: &mut [bool]) -> Option<usize> {
    let parts = match predicate {
        Expr::And(parts) => parts.as_slice(),
        single => std::slice::from_ref(single),
    };
    for part in parts {
        if let Some(at) = conditions.iter().position(|condition| condition == part) {
            used[at] = true;
            continue;
        }
        let Expr::IsNull { expr, negated: true } = part else { return None };
        let compares = |condition: &Expr| {
            matches!(condition, Expr::Compare { left, right, .. } if left == expr || right == expr)
                || matches!(condition, Expr::InList { expr: left, negated: false, .. } if left == expr)
                || matches!(condition, Expr::InSet { expr: left, negated: false, .. } if left == expr)
                || matches!(condition, Expr::Elements { function, left, .. } if !function.all && left == expr)
        };
        conditions.iter().find(|condition| compares(condition))?;
    }
    Some(parts.len())
}

/// Whether conditions say that a column is not NULL. Marks those that say only that.
fn is_not_null(conditions: &[Expr], key: &Expr, used: &mut [bool]) -> bool {
    let mut found = false;
    for (condition, used) in conditions.iter().zip(used) {
        if matches!(condition, Expr::IsNull { expr, negated: true } if **expr == *key) {
            (found, *used) = (true, true);
        }
    }
    found
}

/// The condition that gives a column its values, and the values.
fn equal_values(conditions: &[Expr], key: &Expr) -> Option<(usize, Vec<PrefixValue>)> {
    conditions.iter().enumerate().find_map(|(at, condition)| match condition {
        Expr::IsNull { expr, negated: false } if **expr == *key => Some((at, vec![None])),
        condition => Some((at, alternatives(condition, key)?.into_iter().map(Some).collect())),
    })
}

/// Whether the entries of an index have all these columns.
fn covers(table: &Table, index: &Index, columns: &[bool]) -> bool {
    let has = |column: usize| {
        let is_key = |key: &crate::table::IndexColumn| key.value == IndexedValue::Column(column);
        table.primary_key.contains(&column) || index.included.contains(&column) || index.columns.iter().any(is_key)
    };
    !columns.is_empty() && columns.iter().enumerate().all(|(column, needed)| !needed || has(column))
}

/// The direction (true: reverse) in which a scan gives an order. The first `fixed` columns have one value each;
/// `is_known`: the next one is not NULL.
fn direction(
    table: &Table,
    (index, bound): (&Index, &BoundIndex),
    (fixed, is_known): (usize, bool),
    order: &[OrderBy],
) -> Option<bool> {
    // Behind the columns of the index follow those of the primary key.
    let mut keys: Vec<(Expr, bool, Option<bool>)> = Vec::new();
    for (at, (key, column)) in bound.columns.iter().zip(&index.columns).enumerate() {
        let is_null = |at: usize| table.columns.get(at).is_none_or(|column| !column.not_null);
        let is_known = is_known && at == fixed;
        let may_be_null = !is_known && if let Expr::Column(at) = key { is_null(*at) } else { true };
        keys.push((key.clone(), column.order.descends, may_be_null.then_some(column.order.nulls_first)));
    }
    keys.extend(table.primary_key.iter().map(|at| (Expr::Column(*at), false, None)));
    let (fixed, rest) = keys.split_at_checked(fixed)?;
    let mut rest = rest.iter();
    let mut direction = None;
    for wanted in order {
        if fixed.iter().any(|(key, _, _)| *key == wanted.expr) {
            continue;
        }
        let Some((key, descends, nulls_first)) = rest.next() else {
            // The whole key of the row is compared: no rows are left to order.
            return if table.has_hidden_key() { None } else { Some(direction.unwrap_or(false)) };
        };
        let reverse = wanted.descending != *descends;
        let nulls_fit = nulls_first.is_none_or(|first| wanted.nulls_first == (first != reverse));
        if *key != wanted.expr || !nulls_fit || direction.is_some_and(|known| known != reverse) {
            return None;
        }
        direction = Some(reverse);
    }
    Some(direction.unwrap_or(false))
}
