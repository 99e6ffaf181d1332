//! Visits all expressions of a plan, in the order in which PostgreSQL simplifies them.
//!
//! Guarantees: every expression of the plan is visited once, but for the sub-queries inside expressions, which are the
//! plan's own list. A visit ends at the visitor's first error.

use super::access::TableAccess;
use super::node::{Body, Conflict, Whole, WithBody, WithQuery};
use super::rel::{JoinMethod, Rel, SelectPlan, SetCall, Source};
use crate::error::SqlError;
use crate::expr::{Expr, are_identical};
use pgtypes::Datum;

/// A function over the expressions of a plan.
pub(super) type Visitor<'v> = dyn FnMut(&Expr) -> Result<(), SqlError> + 'v;

/// Passes all expressions of a statement to `visitor`, up to its first error.
pub(super) fn visit(whole: &Whole<'_>, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    whole.with.iter().try_for_each(|with| visit_with(with, visitor))?;
    visit_body(whole.body, visitor)?;
    whole.subplans.iter().try_for_each(|subplan| visit_select(&subplan.plan, visitor))
}

pub(super) fn visit_with(with: &WithQuery, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    match &with.body {
        WithBody::Query(plan) => visit_select(plan, visitor),
        WithBody::Change(body) => visit_body(body, visitor),
        WithBody::Recursive { first, step, .. } => {
            visit_select(first, visitor)?;
            visit_select(step, visitor)
        }
    }
}

pub(super) fn visit_body(body: &Body, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    if let Some(query) = query_of(body) {
        visit_select(query, visitor)?;
    }
    visit_own_of_body(body, visitor)
}

/// The query that a statement reads.
pub(super) fn query_of(body: &Body) -> Option<&SelectPlan> {
    match body {
        Body::Select(plan) => Some(plan),
        Body::Insert(plan) => Some(&plan.source),
        Body::Update(plan) => plan.joined.as_ref().map(|joined| &joined.source),
        Body::Delete(plan) => plan.joined.as_ref().map(|joined| &joined.source),
        Body::CreateTableAs(parts) => Some(&parts.1),
        _ => None,
    }
}

/// Passes the expressions of a statement to `visitor`, without those of the query that it reads.
pub(super) fn visit_own_of_body(body: &Body, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    match body {
        Body::Insert(plan) => {
            plan.columns.iter().flatten().try_for_each(&mut *visitor)?;
            if let Conflict::DoUpdate { assignments, filter, .. } = &*plan.conflict {
                assignments.iter().map(|(_, expr)| expr).chain(filter).try_for_each(&mut *visitor)?;
            }
            plan.returning.iter().flatten().try_for_each(visitor)
        }
        Body::Update(plan) => {
            visit_access(&plan.access, visitor)?;
            let condition = plan.joined.iter().flat_map(|joined| &joined.condition);
            condition.chain(&plan.filter).try_for_each(&mut *visitor)?;
            plan.assignments.iter().map(|(_, expr)| expr).try_for_each(&mut *visitor)?;
            plan.returning.iter().flatten().try_for_each(visitor)
        }
        Body::Delete(plan) => {
            visit_access(&plan.access, visitor)?;
            let condition = plan.joined.iter().flat_map(|joined| &joined.condition);
            condition.chain(&plan.filter).chain(plan.returning.iter().flatten()).try_for_each(visitor)
        }
        Body::CopyFrom(plan) => {
            let defaults = plan.defaults.iter().map(|(_, expr)| expr);
            defaults.chain(&plan.filter).try_for_each(visitor)
        }
        Body::AlterTables(_, changes) => {
            changes.iter().flat_map(|change| change.row.iter().flatten()).try_for_each(visitor)
        }
        Body::Select(_)
        | Body::CreateTableAs(_)
        | Body::CreateTable(_)
        | Body::Comment(..)
        | Body::CreateObject(..)
        | Body::AlterObject(..)
        | Body::AlterObjects(..)
        | Body::Drop(..)
        | Body::Truncate(..)
        | Body::Analyze(..)
        | Body::Nothing(_)
        | Body::Explain(_) => Ok(()),
    }
}

pub(super) fn visit_select(plan: &SelectPlan, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    visit_own(plan, visitor)?;
    match &plan.source {
        Source::Rel(rel) => visit_rel(rel, visitor),
        _ => Ok(()),
    }
}

