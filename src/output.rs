//! Standard output, which may be a pipe whose reader has left, and tables on it.
//!
//! The standard library's `println!` panics there; a reader that has seen enough is no failure of ours.

use std::fmt::{Display, Write as _};
use std::io::{self, ErrorKind, Write};

/// Writes a line. A reader that has left is not told of, and not complained about.
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    written(writeln!(io::stdout(), "{text}"))
}

fn written(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Columns as wide as their widest cell.
pub(crate) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// With these names of columns.
    pub(crate) fn new(head: &[&str; N]) -> Table<N> {
        Table { rows: vec![head.map(str::to_string)] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// One line per row, the names first.
    pub(crate) fn render(&self) -> String {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..N).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                // Writing to a String cannot fail.
                let _ = write!(line, "{cell:<width$}  ");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reader_that_left_is_forgiven() {
        assert!(written(Err(ErrorKind::BrokenPipe.into())).is_ok());
        assert!(written(Err(ErrorKind::StorageFull.into())).is_err());
    }
}
