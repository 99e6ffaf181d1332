//! The handle to the log: queue a batch, read, purge, scrub.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::disk::Disk;
use crate::log::commit::{Link, LogBatch, OnDone, Pipeline, SequenceState, SpareFiles, Ticket, is_in_callback};
use crate::log::error::{LogError, Result};
use crate::log::format::Compressor;
use crate::log::metrics::{LogMetrics, name_taken};
use crate::log::options::LogOptions;
use crate::log::purge::{Budget, PurgeReport, Purger};
use crate::log::read::{LogState, Lookup, RecoveredState};
use crate::log::recovery::{RecoveryReport, recover};
use crate::log::scrub::{ScrubReport, Scrubber};
use crate::log::stats::{Gauges, LogStats};
use crate::log::types::{Durability, GroupBounds, GroupId, Lsn};

/// Number of threads of a log that serve its queue: one encodes the next commit group while the other syncs. One more
/// seals and prepares files.
const THREADS: usize = 2;

/// A handle to the log engine; clones share it. When the last one is dropped the log is closed.
///
/// Every method may be called from any thread. `submit`, `submit_with`, `purge`, `groups`, `bounds`, `get` and `scan`
/// never wait for the writer. `write`, [`Ticket::wait`], `close` and the drop of the last handle block until batches
/// are written; do not call them from a callback or an async context. `submit`, `submit_with` and `write` compress
/// large appends on the caller's thread. `entry`, `entries`, `scrub` and `purge` access files on it: purge reads,
/// renames, deletes, prefills and syncs.
///
/// # Errors
///
/// A batch fails at one of two points. If it is **not queued**, the call returns:
/// - `Busy`: the queue is full, in batches or bytes; nothing was queued, try again later.
/// - `Closed`: the log is closed.
/// - `ReadOnly`: the log was opened for salvage.
/// - `Poisoned`: see [`LogError::Poisoned`]. Final until the log is reopened.
/// - `Io`: the compressor for a large batch could not be created.
///
/// If it was **queued and not written**, its ticket or callback gets:
/// - `Invalid`: the batch exceeds 256 MiB, a key exceeds 64 KiB, an index is out of range, or the log has more files
///   than a file header can list.
/// - `Gap`, `Compacted`: an append would leave a gap, or starts before the first kept entry.
/// - `InUse`: it would replace entries of another thread or sequence that are not acknowledged yet.
/// - `NoSpace`, `Io`: the write failed and left no trace; later batches may succeed.
/// - `Poisoned`: the log was poisoned before the batch was acknowledged. Whether it survives a crash is unknown.
/// - `Closed`: a log without threads ended before it wrote the batch.
/// - In a [`Sequence`], the error of the earlier batch that broke it.
#[derive(Clone)]
pub struct LogEngine {
    handle: Arc<Handle>,
}

struct Handle {
    pipeline: Arc<Pipeline>,
    purger: Arc<Purger>,
    scrubber: Scrubber,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The only writer of a log without threads, driven by a simulator. Its drop completes all queued batches with an
/// error.
pub struct LogWriter {
    pub(super) pipeline: Arc<Pipeline>,
}

impl LogEngine {
    /// Opens and recovers the log on `disk`, and starts its threads. [`LogOptions::recovery`] decides how damage is
    /// handled.
    ///
    /// # Errors
    ///
    /// - `Invalid`: an option is out of bounds, or the registry has metrics of these names.
    /// - `NoLog`: there is no log, and the options forbid to create one.
    /// - `Corrupt`, `TornTail`, `Missing`, `Misplaced`: damage that the recovery mode does not accept. Nothing on disk
    ///   is changed.
    /// - `Version`: a file of a newer format.
    /// - `NoSpace`, `Io`: the disk failed, or a thread could not be started.
    pub fn open(disk: Arc<dyn Disk>, options: LogOptions) -> Result<(LogEngine, RecoveryReport)> {
        let (pipeline, report) = open(disk, options)?;
        let handle = Arc::new(Handle::new(pipeline));
        for number in 0..THREADS {
            handle.pipeline.workers.add_thread();
            let pipeline = handle.pipeline.clone();
            let thread = std::thread::Builder::new().name(format!("cortado-log-{number}"));
            match thread.spawn(move || run_thread(&pipeline)) {
                Ok(thread) => handle.threads.lock().push(thread),
                Err(error) => {
                    handle.pipeline.workers.spawn_failed();
                    return Err(error.into());
                }
            }
        }
        let pipeline = handle.pipeline.clone();
        let thread = std::thread::Builder::new().name("cortado-log-files".to_owned());
        handle.threads.lock().push(thread.spawn(move || run_file_thread(&pipeline))?);
        Ok((LogEngine { handle }, report))
    }

