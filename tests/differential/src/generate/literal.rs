//! Values of each type as texts: usual ones, extremes, and some that are not valid.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::catalog::{Catalog, TypeOid};

/// OIDs of the types with values here.
pub mod oids {
    #![allow(missing_docs, reason = "names of types")]
    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const CHAR: u32 = 18;
    pub const NAME: u32 = 19;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const OID: u32 = 26;
    pub const JSON: u32 = 114;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
    pub const BPCHAR: u32 = 1042;
    pub const VARCHAR: u32 = 1043;
    pub const DATE: u32 = 1082;
    pub const TIME: u32 = 1083;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const INTERVAL: u32 = 1186;
    pub const TIMETZ: u32 = 1266;
    pub const NUMERIC: u32 = 1700;
    pub const UUID: u32 = 2950;
    pub const JSONB: u32 = 3802;
}
use oids::*;

/// The types whose values are generated; of arrays, those of these.
pub const SCALARS: [TypeOid; 23] = [
    BOOL,
    BYTEA,
    CHAR,
    NAME,
    INT8,
    INT2,
    INT4,
    TEXT,
    OID,
    JSON,
    FLOAT4,
    FLOAT8,
    BPCHAR,
    VARCHAR,
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    INTERVAL,
    TIMETZ,
    NUMERIC,
    UUID,
    JSONB,
];

const BOOLS: &[&str] = &["t", "f", "true", "false", "on", "off", "yes", "0", "1", " TRUE ", "tr"];
const BYTEAS: &[&str] = &["", "\\x00ff", "\\xdeadbeef", "abc", "a\\000b", "\\x41 42", "\\\\", "\\x61626364656667"];
const CHARS: &[&str] = &["a", "", "Z", "1", " ", "~"];
const NAMES: &[&str] = &[
    "",
    "a",
    "abc",
    "Abc",
    "with space",
    "int4",
    "pg_class",
    "a_name_of_more_than_sixty_three_bytes_is_cut_off_at_that_length_x",
];
const INT2S: &[&str] = &["0", "1", "-1", "2", "3", "7", "10", "100", "32767", "-32768", "255"];
const INT4S: &[&str] =
    &["0", "1", "-1", "2", "3", "5", "7", "10", "42", "100", "1000", "65536", "2147483647", "-2147483648", " 12 "];
const INT8S: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "8",
    "10",
    "60",
    "100",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "1000000007",
    "-123456789012",
];
const OIDS: &[&str] = &["0", "1", "16", "23", "1259", "4294967295", "100000"];
const FLOATS: &[&str] = &[
    "0",
    "1",
    "-1",
    "0.5",
    "-0",
    "1.5",
    "2.5",
    "-2.5",
    "3.14159",
    "1e10",
    "1e-10",
    "1e30",
    "NaN",
    "Infinity",
    "-Infinity",
    "123456.789",
    "0.1",
    "1e15",
    "1e16",
    "-0.30000001",
    "100",
];
const FLOAT8S: &[&str] =
    &["1e300", "1e-300", "4.9e-324", "1.7976931348623157e308", "0.30000000000000004", "1e22", "1e23"];
