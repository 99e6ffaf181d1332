//! Casts between types: PostgreSQL's `pg_cast` for the supported types, and casts through text.

use crate::datum::Datum;
use crate::error::ValueError;
use crate::input::{self, int_range};
use crate::output;
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;
use crate::timestamp::{Now, TimeZone};

/// The context in which a cast may be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Anywhere in an expression.
    Implicit,
    /// Storing a value into a column.
    Assignment,
    /// Only with CAST or `::`.
    Explicit,
}

/// The weakest context in which `from` casts to `to`; `None` if it never does. Ignores type modifiers.
pub fn cast_context(from: SqlType, to: SqlType) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    use SqlType::{Bool, Float8, Int2, Int4, Int8};
    if from.base() == to.base() {
        return Some(Implicit);
    }
    Some(match (from, to) {
        (SqlType::Unknown, _) => Implicit,
        (_, SqlType::Unknown) => return None,
        (Int2, Int4 | Int8 | Float8) | (Int4, Int8 | Float8) | (Int8, Float8) => Implicit,
        (Int4, Int2) | (Int8, Int2 | Int4) | (Float8, Int2 | Int4 | Int8) => Assignment,
        (Bool, Int4) | (Int4, Bool) => Explicit,
        (SqlType::Text, SqlType::Varchar(_)) | (SqlType::Varchar(_), SqlType::Text) => Implicit,
        (_, SqlType::Text | SqlType::Varchar(_)) => Assignment,
        (SqlType::Text | SqlType::Varchar(_), _) => Explicit,
        _ => return None,
    })
}

/// The environment of a cast.
#[derive(Clone, Copy)]
pub struct CastEnv<'a> {
    /// The session's time zone.
    pub zone: &'a TimeZone,
    /// The meaning of `'now'`.
    pub now: Now,
}

/// Executes a cast that [`cast_context`] allows. Text too long for `varchar(n)` is truncated by an explicit cast and is
/// 22001 in an assignment.
pub fn cast(value: Datum, to: SqlType, explicit: bool, env: CastEnv<'_>) -> Result<Datum, ValueError> {
    match (value, to) {
        (Datum::Null, _) => Ok(Datum::Null),
        (Datum::Int(v), SqlType::Int2 | SqlType::Int4 | SqlType::Int8) => to_int(v, to),
        (Datum::Float(v), SqlType::Int2 | SqlType::Int4 | SqlType::Int8) => float_to_int(v, to),
        (Datum::Int(v), SqlType::Float8) => Ok(Datum::Float(int_to_float(v))),
        (Datum::Int(v), SqlType::Bool) => Ok(Datum::Bool(v != 0)),
        (Datum::Bool(v), SqlType::Int4) => Ok(Datum::Int(i64::from(v))),
        (Datum::Bool(v), SqlType::Text | SqlType::Varchar(_)) => {
            limit_text(if v { "true" } else { "false" }.into(), to, explicit)
        }
        (Datum::Text(text), SqlType::Text | SqlType::Varchar(_) | SqlType::Unknown) => limit_text(text, to, explicit),
        (Datum::Text(text), _) => input::parse(to, &text, env.zone, env.now),
        (value, SqlType::Text | SqlType::Varchar(_)) => {
            limit_text(output::to_text(&value, env.zone).into_boxed_str(), to, explicit)
        }
        (value, _) => Ok(value),
    }
}

fn out_of_range(ty: SqlType) -> ValueError {
    ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{} out of range", ty.base_name()))
}

/// An integer as a value of a possibly narrower integer type.
pub fn to_int(value: i64, ty: SqlType) -> Result<Datum, ValueError> {
    let (low, high) = int_range(ty);
    if (low..=high).contains(&value) { Ok(Datum::Int(value)) } else { Err(out_of_range(ty)) }
}

/// The nearest float. Not exact above 2^53, as in PostgreSQL.
pub fn int_to_float(value: i64) -> f64 {
    value as f64
}

fn float_to_int(value: f64, ty: SqlType) -> Result<Datum, ValueError> {
    let rounded = value.round_ties_even();
    // The upper bound 2^63 is exact as a float, and excluded.
    let (low, end) = match ty {
        SqlType::Int2 => (-32_768.0, 32_768.0),
        SqlType::Int4 => (-2_147_483_648.0, 2_147_483_648.0),
        _ => (-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0),
    };
    if rounded.is_nan() || rounded < low || rounded >= end {
        return Err(out_of_range(ty));
    }
    // Checked against the type's range above.
    Ok(Datum::Int(rounded as i64))
}

/// Applies the limit of a varchar. Surplus blanks are always truncated, other characters only by an explicit cast.
fn limit_text(text: Box<str>, ty: SqlType, explicit: bool) -> Result<Datum, ValueError> {
    let SqlType::Varchar(Some(limit)) = ty else { return Ok(Datum::Text(text)) };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // A text has at least as many bytes as characters.
    if text.len() <= limit {
        return Ok(Datum::Text(text));
    }
    let Some((cut, _)) = text.char_indices().nth(limit) else { return Ok(Datum::Text(text)) };
    if explicit || text[cut..].bytes().all(|b| b == b' ') {
        return Ok(Datum::Text(text[..cut].into()));
    }
    let message = format!("value too long for type {}", ty.name());
    Err(ValueError::new(SqlState::STRING_DATA_RIGHT_TRUNCATION, message))
}
