//! The state that readers, the writer, purge and scrub share. It imports none of them.
//!
//! Two positions grow: a group that is written is `synced` if a batch asked for it, then `published` to the index.
//! After a failed sync, or a failed write whose bytes could not be overwritten, the log is poisoned: nothing is
//! written, synced or acknowledged until it is reopened.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::cache::BlockCache;
use super::log_file::{CreateError, FileTable, LogFile, changed_in};
use crate::disk::{self, Disk};
use crate::log::error::{Finding, LogError, Result};
use crate::log::format::file_name;
use crate::log::index::{Doubts, Index, SealingIndex};
use crate::log::metrics::LogMetrics;
use crate::log::options::LogOptions;
use crate::log::types::GroupId;

/// See the module documentation.
pub(crate) struct LogState {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: LogOptions,
    pub(crate) index: Index,
    pub(crate) files: FileTable,
    pub(crate) cache: BlockCache,
    pub(crate) metrics: Option<LogMetrics>,
    /// The uncertain groups of a log opened for salvage, which takes no writes. `None` for any other log.
    pub(crate) doubts: Option<Doubts>,
    /// The position up to which everything is durable.
    pub(crate) synced: AtomicU64,
    /// The position up to which everything is in the index.
    pub(crate) published: AtomicU64,
    /// Set when the disk has no space for a commit group of any kind. Cleared by the next group that may not use the
    /// reserve, or by an idle purge that finds free space.
    pub(crate) full: AtomicBool,
    /// The reason, if the log is poisoned.
    poison: Mutex<Option<String>>,
    /// The file before the active one, until it is sealed. Its groups may not be synced yet.
    unsealed: Mutex<Option<Arc<LogFile>>>,
    /// The file after the active one, if it is prepared. Not part of the log yet.
    prepared: Mutex<Option<Arc<LogFile>>>,
    /// The index of that file, until it is encoded. A leaf lock.
    pub(crate) sealing: Mutex<Option<SealingIndex>>,
    /// Damaged locations that were reported, by file and offset.
    reported: Mutex<BTreeSet<(u64, u64)>>,
}

/// The part of the state that recovery builds.
pub(crate) struct RecoveredState {
    pub(crate) index: Index,
    pub(crate) files: FileTable,
    pub(crate) doubts: Option<Doubts>,
    /// Position of the last group.
    pub(crate) last_lsn: u64,
}

/// The reason why a group was not written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The group left no trace, and later ones may be written.
    Rejected(LogError),
    /// The content of the disk is unknown: the log must be poisoned.
    Fatal(String),
}

impl WriteError {
    /// An I/O error after which the content of the disk is unknown.
    pub(crate) fn fatal(what: &str) -> impl Fn(io::Error) -> WriteError + '_ {
        move |error| WriteError::Fatal(format!("{what}: {error}"))
    }

    /// An I/O error that left no trace.
    pub(crate) fn rejected(what: &str) -> impl Fn(io::Error) -> WriteError + '_ {
        move |error| WriteError::Rejected(io::Error::new(error.kind(), format!("{what}: {error}")).into())
    }
}

impl From<CreateError> for WriteError {
    fn from(error: CreateError) -> WriteError {
        match error {
            CreateError::NotCreated(error) => WriteError::rejected("next file")(error),
            CreateError::Unknown(error) => WriteError::fatal("next file")(error),
        }
    }
}

/// Whether an error means that the process ran out of a resource such as memory: no evidence of damage on disk.
pub(crate) fn is_exhausted(error: &LogError) -> bool {
    matches!(error, LogError::Io(error) if disk::is_exhausted(error))
}

