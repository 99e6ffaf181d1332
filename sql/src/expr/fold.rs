//! Constant folding, as far as a bound expression allows it before execution.
//!
//! PostgreSQL simplifies expressions when it plans. What it evaluates then may fail, and what it drops never fails.
//! Both hold here: [`fold`] evaluates what depends on nothing, drops what PostgreSQL drops, and keeps the parts whose
//! errors PostgreSQL would report. `plan::constants` evaluates these before execution, with the parameters.

use smallvec::smallvec;

use super::eval::{Env, eval};
use super::tree::{Call, Children, Expr};
use pgtypes::cast::Cast;
use pgtypes::functions::{Volatility, has_order};
use pgtypes::{Category, Datum, Oid, SqlType, TimeZone};

/// Limit of a folded value, in bytes.
const MAX_FOLDED: usize = 4096;

/// The expression's value if it is constant, else the expression.
///
/// The binder folds expressions as it builds them, so only the topmost node is checked. An expression whose evaluation
/// fails stays, and fails when the plan is checked or executed, if it is evaluated at all. A large value is not folded,
/// because the plan would hold it in memory: `repeat('x', 1000000)`.
pub(crate) fn fold(expr: Expr) -> Expr {
    let expr = match expr {
        Expr::And(items) => cut(items, false, Expr::And),
        Expr::Or(items) => cut(items, true, Expr::Or),
        other => other,
    };
    if strict_operands(&expr).into_iter().any(is_null) {
        return after_parts(&expr, Datum::Null);
    }
    if !is_ready(&expr) {
        return guarded(expr);
    }
    let zone = TimeZone::utc();
    let env = Env::of_params(&[], &zone);
    let value = eval(&expr, &[], &env).ok().map(|value| value.into_owned());
    match value {
        Some(value) if value.memory() <= MAX_FOLDED => Expr::Const(value),
        _ => expr,
    }
}

/// Whether an expression can be evaluated now: its operands are constants, and it needs no session.
fn is_ready(expr: &Expr) -> bool {
    let children = expr.children();
    let is_leaf = children.is_empty() && !matches!(expr, Expr::Call(_));
    let is_styled = matches!(expr, Expr::Cast { cast, .. } if cast.is_styled());
    let are_constant = || children.iter().all(|child| matches!(child, Expr::Const(_)));
    !is_leaf && !is_styled && are_constant() && !needs_session(expr)
}

/// The operands of an expression that is NULL if one of them is.
fn strict_operands(expr: &Expr) -> Children<'_> {
    match expr {
        Expr::Compare { left, right, .. } => smallvec![&**left, &**right],
        Expr::Call(Call { function, args, .. }) if function.is_strict => args.iter().collect(),
        _ => Children::new(),
    }
}

/// Whether an expression is known to be NULL.
fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Const(value) => value.is_null(),
        Expr::Let { body, .. } => is_null(body),
        _ => false,
    }
}

/// A condition of WHERE. PostgreSQL finds when it plans that no row passes a conjunction with NULL, and does not
/// evaluate the other operands, except for the constant parts that they have.
pub(crate) fn filter(condition: Expr) -> Expr {
    if never_passes(&condition) { after_parts(&condition, Datum::Bool(false)) } else { condition }
}

fn never_passes(condition: &Expr) -> bool {
    matches!(condition, Expr::And(items) if items.iter().any(|item| is_null(item) || never_passes(item)))
}

/// A value in place of an expression that one of its operands decides. Of the others only those parts are evaluated
/// that PostgreSQL evaluates when it plans, for their errors.
fn after_parts(expr: &Expr, value: Datum) -> Expr {
    let mut parts = Vec::new();
    expr.children().into_iter().for_each(|child| constant_parts(child, &mut parts));
    let values: Vec<Expr> = parts.into_iter().cloned().collect();
    let body = Expr::Const(value);
    if values.is_empty() { body } else { Expr::Let { values, body: Box::new(body) } }
}

/// A strict call of which an operand may be NULL before execution, while another one, which may fail, is evaluated only
/// then: it is not evaluated if the first one is NULL.
fn guarded(expr: Expr) -> Expr {
    let branches = guards(&strict_operands(&expr));
    if branches.is_empty() { expr } else { Expr::Case { branches, otherwise: Box::new(expr) } }
}

fn guards(operands: &[&Expr]) -> Vec<(Expr, Expr)> {
    let may_fail = |operand: &&Expr| operand.any(&|part| !part.children().is_empty() && is_late(part));
    if operands.len() < 2 || !operands.iter().any(may_fail) {
        return Vec::new();
    }
    let early = operands.iter().flat_map(|operand| null_sources(operand));
    let test = |operand: &Expr| Expr::IsNull { expr: Box::new(operand.clone()), negated: false };
    early.map(|source| (test(source), Expr::Const(Datum::Null))).collect()
}

