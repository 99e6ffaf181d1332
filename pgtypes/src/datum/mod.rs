//! Values, and their sort order: PostgreSQL's under the C collation.
//!
//! There are fewer kinds of values than types: a value of a type without a kind of its own has that of another one
//! ([`Repr`]), and only its type knows how to print it. Values of one kind compare in one way, whatever their types.
//!
//! # Layers
//!
//! 1. `array`, `record`: values of several values

mod array;
mod record;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::datetime::{Interval, TimeTz};
use crate::json::Jsonb;
use crate::numeric::Numeric;
use crate::uuid::Uuid;
pub use array::{Array, ArrayOfArrays, Dimension, MAX_DIMENSIONS, MAX_ELEMENTS, SliceBounds};
pub(crate) use array::{MAX_BYTES, too_many_bytes, too_many_dimensions, too_many_elements};
pub use record::Record;

/// The kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// [`Datum::Bool`]
    Bool,
    /// [`Datum::Int`]: the integers, `oid` and its family, days and microseconds of dates and times
    Int,
    /// [`Datum::Float`]: `real` and `double precision`
    Float,
    /// [`Datum::Text`]
    Text,
    /// [`Datum::Padded`]: values of `character`
    Padded,
    /// [`Datum::Bytes`]
    Bytes,
    /// [`Datum::Numeric`]
    Numeric,
    /// [`Datum::Interval`]
    Interval,
    /// [`Datum::TimeTz`]
    TimeTz,
    /// [`Datum::Uuid`]
    Uuid,
    /// [`Datum::Jsonb`]
    Jsonb,
    /// [`Datum::Array`]
    Array,
    /// [`Datum::Record`]
    Record,
    /// None: a pseudo-type of arguments
    None,
}

/// A value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Datum {
    /// NULL of any type.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer; the type bounds it. Times count microseconds since 2000-01-01 00:00, of UTC if they have a zone.
    Int(i64),
    /// A float. That of a `real` has its precision.
    Float(f64),
    /// A text without NUL.
    Text(Box<str>),
    /// A text whose blanks at the end do not count in comparisons.
    Padded(Box<str>),
    /// Bytes.
    Bytes(Box<[u8]>),
    /// A decimal number.
    Numeric(Numeric),
    /// A span of time.
    Interval(Interval),
    /// A time of the day with a zone.
    TimeTz(TimeTz),
    /// A UUID.
    Uuid(Uuid),
    /// A JSON value.
    Jsonb(Box<Jsonb>),
    /// An array.
    Array(Box<Array>),
    /// An anonymous row.
    Record(Box<Record>),
}

