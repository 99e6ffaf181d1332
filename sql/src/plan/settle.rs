//! Access paths and methods of joins, chosen once all conditions are where they go.
//!
//! A query over a table reads it by the path that [`access`] chooses. A join by equality looks the rows of one side up
//! for each row of the other one, instead of keeping its right side in a hash table, if
//!
//! 1. the other side has few rows, as far as its own conditions tell ([`is_bounded`]), and
//! 2. the keys of the join bind more columns of the primary key, or of an index, than the side's own conditions do.
//!
//! That is the right side of an inner or left join, or else the left side of an inner one.
//!
//! The order that a query sorts by goes down to the table that has its columns, as far as the nodes between keep the
//! order of rows: simple queries, and joins for their left side. If the path there gives the order there is no sort.
//!
//! min and max are the first value of an order. If a path gives it and no row on it is dropped, only one row is read.

use super::access::{self, AccessPath, Choice};
use super::conditions::{conjunction, conjuncts};
use super::index_path::{OrderBy, Score, Wanted};
use super::joins::rel_width;
use super::rel::{Join, JoinKind, JoinMethod, Rel, SelectPlan, SetCall, SortKey, Source};
use super::show::plain;
use crate::expr::{CompareOp, Expr};
use pgtypes::Datum;

/// What is asked of a node beside its rows.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// The order of the rows, over the node's row; empty for any.
    order: Vec<OrderBy>,
    /// Whether the reader may stop before the last row.
    has_limit: bool,
}

impl Asked {
    /// The same of an input whose columns `expr` tells. Nothing if it does not have all of them.
    fn of_input(&self, expr: impl Fn(usize) -> Option<Expr>) -> Asked {
        let mut order = self.order.clone();
        for key in &mut order {
            let mut is_known = true;
            key.expr.replace_with(&mut |part| match part {
                Expr::Column(at) => {
                    let found = expr(*at);
                    is_known &= found.is_some();
                    found
                }
                _ => None,
            });
            if !is_known || key.expr.is_volatile() || key.expr.has_subquery() {
                return Asked::default();
            }
        }
        Asked { order, has_limit: self.has_limit }
    }

    /// The same of an input that has the first columns.
    fn of_first(&self, width: usize) -> Asked {
        self.of_input(|at| (at < width).then_some(Expr::Column(at)))
    }
}

/// Settles a query: chooses its paths and methods, drops a redundant sort, marks the columns in use.
pub(super) fn settle(plan: &mut SelectPlan) {
    settle_query(plan, &Asked::default());
}

/// Returns whether the rows come in the order that is asked for.
fn settle_query(plan: &mut SelectPlan, asked: &Asked) -> bool {
    first_value(plan);
    let mut needed = match &plan.source {
        Source::Single | Source::Values(_) | Source::System(_) => {
            plan.has_subqueries = plan.uses_subqueries();
            return false;
        }
        Source::Table(access) => vec![false; access.table.columns.len()],
        Source::Rel(rel) => vec![false; rel_width(rel)],
    };
    match &plan.aggregation {
        Some(aggregation) => {
            aggregation.keys.iter().for_each(|key| key.mark_columns(&mut needed));
            aggregation.calls.iter().flat_map(|call| call.inputs()).for_each(|expr| expr.mark_columns(&mut needed));
        }
        None => plan.output.iter().for_each(|expr| expr.mark_columns(&mut needed)),
    }
    let asked = asked_of_source(plan, asked);
    let gives_order = match &mut plan.source {
        Source::Single | Source::Values(_) | Source::System(_) => false,
        Source::Table(_) => settle_table(plan, needed, &asked),
        Source::Rel(rel) => {
            plan.filter.iter().for_each(|filter| filter.mark_columns(&mut needed));
            settle_rel(rel, &needed, &asked)
        }
    };
    let gives_order = gives_order && !asked.order.is_empty();
    if gives_order {
        plan.sort.clear();
    }
    plan.has_subqueries = plan.uses_subqueries();
    gives_order
}

