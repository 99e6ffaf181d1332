//! Inputs of the target `connection`: readable programs, which become messages.
//!
//! A line is a message: its type, a space, its fields with tabs between them. `\n`, `\t`, `\0` and `\\` stand for
//! these bytes inside a field. What is missing is empty, and numbers that are none are 0, so that each text is a
//! program.
//!
//! ```text
//! Q select 1                    Query
//! P name  text  25,23           Parse, with the OIDs of parameters
//! B portal name  1,0  a,\N,b  1 Bind: formats, values, formats of results
//! D Sname                       Describe; C: Close
//! E portal 10                   Execute
//! d data                        CopyData; c: CopyDone; f reason: CopyFail
//! S                             Sync; H: Flush; X: Terminate; F: a function call
//! = 51000000                    bytes
//! ```

use bytes::{BufMut, BytesMut};

const PROTOCOL: i32 = 0x0003_0000;

/// The startup packet of every session that does not bring its own.
pub fn login() -> Vec<u8> {
    let mut body = BytesMut::new();
    body.put_i32(PROTOCOL);
    for text in ["user", "fuzz", "database", "postgres", "options", "-c statement_timeout=200ms"] {
        put_text(&mut body, text.as_bytes());
    }
    body.put_u8(0);
    let mut packet = BytesMut::new();
    packet.put_i32(i32::try_from(body.len()).unwrap() + 4);
    packet.put_slice(&body);
    packet.to_vec()
}

/// A query message.
pub fn query(text: &str) -> Vec<u8> {
    message(b'Q', |body| put_text(body, text.as_bytes()))
}

/// The messages of a program.
pub fn messages(program: &[u8]) -> Vec<u8> {
    program.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).flat_map(line_message).collect()
}

fn line_message(line: &[u8]) -> Vec<u8> {
    let (kind, rest) = (line[0], line.get(2..).unwrap_or_default());
    let fields: Vec<Vec<u8>> = rest.split(|byte| *byte == b'\t').map(unescaped).collect();
    let field = |at: usize| fields.get(at).map_or(&[][..], Vec::as_slice);
    match kind {
        b'=' => hex(field(0)),
        b'P' => message(kind, |body| {
            put_text(body, field(0));
            put_text(body, field(1));
            let types = numbers(field(2));
            body.put_i16(count(types.len()));
            types.iter().for_each(|oid| body.put_i32(*oid));
        }),
        b'B' => message(kind, |body| {
            put_text(body, field(0));
            put_text(body, field(1));
            put_formats(body, field(2));
            let values: Vec<&[u8]> = list(field(3)).collect();
            body.put_i16(count(values.len()));
            values.iter().for_each(|value| put_value(body, value));
            put_formats(body, field(4));
        }),
        b'E' => message(kind, |body| {
            put_text(body, field(0));
            body.put_i32(number(field(1)));
        }),
        b'D' | b'C' => message(kind, |body| {
            let name = field(0);
            body.put_u8(name.first().copied().unwrap_or(b'S'));
            put_text(body, name.get(1..).unwrap_or_default());
        }),
        b'd' => message(kind, |body| body.put_slice(field(0))),
        b'S' | b'H' | b'X' | b'c' => message(kind, |_| ()),
        _ => message(kind, |body| put_text(body, field(0))),
    }
}

fn message(kind: u8, put: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
    let mut body = BytesMut::new();
    put(&mut body);
    let mut message = vec![kind];
    message.extend(i32::try_from(body.len() + 4).unwrap().to_be_bytes());
    message.extend_from_slice(&body);
    message
}

fn put_text(body: &mut BytesMut, text: &[u8]) {
    body.put_slice(text);
    body.put_u8(0);
}

fn put_formats(body: &mut BytesMut, field: &[u8]) {
    let formats = numbers(field);
    body.put_i16(count(formats.len()));
    formats.iter().for_each(|format| body.put_i16(*format as i16));
}

/// A value, `\N` for NULL, `x` and hex digits for bytes.
fn put_value(body: &mut BytesMut, value: &[u8]) {
    let value = match value {
        b"\\N" => return body.put_i32(-1),
        [b'x', digits @ ..] => hex(digits),
        text => text.to_vec(),
    };
    body.put_i32(i32::try_from(value.len()).unwrap());
    body.put_slice(&value);
}

fn list(field: &[u8]) -> impl Iterator<Item = &[u8]> {
    field.split(|byte| *byte == b',').filter(|_| !field.is_empty())
}

fn numbers(field: &[u8]) -> Vec<i32> {
    list(field).map(number).collect()
}

fn number(text: &[u8]) -> i32 {
    std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// A count that the protocol can carry. A longer list is an error of the message, which is an input too.
fn count(len: usize) -> i16 {
    len as i16
}

fn hex(digits: &[u8]) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let digits: Vec<u8> = digits.iter().filter_map(digit).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn unescaped(field: &[u8]) -> Vec<u8> {
    let (mut out, mut bytes) = (Vec::new(), field.iter());
    while let Some(byte) = bytes.next() {
        match (*byte, bytes.as_slice().first()) {
            (b'\\', Some(b'n' | b't' | b'0' | b'\\')) => {
                out.push(match bytes.next() {
                    Some(b'n') => b'\n',
                    Some(b't') => b'\t',
                    Some(b'0') => 0,
                    _ => b'\\',
                });
            }
            (byte, _) => out.push(byte),
        }
    }
    out
}
