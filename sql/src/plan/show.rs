//! Expressions as EXPLAIN prints them: SQL with explicit parentheses.

use crate::expr::{Call, ContextValue, Expr, SessionCall, SubqueryKind, Subscript};
use pgtypes::timestamp::Now;
use pgtypes::{Datum, IoEnv, SqlType, TimeZone, functions, wire};

/// An expression with a single pair of outer parentheses.
pub(super) fn plain(expr: &Expr, names: &[String]) -> String {
    let text = show(expr, names);
    match (expr, text.strip_prefix('(').and_then(|t| t.strip_suffix(')'))) {
        (Expr::Call(Call { operator: Some(_), .. }) | Expr::Compare { .. }, Some(inner)) => format!("({inner})"),
        _ => text,
    }
}

/// An expression as SQL with explicit parentheses. `names` are those of its columns.
pub(super) fn show(expr: &Expr, names: &[String]) -> String {
    let each = |items: &[Expr]| items.iter().map(|item| show(item, names)).collect::<Vec<_>>();
    match expr {
        Expr::Const(value) => constant(value),
        Expr::Column(at) => names.get(*at).cloned().unwrap_or_else(|| format!("column{}", at + 1)),
        Expr::Param(at) => format!("${}", at + 1),
        Expr::Input { ty, text, .. } => format!("'{}'::{}", text.replace('\'', "''"), ty.name()),
        Expr::Cast { expr, cast } => match &**expr {
            simple @ (Expr::Column(_) | Expr::Param(_)) => format!("({})::{}", show(simple, names), type_name(cast.to)),
            other => format!("({})::{}", show(other, names).trim_matches(['(', ')']), type_name(cast.to)),
        },
        Expr::Domain { expr, check } => match &**expr {
            Expr::Cast { expr, .. } => format!("({})::{}", show(expr, names).trim_matches(['(', ')']), check.shown),
            other => format!("({})::{}", show(other, names).trim_matches(['(', ')']), check.shown),
        },
        Expr::Compare { .. } | Expr::Distinct { .. } | Expr::InList { .. } | Expr::InSet { .. } => {
            show_comparison(expr, names)
        }
        Expr::And(items) => format!("({})", each(items).join(" AND ")),
        Expr::Or(items) => format!("({})", each(items).join(" OR ")),
        Expr::Not(expr) => format!("(NOT {})", show(expr, names)),
        Expr::IsNull { expr, negated } => format!("({} IS {}NULL)", show(expr, names), not(*negated)),
        Expr::IsBool { expr, value, negated } => {
            let word = if *value { "TRUE" } else { "FALSE" };
            format!("({} IS {}{word})", show(expr, names), not(*negated))
        }
        Expr::Case { branches, otherwise } => {
            let arms: Vec<String> =
                branches.iter().map(|(c, r)| format!("WHEN {} THEN {}", show(c, names), show(r, names))).collect();
            format!("CASE {} ELSE {} END", arms.join(" "), show(otherwise, names))
        }
        Expr::Coalesce(items) => format!("COALESCE({})", each(items).join(", ")),
        Expr::Extreme { greatest, items, .. } => {
            format!("{}({})", if *greatest { "GREATEST" } else { "LEAST" }, each(items).join(", "))
        }
        Expr::Call(call) => show_call(call, names),
        Expr::Each(array) => format!("ANY ({})", show(array, names)),
        Expr::Elements { .. }
        | Expr::Array { .. }
        | Expr::Row { .. }
        | Expr::Field { .. }
        | Expr::Subscript { .. }
        | Expr::Assigned { .. }
        | Expr::Subquery(_) => show_composite(expr, names),
        Expr::Session { call, args } => format!("{}({})", session_call(*call), each(args).join(", ")),
        Expr::Context(value) => context(*value).to_owned(),
        Expr::Let { values, body } => {
            let values: Vec<String> = values
                .iter()
                .enumerate()
                .map(|(at, value)| format!("{} = {}", local(at), show(value, names)))
                .collect();
            format!("({} WHERE {})", show(body, names), values.join(", "))
        }
        Expr::Local(at) => local(*at),
        // As PostgreSQL shows what a node gets from above.
        Expr::Outer(at) => format!("${at}"),
        Expr::Aggregate(at) => format!("aggregate{}", at + 1),
        Expr::SetValue(at) => format!("set{}", at + 1),
        Expr::WindowValue(at) => format!("window{}", at + 1),
    }
}

