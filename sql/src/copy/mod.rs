//! COPY: its statement, its options, and the three formats of its data. Pure: bytes in, rows of optional bytes out, and
//! back.
//!
//! A statement is parsed here ([`statement`]), because the general parser lacks most of its options and reads data
//! behind it. [`options`] checks the options. [`CopyReader`] takes the bytes of the client in any pieces and returns
//! rows of fields; [`CopyWriter`] makes the bytes of a row. The session moves the bytes, the executor stores the rows.
//!
//! # Layers
//!
//! 1. `statement`: the grammar
//! 2. `options`: the checked options
//! 3. `fields`, `lines`: a row of optional bytes; lines of the text formats
//! 4. `binary`, `split`: binary rows; fields of a line
//! 5. `reader`, `writer`: data to rows, rows to data

mod binary;
mod fields;
mod lines;
mod options;
mod reader;
#[cfg(test)]
mod reader_tests;
mod split;
mod statement;
mod writer;

pub(crate) use options::{ColumnSet, CopyOptions};
pub(crate) use reader::CopyReader;
pub(crate) use statement::{CopyStatement, CopyTarget, Identifier, parse};
pub(crate) use writer::CopyWriter;
