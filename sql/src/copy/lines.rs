//! Lines of the text formats: where one ends, with PostgreSQL's rules. Bytes come in any pieces; a scan stops where it
//! needs more and goes on there.
//!
//! The first line end decides which one the data uses: `\n`, `\r` or `\r\n`. In text, a backslash hides the byte behind
//! it. In CSV, line ends within quotes are data. A line of only `\.` ends the data.

use super::options::{CopyOptions, DataFormat};
use crate::error::{SqlError, SqlState};

/// The line end of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Newline,
    Return,
    Both,
}

/// What a scan has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// More bytes are needed.
    Nothing,
    /// A line of `length` bytes, with its end `total` bytes.
    Line { length: usize, total: usize },
    /// The end-of-copy marker behind `length` bytes. All that follows is ignored.
    Marker { length: usize },
}

/// Finds the ends of lines.
#[derive(Debug)]
pub(super) struct LineScanner {
    /// The quote of CSV; `None` in text.
    quote: Option<u8>,
    /// What escapes a quote, if it is not the quote.
    escape: Option<u8>,
    line_end: Option<LineEnd>,
    /// How far the current line was scanned.
    at: usize,
    in_quote: bool,
    after_escape: bool,
    /// The number of the current line, from 1.
    line: u64,
}

/// What the byte at a position is.
enum Step {
    /// Part of the line; of so many bytes.
    Data(usize),
    Done(Found),
}

impl LineScanner {
    pub(super) fn new(options: &CopyOptions) -> LineScanner {
        let is_csv = options.format == DataFormat::Csv;
        LineScanner {
            quote: is_csv.then_some(options.quote),
            escape: (is_csv && options.escape != options.quote).then_some(options.escape),
            line_end: None,
            at: 0,
            in_quote: false,
            after_escape: false,
            line: 0,
        }
    }

    /// The number of the current line.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Begins a line.
    pub(super) fn begin(&mut self) {
        self.line += 1;
        self.at = 0;
        self.in_quote = false;
        self.after_escape = false;
    }

    /// Continues with the current line, which `data` begins with. `at_end`: there are no more bytes.
    pub(super) fn scan(&mut self, data: &[u8], at_end: bool) -> Result<Found, SqlError> {
        while let Some(&byte) = data.get(self.at) {
            let looks_ahead = matches!(byte, b'\r' | b'\\');
            if looks_ahead && !at_end && data.len() < self.at + 2 {
                return Ok(Found::Nothing);
            }
            let is_first = self.at == 0;
            let step = match byte {
                b'\r' if !self.in_quote => self.carriage_return(data)?,
                b'\n' if !self.in_quote => self.newline()?,
                b'\\' if self.quote.is_none() || is_first => match self.backslash(data, at_end)? {
                    Some(step) => step,
                    None => return Ok(Found::Nothing),
                },
                _ => Step::Data(1),
            };
            match step {
                Step::Done(found) => return Ok(found),
                Step::Data(count) => {
                    self.note_quote(byte);
                    self.at += count;
                }
            }
        }
        if at_end && !data.is_empty() {
            return Ok(Found::Line { length: data.len(), total: data.len() });
        }
        Ok(Found::Nothing)
    }

    /// Follows the quotes of CSV over a byte of a line.
    fn note_quote(&mut self, byte: u8) {
        let Some(quote) = self.quote else { return };
        if self.in_quote && self.escape == Some(byte) {
            self.after_escape = !self.after_escape;
        }
        if byte == quote && !self.after_escape {
            self.in_quote = !self.in_quote;
        }
        if self.escape != Some(byte) {
            self.after_escape = false;
        }
        let counted = if self.line_end == Some(LineEnd::Newline) { b'\n' } else { b'\r' };
        if self.in_quote && byte == counted {
            self.line += 1;
        }
    }

    fn line_of(&self, end: usize) -> Step {
        Step::Done(Found::Line { length: self.at, total: self.at + end })
    }

    fn carriage_return(&mut self, data: &[u8]) -> Result<Step, SqlError> {
        let next = data.get(self.at + 1).copied();
        match (self.line_end, next) {
            (None | Some(LineEnd::Both), Some(b'\n')) => {
                self.line_end = Some(LineEnd::Both);
                Ok(self.line_of(2))
            }
            (None | Some(LineEnd::Return), _) => {
                self.line_end = Some(LineEnd::Return);
                Ok(self.line_of(1))
            }
            (Some(LineEnd::Newline | LineEnd::Both), _) => Err(match self.quote {
                None => format_error("literal carriage return found in data")
                    .hint("Use \"\\r\" to represent carriage return."),
                Some(_) => format_error("unquoted carriage return found in data")
                    .hint("Use quoted CSV field to represent carriage return."),
            }),
        }
    }

    fn newline(&mut self) -> Result<Step, SqlError> {
        if matches!(self.line_end, None | Some(LineEnd::Newline)) {
            self.line_end = Some(LineEnd::Newline);
            return Ok(self.line_of(1));
        }
        Err(match self.quote {
            None => format_error("literal newline found in data").hint("Use \"\\n\" to represent newline."),
            Some(_) => {
                format_error("unquoted newline found in data").hint("Use quoted CSV field to represent newline.")
            }
        })
    }

    /// A backslash: the beginning of the end-of-copy marker, or of an escape of text. `None`: more bytes are needed.
    fn backslash(&self, data: &[u8], at_end: bool) -> Result<Option<Step>, SqlError> {
        let is_text = self.quote.is_none();
        match data.get(self.at + 1) {
            Some(b'.') => {}
            Some(_) if is_text => return Ok(Some(Step::Data(2))),
            _ => return Ok(Some(Step::Data(1))),
        }
        let no_marker = || match is_text {
            true => Err(format_error("end-of-copy marker corrupt")),
            false => Ok(Some(Step::Data(1))),
        };
        let mismatch = || Err(format_error("end-of-copy marker does not match previous newline style"));
        let mut behind = data.get(self.at + 2..).unwrap_or_default();
        if self.line_end == Some(LineEnd::Both) {
            match behind {
                [] if !at_end => return Ok(None),
                [b'\n', ..] if is_text => return mismatch(),
                [b'\r', rest @ ..] => behind = rest,
                _ => return no_marker(),
            }
        }
        match (self.line_end, behind) {
            (_, []) if !at_end => Ok(None),
            (None, [b'\r' | b'\n', ..])
            | (Some(LineEnd::Newline | LineEnd::Both), [b'\n', ..])
            | (Some(LineEnd::Return), [b'\r', ..]) => Ok(Some(Step::Done(Found::Marker { length: self.at }))),
            (_, [b'\r' | b'\n', ..]) => mismatch(),
            _ => no_marker(),
        }
    }
}

/// 22P04
pub(super) fn format_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}
