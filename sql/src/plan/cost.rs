//! The size of a plan's expressions: how much work a row is, and whether the whole plan is too much for one poll.

use super::access::{AccessPath, TableAccess};
use super::conditions::number_of_keys;
use super::node::{Body, Cost, Whole};
use super::rel::{SelectPlan, Source};
use super::visit::visit;
use crate::expr::Expr;

/// The work for a row without values.
const ROW_UNITS: usize = 2;

/// The cost of a plan's body.
pub(super) fn of(whole: &Whole<'_>) -> Cost {
    let body = whole.body;
    let (mut nodes, mut listed) = (0usize, 0usize);
    // The visitor never fails.
    let _ = visit(whole, &mut |expr| {
        let (more, values) = expr.size();
        nodes += more;
        listed += values;
        Ok(())
    });
    // The expressions of the source are evaluated once for all its rows.
    let (source, rows, columns) = match body {
        Body::Select(plan) => of_source(plan),
        Body::Insert(plan) => of_source(&plan.source),
        Body::CreateTableAs(parts) => of_source(&parts.1),
        Body::Update(plan) => of_access(&plan.access),
        Body::Delete(plan) => of_access(&plan.access),
        _ => (0, 0, 0),
    };
    // A row is looked up among listed values, so they do not count for it.
    let row = ROW_UNITS + nodes - source + source.checked_div(rows).unwrap_or(0) + columns;
    Cost { nodes: nodes + listed, row }
}

/// The nodes of a source's expressions, its number of rows if the plan has it, and its columns.
fn of_source(plan: &SelectPlan) -> (usize, usize, usize) {
    match &plan.source {
        Source::Single => (0, 0, 0),
        Source::Values(rows) => (nodes(rows.iter().flatten()), rows.len(), 0),
        Source::Table(table) => of_access(table),
        Source::Rel(_) => (0, 0, 0),
        Source::System(relation) => (0, 0, relation.table.columns.len()),
    }
}

fn of_access(access: &TableAccess) -> (usize, usize, usize) {
    let columns = access.needed.iter().filter(|needed| **needed).count();
    match &access.path {
        AccessPath::Full => (0, 0, columns),
        AccessPath::Points(points) => {
            let keys = number_of_keys(points.len(), points.iter().flatten());
            (nodes(points.iter().flatten()), keys, columns)
        }
        AccessPath::Range { prefix, lower, upper } => {
            let bounds = lower.iter().chain(upper).map(|bound| &bound.value);
            (nodes(prefix.iter().chain(bounds)), 0, columns)
        }
        AccessPath::Index(scan) => {
            let bounds = scan.lower.iter().chain(&scan.upper).map(|bound| &bound.value);
            (nodes(scan.prefixes.iter().flatten().flatten().chain(bounds)), 0, columns)
        }
    }
}

fn nodes<'e>(exprs: impl Iterator<Item = &'e Expr>) -> usize {
    exprs.map(|expr| expr.size().0).sum()
}
