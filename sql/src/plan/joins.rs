//! Joins: where conditions go, and how partners are found.
//!
//! A condition goes down to the node that has all its columns, as far as the kinds of joins allow. An equality between
//! the sides of a join is a key of it. A join whose right side is a table that the keys give the whole primary key of,
//! and whose left side has few rows by its own key conditions, looks the rows up one by one.

use std::sync::Arc;

use super::access::{self, AccessPath, TableAccess};

use super::rel::{Join, JoinKind, JoinMethod, Rel, SelectPlan, Source};
use crate::expr::{CompareOp, Expr};
use crate::system;
use crate::table::Table;
use pgtypes::Datum;

/// The parts of a conjunction.
pub(super) fn conjuncts(condition: Expr, out: &mut Vec<Expr>) {
    match condition {
        Expr::And(items) => items.into_iter().for_each(|item| conjuncts(item, out)),
        Expr::Const(Datum::Bool(true)) => {}
        other => out.push(other),
    }
}

/// A conjunction; `None` without parts.
pub(super) fn conjunction(mut parts: Vec<Expr>) -> Option<Expr> {
    if parts.len() > 1 { Some(Expr::And(parts)) } else { parts.pop() }
}

/// All columns of a table, as a node.
pub(super) fn table_scan(table: Arc<Table>, names: Vec<String>) -> Rel {
    let width = table.columns.len();
    Rel::Query(Box::new(SelectPlan::of(source(table), width, names)))
}

/// The rows of a table, stored or computed.
pub(super) fn source(table: Arc<Table>) -> Source {
    if let Some(relation) = system::of_table(&table) {
        return Source::System(relation);
    }
    let needed = vec![true; table.columns.len()];
    Source::Table(TableAccess { table, path: AccessPath::Full, reverse: false, needed })
}

/// Which sides of a join a condition reads.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sides {
    left: bool,
    right: bool,
}

fn sides(expr: &Expr, left_width: usize) -> Sides {
    let reads = |test: &dyn Fn(usize) -> bool| expr.any(&|part| matches!(part, Expr::Column(at) if test(*at)));
    Sides { left: reads(&|at| at < left_width), right: reads(&|at| at >= left_width) }
}

fn shifted(mut expr: Expr, left_width: usize) -> Expr {
    expr.replace_with(&mut |part| match part {
        Expr::Column(at) => Some(Expr::Column(at.saturating_sub(left_width))),
        _ => None,
    });
    expr
}

/// A join with the conditions of its ON.
pub(super) fn join(
    kind: JoinKind,
    (left, left_width): (Rel, usize),
    (right, right_width): (Rel, usize),
    conditions: Vec<Expr>,
    lateral: Option<Vec<Expr>>,
) -> Join {
    let method = lateral.map_or_else(|| JoinMethod::Hash(Vec::new()), JoinMethod::Loop);
    let mut join = Join { kind, left, right, left_width, right_width, method, condition: None };
    for condition in conditions {
        join.add_on(condition);
    }
    join
}

impl Join {
    /// Adds a condition of ON.
    fn add_on(&mut self, condition: Expr) {
        let found = sides(&condition, self.left_width);
        let may_move = !condition.is_volatile();
        match (self.kind, found) {
            (JoinKind::Inner | JoinKind::Right, Sides { left: true, right: false }) if may_move => {
                let rest = push(&mut self.left, vec![condition]);
                rest.into_iter().for_each(|part| self.add_condition(part));
            }
            (JoinKind::Inner | JoinKind::Left, Sides { left: false, right: true }) if self.takes_right(&condition) => {
                let rest = push(&mut self.right, vec![shifted(condition, self.left_width)]);
                let width = self.left_width;
                for mut part in rest {
                    part.shift_columns(width);
                    self.add_condition(part);
                }
            }
            _ => self.add_key_or_condition(condition),
        }
    }

    /// Whether the right side takes a condition: a lateral one has other outer values.
    fn takes_right(&self, condition: &Expr) -> bool {
        let has_outer = || condition.any(&|part| matches!(part, Expr::Outer(_) | Expr::Subquery(_)));
        !condition.is_volatile() && (matches!(self.method, JoinMethod::Hash(_)) || !has_outer())
    }

    fn add_key_or_condition(&mut self, condition: Expr) {
        if let (JoinMethod::Hash(keys), Expr::Compare { op: CompareOp::Eq, left: a, right: b }) =
            (&mut self.method, &condition)
            && !condition.is_volatile()
            && !condition.has_subquery()
        {
            let left = Sides { left: true, right: false };
            let right = Sides { left: false, right: true };
            let width = self.left_width;
            match (sides(a, width), sides(b, width)) {
                (x, y) if x == left && y == right => {
                    return keys.push(((**a).clone(), shifted((**b).clone(), width)));
                }
                (x, y) if x == right && y == left => {
                    return keys.push(((**b).clone(), shifted((**a).clone(), width)));
                }
                _ => {}
            }
        }
        self.add_condition(condition);
    }

