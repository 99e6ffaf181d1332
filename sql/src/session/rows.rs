//! Result and parameter formats, and the encoding of rows.

use bytes::{BufMut, BytesMut};

use crate::error::{SqlError, SqlState};
use crate::exec::Row;
use crate::plan::ResultColumn;
use crate::protocol::frame::violation;
use pgtypes::{DatumRef, Format, IoEnv};

/// The formats of a statement's columns or parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Formats {
    all: Format,
    /// One format per column; `all` is unused then. Empty: `all` applies.
    each: Vec<Format>,
}

impl Formats {
    /// All text.
    pub(crate) const TEXT: Formats = Formats { all: Format::Text, each: Vec::new() };

    /// All binary.
    pub(crate) const BINARY: Formats = Formats { all: Format::Binary, each: Vec::new() };

    /// Reads the format codes of a message. No code means text, one code applies to all. More codes must be `count`
    /// (`None`: not checked, for statements without columns).
    pub(crate) fn read(
        codes: &[i16],
        count: Option<usize>,
        mismatch: impl Fn(usize) -> String,
    ) -> Result<Formats, SqlError> {
        match codes {
            [] => Ok(Formats::TEXT),
            [one] => Ok(Formats { all: format(*one)?, each: Vec::new() }),
            many => {
                let each = many.iter().map(|code| format(*code)).collect::<Result<Vec<_>, _>>()?;
                match count {
                    Some(count) if count != each.len() => Err(violation(mismatch(count))),
                    _ => Ok(Formats { all: Format::Text, each }),
                }
            }
        }
    }

    /// The format of a column or parameter, from 0.
    pub(crate) fn get(&self, index: usize) -> Format {
        self.each.get(index).copied().unwrap_or(self.all)
    }

    /// The protocol's code of that format.
    pub(crate) fn code(&self, index: usize) -> i16 {
        match self.get(index) {
            Format::Text => 0,
            Format::Binary => 1,
        }
    }

    /// The common format, if given as one code.
    pub(crate) fn uniform(&self) -> Option<Format> {
        self.each.is_empty().then_some(self.all)
    }
}

fn format(code: i16) -> Result<Format, SqlError> {
    match code {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        other => Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("unsupported format code: {other}"))),
    }
}

/// The values of a row on their own, of the types of their columns.
pub(crate) fn keep_row(row: &[DatumRef<'_>], columns: &[ResultColumn]) -> Row {
    row.iter().zip(columns).map(|(value, column)| value.to_datum(column.ty)).collect()
}

/// Appends a DataRow. Encodes straight into the output, because the codec's message would copy every row once more.
pub(crate) fn put_row(
    out: &mut BytesMut,
    row: &[DatumRef<'_>],
    columns: &[ResultColumn],
    formats: &Formats,
    env: &IoEnv<'_>,
) -> Result<(), SqlError> {
    let start = out.len();
    out.put_u8(b'D');
    out.put_i32(0);
    out.put_i16(i16::try_from(row.len()).map_err(|_| too_large())?);
    for (index, (datum, column)) in row.iter().zip(columns).enumerate() {
        if *datum == DatumRef::Null {
            out.put_i32(-1);
            continue;
        }
        let at = out.len();
        out.put_i32(0);
        datum.encode(column.ty, formats.get(index), env, out);
        put_length(out, at, out.len() - at - 4)?;
    }
    put_length(out, start + 1, out.len() - start - 1).inspect_err(|_| out.truncate(start))
}

/// Writes a length into the four bytes at `at`.
fn put_length(out: &mut BytesMut, at: usize, length: usize) -> Result<(), SqlError> {
    let length = i32::try_from(length).map_err(|_| too_large())?;
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

fn too_large() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "row is too large for the protocol")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(codes: &[i16], count: Option<usize>) -> Result<Formats, &'static str> {
        Formats::read(codes, count, |n| format!("{n}")).map_err(|e| e.code.0)
    }

    #[test]
    fn accepts_no_code_one_code_or_one_per_column() {
        assert_eq!(read(&[], Some(2)), Ok(Formats::TEXT));
        assert_eq!(read(&[1], Some(2)), Ok(Formats::BINARY));
        let mixed = read(&[0, 1], Some(2)).unwrap();
        assert_eq!((mixed.get(0), mixed.get(1), mixed.uniform()), (Format::Text, Format::Binary, None));
        assert_eq!(read(&[0, 1], Some(3)), Err("08P01"));
        assert!(read(&[0, 1], None).is_ok());
        assert_eq!(read(&[2], Some(1)), Err("22023"));
        assert_eq!(read(&[-1, 0], Some(2)), Err("22023"));
    }
}
