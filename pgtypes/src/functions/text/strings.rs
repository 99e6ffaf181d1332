//! Parts, lengths and forms of texts.

use super::{boolean, count, int, text};
use crate::datum::{Datum, unpadded};
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, scalar};
use crate::hash::hash;
use crate::letters;
use crate::sql_type::SqlType as T;
use crate::text::{self as texts, check_alloc};

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    scalar(1258, "textcat", &[T::TEXT, T::TEXT], T::TEXT, cat),
    scalar(1257, "textlen", &[T::TEXT], T::INT4, length),
    scalar(1317, "length", &[T::TEXT], T::INT4, length),
    scalar(1369, "character_length", &[T::TEXT], T::INT4, length),
    scalar(1381, "char_length", &[T::TEXT], T::INT4, length),
    scalar(1318, "length", &[T::BPCHAR], T::INT4, unpadded_length),
    scalar(1367, "character_length", &[T::BPCHAR], T::INT4, unpadded_length),
    scalar(1372, "char_length", &[T::BPCHAR], T::INT4, unpadded_length),
    scalar(1374, "octet_length", &[T::TEXT], T::INT4, |args| count(args.text(0)?.len())),
    scalar(1375, "octet_length", &[T::BPCHAR], T::INT4, |args| count(args.text(0)?.len())),
    scalar(1811, "bit_length", &[T::TEXT], T::INT4, |args| count(args.text(0)?.len().saturating_mul(8))),
    scalar(400, "hashtext", &[T::TEXT], T::INT4, short_hash),
    scalar(448, "hashtextextended", &[T::TEXT, T::INT8], T::INT8, |args| {
        Ok(Datum::Int(hash(args.text(0)?.as_bytes(), args.int(1)?.cast_unsigned()).cast_signed()))
    }),
    scalar(870, "lower", &[T::TEXT], T::TEXT, |args| cased(args, letters::lower)),
    scalar(871, "upper", &[T::TEXT], T::TEXT, |args| cased(args, letters::upper)),
    scalar(872, "initcap", &[T::TEXT], T::TEXT, |args| cased(args, texts::initcap)),
    scalar(877, "substr", &[T::TEXT, T::INT4, T::INT4], T::TEXT, substr_to),
    scalar(883, "substr", &[T::TEXT, T::INT4], T::TEXT, substr),
    scalar(936, "substring", &[T::TEXT, T::INT4, T::INT4], T::TEXT, substr_to),
    scalar(937, "substring", &[T::TEXT, T::INT4], T::TEXT, substr),
    scalar(1404, "overlay", &[T::TEXT, T::TEXT, T::INT4, T::INT4], T::TEXT, |args| overlay(args, Some(args.i32(3)?))),
    scalar(1405, "overlay", &[T::TEXT, T::TEXT, T::INT4], T::TEXT, |args| overlay(args, None)),
    scalar(849, "position", &[T::TEXT, T::TEXT], T::INT4, position),
    scalar(868, "strpos", &[T::TEXT, T::TEXT], T::INT4, position),
    scalar(3696, "starts_with", &[T::TEXT, T::TEXT], T::BOOL, starts_with),
    scalar(884, "btrim", &[T::TEXT, T::TEXT], T::TEXT, |args| text(texts::btrim(args.text(0)?, args.text(1)?))),
    scalar(875, "ltrim", &[T::TEXT, T::TEXT], T::TEXT, |args| text(texts::ltrim(args.text(0)?, args.text(1)?))),
    scalar(876, "rtrim", &[T::TEXT, T::TEXT], T::TEXT, |args| text(texts::rtrim(args.text(0)?, args.text(1)?))),
    scalar(885, "btrim", &[T::TEXT], T::TEXT, |args| text(args.text(0)?.trim_matches(' '))),
    scalar(881, "ltrim", &[T::TEXT], T::TEXT, |args| text(args.text(0)?.trim_start_matches(' '))),
    scalar(882, "rtrim", &[T::TEXT], T::TEXT, |args| text(args.text(0)?.trim_end_matches(' '))),
    scalar(873, "lpad", &[T::TEXT, T::INT4, T::TEXT], T::TEXT, |args| lpad(args, args.text(2)?)),
    scalar(879, "lpad", &[T::TEXT, T::INT4], T::TEXT, |args| lpad(args, " ")),
    scalar(874, "rpad", &[T::TEXT, T::INT4, T::TEXT], T::TEXT, |args| rpad(args, args.text(2)?)),
    scalar(880, "rpad", &[T::TEXT, T::INT4], T::TEXT, |args| rpad(args, " ")),
    scalar(3060, "left", &[T::TEXT, T::INT4], T::TEXT, |args| text(texts::left(args.text(0)?, args.i32(1)?))),
    scalar(3061, "right", &[T::TEXT, T::INT4], T::TEXT, |args| text(texts::right(args.text(0)?, args.i32(1)?))),
    scalar(1622, "repeat", &[T::TEXT, T::INT4], T::TEXT, |args| text(texts::repeat(args.text(0)?, args.i32(1)?)?)),
    scalar(2087, "replace", &[T::TEXT, T::TEXT, T::TEXT], T::TEXT, replace),
    scalar(3062, "reverse", &[T::TEXT], T::TEXT, |args| text(texts::reverse(args.text(0)?))),
    scalar(878, "translate", &[T::TEXT, T::TEXT, T::TEXT], T::TEXT, translate),
    scalar(2088, "split_part", &[T::TEXT, T::TEXT, T::INT4], T::TEXT, split_part),
    scalar(1620, "ascii", &[T::TEXT], T::INT4, |args| int(texts::ascii(args.text(0)?))),
    scalar(1621, "chr", &[T::INT4], T::TEXT, |args| text(texts::chr(args.i32(0)?)?)),
    scalar(2311, "md5", &[T::TEXT], T::TEXT, |args| text(texts::hash::md5(args.text(0)?.as_bytes()))),
    scalar(6198, "unistr", &[T::TEXT], T::TEXT, |args| text(texts::unistr(args.text(0)?)?)),
];

