//! Joins: where conditions go.
//!
//! A condition goes down to the node that has all its columns, as far as the kinds of joins allow. An equality between
//! the sides of a join is a key of it. How partners are found is settled later ([`super::settle`]).

use std::sync::Arc;

use super::access::TableAccess;
use super::bound_index::BoundIndex;
use super::conditions::{conjunction, conjuncts};
use super::rel::{Join, JoinKind, JoinMethod, Rel, SelectPlan, Source};
use crate::expr::{CompareOp, Expr};
use crate::system;
use crate::table::Table;

/// A table with its indexes, and its alias if it has one.
type Read = (Arc<Table>, Vec<BoundIndex>, Option<Box<str>>);

/// All columns of a table, as a node. `with_key`: the key of the row follows them.
pub(super) fn table_scan(read: Read, names: Vec<String>, with_key: bool) -> Rel {
    let width = read.0.columns.len() + usize::from(with_key);
    let mut source = source(read);
    if let Source::Table(access) = &mut source {
        access.with_key = with_key;
    }
    Rel::Query(Box::new(SelectPlan::of(source, width, names)))
}

/// The rows of a table, stored or computed.
pub(super) fn source((table, indexes, alias): Read) -> Source {
    match system::of_table(&table) {
        Some(relation) => Source::System(relation),
        None => Source::Table(TableAccess { alias, ..TableAccess::whole(table, indexes) }),
    }
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
    let mut join = Join {
        kind,
        left,
        right,
        left_width,
        right_width,
        method,
        condition: None,
        builds_left: false,
        estimate: None,
    };
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
        if let (JoinMethod::Hash(keys), Expr::Compare { op: CompareOp::Eq, left: a, right: b, .. }) =
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

/// The number of columns of a node's row.
pub(super) fn rel_width(rel: &Rel) -> usize {
    match rel {
        Rel::Query(plan) => plan.visible,
        Rel::Join(join) => join.left_width + join.right_width,
        Rel::Set(set) => rel_width(&set.left),
        Rel::Function(scan) => scan.call.width() + usize::from(scan.ordinality),
        Rel::SetValues(values) => {
            let calls = values.calls.iter().map(super::rel::SetCall::width).sum::<usize>();
            rel_width(&values.input) + calls + usize::from(values.ordinality)
        }
        Rel::Windows(windows) => windows.width + windows.values(),
        Rel::With(scan) => scan.width,
    }
}