/// Passes the expressions of a query to `visitor`, without those of the node that it reads.
pub(super) fn visit_own(plan: &SelectPlan, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    if let Some(aggregation) = &plan.aggregation {
        aggregation
            .calls
            .iter()
            .flat_map(|call| call.inputs().chain(call.direct.iter().map(|(expr, _)| expr)))
            .try_for_each(&mut *visitor)?;
    }
    plan.output.iter().try_for_each(&mut *visitor)?;
    // A key that is not in the list stands at its end.
    let (keys, having) = plan.aggregation.as_ref().map(|found| (&found.keys, &found.having)).unzip();
    keys.into_iter().flatten().chain(&plan.filter).try_for_each(&mut *visitor)?;
    having.into_iter().flatten().chain(&plan.offset).chain(&plan.limit).try_for_each(&mut *visitor)?;
    match &plan.source {
        Source::Single | Source::System(_) | Source::Rel(_) => Ok(()),
        Source::Values(rows) => rows.iter().flatten().try_for_each(visitor),
        Source::Table(access) => visit_access(access, visitor),
    }
}

fn visit_rel(rel: &Rel, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    match rel {
        Rel::Query(plan) => return visit_select(plan, visitor),
        Rel::Join(join) => {
            visit_rel(&join.left, visitor)?;
            visit_rel(&join.right, visitor)?;
        }
        Rel::Set(set) => {
            visit_rel(&set.left, visitor)?;
            visit_rel(&set.right, visitor)?;
        }
        Rel::SetValues(values) => visit_rel(&values.input, visitor)?,
        Rel::Windows(windows) => visit_rel(&windows.input, visitor)?,
        Rel::Function(_) | Rel::With(_) => {}
    }
    visit_own_of_rel(rel, visitor)
}

/// Passes the expressions of a node to `visitor`, without those of the nodes that it reads.
pub(super) fn visit_own_of_rel(rel: &Rel, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    match rel {
        Rel::Join(join) => {
            match &join.method {
                JoinMethod::Hash(keys) => keys.iter().flat_map(|(l, r)| [l, r]).try_for_each(&mut *visitor)?,
                JoinMethod::Loop(args) | JoinMethod::Reverse(args) => args.iter().try_for_each(&mut *visitor)?,
            }
            join.condition.iter().try_for_each(visitor)
        }
        Rel::Function(scan) => scan.call.args().iter().try_for_each(visitor),
        Rel::SetValues(values) => values.calls.iter().flat_map(SetCall::args).try_for_each(visitor),
        Rel::Windows(windows) => windows.offsets().try_for_each(visitor),
        Rel::Query(_) | Rel::Set(_) | Rel::With(_) => Ok(()),
    }
}

/// Whether two sub-queries are one: each has the rows of the other. A volatile one is the same as no other.
pub(super) fn is_same_query(left: &SelectPlan, right: &SelectPlan) -> bool {
    // What differs most often comes first.
    let is_equal = left.filter == right.filter && left.output == right.output && left == right;
    is_equal && !is_volatile(left) && are_identical(&constants(left), &constants(right))
}

fn constants(plan: &SelectPlan) -> Vec<Datum> {
    let mut constants = Vec::new();
    // The visitor never fails.
    let _ = visit_select(plan, &mut |expr| {
        expr.collect_constants(&mut constants);
        Ok(())
    });
    constants
}

fn is_volatile(plan: &SelectPlan) -> bool {
    let mut found = matches!(&plan.source, Source::Rel(rel) if calls_volatile(rel));
    // The visitor never fails.
    let _ = visit_select(plan, &mut |expr| {
        found |= expr.is_volatile();
        Ok(())
    });
    found
}

/// Whether a function in FROM may give other rows each time.
fn calls_volatile(rel: &Rel) -> bool {
    match rel {
        Rel::Query(plan) => matches!(&plan.source, Source::Rel(rel) if calls_volatile(rel)),
        Rel::Join(join) => calls_volatile(&join.left) || calls_volatile(&join.right),
        Rel::Set(set) => calls_volatile(&set.left) || calls_volatile(&set.right),
        Rel::Function(scan) => scan.call.is_volatile(),
        Rel::SetValues(values) => values.calls.iter().any(SetCall::is_volatile) || calls_volatile(&values.input),
        Rel::Windows(windows) => calls_volatile(&windows.input),
        Rel::With(_) => false,
    }
}

fn visit_access(access: &TableAccess, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    access.path.exprs().into_iter().try_for_each(visitor)
}
