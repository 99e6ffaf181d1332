//! Lists in texts, values of any type in texts, quoting.

use std::borrow::Cow;

use super::{count, nullable, rows, text, text_array};
use crate::cast::Cast;
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, SetRows, scalar, set};
use crate::sql_type::SqlType as T;
use crate::text::{self as texts, check_alloc};
use crate::wire;

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    scalar(2003, "textanycat", &[T::TEXT, T::ANYNONARRAY], T::TEXT, |args| cat(args.text(0)?, &cast(args, 1)?))
        .stable(),
    scalar(2004, "anytextcat", &[T::ANYNONARRAY, T::TEXT], T::TEXT, |args| cat(&cast(args, 0)?, args.text(1)?))
        .stable(),
    scalar(3058, "concat", &[T::ANY], T::TEXT, concat).stable().on_null().variadic(),
    scalar(3059, "concat_ws", &[T::TEXT, T::ANY], T::TEXT, concat_ws).stable().on_null().variadic(),
    scalar(3539, "format", &[T::TEXT, T::ANY], T::TEXT, format).stable().on_null().variadic(),
    scalar(3540, "format", &[T::TEXT], T::TEXT, format).stable().on_null(),
    scalar(438, "num_nulls", &[T::ANY], T::INT4, |args| nulls(args, true)).on_null().variadic(),
    scalar(440, "num_nonnulls", &[T::ANY], T::INT4, |args| nulls(args, false)).on_null().variadic(),
    scalar(394, "string_to_array", &[T::TEXT, T::TEXT], T::TEXT_ARRAY, string_to_array).on_null(),
    scalar(376, "string_to_array", &[T::TEXT, T::TEXT, T::TEXT], T::TEXT_ARRAY, string_to_array).on_null(),
    set(6160, "string_to_table", &[T::TEXT, T::TEXT], T::TEXT, string_to_table).on_null(),
    set(6161, "string_to_table", &[T::TEXT, T::TEXT, T::TEXT], T::TEXT, string_to_table).on_null(),
    scalar(395, "array_to_string", &[T::ANYARRAY, T::TEXT], T::TEXT, array_to_string).stable(),
    scalar(384, "array_to_string", &[T::ANYARRAY, T::TEXT, T::TEXT], T::TEXT, array_to_string).stable().on_null(),
    scalar(1282, "quote_ident", &[T::TEXT], T::TEXT, |args| text(texts::quote_ident(args.text(0)?))),
    scalar(1283, "quote_literal", &[T::TEXT], T::TEXT, |args| quote(args.text(0)?)),
    scalar(1285, "quote_literal", &[T::ANYELEMENT], T::TEXT, |args| quote(&cast(args, 0)?)).stable(),
    scalar(1289, "quote_nullable", &[T::TEXT], T::TEXT, quote_nullable).on_null(),
    scalar(1290, "quote_nullable", &[T::ANYELEMENT], T::TEXT, quote_nullable).stable().on_null(),
    scalar(1268, "parse_ident", &[T::TEXT, T::BOOL], T::TEXT_ARRAY, parse_ident)
        .named(&["str", "strict"])
        .defaults(&[Some("true")]),
];

/// An argument as `text`, by a cast: of a boolean that is another text than its text form.
fn cast<'a>(args: &Args<'a>, at: usize) -> Result<Cow<'a, str>, ValueError> {
    let value = args.get(at);
    if let Datum::Text(value) = value {
        return Ok(Cow::Borrowed(value));
    }
    let cast = Cast::find(args.ty(at), T::TEXT, true).map(|cast| cast.apply(value.clone(), args.env())).transpose()?;
    match cast {
        Some(Datum::Text(value)) => Ok(Cow::Owned(value.into())),
        _ => Err(ValueError::internal("a value has no cast to text")),
    }
}

/// The text forms of arguments.
fn forms<'a>(args: &Args<'a>, from: usize) -> Vec<Option<Cow<'a, str>>> {
    let form = |at| match args.get(at) {
        // Their text form is what they are.
        Datum::Text(value) | Datum::Padded(value) => Some(Cow::Borrowed(&**value)),
        _ => args.show(at).map(Cow::Owned),
    };
    (from..args.len()).map(form).collect()
}

fn borrowed<'a>(forms: &'a [Option<Cow<'_, str>>]) -> Vec<Option<&'a str>> {
    forms.iter().map(Option::as_deref).collect()
}

fn optional<'a>(args: &Args<'a>, at: usize) -> Result<Option<&'a str>, ValueError> {
    if args.is_null(at) { Ok(None) } else { args.text(at).map(Some) }
}

fn cat(left: &str, right: &str) -> Result<Datum, ValueError> {
    check_alloc(left.len() + right.len())?;
    text([left, right].concat())
}

fn concat(args: &Args<'_>) -> Result<Datum, ValueError> {
    text(texts::concat(&borrowed(&forms(args, 0)))?)
}

/// How many arguments are NULL, or are not.
fn nulls(args: &Args<'_>, is_null: bool) -> Result<Datum, ValueError> {
    count((0..args.len()).filter(|at| args.is_null(*at) == is_null).count())
}

fn concat_ws(args: &Args<'_>) -> Result<Datum, ValueError> {
    texts::concat_ws(optional(args, 0)?, &borrowed(&forms(args, 1)))?.map_or(Ok(Datum::Null), text)
}

fn format(args: &Args<'_>) -> Result<Datum, ValueError> {
    let Some(format) = optional(args, 0)? else { return Ok(Datum::Null) };
    text(texts::format(format, &borrowed(&forms(args, 1)))?)
}

/// The fields of a text; `None` if it is NULL.
fn fields<'a>(args: &Args<'a>) -> Result<Option<Vec<Option<&'a str>>>, ValueError> {
    let Some(value) = optional(args, 0)? else { return Ok(None) };
    Ok(Some(texts::string_to_array(value, optional(args, 1)?, optional(args, 2)?)))
}

fn string_to_array(args: &Args<'_>) -> Result<Datum, ValueError> {
    fields(args)?.map_or(Ok(Datum::Null), text_array)
}

fn string_to_table(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let fields = fields(args)?.unwrap_or_default();
    Ok(rows(fields.into_iter().map(nullable).collect()))
}

fn array_to_string(args: &Args<'_>) -> Result<Datum, ValueError> {
    if args.is_null(0) || args.is_null(1) {
        return Ok(Datum::Null);
    }
    let array = args.array(0)?;
    let element = T::new(array.element());
    let form = |value: &Datum| (!value.is_null()).then(|| Cow::Owned(wire::show(value, element, args.env())));
    let forms: Vec<Option<Cow<'_, str>>> = array.elements().iter().map(form).collect();
    text(texts::array_to_string(&borrowed(&forms), args.text(1)?, optional(args, 2)?)?)
}

/// PostgreSQL allocates two bytes for each byte of the text.
fn quote(value: &str) -> Result<Datum, ValueError> {
    check_alloc(value.len().saturating_mul(2))?;
    text(texts::quote_literal(value))
}

fn quote_nullable(args: &Args<'_>) -> Result<Datum, ValueError> {
    if args.is_null(0) { text(texts::quote_nullable(None)) } else { quote(&cast(args, 0)?) }
}

fn parse_ident(args: &Args<'_>) -> Result<Datum, ValueError> {
    let parts = texts::parse_ident(args.text(0)?, args.bool(1)?)?;
    text_array(parts.iter().map(|part| Some(part.as_str())).collect())
}
