//! The way of batches from the queue to their acknowledgement.
//!
//! A commit group goes through two halves: it is encoded and written ([`Writer`]), then synced, put into the index and answered
//! (`landing.rs`). Each half is one lock, taken hand over hand, so groups go through both in their order, and while one syncs the
//! next may be encoded. Whoever works (`crew.rs`) takes a group through both.
//!
//! While a sync is under way, what is queued is left to gather, because a sync costs the same for one batch as for many; only when there
//! is so much that encoding it takes as long as a sync is it begun before the sync is over. Nothing waits for a timer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;
use parking_lot::{Mutex, RwLock};

use super::active::Active;
use super::answer::{Alarm, Done, Told};
use super::compress::Compressor;
use super::crew::{Crew, Limit, Next};
use super::error::{LogError, Result};
use super::read::Shared;
use super::sequence::{Link, Owner};
use super::ticket::Ticket;
use super::writer::{Job, Last, Work, Writer, Written};
use super::{Durability, Lsn, OnDone};

/// With so many bytes queued the next group is begun while the one before syncs.
const OVERLAP_BYTES: usize = 64 << 10;
/// How often others are let run before a group is closed, while that brings more batches.
const GATHER: usize = 8;

/// See the module documentation.
pub(crate) struct Pipeline {
    pub(crate) shared: Arc<Shared>,
    pub(crate) crew: Crew,
    queue: Queue,
    /// Held while writing: the first half.
    writer: Mutex<Writer>,
}

/// What waits to be written, bounded.
pub(crate) struct Queue {
    jobs: ArrayQueue<Job>,
    /// The first of all that wait, where one was taken and given back. Only whoever holds the writer takes and gives back.
    first: Mutex<Option<Job>>,
    bytes: AtomicUsize,
    /// The number of the next job.
    next: AtomicU64,
    /// Whether nothing is taken any more; held shared while something is.
    closed: RwLock<bool>,
    most_bytes: usize,
}

impl Queue {
    fn new(batches: usize, bytes: usize) -> Queue {
        Queue {
            jobs: ArrayQueue::new(batches),
            first: Mutex::default(),
            bytes: AtomicUsize::new(0),
            next: AtomicU64::new(0),
            closed: RwLock::new(false),
            most_bytes: bytes,
        }
    }

    /// Takes a job, or says why not.
    fn push(&self, job: Job) -> Result<()> {
        let bytes = job.bytes;
        let closed = self.closed.read();
        if *closed {
            return Err(job.turned_away(LogError::Closed));
        }
        let is_room = self.bytes.fetch_add(bytes, Ordering::SeqCst) < self.most_bytes;
        let taken = if is_room { self.jobs.push(job) } else { Err(job) };
        taken.map_err(|job| {
            self.count_out(bytes);
            job.turned_away(LogError::Busy)
        })
    }

    /// The next job. It counts as queued until it is counted out.
    pub(crate) fn pop(&self) -> Option<Job> {
        self.first.lock().take().or_else(|| self.jobs.pop())
    }

    /// A job that was taken just now is the next one again.
    pub(crate) fn give_back(&self, job: Job) {
        let before = self.first.lock().replace(job);
        assert!(before.is_none(), "one job at a time is taken and given back");
    }

    fn len(&self) -> usize {
        self.jobs.len() + usize::from(self.first.lock().is_some())
    }

    /// A job of so many bytes is not queued any more.
    pub(crate) fn count_out(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
    }
}

impl Pipeline {
    pub(crate) fn new(shared: Arc<Shared>, active: Active, compressor: Compressor) -> Pipeline {
        let options = &shared.options;
        let queue = Queue::new(options.queue_batches, options.queue_bytes);
        let writer = Mutex::new(Writer::new(active, compressor));
        Pipeline { queue, writer, crew: Crew::default(), shared }
    }

    /// Queues work, and sees to it that someone does it. `Err` means not queued.
    pub(crate) fn submit(&self, work: Work, durability: Durability, done: OnDone, link: Option<Link>) -> Result<()> {
        let number = self.queue.next.fetch_add(1, Ordering::Relaxed);
        self.push(work, durability, Done::call(done), link, number)?;
        self.summon();
        Ok(())
    }

    /// The same with a ticket for its fate.
    pub(crate) fn submit_ticket(&self, work: Work, durability: Durability, link: Option<Link>) -> Result<Ticket> {
        let ticket = self.push_ticket(work, durability, link)?;
        self.summon();
        Ok(ticket)
    }

    /// Queues work and waits for its fate; does it on the caller's thread where nobody else works at this moment.
    pub(crate) fn write(&self, work: Work, durability: Durability) -> Result<Lsn> {
        let ticket = self.push_ticket(work, durability, None)?;
        self.help(&ticket);
        ticket.wait()
    }

    fn push_ticket(&self, work: Work, durability: Durability, link: Option<Link>) -> Result<Ticket> {
        let number = self.queue.next.fetch_add(1, Ordering::Relaxed);
        let (ticket, slot) = Ticket::new(&self.shared.landing.bells, number);
        self.push(work, durability, Done::ticket(slot), link, number)?;
        Ok(ticket)
    }

    fn push(&self, work: Work, durability: Durability, done: Done, link: Option<Link>, number: u64) -> Result<()> {
        let bytes = work.bytes();
        let owner = link.as_ref().map_or_else(Owner::thread, Link::owner);
        let job = Job { work, durability, done, bytes, number, link, owner };
        match self.shared.read_only().or_else(|| self.shared.poisoned()) {
            Some(error) => Err(job.turned_away(error)),
            None => self.queue.push(job),
        }
    }

