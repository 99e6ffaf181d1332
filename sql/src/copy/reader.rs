//! Data of COPY FROM to rows. The bytes come in any pieces: the rows and the errors are the same for all.
//!
//! The caller pushes bytes, takes rows until there is none, and says when there are no more bytes. The bytes of the
//! current row stay until the next one is asked for, because errors show them.

use bytes::{Buf, BytesMut};

use super::binary::{self, Read};
use super::fields::Fields;
use super::lines::{Found, LineScanner, format_error};
use super::options::{CopyOptions, DataFormat, Header};
use super::split::{split_csv, split_text};
use crate::error::SqlError;
use pgtypes::utf8;

/// Bytes of a line or value in the context of an error.
const SHOWN_BYTES: usize = 100;

/// Reads rows off the data of a COPY FROM.
#[derive(Debug)]
pub(crate) struct CopyReader {
    options: CopyOptions,
    /// The names of the columns.
    names: Vec<String>,
    /// Columns that are never NULL, and columns where a quoted NULL string is NULL.
    forced: Vec<(bool, bool)>,
    data: BytesMut,
    /// The bytes of the current row at the beginning of `data`, with the line end.
    current: usize,
    /// The bytes of the current line, once it is complete.
    shown: Option<usize>,
    fields: Fields,
    scanner: LineScanner,
    /// The number of the current row of the binary format.
    row: u64,
    /// The column of the binary format that is read.
    column: Option<usize>,
    /// Whether the header is still to come.
    has_header: bool,
    state: State,
    at_end: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A line or row begins.
    Between,
    /// A line has begun.
    Within,
    /// Nothing: what comes is ignored, or an error after the trailer of the binary format.
    Done,
}

