//! Expressions without the parentheses that are not needed, as PostgreSQL prints them for people: of what it writes
//! with all parentheses. A text of another form stays as it is.

use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    UnaryOperator,
};

use crate::parse::{self, quantified_operator};

/// What stands around a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Nothing that could be taken for a part of it.
    Nothing,
    /// An operator: its priority, if it is an arithmetic one, and whether the part is its left operand.
    Operator(Option<u8>, bool),
    /// AND.
    And,
    /// OR.
    Or,
    /// NOT.
    Not,
    /// A test, a cast.
    Other,
}

/// An expression without superfluous parentheses.
pub(super) fn pretty(text: &str) -> String {
    let parsed = parse::parse(&format!("SELECT {text}")).ok();
    let shown = parsed.as_ref().and_then(|statements| match statements.as_slice() {
        [only] => only.only_expression().and_then(|expr| show(expr, Around::Nothing)),
        _ => None,
    });
    shown.unwrap_or_else(|| text.to_owned())
}

/// The priority of an arithmetic operator.
fn priority(op: &BinaryOperator) -> Option<u8> {
    match op {
        BinaryOperator::Plus | BinaryOperator::Minus => Some(1),
        BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo => Some(2),
        _ => None,
    }
}

fn show(expr: &Expr, around: Around) -> Option<String> {
    Some(match expr {
        Expr::Nested(inner) => show(inner, around)?,
        Expr::CompoundIdentifier(parts) if parts.iter().any(parse::is_star) => return None,
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => expr.to_string(),
        Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } => {
            let is_and = *op == BinaryOperator::And;
            let mut operands = Vec::new();
            chain(expr, op, &mut operands);
            let inner = if is_and { Around::And } else { Around::Or };
            let shown = operands.into_iter().map(|operand| show(operand, inner)).collect::<Option<Vec<String>>>()?;
            let needs = match around {
                Around::Nothing | Around::Or => false,
                Around::And => !is_and,
                _ => true,
            };
            parenthesised(shown.join(if is_and { " AND " } else { " OR " }), needs)
        }
        Expr::BinaryOp { left, op, right } => {
            let own = priority(op);
            let (left, right) = (show(left, Around::Operator(own, true))?, show(right, Around::Operator(own, false))?);
            let needs = match around {
                Around::Operator(Some(outer), is_left) => match own {
                    Some(own) => own < outer || (own == outer && !is_left),
                    None => true,
                },
                Around::Operator(None, _) | Around::Other => true,
                _ => false,
            };
            parenthesised(format!("{left} {op} {right}"), needs)
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            let needs = matches!(around, Around::Operator(..) | Around::Other | Around::Not);
            parenthesised(format!("NOT {}", show(expr, Around::Not)?), needs)
        }
        Expr::UnaryOp { op: op @ (UnaryOperator::Minus | UnaryOperator::Plus), expr } => {
            let needs = matches!(around, Around::Operator(..) | Around::Other);
            parenthesised(format!("{op} {}", show(expr, Around::Operator(None, false))?), needs)
        }
        Expr::IsNull(inner) => test(inner, "IS NULL", around)?,
        Expr::IsNotNull(inner) => test(inner, "IS NOT NULL", around)?,
        Expr::IsTrue(inner) => test(inner, "IS TRUE", around)?,
        Expr::IsNotTrue(inner) => test(inner, "IS NOT TRUE", around)?,
        Expr::IsFalse(inner) => test(inner, "IS FALSE", around)?,
        Expr::IsNotFalse(inner) => test(inner, "IS NOT FALSE", around)?,
        Expr::Cast { kind: CastKind::DoubleColon, expr, data_type, .. } => {
            format!("{}::{}", show(expr, Around::Other)?, cast_name(data_type))
        }
        Expr::AnyOp { left, compare_op, right, .. } => {
            let (op, right) = quantified(compare_op, right)?;
            let (left, right) = (show(left, Around::Operator(None, true))?, show(right, Around::Nothing)?);
            format!("{left} {op} ANY ({right})")
        }
        Expr::AllOp { left, compare_op, right } => {
            let (op, right) = quantified(compare_op, right)?;
            let (left, right) = (show(left, Around::Operator(None, true))?, show(right, Around::Nothing)?);
            format!("{left} {op} ALL ({right})")
        }
        Expr::Array(array) => format!("ARRAY[{}]", list(array.elem.iter())?),
        Expr::Function(call) => function(call)?,
        _ => return None,
    })
}

