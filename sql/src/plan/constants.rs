//! Errors of constant expressions, raised before execution.
//!
//! PostgreSQL simplifies expressions when it plans: `SELECT 1/0 FROM t` fails even if `t` is empty, and before a
//! RowDescription is sent. Parameters count as constants, since their values are known by then. This pass visits the
//! operands in PostgreSQL's order and skips the same ones: those behind a decisive AND or OR, those of branches of CASE
//! that are not taken, those behind the first known value of COALESCE.

use super::access::TableAccess;
use super::node::{Body, Conflict, Joined, Plan, Whole, WithBody};
use super::rel::{JoinMethod, Rel, SelectPlan, SetCall, Source};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::expr::eval::{Env, eval, has_constant_part, needs_session};
use pgtypes::{Datum, TimeZone};

impl Plan {
    /// Fails if a constant expression does. `params` may be fewer than the plan's: the others are not known.
    pub(crate) fn check_constants(&self, params: &[Datum]) -> Result<(), SqlError> {
        if self.constant_parts { check(&self.whole(), params) } else { Ok(()) }
    }
}

/// Whether an expression of a plan has a constant part that was not folded: it has parameters, or it fails.
pub(super) fn any_in(whole: &Whole<'_>) -> bool {
    let mut found = false;
    visit(whole, &mut |expr| {
        found |= has_constant_part(expr);
        Ok(())
    })
    .is_ok()
        && found
}

/// Evaluates the constant parts of all expressions of a plan.
pub(super) fn check(whole: &Whole<'_>, params: &[Datum]) -> Result<(), SqlError> {
    let zone = TimeZone::utc();
    let env = Env::of_params(params, &zone);
    visit(whole, &mut |expr| simplify(expr, &env).map(|_| ()))
}

/// A function over the expressions of a plan.
pub(super) type Visitor<'v> = dyn FnMut(&Expr) -> Result<(), SqlError> + 'v;

/// Passes all expressions of a statement to `visitor`, up to its first error.
pub(super) fn visit(whole: &Whole<'_>, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    visit_body(whole.body, visitor)?;
    whole.subplans.iter().try_for_each(|subplan| visit_select(&subplan.plan, visitor))?;
    whole.with.iter().try_for_each(|with| match &with.body {
        WithBody::Query(plan) => visit_select(plan, visitor),
        WithBody::Change(body) => visit_body(body, visitor),
        WithBody::Recursive { first, step, .. } => {
            visit_select(first, visitor)?;
            visit_select(step, visitor)
        }
    })
}

fn visit_body(body: &Body, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    match body {
        Body::Select(plan) => visit_select(plan, visitor),
        Body::Insert(plan) => {
            visit_select(&plan.source, visitor)?;
            plan.columns.iter().flatten().try_for_each(&mut *visitor)?;
            if let Conflict::DoUpdate { assignments, filter, .. } = &*plan.conflict {
                assignments.iter().map(|(_, expr)| expr).chain(filter).try_for_each(&mut *visitor)?;
            }
            plan.returning.iter().flatten().try_for_each(visitor)
        }
        Body::Update(plan) => {
            visit_access(&plan.access, visitor)?;
            visit_joined(plan.joined.as_deref(), visitor)?;
            plan.filter.iter().try_for_each(&mut *visitor)?;
            plan.assignments.iter().map(|(_, expr)| expr).try_for_each(&mut *visitor)?;
            plan.returning.iter().flatten().try_for_each(visitor)
        }
        Body::Delete(plan) => {
            visit_access(&plan.access, visitor)?;
            visit_joined(plan.joined.as_deref(), visitor)?;
            plan.filter.iter().chain(plan.returning.iter().flatten()).try_for_each(visitor)
        }
        Body::CopyFrom(plan) => {
            let defaults = plan.defaults.iter().map(|(_, expr)| expr);
            defaults.chain(&plan.filter).try_for_each(visitor)
        }
        Body::CreateTableAs(parts) => visit_select(&parts.1, visitor),
        Body::CreateTable(_)
        | Body::Comment(..)
        | Body::CreateObject(..)
        | Body::AlterObject(..)
        | Body::Drop(..)
        | Body::Truncate(..)
        | Body::AlterTables(..)
        | Body::Analyze(..)
        | Body::Nothing(_)
        | Body::Explain(_) => Ok(()),
    }
}

fn visit_joined(joined: Option<&Joined>, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    let Some(joined) = joined else { return Ok(()) };
    visit_select(&joined.source, visitor)?;
    joined.condition.iter().try_for_each(visitor)
}

