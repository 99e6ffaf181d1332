//! The stages that a commit group passes from the queue to its acknowledgement.
//!
//! A commit group passes two stages: the [`Writer`] encodes and writes it, then the publisher syncs it, applies it to
//! the index and completes its batches (`publish.rs`). Each stage is one lock. A worker (`workers.rs`) takes a group
//! through both stages, and takes the second lock before it releases the first. So groups pass both stages in order,
//! and the next group may be encoded while one syncs.
//!
//! Batches accumulate in the queue during a sync, because a sync costs the same for one batch as for many. The next
//! group is encoded before the sync ends only if [`OVERLAP_BYTES`] are queued: encoding them takes about as long as a
//! sync. No batch waits for a timer.

use std::sync::Arc;

use parking_lot::Mutex;

use super::active::ActiveFile;
use super::batch::LogBatch;
use super::completion::{Completion, OnDone, PoisonOnPanic, WakeSet};
use super::draft::WrittenGroup;
use super::file_work::{CommitContext, FileWork, FullFile};
use super::publish::Publisher;
use super::queue::{Job, Queue, Work};
use super::sequence::{Link, Owner};
use super::spares::SpareFiles;
use super::ticket::Ticket;
use super::workers::{ThreadTask, WorkerLimit, Workers};
use super::writer::{LastGroup, Writer};
use crate::log::error::{LogError, Result};
use crate::log::format::Compressor;
use crate::log::read::LogState;
use crate::log::types::{Durability, Lsn};

/// Minimum bytes in the queue for which the next group is encoded while the one before syncs.
const OVERLAP_BYTES: usize = 64 << 10;
/// Maximum number of yields before a worker closes a group. It stops at the first yield that adds no batch.
const MAX_YIELDS: usize = 8;

/// See the module documentation.
pub(crate) struct Pipeline {
    pub(super) context: CommitContext,
    pub(crate) workers: Workers,
    queue: Queue,
    /// The first stage.
    writer: Mutex<Writer>,
    /// Idle compressors, for callers that compress their own batches.
    compressors: Mutex<Vec<Compressor>>,
}

impl Pipeline {
    /// For a log whose newest file is `active`.
    pub(crate) fn new(
        state: Arc<LogState>,
        spares: Arc<SpareFiles>,
        active: ActiveFile,
        full: Option<FullFile>,
        compressor: Compressor,
    ) -> Pipeline {
        let options = &state.options;
        let queue = Queue::new(options.queue_batches, options.queue_bytes);
        state.set_unsealed(full.as_ref().map(|full| full.file.clone()));
        let files = FileWork::new(full);
        let context = CommitContext { publisher: Publisher::new(state.clone()), state, spares, files };
        Pipeline {
            context,
            workers: Workers::default(),
            queue,
            writer: Mutex::new(Writer::new(active, compressor)),
            compressors: Mutex::default(),
        }
    }

    /// The log's state.
    pub(crate) fn state(&self) -> &Arc<LogState> {
        &self.context.state
    }

    /// The log's spare files.
    pub(crate) fn spares(&self) -> &Arc<SpareFiles> {
        &self.context.spares
    }

    /// Compresses the large appends of a batch on the caller's thread.
    pub(crate) fn pack(&self, mut batch: LogBatch) -> Result<Work> {
        if batch.is_large() {
            let idle = self.compressors.lock().pop();
            let options = &self.state().options;
            let mut compressor =
                idle.map_or_else(|| Compressor::new(options.compression, options.compress_from), Ok)?;
            batch.pack(options.block_bytes, &mut compressor);
            self.compressors.lock().push(compressor);
        }
        Ok(Work::Batch(batch))
    }

    /// Queues work and ensures that a worker serves the queue. An error means that the work is not queued.
    pub(crate) fn submit(&self, work: Work, durability: Durability, done: OnDone, link: Option<Link>) -> Result<()> {
        let number = self.queue.take_number();
        self.push(work, durability, Completion::callback(done), link, number)?;
        self.ensure_worker();
        Ok(())
    }

