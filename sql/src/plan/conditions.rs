//! The conjuncts of a filter, as far as they bound a key column: comparisons with values that are fixed before the
//! first row, IN lists, arrays.

use crate::expr::{CompareOp, Elementwise, Expr, compares_alike};
use pgtypes::Datum;

/// Limit of keys of one list: IN, or ORs of whole keys.
pub(super) const MAX_LISTED: usize = 65_536;
/// Limit of keys in the product of the lists of several key columns.
pub(super) const MAX_POINTS: usize = 4096;

/// The elements that an array is taken to have.
pub(super) const ELEMENTS: usize = 10;

/// A bound of a key column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyBound {
    /// The value.
    pub(crate) value: Expr,
    /// Whether the value itself satisfies the bound.
    pub(crate) inclusive: bool,
}

/// The parts of a conjunction. `TRUE` has none.
pub(super) fn conjuncts(condition: Expr, out: &mut Vec<Expr>) {
    match condition {
        Expr::And(items) => items.into_iter().for_each(|item| conjuncts(item, out)),
        Expr::Const(Datum::Bool(true)) => {}
        other => out.push(other),
    }
}

/// The conjunction of conditions; `None` of none.
pub(super) fn conjunction(mut conditions: Vec<Expr>) -> Option<Expr> {
    if conditions.len() > 1 { Some(Expr::And(conditions)) } else { conditions.pop() }
}

/// `key op value`, with the key on either side.
pub(super) fn comparison<'e>(condition: &'e Expr, key: &Expr) -> Option<(CompareOp, &'e Expr)> {
    let Expr::Compare { op, left, right, .. } = condition else { return None };
    if **left == *key && right.is_fixed() {
        Some((*op, right))
    } else if **right == *key && left.is_fixed() {
        Some((op.flip(), left))
    } else {
        None
    }
}

/// The bound that a comparison of rows sets for the first of its columns: `(a, b) > (1, 2)` is bound as
/// `a > 1 OR a = 1 AND b > 2`.
fn first_of_rows<'e>(condition: &'e Expr, key: &Expr) -> Option<(CompareOp, &'e Expr)> {
    let Expr::Or(arms) = condition else { return None };
    let [first, Expr::And(tied)] = arms.as_slice() else { return None };
    let (op, value) = comparison(first, key)?;
    let op = match op {
        CompareOp::Less => CompareOp::LessEq,
        CompareOp::Greater => CompareOp::GreaterEq,
        _ => return None,
    };
    let tie = comparison(tied.first()?, key)?;
    (tie == (CompareOp::Eq, value)).then_some((op, value))
}

/// The values that a condition allows for a key column: one for `=`, several for IN, each of an array for ANY.
pub(super) fn alternatives(condition: &Expr, key: &Expr) -> Option<Vec<Expr>> {
    match condition {
        Expr::Compare { .. } => match comparison(condition, key)? {
            (CompareOp::Eq, value) => Some(vec![value.clone()]),
            _ => None,
        },
        Expr::InList { expr, list, negated: false, .. } => {
            let fits = **expr == *key && list.len() <= MAX_LISTED && list.iter().all(Expr::is_fixed);
            fits.then(|| list.clone())
        }
        Expr::InSet { expr, values, negated: false, .. } => {
            let fits = **expr == *key && values.len() <= MAX_LISTED;
            fits.then(|| values.iter().cloned().map(Expr::Const).collect())
        }
        Expr::Elements { function, left, array } => {
            let fits = **left == *key && array.is_fixed() && finds_keys(function);
            fits.then(|| vec![Expr::Each(array.clone())])
        }
        _ => None,
    }
}

/// Whether a function is true for exactly the elements whose bytes in a key are those of its left argument.
fn finds_keys(function: &Elementwise) -> bool {
    let [left, right] = function.types;
    function.operator == "=" && !function.all && compares_alike(left, right)
}

/// Whether a value of a key stands for several.
pub(super) fn is_list(value: &Expr) -> bool {
    matches!(value, Expr::Each(_))
}

/// Keys of the columns so far, with values of the next one. `None` if there are too many: an array may have any number
/// of elements, so it is the only list of a key.
pub(super) fn with_column<V: Clone>(
    keys: &[Vec<V>],
    values: &[V],
    (most, is_list): (usize, impl Fn(&V) -> bool),
) -> Option<Vec<Vec<V>>> {
    let count = keys.len().saturating_mul(values.len());
    let mut lists = keys.iter().flatten().chain(values).filter(|value| is_list(value));
    if count > most || (lists.next().is_some() && (count > 1 || lists.next().is_some())) {
        return None;
    }
    let longer =
        |key: &Vec<V>| values.iter().map(|value| key.iter().chain([value]).cloned().collect()).collect::<Vec<_>>();
    Some(keys.iter().flat_map(longer).collect())
}

/// About the number of keys that a path has, of whose values these are.
pub(super) fn number_of_keys<'e>(keys: usize, mut values: impl Iterator<Item = &'e Expr>) -> usize {
    if values.any(is_list) { keys * ELEMENTS } else { keys }
}

/// The bounds of one key column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) lower: Vec<KeyBound>,
    pub(super) upper: Vec<KeyBound>,
}

impl Bounds {
    /// Those that conditions set. Marks the ones that say no more.
    pub(super) fn of(conditions: &[Expr], key: &Expr, used: &mut [bool]) -> Bounds {
        let mut found = Bounds::default();
        for (condition, used) in conditions.iter().zip(used) {
            let whole = comparison(condition, key);
            let Some((op, value)) = whole.or_else(|| first_of_rows(condition, key)) else { continue };
            let (bounds, inclusive) = match op {
                CompareOp::Greater => (&mut found.lower, false),
                CompareOp::GreaterEq => (&mut found.lower, true),
                CompareOp::Less => (&mut found.upper, false),
                CompareOp::LessEq => (&mut found.upper, true),
                CompareOp::Eq | CompareOp::NotEq => continue,
            };
            *used |= whole.is_some();
            bounds.push(KeyBound { value: value.clone(), inclusive });
        }
        found
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lower.is_empty() && self.upper.is_empty()
    }
}
