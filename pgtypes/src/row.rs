//! What a row of the table of types has.

use bytes::BytesMut;

use crate::datum::{Datum, DatumRef, Repr};
use crate::error::ValueError;
use crate::oid::Oid;
use crate::sql_type::SqlType;
use crate::timestamp::{Now, TimeZone};

/// The environment of input and output.
#[derive(Clone, Copy, Debug)]
pub struct IoEnv<'a> {
    /// The session's time zone, and the style of its dates.
    pub zone: &'a TimeZone,
    /// The meaning of `'now'`.
    pub now: Now,
}

/// The forms of a type's values. The functions are given the type too, because types share functions.
#[derive(Clone, Copy, Debug)]
pub struct TypeIo {
    /// Reads the text form. Does not apply the modifier, which is left to the cast or assignment.
    pub input: fn(&str, SqlType, &IoEnv<'_>) -> Result<Datum, ValueError>,
    /// Appends the text form. Not called with NULL.
    pub output: fn(&DatumRef<'_>, SqlType, &IoEnv<'_>, &mut BytesMut),
    /// Reads the binary form.
    pub receive: fn(&[u8], SqlType, &IoEnv<'_>) -> Result<Datum, ValueError>,
    /// Appends the binary form. Not called with NULL.
    pub send: fn(&DatumRef<'_>, SqlType, &IoEnv<'_>, &mut BytesMut),
}

/// The groups of types of PostgreSQL's rules for overloaded functions; `typcategory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// `A`
    Array,
    /// `B`
    Boolean,
    /// `D`: dates and times
    DateTime,
    /// `E`
    Enum,
    /// `N`: numbers, and the family of `oid`
    Numeric,
    /// `P`: types of arguments only
    Pseudo,
    /// `S`
    String,
    /// `T`: spans of time
    Timespan,
    /// `U`: none of the others
    User,
    /// `X`
    Unknown,
    /// `Z`: types of the catalog only
    Internal,
}

impl Category {
    /// The letter in `pg_type`.
    pub fn letter(self) -> char {
        match self {
            Category::Array => 'A',
            Category::Boolean => 'B',
            Category::DateTime => 'D',
            Category::Enum => 'E',
            Category::Numeric => 'N',
            Category::Pseudo => 'P',
            Category::String => 'S',
            Category::Timespan => 'T',
            Category::User => 'U',
            Category::Unknown => 'X',
            Category::Internal => 'Z',
        }
    }
}

/// A type.
#[derive(Debug)]
pub struct TypeRow {
    /// Its OID.
    pub oid: Oid,
    /// Its name in `pg_type`. PostgreSQL names the column of an unnamed cast by it.
    pub name: &'static str,
    /// Its name as `format_type` prints it.
    pub sql_name: &'static str,
    /// `typlen`: bytes of a value of fixed size in PostgreSQL, -1 for variable sizes, -2 for C strings.
    pub len: i16,
    /// Its category.
    pub category: Category,
    /// Whether it is preferred among the types of its category.
    pub is_preferred: bool,
    /// Its array type; [`Oid::NONE`] without one.
    pub array: Oid,
    /// The kind of its values.
    pub repr: Repr,
    /// Their forms.
    pub io: TypeIo,
    /// The name with a modifier; `None` if the type has none.
    pub show_modifier: Option<fn(&TypeRow, i32) -> String>,
}
