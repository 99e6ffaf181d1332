//! Rows to the data of COPY TO. A row is appended to a buffer; the caller frames and sends it.

use bytes::{BufMut, BytesMut};

use super::binary::SIGNATURE;
use super::options::{CopyOptions, DataFormat, Header};

/// Writes the data of a COPY TO.
#[derive(Clone, Debug)]
pub(crate) struct CopyWriter {
    options: CopyOptions,
    /// Whether FORCE_QUOTE, for each column.
    quoted: Vec<bool>,
}

impl CopyWriter {
    /// A writer. `quoted`: whether FORCE_QUOTE, for each column.
    pub(crate) fn new(options: CopyOptions, quoted: Vec<bool>) -> CopyWriter {
        CopyWriter { options, quoted }
    }

    /// Whether values are in the binary form.
    pub(crate) fn is_binary(&self) -> bool {
        self.options.format == DataFormat::Binary
    }

    /// The number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.quoted.len()
    }

    /// Appends what comes before the first row. Returns false if there is nothing.
    pub(crate) fn begin<'n>(&self, names: impl Iterator<Item = &'n str>, out: &mut BytesMut) -> bool {
        if self.is_binary() {
            out.put_slice(SIGNATURE);
            out.put_i32(0);
            out.put_i32(0);
            return true;
        }
        if self.options.header == Header::None {
            return false;
        }
        for (at, name) in names.enumerate() {
            self.separate(at, out);
            match self.options.format {
                DataFormat::Csv => self.csv(name.as_bytes(), false, out),
                _ => self.text(name.as_bytes(), out),
            }
        }
        out.put_u8(b'\n');
        true
    }

    /// Appends what comes behind the last row. Returns false if there is nothing.
    pub(crate) fn end(&self, out: &mut BytesMut) -> bool {
        if self.is_binary() {
            out.put_i16(-1);
        }
        self.is_binary()
    }

    /// Begins a row.
    pub(crate) fn begin_row(&self, out: &mut BytesMut) {
        if self.is_binary() {
            out.put_i16(i16::try_from(self.quoted.len()).unwrap_or(i16::MAX));
        }
    }

    /// Appends a field of a row; `None` for NULL.
    pub(crate) fn field(&self, at: usize, value: Option<&[u8]>, out: &mut BytesMut) {
        if self.is_binary() {
            let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap_or(i32::MAX));
            out.put_i32(length);
            out.put_slice(value.unwrap_or_default());
            return;
        }
        self.separate(at, out);
        match (value, self.options.format) {
            (None, _) => out.put_slice(self.options.null.as_bytes()),
            (Some(value), DataFormat::Csv) => self.csv(value, self.quoted.get(at) == Some(&true), out),
            (Some(value), _) => self.text(value, out),
        }
    }

    /// Ends a row.
    pub(crate) fn end_row(&self, out: &mut BytesMut) {
        if !self.is_binary() {
            out.put_u8(b'\n');
        }
    }

    fn separate(&self, at: usize, out: &mut BytesMut) {
        if at > 0 {
            out.put_u8(self.options.delimiter);
        }
    }

    /// A field of the text format.
    fn text(&self, value: &[u8], out: &mut BytesMut) {
        for byte in value {
            let letter = match byte {
                b'\x08' => b'b',
                b'\x0c' => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                b'\x0b' => b'v',
                byte if *byte == b'\\' || *byte == self.options.delimiter => *byte,
                byte => {
                    out.put_u8(*byte);
                    continue;
                }
            };
            out.put_slice(&[b'\\', letter]);
        }
    }

    /// A field of CSV.
    fn csv(&self, value: &[u8], is_forced: bool, out: &mut BytesMut) {
        let (delimiter, quote, escape) = (self.options.delimiter, self.options.quote, self.options.escape);
        let is_special = |byte: &u8| *byte == delimiter || *byte == quote || matches!(byte, b'\n' | b'\r');
        // A line of it alone would end the data.
        let is_marker = self.quoted.len() == 1 && value == b"\\.";
        if !is_forced && value != self.options.null.as_bytes() && !is_marker && !value.iter().any(is_special) {
            out.put_slice(value);
            return;
        }
        out.put_u8(quote);
        for byte in value {
            if *byte == quote || *byte == escape {
                out.put_u8(escape);
            }
            out.put_u8(*byte);
        }
        out.put_u8(quote);
    }
}