    fn add_condition(&mut self, condition: Expr) {
        let mut parts = Vec::new();
        self.condition.take().into_iter().chain([condition]).for_each(|part| conjuncts(part, &mut parts));
        self.condition = conjunction(parts);
    }
}

/// Moves conditions over the row of a node into it. Returns those that it does not take.
pub(super) fn push(rel: &mut Rel, conditions: Vec<Expr>) -> Vec<Expr> {
    match rel {
        Rel::Query(plan) => push_into_query(plan, conditions),
        Rel::Join(join) => conditions.into_iter().filter_map(|condition| push_into_join(join, condition)).collect(),
        _ => conditions,
    }
}

fn push_into_query(plan: &mut SelectPlan, conditions: Vec<Expr>) -> Vec<Expr> {
    if !plan.is_simple() {
        return conditions;
    }
    let movable = |expr: &Expr| !expr.is_volatile() && !expr.has_subquery();
    let mut rest = Vec::new();
    for mut condition in conditions {
        let reads = |at: usize| condition.any(&|part| matches!(part, Expr::Column(place) if *place == at));
        let is_movable = plan.output.iter().enumerate().all(|(at, output)| movable(output) || !reads(at));
        if !is_movable || condition.is_volatile() {
            rest.push(condition);
            continue;
        }
        condition.replace_with(&mut |part| match part {
            Expr::Column(at) => plan.output.get(*at).cloned(),
            _ => None,
        });
        plan.add_filter(condition);
    }
    // What the source takes goes further down.
    if let Source::Rel(source) = &mut plan.source
        && let Some(filter) = plan.filter.take()
    {
        let mut parts = Vec::new();
        conjuncts(filter, &mut parts);
        plan.filter = conjunction(push(source, parts));
    }
    rest
}

/// Moves a condition of WHERE into a join.
fn push_into_join(join: &mut Join, condition: Expr) -> Option<Expr> {
    if condition.is_volatile() {
        return Some(condition);
    }
    match (join.kind, sides(&condition, join.left_width)) {
        // An inner join does not tell WHERE from ON.
        (JoinKind::Inner, _) => {
            join.add_on(condition);
            None
        }
        (JoinKind::Left, Sides { left: true, right: false }) => push(&mut join.left, vec![condition]).pop(),
        (JoinKind::Right, Sides { left: false, right: true }) if join.takes_right(&condition) => {
            let rest = push(&mut join.right, vec![shifted(condition, join.left_width)]).pop();
            rest.map(|mut rest| {
                rest.shift_columns(join.left_width);
                rest
            })
        }
        _ => Some(condition),
    }
}

/// Whether a node has few rows, as far as its keys tell.
fn is_bounded(rel: &Rel) -> bool {
    match rel {
        Rel::Query(plan) => {
            plan.limit.is_some()
                || match &plan.source {
                    Source::Single | Source::Values(_) => true,
                    Source::System(_) => false,
                    Source::Table(access) => match &access.path {
                        AccessPath::Points(_) => true,
                        AccessPath::Range { prefix, .. } => !prefix.is_empty(),
                        _ => false,
                    },
                    Source::Rel(source) => is_bounded(source),
                }
        }
        Rel::Join(join) => is_bounded(&join.left) && matches!(join.method, JoinMethod::Loop(_)),
        Rel::Function(_) | Rel::With(_) => true,
        Rel::Set(set) => is_bounded(&set.left) && is_bounded(&set.right),
        Rel::SetValues(values) => is_bounded(&values.input),
    }
}

/// Chooses access paths and methods, once all conditions are where they go. `used`: the columns that are read of the
/// node.
pub(super) fn settle(rel: &mut Rel, used: &[bool]) {
    match rel {
        Rel::Query(plan) => settle_query(plan, used),
        Rel::Join(join) => settle_join(join, used),
        Rel::Set(set) => {
            // Whole rows are compared.
            let width = used.len();
            settle(&mut set.left, &vec![true; width]);
            settle(&mut set.right, &vec![true; width]);
        }
        Rel::SetValues(values) => {
            let width = used.len().saturating_sub(values.calls.iter().map(super::rel::SetCall::width).sum());
            let mut needed = used.get(..width).unwrap_or_default().to_vec();
            for call in &values.calls {
                call.args().iter().for_each(|arg| arg.mark_columns(&mut needed));
            }
            settle(&mut values.input, &needed);
        }
        Rel::Function(_) | Rel::With(_) => {}
    }
}

