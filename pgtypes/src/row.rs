//! What a row of the table of types has, and what the forms of values ask of the session and its catalog.

use bytes::BytesMut;

use crate::datetime::{DateOrder, IntervalStyle, Now, Session, TimeZone};
use crate::datum::{Datum, DatumRef, Repr};
use crate::error::ValueError;
use crate::oid::Oid;
use crate::sql_type::SqlType;

/// A label of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its place in the order of the type; the value of the enum.
    pub order: i64,
    /// Its text.
    pub name: Box<str>,
}

/// Names of the objects that users have made: what the text forms of enums, `regclass` and the like ask the catalog.
pub trait Names: Sync {
    /// The labels of an enum, in their order; `None` if it does not exist.
    fn labels(&self, ty: Oid) -> Option<&[Label]>;

    /// The object with a name as a user writes it. `class` is the type: `regclass`, `regtype`, `regproc`, ...
    ///
    /// # Errors
    /// 42P01, 42704, 42883: there is none. 42602: it is no name.
    fn find(&self, class: SqlType, name: &str) -> Result<Oid, ValueError>;

    /// The name of an object; `None` if it does not exist.
    fn show(&self, class: SqlType, oid: Oid) -> Option<String>;
}

/// How values are written that have several exact or short forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputStyle {
    /// `extra_float_digits`, -15 to 3. Above 0: the shortest form that is exact. Otherwise that many digits more than
    /// always survive the way from text and back: 6 of a `real`, 15 of a `double precision`.
    pub float_digits: i8,
    /// Whether bytes are escaped instead of written in hexadecimal: `bytea_output`.
    pub escapes_bytes: bool,
}

impl Default for OutputStyle {
    fn default() -> OutputStyle {
        OutputStyle { float_digits: 1, escapes_bytes: false }
    }
}

/// The environment of input, output and functions.
#[derive(Clone, Copy)]
pub struct IoEnv<'a> {
    /// The session's time zone, and the style of its dates.
    pub zone: &'a TimeZone,
    /// The order of fields in `DateStyle`.
    pub order: DateOrder,
    /// `IntervalStyle`
    pub interval_style: IntervalStyle,
    /// `extra_float_digits` and `bytea_output`
    pub style: OutputStyle,
    /// The meaning of `'now'`: the start of the transaction.
    pub now: Now,
    /// The catalog.
    pub names: &'a dyn Names,
}

impl<'a> IoEnv<'a> {
    /// An environment with the order of dates that the zone's style has, PostgreSQL's default styles of the rest, and
    /// no catalog.
    pub fn new(zone: &'a TimeZone, now: Now) -> IoEnv<'a> {
        let Session { order, interval_style, .. } = Session::new(zone, now);
        IoEnv { zone, order, interval_style, style: OutputStyle::default(), now, names: &NoNames }
    }

    /// What dates and times read of it.
    pub fn session(&self) -> Session<'a> {
        Session { zone: self.zone, order: self.order, interval_style: self.interval_style, now: self.now }
    }
}

/// No catalog: objects are known by their OIDs only.
#[derive(Debug)]
pub struct NoNames;

impl Names for NoNames {
    fn labels(&self, _: Oid) -> Option<&[Label]> {
        None
    }

    fn find(&self, class: SqlType, name: &str) -> Result<Oid, ValueError> {
        let message = format!("no name of type {} is known here: \"{name}\"", class.oid);
        Err(ValueError::new(crate::sqlstate::SqlState::UNDEFINED_OBJECT, message))
    }

    fn show(&self, _: SqlType, _: Oid) -> Option<String> {
        None
    }
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

/// What a modifier means: the length of `varchar(3)`.
#[derive(Clone, Copy, Debug)]
pub struct Modifier {
    /// The name of the type with it.
    pub show: fn(&TypeRow, i32) -> String,
    /// The modifier of what was written in parentheses.
    pub read: fn(&TypeRow, &[i32]) -> Result<i32, ValueError>,
    /// Applies it to a value. An explicit cast (`true`) truncates what an assignment refuses.
    pub apply: fn(Datum, SqlType, bool) -> Result<Datum, ValueError>,
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
    /// Its OID; that of no object for the rows that all enums share.
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
    /// The type of its elements, of an array; else [`Oid::NONE`].
    pub element: Oid,
    /// The kind of its values.
    pub repr: Repr,
    /// Their forms.
    pub io: TypeIo,
    /// The meaning of its modifier; `None` if it has none.
    pub modifier: Option<Modifier>,
}

impl TypeRow {
    /// The type, without a modifier.
    pub fn ty(&self) -> SqlType {
        SqlType::new(self.oid)
    }
}
