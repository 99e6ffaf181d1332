//! Errors of constant expressions, raised before execution.
//!
//! PostgreSQL simplifies expressions when it plans: `SELECT 1/0 FROM t` fails even if `t` is empty, and before a
//! RowDescription is sent. Parameters count as constants, since their values are known by then, and so do literals of
//! dates and times, which are read with the session's settings. This pass visits the operands in PostgreSQL's order and
//! skips the same ones: those behind a decisive AND or OR, those of branches of CASE that are not taken, those behind
//! the first known value of COALESCE.

use super::access::TableAccess;
use super::node::{Body, Conflict, Plan, Whole, WithBody};
use super::rel::{JoinMethod, Rel, SelectPlan, SetCall, Source};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::expr::eval::{Env, eval, without_order};
use crate::expr::fold::{behind_guard, has_constant_part, is_late, is_moment};
use pgtypes::functions::has_order;
use pgtypes::{Datum, IoEnv, TimeZone};

impl Plan {
    /// Fails if a constant expression does. `params` may be fewer than the plan's: the others are not known.
    pub(crate) fn check_constants(&self, params: &[Datum], io: &IoEnv<'_>) -> Result<(), SqlError> {
        if !self.constant_parts {
            return Ok(());
        }
        let env = Env { io: *io, ..Env::of_params(params, io.zone) };
        check(&self.whole(), Early { env, has_session: true })
    }
}

impl Whole<'_> {
    /// Fails if a constant expression does, as far as no settings of a session decide it.
    pub(super) fn check_constants(&self) -> Result<(), SqlError> {
        let zone = TimeZone::utc();
        check(self, Early { env: Env::of_params(&[], &zone), has_session: false })
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
fn check(whole: &Whole<'_>, early: Early<'_>) -> Result<(), SqlError> {
    visit(whole, &mut |expr| early.simplify(expr).map(|_| ()))
}

/// A function over the expressions of a plan.
pub(super) type Visitor<'v> = dyn FnMut(&Expr) -> Result<(), SqlError> + 'v;

/// Passes all expressions of a statement to `visitor`, up to its first error.
pub(super) fn visit(whole: &Whole<'_>, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    whole.with.iter().try_for_each(|with| match &with.body {
        WithBody::Query(plan) => visit_select(plan, visitor),
        WithBody::Change(body) => visit_body(body, visitor),
        WithBody::Recursive { first, step, .. } => {
            visit_select(first, visitor)?;
            visit_select(step, visitor)
        }
    })?;
    visit_body(whole.body, visitor)?;
    whole.subplans.iter().try_for_each(|subplan| visit_select(&subplan.plan, visitor))
}

fn visit_body(body: &Body, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
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
        | Body::RenameLabel(..)
        | Body::Drop(..)
        | Body::Truncate(..)
        | Body::Analyze(..)
        | Body::Nothing(_)
        | Body::Explain(_) => Ok(()),
    }
}

fn visit_select(plan: &SelectPlan, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
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
        aggregation.having.iter().try_for_each(&mut *visitor)?;
    }
    plan.output.iter().chain(&plan.filter).chain(&plan.offset).chain(&plan.limit).try_for_each(&mut *visitor)?;
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

fn visit_access(access: &TableAccess, visitor: &mut Visitor<'_>) -> Result<(), SqlError> {
    access.path.exprs().into_iter().try_for_each(visitor)
}

/// A value known before execution.
struct Known {
    value: Datum,
    /// Whether the whole expression is constant, not only its result.
    pure: bool,
}

/// What is known before execution.
#[derive(Clone, Copy)]
struct Early<'a> {
    env: Env<'a>,
    /// Whether the environment has the settings of the session.
    has_session: bool,
}

impl Early<'_> {
    /// The value of an expression, or the error of its evaluation, as far as known before execution.
    fn simplify(&self, expr: &Expr) -> Result<Option<Known>, SqlError> {
        let constant = |value: Datum| Ok(Some(Known { value, pure: true }));
        match expr {
            Expr::Const(value) => constant(value.clone()),
            Expr::Param(at) => Ok(self.env.params.get(*at).map(|value| Known { value: value.clone(), pure: true })),
            Expr::Local(at) => Ok(self.env.locals.get(*at).map(|value| Known { value: value.clone(), pure: true })),
            Expr::Input { ty, .. } if self.has_session && is_moment(*ty) => {
                constant(eval(expr, &[], &self.env)?.into_owned())
            }
            Expr::Let { values, body } => {
                let values = values.iter().map(|value| self.simplify(value)).collect::<Result<Vec<_>, _>>()?;
                let known = values.into_iter().map(|known| known.filter(|known| known.pure).map(|known| known.value));
                // If not all are known, none is.
                let locals = known.collect::<Option<Vec<Datum>>>().unwrap_or_default();
                Early { env: Env { locals: &locals, ..self.env }, ..*self }.simplify(body)
            }
            Expr::And(items) => self.logical(items, false),
            Expr::Or(items) => self.logical(items, true),
            Expr::Case { branches, otherwise } => match behind_guard(expr) {
                Some(call) => self.guarded(branches, call),
                None => self.case(branches, otherwise),
            },
            Expr::Coalesce(items) => {
                let mut pure = true;
                for item in items {
                    match self.simplify(item)? {
                        Some(known) if !known.value.is_null() => return Ok(pure.then_some(known)),
                        Some(known) => pure &= known.pure,
                        None => pure = false,
                    }
                }
                Ok(pure.then_some(Known { value: Datum::Null, pure }))
            }
            other => {
                let mut pure = !is_late(other);
                let children = other.children();
                pure &= !children.is_empty() || matches!(other, Expr::Call(_));
                for child in children {
                    pure &= self.simplify(child)?.is_some_and(|known| known.pure);
                }
                match other {
                    _ if pure => constant(eval(other, &[], &self.env)?.into_owned()),
                    Expr::Extreme { ty, .. } if !has_order(*ty) => Err(without_order(*ty)),
                    _ => Ok(None),
                }
            }
        }
    }

    fn case(&self, branches: &[(Expr, Expr)], otherwise: &Expr) -> Result<Option<Known>, SqlError> {
        let mut pure = true;
        for (condition, result) in branches {
            match self.simplify(condition)? {
                Some(Known { value: Datum::Bool(true), pure: whole }) => {
                    let result = self.simplify(result)?;
                    return Ok(result.filter(|_| pure).map(|known| Known { pure: known.pure && whole, ..known }));
                }
                Some(known) => pure &= known.pure,
                None => {
                    pure = false;
                    self.simplify(result)?;
                }
            }
        }
        Ok(self.simplify(otherwise)?.filter(|_| pure))
    }

    /// A call behind tests of its operands. PostgreSQL has simplified all of them before it finds that one is NULL.
    fn guarded(&self, tests: &[(Expr, Expr)], call: &Expr) -> Result<Option<Known>, SqlError> {
        let known = self.simplify(call)?;
        for (test, _) in tests {
            if let Some(Known { value: Datum::Bool(true), pure }) = self.simplify(test)? {
                return Ok(Some(Known { value: Datum::Null, pure }));
            }
        }
        Ok(known)
    }

    /// AND, or OR if `decisive`.
    fn logical(&self, items: &[Expr], decisive: bool) -> Result<Option<Known>, SqlError> {
        let (mut pure, mut result) = (true, Datum::Bool(!decisive));
        for item in items {
            match self.simplify(item)? {
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
}
