//! Queries for plain columns of one row, given by its whole primary key. The executor reads such a row in one call and
//! writes it to the client without building it in between.

use super::access::{AccessPath, POINT_COLUMNS, PointPlan};
use super::node::{Body, SelectPlan, Source};
use crate::expr::Expr;
use crate::table::Table;
use crate::types::SqlType;

/// The plan of a statement, if it is such a query.
pub(super) fn point_plan(body: &Body) -> Option<PointPlan> {
    let Body::Select(select) = body else { return None };
    let Source::Table(access) = &select.source else { return None };
    let AccessPath::Points(points) = &access.path else { return None };
    let is_plain = points.len() == 1
        && select.filter.is_none()
        && select.aggregation.is_none()
        && select.visible == select.output.len()
        && select.output.len() <= POINT_COLUMNS
        && select.sort.is_empty()
        && select.limit.is_none()
        && select.offset.is_none()
        && !select.lock;
    if is_plain { columns(select, &access.table) } else { None }
}

fn columns(select: &SelectPlan, table: &Table) -> Option<PointPlan> {
    let width = select.output.len();
    let mut plan = PointPlan { stored: vec![None; table.columns.len()], from_key: Vec::new(), width };
    for (place, expr) in select.output.iter().enumerate() {
        let Expr::Column(at) = expr else { return None };
        match table.primary_key.iter().position(|column| column == at) {
            // The key of a float does not tell -0 from 0.
            Some(_) if table.columns.get(*at)?.ty == SqlType::Float8 => return None,
            Some(in_key) => plan.from_key.push((place, in_key)),
            None => {
                let stored = plan.stored.get_mut(*at)?;
                if stored.replace(place).is_some() {
                    return None;
                }
            }
        }
    }
    Some(plan)
}
