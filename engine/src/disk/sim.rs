//! A disk in memory that loses what was not synced.
//!
//! Each file has what is durable, what readers see, and the writes in between. A [`SimDisk::crash`] decides, from a
//! seed, what of the pending writes reached the platter: nothing, everything, a prefix whose last write is torn at a
//! byte, or any mixture of 512-byte sectors, each at any of the versions written to it. Creations, renames and
//! removals that no `sync_dir` followed may be lost likewise. Nothing here draws randomness but from that seed,
//! so a simulation replays exactly.
//!
//! The choice may also be the caller's ([`SimDisk::crash_chosen`]), who can so go through every crash that is possible.
//!
//! Failures are planned: the n-th call of a kind fails, the space runs out, the power goes after so many changes. A failed
//! sync behaves as Linux does: the pages count as clean, are still read until memory is short
//! ([`SimDisk::drop_clean_pages`]), and are gone after a crash, whatever is synced later. With a [`Lie`], or with
//! [`SimDisk::skip_nth`], the disk answers well and does not do what it says, so that a checker can prove that it notices.
//!
//! A file handle and a [`SimDisk::session`] belong to the life in which they were opened: after a crash they only fail.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::StdRng;

use self::crash::{Fate, crash_names};
use self::plan::{Plan, Verdict};
use super::{Disk, DiskFile, check_name};

mod crash;
mod plan;

pub use self::plan::{Left, Lie};

/// The calls that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// `open`.
    Open,
    /// `list`.
    List,
    /// `len`.
    Len,
    /// `read_at`.
    Read,
    /// `write_at`, `set_len` and `prefill`.
    Write,
    /// `sync` of a file.
    Sync,
    /// `create`.
    Create,
    /// `rename`.
    Rename,
    /// `remove`.
    Remove,
    /// `sync_dir`.
    SyncDir,
}

/// A simulated disk. Used as a [`Disk`] directly it outlives crashes; a simulated node is better given a
/// [`SimDisk::session`].
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// The disk as one life of a node sees it.
struct Session {
    state: Arc<Mutex<State>>,
    /// `None` follows the disk through crashes.
    life: Option<u64>,
}

struct Handle {
    state: Arc<Mutex<State>>,
    life: u64,
    file: FileRef,
}

type FileRef = Arc<Mutex<SimFile>>;

#[derive(Default)]
struct State {
    /// Grows with every crash; handles of an earlier life fail.
    life: u64,
    /// What a reader of the directory sees.
    names: BTreeMap<String, FileRef>,
    /// What a crash leaves of the directory if no pending change survives.
    durable_names: BTreeMap<String, FileRef>,
    pending_names: Vec<NameChange>,
    /// Calls of a kind left until one does not do what it should, and what it does.
    plans: BTreeMap<Operation, (u64, Plan)>,
    capacity: Option<u64>,
    lies: BTreeSet<Lie>,
    /// Syncs, of files and of the directory, that failed as planned.
    failed_syncs: u64,
    /// What the last sync that was skipped as planned was to make durable.
    skipped: Vec<String>,
    /// Calls of each kind made in all.
    calls: BTreeMap<Operation, u64>,
    /// Changes made in all, and after how many the power goes.
    changes: u64,
    halt_at: Option<u64>,
}

enum NameChange {
    Create(String, FileRef),
    Rename(String, String),
    Remove(String),
}

#[derive(Clone, Default)]
struct SimFile {
    durable: Vec<u8>,
    live: Vec<u8>,
    pending: Vec<Pending>,
}

#[derive(Clone)]
enum Pending {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Arc<SimDisk> {
        Arc::new(SimDisk { state: Arc::default() })
    }

    /// The disk for one life of a node: after the next crash every call on it, and on files opened through it, fails.
    pub fn session(&self) -> Arc<dyn Disk> {
        let life = self.state.lock().life;
        Arc::new(Session { state: self.state.clone(), life: Some(life) })
    }

    /// A second disk with the same content, durable and pending, no planned failures and no lies.
    pub fn fork(&self) -> Arc<SimDisk> {
        let state = self.state.lock();
        let mut copies: Vec<(FileRef, FileRef)> = Vec::new();
        let mut copy = |file: &FileRef| {
            if let Some((_, twin)) = copies.iter().find(|(original, _)| Arc::ptr_eq(original, file)) {
                return twin.clone();
            }
            let twin = Arc::new(Mutex::new(file.lock().clone()));
            copies.push((file.clone(), twin.clone()));
            twin
        };
        let names = state.names.iter().map(|(name, file)| (name.clone(), copy(file))).collect();
        let durable_names = state.durable_names.iter().map(|(name, file)| (name.clone(), copy(file))).collect();
        let pending_names = state
            .pending_names
            .iter()
            .map(|change| match change {
                NameChange::Create(name, file) => NameChange::Create(name.clone(), copy(file)),
                NameChange::Rename(from, to) => NameChange::Rename(from.clone(), to.clone()),
                NameChange::Remove(name) => NameChange::Remove(name.clone()),
            })
            .collect();
        let state = State { names, durable_names, pending_names, ..State::default() };
        Arc::new(SimDisk { state: Arc::new(Mutex::new(state)) })
    }

