//! The work on the files around the active one, off the writers' path: seal the file before it, prepare the file after
//! it.
//!
//! A change of the active file writes one header (`rotation.rs`). Afterwards, in this order:
//!
//! 1. The index of the full file is encoded, while the next file takes groups ([`SealingIndex`]).
//! 2. The groups of the full file are synced, then the header of the active file.
//! 3. Index and footer of the full file are written and synced: it is sealed.
//! 4. Once the active file has an eighth of its size, its successor is prepared: created or made from a spare, durable
//!    under its name, without a header. If small groups are synced, it is filled with zeros as the active one fills,
//!    and gets space for its seal; a spare that is long enough has both. Each step is written back and not synced: a
//!    sync commits the metadata of the file system, and the writers would meet that. One sync follows the last step.
//!
//! So at most the newest two files in use are unsealed, and a prepared file exists only if all files before the active
//! one are sealed. A crash between any two steps leaves a log that recovery opens.
//!
//! A thread of the log does this work. A rotation that comes too early waits for the step under way, and does the rest
//! of steps 1 to 3 itself, with three syncs. It does not wait for the last sync of step 4, which runs without the lock;
//! the first sync of a group in the next file does. Without threads, the callers that serve the queue seal the full
//! file, and [`Pipeline::tend_files`] prepares the next one. A step that fails without trace is retried by the next
//! call.
//!
//! [`Pipeline::tend_files`]: super::Pipeline::tend_files

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::publish::Publisher;
use super::spares::SpareFiles;
use crate::log::error::LogError;
use crate::log::format::{FileHeader, Place, REUSED};
use crate::log::index::{ActiveChanges, SealingIndex};
use crate::log::read::{LogFile, LogState, Seal, WriteError};

/// Number of groups that are encoded at once. A commit group that changes a group of the full file waits meanwhile.
const GROUPS_AT_ONCE: usize = 64;

/// What a commit group is written with, besides the active file.
pub(super) struct CommitContext {
    pub(super) state: Arc<LogState>,
    pub(super) spares: Arc<SpareFiles>,
    pub(super) publisher: Publisher,
    pub(super) files: FileWork,
}

impl CommitContext {
    /// Waits until every group up to `lsn` is in the index. The groups are written.
    pub(super) fn wait_until_published(&self, lsn: u64) -> Result<(), WriteError> {
        self.publisher.wait_idle();
        if let Some(LogError::Poisoned(why)) = self.state.poisoned() {
            return Err(WriteError::Fatal(why));
        }
        let published = self.state.published.load(Ordering::Acquire);
        assert!(published >= lsn, "group {lsn} is written and not published, the last published one is {published}");
        Ok(())
    }

    /// Seals and prepares what is due. Not called with the writer lock held.
    pub(super) fn tend_files(&self) {
        self.try_work(|around| around.seal(self).and_then(|()| around.prepare_wanted(self)));
        let unsynced = loop {
            match self.try_work(|around| around.add_space(self)) {
                Some(ControlFlow::Continue(())) => {}
                Some(ControlFlow::Break(unsynced)) => break unsynced,
                None => return,
            }
        };
        if let Some(file) = unsynced {
            // Without the lock: a rotation may take the file meanwhile. A failure poisons the log.
            drop(self.state.sync_file(&file));
        }
    }

    /// Seals the file before the active one, if it is not sealed. Not called with the writer lock held.
    pub(super) fn seal_full_file(&self) {
        self.try_work(|around| around.seal(self));
    }

    /// Returns `None` after a failure.
    fn try_work<T>(&self, work: impl FnOnce(&mut FilesAround) -> Result<T, WriteError>) -> Option<T> {
        if self.state.read_only().is_some() || self.state.poisoned().is_some() {
            return None;
        }
        match work(&mut self.files.lock()) {
            Ok(done) => return Some(done),
            Err(WriteError::Fatal(why)) => drop(self.state.poison(why)),
            // Retried, at the latest by the next rotation, which reports it.
            Err(WriteError::Rejected(error)) => tracing::debug!(%error, "the log could not prepare or seal a file"),
        }
        None
    }

    /// Does the work that is due until the log closes. The loop of a thread.
    pub(super) fn tend_files_until_closed(&self) {
        while self.files.wait() {
            self.tend_files();
        }
    }
}

