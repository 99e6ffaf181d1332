//! Regular expressions, and SIMILAR TO by way of them.

use std::rc::Rc;

use super::{boolean, cache, i32_or, int, nullable, rows, text, text_array, text_or};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, ScalarFn, SetRows, scalar, set};
use crate::sql_type::SqlType as T;
use crate::text::regex::{MatchPlace, Regex, RegexOptions, ReplacePlace};
use crate::text::{Escape, similar_to_regex};

const fn text_row(oid: u32, name: &'static str, run: ScalarFn) -> ProcRow {
    scalar(oid, name, &[T::TEXT, T::TEXT], T::BOOL, run)
}

const fn name_row(oid: u32, name: &'static str, run: ScalarFn) -> ProcRow {
    scalar(oid, name, &[T::NAME, T::TEXT], T::BOOL, run)
}

const fn padded_row(oid: u32, name: &'static str, run: ScalarFn) -> ProcRow {
    scalar(oid, name, &[T::BPCHAR, T::TEXT], T::BOOL, run)
}

/// A text, a pattern, a position, a number of the match, `endoption`, options, a group.
const INSTR: &[T] = &[T::TEXT, T::TEXT, T::INT4, T::INT4, T::INT4, T::TEXT, T::INT4];
/// A text, a pattern, a position, a number of the match, options, a group.
const SUBSTR: &[T] = &[T::TEXT, T::TEXT, T::INT4, T::INT4, T::TEXT, T::INT4];
/// A text, a pattern, its replacement, a position, a number of the match, options.
const REPLACE: &[T] = &[T::TEXT, T::TEXT, T::TEXT, T::INT4, T::INT4, T::TEXT];

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    text_row(1254, "textregexeq", |args| boolean(is_match(args, false)?)),
    text_row(1256, "textregexne", |args| boolean(!is_match(args, false)?)),
    text_row(1238, "texticregexeq", |args| boolean(is_match(args, true)?)),
    text_row(1239, "texticregexne", |args| boolean(!is_match(args, true)?)),
    name_row(79, "nameregexeq", |args| boolean(is_match(args, false)?)),
    name_row(1252, "nameregexne", |args| boolean(!is_match(args, false)?)),
    name_row(1240, "nameicregexeq", |args| boolean(is_match(args, true)?)),
    name_row(1241, "nameicregexne", |args| boolean(!is_match(args, true)?)),
    padded_row(1658, "bpcharregexeq", |args| boolean(is_match(args, false)?)),
    padded_row(1659, "bpcharregexne", |args| boolean(!is_match(args, false)?)),
    padded_row(1656, "bpcharicregexeq", |args| boolean(is_match(args, true)?)),
    padded_row(1657, "bpcharicregexne", |args| boolean(!is_match(args, true)?)),
    scalar(2073, "substring", &[T::TEXT, T::TEXT], T::TEXT, |args| substring(args, args.text(1)?)),
    scalar(2074, "substring", &[T::TEXT, T::TEXT, T::TEXT], T::TEXT, |args| {
        substring(args, &similar_to_regex(args.text(1)?, Escape::parse(args.text(2)?)?)?)
    }),
    scalar(1987, "similar_to_escape", &[T::TEXT], T::TEXT, similar),
    scalar(1986, "similar_to_escape", &[T::TEXT, T::TEXT], T::TEXT, similar),
    scalar(1623, "similar_escape", &[T::TEXT, T::TEXT], T::TEXT, similar).on_null(),
    scalar(2284, "regexp_replace", &[T::TEXT, T::TEXT, T::TEXT], T::TEXT, replace),
    scalar(2285, "regexp_replace", &[T::TEXT, T::TEXT, T::TEXT, T::TEXT], T::TEXT, replace),
    scalar(6253, "regexp_replace", REPLACE.split_at(4).0, T::TEXT, replace_at),
    scalar(6252, "regexp_replace", REPLACE.split_at(5).0, T::TEXT, replace_at),
    scalar(6251, "regexp_replace", REPLACE, T::TEXT, replace_at),
    scalar(3396, "regexp_match", &[T::TEXT, T::TEXT], T::TEXT_ARRAY, first_match),
    scalar(3397, "regexp_match", &[T::TEXT, T::TEXT, T::TEXT], T::TEXT_ARRAY, first_match),
    set(2763, "regexp_matches", &[T::TEXT, T::TEXT], T::TEXT_ARRAY, all_matches),
    set(2764, "regexp_matches", &[T::TEXT, T::TEXT, T::TEXT], T::TEXT_ARRAY, all_matches),
    scalar(2767, "regexp_split_to_array", &[T::TEXT, T::TEXT], T::TEXT_ARRAY, split_to_array),
    scalar(2768, "regexp_split_to_array", &[T::TEXT, T::TEXT, T::TEXT], T::TEXT_ARRAY, split_to_array),
    set(2765, "regexp_split_to_table", &[T::TEXT, T::TEXT], T::TEXT, split_to_table),
    set(2766, "regexp_split_to_table", &[T::TEXT, T::TEXT, T::TEXT], T::TEXT, split_to_table),
    scalar(6254, "regexp_count", &[T::TEXT, T::TEXT], T::INT4, count),
    scalar(6255, "regexp_count", &[T::TEXT, T::TEXT, T::INT4], T::INT4, count),
    scalar(6256, "regexp_count", &[T::TEXT, T::TEXT, T::INT4, T::TEXT], T::INT4, count),
    scalar(6257, "regexp_instr", INSTR.split_at(2).0, T::INT4, instr),
    scalar(6258, "regexp_instr", INSTR.split_at(3).0, T::INT4, instr),
    scalar(6259, "regexp_instr", INSTR.split_at(4).0, T::INT4, instr),
    scalar(6260, "regexp_instr", INSTR.split_at(5).0, T::INT4, instr),
    scalar(6261, "regexp_instr", INSTR.split_at(6).0, T::INT4, instr),
    scalar(6262, "regexp_instr", INSTR, T::INT4, instr),
    text_row(6263, "regexp_like", like),
    scalar(6264, "regexp_like", &[T::TEXT, T::TEXT, T::TEXT], T::BOOL, like),
    scalar(6265, "regexp_substr", SUBSTR.split_at(2).0, T::TEXT, substr),
    scalar(6266, "regexp_substr", SUBSTR.split_at(3).0, T::TEXT, substr),
    scalar(6267, "regexp_substr", SUBSTR.split_at(4).0, T::TEXT, substr),
    scalar(6268, "regexp_substr", SUBSTR.split_at(5).0, T::TEXT, substr),
    scalar(6269, "regexp_substr", SUBSTR, T::TEXT, substr),
];

