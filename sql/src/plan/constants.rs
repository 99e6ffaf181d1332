//! Errors of constant expressions, raised before execution.
//!
//! PostgreSQL simplifies expressions when it plans: `SELECT 1/0 FROM t` fails even if `t` is empty, and before a
//! RowDescription is sent. Parameters count as constants, since their values are known by then, and so do literals of
//! dates and times, which are read with the session's settings. This pass visits the operands in PostgreSQL's order and
//! skips the same ones: those behind a decisive AND or OR, those of branches of CASE that are not taken, those behind
//! the first known value of COALESCE.

use super::node::{Plan, Whole};
use super::read::visit_read;
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
    visit_read(whole, &mut |expr| {
        found |= has_constant_part(expr);
        Ok(())
    })
    .is_ok()
        && found
}

/// Evaluates the constant parts of all expressions of a plan.
fn check(whole: &Whole<'_>, early: Early<'_>) -> Result<(), SqlError> {
    visit_read(whole, &mut |expr| early.simplify(expr).map(|_| ()))
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