/// The files around the active one, and the signals of their thread.
#[derive(Default)]
pub(super) struct FileWork {
    /// Held while a step runs. Lock order: the writer lock, this one, the publisher's stage, [`LogState::sealing`].
    around: Mutex<FilesAround>,
    due: Mutex<Due>,
    wake: Condvar,
}

/// The files around the active one.
#[derive(Default)]
pub(super) struct FilesAround {
    /// The file before the active one, until it is sealed.
    full: Option<FullFile>,
    /// The file after the active one.
    prepared: Option<Arc<LogFile>>,
}

/// A file that takes no more groups and is not sealed.
pub(crate) struct FullFile {
    pub(crate) file: Arc<LogFile>,
    /// The file after it. Its header is written.
    pub(crate) next: Arc<LogFile>,
    /// Where its groups end.
    pub(crate) end: u64,
    /// Position and checksum of its last group.
    pub(crate) last_lsn: u64,
    pub(crate) chain: u32,
    /// Its seal, once the index is encoded. Until then [`LogState::sealing`] has the index.
    pub(crate) seal: Option<Seal>,
}

/// What the thread has to do.
#[derive(Default)]
struct Due {
    wanted: Option<Wanted>,
    pending: bool,
    closing: bool,
}

/// The file to prepare.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) place: Place,
    /// Its length with zeros.
    pub(super) zeros: u64,
    /// Its length with space for the seal. `None` while more zeros will follow.
    pub(super) whole: Option<u64>,
}

impl FileWork {
    /// For a log whose second newest file may be unsealed.
    pub(super) fn new(full: Option<FullFile>) -> FileWork {
        let due = Due { pending: full.is_some(), ..Due::default() };
        let around = FilesAround { full, prepared: None };
        FileWork { around: Mutex::new(around), due: Mutex::new(due), wake: Condvar::new() }
    }

    /// The files around the active one. Waits for the step under way.
    pub(super) fn lock(&self) -> MutexGuard<'_, FilesAround> {
        self.around.lock()
    }

    /// Asks for the file after the active one.
    pub(super) fn want(&self, wanted: Wanted) {
        self.notify(|due| due.wanted = Some(wanted));
    }

    /// What is asked for, unless the log closes.
    fn wanted(&self) -> Option<Wanted> {
        let due = self.due.lock();
        due.wanted.filter(|_| !due.closing)
    }

    /// Ends the thread.
    pub(super) fn close(&self) {
        self.notify(|due| due.closing = true);
    }

    fn notify(&self, change: impl FnOnce(&mut Due)) {
        let mut due = self.due.lock();
        change(&mut due);
        due.pending = true;
        drop(due);
        self.wake.notify_one();
    }

    /// Waits until something is due; false once the log closes.
    fn wait(&self) -> bool {
        let mut due = self.due.lock();
        while !due.pending {
            self.wake.wait(&mut due);
        }
        due.pending = false;
        !due.closing
    }
}

impl FilesAround {
    /// Takes the file of `header`, with the header written and not synced: the prepared file, or a new one. The file
    /// before the active one is sealed first. A failed call leaves no header and can be retried.
    pub(super) fn take_next(
        &mut self,
        context: &CommitContext,
        header: &mut FileHeader,
        may_use_reserve: bool,
    ) -> Result<Arc<LogFile>, WriteError> {
        self.seal(context)?;
        context.files.due.lock().wanted = None;
        let file = match self.set_prepared(context, None) {
            Some(file) => file,
            None => Arc::new(context.spares.prepare(header.place, may_use_reserve)?),
        };
        assert_eq!(file.place, header.place, "another file is prepared");
        header.flags = if file.reused { REUSED } else { 0 };
        let header = header.encode();
        let Err(error) = file.write_at(&header, 0) else { return Ok(file) };
        // The active file may take groups before the next attempt, which then writes another header. If a crash left
        // this one, the groups behind would not continue it.
        let wiped = context.state.wipe(&file, 0, header.len() as u64);
        self.set_prepared(context, Some(file));
        wiped?;
        Err(WriteError::rejected("header of the next file")(error))
    }

