//! When to stop: Ctrl-C, SIGTERM, or a closed standard input.

use std::io;

use tokio::io::AsyncReadExt;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C and SIGTERM, caught from the moment this is made: one that comes while nobody waits is not lost.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Catches both from now on.
    pub(crate) fn catch() -> io::Result<Signals> {
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Ends when either arrives, or has arrived since the last call ended.
    pub(crate) async fn stop_requested(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Ends when standard input does: whoever holds the other end is gone.
pub(crate) async fn stdin_closed() {
    let mut input = tokio::io::stdin();
    let mut waste = [0; 64];
    while input.read(&mut waste).await.is_ok_and(|read| read > 0) {}
}