/// Comparisons, whose types tell what constants are.
fn show_comparison(expr: &Expr, names: &[String]) -> String {
    match expr {
        Expr::Compare { op, left, right, ty } => {
            format!("({} {} {})", operand(left, *ty, names), op.symbol(), operand(right, *ty, names))
        }
        Expr::Distinct { left, right, negated, ty } => {
            let (left, right) = (operand(left, *ty, names), operand(right, *ty, names));
            format!("({left} IS {}DISTINCT FROM {right})", not(*negated))
        }
        Expr::InList { expr, list, negated, ty } => {
            let list = list.iter().map(|item| operand(item, *ty, names)).collect::<Vec<_>>();
            format!("({} {}IN ({}))", show(expr, names), not(*negated), list.join(", "))
        }
        Expr::InSet { expr, values, with_null, negated, ty } => {
            let mut list: Vec<String> = values.iter().map(|value| compared_constant(value, *ty)).collect();
            list.extend(with_null.then(|| "NULL".to_owned()));
            format!("({} {}IN ({}))", show(expr, names), not(*negated), list.join(", "))
        }
        other => show(other, names),
    }
}

/// A value that is compared as one of a type.
pub(super) fn operand(expr: &Expr, ty: SqlType, names: &[String]) -> String {
    match expr {
        Expr::Const(value) => compared_constant(value, ty),
        expr => show(expr, names),
    }
}

/// Integers stand for values of many types. The labels of enums are in the catalog, which is out of reach here.
fn compared_constant(value: &Datum, ty: SqlType) -> String {
    let is_number = [SqlType::UNKNOWN, SqlType::INT2, SqlType::INT4, SqlType::INT8].contains(&ty.base());
    match value {
        Datum::Int(_) if !is_number && !ty.is_enum() => quoted(value, ty),
        value => constant(value),
    }
}

/// Arrays, rows, and what is over sub-queries.
fn show_composite(expr: &Expr, names: &[String]) -> String {
    let each = |items: &[Expr]| items.iter().map(|item| show(item, names)).collect::<Vec<_>>();
    match expr {
        Expr::Elements { function, left, array } => {
            let word = if function.all { "ALL" } else { "ANY" };
            format!("({} {} {word} ({}))", show(left, names), function.operator, show(array, names))
        }
        Expr::Array { items, .. } => format!("ARRAY[{}]", each(items).join(", ")),
        Expr::Row { items, .. } => format!("ROW({})", each(items).join(", ")),
        Expr::Field { record, at } => format!("({}).column{}", show(record, names), at + 1),
        Expr::Assigned { array, subscripts, value, .. } => {
            let part = Expr::Subscript { array: array.clone(), subscripts: subscripts.clone() };
            format!("({} := {})", show(&part, names), show(value, names))
        }
        Expr::Subscript { array, subscripts } => {
            let bound = |expr: &Option<Expr>| expr.as_ref().map(|expr| show(expr, names)).unwrap_or_default();
            let shown = subscripts.iter().map(|subscript| match subscript {
                Subscript::Index(index) => format!("[{}]", show(index, names)),
                Subscript::Slice(lower, upper) => format!("[{}:{}]", bound(lower), bound(upper)),
            });
            format!("{}{}", show(array, names), shown.collect::<String>())
        }
        Expr::Subquery(subquery) => {
            let name = format!("(SubPlan {})", subquery.plan + 1);
            match &subquery.kind {
                SubqueryKind::Elements { function, left } => {
                    let word = if function.all { "ALL" } else { "ANY" };
                    format!("({} {} {word} {name})", show(left, names), function.operator)
                }
                SubqueryKind::Rows { left } => format!("(({}) = ANY {name})", each(left).join(", ")),
                SubqueryKind::Exists => format!("EXISTS{name}"),
                SubqueryKind::Field(at) => format!("{name}.column{}", at + 1),
                SubqueryKind::Scalar | SubqueryKind::Array { .. } => name,
            }
        }
        other => show(other, names),
    }
}

