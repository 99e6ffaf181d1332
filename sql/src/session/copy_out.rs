//! The messages of COPY TO, and those that announce data. Pure: rows in, bytes out.

use bytes::{BufMut, BytesMut};

use crate::copy::CopyWriter;
use crate::error::{SqlError, SqlState};
use crate::plan::{CopySpec, ResultColumn};
use pgtypes::{DatumRef, Format, IoEnv};

/// The messages of COPY TO.
#[derive(Debug)]
pub(crate) struct CopyOut {
    writer: CopyWriter,
    has_begun: bool,
    /// The beginning of the binary format, which goes with the first row.
    head: BytesMut,
    /// A value.
    value: BytesMut,
}

impl CopyOut {
    /// The messages of a statement; `None` if it is not COPY TO.
    pub(crate) fn of(spec: Option<&CopySpec>) -> Option<CopyOut> {
        let Some(CopySpec::To(writer)) = spec else { return None };
        let (head, value) = (BytesMut::new(), BytesMut::new());
        Some(CopyOut { writer: writer.clone(), has_begun: false, head, value })
    }

    /// Announces the data, once, and sends the header.
    pub(crate) fn begin(&mut self, columns: &[ResultColumn], out: &mut BytesMut) -> Result<(), SqlError> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        put_response(b'H', self.writer.is_binary(), self.writer.columns(), out);
        let has_head = self.writer.begin(columns.iter().map(|column| column.name.as_str()), &mut self.head);
        if has_head && !self.writer.is_binary() {
            let head = std::mem::take(&mut self.head);
            return put_data(out, |out| out.put_slice(&head));
        }
        Ok(())
    }

    /// Sends a row.
    pub(crate) fn row(
        &mut self,
        row: &[DatumRef<'_>],
        columns: &[ResultColumn],
        env: &IoEnv<'_>,
        out: &mut BytesMut,
    ) -> Result<(), SqlError> {
        let CopyOut { writer, head, value, .. } = self;
        let format = if writer.is_binary() { Format::Binary } else { Format::Text };
        put_data(out, |out| {
            out.put_slice(&head.split());
            writer.begin_row(out);
            for (at, (datum, column)) in row.iter().zip(columns).enumerate() {
                if *datum == DatumRef::Null {
                    writer.field(at, None, out);
                } else {
                    value.clear();
                    datum.encode(column.ty, format, env, value);
                    writer.field(at, Some(value), out);
                }
            }
            writer.end_row(out);
        })
    }

    /// Ends the data.
    pub(crate) fn end(&mut self, out: &mut BytesMut) -> Result<(), SqlError> {
        let (writer, head) = (&self.writer, &mut self.head);
        if writer.is_binary() {
            put_data(out, |out| {
                out.put_slice(&head.split());
                writer.end(out);
            })?;
        }
        out.put_slice(b"c\0\0\0\x04");
        Ok(())
    }
}

/// Appends CopyData. `body` appends its bytes.
fn put_data(out: &mut BytesMut, body: impl FnOnce(&mut BytesMut)) -> Result<(), SqlError> {
    let start = out.len();
    out.put_u8(b'd');
    out.put_i32(0);
    body(out);
    let Ok(length) = i32::try_from(out.len() - start - 1) else {
        out.truncate(start);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "row is too large for the protocol"));
    };
    if let Some(place) = out.get_mut(start + 1..start + 5) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Appends CopyInResponse (`G`) or CopyOutResponse (`H`).
pub(super) fn put_response(kind: u8, is_binary: bool, columns: usize, out: &mut BytesMut) {
    let columns = i16::try_from(columns).unwrap_or(i16::MAX);
    out.put_u8(kind);
    out.put_i32(7 + 2 * i32::from(columns));
    out.put_u8(u8::from(is_binary));
    out.put_i16(columns);
    (0..columns).for_each(|_| out.put_i16(i16::from(is_binary)));
}