    /// The same with a ticket for the outcome.
    pub(crate) fn submit_ticket(&self, work: Work, durability: Durability, link: Option<Link>) -> Result<Ticket> {
        let ticket = self.push_ticket(work, durability, link)?;
        self.ensure_worker();
        Ok(ticket)
    }

    /// Queues work and waits for the outcome. Serves the queue on the caller's thread if no worker is active.
    pub(crate) fn write(&self, work: Work, durability: Durability) -> Result<Lsn> {
        let ticket = self.push_ticket(work, durability, None)?;
        self.work_until_done(&ticket);
        self.seal_without_threads();
        ticket.wait()
    }

    fn push_ticket(&self, work: Work, durability: Durability, link: Option<Link>) -> Result<Ticket> {
        let number = self.queue.take_number();
        let (ticket, slot) = Ticket::new(self.context.publisher.waiters(), number);
        self.push(work, durability, Completion::ticket(slot), link, number)?;
        Ok(ticket)
    }

    fn push(
        &self,
        work: Work,
        durability: Durability,
        completion: Completion,
        link: Option<Link>,
        number: u64,
    ) -> Result<()> {
        let bytes = work.bytes();
        let owner = link.as_ref().map_or_else(Owner::thread, Link::owner);
        let job = Job { work, durability, completion, bytes, number, link, owner };
        match self.state().read_only().or_else(|| self.state().poisoned()) {
            Some(error) => Err(job.reject(error)),
            None => self.queue.push(job),
        }
    }

    /// Wakes a thread of the log, unless enough workers are active.
    fn ensure_worker(&self) {
        let limit = if self.queue.bytes() >= OVERLAP_BYTES { WorkerLimit(2) } else { WorkerLimit(1) };
        if self.workers.try_acquire(limit) && !self.workers.wake_thread() {
            self.workers.release();
        }
    }

    /// Serves the queue on the caller's thread until `ticket` is completed, if no worker is active.
    fn work_until_done(&self, ticket: &Ticket) {
        if !self.workers.try_acquire(WorkerLimit(1)) {
            return self.ensure_worker();
        }
        let slot = WorkerSlot(self);
        // If the queue is empty and there is no outcome, another worker has the job.
        while ticket.poll().is_none() && self.commit_group(usize::MAX) > 0 {}
        // A thread serves what was queued meanwhile. Without threads, the caller of `turn` does.
        if self.queue.len() > 0 && self.workers.wake_thread() {
            // The thread takes over the slot.
            std::mem::forget(slot);
        }
    }

    /// The loop of a thread of the log. Returns whether it was the last thread.
    pub(crate) fn run_thread(&self) -> bool {
        loop {
            match self.workers.next_task() {
                ThreadTask::Work => {
                    let _slot = WorkerSlot(self);
                    while self.commit_group(usize::MAX) > 0 {}
                }
                ThreadTask::Exit => return false,
                ThreadTask::ExitLast => return true,
            }
        }
    }

    /// The loop of the thread that seals and prepares files.
    pub(crate) fn run_file_thread(&self) {
        self.context.tend_files_until_closed();
    }

    /// Does what the thread would do now: seals the file before the active one, and prepares the file after it.
    pub(crate) fn tend_files(&self) {
        self.context.tend_files();
    }

    /// Seals the file before the active one, in a log without threads.
    fn seal_without_threads(&self) {
        if !self.workers.has_threads() {
            self.context.seal_full_file();
        }
    }

    /// Takes one commit group, of at most `limit` batches, through both stages. Returns how many batches it had.
    fn commit_group(&self, limit: usize) -> usize {
        let mut writer = self.writer.lock();
        if self.queue.bytes() < OVERLAP_BYTES {
            self.context.publisher.wait_idle();
            self.yield_for_batches(writer.last_group());
        }
        let Some((count, written)) = self.write_group(&mut writer, limit) else { return 0 };
        let guard = self.context.publisher.enter();
        drop(writer);
        self.context.publisher.publish(written);
        drop(guard);
        count
    }

