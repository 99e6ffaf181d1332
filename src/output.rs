//! Standard output, which may be a pipe whose reader has left.
//!
//! The standard library's `println!` panics there; a reader that has seen enough is no failure of ours.

use std::fmt::Display;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reader_that_left_is_forgiven() {
        assert!(written(Err(ErrorKind::BrokenPipe.into())).is_ok());
        assert!(written(Err(ErrorKind::StorageFull.into())).is_err());
    }
}
