//! The bounded queue of jobs that wait to be written.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;
use parking_lot::{Mutex, RwLock};

use super::batch::LogBatch;
use super::completion::{Answer, Completion};
use super::purge_work::PurgeWork;
use super::sequence::{Link, Owner};
use crate::log::error::{LogError, Result};
use crate::log::types::Durability;

/// One queued piece of work and whoever waits for it.
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
    /// Refuses the job before it is queued. The caller gets the error at once; its callback is not called.
    pub(crate) fn turned_away(self, error: LogError) -> LogError {
        self.completion.withdraw();
        error
    }

    /// Whether it has a commit group of its own: purge work is checked against the published index.
    pub(crate) fn is_alone(&self) -> bool {
        !matches!(self.work, Work::Batch(_))
    }

    /// What is left when the work is drafted: whom to answer, and with which error if it was rejected.
    pub(crate) fn into_answer(self, rejected: Option<LogError>) -> Answer {
        Answer { completion: self.completion, number: self.number, link: self.link, rejected }
    }
}

/// See the module documentation.
pub(crate) struct Queue {
    jobs: ArrayQueue<Job>,
    /// The head of the queue after [`Queue::give_back`]. Only the holder of the writer pops and gives back.
    head: Mutex<Option<Job>>,
    bytes: AtomicUsize,
    /// The number of the next job.
    next_number: AtomicU64,
    /// Whether jobs are refused. Held shared while one is pushed.
    closed: RwLock<bool>,
    max_bytes: usize,
}

impl Queue {
    /// An empty queue that takes at most so many jobs and bytes.
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

    /// Queues a job, or refuses it.
    pub(crate) fn push(&self, job: Job) -> Result<()> {
        let bytes = job.bytes;
        let closed = self.closed.read();
        if *closed {
            return Err(job.turned_away(LogError::Closed));
        }
        let has_room = self.bytes.fetch_add(bytes, Ordering::SeqCst) < self.max_bytes;
        let pushed = if has_room { self.jobs.push(job) } else { Err(job) };
        pushed.map_err(|job| {
            self.subtract(bytes);
            job.turned_away(LogError::Busy)
        })
    }

    /// Takes the next job. Its bytes count as queued until [`Queue::subtract`].
    pub(crate) fn pop(&self) -> Option<Job> {
        self.head.lock().take().or_else(|| self.jobs.pop())
    }

    /// Puts a job that was just popped back at the head.
    pub(crate) fn give_back(&self, job: Job) {
        let before = self.head.lock().replace(job);
        assert!(before.is_none(), "one job at a time is taken and given back");
    }

    /// Number of queued jobs.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len() + usize::from(self.head.lock().is_some())
    }

    /// Bytes of queued jobs.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::SeqCst)
    }

    /// Stops counting a job of so many bytes as queued.
    pub(crate) fn subtract(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Refuses jobs from now on.
    pub(crate) fn close(&self) {
        *self.closed.write() = true;
    }
}
