//! What the shadow oracle reports in its log: a difference between a read at a replica and the same read on the leader
//! is a violation, with both proofs in the words of the product.

use std::io::{Result, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use simulator::checkers::{Checked, violated};
use tracing::Level;
use tracing::subscriber::DefaultGuard;

/// The words of every report.
const REPORT: &str = "differs on the leader";

/// The errors that this thread has logged. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Logs(Arc<Mutex<Vec<u8>>>);

impl Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Logs {
    /// Captures what this thread logs until the guard is dropped.
    pub(crate) fn capture() -> (Logs, DefaultGuard) {
        let logs = Logs::default();
        let lines = logs.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).without_time().with_max_level(Level::ERROR);
        let subscriber = subscriber.with_writer(move || lines.clone()).finish();
        (logs, tracing::subscriber::set_default(subscriber))
    }

    /// Fails with the first report.
    pub(crate) fn check(&self) -> Checked {
        let logs = self.0.lock();
        match String::from_utf8_lossy(&logs).lines().find(|line| line.contains(REPORT)) {
            Some(report) => violated(report.trim()),
            None => Ok(()),
        }
    }
}
