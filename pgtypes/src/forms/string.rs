//! `text`, `varchar`, `char(n)`, `name`, `"char"`.

use bytes::BytesMut;

use crate::datum::{Datum, DatumRef};
use crate::error::ValueError;
use crate::row::{IoEnv, Modifier, TypeIo, TypeRow};
use crate::sql_type::{MAX_VARCHAR, SqlType};
use crate::sqlstate::SqlState;
use crate::string::{MAX_NAME, limit_varchar, pad_char, truncated};
use crate::utf8::utf8;

pub(crate) const IO: TypeIo = TypeIo {
    input: |text, _, _| Ok(Datum::Text(text.into())),
    output: write,
    receive: |bytes, _, _| Ok(Datum::Text(utf8(bytes)?.into())),
    send: write,
};

pub(crate) const PADDED_IO: TypeIo = TypeIo {
    input: |text, _, _| Ok(Datum::Padded(text.into())),
    output: write,
    receive: |bytes, _, _| Ok(Datum::Padded(utf8(bytes)?.into())),
    send: write,
};

/// Longer names are truncated.
pub(crate) const NAME_IO: TypeIo = TypeIo {
    input: |text, _, _| Ok(Datum::Text(truncated(text, MAX_NAME).into())),
    output: write,
    receive: |bytes, _, _| {
        let text = utf8(bytes)?;
        if text.len() > MAX_NAME {
            let error = ValueError::new(SqlState::NAME_TOO_LONG, "identifier too long");
            return Err(error.with_detail("Identifier must be less than 64 characters."));
        }
        Ok(Datum::Text(text.into()))
    },
    send: write,
};

/// A single byte in PostgreSQL, a single character here. Of a longer text the first one counts, also in binary form:
/// clients declare parameters so and send whole texts.
pub(crate) const CHAR_IO: TypeIo = TypeIo {
    input: |text, _, _| Ok(first_char(text)),
    output: write,
    receive: |bytes, _, _| utf8(bytes).map(first_char),
    send: write,
};

fn first_char(text: &str) -> Datum {
    Datum::Text(text.chars().next().map_or_else(String::new, String::from).into_boxed_str())
}

fn write(value: &DatumRef<'_>, _: SqlType, _: &IoEnv<'_>, out: &mut BytesMut) {
    out.extend_from_slice(value.str().as_bytes());
}

/// `varchar(n)`
pub(crate) const VARCHAR_MODIFIER: Modifier = Modifier {
    show: show_length,
    read: |_, written| read_length("varchar", written),
    apply: |value, ty, is_explicit| match value {
        Datum::Text(text) => limit_varchar(text, ty, is_explicit),
        value => Ok(value),
    },
};

/// `char(n)`
pub(crate) const PADDED_MODIFIER: Modifier = Modifier {
    show: show_length,
    read: |_, written| read_length("char", written),
    apply: |value, ty, is_explicit| match value {
        Datum::Padded(text) => pad_char(text, ty, is_explicit),
        value => Ok(value),
    },
};

/// The name of a type with a length.
fn show_length(row: &TypeRow, typmod: i32) -> String {
    match (SqlType { oid: row.oid, typmod }).length() {
        Some(length) => format!("{}({length})", row.sql_name),
        None => row.sql_name.to_owned(),
    }
}

fn read_length(name: &str, written: &[i32]) -> Result<i32, ValueError> {
    let invalid = |message: String| Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    match written {
        [length] if *length < 1 => invalid(format!("length for type {name} must be at least 1")),
        [length] if u64::try_from(*length).unwrap_or(0) > MAX_VARCHAR => {
            invalid(format!("length for type {name} cannot exceed {MAX_VARCHAR}"))
        }
        [length] => Ok(SqlType::VARCHAR.with_length(length.unsigned_abs()).typmod),
        _ => invalid("invalid type modifier".to_owned()),
    }
}