    /// Opens the log without threads: [`LogWriter::turn`] and callers of [`LogEngine::write`] serve the queue.
    ///
    /// # Errors
    ///
    /// As [`LogEngine::open`].
    pub fn open_driven(disk: Arc<dyn Disk>, options: LogOptions) -> Result<(LogEngine, LogWriter, RecoveryReport)> {
        let (pipeline, report) = open(disk, options)?;
        let writer = LogWriter { pipeline: pipeline.clone() };
        let handle = Arc::new(Handle::new(pipeline));
        Ok((LogEngine { handle }, writer, report))
    }

    /// Queues a batch and returns a ticket for its outcome. Batches are written, become readable and are acknowledged
    /// in the order of the calls. An empty batch that asks for [`Durability::Synced`] makes everything before it
    /// durable. Dropping the ticket does not cancel the batch.
    ///
    /// # Errors
    ///
    /// Those of a batch that is not queued, see [`LogEngine`].
    pub fn submit(&self, batch: LogBatch, durability: Durability) -> Result<Ticket> {
        self.submit_linked(batch, durability, None)
    }

    /// As [`LogEngine::submit`], with a callback. It is called once, and not at all if this returns an error. See
    /// [`OnDone`] for the thread that calls it.
    ///
    /// # Errors
    ///
    /// Those of a batch that is not queued, see [`LogEngine`].
    pub fn submit_with(&self, batch: LogBatch, durability: Durability, done: OnDone) -> Result<()> {
        self.submit_linked_with(batch, durability, done, None)
    }

    /// Queues a batch and waits for its outcome. The caller's thread serves the queue if no worker is active. Do not
    /// call it inside a callback: that is a deadlock.
    ///
    /// # Errors
    ///
    /// All of a batch, see [`LogEngine`].
    pub fn write(&self, batch: LogBatch, durability: Durability) -> Result<Lsn> {
        let pipeline = &self.handle.pipeline;
        pipeline.write(pipeline.pack(batch)?, durability)
    }

    /// A stream of batches in which each batch depends on those before it.
    pub fn sequence(&self) -> Sequence {
        Sequence { log: self.clone(), state: Arc::default() }
    }

    fn submit_linked(&self, batch: LogBatch, durability: Durability, link: Option<Link>) -> Result<Ticket> {
        let pipeline = &self.handle.pipeline;
        pipeline.submit_ticket(pipeline.pack(batch)?, durability, link)
    }

    fn submit_linked_with(
        &self,
        batch: LogBatch,
        durability: Durability,
        done: OnDone,
        link: Option<Link>,
    ) -> Result<()> {
        let pipeline = &self.handle.pipeline;
        pipeline.submit(pipeline.pack(batch)?, durability, done, link)
    }

    /// Rejects all later batches, and waits until the queued ones are written. Does not wait inside a callback, nor for
    /// a log without threads: see [`LogWriter::finish`].
    pub fn close(&self) {
        self.handle.close();
    }

    /// The groups that exist, sorted. A group exists while it has an entry or a key, or was compacted.
    pub fn groups(&self) -> Vec<GroupId> {
        self.state().index.groups()
    }

    /// The bounds of a group's log; `None` if the group does not exist.
    pub fn bounds(&self, group: GroupId) -> Option<GroupBounds> {
        self.state().index.bounds(group)
    }

    /// One entry. Acknowledged entries are readable; queued ones are not yet.
    ///
    /// # Errors
    ///
    /// - `Compacted`: the entry is before the first kept one.
    /// - `NotFound`: it is after the last one, or the group does not exist.
    /// - `Corrupt`, `Missing`: its block or file is damaged or missing.
    /// - `Lost`: the log was opened for salvage and the entry is missing or uncertain.
    /// - `Io`: the read failed.
    pub fn entry(&self, group: GroupId, index: u64) -> Result<Bytes> {
        self.lookup().entry(group, index)
    }

    /// Entries from `first` to before `end`: at least one, stopping before `max_bytes` would be exceeded. Empty if
    /// `first` is not before `end`.
    ///
    /// # Errors
    ///
    /// As [`LogEngine::entry`]; `NotFound` also if the log ends before `end`.
    pub fn entries(&self, group: GroupId, first: u64, end: u64, max_bytes: usize) -> Result<Vec<Bytes>> {
        self.lookup().entries(group, first, end, max_bytes)
    }

    /// The value of a small key. Served from memory.
    ///
    /// # Errors
    ///
    /// `Lost`: the log was opened for salvage and the key may be lost.
    pub fn get(&self, group: GroupId, key: &[u8]) -> Result<Option<Bytes>> {
        self.lookup().key(group, key)
    }

