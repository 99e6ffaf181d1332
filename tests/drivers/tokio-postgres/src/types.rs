//! Every type as parameter and as result: the bytes of the binary format, and the text.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::sections::{Outcome, equal, open};

/// Types, with texts and the binary forms of these in hexadecimal.
const SAMPLES: [(&str, &[(&str, &str)]); 26] = [
    ("bool", &[("t", "01"), ("f", "00")]),
    ("int2", &[("-32768", "8000"), ("32767", "7fff")]),
    ("int4", &[("-2147483648", "80000000"), ("2147483647", "7fffffff")]),
    ("int8", &[("-9223372036854775808", "8000000000000000"), ("9223372036854775807", "7fffffffffffffff")]),
    ("float4", &[("1.5", "3fc00000"), ("-Infinity", "ff800000"), ("1e-45", "00000001")]),
    ("float8", &[("1.7976931348623157e+308", "7fefffffffffffff"), ("5e-324", "0000000000000001")]),
    ("numeric", &[("0", "0000000000000000"), ("-1.50", "000200004000000200011388"), ("NaN", "00000000c0000000")]),
    ("numeric", &[("10000", "00010001000000000001"), ("Infinity", "00000000d0000020")]),
    ("text", &[("", ""), ("плов ☕", "d0bfd0bbd0bed0b220e29895")]),
    ("varchar(20)", &[("a b", "612062")]),
    ("char(5)", &[("ab   ", "6162202020")]),
    ("name", &[("ab", "6162")]),
    ("bytea", &[("\\x", ""), ("\\x00ff5c27", "00ff5c27")]),
    ("uuid", &[("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc999c0b4ef8bb6d6bb9bd380a11")]),
    ("date", &[("2000-01-01", "00000000"), ("0044-03-15 BC", "fff49d7b"), ("infinity", "7fffffff")]),
    ("time", &[("23:59:59.999999", "000000141dd75fff"), ("24:00:00", "000000141dd76000")]),
    ("timetz", &[("12:30:00+05:30", "0000000a7a358200ffffb2a8")]),
    ("timestamp", &[("2000-01-01 00:00:00.000001", "0000000000000001"), ("-infinity", "8000000000000000")]),
    ("timestamptz", &[("2000-01-01 00:00:01+00", "00000000000f4240"), ("infinity", "7fffffffffffffff")]),
    ("interval", &[("1 year 2 mons 3 days 00:00:01", "00000000000f4240000000030000000e")]),
    ("json", &[("{\"a\": [1, null]}", "7b2261223a205b312c206e756c6c5d7d")]),
    ("jsonb", &[("{\"a\": [1, null]}", "017b2261223a205b312c206e756c6c5d7d")]),
    ("int4[]", &[("{}", "000000000000000000000017")]),
    ("int4[]", &[("{42,NULL}", "0000000100000001000000170000000200000001000000040000002affffffff")]),
    ("text[]", &[("{\"a,b\",\"\"}", "000000010000000000000019000000020000000100000003612c6200000000")]),
    (
        "int8[]",
        &[(
            "{{1},{2}}",
            concat!(
                "0000000200000000000000140000000200000001000000010000000100000008",
                "0000000000000001000000080000000000000002"
            ),
        )],
    ),
];

/// A value as the bytes of a format.
#[derive(Debug)]
struct Raw(Vec<u8>, Format);

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        self.1
    }

    to_sql_checked!();
}

/// A result, whose format is always binary.
struct Bytes(Vec<u8>);

impl FromSql<'_> for Bytes {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Bytes(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    let digits = digits.replace(' ', "");
    (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("digits")).collect()
}

/// Text parameters are stored; the simple protocol returns text.
pub(crate) async fn text() -> Outcome {
    round_trip("tokio_text", |text, _| Raw(text.as_bytes().to_vec(), Format::Text)).await
}

/// Binary in both ways; the server's text of the stored value must agree.
pub(crate) async fn binary() -> Outcome {
    round_trip("tokio_binary", |_, bytes| Raw(unhex(bytes), Format::Binary)).await
}

async fn round_trip(table: &str, parameter: impl Fn(&str, &str) -> Raw) -> Outcome {
    let client = open().await?;
    let columns: Vec<String> = SAMPLES.iter().enumerate().map(|(i, (ty, _))| format!("c{i} {ty}")).collect();
    client.batch_execute("SET TimeZone TO 'UTC'").await?;
    client.batch_execute(&format!("DROP TABLE IF EXISTS {table}")).await?;
    client.batch_execute(&format!("CREATE TABLE {table} (id int PRIMARY KEY, {})", columns.join(", "))).await?;
    let mut id = 0;
    for (i, (ty, values)) in SAMPLES.iter().enumerate() {
        let insert = client.prepare(&format!("INSERT INTO {table} (id, c{i}) VALUES ($1, $2)")).await?;
        let select = client.prepare(&format!("SELECT c{i} FROM {table} WHERE id = $1")).await?;
        for (text, bytes) in *values {
            id += 1;
            client
                .execute(&insert, &[&id, &parameter(text, bytes)])
                .await
                .map_err(|error| format!("{ty} {text}: {:?}", error.as_db_error()))?;
            let stored: Bytes = client.query_one(&select, &[&id]).await?.get(0);
            equal(hex(&stored.0), hex(&unhex(bytes)))?;
            let simple = client.simple_query(&format!("SELECT c{i} FROM {table} WHERE id = {id}")).await?;
            let row = simple.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            });
            equal(row.and_then(|row| row.get(0)), Some(*text))?;
        }
        id += 1;
        client.execute(&insert, &[&id, &None::<Raw>]).await?;
        equal(client.query_one(&select, &[&id]).await?.get::<_, Option<Bytes>>(0).is_none(), true)?;
    }
    client.batch_execute(&format!("DROP TABLE {table}")).await?;
    Ok(())
}
