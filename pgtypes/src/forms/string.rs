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

/// A single byte, held as the character of its code; the byte 0 as no character. Of a longer text the first byte
/// counts, also in binary form: clients declare parameters so and send whole texts.
pub(crate) const CHAR_IO: TypeIo = TypeIo {
    input: |text, _, _| Ok(char_of_byte(char_byte(text))),
    output: |value, _, _, out| out.extend_from_slice(char_text(value.str()).as_bytes()),
    receive: |bytes, _, _| Ok(char_of_byte(bytes.first().copied().unwrap_or_default())),
    send: |value, _, _, out| out.extend_from_slice(&[byte_of_char(value.str())]),
};

/// The byte that a text stands for: its first one, or that of `\ooo` with three octal digits.
fn char_byte(text: &str) -> u8 {
    let octal = text.strip_prefix('\\').filter(|digits| digits.len() == 3);
    let code = octal.filter(|digits| digits.bytes().all(|digit| matches!(digit, b'0'..=b'7')));
    match code.and_then(|digits| u16::from_str_radix(digits, 8).ok()) {
        // PostgreSQL drops the bits beyond the eighth, too.
        Some(code) => code.to_be_bytes()[1],
        None => text.bytes().next().unwrap_or_default(),
    }
}

/// The value of a byte.
pub(crate) fn char_of_byte(byte: u8) -> Datum {
    let text = if byte == 0 { String::new() } else { char::from(byte).to_string() };
    Datum::Text(text.into_boxed_str())
}

/// The byte of a value.
pub(crate) fn byte_of_char(value: &str) -> u8 {
    value.chars().next().and_then(|c| u8::try_from(u32::from(c)).ok()).unwrap_or_default()
}

/// The text of a value. A byte that is not ASCII is `\ooo`.
pub(crate) fn char_text(value: &str) -> String {
    let byte = byte_of_char(value);
    if byte.is_ascii() { value.to_owned() } else { format!("\\{byte:03o}") }
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