    /// All small keys of a group, sorted. Served from memory.
    ///
    /// # Errors
    ///
    /// As [`LogEngine::scan_range`].
    pub fn scan(&self, group: GroupId) -> Result<Vec<(Bytes, Bytes)>> {
        self.scan_range(group, &[], None)
    }

    /// The small keys of a group from `from` to before `to` (`None`: to the last), sorted. Served from memory.
    ///
    /// # Errors
    ///
    /// `Lost`: the log was opened for salvage without `keep_doubtful`, and keys of the group may be lost.
    pub fn scan_range(&self, group: GroupId, from: &[u8], to: Option<&[u8]>) -> Result<Vec<(Bytes, Bytes)>> {
        self.lookup().keys(group, from, to)
    }

    /// Frees files, one step per call: deletes files that are recorded as dropped, and queues the next step. That is a
    /// record that drops dead files, or a rewrite of about `budget.bytes` of the oldest file. Never waits for the
    /// writer. The call that queues a drop record does not delete the file; a later call does. So call it regularly;
    /// [`PurgeReport::outcome`] says when. Purge stops at a file that cannot be read, until the log is reopened or
    /// nothing in that file is live: [`PurgeReport::damage`] reports it.
    ///
    /// # Errors
    ///
    /// - `ReadOnly`: the log was opened for salvage.
    /// - `Closed`: the log is closed, and there is a step to queue.
    /// - `Poisoned`: the log was poisoned during the call. On a log that is poisoned already, purge does nothing.
    pub fn purge(&self, budget: Budget) -> Result<PurgeReport> {
        self.purge_then(budget, |_| ())
    }

    /// As [`LogEngine::purge`], with a callback. `done` is called exactly once, at the end of the step: with `false` if
    /// the log could not write it, with `true` if it was written or nothing was queued. It is called on the caller's
    /// thread or like the callback of a batch, also if this returns an error.
    ///
    /// # Errors
    ///
    /// As [`LogEngine::purge`].
    pub fn purge_then(&self, budget: Budget, done: impl FnOnce(bool) + Send + 'static) -> Result<PurgeReport> {
        self.handle.purger.purge(budget, done)
    }

    /// Verifies on disk what a read or a restart would need: about `max_bytes` per call, continuing where the last call
    /// ended. Reads on the caller's thread and delays no other call. Call it periodically, from one thread. Does
    /// nothing for a salvaged or poisoned log.
    pub fn scrub(&self, max_bytes: u64) -> ScrubReport {
        self.handle.scrubber.scrub(max_bytes)
    }

    /// Sizes and counts of the log. Visits every group: not for a hot path.
    pub fn stats(&self) -> LogStats {
        LogStats::of(&self.handle.pipeline)
    }

    /// Free space on the disk of the log in bytes, approximately; `u64::MAX` if unknown.
    pub fn free_bytes(&self) -> u64 {
        self.state().disk.free_bytes().unwrap_or(u64::MAX)
    }

    /// The error of a poisoned log; `None` if it is not poisoned.
    pub fn poisoned(&self) -> Option<LogError> {
        self.state().poisoned()
    }

    fn state(&self) -> &LogState {
        self.handle.pipeline.state()
    }

    fn lookup(&self) -> Lookup<'_> {
        Lookup(self.state())
    }
}

fn open(disk: Arc<dyn Disk>, options: LogOptions) -> Result<(Arc<Pipeline>, RecoveryReport)> {
    options.validate()?;
    let compressor = Compressor::new(options.compression, options.compress_from)?;
    let begun = now();
    let recovered = recover(disk.as_ref(), &options)?;
    let took = now().duration_since(begun);
    // After recovery: if that failed, the caller may retry with other options and the same registry.
    let metrics = options.registry.as_ref().map(LogMetrics::new).transpose();
    let metrics = metrics.map_err(|error| name_taken(&error))?;
    let report = recovered.report;
    trace_recovery(&report);
    let (index, files, doubts) = (recovered.index, recovered.files, recovered.doubts);
    let state = RecoveredState { index, files, doubts, last_lsn: recovered.active.last_lsn() };
    let state = Arc::new(LogState::new(disk, options, state, metrics));
    let spares = Arc::new(SpareFiles::new(state.clone(), recovered.spares));
    let pipeline = Arc::new(Pipeline::new(state, spares, recovered.active, recovered.full, compressor));
    if let Some(metrics) = &pipeline.state().metrics {
        report.record(took, &metrics.recovery);
        metrics.register(Gauges::new(Arc::downgrade(&pipeline)).map_err(|error| name_taken(&error))?)?;
    }
    Ok((pipeline, report))
}

