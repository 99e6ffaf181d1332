//! The bounded queue of jobs that are to be written.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;
use parking_lot::{Mutex, RwLock};

use super::batch::LogBatch;
use super::completion::Completion;
use super::purge_work::PurgeWork;
use super::sequence::{Link, Owner};
use crate::log::error::{LogError, Result};
use crate::log::types::Durability;

/// A unit of work in the queue, and the completion for its caller.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) durability: Durability,
    pub(crate) completion: Completion,
    /// Bytes it counts for in the queue.
    pub(crate) bytes: usize,
    /// Its number among all queued jobs. Selects the wait shard of its ticket; the queue order may differ slightly.
    pub(crate) number: u64,
    /// The sequence that it belongs to.
    pub(crate) link: Option<Link>,
    pub(crate) owner: Owner,
}

/// What is to be written.
pub(crate) enum Work {
    /// A caller's batch.
    Batch(LogBatch),
    /// A step of purge.
    Purge(PurgeWork),
}

impl Work {
    /// Bytes it counts for in the queue.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Work::Batch(batch) => batch.bytes(),
            Work::Purge(work) => work.bytes(),
        }
    }
}

impl Job {
    /// Rejects the job before it is queued. The caller gets the error as a return value; its callback is not called.
    pub(crate) fn reject(self, error: LogError) -> LogError {
        self.completion.cancel();
        error
    }

    /// Whether it must be the only job of its commit group: purge work is checked against the published index.
    pub(crate) fn needs_own_group(&self) -> bool {
        !matches!(self.work, Work::Batch(_))
    }
}

/// See the module documentation.
pub(crate) struct Queue {
    jobs: ArrayQueue<Job>,
    /// The head of the queue after [`Queue::push_front`]. Only the holder of the writer lock pops and pushes to the
    /// front.
    head: Mutex<Option<Job>>,
    bytes: AtomicUsize,
    /// The number of the next job.
    next_number: AtomicU64,
    /// Whether the queue rejects jobs. Locked shared while a job is pushed.
    closed: RwLock<bool>,
    max_bytes: usize,
}

impl Queue {
    /// An empty queue of at most `max_batches` jobs. It rejects a job if `max_bytes` are queued already.
    pub(crate) fn new(max_batches: usize, max_bytes: usize) -> Queue {
        Queue {
            jobs: ArrayQueue::new(max_batches),
            head: Mutex::default(),
            bytes: AtomicUsize::new(0),
            next_number: AtomicU64::new(0),
            closed: RwLock::new(false),
            max_bytes,
        }
    }

    /// A number for the next job.
    pub(crate) fn take_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// Queues a job, or rejects it.
    pub(crate) fn push(&self, job: Job) -> Result<()> {
        let bytes = job.bytes;
        let closed = self.closed.read();
        if *closed {
            return Err(job.reject(LogError::Closed));
        }
        let has_room = self.bytes.fetch_add(bytes, Ordering::SeqCst) < self.max_bytes;
        let pushed = if has_room { self.jobs.push(job) } else { Err(job) };
        pushed.map_err(|job| {
            self.subtract(bytes);
            job.reject(LogError::Busy)
        })
    }

    /// Takes the next job. Its bytes count as queued until [`Queue::subtract`].
    pub(crate) fn pop(&self) -> Option<Job> {
        self.head.lock().take().or_else(|| self.jobs.pop())
    }

    /// Puts the job that was popped last back at the head.
    pub(crate) fn push_front(&self, job: Job) {
        let before = self.head.lock().replace(job);
        assert!(before.is_none(), "only the job that was popped last is put back");
    }

    /// Number of queued jobs.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len() + usize::from(self.head.lock().is_some())
    }

    /// Bytes of queued jobs.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::SeqCst)
    }

    /// Subtracts the bytes of a popped job from those queued.
    pub(crate) fn subtract(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Rejects all later jobs.
    pub(crate) fn close(&self) {
        *self.closed.write() = true;
    }
}
