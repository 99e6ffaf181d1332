//! Casts between types: PostgreSQL's `pg_cast`, casts through text, and what a modifier does to a value.

use crate::datum::{Datum, Repr, unpadded};
use crate::error::ValueError;
use crate::integer::int_range;
use crate::oid::Oid;
use crate::row::{Category, IoEnv};
use crate::sql_type::SqlType;
use crate::sqlstate::SqlState;
use crate::{string, wire};

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

impl CastContext {
    /// The letter in `pg_cast`.
    pub fn letter(self) -> char {
        match self {
            CastContext::Implicit => 'i',
            CastContext::Assignment => 'a',
            CastContext::Explicit => 'e',
        }
    }
}

/// Converts a value that is not NULL.
type CastFn = fn(Datum, SqlType, &IoEnv<'_>) -> Result<Datum, ValueError>;

/// How a value becomes one of another type.
#[derive(Clone, Copy, Debug)]
enum Method {
    /// The value is the same.
    Relabel,
    /// By the text form of both types.
    Text,
    /// By a function.
    Function(CastFn),
}

/// A row of `pg_cast`.
#[derive(Clone, Copy, Debug)]
pub struct CastRow {
    /// The type of the value.
    pub from: Oid,
    /// The type that it gets.
    pub to: Oid,
    /// Where the cast is applied.
    pub context: CastContext,
    method: Method,
}

/// A cast between two types, with their modifiers.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// The type of the value.
    pub from: SqlType,
    /// The type that it gets, with the modifier that is applied.
    pub to: SqlType,
    /// Whether it was written by the user. It truncates what an assignment refuses.
    pub is_explicit: bool,
    method: Method,
}

impl PartialEq for Cast {
    /// The types determine the rest.
    fn eq(&self, other: &Cast) -> bool {
        (self.from, self.to, self.is_explicit) == (other.from, other.to, other.is_explicit)
    }
}

const fn row(from: SqlType, to: SqlType, context: CastContext, method: Method) -> CastRow {
    CastRow { from: from.oid, to: to.oid, context, method }
}

use CastContext::{Assignment, Explicit, Implicit};

