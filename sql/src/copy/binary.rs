//! The binary format: a header, rows of counted fields, a trailer.

use super::fields::Fields;
use super::lines::format_error;
use crate::error::SqlError;

/// What the data begins with.
pub(super) const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// The flag of data with OIDs of rows.
const HAS_OIDS: u32 = 1 << 16;

/// What a row's beginning has shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// More bytes are needed.
    Nothing,
    /// This many bytes were a row, or the header.
    Bytes(usize),
    /// The trailer.
    Trailer(usize),
}

/// Reads bytes off the front of data.
struct Reader<'d> {
    data: &'d [u8],
    at: usize,
}

impl<'d> Reader<'d> {
    fn take(&mut self, count: usize) -> Option<&'d [u8]> {
        let bytes = self.data.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(bytes)
    }

    fn int(&mut self) -> Option<i32> {
        self.take(4)?.try_into().ok().map(i32::from_be_bytes)
    }

    fn short(&mut self) -> Option<i16> {
        self.take(2)?.try_into().ok().map(i16::from_be_bytes)
    }
}

/// `Nothing` if more bytes may come, else the error of an early end.
fn missing(at_end: bool, message: &str) -> Result<Read, SqlError> {
    if at_end { Err(format_error(message)) } else { Ok(Read::Nothing) }
}

/// Reads the header.
pub(super) fn header(data: &[u8], at_end: bool) -> Result<Read, SqlError> {
    let mut reader = Reader { data, at: 0 };
    let unknown = "COPY file signature not recognized";
    if !data.starts_with(SIGNATURE.get(..data.len().min(SIGNATURE.len())).unwrap_or_default()) {
        return Err(format_error(unknown));
    }
    if reader.take(SIGNATURE.len()).is_none() {
        return missing(at_end, unknown);
    }
    let Some(flags) = reader.int() else {
        return missing(at_end, "invalid COPY file header (missing flags)");
    };
    let flags = flags.cast_unsigned();
    if flags & HAS_OIDS != 0 {
        return Err(format_error("invalid COPY file header (WITH OIDS)"));
    }
    if flags >> 16 != 0 {
        return Err(format_error("unrecognized critical flags in COPY file header"));
    }
    let Some(extension) = reader.int() else {
        return missing(at_end, "invalid COPY file header (missing length)");
    };
    let Ok(extension) = usize::try_from(extension) else {
        return Err(format_error("invalid COPY file header (missing length)"));
    };
    match reader.take(extension) {
        Some(_) => Ok(Read::Bytes(reader.at)),
        None => missing(at_end, "invalid COPY file header (wrong length)"),
    }
}

/// Reads a row of `columns` fields. `column` follows the field that is read, for errors. Data that ends before a row
/// has begun is complete: the caller sees `Nothing`.
pub(super) fn row(
    data: &[u8],
    at_end: bool,
    columns: usize,
    fields: &mut Fields,
    column: &mut Option<usize>,
) -> Result<Read, SqlError> {
    let mut reader = Reader { data, at: 0 };
    let Some(count) = reader.short() else { return Ok(Read::Nothing) };
    if count == -1 {
        return Ok(Read::Trailer(reader.at));
    }
    if usize::try_from(count) != Ok(columns) {
        return Err(format_error(format!("row field count is {count}, expected {columns}")));
    }
    const EARLY_END: &str = "unexpected EOF in COPY data";
    for at in 0..columns {
        *column = Some(at);
        let Some(length) = reader.int() else { return missing(at_end, EARLY_END) };
        if length == -1 {
            fields.null();
            continue;
        }
        let Ok(length) = usize::try_from(length) else {
            return Err(format_error("invalid field size"));
        };
        let Some(value) = reader.take(length) else { return missing(at_end, EARLY_END) };
        let start = fields.bytes().len();
        fields.bytes().extend_from_slice(value);
        fields.end(start);
    }
    *column = None;
    Ok(Read::Bytes(reader.at))
}
