//! Functions that return parts of a `jsonb`, and those that look for something in it.

use super::values::{count, part, rows, text, texts, tree};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, SetRows, scalar, set};
use crate::sql_type::SqlType as T;

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    scalar(3207, "jsonb_array_length", &[T::JSONB], T::INT4, array_length),
    set(3208, "jsonb_each", &[T::JSONB], T::RECORD, each).named(FROM).columns(&[("key", T::TEXT), ("value", T::JSONB)]),
    scalar(3210, "jsonb_typeof", &[T::JSONB], T::TEXT, type_name),
    scalar(3214, "jsonb_object_field_text", &[T::JSONB, T::TEXT], T::TEXT, field_text).named(FIELD),
    scalar(3215, "jsonb_array_element", &[T::JSONB, T::INT4], T::JSONB, element).named(ELEMENT),
    scalar(3216, "jsonb_array_element_text", &[T::JSONB, T::INT4], T::TEXT, element_text).named(ELEMENT),
    scalar(3217, "jsonb_extract_path", &[T::JSONB, T::TEXT_ARRAY], T::JSONB, at_path).variadic().named(PATH),
    set(3219, "jsonb_array_elements", &[T::JSONB], T::JSONB, elements).named(FROM).columns(&[("value", T::JSONB)]),
    scalar(3306, "jsonb_pretty", &[T::JSONB], T::TEXT, pretty),
    set(3465, "jsonb_array_elements_text", &[T::JSONB], T::TEXT, elements_text)
        .named(FROM)
        .columns(&[("value", T::TEXT)]),
    scalar(3478, "jsonb_object_field", &[T::JSONB, T::TEXT], T::JSONB, field).named(FIELD),
    set(3931, "jsonb_object_keys", &[T::JSONB], T::TEXT, object_keys),
    set(3932, "jsonb_each_text", &[T::JSONB], T::RECORD, each_text)
        .named(FROM)
        .columns(&[("key", T::TEXT), ("value", T::TEXT)]),
    scalar(3940, "jsonb_extract_path_text", &[T::JSONB, T::TEXT_ARRAY], T::TEXT, at_path_text).variadic().named(PATH),
    scalar(4046, "jsonb_contains", &[T::JSONB, T::JSONB], T::BOOL, contains),
    scalar(4047, "jsonb_exists", &[T::JSONB, T::TEXT], T::BOOL, exists),
    scalar(4048, "jsonb_exists_any", &[T::JSONB, T::TEXT_ARRAY], T::BOOL, exists_any),
    scalar(4049, "jsonb_exists_all", &[T::JSONB, T::TEXT_ARRAY], T::BOOL, exists_all),
    scalar(4050, "jsonb_contained", &[T::JSONB, T::JSONB], T::BOOL, contained),
];

const FROM: &[&str] = &["from_json"];
const FIELD: &[&str] = &["from_json", "field_name"];
const ELEMENT: &[&str] = &["from_json", "element_index"];
const PATH: &[&str] = &["from_json", "path_elems"];

fn field(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(part(args.jsonb(0)?.field(args.text(1)?)))
}

fn field_text(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(text(args.jsonb(0)?.field_text(args.text(1)?)))
}

fn element(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(part(args.jsonb(0)?.element(args.i32(1)?)))
}

fn element_text(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(text(args.jsonb(0)?.element_text(args.i32(1)?)))
}

fn at_path(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(part(args.jsonb(0)?.at_path(&texts(args.array(1)?))))
}

fn at_path_text(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(text(args.jsonb(0)?.at_path_text(&texts(args.array(1)?))))
}

fn type_name(args: &Args<'_>) -> Result<Datum, ValueError> {
    args.jsonb(0).map(|value| Datum::text(value.type_name()))
}

fn array_length(args: &Args<'_>) -> Result<Datum, ValueError> {
    args.jsonb(0)?.array_length().map(count)
}

fn pretty(args: &Args<'_>) -> Result<Datum, ValueError> {
    args.jsonb(0)?.pretty().map(Datum::text)
}

fn contains(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.jsonb(0)?.contains(args.jsonb(1)?)))
}

fn contained(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.jsonb(0)?.is_contained_in(args.jsonb(1)?)))
}

fn exists(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.jsonb(0)?.exists(args.text(1)?)))
}

fn exists_any(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.jsonb(0)?.exists_any(&texts(args.array(1)?))))
}

fn exists_all(args: &Args<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(args.jsonb(0)?.exists_all(&texts(args.array(1)?))))
}

fn elements(args: &Args<'_>) -> Result<SetRows, ValueError> {
    Ok(rows(args.jsonb(0)?.array_elements()?.to_vec(), |element| vec![tree(element)]))
}

fn elements_text(args: &Args<'_>) -> Result<SetRows, ValueError> {
    Ok(rows(args.jsonb(0)?.array_elements_text()?, |element| vec![text(element)]))
}

fn object_keys(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let keys = args.jsonb(0)?.object_keys()?.into_iter().map(Datum::text).collect();
    Ok(rows(keys, |key| vec![key]))
}

fn each(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let members = args.jsonb(0)?.each()?.into_iter().map(|(key, value)| (Datum::text(key), value.clone()));
    Ok(rows(members.collect(), |(key, value)| vec![key, tree(value)]))
}

fn each_text(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let members = args.jsonb(0)?.each_text()?.into_iter().map(|(key, value)| (Datum::text(key), value));
    Ok(rows(members.collect(), |(key, value)| vec![key, text(value)]))
}
