//! SQL types and values, with their text and binary wire forms.
//!
//! [`Datum::decode`] and [`Datum::encode`] convert between the wire and [`Datum`]s. There are fewer variants than
//! types: the three integers share one, and so do text and varchar. Each type accepts and prints what PostgreSQL 15
//! accepts and prints. [`input`], [`output`], [`binary`] and [`timestamp`] each hold one direction or format, [`cast`]
//! the conversions between types, [`compare`] the sort order.
//!
//! # Layers
//!
//! 1. `compare`, `timestamp`: the sort order, times
//! 2. `input`, `output`: text forms
//! 3. `binary`, `cast`: binary forms, casts

pub mod binary;
pub mod cast;
pub mod compare;
pub mod input;
pub mod output;
pub mod timestamp;

use bytes::{Bytes, BytesMut};

use crate::error::SqlError;

/// The type of a column, parameter or expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SqlType {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `double precision`
    Float8,
    /// `text`
    Text,
    /// `character varying`, with a limit in characters where one was given
    Varchar(Option<u32>),
    /// `bytea`
    Bytea,
    /// `timestamp with time zone`
    Timestamptz,
    /// A literal or parameter whose type is not fixed yet. Reported as `text` in results.
    Unknown,
}

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

/// Wire formats of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Human-readable
    Text,
    /// PostgreSQL's binary form
    Binary,
}

/// The session's time zone, for input and output of timestamps.
#[derive(Clone, Debug)]
pub struct TimeZone(pub jiff::tz::TimeZone);

impl TimeZone {
    /// Universal time.
    pub fn utc() -> TimeZone {
        TimeZone(jiff::tz::TimeZone::UTC)
    }
}

/// The longest `varchar(n)` of PostgreSQL, in characters.
pub const MAX_VARCHAR: u64 = 10_485_760;

impl SqlType {
    /// The type's OID in PostgreSQL.
    pub fn oid(self) -> u32 {
        match self {
            SqlType::Bool => 16,
            SqlType::Bytea => 17,
            SqlType::Int8 => 20,
            SqlType::Int2 => 21,
            SqlType::Int4 => 23,
            SqlType::Text => 25,
            SqlType::Float8 => 701,
            SqlType::Unknown => 705,
            SqlType::Varchar(_) => 1043,
            SqlType::Timestamptz => 1184,
        }
    }

    /// The type of a parameter's declared OID; `None` if unsupported. OIDs 0 and 705 are `Unknown`. OIDs 18 (`"char"`),
    /// 19 (`name`) and 1042 (`bpchar`) are accepted as text.
    pub fn from_oid(oid: u32) -> Option<SqlType> {
        Some(match oid {
            0 | 705 => SqlType::Unknown,
            16 => SqlType::Bool,
            17 => SqlType::Bytea,
            18 | 19 | 25 | 1042 => SqlType::Text,
            20 => SqlType::Int8,
            21 => SqlType::Int2,
            23 => SqlType::Int4,
            701 => SqlType::Float8,
            1043 => SqlType::Varchar(None),
            1184 => SqlType::Timestamptz,
            _ => return None,
        })
    }

    /// `typlen` as RowDescription carries it: bytes of a fixed-size type, -1 for a variable one.
    pub fn wire_len(self) -> i16 {
        match self {
            SqlType::Bool => 1,
            SqlType::Int2 => 2,
            SqlType::Int4 => 4,
            SqlType::Int8 | SqlType::Float8 | SqlType::Timestamptz => 8,
            SqlType::Text | SqlType::Varchar(_) | SqlType::Bytea => -1,
            SqlType::Unknown => -2,
        }
    }

    /// `atttypmod` as RowDescription carries it: the limit of a varchar plus 4, else -1.
    pub fn type_modifier(self) -> i32 {
        match self {
            SqlType::Varchar(Some(limit)) => i32::try_from(limit).unwrap_or(i32::MAX - 4).saturating_add(4),
            _ => -1,
        }
    }

    /// The name as `format_type` prints it.
    pub fn name(self) -> String {
        match self {
            SqlType::Varchar(Some(limit)) => format!("character varying({limit})"),
            other => other.base_name().to_owned(),
        }
    }

    /// The name without a length, as most error messages print it.
    pub fn base_name(self) -> &'static str {
        match self {
            SqlType::Bool => "boolean",
            SqlType::Int2 => "smallint",
            SqlType::Int4 => "integer",
            SqlType::Int8 => "bigint",
            SqlType::Float8 => "double precision",
            SqlType::Text => "text",
            SqlType::Varchar(_) => "character varying",
            SqlType::Bytea => "bytea",
            SqlType::Timestamptz => "timestamp with time zone",
            SqlType::Unknown => "unknown",
        }
    }

    /// The name in the system catalog (`typname`). PostgreSQL names the column of an unnamed cast by it.
    pub fn catalog_name(self) -> &'static str {
        match self {
            SqlType::Bool => "bool",
            SqlType::Int2 => "int2",
            SqlType::Int4 => "int4",
            SqlType::Int8 => "int8",
            SqlType::Float8 => "float8",
            SqlType::Text => "text",
            SqlType::Varchar(_) => "varchar",
            SqlType::Bytea => "bytea",
            SqlType::Timestamptz => "timestamptz",
            SqlType::Unknown => "unknown",
        }
    }

    /// Whether it is one of the three integer types.
    pub fn is_integer(self) -> bool {
        matches!(self, SqlType::Int2 | SqlType::Int4 | SqlType::Int8)
    }

    /// Whether it is an integer type or `double precision`.
    pub fn is_number(self) -> bool {
        self.is_integer() || self == SqlType::Float8
    }

    /// Whether its values are `Datum::Text`.
    pub fn is_text(self) -> bool {
        matches!(self, SqlType::Text | SqlType::Varchar(_))
    }

    /// The type without its modifier: the type of an expression over such a column.
    pub fn base(self) -> SqlType {
        match self {
            SqlType::Varchar(_) => SqlType::Varchar(None),
            other => other,
        }
    }
}

impl Datum {
    /// Decodes a value from its wire form. Errors are those of PostgreSQL's input functions (22P02, 22003, 22007,
    /// 22008, 22021, 22P03, ...).
    pub fn decode(ty: SqlType, format: Format, bytes: &[u8], zone: &TimeZone) -> Result<Datum, SqlError> {
        match format {
            Format::Text => {
                let text = input::utf8(bytes)?;
                input::parse(ty, text, zone, timestamp::Now::Clock)
            }
            Format::Binary => binary::decode(ty, bytes),
        }
    }

    /// Appends the wire form without its length. Never called on `Null`.
    pub fn encode(&self, ty: SqlType, format: Format, zone: &TimeZone, out: &mut BytesMut) {
        match format {
            Format::Text => output::write(self, zone, out),
            Format::Binary => binary::encode(self, ty, out),
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

/// The white space of C's `isspace`.
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

#[cfg(test)]
mod tests;
