//! Correlated sub-queries: which of them may keep the rows of their table, found by the values around the query.
//!
//! A sub-query of `FROM t WHERE t.a = outer.b AND ...` runs once for each row around it. If no key or index leads to
//! the rows with `a = b`, each run reads the same part of the table. After a few runs the executor reads that part once
//! and keeps its rows by the values of `a` (its module `subqueries`). A run then sees the rows of its value alone, in
//! the order of the table, and does all else as before, the whole filter included.

use super::conditions::{conjunction, conjuncts};
use super::rel::{KeptRows, SelectPlan, Source};
use crate::expr::{CompareOp, Expr};

/// What is kept for a sub-query, if that helps. Its access path is chosen.
pub(super) fn kept_rows(plan: &SelectPlan) -> Option<KeptRows> {
    let Source::Table(access) = &plan.source else { return None };
    let is_plain = plan.lock.is_none() && !access.with_key;
    if !is_plain || access.path.exprs().into_iter().any(|expr| has_outer(expr) || !is_repeatable(expr)) {
        return None;
    }
    let mut conditions = Vec::new();
    conjuncts(plan.filter.clone()?, &mut conditions);
    if !conditions.iter().all(is_repeatable) {
        return None;
    }
    let (correlated, own): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(has_outer);
    let keys: Vec<(Expr, Expr)> = correlated.into_iter().filter_map(key).collect();
    if keys.is_empty() {
        return None;
    }
    let width = access.table.columns.len();
    let mut base = SelectPlan::of(Source::Table(access.clone()), width, plan.names.clone());
    (base.filter, base.has_subqueries) = (conjunction(own), false);
    Some(KeptRows { base, keys })
}

fn has_outer(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part, Expr::Outer(_)))
}

/// Whether it gives the same for the same row, whenever it is evaluated.
fn is_repeatable(expr: &Expr) -> bool {
    !expr.is_volatile() && !expr.has_subquery()
}

/// The sides of `own = outer`: over a row of the table, and over the values around the query.
fn key(condition: Expr) -> Option<(Expr, Expr)> {
    let Expr::Compare { op: CompareOp::Eq, left, right, .. } = condition else { return None };
    let is_own = |expr: &Expr| !has_outer(expr) && !expr.is_row_independent();
    let is_around = |expr: &Expr| has_outer(expr) && expr.is_row_independent();
    match (*left, *right) {
        (own, around) if is_own(&own) && is_around(&around) => Some((own, around)),
        (around, own) if is_own(&own) && is_around(&around) => Some((own, around)),
        _ => None,
    }
}
