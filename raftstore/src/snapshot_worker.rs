//! The snapshot workers: build the files of snapshots and install received ones, on threads of their own.
//!
//! Both take minutes for a large region. Meanwhile apply, flushes, truncation and purge of all regions go on, and so do
//! the requests of all other regions. Each worker runs one task at a time; a few threads of each kind share a bounded
//! queue.
//!
//! A build reads one store snapshot, so that descriptor, position and rows agree. It is done in two turns: the first
//! takes the store snapshot, the second writes the file. A simulator lets time pass in between.
//!
//! An installation is stage 2 of the three in `peer::ready`: its intent is durable, and it ends with data, descriptor
//! and applied position flushed. **While it runs, apply has no task of that region.** The peer guarantees this: it asks
//! for the installation after everything it emitted is applied, and emits nothing until the new log start is durable.
//! The data of other regions is written meanwhile. A flush of the key-value store covers all regions at one point, so
//! after a crash their data and positions agree, and the installation is done again.
//!
//! When the store stops or is poisoned, a task in progress is given up. That is like a crash in the middle: a build
//! leaves no file, and an installation is done again after the next start, by a worker: the other regions of the store
//! serve meanwhile.

use std::io::ErrorKind;
use std::sync::Arc;

use engine::store::{Reader, Store, StoreError};
use engine::{Cf, WriteBatch};

use crate::error::OpenError;
use crate::mailbox::Mailbox;
use crate::messages::{CompletionInbox, Health, InstallTask};
use crate::metrics::Metrics;
use crate::records::{self, LogPosition, SnapshotIntent};
use crate::region::{Floors, Region, RegionId};
use crate::snapshot::{Row, SnapshotFiles, SnapshotKey};

/// The parts that the workers share with the rest of the store.
#[derive(Clone)]
pub(crate) struct WorkerParts<S: Store> {
    pub(crate) store: S,
    pub(crate) snapshots: SnapshotFiles,
    pub(crate) inbox: Arc<CompletionInbox>,
    /// Wakes the store loop.
    pub(crate) wake: Arc<dyn Fn() + Send + Sync>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Metrics,
}

/// Builds snapshot files; `turn` is one step of one file.
pub(crate) struct SnapshotBuilder<S: Store> {
    parts: WorkerParts<S>,
    pub(crate) queue: Arc<Mailbox<RegionId>>,
    /// The region being built, with its data.
    current: Option<(RegionId, S::Snapshot)>,
}

impl<S: Store> SnapshotBuilder<S> {
    pub(crate) fn new(parts: WorkerParts<S>, queue: Arc<Mailbox<RegionId>>) -> SnapshotBuilder<S> {
        SnapshotBuilder { parts, queue, current: None }
    }

    /// Another worker on the same queue.
    pub(crate) fn another(&self) -> SnapshotBuilder<S> {
        SnapshotBuilder::new(self.parts.clone(), Arc::clone(&self.queue))
    }

    /// Takes the data of the next region, or writes the file of the current one. Returns whether there was anything to
    /// do.
    pub(crate) fn turn(&mut self) -> bool {
        if let Some((region, data)) = self.current.take() {
            self.write(region, &data);
            return true;
        }
        let Some(region) = take_one(&self.queue) else { return false };
        if !self.parts.health.refuses_requests() {
            self.current = Some((region, self.parts.store.snapshot()));
        }
        true
    }

    fn write(&self, region: RegionId, data: &S::Snapshot) {
        let built = self.build(region, data);
        if self.parts.health.refuses_requests() {
            return;
        }
        if let Err(error) = &built {
            tracing::warn!(%region, %error, "failed to build a snapshot");
        }
        self.parts.inbox.update(|c| c.built.push((region, built.ok())));
        (self.parts.wake)();
    }

    fn build(&self, region: RegionId, data: &S::Snapshot) -> Result<(SnapshotKey, Region), StoreError> {
        let corrupt = |what: String| StoreError::Corrupt(format!("region {region}: {what}"));
        let read = |key: &[u8]| data.get(Cf::Meta, key);
        let descriptor = read(&records::descriptor_key(region))?.ok_or_else(|| corrupt("no descriptor".into()))?;
        let position = read(&records::applied_key(region))?.ok_or_else(|| corrupt("no applied position".into()))?;
        let descriptor = records::decode_region(&descriptor).map_err(|e| corrupt(e.to_string()))?;
        let position = records::decode_position(&position).map_err(|e| corrupt(e.to_string()))?;
        let floors = match read(&records::floors_key(region))? {
            Some(floors) => records::decode_floors(&floors).map_err(|e| corrupt(e.to_string()))?,
            None => Floors::default(),
        };
        let key = SnapshotKey { region, term: position.term, index: position.index };
        let goes_on = || !self.parts.health.refuses_requests();
        self.parts.snapshots.build(key, (&descriptor, floors), data, &goes_on)?;
        self.parts.metrics.snapshots.with_label_values(&["built"]).inc();
        Ok((key, descriptor))
    }
}

