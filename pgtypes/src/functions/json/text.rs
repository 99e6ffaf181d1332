//! Functions that return parts of a `json`, as they are written.

use super::values::{count, rows, text, texts};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, SetRows, scalar, set};
use crate::json::Json;
use crate::sql_type::SqlType as T;

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    scalar(3261, "json_strip_nulls", &[T::JSON], T::JSON, strip_nulls),
    scalar(3947, "json_object_field", &[T::JSON, T::TEXT], T::JSON, field).named(FIELD),
    scalar(3948, "json_object_field_text", &[T::JSON, T::TEXT], T::TEXT, field_text).named(FIELD),
    scalar(3949, "json_array_element", &[T::JSON, T::INT4], T::JSON, element).named(ELEMENT),
    scalar(3950, "json_array_element_text", &[T::JSON, T::INT4], T::TEXT, element_text).named(ELEMENT),
    scalar(3951, "json_extract_path", &[T::JSON, T::TEXT_ARRAY], T::JSON, at_path).variadic().named(PATH),
    scalar(3953, "json_extract_path_text", &[T::JSON, T::TEXT_ARRAY], T::TEXT, at_path_text).variadic().named(PATH),
    set(3955, "json_array_elements", &[T::JSON], T::JSON, elements).named(FROM).columns(&[("value", T::JSON)]),
    set(3969, "json_array_elements_text", &[T::JSON], T::TEXT, elements_text)
        .named(FROM)
        .columns(&[("value", T::TEXT)]),
    scalar(3956, "json_array_length", &[T::JSON], T::INT4, array_length),
    set(3957, "json_object_keys", &[T::JSON], T::TEXT, object_keys),
    set(3958, "json_each", &[T::JSON], T::RECORD, each).named(FROM).columns(&[("key", T::TEXT), ("value", T::JSON)]),
    set(3959, "json_each_text", &[T::JSON], T::RECORD, each_text)
        .named(FROM)
        .columns(&[("key", T::TEXT), ("value", T::TEXT)]),
    scalar(3968, "json_typeof", &[T::JSON], T::TEXT, type_name),
];

const FROM: &[&str] = &["from_json"];
const FIELD: &[&str] = &["from_json", "field_name"];
const ELEMENT: &[&str] = &["from_json", "element_index"];
const PATH: &[&str] = &["from_json", "path_elems"];

fn json(args: &Args<'_>) -> Result<Json, ValueError> {
    args.text(0).map(Json::from_valid)
}

fn written(value: Json) -> Datum {
    Datum::Text(value.into_text())
}

fn part(value: Option<Json>) -> Datum {
    value.map_or(Datum::Null, written)
}

fn field(args: &Args<'_>) -> Result<Datum, ValueError> {
    json(args)?.field(args.text(1)?).map(part)
}

fn field_text(args: &Args<'_>) -> Result<Datum, ValueError> {
    json(args)?.field_text(args.text(1)?).map(text)
}

fn element(args: &Args<'_>) -> Result<Datum, ValueError> {
    json(args)?.element(args.i32(1)?).map(part)
}

fn element_text(args: &Args<'_>) -> Result<Datum, ValueError> {
    json(args)?.element_text(args.i32(1)?).map(text)
}

fn at_path(args: &Args<'_>) -> Result<Datum, ValueError> {
    json(args)?.at_path(&texts(args.array(1)?)).map(part)
}

fn at_path_text(args: &Args<'_>) -> Result<Datum, ValueError> {
    json(args)?.at_path_text(&texts(args.array(1)?)).map(text)
}

fn strip_nulls(args: &Args<'_>) -> Result<Datum, ValueError> {
    json(args)?.strip_nulls().map(written)
}

fn type_name(args: &Args<'_>) -> Result<Datum, ValueError> {
    json(args)?.type_name().map(Datum::text)
}

fn array_length(args: &Args<'_>) -> Result<Datum, ValueError> {
    json(args)?.array_length().map(count)
}

fn elements(args: &Args<'_>) -> Result<SetRows, ValueError> {
    Ok(rows(json(args)?.array_elements()?, |element| vec![written(element)]))
}

fn elements_text(args: &Args<'_>) -> Result<SetRows, ValueError> {
    Ok(rows(json(args)?.array_elements_text()?, |element| vec![text(element)]))
}

fn object_keys(args: &Args<'_>) -> Result<SetRows, ValueError> {
    Ok(rows(json(args)?.object_keys()?, |key| vec![Datum::text(key)]))
}

fn each(args: &Args<'_>) -> Result<SetRows, ValueError> {
    Ok(rows(json(args)?.each()?, |(key, value)| vec![Datum::text(key), written(value)]))
}

fn each_text(args: &Args<'_>) -> Result<SetRows, ValueError> {
    Ok(rows(json(args)?.each_text()?, |(key, value)| vec![Datum::text(key), text(value)]))
}
