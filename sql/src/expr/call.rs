//! Evaluation of calls: functions, operators, ANY and ALL, arrays and rows.

use std::borrow::Cow;

use super::eval::{Env, Value, as_bool, boolean, eval, owned};
use super::tree::{Call, Elementwise, Expr, Subscript};
use crate::error::SqlError;
use pgtypes::functions::{Args, ProcRow, Run};
use pgtypes::{Array, Datum, Record, SqlType};

/// Calls a function. The usual numbers of arguments need no allocation.
pub(super) fn call<'a>(expr: &'a Call, row: &'a [Datum], env: &Env<'a>) -> Value<'a> {
    match expr.args.as_slice() {
        [only] => apply(expr, &[eval(only, row, env)?], env),
        [first, second] => apply(expr, &[eval(first, row, env)?, eval(second, row, env)?], env),
        args => {
            let values = args.iter().map(|arg| eval(arg, row, env)).collect::<Result<Vec<_>, _>>()?;
            apply(expr, &values, env)
        }
    }
}

fn apply<'a>(expr: &'a Call, values: &[Cow<'_, Datum>], env: &Env<'_>) -> Value<'a> {
    let args = Args::new(values, &expr.types, expr.result, &env.io);
    owned(run(expr.function, &args)?)
}

/// The value of a function of one value.
fn run(function: &ProcRow, args: &Args<'_>) -> Result<Datum, SqlError> {
    if function.is_strict && args.any_null() {
        return Ok(Datum::Null);
    }
    match function.run {
        Run::Scalar(run) => Ok(run(args)?),
        _ => Err(SqlError::internal("a function of one value is none")),
    }
}

/// ANY and ALL: decided by the first element that decides; NULL if none does and one is NULL.
pub(super) fn elements<'a>(
    each: &'a Elementwise,
    left: &'a Expr,
    array: &'a Expr,
    row: &'a [Datum],
    env: &Env<'a>,
) -> Value<'a> {
    let (left, array) = (eval(left, row, env)?, eval(array, row, env)?);
    let array = match &*array {
        Datum::Array(array) => array,
        Datum::Null => return owned(Datum::Null),
        _ => return Err(SqlError::internal("ANY is over something that is no array")),
    };
    let mut saw_null = false;
    for element in array.elements() {
        let values = [Cow::Borrowed(&*left), Cow::Borrowed(element)];
        match as_bool(&run(each.function, &Args::new(&values, &each.types, SqlType::BOOL, &env.io))?) {
            Some(holds) if holds != each.all => return boolean(Some(holds)),
            Some(_) => {}
            None => saw_null = true,
        }
    }
    boolean(if saw_null { None } else { Some(each.all) })
}

/// Arrays, their elements and slices, and rows.
pub(super) fn composite<'a>(expr: &'a Expr, row: &'a [Datum], env: &Env<'a>) -> Value<'a> {
    match expr {
        Expr::Array { element, items, is_nested } => {
            let values = items.iter().map(|item| Ok(eval(item, row, env)?.into_owned()));
            let values = values.collect::<Result<Vec<Datum>, SqlError>>()?;
            let array = if *is_nested { Array::nest(element.oid, values)? } else { Array::of(element.oid, values) };
            owned(Datum::Array(Box::new(array)))
        }
        Expr::Row { types, items } => {
            let field = |(ty, item): (&SqlType, &'a Expr)| Ok((*ty, eval(item, row, env)?.into_owned()));
            let fields = types.iter().zip(items).map(field).collect::<Result<Vec<_>, SqlError>>()?;
            owned(Datum::Record(Box::new(Record::new(fields))))
        }
        Expr::Subscript { array, subscripts } => subscript(&*eval(array, row, env)?, subscripts, row, env),
        _ => Err(SqlError::internal("an expression has no meaning")),
    }
}

fn subscript<'a>(array: &Datum, subscripts: &'a [Subscript], row: &'a [Datum], env: &Env<'a>) -> Value<'a> {
    let Datum::Array(array) = array else { return owned(Datum::Null) };
    let number = |expr: &'a Expr| -> Result<Option<i64>, SqlError> {
        match &*eval(expr, row, env)? {
            Datum::Int(number) => Ok(Some(*number)),
            _ => Ok(None),
        }
    };
    let is_slice = subscripts.iter().any(|subscript| matches!(subscript, Subscript::Slice(..)));
    if !is_slice {
        let mut places = Vec::with_capacity(subscripts.len());
        for subscript in subscripts {
            let Subscript::Index(index) = subscript else { continue };
            match number(index)? {
                Some(place) => places.push(place),
                None => return owned(Datum::Null),
            }
        }
        return owned(array.get(&places).cloned().unwrap_or_default());
    }
    let mut bounds = Vec::with_capacity(subscripts.len());
    for subscript in subscripts {
        // A mere index in a slice means from 1 up to it.
        let (lower, upper) = match subscript {
            Subscript::Index(index) => (Some(Some(1)), Some(number(index)?)),
            Subscript::Slice(lower, upper) => {
                (lower.as_ref().map(number).transpose()?, upper.as_ref().map(number).transpose()?)
            }
        };
        if lower == Some(None) || upper == Some(None) {
            return owned(Datum::Null);
        }
        bounds.push((lower.flatten(), upper.flatten()));
    }
    owned(Datum::Array(Box::new(array.slice(&bounds))))
}