    /// Power loss: what was pending is kept, lost or torn as `seed` decides, everything open fails from now on, and planned
    /// failures other than the capacity and the lies are forgotten.
    pub fn crash(&self, seed: u64) {
        self.crash_to(Fate::Drawn(Box::new(StdRng::seed_from_u64(seed))));
    }

    /// The same crash, with every choice made by `choose`: given `n`, at least 1, it says which of `0..n`. All sequences of
    /// answers are all crashes that are possible, some more than once.
    pub fn crash_chosen(&self, choose: &mut dyn FnMut(usize) -> usize) {
        self.crash_to(Fate::Chosen(choose));
    }

    /// No fewer than the sequences of answers that [`SimDisk::crash_chosen`] can be given now.
    pub fn possible_crashes(&self) -> u64 {
        let state = self.state.lock();
        let changes = state.pending_names.len() as u64;
        let names = 1u64.checked_shl(changes as u32).map_or(u64::MAX, |subsets| subsets.saturating_add(changes + 1));
        // A file that a pending change takes away may come back.
        let all = state.names.values().chain(state.durable_names.values());
        let mut files: Vec<&FileRef> = all.collect();
        files.sort_by_key(|file| Arc::as_ptr(file));
        files.dedup_by_key(|file| Arc::as_ptr(file));
        files.into_iter().fold(names, |product, file| product.saturating_mul(file.lock().crashes()))
    }

    fn crash_to(&self, mut fate: Fate<'_>) {
        self.kill();
        let mut state = self.state.lock();
        let changes = std::mem::take(&mut state.pending_names);
        let mut names = std::mem::take(&mut state.durable_names);
        let keeps_old = state.lies.contains(&Lie::OldNames);
        crash_names(&mut names, changes, keeps_old, &mut fate);
        for file in names.values() {
            file.lock().crash(&mut fate);
        }
        state.names = names.clone();
        state.durable_names = names;
    }

    /// The process ends and the machine goes on: everything open fails from now on, nothing is lost, and planned failures
    /// other than the capacity and the lies are forgotten.
    pub fn kill(&self) {
        let mut state = self.state.lock();
        state.life += 1;
        state.plans.clear();
        state.halt_at = None;
        state.failed_syncs = 0;
    }

    /// Memory is short: pages that count as clean are dropped and read from the disk again. So what a failed sync did not
    /// write shows its old content; lengths stay.
    pub fn drop_clean_pages(&self) {
        for file in self.state.lock().names.values() {
            let mut file = file.lock();
            let mut content = file.durable.clone();
            file.pending.iter().for_each(|change| change.apply(&mut content));
            content.resize(file.live.len(), 0);
            file.live = content;
        }
    }

    /// Makes the `nth` call of `operation` from now fail with `kind`; 1 is the next one. `StorageFull` is ENOSPC. Half of a
    /// failed write is there, nothing of any other call.
    pub fn fail_nth(&self, operation: Operation, nth: u64, kind: io::ErrorKind) {
        let left = if operation == Operation::Write { Left::Half } else { Left::Nothing };
        self.fail_nth_leaving(operation, nth, kind, left);
    }

    /// The same, saying what is done of it all the same.
    pub fn fail_nth_leaving(&self, operation: Operation, nth: u64, kind: io::ErrorKind, left: Left) {
        self.state.lock().plans.insert(operation, (nth.max(1), Plan::Fail(kind, left)));
    }

    /// Makes the `nth` call of `operation` that changes something answer well and do nothing.
    pub fn skip_nth(&self, operation: Operation, nth: u64) {
        self.state.lock().plans.insert(operation, (nth.max(1), Plan::Skip));
    }

    /// What the last sync that was skipped as planned was to make durable: the name of the file, with `(length)` where no byte of
    /// it was written, or the names that had changed.
    pub fn skipped(&self) -> Vec<String> {
        self.state.lock().skipped.clone()
    }

    /// How many planned failures have not come to pass.
    pub fn failures_left(&self) -> usize {
        self.state.lock().plans.len()
    }

