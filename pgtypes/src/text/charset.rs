//! Bytes in other encodings: `convert`, `convert_from`, `convert_to`, `length` of bytes in an encoding.
//!
//! The encodings are UTF8, LATIN1 and SQL_ASCII, which is bytes without a meaning. The names of all others are unknown.

use crate::error::ValueError;
use crate::sqlstate::SqlState;
use crate::utf8::utf8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Charset {
    Utf8,
    Latin1,
    SqlAscii,
}

/// 22023 for a name that is not known. `which` says what it is the name of.
fn find(name: &str, which: &str) -> Result<Charset, ValueError> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    match plain.as_str() {
        "utf8" | "unicode" => Ok(Charset::Utf8),
        "latin1" | "iso88591" => Ok(Charset::Latin1),
        "sqlascii" => Ok(Charset::SqlAscii),
        _ => {
            let message = format!("invalid {which} name \"{name}\"");
            Err(ValueError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
    }
}

/// Checks bytes in an encoding. 22021 for bad ones: none has the byte 0.
fn check(bytes: &[u8], charset: Charset) -> Result<(), ValueError> {
    let name = match charset {
        Charset::Utf8 => return utf8(bytes).map(|_| ()),
        Charset::Latin1 => "LATIN1",
        Charset::SqlAscii => "SQL_ASCII",
    };
    if !bytes.contains(&0) {
        return Ok(());
    }
    let message = format!("invalid byte sequence for encoding \"{name}\": 0x00");
    Err(ValueError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message))
}

/// `convert`: bytes of one encoding in another one. 22023 for an unknown encoding, 22021 for bytes that are none of the
/// source's, 22P05 for a character that the destination lacks.
pub fn convert(bytes: &[u8], source: &str, destination: &str) -> Result<Vec<u8>, ValueError> {
    let from = find(source, "source encoding")?;
    let to = find(destination, "destination encoding")?;
    check(bytes, from)?;
    match (from, to) {
        (Charset::Utf8, Charset::Latin1) => utf8(bytes)?.chars().map(latin1).collect(),
        (Charset::Latin1, Charset::Utf8) => {
            let text: String = bytes.iter().copied().map(char::from).collect();
            Ok(text.into_bytes())
        }
        _ => {
            // The bytes stay as they are. Those without a meaning get one.
            check(bytes, to)?;
            Ok(bytes.to_vec())
        }
    }
}

fn latin1(c: char) -> Result<u8, ValueError> {
    u8::try_from(u32::from(c)).map_err(|_| {
        let bytes: Vec<String> = c.to_string().bytes().map(|byte| format!("0x{byte:02x}")).collect();
        let message = format!(
            "character with byte sequence {} in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\"",
            bytes.join(" ")
        );
        ValueError::new(SqlState::UNTRANSLATABLE_CHARACTER, message)
    })
}

/// `convert_from`: the text of bytes in an encoding. Errors of [`convert`].
pub fn convert_from(bytes: &[u8], source: &str) -> Result<String, ValueError> {
    let bytes = convert(bytes, source, "UTF8")?;
    String::from_utf8(bytes).map_err(|_| ValueError::internal("a conversion made bad UTF-8"))
}

/// `convert_to`: the bytes of a text in an encoding. Errors of [`convert`].
pub fn convert_to(text: &str, destination: &str) -> Result<Vec<u8>, ValueError> {
    convert(text.as_bytes(), "UTF8", destination)
}

/// `length(bytea, name)`: the characters of bytes in an encoding. 22023 for an unknown encoding, 22021 for bad bytes.
pub fn encoded_length(bytes: &[u8], encoding: &str) -> Result<usize, ValueError> {
    let charset = find(encoding, "encoding")?;
    check(bytes, charset)?;
    Ok(if charset == Charset::Utf8 { utf8(bytes)?.chars().count() } else { bytes.len() })
}
