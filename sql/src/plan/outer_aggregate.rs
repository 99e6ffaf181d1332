//! Aggregates of a query around the one that has their calls.
//!
//! An aggregate belongs to the nearest query whose columns its arguments and its FILTER use. So it is bound where it
//! stands first. If all columns are of a query further out, it is bound again, as a part of that query. The inner query
//! then has its result as a value from outside.

use sqlparser::ast::{Function as CallAst, Spanned};

use super::aggregate::Parts;
use super::binder::{Binder, Typed};
use super::functions::ArgumentList;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;

/// Limit of aggregates that are bound again. One in an argument of another is so each time that this one is.
const MAX_BOUND_AGAIN: usize = 1_000;

/// How far the binder is, to forget what it has bound since.
pub(super) struct Mark {
    /// The numbers of values and of references of the queries around.
    frames: Vec<(usize, usize)>,
    subplans: usize,
    subqueries: usize,
    with: usize,
    notices: usize,
}

impl Binder<'_> {
    /// How far it is.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            frames: self.frames.iter().map(|frame| (frame.args.len(), frame.references.len())).collect(),
            subplans: self.subplans.len(),
            subqueries: self.bound_subqueries,
            with: self.with.len(),
            notices: self.notices.len(),
        }
    }

    fn forget_since(&mut self, mark: &Mark) {
        for (frame, (args, references)) in self.frames.iter_mut().zip(&mark.frames) {
            frame.args.truncate(*args);
            frame.references.truncate(*references);
        }
        self.subplans.truncate(mark.subplans);
        self.with.truncate(mark.with);
        self.notices.truncate(mark.notices);
    }

    /// The query around that an aggregate belongs to; `None` for the one that is being bound.
    pub(super) fn outer_level(&self, parts: &Parts, is_within: bool) -> Result<Option<usize>, SqlError> {
        let here = self.frames.len();
        let ordered = parts.ordered.iter().map(|(value, _, _)| &value.expr);
        let filter = parts.filter.iter();
        // The direct arguments of an ordered-set aggregate do not tell.
        let own = parts.args.iter().filter(|_| !is_within).map(|value| &value.expr);
        let level = own.chain(ordered).chain(filter).filter_map(|expr| self.level_of(expr, here)).max();
        let Some(level) = level.filter(|level| *level < here) else { return Ok(None) };
        let is_lower = |value: &&Typed| self.level_of(&value.expr, here).is_some_and(|direct| direct > level);
        if let Some(direct) = parts.args.iter().filter(|_| is_within).find(is_lower) {
            let message = "outer-level aggregate cannot contain a lower-level variable in its direct arguments";
            return Err(self.error(SqlState::GROUPING_ERROR, message, direct.at));
        }
        Ok(Some(level))
    }

    /// The innermost query whose columns or aggregates an expression of the query at a level uses.
    fn level_of(&self, expr: &Expr, level: usize) -> Option<usize> {
        match expr {
            Expr::Column(_) | Expr::Aggregate(_) | Expr::SetValue(_) | Expr::WindowValue(_) => Some(level),
            Expr::Outer(place) => {
                let around = level.checked_sub(1)?;
                self.level_of(self.frames.get(around)?.args.get(*place)?, around)
            }
            expr => expr.children().into_iter().filter_map(|child| self.level_of(child, level)).max(),
        }
    }

    /// Binds an aggregate of the query at a depth. `mark`: before its arguments were bound here.
    pub(super) fn outer_aggregate(
        &mut self,
        depth: usize,
        mark: &Mark,
        (name, call, list): (&str, &CallAst, &ArgumentList<'_>),
    ) -> Result<Typed, SqlError> {
        let at = call.name.span().start;
        if self.bound_subqueries > mark.subqueries {
            return Err(self.unsupported("a sub-query in an aggregate of an outer query is", at));
        }
        self.bound_again += 1;
        if self.bound_again > MAX_BOUND_AGAIN {
            let message = "too many aggregates of outer queries";
            return Err(self.error(SqlState::STATEMENT_TOO_COMPLEX, message, at));
        }
        self.forget_since(mark);
        let mut inner = self.frames.split_off(depth);
        let bound = match inner.first_mut() {
            Some(frame) => {
                let scope = frame.scope.clone();
                std::mem::swap(&mut self.aggregates, &mut frame.aggregates);
                std::mem::swap(&mut self.clause, &mut frame.clause);
                let bound = self.aggregate(name, call, list, &scope);
                std::mem::swap(&mut self.aggregates, &mut frame.aggregates);
                std::mem::swap(&mut self.clause, &mut frame.clause);
                bound
            }
            None => Err(SqlError::internal("an aggregate of no query")),
        };
        self.frames.extend(inner);
        let value = bound?;
        Ok(Typed { expr: self.passed(depth, value.expr), ..value })
    }
}