impl CopyReader {
    /// A reader. `columns`: name, whether FORCE_NOT_NULL, whether FORCE_NULL.
    pub(crate) fn new(options: CopyOptions, columns: impl Iterator<Item = (String, bool, bool)>) -> CopyReader {
        let (names, forced) = columns.map(|(name, not_null, null)| (name, (not_null, null))).unzip();
        let has_header = options.format == DataFormat::Binary || options.header != Header::None;
        CopyReader {
            scanner: LineScanner::new(&options),
            options,
            names,
            forced,
            data: BytesMut::new(),
            current: 0,
            shown: None,
            fields: Fields::default(),
            row: 0,
            column: None,
            has_header,
            state: State::Between,
            at_end: false,
        }
    }

    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let is_ignored = self.state == State::Done && self.options.format != DataFormat::Binary;
        if !is_ignored {
            self.data.extend_from_slice(bytes);
        }
    }

    /// Says that there are no more bytes.
    pub(crate) fn finish(&mut self) {
        self.at_end = true;
    }

    /// Whether values are in the binary form.
    pub(crate) fn is_binary(&self) -> bool {
        self.options.format == DataFormat::Binary
    }

    /// The bytes that wait for their row to be complete.
    pub(crate) fn waiting(&self) -> usize {
        self.data.len().saturating_sub(self.current)
    }

    /// The next row; `None` if it needs more bytes, or there is none.
    pub(crate) fn next(&mut self) -> Result<Option<&Fields>, SqlError> {
        self.data.advance(self.current.min(self.data.len()));
        (self.current, self.shown) = (0, None);
        let found = match self.options.format {
            DataFormat::Binary => self.next_binary()?,
            DataFormat::Text | DataFormat::Csv => self.next_line()?,
        };
        Ok(found.then_some(&self.fields))
    }

    /// The number of the current row or line, for errors.
    pub(crate) fn line(&self) -> u64 {
        match self.options.format {
            DataFormat::Binary => self.row,
            DataFormat::Text | DataFormat::Csv => self.scanner.line(),
        }
    }

    /// Where an error of the current row is: its line, its column and value if they are known, otherwise the text of
    /// the line. `None` in the header of the binary format, which has no lines.
    pub(crate) fn place(&self, column: Option<usize>) -> Option<String> {
        let line = self.line();
        if line == 0 {
            return None;
        }
        let is_binary = self.options.format == DataFormat::Binary;
        Some(match column.or(self.column) {
            Some(at) => {
                let name = self.names.get(at).map_or("", String::as_str);
                match self.fields.get(at) {
                    _ if is_binary => format!("line {line}, column {name}"),
                    Some(value) => format!("line {line}, column {name}: \"{}\"", shown(value)),
                    None => format!("line {line}, column {name}: null input"),
                }
            }
            None => match self.shown.and_then(|length| self.data.get(..length)) {
                Some(text) => format!("line {line}: \"{}\"", shown(text)),
                None => format!("line {line}"),
            },
        })
    }

    /// Reads a row of the binary format, and the header before the first one.
    fn next_binary(&mut self) -> Result<bool, SqlError> {
        if self.has_header {
            let Read::Bytes(length) = binary::header(&self.data, self.at_end)? else { return Ok(false) };
            self.data.advance(length);
            self.has_header = false;
        }
        if self.state == State::Done {
            return match self.data.is_empty() {
                true => Ok(false),
                false => Err(format_error("received copy data after EOF marker")),
            };
        }
        if self.state == State::Between {
            self.row += 1;
            self.state = State::Within;
        }
        self.fields.clear();
        self.column = None;
        let columns = self.names.len();
        match binary::row(&self.data, self.at_end, columns, &mut self.fields, &mut self.column)? {
            Read::Nothing => Ok(false),
            Read::Bytes(length) => {
                self.current = length;
                self.state = State::Between;
                Ok(true)
            }
            Read::Trailer(length) => {
                self.data.advance(length);
                self.state = State::Done;
                self.next_binary()
            }
        }
    }

    /// Reads a line, and the header before the first one.
    fn next_line(&mut self) -> Result<bool, SqlError> {
        loop {
            if self.state == State::Done {
                self.data.clear();
                return Ok(false);
            }
            if self.state == State::Between {
                self.scanner.begin();
                self.state = State::Within;
            }
            let length = match self.scanner.scan(&self.data, self.at_end)? {
                Found::Nothing => return Ok(false),
                Found::Line { length, total } => {
                    self.current = total;
                    self.state = State::Between;
                    length
                }
                Found::Marker { length } => {
                    self.current = self.data.len();
                    self.state = State::Done;
                    if length == 0 {
                        continue;
                    }
                    length
                }
            };
            self.split(length)?;
            if !std::mem::take(&mut self.has_header) {
                self.check_row()?;
                return Ok(true);
            }
            if self.options.header == Header::Match {
                self.match_header()?;
            }
            self.data.advance(self.current.min(self.data.len()));
            (self.current, self.shown) = (0, None);
        }
    }

    /// Splits the current line.
    fn split(&mut self, length: usize) -> Result<(), SqlError> {
        let line = self.data.get(..length).unwrap_or_default();
        utf8(line)?;
        self.shown = Some(length);
        self.fields.clear();
        match self.options.format {
            DataFormat::Csv => split_csv(line, &self.options, &mut self.fields),
            _ => split_text(line, &self.options, &mut self.fields),
        }
    }

    /// Checks the number of fields, and applies FORCE_NOT_NULL and FORCE_NULL.
    fn check_row(&mut self) -> Result<(), SqlError> {
        let columns = self.names.len();
        if columns == 0 && self.shown == Some(0) {
            self.fields.clear();
        }
        if self.fields.len() > columns {
            return Err(format_error("extra data after last expected column"));
        }
        if let Some(missing) = self.names.get(self.fields.len()) {
            return Err(format_error(format!("missing data for column \"{missing}\"")));
        }
        let null = self.options.null.as_bytes();
        for (at, (not_null, is_null)) in self.forced.iter().enumerate() {
            match self.fields.get(at) {
                None if *not_null => self.fields.fill(at, null),
                Some(value) if *is_null && value == null => self.fields.set_null(at),
                _ => {}
            }
        }
        Ok(())
    }

    /// Compares the header with the names of the columns.
    fn match_header(&self) -> Result<(), SqlError> {
        let (found, expected) = (self.fields.len(), self.names.len());
        if found != expected {
            let message = format!("wrong number of fields in header line: got {found}, expected {expected}");
            return Err(format_error(message));
        }
        for (at, name) in self.names.iter().enumerate() {
            let (field, null) = (at + 1, &self.options.null);
            let message = match self.fields.get(at) {
                Some(text) if text == name.as_bytes() => continue,
                Some(text) => {
                    let text = String::from_utf8_lossy(text);
                    format!("column name mismatch in header line field {field}: got \"{text}\", expected \"{name}\"")
                }
                None => {
                    let got = format!("got null value (\"{null}\")");
                    format!("column name mismatch in header line field {field}: {got}, expected \"{name}\"")
                }
            };
            return Err(format_error(message));
        }
        Ok(())
    }
}

/// Bytes in an error, cut off.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.len() <= SHOWN_BYTES {
        return text.into_owned();
    }
    let mut end = SHOWN_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", text.get(..end).unwrap_or_default())
}