/// The call that [`guarded`] has put behind tests of its operands, if an expression has that form.
pub(crate) fn behind_guard(expr: &Expr) -> Option<&Expr> {
    let Expr::Case { branches, otherwise } = expr else { return None };
    let mut sources = strict_operands(otherwise).into_iter().flat_map(null_sources);
    let is_guard = branches.iter().all(|(test, result)| match test {
        Expr::IsNull { expr, negated: false } => sources.next() == Some(&**expr) && *result == Expr::Const(Datum::Null),
        _ => false,
    });
    (is_guard && sources.next().is_none()).then_some(&**otherwise)
}

/// The parts whose values are known before execution, and which make an expression NULL if one of them is.
fn null_sources(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Const(_) => Vec::new(),
        expr if is_constant(expr) => vec![expr],
        Expr::Cast { expr, .. } => null_sources(expr),
        expr => strict_operands(expr).into_iter().flat_map(null_sources).collect(),
    }
}

/// Drops the operands of AND (`decisive` false) or OR behind a decisive constant. PostgreSQL does not look at them
/// either. Those before it stay only for the errors of their constant parts.
fn cut(mut items: Vec<Expr>, decisive: bool, rebuild: fn(Vec<Expr>) -> Expr) -> Expr {
    let decides = |item: &Expr| *item == Expr::Const(Datum::Bool(decisive));
    let Some(at) = items.iter().position(decides) else { return rebuild(items) };
    items.truncate(at + 1);
    if items.iter().any(has_constant_part) { rebuild(items) } else { Expr::Const(Datum::Bool(decisive)) }
}

/// Whether an expression has a part whose value is fixed once the parameters are known, other than a mere constant or
/// parameter.
pub(crate) fn has_constant_part(expr: &Expr) -> bool {
    let mut parts = Vec::new();
    constant_parts(expr, &mut parts);
    !parts.is_empty()
}

/// Adds the largest such parts of an expression to a list.
fn constant_parts<'e>(expr: &'e Expr, parts: &mut Vec<&'e Expr>) {
    if is_constant(expr) {
        if !matches!(expr, Expr::Const(_) | Expr::Param(_)) {
            parts.push(expr);
        }
        return;
    }
    if matches!(expr, Expr::Extreme { ty, .. } if !has_order(*ty)) {
        parts.push(expr);
    }
    expr.children().into_iter().for_each(|child| constant_parts(child, parts));
}

/// Whether the value of an expression is fixed once the parameters and the session are known: for PostgreSQL it is a
/// constant when it plans.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Const(_) | Expr::Param(_) => true,
        Expr::Input { ty, .. } => is_moment(*ty),
        expr => {
            let children = expr.children();
            let is_value = !children.is_empty() || matches!(expr, Expr::Call(_));
            is_value && !is_late(expr) && children.into_iter().all(is_constant)
        }
    }
}

/// Whether values of a type are dates, times or intervals, or arrays of these: PostgreSQL reads their literals when it
/// analyzes a statement.
pub(crate) fn is_moment(ty: SqlType) -> bool {
    matches!(ty.scalar().row().category, Category::DateTime | Category::Timespan)
}

/// `text || any` and `any || text`. PostgreSQL calls them stable, and asks of what type the other operand is.
const TO_TEXT: [Oid; 2] = [Oid(2003), Oid(2004)];

/// `age(timestamptz, timestamptz)`. PostgreSQL calls it immutable, and reads the session's time zone.
const AGE: Oid = Oid(1199);

/// Whether a node depends on the session: a function of it, or a cast that uses its settings.
pub(crate) fn needs_session(expr: &Expr) -> bool {
    is_late(expr) || matches!(expr, Expr::Call(call) if call.function.oid == AGE)
}

/// Whether PostgreSQL evaluates a node when it executes a statement, not when it plans it.
pub(crate) fn is_late(expr: &Expr) -> bool {
    match expr {
        Expr::Session { .. } | Expr::Subquery(_) | Expr::Domain { .. } => true,
        Expr::Call(call) if TO_TEXT.contains(&call.function.oid) => {
            let shown = |ty: &SqlType| Cast::find(*ty, SqlType::TEXT, true);
            call.types.iter().filter_map(shown).any(|cast| cast.is_stable())
        }
        Expr::Call(call) => call.function.volatility != Volatility::Immutable,
        Expr::Elements { function, .. } => function.function.volatility != Volatility::Immutable,
        Expr::Cast { cast, .. } => cast.is_stable(),
        _ => false,
    }
}
