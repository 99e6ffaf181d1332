//! The handle to the log: queue a batch, read, purge.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::disk::Disk;

use super::answer::is_answering;
use super::batch::LogBatch;
use super::cache::BlockCache;
use super::compress::Compressor;
use super::error::{LogError, Result};
use super::landing::Landing;
use super::metrics::{LogMetrics, taken};
use super::options::LogOptions;
use super::pipeline::Pipeline;
use super::purge::{Budget, PurgeReport};
use super::read::Shared;
use super::recovery::recover;
use super::scrub::ScrubReport;
use super::sequence::{Link, Sequence};
use super::stats::{GroupStats, LogStats};
use super::ticket::Ticket;
use super::{Durability, GroupBounds, GroupId, Lsn, OnDone, RecoveryReport};

/// Threads of a log: while one syncs a commit group the other one encodes the next.
const THREADS: usize = 2;

/// A handle to the log engine; clones share it. When the last one is dropped the log is closed.
#[derive(Clone)]
pub struct LogEngine {
    handle: Arc<Handle>,
}

struct Handle {
    pipeline: Arc<Pipeline>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The writing half of a log that is driven from outside, by a simulator: exactly one. Dropping it answers what is still queued.
pub struct LogWriter {
    pub(super) pipeline: Arc<Pipeline>,
}

impl LogEngine {
    /// Opens the log on `disk`, recovering what it holds, with threads of its own. [`LogOptions::recovery`] says what becomes of
    /// damage.
    pub fn open(disk: Arc<dyn Disk>, options: LogOptions) -> Result<(LogEngine, RecoveryReport)> {
        let (pipeline, report) = open(disk, options)?;
        let handle = Arc::new(Handle { pipeline, threads: Mutex::default() });
        for number in 0..THREADS {
            handle.pipeline.crew.join();
            let pipeline = handle.pipeline.clone();
            let thread = std::thread::Builder::new().name(format!("cortado-log-{number}"));
            match thread.spawn(move || work(&pipeline)) {
                Ok(thread) => handle.threads.lock().push(thread),
                Err(error) => {
                    handle.pipeline.crew.absent();
                    return Err(error.into());
                }
            }
        }
        Ok((LogEngine { handle }, report))
    }

    /// The same without threads: the work is done by [`LogWriter::turn`], and by callers of [`LogEngine::write`].
    pub fn open_driven(disk: Arc<dyn Disk>, options: LogOptions) -> Result<(LogEngine, LogWriter, RecoveryReport)> {
        let (pipeline, report) = open(disk, options)?;
        let writer = LogWriter { pipeline: pipeline.clone() };
        let handle = Arc::new(Handle { pipeline, threads: Mutex::default() });
        Ok((LogEngine { handle }, writer, report))
    }

    /// Queues a batch; its fate is told by the ticket. Batches are written, become readable and are acknowledged in the order of the calls.
    /// `Err` means not queued. An empty batch that asks for [`Durability::Synced`] makes everything before it durable.
    pub fn submit(&self, batch: LogBatch, durability: Durability) -> Result<Ticket> {
        self.queue_ticket(batch, durability, None)
    }

    /// The same with a callback, which is called once, and not at all where this returns an error.
    pub fn submit_with(&self, batch: LogBatch, durability: Durability, done: OnDone) -> Result<()> {
        self.queue_batch(batch, durability, done, None)
    }

    /// Queues a batch and waits for its fate.
    pub fn write(&self, batch: LogBatch, durability: Durability) -> Result<Lsn> {
        self.handle.pipeline.write(self.shared().pack(batch)?, durability)
    }

    /// A stream of batches each of which stands on those before it.
    pub fn sequence(&self) -> Sequence {
        Sequence::new(self.clone())
    }

    pub(super) fn queue_ticket(&self, batch: LogBatch, durability: Durability, link: Option<Link>) -> Result<Ticket> {
        self.handle.pipeline.submit_ticket(self.shared().pack(batch)?, durability, link)
    }

    pub(super) fn queue_batch(
        &self,
        batch: LogBatch,
        durability: Durability,
        done: OnDone,
        link: Option<Link>,
    ) -> Result<()> {
        self.handle.pipeline.submit(self.shared().pack(batch)?, durability, done, link)
    }

    /// Refuses batches from now on and waits until what is queued is written. From a callback it does not wait. A log that is driven from
    /// outside is only closed: see [`LogWriter::finish`].
    pub fn close(&self) {
        self.handle.close();
    }

