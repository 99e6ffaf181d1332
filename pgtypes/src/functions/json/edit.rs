//! Functions that return a changed copy of a `jsonb`.

use super::values::{path, tree};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, scalar};
use crate::sql_type::SqlType as T;

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    scalar(3262, "jsonb_strip_nulls", &[T::JSONB], T::JSONB, strip_nulls),
    scalar(3301, "jsonb_concat", &[T::JSONB, T::JSONB], T::JSONB, concat),
    scalar(3302, "jsonb_delete", &[T::JSONB, T::TEXT], T::JSONB, delete_key),
    scalar(3303, "jsonb_delete", &[T::JSONB, T::INT4], T::JSONB, delete_element),
    scalar(3304, "jsonb_delete_path", &[T::JSONB, T::TEXT_ARRAY], T::JSONB, delete_path),
    scalar(3305, "jsonb_set", &[T::JSONB, T::TEXT_ARRAY, T::JSONB, T::BOOL], T::JSONB, set)
        .named(&["jsonb_in", "path", "replacement", "create_if_missing"])
        .defaults(&[Some("true")]),
    scalar(3343, "jsonb_delete", &[T::JSONB, T::TEXT_ARRAY], T::JSONB, delete_keys)
        .variadic()
        .named(&["from_json", "path_elems"]),
    scalar(3579, "jsonb_insert", &[T::JSONB, T::TEXT_ARRAY, T::JSONB, T::BOOL], T::JSONB, insert)
        .named(&["jsonb_in", "path", "replacement", "insert_after"])
        .defaults(&[Some("false")]),
    scalar(5054, "jsonb_set_lax", &[T::JSONB, T::TEXT_ARRAY, T::JSONB, T::BOOL, T::TEXT], T::JSONB, set_lax)
        .on_null()
        .named(&["jsonb_in", "path", "replacement", "create_if_missing", "null_value_treatment"])
        .defaults(&[Some("true"), Some("use_json_null")]),
];

fn strip_nulls(args: &Args<'_>) -> Result<Datum, ValueError> {
    args.jsonb(0).map(|value| tree(value.strip_nulls()))
}

fn concat(args: &Args<'_>) -> Result<Datum, ValueError> {
    args.jsonb(0)?.concat(args.jsonb(1)?).map(tree)
}

fn delete_key(args: &Args<'_>) -> Result<Datum, ValueError> {
    args.jsonb(0)?.delete_key(args.text(1)?).map(tree)
}

fn delete_keys(args: &Args<'_>) -> Result<Datum, ValueError> {
    args.jsonb(0)?.delete_keys(&path(args, 1)?).map(tree)
}

fn delete_element(args: &Args<'_>) -> Result<Datum, ValueError> {
    args.jsonb(0)?.delete_element(args.i32(1)?).map(tree)
}

fn delete_path(args: &Args<'_>) -> Result<Datum, ValueError> {
    args.jsonb(0)?.delete_path(&path(args, 1)?).map(tree)
}

fn set(args: &Args<'_>) -> Result<Datum, ValueError> {
    args.jsonb(0)?.set(&path(args, 1)?, args.jsonb(2)?, args.bool(3)?).map(tree)
}

fn insert(args: &Args<'_>) -> Result<Datum, ValueError> {
    args.jsonb(0)?.insert(&path(args, 1)?, args.jsonb(2)?, args.bool(3)?).map(tree)
}

/// Only the replacement and its treatment may be NULL.
fn set_lax(args: &Args<'_>) -> Result<Datum, ValueError> {
    if args.is_null(0) || args.is_null(1) || args.is_null(3) {
        return Ok(Datum::Null);
    }
    let new = if args.is_null(2) { None } else { Some(args.jsonb(2)?) };
    let treatment = if args.is_null(4) { None } else { Some(args.text(4)?) };
    // The path is looked at only if the value is changed.
    let is_changed = match treatment {
        None => false,
        Some(word) => new.is_some() || matches!(word, "use_json_null" | "delete_key"),
    };
    let path = if is_changed { path(args, 1)? } else { Vec::new() };
    args.jsonb(0)?.set_lax(&path, new, args.bool(3)?, treatment).map(tree)
}
