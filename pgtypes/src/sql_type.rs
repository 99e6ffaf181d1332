//! The type of a column, parameter or expression: a row of `pg_type`, and a modifier.

use crate::oid::Oid;

/// The longest `character(n)` and `character varying(n)` of PostgreSQL, in characters.
pub const MAX_VARCHAR: u64 = 10_485_760;
/// What PostgreSQL adds to a length, to make a modifier of it.
const LENGTH_HEADER: i32 = 4;

/// The type of a column, parameter or expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlType {
    /// The type.
    pub oid: Oid,
    /// Its modifier as in `atttypmod`; -1 without one.
    pub typmod: i32,
}

const fn of(oid: u32) -> SqlType {
    SqlType { oid: Oid(oid), typmod: -1 }
}

impl SqlType {
    /// `boolean`
    pub const BOOL: SqlType = of(16);
    /// `bytea`
    pub const BYTEA: SqlType = of(17);
    /// `"char"`
    pub const CHAR: SqlType = of(18);
    /// `name`
    pub const NAME: SqlType = of(19);
    /// `bigint`
    pub const INT8: SqlType = of(20);
    /// `smallint`
    pub const INT2: SqlType = of(21);
    /// `integer`
    pub const INT4: SqlType = of(23);
    /// `text`
    pub const TEXT: SqlType = of(25);
    /// `oid`
    pub const OID: SqlType = of(26);
    /// `xid`
    pub const XID: SqlType = of(28);
    /// `real`
    pub const FLOAT4: SqlType = of(700);
    /// `double precision`
    pub const FLOAT8: SqlType = of(701);
    /// A literal or parameter whose type is not fixed yet. Reported as `text` in results.
    pub const UNKNOWN: SqlType = of(705);
    /// `character`
    pub const BPCHAR: SqlType = of(1042);
    /// `character varying`
    pub const VARCHAR: SqlType = of(1043);
    /// `timestamp with time zone`
    pub const TIMESTAMPTZ: SqlType = of(1184);
    /// `void`: the result of functions that only have an effect. Its value is the empty text.
    pub const VOID: SqlType = of(2278);

    /// A type without a modifier.
    pub fn new(oid: Oid) -> SqlType {
        SqlType { oid, typmod: -1 }
    }

    /// `character varying(limit)`
    pub fn varchar(limit: u32) -> SqlType {
        SqlType::VARCHAR.with_length(limit)
    }

    /// The same type with a limit of characters.
    pub fn with_length(self, limit: u32) -> SqlType {
        let limit = i32::try_from(limit).unwrap_or(i32::MAX - LENGTH_HEADER).min(i32::MAX - LENGTH_HEADER);
        SqlType { typmod: limit + LENGTH_HEADER, ..self }
    }

    /// The limit of characters that its modifier sets.
    pub fn length(self) -> Option<usize> {
        usize::try_from(self.typmod.checked_sub(LENGTH_HEADER)?).ok()
    }

    /// Whether it is one of the three integer types.
    pub fn is_integer(self) -> bool {
        matches!(self.base(), SqlType::INT2 | SqlType::INT4 | SqlType::INT8)
    }

    /// Whether it is one of the three integer types, or a float.
    pub fn is_number(self) -> bool {
        self.is_integer() || matches!(self.base(), SqlType::FLOAT4 | SqlType::FLOAT8)
    }

    /// Whether it is `text`, or a type of the same values with a length.
    pub fn is_text(self) -> bool {
        matches!(self.base(), SqlType::TEXT | SqlType::VARCHAR)
    }

    /// The type without its modifier: the type of an expression over such a column.
    pub fn base(self) -> SqlType {
        SqlType::new(self.oid)
    }
}
