//! Constant folding: replaces an expression over constants by its value.
//!
//! Expressions are folded as they are built, so only the topmost node is checked. An expression whose evaluation fails
//! stays, and fails at execution, if it is evaluated at all. A large value is not folded, because it would stay in
//! memory with the plan: `repeat('x', 1000000)`.

use crate::expr::Expr;
use crate::expr::eval::{Env, eval};
use crate::types::{Datum, SqlType, TimeZone};

/// Limit of a folded value, in bytes.
const MAX_VALUE: usize = 4096;

/// The expression's value if it is constant, else the expression.
pub(super) fn fold(expr: Expr) -> Expr {
    let children = expr.children();
    if children.is_empty() || !children.iter().all(|child| matches!(child, Expr::Const(_))) || needs_session(&expr) {
        return expr;
    }
    let zone = TimeZone::utc();
    let env = Env { params: &[], zone: &zone, now: 0, user: "", database: "", locals: &[] };
    let value = eval(&expr, &[], &env).ok().map(|value| value.into_owned());
    match value {
        Some(value) if value.memory() <= MAX_VALUE => Expr::Const(value),
        _ => expr,
    }
}

/// Whether a cast depends on the session's time zone.
fn needs_session(expr: &Expr) -> bool {
    let Expr::Cast { expr, to, .. } = expr else { return false };
    match &**expr {
        Expr::Const(Datum::Timestamp(_)) => to.is_text(),
        Expr::Const(Datum::Text(_)) => *to == SqlType::Timestamptz,
        _ => false,
    }
}