    /// The groups that exist, sorted.
    pub fn groups(&self) -> Vec<GroupId> {
        self.shared().index.groups()
    }

    /// The bounds of a group's log; `None` if the group does not exist. A group exists while it has an entry, a key, or was
    /// compacted.
    pub fn bounds(&self, group: GroupId) -> Option<GroupBounds> {
        self.shared().index.bounds(group)
    }

    /// One entry. Acknowledged entries are readable; queued ones are not yet.
    pub fn entry(&self, group: GroupId, index: u64) -> Result<Bytes> {
        self.shared().entry(group, index)
    }

    /// Entries from `first` to before `end`, at least one, stopping before `max_bytes` would be exceeded. Empty where `first` is
    /// not before `end`; `NotFound` where the log ends before `end`.
    pub fn entries(&self, group: GroupId, first: u64, end: u64, max_bytes: usize) -> Result<Vec<Bytes>> {
        self.shared().entries(group, first, end, max_bytes)
    }

    /// The value of a small key. Served from memory.
    pub fn get(&self, group: GroupId, key: &[u8]) -> Result<Option<Bytes>> {
        self.shared().key(group, key)
    }

    /// All small keys of a group, sorted. Served from memory.
    pub fn scan(&self, group: GroupId) -> Result<Vec<(Bytes, Bytes)>> {
        self.scan_range(group, &[], None)
    }

    /// The small keys of a group from `from` to before `to` (`None`: to the last), sorted. Served from memory.
    pub fn scan_range(&self, group: GroupId, from: &[u8], to: Option<&[u8]>) -> Result<Vec<(Bytes, Bytes)>> {
        self.shared().keys(group, from, to)
    }

    /// What a group holds; all zeros if it does not exist.
    pub fn group_stats(&self, group: GroupId) -> GroupStats {
        self.shared().index.with(group, GroupStats::of).unwrap_or_default()
    }

    /// Gives space back, a step per call: gives up files that are recorded as holding nothing live, and queues the next step
    /// towards more of them (a record that drops dead files, or a part of the live rest of a mostly dead one written again, at
    /// most `budget` of it). Never waits for the writer: a file goes with a later call than the one that queued its
    /// end, so call it regularly, and soon again while the report says there is more.
    pub fn purge(&self, budget: Budget) -> Result<PurgeReport> {
        self.purge_then(budget, |_| ())
    }

    /// The same; where the report says that a step was queued, `landed` is called, as the callback of a batch is, once it is written (`true`) or
    /// was given up (`false`: then the same step would be looked for again, and may fail again). Otherwise it is dropped.
    pub fn purge_then(&self, budget: Budget, landed: impl FnOnce(bool) + Send + 'static) -> Result<PurgeReport> {
        let shared = self.shared();
        if let Some(error) = shared.read_only() {
            return Err(error);
        }
        let (report, work) = shared.purge(budget)?;
        if let Some(metrics) = &shared.metrics {
            metrics.purged(&report, budget.laggards);
        }
        let Some(work) = work else { return Ok(report) };
        let weak = Arc::downgrade(shared);
        let done: OnDone = Box::new(move |outcome| {
            let written = outcome.is_ok();
            if let Some(shared) = weak.upgrade() {
                if !written {
                    // Later parts stand on this one.
                    shared.victims.lock().start_over();
                }
                shared.purging.store(false, Ordering::Release);
            }
            landed(written);
        });
        match self.handle.pipeline.submit(work, Durability::Synced, done, None) {
            Ok(()) => Ok(PurgeReport { queued: true, progressed: true, ..report }),
            Err(error) => {
                shared.purging.store(false, Ordering::Release);
                shared.victims.lock().start_over();
                // A full queue only puts it off.
                if matches!(error, LogError::Busy) { Ok(PurgeReport { rewritten: 0, ..report }) } else { Err(error) }
            }
        }
    }

    /// Reads and verifies about `most` bytes of what a read or a restart would need, from where the last call ended. Reads the disk on the
    /// caller's thread; nobody waits for it. To be called now and then, from one thread. A log that was salvaged, or is poisoned, is left alone.
    pub fn scrub(&self, most: u64) -> ScrubReport {
        self.shared().scrub(most)
    }

    /// The log in numbers. Looks at every group: not for a hot path.
    pub fn stats(&self) -> LogStats {
        LogStats::of(&self.handle.pipeline)
    }