/// What a query asks of its source: the order of its sort, or the one that is asked of itself.
fn asked_of_source(plan: &SelectPlan, asked: &Asked) -> Asked {
    let has_limit = plan.limit.is_some() || asked.has_limit;
    // Grouped rows have no order. DISTINCT ON needs its sort.
    if plan.aggregation.is_some() || !plan.distinct_on.is_empty() {
        return Asked::default();
    }
    if plan.sort.is_empty() {
        // Only simple queries are asked for an order.
        return Asked { has_limit, ..asked.of_input(|at| plan.output.get(at).cloned()) };
    }
    let key = |key: &SortKey| {
        let expr = plan.output.get(key.column)?.clone();
        Some(OrderBy { expr, descending: key.descending, nulls_first: key.nulls_first })
    };
    let order = plan.sort.iter().map(key).collect::<Option<Vec<OrderBy>>>().unwrap_or_default();
    Asked { order, has_limit }
}

/// `needed`: the columns that are read apart from those of the filter.
fn settle_table(plan: &mut SelectPlan, mut needed: Vec<bool>, asked: &Asked) -> bool {
    let mut columns = needed.clone();
    plan.filter.iter().for_each(|filter| filter.mark_columns(&mut columns));
    let is_locked = plan.lock.is_some();
    let wanted = Wanted {
        order: asked.order.clone(),
        has_limit: asked.has_limit,
        columns: if is_locked { Vec::new() } else { columns },
    };
    let Source::Table(access) = &mut plan.source else { return false };
    let indexes = std::mem::take(&mut access.indexes);
    let choice = access::choose(&access.table, &indexes, plan.filter.take(), &wanted);
    plan.filter = choice.filter;
    access.path = choice.path;
    access.reverse = choice.direction.unwrap_or(false);
    plan.filter.iter().for_each(|filter| filter.mark_columns(&mut needed));
    if let (AccessPath::Index(scan), true) = (&access.path, is_locked) {
        // A locked row that has changed is looked at again.
        scan.recheck.iter().for_each(|recheck| recheck.mark_columns(&mut needed));
    }
    access.needed = needed;
    choice.direction.is_some()
}

/// Settles a node. `used`: the columns that are read of it. Returns whether its rows come in the order that is asked
/// for.
fn settle_rel(rel: &mut Rel, used: &[bool], asked: &Asked) -> bool {
    match rel {
        Rel::Query(plan) => {
            if !plan.is_simple() {
                settle_query(plan, &Asked::default());
                return false;
            }
            for (output, used) in plan.output.iter_mut().zip(used) {
                if !used && !output.is_volatile() {
                    *output = Expr::Const(Datum::Null);
                }
            }
            settle_query(plan, asked)
        }
        Rel::Join(join) => settle_join(join, used, asked),
        Rel::Set(set) => {
            // Whole rows are compared.
            let width = used.len();
            settle_rel(&mut set.left, &vec![true; width], &Asked::default());
            settle_rel(&mut set.right, &vec![true; width], &Asked::default());
            false
        }
        Rel::SetValues(values) => {
            let width = used.len().saturating_sub(values.calls.iter().map(SetCall::width).sum());
            let mut needed = used.get(..width).unwrap_or_default().to_vec();
            for call in &values.calls {
                call.args().iter().for_each(|arg| arg.mark_columns(&mut needed));
            }
            settle_rel(&mut values.input, &needed, &asked.of_first(width))
        }
        Rel::Windows(windows) => {
            let mut needed = used.get(..windows.width).unwrap_or(used).to_vec();
            windows.mark_columns(&mut needed);
            settle_rel(&mut windows.input, &needed, &Asked::default());
            false
        }
        Rel::Function(_) | Rel::With(_) => false,
    }
}

