//! How a join finds its partners: by look-ups, or by a hash table and of which side. Neither side is settled yet.
//!
//! A join by equality may look the rows of one side up for each row of the other one if its keys bind more columns of
//! the primary key, or of an index, than the side's own conditions do. That is the right side of an inner or left join,
//! or the left side of an inner one. The alternative is a hash table of the right side, or of the left one of an inner
//! join.
//!
//! If a side reads an analyzed table, and the rows of both can be estimated ([`super::selectivity`]), the cheapest way
//! is taken. Otherwise rows are looked up if the other side has few rows, as far as its own conditions tell
//! ([`is_bounded`]): the right side first. Without that the hash table is of the right side.

use super::access::{self, AccessPath, Choice};
use super::conditions::number_of_keys;
use super::index_path::{Score, Wanted};
use super::known::Known;
use super::path_cost::{Estimate, of_points};
use super::rel::{Join, JoinKind, JoinMethod, Rel, SelectPlan, Source};
use super::selectivity::{OTHER, Rows};
use crate::expr::{CompareOp, Expr};
use pgtypes::{Datum, SqlType};

/// Keeping a row in a hash table.
const BUILD: f64 = 2.0;
/// Looking a row up there, or joining it with a partner.
const PROBE: f64 = 1.0;
/// The rows of a function in FROM.
const FUNCTION_ROWS: f64 = 100.0;
/// The rows of a group, of columns that nothing is known of.
const GROUP_ROWS: f64 = 10.0;

/// A side of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// How a join finds its partners.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Method {
    /// The side whose rows are looked up; `None` for a hash table.
    pub(super) looked_up: Option<Side>,
    /// Whether the hash table is of the left side.
    pub(super) builds_left: bool,
    /// The rows that it is expected to give.
    pub(super) rows: Option<f64>,
}

/// Chooses the method of a join.
pub(super) fn choose(join: &Join, known: &Known) -> Method {
    let sides = match is_analyzed(&join.left, known) || is_analyzed(&join.right, known) {
        true => estimate_rel(&join.left, known).zip(estimate_rel(&join.right, known)),
        false => None,
    };
    let Some((left, right)) = sides else { return Method { looked_up: looked_up(join, known), ..Method::default() } };
    let rows = Some(joined_rows(join, (left.rows, right.rows), known));
    let keys = match &join.method {
        JoinMethod::Hash(keys) if !keys.is_empty() => keys,
        _ => return Method { rows, ..Method::default() },
    };
    let is_inner = join.kind == JoinKind::Inner;
    let read = left.cost + right.cost;
    let mut best = (read + BUILD * right.rows + PROBE * left.rows, Method { rows, ..Method::default() });
    let mut consider = |cost: f64, method: Method| {
        if cost < best.0 {
            best = (cost, method);
        }
    };
    if is_inner {
        let cost = read + BUILD * left.rows + PROBE * right.rows;
        consider(cost, Method { builds_left: true, rows, ..Method::default() });
    }
    if is_inner || join.kind == JoinKind::Left {
        let of_right: Vec<&Expr> = keys.iter().map(|(_, right)| right).collect();
        if let Some(each) = look_up_cost(&join.right, &of_right, known) {
            consider(left.cost + left.rows * each, Method { looked_up: Some(Side::Right), rows, ..Method::default() });
        }
    }
    if is_inner {
        let of_left: Vec<&Expr> = keys.iter().map(|(left, _)| left).collect();
        if let Some(each) = look_up_cost(&join.left, &of_left, known) {
            consider(right.cost + right.rows * each, Method { looked_up: Some(Side::Left), rows, ..Method::default() });
        }
    }
    best.1
}

/// Whether a node reads an analyzed table.
fn is_analyzed(rel: &Rel, known: &Known) -> bool {
    match rel {
        Rel::Query(plan) => match &plan.source {
            Source::Table(access) => {
                known.of(&access.table).is_some_and(|found| found.rows_of(&access.table).is_some())
            }
            Source::Rel(rel) => is_analyzed(rel, known),
            Source::Single | Source::Values(_) | Source::System(_) => false,
        },
        Rel::Join(join) => is_analyzed(&join.left, known) || is_analyzed(&join.right, known),
        Rel::Set(set) => is_analyzed(&set.left, known) || is_analyzed(&set.right, known),
        Rel::SetValues(values) => is_analyzed(&values.input, known),
        Rel::Windows(windows) => is_analyzed(&windows.input, known),
        Rel::Function(_) | Rel::With(_) => false,
    }
}