/// The pattern of a call, with its options.
fn regex(args: &Args<'_>, options: RegexOptions) -> Result<Rc<Regex>, ValueError> {
    cache::regex(args.text(1)?, options)
}

/// The blanks of a `character` count.
fn is_match(args: &Args<'_>, fold: bool) -> Result<bool, ValueError> {
    regex(args, RegexOptions::operator(fold))?.is_match(args.text(0)?)
}

fn like(args: &Args<'_>) -> Result<Datum, ValueError> {
    let options = RegexOptions::parse_single(text_or(args, 2, "")?, "regexp_like")?;
    boolean(regex(args, options)?.is_match(args.text(0)?)?)
}

fn substring(args: &Args<'_>, pattern: &str) -> Result<Datum, ValueError> {
    let regex = cache::regex(pattern, RegexOptions::default())?;
    Ok(nullable(regex.substring(args.text(0)?)?))
}

/// The regular expression for a pattern of SIMILAR TO. For `similar_escape`, NULL is the default escape character.
fn similar(args: &Args<'_>) -> Result<Datum, ValueError> {
    if args.is_null(0) {
        return Ok(Datum::Null);
    }
    let escape = if args.is_null(1) { Escape::Default } else { Escape::parse(args.text(1)?)? };
    text(similar_to_regex(args.text(0)?, escape)?)
}

fn replace(args: &Args<'_>) -> Result<Datum, ValueError> {
    let options = RegexOptions::parse_replace(text_or(args, 3, "")?)?;
    let place = ReplacePlace::all(options.global);
    text(regex(args, options)?.replace(args.text(0)?, args.text(2)?, place)?)
}

/// With a position. Without a number of the match the first one is replaced.
fn replace_at(args: &Args<'_>) -> Result<Datum, ValueError> {
    let place = ReplacePlace::new(args.i32(3)?, i32_or(args, 4, 1)?)?;
    let options = RegexOptions::parse(text_or(args, 5, "")?)?;
    text(regex(args, options)?.replace(args.text(0)?, args.text(2)?, place)?)
}

fn first_match(args: &Args<'_>) -> Result<Datum, ValueError> {
    let options = RegexOptions::parse_single(text_or(args, 2, "")?, "regexp_match")?;
    let regex = regex(args, options)?;
    regex.first(args.text(0)?)?.map_or(Ok(Datum::Null), text_array)
}

fn all_matches(args: &Args<'_>) -> Result<SetRows, ValueError> {
    let options = RegexOptions::parse(text_or(args, 2, "")?)?;
    let regex = regex(args, options)?;
    let found = regex.matches(args.text(0)?, options.global)?;
    Ok(rows(found.into_iter().map(text_array).collect::<Result<_, _>>()?))
}

fn split<'a>(args: &Args<'a>, function: &str) -> Result<Vec<&'a str>, ValueError> {
    let options = RegexOptions::parse_single(text_or(args, 2, "")?, function)?;
    regex(args, options)?.split(args.text(0)?)
}

fn split_to_array(args: &Args<'_>) -> Result<Datum, ValueError> {
    text_array(split(args, "regexp_split_to_array")?.into_iter().map(Some).collect())
}

fn split_to_table(args: &Args<'_>) -> Result<SetRows, ValueError> {
    Ok(rows(split(args, "regexp_split_to_table")?.into_iter().map(Datum::text).collect()))
}

fn count(args: &Args<'_>) -> Result<Datum, ValueError> {
    let place = MatchPlace::from(i32_or(args, 2, 1)?)?;
    let options = RegexOptions::parse_single(text_or(args, 3, "")?, "regexp_count")?;
    int(regex(args, options)?.count(args.text(0)?, place)?)
}

fn instr(args: &Args<'_>) -> Result<Datum, ValueError> {
    let place = MatchPlace::new(i32_or(args, 2, 1)?, i32_or(args, 3, 1)?, i32_or(args, 4, 0)?, i32_or(args, 6, 0)?)?;
    let options = RegexOptions::parse_single(text_or(args, 5, "")?, "regexp_instr")?;
    int(regex(args, options)?.instr(args.text(0)?, place)?)
}

fn substr(args: &Args<'_>) -> Result<Datum, ValueError> {
    let place = MatchPlace::new(i32_or(args, 2, 1)?, i32_or(args, 3, 1)?, 0, i32_or(args, 5, 0)?)?;
    let options = RegexOptions::parse_single(text_or(args, 4, "")?, "regexp_substr")?;
    let regex = regex(args, options)?;
    Ok(nullable(regex.substr(args.text(0)?, place)?))
}