/// Installs received snapshots; `turn` is one of them.
pub(crate) struct SnapshotInstaller<S: Store> {
    parts: WorkerParts<S>,
    pub(crate) queue: Arc<Mailbox<InstallTask>>,
}

impl<S: Store> SnapshotInstaller<S> {
    pub(crate) fn new(parts: WorkerParts<S>, queue: Arc<Mailbox<InstallTask>>) -> SnapshotInstaller<S> {
        SnapshotInstaller { parts, queue }
    }

    /// Another worker on the same queue.
    pub(crate) fn another(&self) -> SnapshotInstaller<S> {
        SnapshotInstaller::new(self.parts.clone(), Arc::clone(&self.queue))
    }

    /// Installs the next snapshot. Returns whether there was one.
    pub(crate) fn turn(&mut self) -> bool {
        let Some(task) = take_one(&self.queue) else { return false };
        if !self.parts.health.refuses_requests() {
            self.install(&task);
        }
        true
    }

    fn install(&self, task: &InstallTask) {
        let WorkerParts { store, snapshots, inbox, wake, health, metrics } = &self.parts;
        match install_snapshot(store, snapshots, &task.intent, &|| !health.refuses_requests()) {
            Ok((position, floors)) => {
                task.delegate.publish_floors(floors);
                task.delegate.publish_applied(position);
                metrics.snapshots.with_label_values(&["installed"]).inc();
                inbox.update(|c| c.installed.push(task.intent.key));
            }
            // Given up: the intent stays, and a worker of the next life does it again.
            Err(_) if health.refuses_requests() => {}
            Err(error) => {
                // The file is at fault, or the key-value store.
                let fault = check_file(snapshots.verify(task.intent.key), &task.intent).err();
                let why = fault.map_or_else(|| error.to_string(), |fault| fault.to_string());
                health.poison(&format!("installation of snapshot {}: {why}", task.intent.key));
            }
        }
        wake();
    }
}

/// Replaces a region's data, descriptor, applied position and floors by those of a snapshot file. Flushed on return.
/// Fails when `goes_on` says no; the data is then undefined, as after a crash.
fn install_snapshot<S: Store>(
    store: &S,
    files: &SnapshotFiles,
    intent: &SnapshotIntent,
    goes_on: &dyn Fn() -> bool,
) -> Result<(LogPosition, Floors), StoreError> {
    let region = &intent.region;
    let floors = files.floors(intent.key)?;
    let position = LogPosition { index: intent.key.index, term: intent.key.term };
    let mut last = WriteBatch::new();
    last.put(Cf::Meta, &records::descriptor_key(region.id), &records::encode_region(region));
    last.put(Cf::Meta, &records::applied_key(region.id), &records::encode_position(position));
    last.put(Cf::Meta, &records::floors_key(region.id), &records::encode_floors(floors));
    let stopped = || Err(StoreError::Io(ErrorKind::Interrupted.into()));
    let checked = |row: Result<Row, StoreError>| if goes_on() { row } else { stopped() };
    let mut rows = files.rows(intent.key)?.map(checked);
    store.replace_range(&region.start, &region.end, &mut rows, &last)?;
    Ok((position, floors))
}

/// The error of an installation whose file is missing or damaged, which an operator can mend.
pub(crate) fn check_file(checked: Result<(), StoreError>, intent: &SnapshotIntent) -> Result<(), OpenError> {
    let (region, snapshot) = (intent.region.id, intent.key);
    checked.map_err(|error| match error {
        StoreError::Io(error) if error.kind() == ErrorKind::NotFound => OpenError::SnapshotMissing { region, snapshot },
        StoreError::Corrupt(what) => OpenError::SnapshotDamaged { region, snapshot, what },
        other => OpenError::Store(other),
    })
}

/// Takes the oldest task. If there are more, wakes another worker of the queue.
fn take_one<T>(queue: &Mailbox<T>) -> Option<T> {
    let mut taken = Vec::new();
    queue.take(1, &mut taken);
    if !queue.is_empty() {
        queue.wake();
    }
    taken.pop()
}
