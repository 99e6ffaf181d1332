//! The thread that collects old versions of the node's store (`kv::gc`). It decides nothing: it runs the worker's turns
//! and waits in between.
//!
//! A turn may take seconds, and nobody waits for it except the end of the node: RocksDB must not be in use when the
//! process exits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::store::rocks::RocksStore;
use kv::gc::Worker;

/// The wait after a failed turn.
const RETRY: Duration = Duration::from_secs(10);

/// The running thread. Dropping it ends the thread after its turn.
pub(super) struct CollectThread {
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CollectThread {
    /// Starts the thread.
    pub(super) fn start(worker: Worker<RocksStore>) -> std::io::Result<CollectThread> {
        let stops = Arc::new(AtomicBool::new(false));
        let run = {
            let stops = Arc::clone(&stops);
            move || run(worker, &stops)
        };
        let thread = std::thread::Builder::new().name("cortado-collect".to_owned()).spawn(run)?;
        Ok(CollectThread { stops, thread: Some(thread) })
    }

    /// Ends the thread and waits for it. Blocks.
    pub(super) fn stop(mut self) {
        self.end();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the collection of old versions ended in a panic");
        }
    }

    fn end(&self) {
        self.stops.store(true, Ordering::SeqCst);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for CollectThread {
    fn drop(&mut self) {
        self.end();
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge where the worker's clock begins")]
fn run(mut worker: Worker<RocksStore>, stops: &AtomicBool) {
    let started = Instant::now();
    while !stops.load(Ordering::SeqCst) {
        let wait = worker.turn(&|| started.elapsed()).unwrap_or_else(|error| {
            tracing::warn!(%error, "collecting old versions failed and is retried");
            RETRY
        });
        std::thread::park_timeout(wait);
    }
}