/// The operator before ANY or ALL, and what the parentheses hold.
fn quantified<'e>(op: &BinaryOperator, right: &'e Expr) -> Option<(String, &'e Expr)> {
    match quantified_operator(right) {
        Some(found) => Some((found.symbol?.to_owned(), found.operand)),
        None => Some((op.to_string(), right)),
    }
}

/// The name of a type as it stands in the text: the parser's own spelling of it is another one.
fn cast_name(data_type: &sqlparser::ast::DataType) -> String {
    use sqlparser::ast::DataType;
    match data_type {
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => format!("{}[]", cast_name(element)),
        DataType::Custom(..) => data_type.to_string(),
        other => other.to_string().to_lowercase(),
    }
}

/// The operands of a chain of ANDs or of ORs.
fn chain<'e>(expr: &'e Expr, chained: &BinaryOperator, out: &mut Vec<&'e Expr>) {
    match expr {
        Expr::BinaryOp { left, op, right } if op == chained => {
            chain(left, chained, out);
            out.push(right);
        }
        other => out.push(other),
    }
}

fn test(inner: &Expr, words: &str, around: Around) -> Option<String> {
    let needs = matches!(around, Around::Operator(..) | Around::Other);
    Some(parenthesised(format!("{} {words}", show(inner, Around::Other)?), needs))
}

fn list<'e>(items: impl Iterator<Item = &'e Expr>) -> Option<String> {
    let shown = items.map(|item| show(item, Around::Nothing)).collect::<Option<Vec<String>>>()?;
    Some(shown.join(", "))
}

fn function(call: &Function) -> Option<String> {
    let FunctionArguments::List(args) = &call.args else { return None };
    let mut shown = Vec::with_capacity(args.args.len());
    for arg in &args.args {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else { return None };
        shown.push(show(expr, Around::Nothing)?);
    }
    Some(format!("{}({})", call.name, shown.join(", ")))
}

fn parenthesised(text: String, needs: bool) -> String {
    if needs { format!("({text})") } else { text }
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn parentheses_are_dropped_where_postgresql_drops_them() {
        for (full, short) in [
            ("(price > (0)::numeric)", "price > 0::numeric"),
            ("((a > 1) AND (b < 2) AND (NOT (c = d)))", "a > 1 AND b < 2 AND NOT c = d"),
            ("((a > 1) AND ((b < 2) OR (c IS NULL)))", "a > 1 AND (b < 2 OR c IS NULL)"),
            ("((a = 1) OR ((b = 2) AND (c = 3)))", "a = 1 OR b = 2 AND c = 3"),
            ("((a + (b * 2)) > (c - (d - 1)))", "(a + b * 2) > (c - (d - 1))"),
            ("((name)::text = 'x'::text)", "name::text = 'x'::text"),
            ("(length((name)::text) > 2)", "length(name::text) > 2"),
            ("((a + b) IS NOT NULL)", "(a + b) IS NOT NULL"),
            (
                "((a)::text = ANY ((ARRAY['x'::character varying, 'y'::character varying])::text[]))",
                "a::text = ANY (ARRAY['x'::character varying, 'y'::character varying]::text[])",
            ),
            ("CASE WHEN a THEN b END", "CASE WHEN a THEN b END"),
        ] {
            assert_eq!(pretty(full), short);
        }
    }
}
