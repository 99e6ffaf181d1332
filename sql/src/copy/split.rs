//! The fields of a line, in text and in CSV.

use super::fields::Fields;
use super::lines::format_error;
use super::options::CopyOptions;
use crate::error::SqlError;
use pgtypes::utf8;

/// Splits a line of the text format. A field that is the NULL string as written is NULL; the others lose their
/// escapes. 22021 if that leaves bytes that are not UTF-8.
pub(super) fn split_text(line: &[u8], options: &CopyOptions, fields: &mut Fields) -> Result<(), SqlError> {
    let mut rest = line;
    loop {
        let (start, line) = (fields.bytes().len(), rest);
        let (mut is_checked, mut at) = (true, 0);
        let end = loop {
            match line.get(at) {
                None => break None,
                Some(byte) if *byte == options.delimiter => break Some(at),
                Some(b'\\') => {
                    let Some(escaped) = line.get(at + 1..).filter(|escaped| !escaped.is_empty()) else {
                        // A backslash at the end of the data says nothing.
                        break None;
                    };
                    let (byte, count) = unescape(escaped);
                    is_checked &= byte.is_ascii() && byte != 0;
                    fields.bytes().push(byte);
                    at += 1 + count;
                }
                Some(byte) => {
                    fields.bytes().push(*byte);
                    at += 1;
                }
            }
        };
        let raw = line.get(..end.unwrap_or(at)).unwrap_or_default();
        if raw == options.null.as_bytes() {
            fields.bytes().truncate(start);
            fields.null();
        } else {
            if !is_checked {
                utf8(fields.bytes().get(start..).unwrap_or_default())?;
            }
            fields.end(start);
        }
        match end {
            None => return Ok(()),
            Some(delimiter) => rest = line.get(delimiter + 1..).unwrap_or_default(),
        }
    }
}

/// The byte that an escape stands for, and its length without the backslash. `escaped` is not empty.
fn unescape(escaped: &[u8]) -> (u8, usize) {
    let first = escaped.first().copied().unwrap_or(b'\\');
    let digits = |from: usize, most: usize, radix: u32| {
        let digits = escaped.iter().skip(from).take(most).map_while(|byte| char::from(*byte).to_digit(radix));
        digits.fold((0u32, 0usize), |(value, count), digit| (value * radix + digit, count + 1))
    };
    match first {
        b'0'..=b'7' => {
            let (value, count) = digits(0, 3, 8);
            (value.to_le_bytes()[0], count)
        }
        b'x' => match digits(1, 2, 16) {
            (_, 0) => (b'x', 1),
            (value, count) => (value.to_le_bytes()[0], 1 + count),
        },
        b'b' => (b'\x08', 1),
        b'f' => (b'\x0c', 1),
        b'n' => (b'\n', 1),
        b'r' => (b'\r', 1),
        b't' => (b'\t', 1),
        b'v' => (b'\x0b', 1),
        other => (other, 1),
    }
}

/// Splits a line of CSV. A field is NULL if it is the NULL string without quotes.
pub(super) fn split_csv(line: &[u8], options: &CopyOptions, fields: &mut Fields) -> Result<(), SqlError> {
    let mut at = 0;
    loop {
        let (start, first) = (fields.bytes().len(), at);
        let mut has_quote = false;
        let ends_with_delimiter = loop {
            match line.get(at) {
                None => break false,
                Some(byte) if *byte == options.delimiter => break true,
                Some(byte) if *byte == options.quote => {
                    has_quote = true;
                    at = quoted(line, at + 1, options, fields.bytes())?;
                }
                Some(byte) => {
                    fields.bytes().push(*byte);
                    at += 1;
                }
            }
        };
        if !has_quote && line.get(first..at) == Some(options.null.as_bytes()) {
            fields.bytes().truncate(start);
            fields.null();
        } else {
            fields.end(start);
        }
        if !ends_with_delimiter {
            return Ok(());
        }
        at += 1;
    }
}

/// Appends the quoted part of a field that begins at `at`. Returns the place behind its closing quote.
fn quoted(line: &[u8], mut at: usize, options: &CopyOptions, out: &mut Vec<u8>) -> Result<usize, SqlError> {
    loop {
        let Some(&byte) = line.get(at) else {
            return Err(format_error("unterminated CSV quoted field"));
        };
        let next = line.get(at + 1).copied();
        match next {
            Some(next) if byte == options.escape && (next == options.escape || next == options.quote) => {
                out.push(next);
                at += 2;
            }
            _ if byte == options.quote => return Ok(at + 1),
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
}