const NUMERICS: &[&str] = &[
    "0",
    "1",
    "-1",
    "0.5",
    "1.50",
    "2.5",
    "-2.5",
    "3.14159",
    "1e10",
    "1e-10",
    "NaN",
    "Infinity",
    "-Infinity",
    "0.00",
    "123456789012345678901234567890.123",
    "-0.000001",
    "99999.99999",
    "10",
    "100.000",
    "7",
    "1e100",
    "0.1",
    "9223372036854775807",
    "9223372036854775808",
    "12.345",
];
const TEXTS: &[&str] = &[
    "",
    "a",
    "abc",
    "ABC",
    "Hello, World",
    "  padded  ",
    "a%b_c",
    "äöü ß €",
    "123",
    "-1.5",
    "x",
    "a,b,c",
    "it's",
    "back\\\\slash",
    "tab\there",
    "\u{1F600} smile",
    "null",
    "t",
    "2020-01-02",
    "{1,2}",
    "foo bar baz",
    "aaa",
    "abcabc",
    "é",
    "1 day",
    "12:34:56",
    "\\d+",
    "[a-c]",
    "(a)(b)?",
    "YYYY-MM-DD",
    "999.99",
    "hour",
    "UTC",
    "base64",
];
const DATES: &[&str] = &[
    "2000-01-01",
    "1999-12-31",
    "2024-02-29",
    "0001-01-01",
    "4713-01-01 BC",
    "infinity",
    "-infinity",
    "5874897-12-31",
    "January 8, 1999",
    "1/8/1999",
    "1970-01-01",
    "epoch",
    "1999-Jan-08",
    "19990108",
    "J2451187",
    "2020-06-15",
    "0044-03-15 BC",
    "2011-366",
];
const TIMES: &[&str] = &[
    "00:00:00",
    "12:34:56",
    "23:59:59.999999",
    "24:00:00",
    "04:05 PM",
    "040506",
    "12:00",
    "00:00:01.5",
    "allballs",
    "11:59:60",
    "01:02:03.0000005",
];
const TIMETZS: &[&str] = &[
    "00:00:00+00",
    "12:34:56-08",
    "23:59:59.999999+05:30",
    "24:00:00-15:59",
    "04:05:06 PST",
    "12:00:00+02",
    "01:02:03.4567+01:02:03",
];
const TIMESTAMPS: &[&str] = &[
    "2000-01-01 00:00:00",
    "2024-02-29 12:34:56.789",
    "1999-12-31 23:59:59.999999",
    "infinity",
    "-infinity",
    "epoch",
    "0001-01-01 00:00:00",
    "4713-01-01 00:00:00 BC",
    "294276-12-31 23:59:59.999999",
    "2001-02-16 20:38:40",
    "1970-01-01 00:00:00",
    "2020-06-15 04:05:06 PM",
    "2013-10-27 02:30:00",
    "2024-01-31 10:00",
];
const TIMESTAMPTZS: &[&str] = &[
    "2000-01-01 00:00:00+00",
    "2024-02-29 12:34:56.789+05:30",
    "2001-02-16 20:38:40-05",
    "infinity",
    "-infinity",
    "epoch",
    "1999-12-31 23:59:59 PST",
    "2013-10-27 02:30:00 Europe/Berlin",
    "0044-03-15 12:00:00 BC",
    "2020-06-15T04:05:06Z",
    "294276-12-31 23:59:59.999999+00",
    "2024-01-31 10:00 America/New_York",
];
const INTERVALS: &[&str] = &[
    "1 day",
    "-1 day",
    "1 month",
    "1 year 2 mons 3 days 04:05:06.789",
    "00:00:00",
    "P1Y2M3DT4H5M6S",
    "1-2",
    "3 4:05:06",
    "@ 1 hour ago",
    "-1 mons +1 day",
    "24:00:00",
    "1.5 days",
    "178000000 years",
    "100 hours",
    "0.000001 s",
    "1 week",
    "1 century",
    "-00:00:01",
    "2 mons -3 days",
    "PT36H",
    "15 minutes",
    "-178000000 years",
];
const UUIDS: &[&str] = &[
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "{A0EEBC99-9C0B4EF8-BB6D6BB9-BD380A11}",
    "a0eebc999c0b4ef8bb6d6bb9bd380a12",
];
const JSONS: &[&str] = &[
    "null",
    "true",
    "1",
    "-1.50",
    "\"a\"",
    "[]",
    "{}",
    "[1,2,3]",
    "{\"a\":1,\"b\":[true,null]}",
    "{\"a\":{\"b\":{\"c\":\"d\"}}}",
    "[[1],{\"x\":\"y\"}]",
    " { \"b\" : 2 , \"a\" : 1, \"a\": 3 } ",
    "\"\\u00e4\\n\"",
    "[1e3, 1.10, \"x\"]",
    "{\"k\":null,\"l\":\"text\"}",
    "[\"a\",\"b\",\"a\"]",
    "12345678901234567890.123",
];
const INVALID: &[&str] = &[
    "",
    "x",
    "1x",
    "2000-13-01",
    "25:00:00",
    "{",
    "{1,",
    "1e999",
    "99999999999999999999",
    "--1",
    "2023-02-29",
    "\\x0",
    "nan",
    "0x10",
    "1_000",
    "1 fortnight",
    "+",
    " ",
    "12:60",
    "tomorrows",
];

