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
    /// `int2vector`
    pub const INT2VECTOR: SqlType = of(22);
    /// `integer`
    pub const INT4: SqlType = of(23);
    /// `regproc`
    pub const REGPROC: SqlType = of(24);
    /// `text`
    pub const TEXT: SqlType = of(25);
    /// `oid`
    pub const OID: SqlType = of(26);
    /// `tid`
    pub const TID: SqlType = of(27);
    /// `xid`
    pub const XID: SqlType = of(28);
    /// `cid`
    pub const CID: SqlType = of(29);
    /// `oidvector`
    pub const OIDVECTOR: SqlType = of(30);
    /// `json`
    pub const JSON: SqlType = of(114);
    /// `pg_node_tree`
    pub const PG_NODE_TREE: SqlType = of(194);
    /// `real`
    pub const FLOAT4: SqlType = of(700);
    /// `double precision`
    pub const FLOAT8: SqlType = of(701);
    /// `boolean[]`
    pub const BOOL_ARRAY: SqlType = of(1000);
    /// `"char"[]`
    pub const CHAR_ARRAY: SqlType = of(1002);
    /// `name[]`
    pub const NAME_ARRAY: SqlType = of(1003);
    /// `smallint[]`
    pub const INT2_ARRAY: SqlType = of(1005);
    /// `integer[]`
    pub const INT4_ARRAY: SqlType = of(1007);
    /// `text[]`
    pub const TEXT_ARRAY: SqlType = of(1009);
    /// `bigint[]`
    pub const INT8_ARRAY: SqlType = of(1016);
    /// `real[]`
    pub const FLOAT4_ARRAY: SqlType = of(1021);
    /// `double precision[]`
    pub const FLOAT8_ARRAY: SqlType = of(1022);
    /// `oid[]`
    pub const OID_ARRAY: SqlType = of(1028);
    /// `aclitem`
    pub const ACLITEM: SqlType = of(1033);
    /// `character`
    pub const BPCHAR: SqlType = of(1042);
    /// `character varying`
    pub const VARCHAR: SqlType = of(1043);
    /// `date`
    pub const DATE: SqlType = of(1082);
    /// `time without time zone`
    pub const TIME: SqlType = of(1083);
    /// `timestamp without time zone`
    pub const TIMESTAMP: SqlType = of(1114);
    /// `timestamp with time zone`
    pub const TIMESTAMPTZ: SqlType = of(1184);
    /// `interval`
    pub const INTERVAL: SqlType = of(1186);
    /// `interval[]`
    pub const INTERVAL_ARRAY: SqlType = of(1187);
    /// `numeric[]`
    pub const NUMERIC_ARRAY: SqlType = of(1231);
    /// `time with time zone`
    pub const TIMETZ: SqlType = of(1266);
    /// `numeric`
    pub const NUMERIC: SqlType = of(1700);
    /// `refcursor`
    pub const REFCURSOR: SqlType = of(1790);
    /// `regprocedure`
    pub const REGPROCEDURE: SqlType = of(2202);
    /// `regoper`
    pub const REGOPER: SqlType = of(2203);
    /// `regoperator`
    pub const REGOPERATOR: SqlType = of(2204);
    /// `regclass`
    pub const REGCLASS: SqlType = of(2205);
    /// `regtype`
    pub const REGTYPE: SqlType = of(2206);
    /// `record`
    pub const RECORD: SqlType = of(2249);
    /// `cstring`
    pub const CSTRING: SqlType = of(2275);
    /// `"any"`
    pub const ANY: SqlType = of(2276);
    /// `anyarray`
    pub const ANYARRAY: SqlType = of(2277);
    /// `internal`
    pub const INTERNAL: SqlType = of(2281);
    /// `anyelement`
    pub const ANYELEMENT: SqlType = of(2283);
    /// `anynonarray`
    pub const ANYNONARRAY: SqlType = of(2776);
    /// `uuid`
    pub const UUID: SqlType = of(2950);
    /// `pg_lsn`
    pub const PG_LSN: SqlType = of(3220);
    /// `anyenum`
    pub const ANYENUM: SqlType = of(3500);
    /// `jsonb`
    pub const JSONB: SqlType = of(3802);
    /// `regnamespace`
    pub const REGNAMESPACE: SqlType = of(4089);
    /// `regrole`
    pub const REGROLE: SqlType = of(4096);
    /// `regcollation`
    pub const REGCOLLATION: SqlType = of(4191);
    /// `xid8`
    pub const XID8: SqlType = of(5069);
    /// `anycompatible`
    pub const ANYCOMPATIBLE: SqlType = of(5077);
    /// `anycompatiblearray`
    pub const ANYCOMPATIBLEARRAY: SqlType = of(5078);
    /// `anycompatiblenonarray`
    pub const ANYCOMPATIBLENONARRAY: SqlType = of(5079);
    /// A literal or parameter whose type is not fixed yet. Reported as `text` in results.
    pub const UNKNOWN: SqlType = of(705);
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
