//! The calls on a simulated disk: [`Session`] is its [`Disk`], [`Handle`] its [`DiskFile`].
//!
//! A session belongs to one life of a node, or to the disk itself; then it survives crashes. Each call asks [`State`]
//! for its [`Verdict`] and applies as much as that says.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::{Disk, DiskFile, check_name};
use super::content::{FileRef, Pending};
use super::plan::{Applied, Lie, Operation, Verdict};
use super::state::State;

/// The disk as one life of a node sees it.
pub(super) struct Session {
    pub(super) state: Arc<Mutex<State>>,
    /// `None` survives crashes.
    pub(super) life: Option<u64>,
}

/// An open file. It belongs to the life in which it was opened.
struct Handle {
    state: Arc<Mutex<State>>,
    life: u64,
    file: FileRef,
}

impl Session {
    fn handle(&self, life: u64, file: &FileRef) -> Arc<dyn DiskFile> {
        Arc::new(Handle { state: self.state.clone(), life, file: file.clone() })
    }

    fn check_life(&self, state: &State) -> io::Result<()> {
        state.check_life(self.life.unwrap_or(state.life))
    }
}

impl Disk for Session {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        check_name(name)?;
        let mut state = self.state.lock();
        self.check_life(&state)?;
        state.inspect(Operation::Open)?;
        let file = state.names.get(name).cloned().ok_or_else(|| not_found(name))?;
        Ok(self.handle(state.life, &file))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        check_name(name)?;
        let mut state = self.state.lock();
        self.check_life(&state)?;
        let verdict = state.change(Operation::Create);
        if state.names.get(name).is_some() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, name.to_owned()));
        }
        let file = FileRef::default();
        if verdict.takes_effect() {
            state.names.create(name, file.clone());
        }
        verdict.result().map(|()| self.handle(state.life, &file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut state = self.state.lock();
        self.check_life(&state)?;
        let verdict = state.change(Operation::Rename);
        if verdict.takes_effect() && !state.names.rename(from, to) {
            return Err(not_found(from));
        }
        verdict.result()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        let mut state = self.state.lock();
        self.check_life(&state)?;
        let verdict = state.change(Operation::Remove);
        if verdict.takes_effect() && !state.names.remove(name) {
            return Err(not_found(name));
        }
        verdict.result()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state.lock();
        self.check_life(&state)?;
        state.inspect(Operation::List)?;
        Ok(state.names.iter().map(|(name, _)| name.clone()).collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        self.check_life(&state)?;
        let verdict = state.change(Operation::SyncDir);
        if matches!(verdict, Verdict::Failed(..)) {
            state.failed_syncs += 1;
        }
        if matches!(verdict, Verdict::Skipped) {
            state.skipped = state.names.changed();
        }
        let count = verdict.applied_of(state.names.pending());
        let keeps_old = state.lies.contains(&Lie::OldNames);
        state.names.sync(count, keeps_old);
        verdict.result()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.state.lock();
        self.check_life(&state)?;
        Ok(state.space_left())
    }
}

impl DiskFile for Handle {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        state.inspect(Operation::Read)?;
        let file = self.file.lock();
        let start = usize::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let end = start.checked_add(buf.len()).filter(|end| *end <= file.live.len());
        let Some(end) = end else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        buf.copy_from_slice(&file.live[start..end]);
        Ok(())
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        let verdict = state.change(Operation::Write);
        let data = &data[..verdict.applied_of(data.len())];
        let len = self.file.lock().live.len() as u64;
        let growth = if data.is_empty() { 0 } else { (offset + data.len() as u64).saturating_sub(len) };
        let space = state.take_space(growth);
        // A full disk takes the part of the write that still fits.
        let room = if space.is_ok() { data.len() as u64 } else { (len + state.space_left()).saturating_sub(offset) };
        self.file.lock().write(offset, &data[..room.min(data.len() as u64) as usize]);
        verdict.result().and(space)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        let verdict = state.change(Operation::Sync);
        if matches!(verdict, Verdict::Failed(..)) {
            state.count_failed_sync(&self.file);
        }
        let mut file = self.file.lock();
        if matches!(verdict, Verdict::Skipped) {
            let written = file.pending.iter().any(|change| matches!(change, Pending::Write(..)));
            let kind = if written { "" } else { " (length)" };
            state.skipped = state.names_of(&self.file).iter().map(|name| format!("{name}{kind}")).collect();
        }
        match &verdict {
            Verdict::Done if state.lies.contains(&Lie::StaleOverwrites) => file.sync_extension(),
            Verdict::Done | Verdict::Failed(_, Applied::All) => file.sync(),
            Verdict::Failed(_, Applied::Half) => file.sync_half(),
            Verdict::Failed(_, Applied::Nothing) | Verdict::Skipped | Verdict::PowerOff(_) => {}
        }
        if matches!(verdict, Verdict::Done | Verdict::Failed(..)) {
            file.pending.clear();
        }
        verdict.result()
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        state.inspect(Operation::Len)?;
        Ok(self.file.lock().live.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        let verdict = state.change(Operation::Write);
        if verdict.takes_effect() {
            let growth = len.saturating_sub(self.file.lock().live.len() as u64);
            state.take_space(growth)?;
            self.file.lock().change(Pending::SetLen(len));
        }
        verdict.result()
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        self.extend(len)
    }

    fn prefill(&self, len: u64) -> io::Result<()> {
        self.extend(len)
    }

    fn links(&self) -> io::Result<u64> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        state.inspect(Operation::Links)?;
        Ok(state.names_of(&self.file).len() as u64)
    }
}

impl Handle {
    /// Extends the file. A call that fails half-way, or runs out of space, leaves the file longer than before, as a
    /// disk does.
    fn extend(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        let have = self.file.lock().live.len() as u64;
        if have >= len {
            return Ok(());
        }
        let verdict = state.change(Operation::Write);
        let growth = verdict.applied_of((len - have) as usize) as u64;
        let space = state.take_space(growth);
        let growth = if space.is_ok() { growth } else { growth.min(state.space_left()) };
        if growth > 0 {
            self.file.lock().change(Pending::SetLen(have + growth));
        }
        verdict.result().and(space)
    }
}

fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, name.to_owned())
}
