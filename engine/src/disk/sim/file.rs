//! Files of the simulated disk: what is durable, what readers see, and the writes in between.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::DiskFile;
use super::Operation;
use super::plan::{Left, Lie, Verdict};
use super::state::State;

/// A file, whatever names it has.
pub(super) type FileRef = Arc<Mutex<SimFile>>;

/// An open file.
pub(super) struct Handle {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) life: u64,
    pub(super) file: FileRef,
}

/// A file's content.
#[derive(Clone, Default)]
pub(super) struct SimFile {
    pub(super) durable: Vec<u8>,
    pub(super) live: Vec<u8>,
    pub(super) pending: Vec<Pending>,
}

/// A change that a crash may lose.
#[derive(Clone)]
pub(super) enum Pending {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

impl DiskFile for Handle {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        state.look(Operation::Read)?;
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
        let data = &data[..verdict.share(data.len())];
        let len = self.file.lock().live.len() as u64;
        let growth = if data.is_empty() { 0 } else { (offset + data.len() as u64).saturating_sub(len) };
        let space = state.take_space(growth);
        // A disk that fills up takes what still fits.
        let room = if space.is_ok() { data.len() as u64 } else { (len + state.space_left()).saturating_sub(offset) };
        self.file.lock().write(offset, &data[..room.min(data.len() as u64) as usize]);
        verdict.answer().and(space)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        let verdict = state.change(Operation::Sync);
        if matches!(verdict, Verdict::Failed(..)) {
            state.count_failed(&self.file);
        }
        let mut file = self.file.lock();
        if matches!(verdict, Verdict::Skipped) {
            let written = file.pending.iter().any(|change| matches!(change, Pending::Write(..)));
            let kind = if written { "" } else { " (length)" };
            state.skipped = state.names_of(&self.file).iter().map(|name| format!("{name}{kind}")).collect();
        }
        match &verdict {
            Verdict::Done if state.lies.contains(&Lie::StaleOverwrites) => file.sync_extension(),
            Verdict::Done | Verdict::Failed(_, Left::All) => file.sync(),
            Verdict::Failed(_, Left::Half) => file.sync_half(),
            Verdict::Failed(_, Left::Nothing) | Verdict::Skipped | Verdict::Gone(_) => {}
        }
        if matches!(verdict, Verdict::Done | Verdict::Failed(..)) {
            file.pending.clear();
        }
        verdict.answer()
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        state.look(Operation::Len)?;
        Ok(self.file.lock().live.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        let verdict = state.change(Operation::Write);
        if verdict.acts() {
            let growth = len.saturating_sub(self.file.lock().live.len() as u64);
            state.take_space(growth)?;
            self.file.lock().change(Pending::SetLen(len));
        }
        verdict.answer()
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
        state.look(Operation::Links)?;
        Ok(state.names_of(&self.file).len() as u64)
    }
}

impl Handle {
    /// Makes the file longer, piece by piece as a disk does: what fails half way, or finds no more space, leaves it in between.
    fn extend(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        let have = self.file.lock().live.len() as u64;
        if have >= len {
            return Ok(());
        }
        let verdict = state.change(Operation::Write);
        let growth = verdict.share((len - have) as usize) as u64;
        let space = state.take_space(growth);
        let growth = if space.is_ok() { growth } else { growth.min(state.space_left()) };
        if growth > 0 {
            self.file.lock().change(Pending::SetLen(have + growth));
        }
        verdict.answer().and(space)
    }
}

impl Pending {
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Pending::Write(offset, data) => write_into(content, *offset as usize, data),
            Pending::SetLen(len) => content.resize(*len as usize, 0),
        }
    }

    /// The length of a file of `len` bytes after this change.
    pub(super) fn len_after(&self, len: u64) -> u64 {
        match self {
            Pending::Write(offset, data) => len.max(offset + data.len() as u64),
            Pending::SetLen(len) => *len,
        }
    }
}

impl SimFile {
    /// A file whose content is durable.
    pub(super) fn durable(content: Vec<u8>) -> SimFile {
        SimFile { durable: content.clone(), live: content, pending: Vec::new() }
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        if !data.is_empty() {
            self.change(Pending::Write(offset, data.to_vec()));
        }
    }

    /// Shows a change, which is not durable yet.
    fn change(&mut self, change: Pending) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    /// Makes what is pending durable.
    fn sync(&mut self) {
        self.pending.iter().for_each(|change| change.apply(&mut self.durable));
    }

    /// Makes durable what is pending beyond what the file had.
    fn sync_extension(&mut self) {
        let len = self.durable.len();
        let old = self.durable.clone();
        self.sync();
        let kept = len.min(self.durable.len());
        self.durable[..kept].copy_from_slice(&old[..kept]);
    }
}

pub(super) fn write_into(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let end = offset + data.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(data);
}