/// The casts, but those between every type and the strings, which go through text.
static ROWS: &[CastRow] = &[
    row(SqlType::INT2, SqlType::INT4, Implicit, Method::Relabel),
    row(SqlType::INT2, SqlType::INT8, Implicit, Method::Relabel),
    row(SqlType::INT4, SqlType::INT8, Implicit, Method::Relabel),
    row(SqlType::INT4, SqlType::INT2, Assignment, Method::Function(to_narrower)),
    row(SqlType::INT8, SqlType::INT2, Assignment, Method::Function(to_narrower)),
    row(SqlType::INT8, SqlType::INT4, Assignment, Method::Function(to_narrower)),
    row(SqlType::INT2, SqlType::FLOAT4, Implicit, Method::Function(int_to_real)),
    row(SqlType::INT4, SqlType::FLOAT4, Implicit, Method::Function(int_to_real)),
    row(SqlType::INT8, SqlType::FLOAT4, Implicit, Method::Function(int_to_real)),
    row(SqlType::INT2, SqlType::FLOAT8, Implicit, Method::Function(int_to_double)),
    row(SqlType::INT4, SqlType::FLOAT8, Implicit, Method::Function(int_to_double)),
    row(SqlType::INT8, SqlType::FLOAT8, Implicit, Method::Function(int_to_double)),
    row(SqlType::FLOAT4, SqlType::FLOAT8, Implicit, Method::Relabel),
    row(SqlType::FLOAT8, SqlType::FLOAT4, Assignment, Method::Function(to_real)),
    row(SqlType::FLOAT4, SqlType::INT2, Assignment, Method::Function(float_to_int)),
    row(SqlType::FLOAT4, SqlType::INT4, Assignment, Method::Function(float_to_int)),
    row(SqlType::FLOAT4, SqlType::INT8, Assignment, Method::Function(float_to_int)),
    row(SqlType::FLOAT8, SqlType::INT2, Assignment, Method::Function(float_to_int)),
    row(SqlType::FLOAT8, SqlType::INT4, Assignment, Method::Function(float_to_int)),
    row(SqlType::FLOAT8, SqlType::INT8, Assignment, Method::Function(float_to_int)),
    row(SqlType::INT2, SqlType::OID, Implicit, Method::Function(to_oid)),
    row(SqlType::INT4, SqlType::OID, Implicit, Method::Function(to_oid)),
    row(SqlType::INT8, SqlType::OID, Implicit, Method::Function(to_oid)),
    row(SqlType::OID, SqlType::INT4, Assignment, Method::Function(oid_to_int4)),
    row(SqlType::OID, SqlType::INT8, Assignment, Method::Relabel),
    row(SqlType::INT4, SqlType::BOOL, Explicit, Method::Function(int_to_bool)),
    row(SqlType::BOOL, SqlType::INT4, Explicit, Method::Function(bool_to_int)),
    row(SqlType::BOOL, SqlType::TEXT, Assignment, Method::Function(bool_to_text)),
    row(SqlType::BOOL, SqlType::VARCHAR, Assignment, Method::Function(bool_to_text)),
    row(SqlType::BOOL, SqlType::BPCHAR, Assignment, Method::Function(bool_to_text)),
    row(SqlType::TEXT, SqlType::VARCHAR, Implicit, Method::Relabel),
    row(SqlType::VARCHAR, SqlType::TEXT, Implicit, Method::Relabel),
    row(SqlType::TEXT, SqlType::BPCHAR, Implicit, Method::Function(to_padded)),
    row(SqlType::VARCHAR, SqlType::BPCHAR, Implicit, Method::Function(to_padded)),
    row(SqlType::BPCHAR, SqlType::TEXT, Implicit, Method::Function(from_padded)),
    row(SqlType::BPCHAR, SqlType::VARCHAR, Implicit, Method::Function(from_padded)),
    row(SqlType::NAME, SqlType::TEXT, Implicit, Method::Relabel),
    row(SqlType::NAME, SqlType::BPCHAR, Assignment, Method::Function(to_padded)),
    row(SqlType::NAME, SqlType::VARCHAR, Assignment, Method::Relabel),
    row(SqlType::TEXT, SqlType::NAME, Implicit, Method::Text),
    row(SqlType::VARCHAR, SqlType::NAME, Implicit, Method::Text),
    row(SqlType::BPCHAR, SqlType::NAME, Implicit, Method::Function(padded_to_name)),
    row(SqlType::CHAR, SqlType::TEXT, Implicit, Method::Relabel),
    row(SqlType::CHAR, SqlType::VARCHAR, Assignment, Method::Relabel),
    row(SqlType::CHAR, SqlType::BPCHAR, Assignment, Method::Function(to_padded)),
    row(SqlType::TEXT, SqlType::CHAR, Assignment, Method::Text),
    row(SqlType::VARCHAR, SqlType::CHAR, Assignment, Method::Text),
    row(SqlType::BPCHAR, SqlType::CHAR, Assignment, Method::Text),
];

/// The rows of `pg_cast`.
pub fn rows() -> &'static [CastRow] {
    ROWS
}

/// The weakest context in which `from` casts to `to`; `None` if it never does. Ignores type modifiers.
pub fn cast_context(from: SqlType, to: SqlType) -> Option<CastContext> {
    method(from, to).map(|(context, _)| context)
}

fn method(from: SqlType, to: SqlType) -> Option<(CastContext, Method)> {
    if from.oid == to.oid {
        return Some((Implicit, Method::Relabel));
    }
    if let Some(row) = ROWS.iter().find(|row| (row.from, row.to) == (from.oid, to.oid)) {
        return Some((row.context, row.method));
    }
    let is_string = |ty: SqlType| ty.row().category == Category::String;
    let has_values = |ty: SqlType| ty.row().repr != Repr::None;
    if to == SqlType::UNKNOWN || !has_values(from) || to.row().category == Category::Pseudo {
        return None;
    }
    // Every type has a text form.
    match () {
        () if from == SqlType::UNKNOWN => Some((Implicit, Method::Text)),
        () if is_string(to) => Some((Assignment, Method::Text)),
        () if is_string(from) => Some((Explicit, Method::Text)),
        () => None,
    }
}

impl Cast {
    /// The cast from a type to another one, in any context; `None` if there is none.
    pub fn find(from: SqlType, to: SqlType, is_explicit: bool) -> Option<Cast> {
        method(from, to).map(|(_, method)| Cast { from, to, is_explicit, method })
    }

