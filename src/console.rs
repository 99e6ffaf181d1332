//! The process's terminal or pipes: lines and tables on standard output, stop signals, the end of standard input.

use std::fmt::{Display, Write as _};
use std::io::{self, ErrorKind, Write};

use tokio::io::AsyncReadExt;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Writes a line to standard output. Succeeds also if the reader has closed the pipe, where `println!` would panic.
pub(crate) fn print_line(text: impl Display) -> io::Result<()> {
    ignore_broken_pipe(writeln!(io::stdout(), "{text}"))
}

/// Writes a line for a user who may do without it: the command continues if that fails.
pub(crate) fn show_line(text: impl Display) {
    let _ = print_line(text);
}

fn ignore_broken_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A text table. Each column is as wide as its widest cell.
pub(crate) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table with these column names.
    pub(crate) fn new(head: &[&str; N]) -> Table<N> {
        Table { rows: vec![head.map(str::to_string)] }
    }

    /// Appends a row.
    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Renders one line per row, the column names first.
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

/// Handlers of SIGINT (Ctrl-C) and SIGTERM. A signal that arrives while no task waits for it is not lost.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Installs the handlers.
    pub(crate) fn install() -> io::Result<StopSignals> {
        Ok(StopSignals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Completes when either signal arrives, or has arrived since the last call completed.
    pub(crate) async fn recv(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Completes when standard input is closed: the process at its other end has ended.
pub(crate) async fn stdin_closed() {
    let mut input = tokio::io::stdin();
    let mut discarded = [0; 64];
    while input.read(&mut discarded).await.is_ok_and(|read| read > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_pipe_is_ignored() {
        assert!(ignore_broken_pipe(Err(ErrorKind::BrokenPipe.into())).is_ok());
        assert!(ignore_broken_pipe(Err(ErrorKind::StorageFull.into())).is_err());
    }
}
