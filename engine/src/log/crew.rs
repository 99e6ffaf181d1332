//! Who works for a log: the threads of its own, and callers that wait anyway.
//!
//! At most two work at a time (see `pipeline.rs`): one of them encodes and writes, the other one syncs. A batch that comes while nobody works
//! calls one; a second one is called only when so much is queued that encoding it is worth doing during a sync. A caller that waits for
//! its batch and finds nobody at work does it itself: that spares two changes of thread, which at one writer are much of the time that a
//! fast disk needs.
//!
//! Invariant: whoever queues a batch either finds someone at work, who looks at the queue once more after leaving, or calls someone. So
//! no batch is left lying.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

/// How many may be at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) usize);

/// What a thread is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To look at the queue.
    Work,
    /// To end.
    Leave,
    /// To end, as the last of them.
    LeaveLast,
}

/// Everyone who may work for a log.
#[derive(Debug, Default)]
pub(crate) struct Crew {
    /// How many are at work or called.
    active: AtomicUsize,
    calls: Mutex<Calls>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Calls {
    /// Threads called that have not come yet; each counts as active already.
    open: usize,
    /// How many threads there are.
    threads: usize,
    closing: bool,
}

impl Crew {
    /// Counts the caller, or whoever it then calls, as active, unless so many are.
    pub(crate) fn enlist(&self, limit: Limit) -> bool {
        let more = |active: usize| (active < limit.0).then_some(active + 1);
        self.active.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// The caller does not work any more. It must look at the queue again afterwards.
    pub(crate) fn leave(&self) {
        self.active.fetch_sub(1, Ordering::SeqCst);
    }

    /// Wakes a thread, which is counted as active already. False where there are no threads, or they end: the caller is to work itself, or to leave.
    pub(crate) fn call(&self) -> bool {
        let mut calls = self.calls.lock();
        if calls.threads == 0 || calls.closing {
            return false;
        }
        calls.open += 1;
        self.bell.notify_one();
        true
    }

    /// A thread joins.
    pub(crate) fn join(&self) {
        self.calls.lock().threads += 1;
    }

    /// A thread that joined has not come.
    pub(crate) fn absent(&self) {
        self.calls.lock().threads -= 1;
    }

    /// Whether the log has threads of its own.
    pub(crate) fn has_threads(&self) -> bool {
        self.calls.lock().threads > 0
    }

    /// Sleeps until called, or until the log closes and no call is open: then the thread is not one of the crew any more.
    pub(crate) fn wait(&self) -> Next {
        let mut calls = self.calls.lock();
        loop {
            if calls.open > 0 {
                calls.open -= 1;
                return Next::Work;
            }
            if calls.closing {
                calls.threads -= 1;
                return if calls.threads == 0 { Next::LeaveLast } else { Next::Leave };
            }
            self.bell.wait(&mut calls);
        }
    }

    /// Lets the threads end.
    pub(crate) fn close(&self) {
        self.calls.lock().closing = true;
        self.bell.notify_all();
    }
}
