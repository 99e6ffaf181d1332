//! A copy of a simulated directory, made beside it: the same steps as on a real disk, and as many places to crash at.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::super::{Disk, DiskCopy, DiskFile, check_name, partial_name};
use super::plan::{Lie, Verdict};
use super::session::Session;
use super::state::DirRef;
use super::{Operation, not_found};

/// A directory in the making.
pub(super) struct SimCopy {
    source: Session,
    staging: Session,
    /// The name it will have.
    name: String,
    published: bool,
}

impl SimCopy {
    /// See [`Disk::begin_copy`]; `path` is a plain name.
    pub(super) fn begin(source: &Session, path: &Path) -> io::Result<SimCopy> {
        let name = path.to_str().unwrap_or_default().to_owned();
        check_name(&name)?;
        let mut state = source.state.lock();
        source.check(&state)?;
        if state.dirs.get(&name).is_some_and(|dir| dir.lock().iter().next().is_some()) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, name));
        }
        let source = Session { life: Some(source.life.unwrap_or(state.life)), ..source.clone() };
        let staging = Session { dir: partial_name(&name), ..source.clone() };
        let left = state.dirs.get(&staging.dir).is_some();
        if !left {
            let verdict = state.change(Operation::Create);
            if verdict.acts() {
                state.dirs.create(&staging.dir, DirRef::default());
            }
            verdict.answer()?;
        }
        drop(state);
        let copy = SimCopy { source, staging, name, published: false };
        if left {
            copy.clear()?;
        } else {
            copy.sync_parent()?;
        }
        Ok(copy)
    }

    fn clear(&self) -> io::Result<()> {
        self.staging.list()?.iter().try_for_each(|name| self.staging.remove(name))
    }

    /// Makes names of directories durable.
    fn sync_parent(&self) -> io::Result<()> {
        let mut state = self.staging.state.lock();
        self.staging.check(&state)?;
        let verdict = state.change(Operation::SyncDir);
        if matches!(verdict, Verdict::Skipped) {
            state.skipped = state.dirs.changed();
        }
        let count = verdict.share(state.dirs.pending());
        let keeps_old = state.lies.contains(&Lie::OldNames);
        state.dirs.sync(count, keeps_old);
        verdict.answer()
    }

    fn discard(&self) -> io::Result<()> {
        self.clear()?;
        let mut state = self.staging.state.lock();
        self.staging.check(&state)?;
        let verdict = state.change(Operation::Remove);
        if verdict.acts() {
            state.dirs.remove(&self.staging.dir);
        }
        verdict.answer()
    }
}

impl DiskCopy for SimCopy {
    fn link(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        let mut state = self.source.state.lock();
        self.source.check(&state)?;
        let verdict = state.change(Operation::Link);
        let from = state.dir(&self.source.dir)?;
        let file = from.lock().get(name).cloned().ok_or_else(|| not_found(name))?;
        let to = state.dir(&self.staging.dir)?;
        let mut names = to.lock();
        if names.get(name).is_some() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, name.to_owned()));
        }
        if verdict.acts() {
            names.create(name, file);
        }
        verdict.answer()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.staging.create(name)
    }

    fn publish(&mut self) -> io::Result<()> {
        self.staging.sync_dir()?;
        let mut state = self.staging.state.lock();
        self.staging.check(&state)?;
        let verdict = state.change(Operation::Rename);
        if state.dirs.get(&self.name).is_some_and(|dir| dir.lock().iter().next().is_some()) {
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, self.name.clone()));
        }
        if verdict.acts() && !state.dirs.rename(&self.staging.dir, &self.name) {
            return Err(not_found(&self.staging.dir));
        }
        drop(state);
        verdict.answer()?;
        self.published = true;
        self.sync_parent()
    }
}

impl Drop for SimCopy {
    fn drop(&mut self) {
        if !self.published {
            // What cannot be removed now is removed by the next copy to the same place.
            drop(self.discard());
        }
    }
}
