//! Constant folding: an expression over constants alone becomes its value when it is bound.
//!
//! Expressions are folded as they are built, so only the topmost node is looked at. What fails stays as it is: the
//! error then comes when the expression is evaluated, or never. So does what is large: `repeat('x', 1000000)` would be kept
//! as long as the plan.

use crate::expr::Expr;
use crate::expr::eval::{Env, eval};
use crate::types::{Datum, SqlType, TimeZone};

/// Longest value that takes the place of its expression, in bytes.
const MAX_VALUE: usize = 4096;

/// The value of the expression if it is constant, else the expression.
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