    /// Writes one commit group. Returns how many batches it has; `None` if nothing is queued.
    fn write_group(&self, writer: &mut Writer, limit: usize) -> Option<(usize, WrittenGroup)> {
        let guard = PoisonOnPanic::new(self.state(), self.context.publisher.waiters());
        let jobs = writer.collect(&self.queue, limit, self.state().options.group_bytes);
        let Some(first) = jobs.first() else {
            guard.disarm();
            return None;
        };
        if first.needs_own_group() {
            // It is checked against the index, which must hold all groups before it.
            self.context.publisher.wait_idle();
        }
        let written = (jobs.len(), writer.write(&self.context, jobs));
        guard.disarm();
        Some(written)
    }

    /// Yields to callers whose batches were just completed, so that their next batches share one sync. Does nothing for
    /// a single caller that writes without sync.
    fn yield_for_batches(&self, last: LastGroup) {
        let mut queued = self.queue.len();
        let nothing_to_share = last.batches.max(queued) < 2 && !last.synced;
        if nothing_to_share || !self.workers.has_threads() {
            return;
        }
        for _ in 0..MAX_YIELDS {
            std::thread::yield_now();
            let now = self.queue.len();
            if now <= queued {
                return;
            }
            queued = now;
        }
    }

    /// Commits everything queued now, on the caller's thread; returns how many batches. Never waits for more.
    pub(crate) fn turn(&self) -> usize {
        let writer = self.writer.lock();
        self.context.publisher.wait_idle();
        drop(writer);
        let queued = self.queue.len();
        let mut handled = 0;
        while handled < queued {
            match self.commit_group(queued - handled) {
                0 => break,
                count => handled += count,
            }
        }
        self.seal_without_threads();
        handled
    }

    /// Writes one commit group, of at most `limit` batches, and keeps it in flight. Publishes the group before it
    /// afterwards. Returns how many batches it has.
    pub(crate) fn begin(&self, limit: usize) -> usize {
        let mut writer = self.writer.lock();
        let Some((count, written)) = self.write_group(&mut writer, limit) else { return 0 };
        self.context.publisher.set_in_flight(written);
        count
    }

    /// Batches and bytes that are queued.
    pub(crate) fn queued(&self) -> (usize, usize) {
        (self.queue.len(), self.queue.bytes())
    }

    /// Rejects all later jobs.
    pub(crate) fn close(&self) {
        self.queue.close();
        self.workers.close();
        self.context.files.close();
    }

    /// Commits what is queued, and writes the mark of a clean stop.
    pub(crate) fn finish_all(&self) {
        while self.commit_group(usize::MAX) > 0 {}
        self.context.seal_full_file();
        let mut writer = self.writer.lock();
        self.context.publisher.wait_idle();
        writer.finish(&self.context);
    }

    /// Completes everything in flight or queued with [`LogError::Closed`].
    pub(crate) fn abandon(&self) {
        let writer = self.writer.lock();
        let mut wakes = WakeSet::default();
        self.context.publisher.abandon_in_flight(&mut wakes);
        while let Some(job) = self.queue.pop() {
            self.queue.subtract(job.bytes);
            job.completion.complete(Err(LogError::Closed), job.number, &mut wakes);
        }
        drop(writer);
        wakes.wake(self.context.publisher.waiters());
    }
}

/// A place among the active workers, released also when a callback panics.
struct WorkerSlot<'a>(&'a Pipeline);

impl Drop for WorkerSlot<'_> {
    fn drop(&mut self) {
        self.0.workers.release();
        // A batch that was queued in between found an active worker and woke no thread.
        if self.0.queue.len() > 0 {
            self.0.ensure_worker();
        }
    }
}