fn visit_select(plan: &SelectPlan, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    match &plan.source {
        Source::Single | Source::System(_) => {}
        Source::Values(rows) => rows.iter().flatten().try_for_each(&mut *visitor)?,
        Source::Table(access) => visit_access(access, visitor)?,
        Source::Rel(rel) => visit_rel(rel, visitor)?,
    }
    if let Some(aggregation) = &plan.aggregation {
        aggregation
            .calls
            .iter()
            .flat_map(|call| call.inputs().chain(call.direct.iter().map(|(expr, _)| expr)))
            .try_for_each(&mut *visitor)?;
        aggregation.having.iter().try_for_each(&mut *visitor)?;
    }
    plan.output.iter().chain(&plan.filter).chain(&plan.limit).chain(&plan.offset).try_for_each(visitor)
}

fn visit_rel(rel: &Rel, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    match rel {
        Rel::Query(plan) => visit_select(plan, visitor),
        Rel::Join(join) => {
            visit_rel(&join.left, visitor)?;
            visit_rel(&join.right, visitor)?;
            match &join.method {
                JoinMethod::Hash(keys) => keys.iter().flat_map(|(l, r)| [l, r]).try_for_each(&mut *visitor)?,
                JoinMethod::Loop(args) | JoinMethod::Reverse(args) => args.iter().try_for_each(&mut *visitor)?,
            }
            join.condition.iter().try_for_each(visitor)
        }
        Rel::Set(set) => {
            visit_rel(&set.left, visitor)?;
            visit_rel(&set.right, visitor)
        }
        Rel::Function(scan) => scan.call.args().iter().try_for_each(visitor),
        Rel::SetValues(values) => {
            visit_rel(&values.input, visitor)?;
            values.calls.iter().flat_map(SetCall::args).try_for_each(visitor)
        }
        Rel::Windows(windows) => {
            visit_rel(&windows.input, visitor)?;
            windows.offsets().try_for_each(visitor)
        }
        Rel::With(_) => Ok(()),
    }
}

fn visit_access(access: &TableAccess, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    access.path.exprs().into_iter().try_for_each(visitor)
}

/// A value known before execution.
struct Known {
    value: Datum,
    /// Whether the whole expression is constant, not only its result.
    pure: bool,
}

/// The value of an expression, or the error of its evaluation, as far as known before execution.
fn simplify(expr: &Expr, env: &Env<'_>) -> Result<Option<Known>, SqlError> {
    let constant = |value: Datum| Ok(Some(Known { value, pure: true }));
    match expr {
        Expr::Const(value) => constant(value.clone()),
        Expr::Param(at) => Ok(env.params.get(*at).map(|value| Known { value: value.clone(), pure: true })),
        Expr::And(items) => logical(items, false, env),
        Expr::Or(items) => logical(items, true, env),
        Expr::Case { branches, otherwise } => {
            let mut pure = true;
            for (condition, result) in branches {
                match simplify(condition, env)? {
                    Some(Known { value: Datum::Bool(true), pure: whole }) => {
                        let result = simplify(result, env)?;
                        return Ok(result.filter(|_| pure).map(|known| Known { pure: known.pure && whole, ..known }));
                    }
                    Some(known) => pure &= known.pure,
                    None => {
                        pure = false;
                        simplify(result, env)?;
                    }
                }
            }
            Ok(simplify(otherwise, env)?.filter(|_| pure))
        }
        Expr::Coalesce(items) => {
            let mut pure = true;
            for item in items {
                match simplify(item, env)? {
                    Some(known) if !known.value.is_null() => return Ok(pure.then_some(known)),
                    Some(known) => pure &= known.pure,
                    None => pure = false,
                }
            }
            Ok(pure.then_some(Known { value: Datum::Null, pure }))
        }
        other => {
            let mut pure = !needs_session(other);
            let children = other.children();
            pure &= !children.is_empty() || matches!(other, Expr::Call(_));
            for child in children {
                pure &= simplify(child, env)?.is_some_and(|known| known.pure);
            }
            if pure { constant(eval(other, &[], env)?.into_owned()) } else { Ok(None) }
        }
    }
}

/// AND, or OR if `decisive`.
fn logical(items: &[Expr], decisive: bool, env: &Env<'_>) -> Result<Option<Known>, SqlError> {
    let (mut pure, mut result) = (true, Datum::Bool(!decisive));
    for item in items {
        match simplify(item, env)? {
            Some(Known { value: Datum::Bool(value), pure: whole }) if value == decisive => {
                return Ok(Some(Known { value: Datum::Bool(decisive), pure: pure && whole }));
            }
            Some(known) => {
                pure &= known.pure;
                if known.value.is_null() {
                    result = Datum::Null;
                }
            }
            None => pure = false,
        }
    }
    Ok(pure.then_some(Known { value: result, pure }))
}