    /// How many syncs, of files and of the directory, failed as planned since the disk was made, or was lost or left last.
    pub fn failed_syncs(&self) -> u64 {
        self.state.lock().failed_syncs
    }

    /// Bytes that all files together may have; `None` is no bound. What would exceed it fails with `StorageFull`, and a write
    /// leaves what still fitted.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// Whether syncs, of files and of the directory, answer well without doing anything.
    pub fn set_lying_sync(&self, lying: bool) {
        self.set_lies(if lying { &[Lie::FileSync, Lie::DirSync] } else { &[] });
    }

    /// How the disk breaks its word from now on; an empty list makes it honest.
    pub fn set_lies(&self, lies: &[Lie]) {
        self.state.lock().lies = lies.iter().copied().collect();
    }

    /// Lets `changes` more calls that change something succeed, then none until the next crash.
    pub fn halt_after(&self, changes: u64) {
        let mut state = self.state.lock();
        state.halt_at = Some(state.changes + changes);
    }

    /// How many calls that change something were made so far: writes, syncs, creations, renames, removals.
    pub fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// How many calls of a kind were made so far, failed ones included.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.state.lock().calls.get(&operation).copied().unwrap_or_default()
    }

    /// Bytes of all files as a reader sees them.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// The content of a file as a reader sees it.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.state.lock().names.get(name).map(|file| file.lock().live.clone())
    }

    /// Puts a file there, or replaces one, durably: a hand that damages or restores.
    pub fn set_content(&self, name: &str, content: Vec<u8>) {
        let mut state = self.state.lock();
        let file = SimFile { durable: content.clone(), live: content, pending: Vec::new() };
        let file = Arc::new(Mutex::new(file));
        state.names.insert(name.to_owned(), file.clone());
        state.durable_names.insert(name.to_owned(), file);
    }

    /// Removes a file durably, as a careless hand would.
    pub fn lose(&self, name: &str) {
        let mut state = self.state.lock();
        state.names.remove(name);
        state.durable_names.remove(name);
    }

    fn always(&self) -> Session {
        Session { state: self.state.clone(), life: None }
    }
}

impl Disk for SimDisk {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.always().open(name)
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.always().create(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.always().rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.always().remove(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.always().list()
    }
    fn sync_dir(&self) -> io::Result<()> {
        self.always().sync_dir()
    }
}

impl Session {
    fn handle(&self, life: u64, file: &FileRef) -> Arc<dyn DiskFile> {
        Arc::new(Handle { state: self.state.clone(), life, file: file.clone() })
    }

    fn check(&self, state: &State) -> io::Result<()> {
        state.check_life(self.life.unwrap_or(state.life))
    }
}

impl Disk for Session {
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        check_name(name)?;
        let mut state = self.state.lock();
        self.check(&state)?;
        state.look(Operation::Open)?;
        let file = state.names.get(name).ok_or_else(|| not_found(name))?;
        Ok(self.handle(state.life, file))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        check_name(name)?;
        let mut state = self.state.lock();
        self.check(&state)?;
        let verdict = state.change(Operation::Create);
        if state.names.contains_key(name) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, name.to_owned()));
        }
        let file = FileRef::default();
        if verdict.acts() {
            state.names.insert(name.to_owned(), file.clone());
            state.pending_names.push(NameChange::Create(name.to_owned(), file.clone()));
        }
        verdict.answer().map(|()| self.handle(state.life, &file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut state = self.state.lock();
        self.check(&state)?;
        let verdict = state.change(Operation::Rename);
        if verdict.acts() {
            let file = state.names.remove(from).ok_or_else(|| not_found(from))?;
            state.names.insert(to.to_owned(), file);
            state.pending_names.push(NameChange::Rename(from.to_owned(), to.to_owned()));
        }
        verdict.answer()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        let mut state = self.state.lock();
        self.check(&state)?;
        let verdict = state.change(Operation::Remove);
        if verdict.acts() {
            state.names.remove(name).ok_or_else(|| not_found(name))?;
            state.pending_names.push(NameChange::Remove(name.to_owned()));
        }
        verdict.answer()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state.lock();
        self.check(&state)?;
        state.look(Operation::List)?;
        Ok(state.names.keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        self.check(&state)?;
        let verdict = state.change(Operation::SyncDir);
        if matches!(verdict, Verdict::Skipped) {
            state.skipped = state.pending_names.iter().map(|change| change.name().to_owned()).collect();
        }
        let keeps_old = state.lies.contains(&Lie::OldNames);
        let count = verdict.share(state.pending_names.len());
        let changes: Vec<NameChange> = state.pending_names.drain(..count).collect();
        for change in changes {
            change.apply(&mut state.durable_names, keeps_old);
        }
        verdict.answer()
    }
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
        let mut file = self.file.lock();
        if matches!(verdict, Verdict::Skipped) {
            let written = file.pending.iter().any(|change| matches!(change, Pending::Write(..)));
            let own = state.names.iter().filter(|(_, file)| Arc::ptr_eq(file, &self.file));
            let kind = if written { "" } else { " (length)" };
            state.skipped = own.map(|(name, _)| format!("{name}{kind}")).collect();
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
            let mut file = self.file.lock();
            let change = Pending::SetLen(len);
            change.apply(&mut file.live);
            file.pending.push(change);
        }
        verdict.answer()
    }

    fn prefill(&self, len: u64) -> io::Result<()> {
        if self.len()? < len { self.set_len(len) } else { Ok(()) }
    }
}

