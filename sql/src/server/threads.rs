//! The threads that run sessions.
//!
//! Each thread has a runtime of its own and a share of the sessions. A session stays on its thread: its socket, timers
//! and wake-ups concern one core, and no thread is woken to take over work of another. Thread-per-core servers such as
//! ScyllaDB and Pingora work this way; `docs/benchmarks.md` has the figures.
//!
//! The price is that a long computation delays the other sessions of its thread. So sessions yield, and move long
//! computations to other threads ([`crate::coop`]).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

use crate::deep_stack::STACK_BYTES;

/// Where the sessions of a node run. The threads end when the last clone is dropped, and with them the tasks that
/// sessions left behind, such as commits that outlived their session.
#[derive(Clone)]
pub struct SessionThreads {
    threads: Arc<[SessionThread]>,
}

struct SessionThread {
    runtime: Handle,
    sessions: AtomicUsize,
    stop: CancellationToken,
}

impl SessionThreads {
    /// Starts a thread for each processor.
    ///
    /// # Errors
    /// If a runtime or a thread cannot be created.
    pub fn start() -> io::Result<SessionThreads> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: io::Result<Arc<[_]>> = (0..count).map(SessionThread::start).collect();
        Ok(SessionThreads { threads: threads? })
    }

    /// Runs sessions on the caller's runtime.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn current() -> SessionThreads {
        let (sessions, stop) = (AtomicUsize::new(0), CancellationToken::new());
        SessionThreads { threads: Arc::new([SessionThread { runtime: Handle::current(), sessions, stop }]) }
    }

    /// A place on the thread with the fewest sessions.
    pub(super) fn assign(&self) -> Seat {
        let counts = self.threads.iter().map(|thread| thread.sessions.load(Ordering::Relaxed));
        let thread = counts.enumerate().min_by_key(|(_, sessions)| *sessions).map_or(0, |(at, _)| at);
        self.threads[thread].sessions.fetch_add(1, Ordering::Relaxed);
        Seat { threads: self.clone(), thread }
    }
}

impl SessionThread {
    fn start(number: usize) -> io::Result<SessionThread> {
        // Sessions poll plans as deep as statements may be, here and on the runtime's threads for blocking work.
        let runtime = Builder::new_current_thread().enable_all().thread_stack_size(STACK_BYTES).build()?;
        let handle = runtime.handle().clone();
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        let thread = std::thread::Builder::new().name(format!("cortado-sql-{number}")).stack_size(STACK_BYTES);
        thread.spawn(move || runtime.block_on(stopped))?;
        Ok(SessionThread { runtime: handle, sessions: AtomicUsize::new(0), stop })
    }
}

impl Drop for SessionThread {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The place of one session. Its drop gives the place back.
pub(super) struct Seat {
    threads: SessionThreads,
    thread: usize,
}

impl Seat {
    /// The runtime of the session.
    pub(super) fn runtime(&self) -> &Handle {
        &self.threads.threads[self.thread].runtime
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.threads.threads[self.thread].sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(count: usize) -> SessionThreads {
        SessionThreads { threads: (0..count).map(|number| SessionThread::start(number).unwrap()).collect() }
    }

    #[test]
    fn sessions_go_where_the_fewest_are() {
        let threads = threads(3);
        let mut seats: Vec<Seat> = (0..7).map(|_| threads.assign()).collect();
        assert_eq!(seats.iter().map(|seat| seat.thread).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
        seats.retain(|seat| seat.thread != 1);
        assert_eq!([threads.assign().thread, threads.assign().thread], [1, 1]);
    }

    #[tokio::test]
    async fn the_threads_end_with_the_last_clone() {
        let threads = threads(1);
        let clone = threads.clone();
        let runtime = threads.assign().runtime().clone();
        drop(threads);
        assert!(runtime.spawn(async { true }).await.unwrap());
        // A task that never ends is dropped with its thread.
        let endless = runtime.spawn(std::future::pending::<()>());
        drop(clone);
        assert!(endless.await.unwrap_err().is_cancelled());
    }
}
