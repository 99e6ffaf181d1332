//! Text output: PostgreSQL's output functions of the supported types (ISO dates, hex bytea, shortest floats).

use std::fmt::Write;

use bytes::BytesMut;

use crate::datum::{Datum, DatumRef};
use crate::timestamp::{self, TimeZone};

/// Appends the text form; nothing for NULL.
pub fn write(datum: DatumRef<'_>, zone: &TimeZone, out: &mut BytesMut) {
    match datum {
        DatumRef::Null => {}
        DatumRef::Bool(value) => out.extend_from_slice(if value { b"t" } else { b"f" }),
        DatumRef::Int(value) => write_int(value, out),
        DatumRef::Float(value) => out.extend_from_slice(float(value).as_bytes()),
        DatumRef::Text(text) => out.extend_from_slice(text.as_bytes()),
        DatumRef::Bytes(bytes) => write_hex(bytes, out),
        DatumRef::Timestamp(micros) => out.extend_from_slice(timestamp::format(micros, zone).as_bytes()),
    }
}

/// The text form as a string, as in a cast to text, except for booleans, which a cast spells out.
pub fn to_text(datum: &Datum, zone: &TimeZone) -> String {
    let mut out = BytesMut::new();
    write(datum.borrow(), zone, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn write_int(value: i64, out: &mut BytesMut) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.extend_from_slice(b"-");
    }
    out.extend_from_slice(&digits[at..]);
}

fn write_hex(bytes: &[u8], out: &mut BytesMut) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 + bytes.len() * 2);
    out.extend_from_slice(b"\\x");
    for byte in bytes {
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

/// The shortest decimal that parses to the same float, in PostgreSQL's layout: scientific from 1e15 on and below 1e-4,
/// with a signed exponent of at least two digits.
pub fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..15).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let mut out = String::with_capacity(24);
    // Writing to a String cannot fail.
    let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    out
}