fn settle_join(join: &mut Join, used: &[bool], asked: &Asked) -> bool {
    let mut needed = used.to_vec();
    join.condition.iter().for_each(|condition| condition.mark_columns(&mut needed));
    let (left, right) = needed.split_at_mut(join.left_width.min(used.len()));
    match &join.method {
        JoinMethod::Hash(keys) => keys.iter().for_each(|(l, r)| {
            l.mark_columns(left);
            r.mark_columns(right);
        }),
        JoinMethod::Loop(args) => args.iter().for_each(|arg| arg.mark_columns(left)),
        JoinMethod::Reverse(args) => args.iter().for_each(|arg| arg.mark_columns(right)),
    }
    match looked_up(join) {
        Some(Side::Right) => {
            let args = look_up(&mut join.right, keys_of(&mut join.method));
            join.method = JoinMethod::Loop(args);
        }
        Some(Side::Left) => {
            let keys = keys_of(&mut join.method).into_iter().map(|(l, r)| (r, l));
            let args = look_up(&mut join.left, keys.collect());
            join.method = JoinMethod::Reverse(args);
        }
        None => {}
    }
    let keeps_order =
        matches!(join.kind, JoinKind::Inner | JoinKind::Left) && !matches!(join.method, JoinMethod::Reverse(_));
    let of_left = if keeps_order { asked.of_first(join.left_width) } else { Asked::default() };
    let gives_order = settle_rel(&mut join.left, left, &of_left);
    settle_rel(&mut join.right, right, &Asked::default());
    gives_order && !of_left.order.is_empty()
}

fn keys_of(method: &mut JoinMethod) -> Vec<(Expr, Expr)> {
    match method {
        JoinMethod::Hash(keys) => std::mem::take(keys),
        JoinMethod::Loop(_) | JoinMethod::Reverse(_) => Vec::new(),
    }
}

/// A side of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// The side of a join whose rows are looked up by its keys, if that is better than a hash table. Neither side is
/// settled.
fn looked_up(join: &Join) -> Option<Side> {
    let JoinMethod::Hash(keys) = &join.method else { return None };
    if keys.is_empty() || !matches!(join.kind, JoinKind::Inner | JoinKind::Left) {
        return None;
    }
    if is_bounded(&join.left) {
        let right: Vec<&Expr> = keys.iter().map(|(_, right)| right).collect();
        return binds_more(&join.right, &right).then_some(Side::Right);
    }
    let left: Vec<&Expr> = keys.iter().map(|(left, _)| left).collect();
    let serves = join.kind == JoinKind::Inner && binds_more(&join.left, &left) && is_bounded(&join.right);
    serves.then_some(Side::Left)
}

/// Whether keys over a side's row bind more columns of a path to its table than its own conditions do.
fn binds_more(side: &Rel, keys: &[&Expr]) -> bool {
    let Rel::Query(plan) = side else { return false };
    let is_plain = plan.output.iter().all(|expr| !expr.is_volatile() && !expr.has_subquery());
    if !plan.is_simple() || !is_plain {
        return false;
    }
    let equalities = keys.iter().map(|key| equality(over_source((*key).clone(), &plan.output), Expr::Outer(0)));
    match (score_of(plan, Vec::new()), score_of(plan, equalities.collect())) {
        (Some(own), Some(with)) => (with.is_unique, with.equal) > (own.is_unique, own.equal),
        _ => false,
    }
}

/// How good the path to the table of a query is, with more conditions. `None` if it reads no table.
fn score_of(plan: &SelectPlan, more: Vec<Expr>) -> Option<Score> {
    let Source::Table(access) = &plan.source else { return None };
    let conditions: Vec<Expr> = plan.filter.iter().cloned().chain(more).collect();
    let filter = Some(Expr::And(conditions));
    let Choice { score, .. } = access::choose(&access.table, &access.indexes, filter, &Wanted::default());
    Some(score)
}

/// An expression over the output of a query as one over its source.
fn over_source(mut expr: Expr, output: &[Expr]) -> Expr {
    expr.replace_with(&mut |part| match part {
        Expr::Column(at) => output.get(*at).cloned(),
        _ => None,
    });
    expr
}

fn equality(left: Expr, right: Expr) -> Expr {
    Expr::Compare { op: CompareOp::Eq, left: Box::new(left), right: Box::new(right) }
}