fn show_call(call: &Call, names: &[String]) -> String {
    let args: Vec<String> = call
        .args
        .iter()
        .zip(&call.types)
        .map(|(arg, ty)| match arg {
            Expr::Const(value) => typed_constant(value, *ty),
            arg => show(arg, names),
        })
        .collect();
    match (call.operator, args.as_slice()) {
        (Some(operator), [left, right]) => format!("({left} {operator} {right})"),
        (Some(operator), [only]) => format!("({operator} {only})"),
        _ => format!("{}({})", call.function.name, args.join(", ")),
    }
}

/// The name of a type. As in PostgreSQL `character` has a length.
fn type_name(ty: SqlType) -> String {
    if ty == SqlType::BPCHAR { "bpchar".to_owned() } else { ty.name() }
}

/// The name of a `Let` value.
fn local(at: usize) -> String {
    format!("value{}", at + 1)
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

fn session_call(call: SessionCall) -> &'static str {
    match call {
        SessionCall::CurrentSetting => "current_setting",
        SessionCall::SetConfig => "set_config",
        SessionCall::Sleep => "pg_sleep",
        SessionCall::SleepFor => "pg_sleep_for",
        SessionCall::SleepUntil => "pg_sleep_until",
        SessionCall::Sequence(call) => call.name(),
        SessionCall::Advisory(call) => call.function(),
        SessionCall::CancelBackend => "pg_cancel_backend",
        SessionCall::TerminateBackend => "pg_terminate_backend",
        SessionCall::BlockingPids => "pg_blocking_pids",
        SessionCall::System(function) => functions::find(function).map_or("", |row| row.name),
    }
}

fn context(value: ContextValue) -> &'static str {
    match value {
        ContextValue::Now => "now()",
        ContextValue::User => "CURRENT_USER",
        ContextValue::Database => "current_database()",
        ContextValue::Schema => "current_schema()",
        ContextValue::Version => "version()",
        ContextValue::BackendPid => "pg_backend_pid()",
    }
}

/// A constant of a known type.
fn typed_constant(value: &Datum, ty: SqlType) -> String {
    let plain = matches!(ty.base(), SqlType::BOOL | SqlType::INT2 | SqlType::INT4 | SqlType::INT8 | SqlType::NUMERIC);
    if plain || value.is_null() { constant(value) } else { quoted(value, ty) }
}

fn quoted(value: &Datum, ty: SqlType) -> String {
    let text = wire::show(value, ty, &IoEnv::new(&TimeZone::utc(), Now(0)));
    format!("'{}'::{}", text.replace('\'', "''"), type_name(ty.base()))
}

/// A constant whose type the kind of its value tells.
fn constant(value: &Datum) -> String {
    match value {
        Datum::Null => "NULL".to_owned(),
        Datum::Bool(value) => value.to_string(),
        Datum::Int(value) if *value < 0 => format!("({value})"),
        Datum::Int(value) => value.to_string(),
        Datum::Numeric(value) if value.signum() == Some(-1) => format!("({})", value.to_text()),
        Datum::Numeric(value) => value.to_text(),
        Datum::Float(_) => quoted(value, SqlType::FLOAT8),
        Datum::Text(_) => quoted(value, SqlType::TEXT),
        Datum::Padded(_) => quoted(value, SqlType::BPCHAR),
        Datum::Bytes(_) => quoted(value, SqlType::BYTEA),
        Datum::Interval(_) => quoted(value, SqlType::INTERVAL),
        Datum::TimeTz(_) => quoted(value, SqlType::TIMETZ),
        Datum::Uuid(_) => quoted(value, SqlType::UUID),
        Datum::Jsonb(_) => quoted(value, SqlType::JSONB),
        Datum::Record(_) => quoted(value, SqlType::RECORD),
        Datum::Array(array) => {
            let ty = SqlType::new(array.element()).array().unwrap_or(SqlType::TEXT_ARRAY);
            quoted(value, ty)
        }
    }
}
