//! The SQL types: their OIDs, names and properties.

/// The longest `varchar(n)` of PostgreSQL, in characters.
pub const MAX_VARCHAR: u64 = 10_485_760;

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
    /// `void`: the result of functions that only have an effect. Its value is the empty text.
    Void,
    /// A literal or parameter whose type is not fixed yet. Reported as `text` in results.
    Unknown,
}

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
            SqlType::Void => 2278,
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
            SqlType::Int4 | SqlType::Void => 4,
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
            SqlType::Void => "void",
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
            SqlType::Void => "void",
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
