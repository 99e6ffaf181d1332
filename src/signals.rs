//! When to stop: Ctrl-C, SIGTERM, or a closed standard input.

use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

/// Ends when Ctrl-C is pressed or SIGTERM arrives. May be called many times.
pub(crate) async fn stop_requested() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without handlers the signals end the process at once, as the operating system does it.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Ends when standard input does: whoever holds the other end is gone.
pub(crate) async fn stdin_closed() {
    let mut input = tokio::io::stdin();
    let mut waste = [0; 64];
    while input.read(&mut waste).await.is_ok_and(|read| read > 0) {}
}
