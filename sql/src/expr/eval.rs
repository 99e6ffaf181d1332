//! Evaluation of bound expressions over a row.
//!
//! The binder has cast the operands of every node to one kind of value, so evaluation matches on variants only. A
//! combination that the binder must not produce is an internal error, never a panic.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::call::{any_of, apply, array, assigned, decided, element, only_value, row_among, row_of, slice};
pub(crate) use super::env::Env;
use super::env::{Value, as_bool, boolean, owned};
use super::tree::{Call, CompareOp, ContextValue, DomainCheck, Expr, SessionCall, Subquery, SubqueryKind, Subscript};
use super::{domain, session};
use crate::error::{SqlError, SqlState};
use pgtypes::datum::{SliceBounds, compare, compare_same};
use pgtypes::functions::{array_of_arrays, has_equality, has_order};
use pgtypes::{Datum, SqlType, wire};

/// The result of `version()`. PostgreSQL's version comes first, for clients that parse it.
pub(crate) const VERSION: &str = concat!("PostgreSQL 15.0 (Cortado ", env!("CARGO_PKG_VERSION"), ")");

/// Evaluates an expression.
pub(crate) fn eval<'a>(expr: &'a Expr, row: &'a [Datum], env: &Env<'a>) -> Value<'a> {
    match expr {
        Expr::Const(value) => Ok(Cow::Borrowed(value)),
        Expr::Column(at) => row.get(*at).map(Cow::Borrowed).ok_or_else(|| SqlError::internal("a column is missing")),
        Expr::Param(at) => {
            env.params.get(*at).map(Cow::Borrowed).ok_or_else(|| SqlError::internal("a parameter is missing"))
        }
        Expr::Compare { op, left, right, .. } => {
            let (left, right) = (eval(left, row, env)?, eval(right, row, env)?);
            boolean(compare_values(*op, &left, &right)?)
        }
        Expr::And(items) => and_or(items, row, env, false),
        Expr::Or(items) => and_or(items, row, env, true),
        Expr::Not(expr) => boolean(as_bool(&*eval(expr, row, env)?).map(|value| !value)),
        Expr::Cast { expr, cast } => owned(cast.apply(eval(expr, row, env)?.into_owned(), &env.io)?),
        Expr::Domain { expr, check } => {
            let value = eval(expr, row, env)?;
            check_domain(check, &value, env)?;
            Ok(value)
        }
        Expr::Input { ty, text, position } => {
            let value = wire::parse(*ty, text, &env.io);
            owned(value.map_err(|error| SqlError::from(error).at(position.0))?)
        }
        Expr::IsNull { expr, negated } => boolean(Some(is_null(&*eval(expr, row, env)?, *negated))),
        Expr::IsBool { expr, value, negated } => {
            boolean(Some((as_bool(&*eval(expr, row, env)?) == Some(*value)) != *negated))
        }
        Expr::Distinct { left, right, negated, .. } => {
            let (left, right) = (eval(left, row, env)?, eval(right, row, env)?);
            boolean(Some(same(&left, &right)? == *negated))
        }
        Expr::InList { expr, list, negated, .. } => in_list(expr, list, *negated, row, env),
        Expr::InSet { expr, values, with_null, negated, .. } => {
            in_set(&*eval(expr, row, env)?, values, *with_null, *negated)
        }
        Expr::Call(call) => eval_call(call, row, env),
        Expr::Session { call, args } => eval_session(*call, args, row, env),
        Expr::Context(value) => owned(context(*value, env)),
        Expr::Local(at) => {
            env.locals.get(*at).map(Cow::Borrowed).ok_or_else(|| SqlError::internal("a local value is missing"))
        }
        Expr::Let { values, body } => {
            let values: Vec<Datum> =
                values.iter().map(|value| Ok(eval(value, row, env)?.into_owned())).collect::<Result<_, SqlError>>()?;
            let inner = Env { locals: &values, ..*env };
            owned(eval(body, row, &inner)?.into_owned())
        }
        Expr::Outer(at) => {
            let value = env.params.get(env.first_outer + at).map(Cow::Borrowed);
            value.ok_or_else(|| SqlError::internal("a value of an outer row is missing"))
        }
        Expr::Subquery(subquery) => eval_subquery(subquery, row, env),
        Expr::Each(_) => Err(SqlError::internal("an array is no single value")),
        Expr::Elements { function, left, array } => {
            let (left, array) = (eval(left, row, env)?, eval(array, row, env)?);
            decided(function, &left, &array, env)
        }
        Expr::Array { element, items, is_nested } => array(*element, evaluated(items, row, env)?, *is_nested),
        Expr::Field { record, at } => owned(match &*eval(record, row, env)? {
            Datum::Record(record) => record.fields().get(*at).map_or(Datum::Null, |(_, field)| field.clone()),
            _ => Datum::Null,
        }),
        Expr::Row { types, items, names } => row_of(types, evaluated(items, row, env)?, names.as_ref()),
        Expr::Subscript { array, subscripts } => subscript(&*eval(array, row, env)?, subscripts, row, env),
        Expr::Assigned { array, subscripts, value, element } => {
            assign((eval(array, row, env)?, eval(value, row, env)?), bounds(subscripts, row, env)?, *element)
        }
        other => eval_conditional(other, row, env),
    }
}