    /// Why nothing is written any more; `None` while the log is sound.
    pub fn poisoned(&self) -> Option<LogError> {
        self.shared().poisoned()
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.pipeline.shared
    }
}

fn open(disk: Arc<dyn Disk>, options: LogOptions) -> Result<(Arc<Pipeline>, RecoveryReport)> {
    options.validate()?;
    let compressor = Compressor::new(options.compression, options.compress_from)?;
    let begun = now();
    let recovered = recover(disk.as_ref(), &options)?;
    let took = now().duration_since(begun);
    // Only now: who is refused may try again with other options and the same registry.
    let metrics = options.registry.as_ref().map(LogMetrics::new).transpose();
    let metrics = metrics.map_err(|error| taken(&error))?;
    let report = recovered.report;
    if let Some((file, offset)) = &report.truncated_at {
        let (bytes, uncertain) = (report.truncated_bytes, report.uncertain.as_ref());
        tracing::warn!(
            file,
            offset,
            bytes,
            ?uncertain,
            "left out the end of the log, of which nothing says that it was synced"
        );
    }
    for loss in &report.losses {
        tracing::warn!(%loss, "a part of the log is lost");
    }
    let last = recovered.active.last_lsn();
    let shared = Arc::new(Shared {
        disk,
        cache: BlockCache::new(options.cache_bytes),
        options,
        index: recovered.index,
        files: recovered.files,
        doubts: recovered.doubts,
        metrics,
        poison: Mutex::new(None),
        landing: Landing::default(),
        syncing: Mutex::new(()),
        written: AtomicU64::new(last),
        synced: AtomicU64::new(last),
        landed: AtomicU64::new(last),
        full: AtomicBool::new(false),
        released: Mutex::new(Vec::new()),
        purging: AtomicBool::new(false),
        victims: Mutex::default(),
        scrub: Mutex::default(),
        told: Mutex::default(),
        settled: Mutex::default(),
        compressors: Mutex::default(),
        reserve: Mutex::default(),
        next_spare: AtomicU64::new(recovered.spares.last().map_or(1, |last| last + 1)),
        spares: Mutex::new(recovered.spares),
    });
    let pipeline = Arc::new(Pipeline::new(shared, recovered.active, compressor));
    if let Some(metrics) = &pipeline.shared.metrics {
        metrics.opened(&report, took);
        metrics.watch(Arc::downgrade(&pipeline))?;
    }
    Ok((pipeline, report))
}

/// The clock, for what is only shown.
#[expect(clippy::disallowed_methods, reason = "how long recovery takes is measured, and decides nothing")]
fn now() -> Instant {
    Instant::now()
}

/// A thread of the log. It outlives a panic, so that nobody is left without an answer. The last one writes what is queued when the log is closed.
fn work(pipeline: &Pipeline) {
    let last = loop {
        match std::panic::catch_unwind(AssertUnwindSafe(|| pipeline.work())) {
            Ok(last) => break last,
            Err(_) => drop(pipeline.shared.poison("a thread of the log panicked".to_owned())),
        }
    };
    if last {
        pipeline.finish_all();
    }
}

impl Handle {
    /// Waits for the threads, the last of which writes what is queued; a second caller waits as well. A callback must not: the threads may
    /// wait for it.
    fn close(&self) {
        self.pipeline.close();
        if is_answering() {
            return;
        }
        let mut threads = self.threads.lock();
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                self.pipeline.shared.poison("a thread of the log panicked".to_owned());
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}

impl LogWriter {
    /// Writes everything queued as commit groups and acknowledges it; returns how many batches. Never waits for more.
    pub fn turn(&mut self) -> usize {
        self.pipeline.turn()
    }

    /// Writes one commit group, of at most `limit` batches, and leaves it at that: it is in flight, and is synced, readable and acknowledged with the next call
    /// of any kind, after what that one writes where it writes. That is how two threads overlap, for a simulator to choose. Returns
    /// how many batches it has.
    pub fn begin(&mut self, limit: usize) -> usize {
        self.pipeline.begin(limit)
    }

    /// A clean stop: everything queued is written and durable, and the log says so, which makes later damage to its end tellable from a torn
    /// tail. A simulator may leave it out.
    pub fn finish(&mut self) {
        self.pipeline.finish_all();
    }
}

impl Drop for LogWriter {
    /// Answers what is still queued: everyone is told once.
    fn drop(&mut self) {
        self.pipeline.close();
        self.pipeline.abandon();
    }
}
