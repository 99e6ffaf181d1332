//! A simulated directory as a [`Disk`]: what each call on names does, as the state of the disk says.
//!
//! A session belongs to one life of a node, or follows the disk through its crashes; the calls are the same.

use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::{Disk, DiskCopy, DiskFile, check_name};
use super::copy::SimCopy;
use super::file::{FileRef, Handle};
use super::plan::{Lie, Verdict};
use super::state::State;
use super::{MAIN, Operation, not_found};

/// A directory as one life of a node sees it.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) state: Arc<Mutex<State>>,
    /// `None` follows the disk through crashes.
    pub(super) life: Option<u64>,
    pub(super) dir: String,
}

impl Session {
    fn handle(&self, life: u64, file: &FileRef) -> Arc<dyn DiskFile> {
        Arc::new(Handle { state: self.state.clone(), life, file: file.clone() })
    }

    pub(super) fn check(&self, state: &State) -> io::Result<()> {
        state.check_life(self.life.unwrap_or(state.life))
    }
}

impl Disk for Session {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        check_name(name)?;
        let mut state = self.state.lock();
        self.check(&state)?;
        state.look(Operation::Open)?;
        let dir = state.dir(&self.dir)?;
        let file = dir.lock().get(name).cloned().ok_or_else(|| not_found(name))?;
        Ok(self.handle(state.life, &file))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        check_name(name)?;
        let mut state = self.state.lock();
        self.check(&state)?;
        let verdict = state.change(Operation::Create);
        let dir = state.dir(&self.dir)?;
        let mut names = dir.lock();
        if names.get(name).is_some() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, name.to_owned()));
        }
        let file = FileRef::default();
        if verdict.acts() {
            names.create(name, file.clone());
        }
        verdict.answer().map(|()| self.handle(state.life, &file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut state = self.state.lock();
        self.check(&state)?;
        let verdict = state.change(Operation::Rename);
        if verdict.acts() && !state.dir(&self.dir)?.lock().rename(from, to) {
            return Err(not_found(from));
        }
        verdict.answer()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        let mut state = self.state.lock();
        self.check(&state)?;
        let verdict = state.change(Operation::Remove);
        if verdict.acts() && !state.dir(&self.dir)?.lock().remove(name) {
            return Err(not_found(name));
        }
        verdict.answer()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state.lock();
        self.check(&state)?;
        state.look(Operation::List)?;
        let dir = state.dir(&self.dir)?;
        let names = dir.lock();
        Ok(names.iter().map(|(name, _)| name.clone()).collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        self.check(&state)?;
        let verdict = state.change(Operation::SyncDir);
        if matches!(verdict, Verdict::Failed(..)) && self.dir == MAIN {
            state.failed_syncs += 1;
        }
        let dir = state.dir(&self.dir)?;
        let mut names = dir.lock();
        if matches!(verdict, Verdict::Skipped) {
            state.skipped = names.changed();
        }
        let count = verdict.share(names.pending());
        names.sync(count, state.lies.contains(&Lie::OldNames));
        verdict.answer()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.state.lock();
        self.check(&state)?;
        Ok(state.space_left())
    }

    fn begin_copy(&self, path: &Path) -> io::Result<Box<dyn DiskCopy>> {
        Ok(Box::new(SimCopy::begin(self, path)?))
    }
}