/// Whether a value is one of a domain. 23502 or 23514 if not.
pub(crate) fn check_domain(check: &DomainCheck, value: &Datum, env: &Env<'_>) -> Result<(), SqlError> {
    let row = std::slice::from_ref(value);
    domain::check(check, value, |condition| {
        Ok(*eval(condition, row, &Env { locals: &[], ..*env })? == Datum::Bool(false))
    })
}

/// Calls a function. The usual numbers of arguments need no allocation.
fn eval_call<'a>(call: &'a Call, row: &'a [Datum], env: &Env<'a>) -> Value<'a> {
    match call.args.as_slice() {
        [only] => apply(call, &[eval(only, row, env)?], env),
        [first, second] => apply(call, &[eval(first, row, env)?, eval(second, row, env)?], env),
        args => {
            let values = args.iter().map(|arg| eval(arg, row, env)).collect::<Result<Vec<_>, _>>()?;
            apply(call, &values, env)
        }
    }
}

fn eval_session<'a>(call: SessionCall, args: &'a [Expr], row: &'a [Datum], env: &Env<'a>) -> Value<'a> {
    let args = args.iter().map(|arg| eval(arg, row, env)).collect::<Result<Vec<_>, _>>()?;
    let args: Vec<&Datum> = args.iter().map(|arg| &**arg).collect();
    owned(match call {
        SessionCall::System(function) => session::system(function, &args, (env.session, &env.io))?,
        call => session::call(call, &args, env.session)?,
    })
}

fn eval_subquery<'a>(subquery: &'a Subquery, row: &'a [Datum], env: &Env<'a>) -> Value<'a> {
    let log = env.subqueries.ok_or_else(|| SqlError::internal("a sub-query without a statement"))?;
    let args = evaluated(&subquery.args, row, env)?;
    let own = env.params.get(..env.first_outer).unwrap_or(env.params);
    let rows = log.rows(subquery.plan, own, args)?;
    match &subquery.kind {
        SubqueryKind::Exists => boolean(Some(!rows.rows.is_empty())),
        SubqueryKind::Scalar => only_value(&rows, 0),
        SubqueryKind::Field(at) => only_value(&rows, *at),
        SubqueryKind::Array { element, is_nested } => {
            let values: Vec<Datum> = rows.rows.iter().map(|row| row.first().cloned().unwrap_or_default()).collect();
            match is_nested {
                true => owned(array_of_arrays(*element, &values)?),
                false => array(*element, values, false),
            }
        }
        SubqueryKind::Elements { function, left } => any_of(function, &*eval(left, row, env)?, &rows, env),
        SubqueryKind::Rows { left } => row_among(&evaluated(left, row, env)?, &rows),
    }
}

fn evaluated(items: &[Expr], row: &[Datum], env: &Env<'_>) -> Result<Vec<Datum>, SqlError> {
    items.iter().map(|item| Ok(eval(item, row, env)?.into_owned())).collect()
}

