//! Functions that make JSON from other values.

use std::borrow::Cow;

use super::convert;
use super::values::{texts, tree, wrong_dimensions};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, scalar};
use crate::json::{self, Jsonb, Layout};
use crate::row::IoEnv;
use crate::sql_type::SqlType as T;
use crate::sqlstate::SqlState;

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    scalar(3153, "array_to_json", &[T::ANYARRAY], T::JSON, array_to_json).stable(),
    scalar(3154, "array_to_json", &[T::ANYARRAY, T::BOOL], T::JSON, array_to_json).stable(),
    scalar(3155, "row_to_json", &[T::RECORD], T::JSON, row_to_json).stable(),
    scalar(3156, "row_to_json", &[T::RECORD, T::BOOL], T::JSON, row_to_json).stable(),
    scalar(3176, "to_json", &[T::ANYELEMENT], T::JSON, to_json).stable(),
    scalar(3198, "json_build_array", &[T::ANY], T::JSON, json_build_array).stable().on_null().variadic(),
    scalar(3199, "json_build_array", &[], T::JSON, json_build_array).stable().on_null(),
    scalar(3200, "json_build_object", &[T::ANY], T::JSON, json_build_object).stable().on_null().variadic(),
    scalar(3201, "json_build_object", &[], T::JSON, json_build_object).stable().on_null(),
    scalar(3202, "json_object", &[T::TEXT_ARRAY], T::JSON, json_object),
    scalar(3203, "json_object", &[T::TEXT_ARRAY, T::TEXT_ARRAY], T::JSON, json_object),
    scalar(3263, "jsonb_object", &[T::TEXT_ARRAY], T::JSONB, jsonb_object),
    scalar(3264, "jsonb_object", &[T::TEXT_ARRAY, T::TEXT_ARRAY], T::JSONB, jsonb_object),
    scalar(3271, "jsonb_build_array", &[T::ANY], T::JSONB, jsonb_build_array).stable().on_null().variadic(),
    scalar(3272, "jsonb_build_array", &[], T::JSONB, jsonb_build_array).stable().on_null(),
    scalar(3273, "jsonb_build_object", &[T::ANY], T::JSONB, jsonb_build_object).stable().on_null().variadic(),
    scalar(3274, "jsonb_build_object", &[], T::JSONB, jsonb_build_object).stable().on_null(),
    scalar(3787, "to_jsonb", &[T::ANYELEMENT], T::JSONB, to_jsonb).stable(),
];

/// `json` of text that is not too long.
fn text(json: String) -> Result<Datum, ValueError> {
    convert::limited(json).map(Datum::text)
}

fn refused(message: String) -> ValueError {
    ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn to_json(args: &Args<'_>) -> Result<Datum, ValueError> {
    convert::to_json(args.get(0), args.ty(0), args.env()).map(Datum::text)
}

fn to_jsonb(args: &Args<'_>) -> Result<Datum, ValueError> {
    convert::to_jsonb(args.get(0), args.ty(0), args.env()).map(tree)
}

/// The argument `pretty_bool`, which may be missing.
fn layout(args: &Args<'_>) -> Result<Layout, ValueError> {
    Ok(if args.len() > 1 && args.bool(1)? { Layout::Lines } else { Layout::Compact })
}

fn array_to_json(args: &Args<'_>) -> Result<Datum, ValueError> {
    convert::array_to_json(args.array(0)?, layout(args)?, args.env()).map(Datum::text)
}

fn row_to_json(args: &Args<'_>) -> Result<Datum, ValueError> {
    convert::row_to_json(args.record(0)?, layout(args)?, args.env()).map(Datum::text)
}

/// Converts a value of any type.
type Convert<V> = fn(&Datum, T, &IoEnv<'_>) -> Result<V, ValueError>;

fn elements<V>(args: &Args<'_>, convert: Convert<V>) -> Result<Vec<V>, ValueError> {
    (0..args.len()).map(|at| convert(args.get(at), args.ty(at), args.env())).collect()
}

fn json_build_array(args: &Args<'_>) -> Result<Datum, ValueError> {
    text(json::build_array(elements(args, convert::to_json)?))
}

fn jsonb_build_array(args: &Args<'_>) -> Result<Datum, ValueError> {
    Jsonb::from_elements(elements(args, convert::to_jsonb)?).map(tree)
}

/// Keys and values in turn. `null_key` is the error of a key that is NULL, at this place from 1.
fn members<V>(
    args: &Args<'_>,
    function: &str,
    null_key: fn(usize) -> ValueError,
    convert: Convert<V>,
) -> Result<Vec<(String, V)>, ValueError> {
    if args.len() % 2 == 1 {
        let hint = format!("The arguments of {function}() must consist of alternating keys and values.");
        return Err(refused("argument list must have even number of elements".to_owned()).with_hint(hint));
    }
    let member = |at: usize| {
        if args.is_null(at) {
            return Err(null_key(at + 1));
        }
        let key = convert::key(args.get(at), args.ty(at), args.env())?;
        Ok((key, convert(args.get(at + 1), args.ty(at + 1), args.env())?))
    };
    (0..args.len()).step_by(2).map(member).collect()
}

fn json_build_object(args: &Args<'_>) -> Result<Datum, ValueError> {
    let null_key = |at| refused(format!("argument {at} cannot be null")).with_hint("Object keys should be text.");
    text(json::build_object(members(args, "json_build_object", null_key, convert::to_json)?))
}

fn jsonb_build_object(args: &Args<'_>) -> Result<Datum, ValueError> {
    let null_key = |at| refused(format!("argument {at}: key must not be null"));
    let members = members(args, "jsonb_build_object", null_key, convert::to_jsonb)?;
    Jsonb::from_pairs(members.into_iter().map(|(key, value)| (Cow::Owned(key), value))).map(tree)
}

/// A text or NULL, for a key and for its value.
type Pair<'a> = (Option<&'a str>, Option<&'a str>);

/// The members that one or two arrays of texts describe. 2202E for dimensions that do not fit.
fn pairs<'a>(args: &Args<'a>) -> Result<Vec<Pair<'a>>, ValueError> {
    let wrong = |message: &'static str| Err(ValueError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
    let first = args.array(0)?;
    if args.len() == 1 {
        return match first.dimensions() {
            [list] if list.length % 2 != 0 => wrong("array must have even number of elements"),
            [_, columns] if columns.length != 2 => wrong("array must have two columns"),
            [_, _, _, ..] => Err(wrong_dimensions()),
            _ => Ok(texts(first).as_chunks::<2>().0.iter().map(|[key, value]| (*key, *value)).collect()),
        };
    }
    let second = args.array(1)?;
    match (first.dimensions(), second.dimensions()) {
        ([], []) => Ok(Vec::new()),
        ([keys], [values]) if keys.length != values.length => wrong("mismatched array dimensions"),
        ([_], [_]) => Ok(texts(first).into_iter().zip(texts(second)).collect()),
        _ => Err(wrong_dimensions()),
    }
}

fn json_object(args: &Args<'_>) -> Result<Datum, ValueError> {
    text(json::json_object(&pairs(args)?)?)
}

fn jsonb_object(args: &Args<'_>) -> Result<Datum, ValueError> {
    json::jsonb_object(&pairs(args)?).map(tree)
}