    /// Hands over a full file, to be sealed. The file after it is active.
    pub(super) fn seal_later(&mut self, context: &CommitContext, full: FullFile, changes: ActiveChanges) {
        assert!(self.full.is_none(), "the file before {} is not sealed", full.file.name);
        let state = &context.state;
        *state.sealing.lock() = Some(SealingIndex::new(full.file.place.seq, changes));
        state.set_unsealed(Some(full.file.clone()));
        self.full = Some(full);
        context.files.notify(|_| ());
    }

    /// Seals the file before the active one, if it is not sealed.
    pub(super) fn seal(&mut self, context: &CommitContext) -> Result<(), WriteError> {
        let Some(full) = &mut self.full else { return Ok(()) };
        let state = &context.state;
        let seal = match full.seal.take() {
            Some(seal) => seal,
            None => full.encode(context)?,
        };
        let seal = full.seal.insert(seal);
        // Recovery reads the index of a sealed file and not its groups.
        state.sync(&full.file, full.last_lsn)?;
        // A sealed file has a successor with a durable header.
        state.sync_beyond(&full.next, full.last_lsn)?;
        full.file.prefill(seal.file_len()).map_err(WriteError::rejected("space for the seal"))?;
        seal.write(&full.file).map_err(WriteError::rejected("seal"))?;
        state.sync_file(&full.file)?;
        state.set_unsealed(None);
        self.full = None;
        if let Some(metrics) = &state.metrics {
            metrics.rotations.inc();
        }
        Ok(())
    }

    /// Prepares the file after the active one, if it is wanted.
    fn prepare_wanted(&mut self, context: &CommitContext) -> Result<(), WriteError> {
        if let Some(wanted) = context.files.wanted().filter(|_| self.prepared.is_none()) {
            let file = context.spares.prepare(wanted.place, false)?;
            self.set_prepared(context, Some(Arc::new(file)));
        }
        Ok(())
    }

    /// Replaces the prepared file. Purge counts its space.
    fn set_prepared(&mut self, context: &CommitContext, file: Option<Arc<LogFile>>) -> Option<Arc<LogFile>> {
        context.state.set_prepared(file.clone());
        std::mem::replace(&mut self.prepared, file)
    }

    /// Adds zeros to the prepared file, one step, or the space for its seal. `Break` if nothing more is due, with the
    /// file if all of that is written and not synced.
    fn add_space(&self, context: &CommitContext) -> Result<ControlFlow<Option<Arc<LogFile>>>, WriteError> {
        const DONE: ControlFlow<Option<Arc<LogFile>>> = ControlFlow::Break(None);
        let (Some(file), Some(wanted)) = (&self.prepared, context.files.wanted()) else { return Ok(DONE) };
        let len = file.len();
        if len < wanted.zeros {
            let step = wanted.zeros.min(len + context.state.options.prefill_bytes);
            file.prefill(step).map_err(WriteError::rejected("zeros"))?;
            file.file.start_writeback(len, file.len().saturating_sub(len));
            // A disk may ignore the request.
            return Ok(if file.len() > len { ControlFlow::Continue(()) } else { DONE });
        }
        let Some(whole) = wanted.whole.filter(|whole| len < *whole) else { return Ok(DONE) };
        file.reserve(whole).map_err(WriteError::rejected("space for the seal"))?;
        Ok(ControlFlow::Break(Some(file.clone())))
    }
}

impl FullFile {
    /// Encodes the index.
    fn encode(&self, context: &CommitContext) -> Result<Seal, WriteError> {
        context.wait_until_published(self.last_lsn)?;
        // The footer must be the last bytes of the file, and a failed call may have left the file longer than recorded.
        self.file.refresh_len().map_err(WriteError::rejected("length"))?;
        let state = &context.state;
        let index = loop {
            let mut sealing = state.sealing.lock();
            let Some(mut index) = sealing.take() else {
                return Err(WriteError::Fatal(format!("the index of {} is lost", self.file.name)));
            };
            if index.advance(GROUPS_AT_ONCE, &state.index) {
                break index;
            }
            *sealing = Some(index);
            // Publishers that wait for the lock get it now.
            MutexGuard::unlock_fair(sealing);
        };
        Ok(Seal::new(&self.file, self.end, index.finish(), self.last_lsn, self.chain))
    }
}
