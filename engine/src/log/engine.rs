//! The handle to the log: queue a batch, read, purge.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use crossbeam_channel::{Sender, TrySendError};
use parking_lot::{Mutex, RwLock};

use crate::disk::Disk;

use super::batch::LogBatch;
use super::cache::BlockCache;
use super::error::{LogError, Result};
use super::metrics::LogMetrics;
use super::options::LogOptions;
use super::purge::{Budget, PurgeReport};
use super::read::Shared;
use super::recovery::recover;
use super::writer::{Job, LogWriter, Work};
use super::{Durability, GroupBounds, GroupId, Lsn, OnDone, RecoveryReport};

/// A handle to the log engine; clones share it.
#[derive(Clone)]
pub struct LogEngine {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    /// Gone once closed: the writer ends when it has drained the queue.
    queue: RwLock<Option<Sender<Job>>>,
}

impl LogEngine {
    /// Opens the log on `disk`, recovering what it holds; [`LogOptions::recovery`] says what becomes of damage.
    pub fn open(disk: Arc<dyn Disk>, options: LogOptions) -> Result<(LogEngine, LogWriter, RecoveryReport)> {
        options.validate()?;
        let metrics = options.registry.as_ref().map(LogMetrics::new).transpose();
        let metrics = metrics.map_err(|error| LogError::Invalid(format!("metrics: {error}")))?;
        let recovered = recover(disk.as_ref(), &options)?;
        let report = recovered.report;
        if let Some((file, offset)) = &report.truncated_at {
            tracing::warn!(file, offset, bytes = report.truncated_bytes, "left out the unsynced end of the log");
        }
        let (sender, receiver) = crossbeam_channel::bounded(options.queue_batches);
        for loss in &report.losses {
            tracing::warn!(%loss, "a part of the log is lost");
        }
        let shared = Arc::new(Shared {
            disk,
            cache: BlockCache::new(options.cache_bytes),
            options,
            index: recovered.index,
            files: recovered.files,
            doubts: recovered.doubts,
            metrics,
            poison: Mutex::new(None),
            queued_bytes: AtomicUsize::new(0),
            released: Mutex::new(Vec::new()),
            purging: AtomicBool::new(false),
            victim: Mutex::new(None),
            settled: Mutex::default(),
            next_spare: AtomicU64::new(recovered.spares.last().map_or(1, |last| last + 1)),
            spares: Mutex::new(recovered.spares),
        });
        let writer = LogWriter { shared: shared.clone(), queue: receiver, stash: None, active: recovered.active };
        let handle = Handle { shared, queue: RwLock::new(Some(sender)) };
        Ok((LogEngine { handle: Arc::new(handle) }, writer, report))
    }

    /// Queues a batch. Batches are written, become readable and are acknowledged in the order of the calls. `Err` means not
    /// queued, and that `done` will not be called. An empty batch that asks for [`Durability::Synced`] makes
    /// everything before it durable.
    pub fn submit(&self, batch: LogBatch, durability: Durability, done: OnDone) -> Result<()> {
        let bytes = batch.bytes();
        self.queue(Job { work: Work::Batch(batch), durability, done, bytes })
    }

    fn queue(&self, job: Job) -> Result<()> {
        let shared = &self.handle.shared;
        if let Some(error) = shared.read_only().or_else(|| shared.poisoned()) {
            return Err(error);
        }
        let bytes = job.bytes;
        let queue = self.handle.queue.read();
        let Some(queue) = queue.as_ref() else { return Err(LogError::Closed) };
        if shared.queued_bytes.fetch_add(bytes, Ordering::AcqRel) >= shared.options.queue_bytes {
            shared.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
            return Err(LogError::Busy);
        }
        queue.try_send(job).map_err(|refused| {
            shared.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
            match refused {
                TrySendError::Full(_) => LogError::Busy,
                TrySendError::Disconnected(_) => LogError::Closed,
            }
        })
    }

    /// Queues a batch and waits for its fate. Only with a running writer thread.
    pub fn write(&self, batch: LogBatch, durability: Durability) -> Result<Lsn> {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        // The receiver outlives the call, and the channel has room for the one answer.
        self.submit(batch, durability, Box::new(move |outcome| drop(sender.send(outcome))))?;
        receiver.recv().unwrap_or(Err(LogError::Closed))
    }