impl LogState {
    /// The state of a log that was just recovered.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        recovered: RecoveredState,
        metrics: Option<LogMetrics>,
    ) -> LogState {
        let RecoveredState { index, files, doubts, last_lsn } = recovered;
        LogState {
            disk,
            index,
            files,
            cache: BlockCache::new(options.cache_bytes),
            options,
            metrics,
            doubts,
            synced: AtomicU64::new(last_lsn),
            published: AtomicU64::new(last_lsn),
            full: AtomicBool::new(false),
            poison: Mutex::default(),
            unsealed: Mutex::default(),
            prepared: Mutex::default(),
            sealing: Mutex::default(),
            reported: Mutex::default(),
        }
    }

    /// The error for writes, if the log takes none.
    pub(crate) fn read_only(&self) -> Option<LogError> {
        self.doubts.as_ref().map(|_| LogError::ReadOnly)
    }

    /// The error of a poisoned log.
    pub(crate) fn poisoned(&self) -> Option<LogError> {
        self.poison.lock().clone().map(LogError::Poisoned)
    }

    /// Poisons the log. Returns the error, which names the first failure.
    pub(crate) fn poison(&self, why: String) -> LogError {
        let mut poison = self.poison.lock();
        let why = poison.get_or_insert_with(|| {
            tracing::error!(why, "log is poisoned");
            // Purge does not look for pinning groups any more.
            self.metrics.iter().for_each(|metrics| metrics.set_pinning(0, 0));
            why
        });
        LogError::Poisoned(why.clone())
    }

    /// Converts a failed write into the caller's error. Poisons the log if required, and records a full disk.
    pub(crate) fn accept<T>(&self, outcome: std::result::Result<T, WriteError>) -> Result<T> {
        outcome.map_err(|error| match error {
            WriteError::Rejected(error) => {
                if matches!(error, LogError::NoSpace(_)) {
                    self.full.store(true, Ordering::Release);
                    self.metrics.iter().for_each(|metrics| metrics.no_space.inc());
                }
                error
            }
            WriteError::Fatal(why) => self.poison(why),
        })
    }

    /// The file before the active one, if it is not sealed yet.
    pub(crate) fn unsealed(&self) -> Option<Arc<LogFile>> {
        self.unsealed.lock().clone()
    }

    /// Records the file before the active one as not sealed, or that there is none. An unsealed file is recorded before
    /// its successor takes groups, and until its seal is durable.
    pub(crate) fn set_unsealed(&self, file: Option<Arc<LogFile>>) {
        *self.unsealed.lock() = file;
    }

    /// The length of all files of the log and of the one prepared next, in bytes. A file that is taken into the log
    /// meanwhile may be counted twice, or not at all.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let prepared = self.prepared.lock().as_ref().map_or(0, |file| file.len());
        prepared + self.files.lengths().iter().map(|(_, len)| len).sum::<u64>()
    }

    /// Records the file after the active one as prepared, or that there is none.
    pub(crate) fn set_prepared(&self, file: Option<Arc<LogFile>>) {
        *self.prepared.lock() = file;
    }

    /// Makes everything up to `lsn` durable. `file` is the file of that group; the file before it is synced first if
    /// its groups are not durable yet. So the durable groups are always a prefix of the log.
    pub(crate) fn sync(&self, file: &LogFile, lsn: u64) -> std::result::Result<(), WriteError> {
        if self.synced.load(Ordering::Acquire) >= lsn {
            return Ok(());
        }
        if let Some(before) = self.unsealed().filter(|before| before.place.seq < file.place.seq) {
            self.sync_groups(&before)?;
        }
        self.sync_groups(file)
    }

    /// Syncs `file`, header and groups, unless something beyond `lsn` is durable. Its first group comes after `lsn`,
    /// and everything up to `lsn` is durable.
    pub(crate) fn sync_beyond(&self, file: &LogFile, lsn: u64) -> std::result::Result<(), WriteError> {
        if self.synced.load(Ordering::Acquire) <= lsn {
            let written = file.last_lsn.load(Ordering::Acquire);
            self.sync_file(file)?;
            self.synced.fetch_max(written, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Syncs the groups of `file`, unless they are durable. All older files are durable.
    fn sync_groups(&self, file: &LogFile) -> std::result::Result<(), WriteError> {
        // Loaded before the sync, which may not cover later groups. Groups of the next file do not count.
        let written = file.last_lsn.load(Ordering::Acquire);
        let is_due = || self.synced.load(Ordering::Acquire) < written;
        if is_due() {
            let guard = file.sync_lock.lock();
            // The caller that held the lock may have synced these groups.
            if is_due() {
                self.sync_alone(file)?;
                self.synced.fetch_max(written, Ordering::AcqRel);
            }
            drop(guard);
        }
        Ok(())
    }

    /// Overwrites the remains of a failed write of `len` bytes at `offset` with zeros, and syncs them: no later process
    /// may find a group or a header in them.
    pub(crate) fn wipe(&self, file: &LogFile, offset: u64, len: u64) -> std::result::Result<(), WriteError> {
        file.refresh_len().map_err(WriteError::fatal("length after a failed write"))?;
        let left = file.len().saturating_sub(offset).min(len);
        if left > 0 {
            file.write_at(&vec![0; left as usize], offset).map_err(WriteError::fatal("wipe"))?;
            self.sync_file(file)?;
        }
        Ok(())
    }

    /// Syncs `file`. One sync of a file at a time: the kernel reports a failed write to one caller only, so a later
    /// sync may succeed although data was lost.
    pub(crate) fn sync_file(&self, file: &LogFile) -> std::result::Result<(), WriteError> {
        let _guard = file.sync_lock.lock();
        self.sync_alone(file)
    }

    /// Syncs `file`. The caller holds its `sync_lock`.
    fn sync_alone(&self, file: &LogFile) -> std::result::Result<(), WriteError> {
        if let Some(LogError::Poisoned(why)) = self.poisoned() {
            return Err(WriteError::Fatal(why));
        }
        let timer = self.metrics.as_ref().map(|metrics| metrics.sync_seconds.start_timer());
        let outcome = file.file.sync();
        drop(timer);
        outcome.map_err(|error| {
            let why = format!("sync: {error}");
            self.poison(why.clone());
            WriteError::Fatal(why)
        })
    }

    /// Syncs the directory. A failure poisons the log.
    pub(crate) fn sync_dir(&self) -> Result<()> {
        self.disk.sync_dir().map_err(|error| self.poison(format!("sync of the directory: {error}")))
    }

    /// Adds damage in file `seq` to `damage`, unless the location was reported before: purge and scrub report and count
    /// each damaged location once while the log is open. `offset` is the location for an error without one; `concerned`
    /// computes the groups for an error without groups.
    pub(crate) fn report_once(
        &self,
        seq: u64,
        offset: u64,
        error: &LogError,
        concerned: impl FnOnce() -> Vec<GroupId>,
        damage: &mut Vec<Finding>,
    ) {
        let name = file_name(seq);
        if is_exhausted(error) {
            tracing::warn!(file = name, offset, %error, "a part of the log could not be verified");
            return;
        }
        let mut finding = Finding::of_read(error, &name, offset);
        if !self.reported.lock().insert((seq, finding.offset)) {
            return;
        }
        if finding.groups.is_empty() {
            finding.groups = concerned();
        }
        if let Some(metrics) = &self.metrics {
            metrics.damage.inc();
        }
        damage.push(finding);
    }

    /// The groups that file `seq` changes, as the next file's header lists them. If that is unreadable, the groups with
    /// live records in the file.
    pub(crate) fn groups_changed_in(&self, seq: u64) -> Vec<GroupId> {
        changed_in(self.disk.as_ref(), seq).unwrap_or_else(|| self.index.groups_in(seq))
    }
}
