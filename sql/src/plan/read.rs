//! What a statement reads of what it has: its queries of WITH, and its sub-queries.

use std::collections::BTreeSet;

use super::node::{Body, Whole, WithBody};
use super::rel::{Rel, SelectPlan, Source};
use super::visit::{Visitor, query_of, visit, visit_body, visit_select, visit_with};
use crate::error::SqlError;
use crate::expr::Expr;

/// The places of the queries that a statement reads.
#[derive(Default)]
pub(super) struct Read {
    /// Those of WITH. Those that change rows always run.
    pub(super) with: BTreeSet<usize>,
    /// Those of expressions.
    pub(super) subplans: BTreeSet<usize>,
    /// Those that have not been looked at.
    waiting: Vec<Part>,
}

enum Part {
    With(usize),
    Subplan(usize),
}

impl Read {
    /// What a statement reads.
    pub(super) fn of(whole: &Whole<'_>) -> Read {
        let mut read = Read::default();
        read.note_body(whole.body);
        for (at, query) in whole.with.iter().enumerate() {
            if matches!(query.body, WithBody::Change(_)) {
                read.note_with(at);
            }
        }
        while let Some(part) = read.waiting.pop() {
            match part {
                Part::With(at) => {
                    let Some(query) = whole.with.get(at) else { continue };
                    read.note_all(|note| visit_with(query, note));
                    match &query.body {
                        WithBody::Query(plan) => read.note_scans(plan),
                        WithBody::Change(body) => query_of(body).into_iter().for_each(|plan| read.note_scans(plan)),
                        WithBody::Recursive { first, step, .. } => {
                            read.note_scans(first);
                            read.note_scans(step);
                        }
                    }
                }
                Part::Subplan(at) => {
                    let Some(subplan) = whole.subplans.get(at) else { continue };
                    read.note_all(|note| visit_select(&subplan.plan, note));
                    read.note_scans(&subplan.plan);
                }
            }
        }
        read
    }

    fn note_body(&mut self, body: &Body) {
        self.note_all(|note| visit_body(body, note));
        query_of(body).into_iter().for_each(|plan| self.note_scans(plan));
    }

    /// Notes the sub-queries of all expressions that a visit passes.
    fn note_all(&mut self, visit: impl FnOnce(&mut dyn FnMut(&Expr) -> Result<(), SqlError>) -> Result<(), SqlError>) {
        let visited = visit(&mut |expr| {
            self.note(expr);
            Ok(())
        });
        debug_assert!(visited.is_ok(), "the visitor does not fail");
    }

    fn note(&mut self, expr: &Expr) {
        if let Expr::Subquery(subquery) = expr
            && self.subplans.insert(subquery.plan)
        {
            self.waiting.push(Part::Subplan(subquery.plan));
        }
        expr.children().into_iter().for_each(|child| self.note(child));
    }

    fn note_with(&mut self, at: usize) {
        if self.with.insert(at) {
            self.waiting.push(Part::With(at));
        }
    }

    /// Notes the queries of WITH that a query reads.
    fn note_scans(&mut self, plan: &SelectPlan) {
        if let Source::Rel(rel) = &plan.source {
            self.note_rel(rel);
        }
    }

    fn note_rel(&mut self, rel: &Rel) {
        match rel {
            Rel::Query(plan) => self.note_scans(plan),
            Rel::Join(join) => [&join.left, &join.right].into_iter().for_each(|side| self.note_rel(side)),
            Rel::Set(set) => [&set.left, &set.right].into_iter().for_each(|side| self.note_rel(side)),
            Rel::SetValues(values) => self.note_rel(&values.input),
            Rel::Windows(windows) => self.note_rel(&windows.input),
            Rel::With(scan) => self.note_with(scan.query),
            Rel::Function(_) => {}
        }
    }
}

/// Passes the expressions of a statement to `visitor`, without those of queries of WITH that nothing reads: PostgreSQL
/// does not plan them.
pub(super) fn visit_read(whole: &Whole<'_>, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    if whole.with.is_empty() {
        return visit(whole, visitor);
    }
    let Read { with, subplans, .. } = Read::of(whole);
    let queries = whole.with.iter().enumerate().filter(|(at, _)| with.contains(at));
    queries.map(|(_, query)| query).try_for_each(|query| visit_with(query, visitor))?;
    visit_body(whole.body, visitor)?;
    let inner = whole.subplans.iter().enumerate().filter(|(at, _)| subplans.contains(at));
    inner.map(|(_, subplan)| subplan).try_for_each(|subplan| visit_select(&subplan.plan, visitor))
}