    /// Refuses batches from now on; what is queued is still written, and then the writer's thread ends.
    pub fn close(&self) {
        self.handle.queue.write().take();
    }

    /// The groups that exist, sorted.
    pub fn groups(&self) -> Vec<GroupId> {
        self.handle.shared.index.groups()
    }

    /// The bounds of a group's log; `None` if the group does not exist. A group exists while it has an entry, a key, or was
    /// compacted.
    pub fn bounds(&self, group: GroupId) -> Option<GroupBounds> {
        self.handle.shared.index.bounds(group)
    }

    /// One entry. Acknowledged entries are readable; queued ones are not yet.
    pub fn entry(&self, group: GroupId, index: u64) -> Result<Bytes> {
        self.handle.shared.entry(group, index)
    }

    /// Entries from `first` to before `end`, at least one, stopping before `max_bytes` would be exceeded. Empty where `first` is
    /// not before `end`; `NotFound` where the log ends before `end`.
    pub fn entries(&self, group: GroupId, first: u64, end: u64, max_bytes: usize) -> Result<Vec<Bytes>> {
        self.handle.shared.entries(group, first, end, max_bytes)
    }

    /// The value of a small key. Served from memory.
    pub fn get(&self, group: GroupId, key: &[u8]) -> Result<Option<Bytes>> {
        let shared = &self.handle.shared;
        let value = shared.index.with(group, |group| group.get(key).map(|found| found.value.clone())).flatten();
        let name = || format!("key {}", key.escape_ascii());
        match shared.lost(group, name).filter(|_| value.is_none()) {
            Some(lost) => Err(lost),
            None => Ok(value),
        }
    }

    /// All small keys of a group, sorted. Served from memory.
    pub fn scan(&self, group: GroupId) -> Result<Vec<(Bytes, Bytes)>> {
        let shared = &self.handle.shared;
        if let Some(lost) = shared.lost(group, || "list of keys".to_owned()).filter(|_| !shared.options.keep_doubtful) {
            return Err(lost);
        }
        let pairs = shared.index.with(group, |group| {
            let pairs = group.keys.iter().map(|kv| (Bytes::copy_from_slice(&kv.key), kv.value.clone()));
            pairs.collect::<Vec<_>>()
        });
        Ok(pairs.unwrap_or_default())
    }

    /// Gives space back, a step per call: gives up files that are recorded as holding nothing live, and queues the next step
    /// towards more of them (a record that drops dead files, or a part of the live rest of a mostly dead one written again, at
    /// most `budget` of it). Never waits for the writer: a file goes with a later call than the one that queued its
    /// end, so call it regularly, and soon again while the report says there is more.
    pub fn purge(&self, budget: Budget) -> Result<PurgeReport> {
        let shared = &self.handle.shared;
        if let Some(error) = shared.read_only() {
            return Err(error);
        }
        let (report, work) = shared.purge(budget)?;
        let Some(work) = work else { return Ok(report) };
        shared.purging.store(true, Ordering::Release);
        let weak = Arc::downgrade(shared);
        let done: OnDone = Box::new(move |_| {
            if let Some(shared) = weak.upgrade() {
                shared.purging.store(false, Ordering::Release);
            }
        });
        let bytes = report.rewritten as usize;
        match self.queue(Job { work, durability: Durability::Synced, done, bytes }) {
            Ok(()) => Ok(report),
            Err(error) => {
                shared.purging.store(false, Ordering::Release);
                // What was looked at is looked at anew.
                shared.victim.lock().take();
                // A full queue only puts it off.
                if matches!(error, LogError::Busy) { Ok(PurgeReport { rewritten: 0, ..report }) } else { Err(error) }
            }
        }
    }

    /// Bytes of all log files.
    pub fn disk_bytes(&self) -> u64 {
        self.handle.shared.files.lengths().iter().map(|(_, len)| len).sum()
    }

    /// Why nothing is written any more; `None` while the log is sound.
    pub fn poisoned(&self) -> Option<LogError> {
        self.handle.shared.poisoned()
    }
}