/// `array[index]` and `array[lower:upper]`: NULL if a subscript is.
fn subscript<'a>(array: &Datum, subscripts: &'a [Subscript], row: &'a [Datum], env: &Env<'a>) -> Value<'a> {
    match bounds(subscripts, row, env)? {
        Some((bounds, true)) => slice(array, &bounds),
        Some((bounds, false)) => element(array, &bounds),
        None => owned(Datum::Null),
    }
}

/// An array with a value assigned to a part of it. 22004 if a subscript is NULL.
fn assign<'a>((array, value): (Cow<'_, Datum>, Cow<'_, Datum>), bounds: Option<Bounds>, element: SqlType) -> Value<'a> {
    let Some((bounds, is_slice)) = bounds else {
        let message = "array subscript in assignment must not be null";
        return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
    };
    owned(assigned(array.into_owned(), (&bounds, is_slice), value.into_owned(), element)?)
}

/// The bounds of subscripts, and whether they are those of a slice.
type Bounds = (Vec<SliceBounds>, bool);

/// The bounds that subscripts give; `None` if one is NULL.
fn bounds<'a>(subscripts: &'a [Subscript], row: &'a [Datum], env: &Env<'a>) -> Result<Option<Bounds>, SqlError> {
    let number = |expr: &'a Expr| -> Result<Option<i64>, SqlError> {
        match &*eval(expr, row, env)? {
            Datum::Int(number) => Ok(Some(*number)),
            _ => Ok(None),
        }
    };
    let mut bounds = Vec::with_capacity(subscripts.len());
    let mut is_slice = false;
    for subscript in subscripts {
        // A mere index in a slice means from 1 up to it.
        let (lower, upper) = match subscript {
            Subscript::Index(index) => (Some(Some(1)), Some(number(index)?)),
            Subscript::Slice(lower, upper) => {
                is_slice = true;
                (lower.as_ref().map(number).transpose()?, upper.as_ref().map(number).transpose()?)
            }
        };
        if lower == Some(None) || upper == Some(None) {
            return Ok(None);
        }
        bounds.push((lower.flatten(), upper.flatten()));
    }
    Ok(Some((bounds, is_slice)))
}

/// Evaluates the constructs that skip some of their operands.
fn eval_conditional<'a>(expr: &'a Expr, row: &'a [Datum], env: &Env<'a>) -> Value<'a> {
    match expr {
        Expr::Case { branches, otherwise } => {
            for (condition, result) in branches {
                if as_bool(&*eval(condition, row, env)?) == Some(true) {
                    return eval(result, row, env);
                }
            }
            eval(otherwise, row, env)
        }
        Expr::Coalesce(items) => {
            for item in items {
                let value = eval(item, row, env)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            owned(Datum::Null)
        }
        Expr::Extreme { ty, .. } if !has_order(*ty) => Err(without_order(*ty)),
        Expr::Extreme { greatest, items, .. } => {
            let wanted = if *greatest { Ordering::Greater } else { Ordering::Less };
            let mut best: Cow<'a, Datum> = Cow::Owned(Datum::Null);
            for item in items {
                let value = eval(item, row, env)?;
                if !value.is_null() && (best.is_null() || order(&value, &best)? == wanted) {
                    best = value;
                }
            }
            Ok(best)
        }
        _ => Err(SqlError::internal("an expression has no meaning")),
    }
}

/// The error of GREATEST and LEAST over values that cannot be compared. PostgreSQL looks for their order when it
/// evaluates.
pub(crate) fn without_order(ty: SqlType) -> SqlError {
    let message = format!("could not identify a comparison function for type {}", ty.base_name());
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
}

/// Whether values are equal, NULL to NULL.
fn same(left: &Datum, right: &Datum) -> Result<bool, SqlError> {
    if left.is_null() || right.is_null() {
        return Ok(left.is_null() && right.is_null());
    }
    check_equality(left, right)?;
    Ok(order(left, right)?.is_eq())
}

/// 42883 for arrays of values that cannot be equal. PostgreSQL looks for their equality when it compares them: not if
/// the arrays have other dimensions.
fn check_equality(left: &Datum, right: &Datum) -> Result<(), SqlError> {
    let (Datum::Array(left), Datum::Array(right)) = (left, right) else { return Ok(()) };
    match pgtypes::find(left.element()).map(|row| row.ty()) {
        Some(element) if !has_equality(element) && left.dimensions() == right.dimensions() => {
            let message = format!("could not identify an equality operator for type {}", element.base_name());
            Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
        }
        _ => Ok(()),
    }
}