/// The lower half of the hash.
fn short_hash(args: &Args<'_>) -> Result<Datum, ValueError> {
    let [a, b, c, d, ..] = hash(args.text(0)?.as_bytes(), 0).to_le_bytes();
    int(i32::from_le_bytes([a, b, c, d]))
}

fn cat(args: &Args<'_>) -> Result<Datum, ValueError> {
    let (left, right) = (args.text(0)?, args.text(1)?);
    check_alloc(left.len() + right.len())?;
    text([left, right].concat())
}

fn length(args: &Args<'_>) -> Result<Datum, ValueError> {
    count(args.text(0)?.chars().count())
}

/// The blanks at the end of a `character` do not count.
fn unpadded_length(args: &Args<'_>) -> Result<Datum, ValueError> {
    count(unpadded(args.text(0)?).chars().count())
}

/// PostgreSQL allocates four bytes for each byte of the text.
fn cased(args: &Args<'_>, map: fn(&str) -> String) -> Result<Datum, ValueError> {
    let value = args.text(0)?;
    check_alloc(value.len().saturating_mul(4))?;
    text(map(value))
}

fn substr(args: &Args<'_>) -> Result<Datum, ValueError> {
    text(texts::substr(args.text(0)?, args.i32(1)?))
}

fn substr_to(args: &Args<'_>) -> Result<Datum, ValueError> {
    text(texts::substr_to(args.text(0)?, args.i32(1)?, args.i32(2)?)?)
}

fn overlay(args: &Args<'_>, length: Option<i32>) -> Result<Datum, ValueError> {
    text(texts::overlay(args.text(0)?, args.text(1)?, args.i32(2)?, length)?)
}

fn position(args: &Args<'_>) -> Result<Datum, ValueError> {
    int(texts::position(args.text(0)?, args.text(1)?))
}

fn starts_with(args: &Args<'_>) -> Result<Datum, ValueError> {
    boolean(texts::starts_with(args.text(0)?, args.text(1)?))
}

fn lpad(args: &Args<'_>, fill: &str) -> Result<Datum, ValueError> {
    text(texts::lpad(args.text(0)?, args.i32(1)?, fill)?)
}

fn rpad(args: &Args<'_>, fill: &str) -> Result<Datum, ValueError> {
    text(texts::rpad(args.text(0)?, args.i32(1)?, fill)?)
}

fn replace(args: &Args<'_>) -> Result<Datum, ValueError> {
    text(texts::replace(args.text(0)?, args.text(1)?, args.text(2)?)?)
}

/// PostgreSQL allocates four bytes for each byte of the text.
fn translate(args: &Args<'_>) -> Result<Datum, ValueError> {
    let value = args.text(0)?;
    check_alloc(value.len().saturating_mul(4))?;
    text(texts::translate(value, args.text(1)?, args.text(2)?))
}

fn split_part(args: &Args<'_>) -> Result<Datum, ValueError> {
    text(texts::split_part(args.text(0)?, args.text(1)?, args.i32(2)?)?)
}