impl State {
    fn check_life(&self, life: u64) -> io::Result<()> {
        if life == self.life { Ok(()) } else { Err(io::Error::other("opened before the crash of this simulated disk")) }
    }

    /// A call that changes nothing.
    fn look(&mut self, operation: Operation) -> io::Result<()> {
        self.planned(operation).answer()
    }

    /// Counts a call that changes something, and says what becomes of it.
    fn change(&mut self, operation: Operation) -> Verdict {
        self.changes += 1;
        if self.halt_at.is_some_and(|at| self.changes > at) {
            return Verdict::Gone(io::Error::other("the simulated power is gone"));
        }
        let verdict = self.planned(operation);
        let lie = match operation {
            Operation::Sync => Lie::FileSync,
            Operation::SyncDir => Lie::DirSync,
            _ => return verdict,
        };
        match verdict {
            Verdict::Done if self.lies.contains(&lie) => return Verdict::Skipped,
            Verdict::Failed(..) => self.failed_syncs += 1,
            _ => {}
        }
        verdict
    }

    fn planned(&mut self, operation: Operation) -> Verdict {
        *self.calls.entry(operation).or_default() += 1;
        let Some((left, plan)) = self.plans.get_mut(&operation) else { return Verdict::Done };
        *left -= 1;
        if *left > 0 {
            return Verdict::Done;
        }
        let plan = *plan;
        self.plans.remove(&operation);
        match plan {
            Plan::Skip => Verdict::Skipped,
            Plan::Fail(kind, left) => {
                Verdict::Failed(io::Error::new(kind, format!("planned failure of {operation:?}")), left)
            }
        }
    }

    fn used(&self) -> u64 {
        self.names.values().map(|file| file.lock().live.len() as u64).sum()
    }

    fn space_left(&self) -> u64 {
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used()))
    }

    fn take_space(&self, growth: u64) -> io::Result<()> {
        match self.capacity {
            Some(capacity) if growth > 0 && self.used() + growth > capacity => {
                Err(io::Error::new(io::ErrorKind::StorageFull, "the simulated disk is full"))
            }
            _ => Ok(()),
        }
    }
}

impl NameChange {
    /// The name that is there after the change, or is not any more.
    fn name(&self) -> &str {
        match self {
            NameChange::Create(name, _) | NameChange::Rename(_, name) | NameChange::Remove(name) => name,
        }
    }

    /// Applies the change where it still makes sense: what it builds on may be lost. `keeps_old` leaves the names that should go.
    fn apply(self, names: &mut BTreeMap<String, FileRef>, keeps_old: bool) {
        let mut take = |name: &str| if keeps_old { names.get(name).cloned() } else { names.remove(name) };
        match self {
            NameChange::Create(name, file) => {
                names.insert(name, file);
            }
            NameChange::Rename(from, to) => {
                if let Some(file) = take(&from) {
                    names.insert(to, file);
                }
            }
            NameChange::Remove(name) => drop(take(&name)),
        }
    }
}

impl Pending {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Pending::Write(offset, data) => write_into(content, *offset as usize, data),
            Pending::SetLen(len) => content.resize(*len as usize, 0),
        }
    }

    /// The length of a file of `len` bytes after this change.
    fn len_after(&self, len: u64) -> u64 {
        match self {
            Pending::Write(offset, data) => len.max(offset + data.len() as u64),
            Pending::SetLen(len) => *len,
        }
    }
}

impl SimFile {
    fn write(&mut self, offset: u64, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        write_into(&mut self.live, offset as usize, data);
        self.pending.push(Pending::Write(offset, data.to_vec()));
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

fn write_into(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let end = offset + data.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(data);
}

fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, name.to_owned())
}
