//! Values, and their sort order: PostgreSQL's under the C collation.

use std::cmp::Ordering;

use bytes::Bytes;

/// A value. `Text` serves text and varchar.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Datum {
    /// NULL of any type.
    #[default]
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`, `integer` and `bigint`; the column's type bounds it
    Int(i64),
    /// `double precision`
    Float(f64),
    /// `text` and `character varying`
    Text(Box<str>),
    /// `bytea`
    Bytes(Bytes),
    /// `timestamp with time zone`: microseconds since 2000-01-01 00:00 UTC, as in PostgreSQL
    Timestamp(i64),
}

/// A value that borrows from where it is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DatumRef<'a> {
    /// As [`Datum::Null`]
    Null,
    /// As [`Datum::Bool`]
    Bool(bool),
    /// As [`Datum::Int`]
    Int(i64),
    /// As [`Datum::Float`]
    Float(f64),
    /// As [`Datum::Text`]
    Text(&'a str),
    /// As [`Datum::Bytes`]
    Bytes(&'a [u8]),
    /// As [`Datum::Timestamp`]
    Timestamp(i64),
}

impl DatumRef<'_> {
    /// The value on its own.
    pub fn to_datum(self) -> Datum {
        match self {
            DatumRef::Null => Datum::Null,
            DatumRef::Bool(value) => Datum::Bool(value),
            DatumRef::Int(value) => Datum::Int(value),
            DatumRef::Float(value) => Datum::Float(value),
            DatumRef::Text(text) => Datum::Text(text.into()),
            DatumRef::Bytes(bytes) => Datum::Bytes(Bytes::copy_from_slice(bytes)),
            DatumRef::Timestamp(micros) => Datum::Timestamp(micros),
        }
    }
}

impl Datum {
    /// The value, borrowed.
    pub fn borrow(&self) -> DatumRef<'_> {
        match self {
            Datum::Null => DatumRef::Null,
            Datum::Bool(value) => DatumRef::Bool(*value),
            Datum::Int(value) => DatumRef::Int(*value),
            Datum::Float(value) => DatumRef::Float(*value),
            Datum::Text(text) => DatumRef::Text(text),
            Datum::Bytes(bytes) => DatumRef::Bytes(bytes),
            Datum::Timestamp(micros) => DatumRef::Timestamp(*micros),
        }
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// The approximate memory of the value in bytes, for memory budgets.
    pub fn memory(&self) -> usize {
        size_of::<Datum>()
            + match self {
                Datum::Text(text) => text.len(),
                Datum::Bytes(bytes) => bytes.len(),
                _ => 0,
            }
    }
}

/// Orders two non-NULL values of one type; `None` for values of two types. NaN equals itself and is greater than every
/// other float. Text and bytea compare by bytes. False is before true.
pub fn compare_same(a: &Datum, b: &Datum) -> Option<Ordering> {
    Some(match (a, b) {
        (Datum::Int(a), Datum::Int(b)) | (Datum::Timestamp(a), Datum::Timestamp(b)) => a.cmp(b),
        (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Datum::Float(a), Datum::Float(b)) => compare_floats(*a, *b),
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
        _ => return None,
    })
}

/// A total order for sorts. Their values come from one column; a defect must not become a panic there.
pub fn compare(a: &Datum, b: &Datum) -> Ordering {
    compare_same(a, b).unwrap_or_else(|| rank(a).cmp(&rank(b)))
}

/// Orders floats: -0 equals 0, NaN is the greatest.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn rank(datum: &Datum) -> u8 {
    match datum {
        Datum::Bool(_) => 0,
        Datum::Int(_) => 1,
        Datum::Float(_) => 2,
        Datum::Text(_) => 3,
        Datum::Bytes(_) => 4,
        Datum::Timestamp(_) => 5,
        Datum::Null => 6,
    }
}
