//! Values of all kinds. Arrays and records have values in them, so they are here too.

use std::borrow::Cow;
use std::sync::Arc;

use crate::datetime::{Interval, TimeTz};
use crate::json::Jsonb;
use crate::numeric::Numeric;
use crate::oid::Oid;
use crate::sql_type::SqlType;
use crate::uuid::Uuid;

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
    /// The value on its own. Its type tells a text from a value of `character`.
    pub fn to_datum(&self, ty: SqlType) -> Datum {
        match self {
            DatumRef::Null => Datum::Null,
            DatumRef::Bool(value) => Datum::Bool(*value),
            DatumRef::Int(value) => Datum::Int(*value),
            DatumRef::Float(value) => Datum::Float(*value),
            DatumRef::Text(text) if ty.row().repr == Repr::Padded => Datum::Padded((*text).into()),
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

/// A dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// The number of elements.
    pub length: i32,
    /// The subscript of the first one.
    pub lower: i32,
}

/// An array.
///
/// Invariants: `elements` has as many as the product of the lengths, none if there is no dimension; there are at most
/// [`MAX_DIMENSIONS`](crate::datum::MAX_DIMENSIONS), and no length is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub(super) element: Oid,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) elements: Vec<Datum>,
}

impl Array {
    /// Memory of the elements, for budgets.
    pub fn memory(&self) -> usize {
        self.elements.iter().map(Datum::memory).sum()
    }
}

/// A row: fields with their types. That of a table has the names of its columns, which only JSON shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    fields: Vec<(SqlType, Datum)>,
    names: Option<Arc<[Box<str>]>>,
}

impl Record {
    /// A row of fields.
    pub fn new(fields: Vec<(SqlType, Datum)>) -> Record {
        Record { fields, names: None }
    }

    /// The same row, whose fields have names.
    pub fn named(self, names: Arc<[Box<str>]>) -> Record {
        Record { names: Some(names), ..self }
    }

    /// The name of a field: `f1`, `f2`, ... if it has none.
    pub fn name(&self, at: usize) -> Cow<'_, str> {
        let name = self.names.as_ref().and_then(|names| names.get(at));
        name.map_or_else(|| Cow::Owned(format!("f{}", at + 1)), |name| Cow::Borrowed(&**name))
    }

    /// Its fields.
    pub fn fields(&self) -> &[(SqlType, Datum)] {
        &self.fields
    }

    /// Memory of the fields, for budgets.
    pub fn memory(&self) -> usize {
        self.fields.iter().map(|(_, field)| size_of::<SqlType>() + field.memory()).sum()
    }
}