/// A value that borrows from where it is stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DatumRef<'a> {
    /// As [`Datum::Null`]
    #[default]
    Null,
    /// As [`Datum::Bool`]
    Bool(bool),
    /// As [`Datum::Int`]
    Int(i64),
    /// As [`Datum::Float`]
    Float(f64),
    /// As [`Datum::Text`] or [`Datum::Padded`]
    Text(&'a str),
    /// As [`Datum::Bytes`]
    Bytes(&'a [u8]),
    /// Any other value.
    Borrowed(&'a Datum),
    /// A value that cannot be borrowed from its stored form.
    Owned(Datum),
}

impl DatumRef<'_> {
    /// The value on its own. A text of the kind [`Repr::Padded`] becomes one of the kind [`Repr::Text`].
    pub fn to_datum(&self) -> Datum {
        match self {
            DatumRef::Null => Datum::Null,
            DatumRef::Bool(value) => Datum::Bool(*value),
            DatumRef::Int(value) => Datum::Int(*value),
            DatumRef::Float(value) => Datum::Float(*value),
            DatumRef::Text(text) => Datum::Text((*text).into()),
            DatumRef::Bytes(bytes) => Datum::Bytes((*bytes).into()),
            DatumRef::Borrowed(datum) => (*datum).clone(),
            DatumRef::Owned(datum) => datum.clone(),
        }
    }

    /// An integer. The functions of a type call it: their values are of its kind.
    pub(crate) fn int(&self) -> i64 {
        if let DatumRef::Int(value) = self { *value } else { 0 }
    }

    pub(crate) fn float(&self) -> f64 {
        if let DatumRef::Float(value) = self { *value } else { 0.0 }
    }

    pub(crate) fn str(&self) -> &str {
        if let DatumRef::Text(text) = self { text } else { "" }
    }

    /// The value of another kind.
    pub(crate) fn other(&self) -> &Datum {
        match self {
            DatumRef::Borrowed(value) => value,
            DatumRef::Owned(value) => value,
            _ => &Datum::Null,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        if let DatumRef::Bytes(bytes) = self { bytes } else { &[] }
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
            Datum::Text(text) | Datum::Padded(text) => DatumRef::Text(text),
            Datum::Bytes(bytes) => DatumRef::Bytes(bytes),
            other => DatumRef::Borrowed(other),
        }
    }

    /// A text.
    pub fn text(text: impl Into<Box<str>>) -> Datum {
        Datum::Text(text.into())
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// The approximate memory of the value in bytes, for memory budgets.
    pub fn memory(&self) -> usize {
        size_of::<Datum>()
            + match self {
                Datum::Text(text) | Datum::Padded(text) => text.len(),
                Datum::Bytes(bytes) => bytes.len(),
                Datum::Numeric(number) => number.memory(),
                Datum::Jsonb(json) => json.memory(),
                Datum::Array(array) => array.memory(),
                Datum::Record(record) => record.memory(),
                _ => 0,
            }
    }
}

/// A text without the blanks at its end.
pub fn unpadded(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// Orders two non-NULL values of one kind; `None` for values of two kinds. NaN equals itself and is greater than every
/// other float. Text and bytea compare by bytes. False is before true.
pub fn compare_same(a: &Datum, b: &Datum) -> Option<Ordering> {
    Some(match (a, b) {
        (Datum::Int(a), Datum::Int(b)) => a.cmp(b),
        (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Datum::Padded(a), Datum::Padded(b)) => unpadded(a).as_bytes().cmp(unpadded(b).as_bytes()),
        (Datum::Float(a), Datum::Float(b)) => compare_floats(*a, *b),
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
        (Datum::Numeric(a), Datum::Numeric(b)) => a.cmp(b),
        (Datum::Interval(a), Datum::Interval(b)) => a.cmp(b),
        (Datum::TimeTz(a), Datum::TimeTz(b)) => a.cmp(b),
        (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
        (Datum::Jsonb(a), Datum::Jsonb(b)) => a.cmp(b),
        (Datum::Array(a), Datum::Array(b)) => a.compare(b),
        (Datum::Record(a), Datum::Record(b)) => a.compare(b),
        _ => return None,
    })
}

/// A total order for sorts, NULL last. Their values come from one column; a defect must not become a panic there.
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
        Datum::Padded(_) => 5,
        Datum::Numeric(_) => 6,
        Datum::Interval(_) => 7,
        Datum::TimeTz(_) => 8,
        Datum::Uuid(_) => 9,
        Datum::Jsonb(_) => 10,
        Datum::Array(_) => 11,
        Datum::Record(_) => 12,
        Datum::Null => u8::MAX,
    }
}

/// A value as grouping and DISTINCT see it: NULL equals NULL, and equal values have equal hashes.
#[derive(Clone, Debug)]
pub struct GroupKey(pub Datum);

impl PartialEq for GroupKey {
    fn eq(&self, other: &GroupKey) -> bool {
        compare(&self.0, &other.0).is_eq()
    }
}

impl Eq for GroupKey {}

impl Hash for GroupKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_value(&self.0, state);
    }
}

fn hash_value<H: Hasher>(value: &Datum, state: &mut H) {
    rank(value).hash(state);
    match value {
        Datum::Null => {}
        Datum::Bool(value) => value.hash(state),
        Datum::Int(value) => value.hash(state),
        Datum::Float(value) => float_key(*value).hash(state),
        Datum::Text(text) => text.hash(state),
        Datum::Padded(text) => unpadded(text).hash(state),
        Datum::Bytes(bytes) => bytes.hash(state),
        Datum::Numeric(number) => number.hash(state),
        Datum::Interval(interval) => interval.hash(state),
        Datum::TimeTz(time) => time.hash(state),
        Datum::Uuid(uuid) => uuid.hash(state),
        Datum::Jsonb(json) => json.hash(state),
        Datum::Array(array) => hash_array(array, state),
        Datum::Record(record) => {
            for (_, field) in record.fields() {
                hash_value(field, state);
            }
        }
    }
}

fn hash_array<H: Hasher>(array: &Array, state: &mut H) {
    array.dimensions().hash(state);
    for element in array.elements() {
        hash_value(element, state);
    }
}

/// Bits that are equal for equal floats.
fn float_key(value: f64) -> u64 {
    match value {
        value if value.is_nan() => f64::NAN.to_bits(),
        // Also -0.
        0.0 => 0,
        value => value.to_bits(),
    }
}