    /// Converts a value.
    ///
    /// # Errors
    /// Those of the types. Text too long for a length is truncated by an explicit cast and is 22001 in an assignment.
    pub fn apply(&self, value: Datum, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
        if value.is_null() {
            return Ok(value);
        }
        let value = match self.method {
            Method::Relabel => value,
            Method::Function(function) => function(value, self.to, env)?,
            Method::Text => match value {
                // The text of an unknown literal is its value.
                Datum::Text(text) if self.from.row().category == Category::String || self.from == SqlType::UNKNOWN => {
                    wire::parse(self.to, &text, env)?
                }
                Datum::Padded(text) => wire::parse(self.to, &text, env)?,
                value => wire::parse(self.to, &wire::show(&value, self.from, env), env)?,
            },
        };
        modify(value, self.to, self.is_explicit)
    }
}

/// Applies the modifier of a type.
fn modify(value: Datum, ty: SqlType, is_explicit: bool) -> Result<Datum, ValueError> {
    if ty.typmod < 0 {
        return Ok(value);
    }
    match value {
        Datum::Text(text) => string::limit_varchar(text, ty, is_explicit),
        Datum::Padded(text) => string::pad_char(text, ty, is_explicit),
        value => Ok(value),
    }
}

fn mismatch() -> ValueError {
    ValueError::internal("a cast got a value of another type")
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

fn int(value: &Datum) -> Result<i64, ValueError> {
    if let Datum::Int(value) = value { Ok(*value) } else { Err(mismatch()) }
}

fn float(value: &Datum) -> Result<f64, ValueError> {
    if let Datum::Float(value) = value { Ok(*value) } else { Err(mismatch()) }
}

fn to_narrower(value: Datum, to: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    to_int(int(&value)?, to)
}

fn int_to_double(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Float(int_to_float(int(&value)?)))
}

fn int_to_real(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Float((int(&value)? as f32).into()))
}

fn to_real(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let wide = float(&value)?;
    let narrow = crate::float::narrow(wide);
    let problem = match () {
        () if narrow.is_infinite() && wide.is_finite() => "overflow",
        () if narrow == 0.0 && wide != 0.0 => "underflow",
        () => return Ok(Datum::Float(narrow.into())),
    };
    Err(ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {problem}")))
}

fn float_to_int(value: Datum, to: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let rounded = float(&value)?.round_ties_even();
    // The upper bound 2^63 is exact as a float, and excluded.
    let (low, end) = match to.base() {
        SqlType::INT2 => (-32_768.0, 32_768.0),
        SqlType::INT4 => (-2_147_483_648.0, 2_147_483_648.0),
        _ => (-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0),
    };
    if rounded.is_nan() || rounded < low || rounded >= end {
        return Err(out_of_range(to));
    }
    // Checked against the type's range above.
    Ok(Datum::Int(rounded as i64))
}

fn to_oid(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    match int(&value)? {
        value if (0..=i64::from(u32::MAX)).contains(&value) => Ok(Datum::Int(value)),
        // A negative integer is the OID of the same bits.
        value if (i64::from(i32::MIN)..0).contains(&value) => Ok(Datum::Int(value & i64::from(u32::MAX))),
        _ => Err(ValueError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "OID out of range")),
    }
}

fn oid_to_int4(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let bits = u32::try_from(int(&value)?).map_err(|_| mismatch())?;
    Ok(Datum::Int(bits.cast_signed().into()))
}

fn int_to_bool(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Bool(int(&value)? != 0))
}

fn bool_to_int(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    Ok(Datum::Int(i64::from(value == Datum::Bool(true))))
}

fn bool_to_text(value: Datum, to: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let text: Box<str> = if value == Datum::Bool(true) { "true" } else { "false" }.into();
    Ok(if to.oid == SqlType::BPCHAR.oid { Datum::Padded(text) } else { Datum::Text(text) })
}

fn to_padded(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    if let Datum::Text(text) = value { Ok(Datum::Padded(text)) } else { Err(mismatch()) }
}

fn from_padded(value: Datum, _: SqlType, _: &IoEnv<'_>) -> Result<Datum, ValueError> {
    if let Datum::Padded(text) = value { Ok(Datum::Text(unpadded(&text).into())) } else { Err(mismatch()) }
}

fn padded_to_name(value: Datum, to: SqlType, env: &IoEnv<'_>) -> Result<Datum, ValueError> {
    let Datum::Padded(text) = value else { return Err(mismatch()) };
    wire::parse(to, unpadded(&text), env)
}