    /// Sees to it that someone works on what is queued, where the log has threads.
    fn summon(&self) {
        let limit = if self.queue.bytes.load(Ordering::SeqCst) >= OVERLAP_BYTES { Limit(2) } else { Limit(1) };
        if self.crew.enlist(limit) && !self.crew.call() {
            self.crew.leave();
        }
    }

    /// Works until `ticket` is answered, if nobody works at this moment.
    fn help(&self, ticket: &Ticket) {
        if !self.crew.enlist(Limit(1)) {
            return self.summon();
        }
        let shift = Shift(self);
        // Nothing left, and no answer: another one has it in hand.
        while ticket.poll().is_none() && self.cycle(usize::MAX) > 0 {}
        // What came meanwhile is for a thread of the log. Where there is none, whoever drives the log finds it.
        if self.queue.len() > 0 && self.crew.call() {
            // The thread has this place now.
            std::mem::forget(shift);
        }
    }

    /// The life of a thread of the log. Says whether it was the last one to end.
    pub(crate) fn work(&self) -> bool {
        loop {
            match self.crew.wait() {
                Next::Work => {
                    let _shift = Shift(self);
                    while self.cycle(usize::MAX) > 0 {}
                }
                Next::Leave => return false,
                Next::LeaveLast => return true,
            }
        }
    }

    /// Takes one commit group, of at most `limit` batches, from the queue to its answers; returns how many batches it had.
    fn cycle(&self, limit: usize) -> usize {
        let mut writer = self.writer.lock();
        if self.queue.bytes.load(Ordering::SeqCst) < OVERLAP_BYTES {
            self.shared.wait_for_landing();
            self.gather(writer.last());
        }
        let Some((count, written)) = self.first_half(&mut writer, limit) else { return 0 };
        let landing = self.shared.enter_landing();
        drop(writer);
        self.shared.land(written);
        drop(landing);
        count
    }

    /// Writes one commit group; says how many batches it has. `None` where nothing is queued.
    fn first_half(&self, writer: &mut Writer, limit: usize) -> Option<(usize, Written)> {
        let alarm = Alarm::new(&self.shared);
        let jobs = writer.collect(&self.queue, limit, self.shared.options.group_bytes);
        let Some(first) = jobs.first() else {
            alarm.off();
            return None;
        };
        if first.is_alone() {
            // It is checked against the index: what is before it must be there.
            self.shared.wait_for_landing();
        }
        let half = (jobs.len(), writer.write(&self.shared, jobs));
        alarm.off();
        Some(half)
    }

    /// Lets those run who were answered just now: their next batches share one sync. There is nothing to share for one who writes without.
    fn gather(&self, last: Last) {
        let mut queued = self.queue.len();
        let alone = last.batches.max(queued) < 2 && !last.synced;
        if alone || !self.crew.has_threads() {
            return;
        }
        for _ in 0..GATHER {
            std::thread::yield_now();
            let now = self.queue.len();
            if now <= queued {
                return;
            }
            queued = now;
        }
    }

    /// Writes all that is queued now as commit groups, on the caller's thread; returns how many batches. Never waits for more.
    pub(crate) fn turn(&self) -> usize {
        let writer = self.writer.lock();
        self.shared.wait_for_landing();
        drop(writer);
        let queued = self.queue.len();
        let mut handled = 0;
        while handled < queued {
            match self.cycle(queued - handled) {
                0 => break,
                count => handled += count,
            }
        }
        handled
    }

    /// Writes one commit group, of at most `limit` batches, and leaves it in flight; the one before it lands once this one is written.
    /// Returns how many batches it has.
    pub(crate) fn begin(&self, limit: usize) -> usize {
        let mut writer = self.writer.lock();
        let Some((count, written)) = self.first_half(&mut writer, limit) else { return 0 };
        self.shared.leave_in_flight(written);
        count
    }

    /// Batches and bytes that are queued.
    pub(crate) fn queued(&self) -> (usize, usize) {
        (self.queue.len(), self.queue.bytes.load(Ordering::Relaxed))
    }

    /// Takes nothing more.
    pub(crate) fn close(&self) {
        *self.queue.closed.write() = true;
        self.crew.close();
    }

    /// Writes what is queued, and the mark of a clean stop.
    pub(crate) fn finish_all(&self) {
        while self.cycle(usize::MAX) > 0 {}
        let mut writer = self.writer.lock();
        self.shared.wait_for_landing();
        writer.finish(&self.shared);
    }

    /// Answers what is still queued: everyone is told once.
    pub(crate) fn abandon(&self) {
        let writer = self.writer.lock();
        let mut told = Told::default();
        self.shared.abandon_in_flight(&mut told);
        while let Some(job) = self.queue.pop() {
            self.queue.count_out(job.bytes);
            job.done.tell(Err(LogError::Closed), job.number, &mut told);
        }
        drop(writer);
        told.ring(&self.shared.landing.bells);
    }
}

/// A place among those who work, left at the end also where a callback panics.
struct Shift<'a>(&'a Pipeline);

impl Drop for Shift<'_> {
    fn drop(&mut self) {
        self.0.crew.leave();
        // What was queued in between found someone at work, and called nobody.
        if self.0.queue.len() > 0 {
            self.0.summon();
        }
    }
}

impl Work {
    /// What it counts for in the queue.
    fn bytes(&self) -> usize {
        match self {
            Work::Batch(batch) => batch.bytes(),
            Work::Rewrite(rewrite) => rewrite.bytes(),
            Work::Drop(_) => 0,
        }
    }
}
