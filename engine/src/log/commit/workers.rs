//! The workers of a log: its own threads, and callers that wait for a batch.
//!
//! At most two workers are active (see `pipeline.rs`): one encodes and writes while the other syncs. A caller that
//! queues a batch and finds no active worker wakes a thread. It wakes a second one only if enough bytes are queued to
//! encode them during a sync. A caller that waits for its batch and finds no active worker serves the queue itself. That
//! saves two context switches, which take much of the time of a single writer on a fast disk.
//!
//! Invariant: after a push there is an active worker, or the caller wakes one. A worker checks the queue once more after
//! its release. So no queued batch is stranded.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

/// Maximum number of active workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerLimit(pub(crate) usize);

/// What a thread of the log does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadTask {
    /// Serve the queue.
    Work,
    /// Exit.
    Exit,
    /// Exit, as the last thread.
    ExitLast,
}

/// The workers of one log.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    /// Active workers, and threads that were woken.
    active: AtomicUsize,
    threads: Mutex<Threads>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Threads {
    /// Threads that were woken and have not started to work; each already counts as active.
    woken: usize,
    /// Number of threads.
    count: usize,
    closing: bool,
}

impl Workers {
    /// Counts one more active worker, unless the limit is reached.
    pub(crate) fn try_acquire(&self, limit: WorkerLimit) -> bool {
        let more = |active: usize| (active < limit.0).then_some(active + 1);
        self.active.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Counts one active worker less. The caller must check the queue once more afterwards.
    pub(crate) fn release(&self) {
        self.active.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes a thread that [`Workers::try_acquire`] counted. False if there are no threads or they are exiting: the
    /// caller must work itself or release.
    pub(crate) fn wake_thread(&self) -> bool {
        let mut threads = self.threads.lock();
        if threads.count == 0 || threads.closing {
            return false;
        }
        threads.woken += 1;
        self.wake.notify_one();
        true
    }

    /// Counts a thread that is about to be spawned.
    pub(crate) fn add_thread(&self) {
        self.threads.lock().count += 1;
    }

    /// Uncounts a thread that could not be spawned.
    pub(crate) fn spawn_failed(&self) {
        self.threads.lock().count -= 1;
    }

    /// Whether the log has threads of its own.
    pub(crate) fn has_threads(&self) -> bool {
        self.threads.lock().count > 0
    }

    /// Sleeps until the thread is woken, or until the log closes and no wake is pending. `Exit` and `ExitLast` uncount
    /// the thread.
    pub(crate) fn next_task(&self) -> ThreadTask {
        let mut threads = self.threads.lock();
        loop {
            if threads.woken > 0 {
                threads.woken -= 1;
                return ThreadTask::Work;
            }
            if threads.closing {
                threads.count -= 1;
                return if threads.count == 0 { ThreadTask::ExitLast } else { ThreadTask::Exit };
            }
            self.wake.wait(&mut threads);
        }
    }

    /// Makes the threads exit.
    pub(crate) fn close(&self) {
        self.threads.lock().closing = true;
        self.wake.notify_all();
    }
}