fn trace_recovery(report: &RecoveryReport) {
    if let Some((file, offset)) = &report.truncated_at {
        let (bytes, uncertain) = (report.truncated_bytes, report.uncertain.as_ref());
        let cut_file = report.cut_file.as_ref();
        tracing::warn!(
            file,
            offset,
            bytes,
            ?uncertain,
            ?cut_file,
            "truncated the end of the log, which is not proven to be synced"
        );
    }
    for loss in &report.losses {
        tracing::warn!(%loss, "a part of the log is lost");
    }
}

/// The clock, for metrics only.
#[expect(clippy::disallowed_methods, reason = "how long recovery takes is measured, and decides nothing")]
fn now() -> Instant {
    Instant::now()
}

/// A thread of the log. It survives panics, so that every batch is completed. When the log is closed, the last thread
/// commits what is queued.
fn run_thread(pipeline: &Pipeline) {
    let last = loop {
        match std::panic::catch_unwind(AssertUnwindSafe(|| pipeline.run_thread())) {
            Ok(last) => break last,
            Err(_) => drop(pipeline.state().poison("a thread of the log panicked".to_owned())),
        }
    };
    if last {
        pipeline.finish_all();
    }
}

/// The thread of a log that seals and prepares files. A panic poisons the log.
fn run_file_thread(pipeline: &Pipeline) {
    if std::panic::catch_unwind(AssertUnwindSafe(|| pipeline.run_file_thread())).is_err() {
        pipeline.state().poison("a thread of the log panicked".to_owned());
    }
}

impl Handle {
    fn new(pipeline: Arc<Pipeline>) -> Handle {
        let purger = Arc::new(Purger::new(pipeline.clone()));
        Handle { pipeline, scrubber: Scrubber::new(purger.clone()), purger, threads: Mutex::default() }
    }

    /// Closes the log and waits for its threads. The last thread commits what is queued. A second caller waits as well.
    /// A callback does not wait: the threads may wait for it.
    fn close(&self) {
        self.pipeline.close();
        if is_in_callback() {
            return;
        }
        let mut threads = self.threads.lock();
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                self.pipeline.state().poison("a thread of the log panicked".to_owned());
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
    /// Commits everything queued and acknowledges it; returns how many batches. Never waits for more.
    pub fn turn(&mut self) -> usize {
        self.pipeline.turn()
    }

    /// Writes one commit group, of at most `limit` batches, and keeps it in flight. The next call of any kind writes
    /// its own group first, then syncs, publishes and acknowledges this one. So a simulator chooses how two threads
    /// overlap. Returns how many batches the group has.
    pub fn begin(&mut self, limit: usize) -> usize {
        self.pipeline.begin(limit)
    }

    /// Does what the thread of the log would do in the background now: seals a full file, and prepares the next file of
    /// a nearly full one. Without this call, [`LogWriter::turn`] seals full files at its end and [`LogWriter::begin`]
    /// leaves them unsealed; the next file is made when it is needed.
    pub fn tend_files(&mut self) {
        self.pipeline.tend_files();
    }

    /// A clean stop: commits and syncs everything queued, and writes a mark. Recovery then distinguishes later damage
    /// to the end of the log from a torn tail. Optional in a simulator.
    pub fn finish(&mut self) {
        self.pipeline.finish_all();
    }
}

impl Drop for LogWriter {
    /// Completes what is still queued with [`LogError::Closed`].
    fn drop(&mut self) {
        self.pipeline.close();
        self.pipeline.abandon();
    }
}

/// A stream of batches of one caller. After a batch that is not written, all later ones fail until
/// [`Sequence::resume`]. So the written batches are always a prefix of the submitted ones, however many are in flight.
#[derive(Clone)]
pub struct Sequence {
    log: LogEngine,
    state: Arc<SequenceState>,
}

impl Sequence {
    /// As [`LogEngine::submit`], but the batch fails with the same error if an earlier one of this sequence is not
    /// written. Submit batches of a sequence from one thread at a time.
    ///
    /// # Errors
    ///
    /// Those of a batch that is not queued, see [`LogEngine`].
    pub fn submit(&self, batch: LogBatch, durability: Durability) -> Result<Ticket> {
        self.log.submit_linked(batch, durability, Some(Link::new(&self.state)))
    }

    /// As [`Sequence::submit`], with a callback.
    ///
    /// # Errors
    ///
    /// As [`Sequence::submit`].
    pub fn submit_with(&self, batch: LogBatch, durability: Durability, done: OnDone) -> Result<()> {
        self.log.submit_linked_with(batch, durability, done, Some(Link::new(&self.state)))
    }

    /// Accepts batches again after a failed one: later batches do not depend on earlier ones. Call it only after all
    /// earlier batches are completed.
    pub fn resume(&self) {
        self.state.resume();
    }
}