fn settle_query(plan: &mut SelectPlan, used: &[bool]) {
    if plan.is_simple() {
        for (output, used) in plan.output.iter_mut().zip(used) {
            if !used && !output.is_volatile() {
                *output = Expr::Const(Datum::Null);
            }
        }
    }
    attach(plan);
}

fn settle_join(join: &mut Join, used: &[bool]) {
    let mut needed = used.to_vec();
    join.condition.iter().for_each(|condition| condition.mark_columns(&mut needed));
    let (left, right) = needed.split_at_mut(join.left_width.min(used.len()));
    match &join.method {
        JoinMethod::Hash(keys) => keys.iter().for_each(|(l, r)| {
            l.mark_columns(left);
            r.mark_columns(right);
        }),
        JoinMethod::Loop(args) => args.iter().for_each(|arg| arg.mark_columns(left)),
    }
    settle(&mut join.left, left);
    look_up(join);
    settle(&mut join.right, right);
}

/// Turns a join into look-ups by the primary key of its right side, where that is better.
fn look_up(join: &mut Join) {
    let (JoinMethod::Hash(keys), Rel::Query(right)) = (&join.method, &mut join.right) else { return };
    let Source::Table(access) = &right.source else { return };
    let is_whole = right.output.iter().enumerate().all(|(at, expr)| *expr == Expr::Column(at));
    let given = |column: &usize| keys.iter().any(|(_, r)| *r == Expr::Column(*column));
    let has_key = !access.table.primary_key.is_empty() && access.table.primary_key.iter().all(given);
    if !matches!(join.kind, JoinKind::Inner | JoinKind::Left) || !is_whole || !has_key || !is_bounded(&join.left) {
        return;
    }
    let mut args: Vec<Expr> = Vec::new();
    // What the right side has of the query around it passes through the join.
    if let Some(filter) = &mut right.filter {
        filter.replace_with(&mut |part| match part {
            Expr::Outer(_) => {
                args.push(part.clone());
                Some(Expr::Outer(args.len() - 1))
            }
            _ => None,
        });
    }
    for (left, column) in keys {
        args.push(left.clone());
        let value = Box::new(Expr::Outer(args.len() - 1));
        right.add_filter(Expr::Compare { op: CompareOp::Eq, left: Box::new(column.clone()), right: value });
    }
    join.method = JoinMethod::Loop(args);
}

/// Chooses the access path of a query over a table, drops a redundant sort, marks the columns in use. Of other sources,
/// settles the nodes.
pub(super) fn attach(plan: &mut SelectPlan) {
    let width = match &plan.source {
        Source::Single | Source::Values(_) | Source::System(_) => return,
        Source::Table(access) => access.table.columns.len(),
        Source::Rel(rel) => rel_width(rel),
    };
    if let Source::Table(access) = &mut plan.source {
        let (path, filter) = access::choose(&access.table, plan.filter.take());
        plan.filter = filter;
        access.path = path;
        if plan.aggregation.is_none() && plan.distinct_on.is_empty() {
            let key = |key: &super::rel::SortKey| match plan.output.get(key.column) {
                // Key columns are never NULL, so the place of NULLs does not matter.
                Some(Expr::Column(column)) => Some((*column, key.descending)),
                _ => None,
            };
            let order: Option<Vec<(usize, bool)>> = plan.sort.iter().map(key).collect();
            let direction = order.and_then(|order| access::gives_order(&access.table, &access.path, &order));
            if let Some(direction) = direction {
                plan.sort.clear();
                access.reverse = direction;
            }
        }
    }
    let mut needed = vec![false; width];
    plan.filter.iter().for_each(|filter| filter.mark_columns(&mut needed));
    match &plan.aggregation {
        Some(aggregation) => {
            aggregation.keys.iter().for_each(|key| key.mark_columns(&mut needed));
            aggregation.calls.iter().flat_map(|call| call.inputs()).for_each(|expr| expr.mark_columns(&mut needed));
        }
        None => plan.output.iter().for_each(|expr| expr.mark_columns(&mut needed)),
    }
    match &mut plan.source {
        Source::Table(access) => access.needed = needed,
        Source::Rel(rel) => settle(rel, &needed),
        Source::Single | Source::Values(_) | Source::System(_) => {}
    }
}

/// The number of columns of a node's row.
pub(super) fn rel_width(rel: &Rel) -> usize {
    match rel {
        Rel::Query(plan) => plan.visible,
        Rel::Join(join) => join.left_width + join.right_width,
        Rel::Set(set) => rel_width(&set.left),
        Rel::Function(scan) => scan.call.width() + usize::from(scan.ordinality),
        Rel::SetValues(values) => {
            rel_width(&values.input) + values.calls.iter().map(super::rel::SetCall::width).sum::<usize>()
        }
        Rel::With(scan) => scan.width,
    }
}