/// Makes a side of a join the one that is looked up. `keys`: over the other side's row, and over its own. Returns the
/// values of the other side's row that it is run with.
fn look_up(side: &mut Rel, keys: Vec<(Expr, Expr)>) -> Vec<Expr> {
    let Rel::Query(plan) = side else { return Vec::new() };
    let mut args: Vec<Expr> = Vec::new();
    // What the side has of the query around it passes through the join.
    for expr in plan.filter.iter_mut().chain(&mut plan.output) {
        expr.replace_with(&mut |part| match part {
            Expr::Outer(_) => {
                args.push(part.clone());
                Some(Expr::Outer(args.len() - 1))
            }
            _ => None,
        });
    }
    for (other, own) in keys {
        args.push(other);
        plan.add_filter(equality(over_source(own, &plan.output), Expr::Outer(args.len() - 1)));
    }
    args
}

/// Whether a node has few rows, as far as its conditions tell. It is not settled.
fn is_bounded(rel: &Rel) -> bool {
    match rel {
        Rel::Query(plan) => {
            plan.limit.is_some()
                || plan.aggregation.as_ref().is_some_and(|aggregation| aggregation.keys.is_empty())
                || match &plan.source {
                    Source::Single | Source::Values(_) => true,
                    Source::System(_) => false,
                    Source::Table(_) => score_of(plan, Vec::new()).is_some_and(|score| score.equal > 0),
                    Source::Rel(source) => is_bounded(source),
                }
        }
        Rel::Join(join) => match &join.method {
            JoinMethod::Hash(_) => looked_up(join).is_some(),
            JoinMethod::Loop(_) => is_bounded(&join.left),
            JoinMethod::Reverse(_) => is_bounded(&join.right),
        },
        Rel::Function(_) | Rel::With(_) => true,
        Rel::Set(set) => is_bounded(&set.left) && is_bounded(&set.right),
        Rel::SetValues(values) => is_bounded(&values.input),
        Rel::Windows(windows) => is_bounded(&windows.input),
    }
}

/// Turns the only aggregate of a table, min or max, into one over the first row of an order, if a path gives it.
fn first_value(plan: &mut SelectPlan) {
    let (Some(aggregation), Source::Table(access)) = (&plan.aggregation, &plan.source) else { return };
    let ([], [call]) = (aggregation.keys.as_slice(), aggregation.calls.as_slice()) else { return };
    let [arg] = call.args.as_slice() else { return };
    let descending = match call.function.name {
        "min" => false,
        "max" => true,
        _ => return,
    };
    if call.filter.is_some() || plan.filter.iter().chain([arg]).any(|expr| expr.is_volatile() || expr.has_subquery()) {
        return;
    }
    let may_be_null =
        !matches!(arg, Expr::Column(at) if access.table.columns.get(*at).is_some_and(|column| column.not_null));
    let not_null = may_be_null.then(|| Expr::IsNull { expr: Box::new(arg.clone()), negated: true });
    let mut conditions = Vec::new();
    plan.filter.iter().cloned().chain(not_null).for_each(|part| conjuncts(part, &mut conditions));
    let filter = conjunction(conditions);
    let wanted = Wanted {
        order: vec![OrderBy { expr: arg.clone(), descending, nulls_first: descending }],
        has_limit: true,
        columns: Vec::new(),
    };
    let choice = access::choose(&access.table, &access.indexes, filter.clone(), &wanted);
    let is_point = matches!(choice.path, AccessPath::Points(_));
    if choice.direction.is_none() || choice.filter.is_some() || is_point {
        return;
    }
    let names = vec![plain(arg, &plan.names)];
    let input = SelectPlan {
        source: std::mem::replace(&mut plan.source, Source::Single),
        filter,
        output: vec![arg.clone()],
        visible: 1,
        sort: vec![SortKey { column: 0, descending, nulls_first: descending }],
        limit: Some(Expr::Const(Datum::Int(1))),
        names: std::mem::replace(&mut plan.names, names),
        ..SelectPlan::single()
    };
    plan.filter = None;
    plan.source = Source::Rel(Box::new(Rel::Query(Box::new(input))));
    let calls = plan.aggregation.iter_mut().flat_map(|aggregation| &mut aggregation.calls);
    calls.for_each(|call| call.args = vec![Expr::Column(0)]);
}