/// The cost of looking the rows of a side up by keys, for one row of the other side; `None` if no path serves.
fn look_up_cost(side: &Rel, keys: &[&Expr], known: &Known) -> Option<f64> {
    if !binds_more(side, keys, known) {
        return None;
    }
    let Rel::Query(plan) = side else { return None };
    estimate_choice(&choice_of(plan, equalities(plan, keys), known)?).map(|estimate| estimate.cost + PROBE)
}

/// The rows of a join of sides with so many rows.
fn joined_rows(join: &Join, (left, right): (f64, f64), known: &Known) -> f64 {
    let keys = match &join.method {
        JoinMethod::Hash(keys) => keys.as_slice(),
        JoinMethod::Loop(_) | JoinMethod::Reverse(_) => &[],
    };
    let share = |(l, r): &(Expr, Expr)| {
        let distinct = distinct(&join.left, l, left, known).max(distinct(&join.right, r, right, known));
        1.0 / distinct.max(1.0)
    };
    let filter = if join.condition.is_some() { OTHER } else { 1.0 };
    let rows = left * right * keys.iter().map(share).product::<f64>() * filter;
    let rows = if join.kind.keeps_left() { rows.max(left) } else { rows };
    if join.kind.keeps_right() { rows.max(right) } else { rows }
}

/// The distinct values of a key among the rows of a side.
fn distinct(side: &Rel, key: &Expr, among: f64, known: &Known) -> f64 {
    let Rel::Query(plan) = side else { return among };
    if !plan.is_simple() {
        return among;
    }
    let key = over_source(key.clone(), &plan.output);
    match &plan.source {
        Source::Table(access) => {
            let statistics = known.of(&access.table);
            let rows = statistics.as_deref().and_then(|statistics| Rows::of(&access.table, statistics));
            rows.map_or(among, |rows| rows.distinct(&key, among))
        }
        Source::Rel(rel) => distinct(rel, &key, among, known),
        _ => among,
    }
}

/// What is expected of a node; `None` if nothing is known.
fn estimate_rel(rel: &Rel, known: &Known) -> Option<Estimate> {
    match rel {
        Rel::Query(plan) => estimate_query(plan, known),
        Rel::Join(join) => {
            let (left, right) = (estimate_rel(&join.left, known)?, estimate_rel(&join.right, known)?);
            let rows = joined_rows(join, (left.rows, right.rows), known);
            // About that of a hash table. A cheaper method makes it less.
            Some(Estimate { rows, cost: left.cost + right.cost + PROBE * (left.rows + right.rows) })
        }
        Rel::Set(set) => {
            let (left, right) = (estimate_rel(&set.left, known)?, estimate_rel(&set.right, known)?);
            Some(Estimate { rows: left.rows + right.rows, cost: left.cost + right.cost })
        }
        Rel::Function(_) => Some(Estimate { rows: FUNCTION_ROWS, cost: FUNCTION_ROWS }),
        Rel::Windows(windows) => estimate_rel(&windows.input, known),
        Rel::SetValues(_) | Rel::With(_) => None,
    }
}

fn estimate_query(plan: &SelectPlan, known: &Known) -> Option<Estimate> {
    let mut found = match &plan.source {
        Source::Single => Estimate { rows: 1.0, cost: 1.0 },
        Source::Values(rows) => Estimate { rows: rows.len() as f64, cost: rows.len() as f64 },
        Source::System(_) => return None,
        Source::Table(_) => estimate_choice(&choice_of(plan, Vec::new(), known)?)?,
        Source::Rel(rel) => {
            let below = estimate_rel(rel, known)?;
            let share = if plan.filter.is_some() { OTHER } else { 1.0 };
            Estimate { rows: below.rows * share, ..below }
        }
    };
    if let Some(aggregation) = &plan.aggregation {
        found.rows = if aggregation.keys.is_empty() { 1.0 } else { (found.rows / GROUP_ROWS).max(1.0) };
    }
    if let Some(limit) = limit_of(plan) {
        found.rows = found.rows.min(limit);
    }
    Some(found)
}

/// The estimate of a path. Of point gets it needs no statistics.
fn estimate_choice(choice: &Choice) -> Option<Estimate> {
    match &choice.path {
        AccessPath::Points(keys) => Some(of_points(number_of_keys(keys.len(), keys.iter().flatten()))),
        _ => choice.estimate,
    }
}

