//! The depth of a plan, which bounds the stack that its execution takes.
//!
//! The executor polls a node inside the node that reads it, a sub-query inside the query around it, and a query of WITH
//! inside the first that reads it. Each level is a frame of some kilobytes on the thread of the session. The parser's
//! limits bound one text. Views and chains of WITH multiply them, so the plan itself is measured: 54001 beyond
//! [`MAX_DEPTH`], which the stacks of [`crate::deep_stack::STACK_BYTES`] have room for.

use super::node::{Body, Whole, WithBody};
use super::rel::{Rel, SelectPlan, Source};
use super::visit::{query_of, visit_own, visit_own_of_body, visit_own_of_rel};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;

/// Levels of the deepest plan that runs. A level takes up to 50 KB without optimisation.
const MAX_DEPTH: usize = 1000;

/// 54001 for a plan that is too deep to run.
pub(super) fn check(whole: &Whole<'_>) -> Result<(), SqlError> {
    let (subplans, with) = (vec![None; whole.subplans.len()], vec![None; whole.with.len()]);
    let mut depths = Depths { whole, subplans, with };
    for query in whole.with {
        if let WithBody::Change(body) = &query.body {
            depths.body(body)?;
        }
    }
    depths.body(whole.body)
}

/// The depths of sub-queries and queries of WITH, as far as they are known.
struct Depths<'p> {
    whole: &'p Whole<'p>,
    subplans: Vec<Option<usize>>,
    with: Vec<Option<usize>>,
}

impl Depths<'_> {
    fn body(&mut self, body: &Body) -> Result<(), SqlError> {
        if let Some(query) = query_of(body) {
            self.select(query, MAX_DEPTH)?;
        }
        if self.whole.subplans.is_empty() {
            return Ok(());
        }
        let mut found = Vec::new();
        visit_own_of_body(body, &mut |expr| found_in(expr, &mut found))?;
        self.subqueries(&found, MAX_DEPTH).map(|_| ())
    }

    /// The levels of a query, of which there may be `left`.
    fn select(&mut self, plan: &SelectPlan, left: usize) -> Result<usize, SqlError> {
        let left = left.checked_sub(1).ok_or_else(too_deep)?;
        let mut below = 0;
        if !self.whole.subplans.is_empty() {
            let mut found = Vec::new();
            visit_own(plan, &mut |expr| found_in(expr, &mut found))?;
            below = self.subqueries(&found, left)?;
        }
        if let Source::Rel(rel) = &plan.source {
            below = below.max(self.rel(rel, left)?);
        }
        Ok(below + 1)
    }

    fn rel(&mut self, rel: &Rel, left: usize) -> Result<usize, SqlError> {
        let left = left.checked_sub(1).ok_or_else(too_deep)?;
        let mut below = match rel {
            Rel::Query(plan) => self.select(plan, left)?,
            Rel::Join(join) => self.rel(&join.left, left)?.max(self.rel(&join.right, left)?),
            Rel::Set(set) => self.rel(&set.left, left)?.max(self.rel(&set.right, left)?),
            Rel::SetValues(values) => self.rel(&values.input, left)?,
            Rel::Windows(windows) => self.rel(&windows.input, left)?,
            Rel::Function(_) => 0,
            // The rows of the step before are there.
            Rel::With(scan) if scan.is_recursion => 0,
            Rel::With(scan) => self.with(scan.query, left)?,
        };
        if !self.whole.subplans.is_empty() {
            let mut found = Vec::new();
            visit_own_of_rel(rel, &mut |expr| found_in(expr, &mut found))?;
            below = below.max(self.subqueries(&found, left)?);
        }
        Ok(below + 1)
    }

    /// The levels of the deepest of these sub-queries.
    fn subqueries(&mut self, found: &[usize], left: usize) -> Result<usize, SqlError> {
        let mut deepest = 0;
        for at in found {
            let Some(subplan) = self.whole.subplans.get(*at) else { continue };
            let depth = match self.subplans[*at] {
                Some(depth) => depth,
                None => self.select(&subplan.plan, left)?,
            };
            self.subplans[*at] = Some(depth);
            deepest = deepest.max(depth);
        }
        if deepest > left { Err(too_deep()) } else { Ok(deepest) }
    }

    /// The levels of a query of WITH.
    fn with(&mut self, at: usize, left: usize) -> Result<usize, SqlError> {
        let Some(query) = self.whole.with.get(at) else { return Ok(0) };
        let depth = match (self.with[at], &query.body) {
            (Some(depth), _) => depth,
            (None, WithBody::Query(plan)) => self.select(plan, left)?,
            (None, WithBody::Recursive { first, step, .. }) => self.select(first, left)?.max(self.select(step, left)?),
            // It has run before.
            (None, WithBody::Change(_)) => 0,
        };
        self.with[at] = Some(depth);
        if depth > left { Err(too_deep()) } else { Ok(depth) }
    }
}

/// Adds the sub-queries of an expression.
fn found_in(expr: &Expr, found: &mut Vec<usize>) -> Result<(), SqlError> {
    if let Expr::Subquery(subquery) = expr {
        found.push(subquery.plan);
    }
    expr.children().into_iter().try_for_each(|child| found_in(child, found))
}

fn too_deep() -> SqlError {
    let message = format!("a statement that nests its queries more than {MAX_DEPTH} levels deep");
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
        .hint("Views, queries of WITH that read one another and UNION count too.")
}