fn pool(of: TypeOid) -> &'static [&'static str] {
    match of {
        BOOL => BOOLS,
        BYTEA => BYTEAS,
        CHAR => CHARS,
        NAME => NAMES,
        INT2 => INT2S,
        INT4 => INT4S,
        INT8 => INT8S,
        OID => OIDS,
        FLOAT4 | FLOAT8 => FLOATS,
        NUMERIC => NUMERICS,
        DATE => DATES,
        TIME => TIMES,
        TIMETZ => TIMETZS,
        TIMESTAMP => TIMESTAMPS,
        TIMESTAMPTZ => TIMESTAMPTZS,
        INTERVAL => INTERVALS,
        UUID => UUIDS,
        JSON | JSONB => JSONS,
        _ => TEXTS,
    }
}

fn pick<'a>(rng: &mut StdRng, from: &[&'a str]) -> &'a str {
    from.choose(rng).copied().unwrap_or_default()
}

/// A value of a scalar type that is valid.
pub fn valid_scalar(rng: &mut StdRng, of: TypeOid) -> String {
    match of {
        FLOAT8 if rng.random_ratio(1, 5) => pick(rng, FLOAT8S).to_string(),
        INT4 | INT8 | INT2 | NUMERIC | FLOAT8 if rng.random_ratio(1, 4) => rng.random_range(-50..500).to_string(),
        NUMERIC if rng.random_ratio(1, 4) => {
            format!("{}.{:03}", rng.random_range(-9999..9999), rng.random_range(0..999))
        }
        // The text of a random moment.
        DATE if rng.random_ratio(1, 3) => day(rng),
        TIMESTAMP if rng.random_ratio(1, 3) => format!("{} {}", day(rng), clock(rng)),
        TIMESTAMPTZ if rng.random_ratio(1, 3) => {
            format!("{} {}{:+03}", day(rng), clock(rng), rng.random_range(-12..13))
        }
        TIME if rng.random_ratio(1, 3) => clock(rng),
        _ => pick(rng, pool(of)).to_string(),
    }
}

fn day(rng: &mut StdRng) -> String {
    format!("{:04}-{:02}-{:02}", rng.random_range(1900..2100), rng.random_range(1..13), rng.random_range(1..29))
}

fn clock(rng: &mut StdRng) -> String {
    let [hour, minute, second] = [24, 60, 60].map(|below| rng.random_range(0..below));
    format!("{hour:02}:{minute:02}:{second:02}.{:03}", rng.random_range(0..1000))
}

/// A text for a value of a type, now and then not a valid one.
pub fn value(rng: &mut StdRng, catalog: &Catalog, of: TypeOid) -> String {
    if rng.random_ratio(1, 40) {
        return pick(rng, INVALID).to_string();
    }
    valid(rng, catalog, of)
}

/// A text for a value of a type.
pub fn valid(rng: &mut StdRng, catalog: &Catalog, of: TypeOid) -> String {
    match catalog.types.get(&of).and_then(|found| found.element) {
        None => valid_scalar(rng, of),
        Some(element) => array(rng, element),
    }
}

fn array(rng: &mut StdRng, element: TypeOid) -> String {
    if rng.random_ratio(1, 12) {
        let bounds = ["[0:1]", "[2:3]", "[-1:0]"][rng.random_range(0..3)];
        return format!("{bounds}={{{},{}}}", quoted(rng, element), quoted(rng, element));
    }
    if rng.random_ratio(1, 12) {
        let row = |rng: &mut StdRng| format!("{{{},{}}}", quoted(rng, element), quoted(rng, element));
        return format!("{{{},{}}}", row(rng), row(rng));
    }
    let items: Vec<String> = (0..rng.random_range(0..4)).map(|_| quoted(rng, element)).collect();
    format!("{{{}}}", items.join(","))
}

fn quoted(rng: &mut StdRng, element: TypeOid) -> String {
    if rng.random_ratio(1, 8) {
        return "NULL".to_string();
    }
    let value = valid_scalar(rng, element);
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A text as a string constant.
pub fn constant(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