/// The rows of a LIMIT with its OFFSET, if they are constants.
pub(super) fn limit_of(plan: &SelectPlan) -> Option<f64> {
    let constant = |expr: &Option<Expr>| match expr {
        Some(Expr::Const(Datum::Int(number))) => Some(*number as f64),
        _ => None,
    };
    let offset = if plan.offset.is_some() { constant(&plan.offset)? } else { 0.0 };
    constant(&plan.limit).map(|limit| limit + offset)
}

/// The side of a join whose rows are looked up by its keys, by rule.
fn looked_up(join: &Join, known: &Known) -> Option<Side> {
    let JoinMethod::Hash(keys) = &join.method else { return None };
    if keys.is_empty() || !matches!(join.kind, JoinKind::Inner | JoinKind::Left) {
        return None;
    }
    if is_bounded(&join.left, known) {
        let right: Vec<&Expr> = keys.iter().map(|(_, right)| right).collect();
        return binds_more(&join.right, &right, known).then_some(Side::Right);
    }
    let left: Vec<&Expr> = keys.iter().map(|(left, _)| left).collect();
    let serves = join.kind == JoinKind::Inner && binds_more(&join.left, &left, known) && is_bounded(&join.right, known);
    serves.then_some(Side::Left)
}

/// Whether keys over a side's row bind more columns of a path to its table than its own conditions do.
fn binds_more(side: &Rel, keys: &[&Expr], known: &Known) -> bool {
    let Rel::Query(plan) = side else { return false };
    let is_plain = plan.output.iter().all(|expr| !expr.is_volatile() && !expr.has_subquery());
    if !plan.is_simple() || !is_plain {
        return false;
    }
    match (score_of(plan, Vec::new(), known), score_of(plan, equalities(plan, keys), known)) {
        (Some(own), Some(with)) => (with.is_unique, with.equal) > (own.is_unique, own.equal),
        _ => false,
    }
}

/// Keys over a query's row as conditions over its source's.
fn equalities(plan: &SelectPlan, keys: &[&Expr]) -> Vec<Expr> {
    keys.iter().map(|key| equality(over_source((*key).clone(), &plan.output), Expr::Outer(0))).collect()
}

/// How good the path to the table of a query is, with more conditions. `None` if it reads no table.
fn score_of(plan: &SelectPlan, more: Vec<Expr>, known: &Known) -> Option<Score> {
    choice_of(plan, more, known).map(|choice| choice.score)
}

/// The path to the table of a query, with more conditions. `None` if it reads no table.
fn choice_of(plan: &SelectPlan, more: Vec<Expr>, known: &Known) -> Option<Choice> {
    let Source::Table(access) = &plan.source else { return None };
    let conditions: Vec<Expr> = plan.filter.iter().cloned().chain(more).collect();
    let filter = Some(Expr::And(conditions));
    Some(access::choose((&access.table, &access.indexes), filter, &Wanted::default(), known))
}

/// An expression over the output of a query as one over its source.
pub(super) fn over_source(mut expr: Expr, output: &[Expr]) -> Expr {
    expr.replace_with(&mut |part| match part {
        Expr::Column(at) => output.get(*at).cloned(),
        _ => None,
    });
    expr
}

pub(super) fn equality(left: Expr, right: Expr) -> Expr {
    Expr::Compare { op: CompareOp::Eq, left: Box::new(left), right: Box::new(right), ty: SqlType::UNKNOWN }
}

/// Whether a node has few rows, as far as its conditions tell. It is not settled.
fn is_bounded(rel: &Rel, known: &Known) -> bool {
    match rel {
        Rel::Query(plan) => {
            plan.limit.is_some()
                || plan.aggregation.as_ref().is_some_and(|aggregation| aggregation.keys.is_empty())
                || match &plan.source {
                    Source::Single | Source::Values(_) => true,
                    Source::System(_) => false,
                    Source::Table(_) => score_of(plan, Vec::new(), known).is_some_and(|score| score.equal > 0),
                    Source::Rel(source) => is_bounded(source, known),
                }
        }
        Rel::Join(join) => match &join.method {
            JoinMethod::Hash(_) => looked_up(join, known).is_some(),
            JoinMethod::Loop(_) => is_bounded(&join.left, known),
            JoinMethod::Reverse(_) => is_bounded(&join.right, known),
        },
        Rel::Function(_) | Rel::With(_) => true,
        Rel::Set(set) => is_bounded(&set.left, known) && is_bounded(&set.right, known),
        Rel::SetValues(values) => is_bounded(&values.input, known),
        Rel::Windows(windows) => is_bounded(&windows.input, known),
    }
}
