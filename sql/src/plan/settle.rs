//! Access paths and methods of joins, chosen once all conditions are where they go.
//!
//! A query over a table reads it by the path that [`access`] chooses. A join finds its partners as [`join_method`]
//! says.
//!
//! The order that a query sorts by goes down to the table that has its columns, as far as the nodes between keep the
//! order of rows: simple queries, and joins for their left side. If the path there gives the order there is no sort.
//!
//! min and max are the first value of an order. If a path gives it and no row on it is dropped, only one row is read.

use super::access::{self, AccessPath};
use super::conditions::{conjunction, conjuncts};
use super::index_path::{OrderBy, Wanted};
use super::join_method::{self, Side, equality, limit_of, over_source};
use super::joins::rel_width;
use super::known::Known;
use super::rel::{Join, JoinKind, JoinMethod, Rel, SelectPlan, SetCall, SortKey, Source};
use super::show::plain;
use crate::expr::Expr;
use pgtypes::Datum;

/// What is asked of a node beside its rows.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// The order of the rows, over the node's row; empty for any.
    order: Vec<OrderBy>,
    /// Whether the reader may stop before the last row.
    has_limit: bool,
    /// After how many rows it stops, if that is known.
    limit: Option<f64>,
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
        Asked { order, has_limit: self.has_limit, limit: self.limit }
    }

    /// The same of an input that has the first columns.
    fn of_first(&self, width: usize) -> Asked {
        self.of_input(|at| (at < width).then_some(Expr::Column(at)))
    }
}

/// Settles a query: chooses its paths and methods, drops a redundant sort, marks the columns in use.
pub(super) fn settle(plan: &mut SelectPlan, known: &Known) {
    settle_query(plan, &Asked::default(), known);
}

/// Returns whether the rows come in the order that is asked for.
fn settle_query(plan: &mut SelectPlan, asked: &Asked, known: &Known) -> bool {
    first_value(plan, known);
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
        Source::Table(_) => settle_table(plan, needed, &asked, known),
        Source::Rel(rel) => {
            plan.filter.iter().for_each(|filter| filter.mark_columns(&mut needed));
            plan.locked_join.iter().for_each(|join| join.mark_columns(&mut needed));
            settle_rel(rel, &needed, &asked, known)
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
    let limit = if plan.limit.is_some() { limit_of(plan) } else { asked.limit };
    // Grouped rows have no order. DISTINCT ON needs its sort.
    if plan.aggregation.is_some() || !plan.distinct_on.is_empty() {
        return Asked::default();
    }
    if plan.sort.is_empty() {
        // Only simple queries are asked for an order.
        return Asked { has_limit, limit, ..asked.of_input(|at| plan.output.get(at).cloned()) };
    }
    let key = |key: &SortKey| {
        let expr = plan.output.get(key.column)?.clone();
        Some(OrderBy { expr, descending: key.descending, nulls_first: key.nulls_first })
    };
    let order = plan.sort.iter().map(key).collect::<Option<Vec<OrderBy>>>().unwrap_or_default();
    Asked { order, has_limit, limit }
}

/// `needed`: the columns that are read apart from those of the filter.
fn settle_table(plan: &mut SelectPlan, mut needed: Vec<bool>, asked: &Asked, known: &Known) -> bool {
    let mut columns = needed.clone();
    plan.filter.iter().for_each(|filter| filter.mark_columns(&mut columns));
    let is_locked = plan.lock.is_some();
    let wanted = Wanted {
        order: asked.order.clone(),
        has_limit: asked.has_limit,
        limit: asked.limit,
        columns: if is_locked { Vec::new() } else { columns },
    };
    let Source::Table(access) = &mut plan.source else { return false };
    let indexes = std::mem::take(&mut access.indexes);
    let choice = access::choose((&access.table, &indexes), plan.filter.take(), &wanted, known);
    plan.filter = choice.filter;
    access.path = choice.path;
    access.reverse = choice.direction.unwrap_or(false);
    access.estimate = choice.estimate.map(|estimate| estimate.rows);
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
fn settle_rel(rel: &mut Rel, used: &[bool], asked: &Asked, known: &Known) -> bool {
    match rel {
        Rel::Query(plan) => {
            if !plan.is_simple() {
                settle_query(plan, &Asked::default(), known);
                return false;
            }
            for (output, used) in plan.output.iter_mut().zip(used) {
                if !used && !output.is_volatile() {
                    *output = Expr::Const(Datum::Null);
                }
            }
            settle_query(plan, asked, known)
        }
        Rel::Join(join) => settle_join(join, used, asked, known),
        Rel::Set(set) => {
            // Whole rows are compared.
            let width = used.len();
            settle_rel(&mut set.left, &vec![true; width], &Asked::default(), known);
            settle_rel(&mut set.right, &vec![true; width], &Asked::default(), known);
            false
        }
        Rel::SetValues(values) => {
            let calls = values.calls.iter().map(SetCall::width).sum::<usize>();
            let width = used.len().saturating_sub(calls + usize::from(values.ordinality));
            let mut needed = used.get(..width).unwrap_or_default().to_vec();
            for call in &values.calls {
                call.args().iter().for_each(|arg| arg.mark_columns(&mut needed));
            }
            settle_rel(&mut values.input, &needed, &asked.of_first(width), known)
        }
        Rel::Windows(windows) => {
            let mut needed = used.get(..windows.width).unwrap_or(used).to_vec();
            windows.mark_columns(&mut needed);
            settle_rel(&mut windows.input, &needed, &Asked::default(), known);
            false
        }
        Rel::Function(_) | Rel::With(_) => false,
    }
}

fn settle_join(join: &mut Join, used: &[bool], asked: &Asked, known: &Known) -> bool {
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
    let choice = join_method::choose(join, known);
    join.estimate = choice.rows;
    join.builds_left = choice.builds_left;
    match choice.looked_up {
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
    let keeps_order = matches!(join.kind, JoinKind::Inner | JoinKind::Left)
        && !matches!(join.method, JoinMethod::Reverse(_))
        && !join.builds_left;
    let of_left = if keeps_order { asked.of_first(join.left_width) } else { Asked::default() };
    let gives_order = settle_rel(&mut join.left, left, &of_left, known);
    settle_rel(&mut join.right, right, &Asked::default(), known);
    gives_order && !of_left.order.is_empty()
}

fn keys_of(method: &mut JoinMethod) -> Vec<(Expr, Expr)> {
    match method {
        JoinMethod::Hash(keys) => std::mem::take(keys),
        JoinMethod::Loop(_) | JoinMethod::Reverse(_) => Vec::new(),
    }
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

/// Turns the only aggregate of a table, min or max, into one over the first row of an order, if a path gives it.
fn first_value(plan: &mut SelectPlan, known: &Known) {
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
        limit: Some(1.0),
        columns: Vec::new(),
    };
    let choice = access::choose((&access.table, &access.indexes), filter.clone(), &wanted, known);
    let is_point = matches!(choice.path, AccessPath::Points(_));
    if choice.direction.is_none() || choice.filter.is_some() || is_point {
        return;
    }
    let names = vec![plain(arg, &plan.source_names())];
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