/// Whether a condition is true. NULL is not.
pub(crate) fn is_true(expr: &Expr, row: &[Datum], env: &Env<'_>) -> Result<bool, SqlError> {
    Ok(as_bool(&*eval(expr, row, env)?) == Some(true))
}

/// Whether a row passes the condition of a WHERE or HAVING. The parts of a conjunction are evaluated in order, up to
/// the first that is not true: behind one that is NULL, none fails and none takes an advisory lock.
pub(crate) fn qualifies(condition: &Expr, row: &[Datum], env: &Env<'_>) -> Result<bool, SqlError> {
    let Expr::And(items) = condition else { return is_true(condition, row, env) };
    for item in items {
        if !qualifies(item, row, env)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// AND (`decisive` false) or OR (`decisive` true). The decisive value wins over NULL.
fn and_or<'a>(items: &'a [Expr], row: &'a [Datum], env: &Env<'a>, decisive: bool) -> Value<'a> {
    let mut result = Some(!decisive);
    for item in items {
        match as_bool(&*eval(item, row, env)?) {
            Some(value) if value == decisive => return boolean(Some(decisive)),
            Some(_) => {}
            None => result = None,
        }
    }
    boolean(result)
}

/// The order of two values of one type. Fails for values of two types, which the binder must not produce.
fn order(left: &Datum, right: &Datum) -> Result<Ordering, SqlError> {
    compare_same(left, right).ok_or_else(|| SqlError::internal("a comparison is between values of two types"))
}

fn compare_values(op: CompareOp, left: &Datum, right: &Datum) -> Result<Option<bool>, SqlError> {
    if left.is_null() || right.is_null() {
        return Ok(None);
    }
    let order = order(left, right)?;
    Ok(Some(match op {
        CompareOp::Eq => order.is_eq(),
        CompareOp::NotEq => order.is_ne(),
        CompareOp::Less => order.is_lt(),
        CompareOp::LessEq => order.is_le(),
        CompareOp::Greater => order.is_gt(),
        CompareOp::GreaterEq => order.is_ge(),
    }))
}

fn in_list<'a>(expr: &'a Expr, list: &'a [Expr], negated: bool, row: &'a [Datum], env: &Env<'a>) -> Value<'a> {
    let value = eval(expr, row, env)?;
    if value.is_null() {
        return owned(Datum::Null);
    }
    let mut saw_null = false;
    for item in list {
        let item = eval(item, row, env)?;
        if item.is_null() {
            saw_null = true;
        } else if order(&value, &item)?.is_eq() {
            return boolean(Some(!negated));
        }
    }
    boolean(if saw_null { None } else { Some(negated) })
}

fn in_set<'a>(value: &Datum, values: &[Datum], with_null: bool, negated: bool) -> Value<'a> {
    if value.is_null() {
        return owned(Datum::Null);
    }
    // All values of the list have one type.
    if let Some(first) = values.first() {
        order(value, first)?;
    }
    let found = values.binary_search_by(|item| compare(item, value)).is_ok();
    boolean(if with_null && !found { None } else { Some(found != negated) })
}

fn context(value: ContextValue, env: &Env<'_>) -> Datum {
    match value {
        ContextValue::Now => Datum::Int(env.io.now.0),
        ContextValue::User => Datum::Text(env.user.into()),
        ContextValue::Database => Datum::Text(env.database.into()),
        ContextValue::Schema => env.current_schema.map_or(Datum::Null, |schema| Datum::Text(schema.into())),
        ContextValue::Version => Datum::Text(VERSION.into()),
        ContextValue::BackendPid => Datum::Int(env.session.backend_pid().into()),
    }
}

/// IS NULL, and IS NOT NULL if `negated`. Of a row they ask about all of its fields, so neither may be true.
fn is_null(value: &Datum, negated: bool) -> bool {
    match value {
        Datum::Record(record) => record.fields().iter().all(|(_, field)| field.is_null() != negated),
        value => value.is_null() != negated,
    }
}
