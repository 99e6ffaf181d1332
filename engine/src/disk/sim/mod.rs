//! A disk in memory that loses what was not synced.
//!
//! Each file has what is durable, what readers see, and the writes in between. A [`SimDisk::crash`] decides, from a
//! seed, what of the pending writes reached the platter: nothing, everything, a prefix whose last write is torn at a
//! byte, or any mixture of 512-byte sectors, each at any of the versions written to it. Creations, renames and
//! removals that no `sync_dir` followed may be lost likewise. Nothing here draws randomness but from that seed,
//! so a simulation replays exactly.
//!
//! There may be more directories than the one that the disk is: what [`Disk::begin_copy`] makes stands beside it
//! ([`SimDisk::beside`]), shares its space and its fate, and holds second names of the same files.
//!
//! Failures are planned: the n-th call of a kind fails, the space runs out, the power goes after so many changes. A failed
//! sync behaves as Linux does: the pages count as clean, are still read, and are gone after a crash, whatever is
//! synced later. With [`SimDisk::set_lying_sync`] a sync answers well and does nothing, so that a checker can prove that it
//! notices.
//!
//! A file handle and a [`SimDisk::session`] belong to the life in which they were opened: after a crash they only fail.

mod copy;
mod names;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use self::copy::SimCopy;
use self::names::Names;
use super::{Disk, DiskCopy, DiskFile, check_name};

/// What a disk writes in one piece.
const SECTOR: u64 = 512;

/// The calls that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// `read_at`.
    Read,
    /// `write_at`, `set_len` and `prefill`; half of a failed write is there.
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
    /// `link` of a copy.
    Link,
}

/// A simulated disk. Used as a [`Disk`] directly it outlives crashes; a simulated node is better given a
/// [`SimDisk::session`].
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    dir: String,
}

/// A directory as one life of a node sees it.
#[derive(Clone)]
struct Session {
    state: Arc<Mutex<State>>,
    /// `None` follows the disk through crashes.
    life: Option<u64>,
    dir: String,
}

struct Handle {
    state: Arc<Mutex<State>>,
    life: u64,
    file: FileRef,
}

type FileRef = Arc<Mutex<SimFile>>;
type DirRef = Arc<Mutex<Names<FileRef>>>;

/// The directory that a new disk is.
const MAIN: &str = "main";

#[derive(Default)]
struct State {
    /// Grows with every crash; handles of an earlier life fail.
    life: u64,
    dirs: Names<DirRef>,
    /// Calls of a kind left until one fails, and how.
    failures: BTreeMap<Operation, (u64, io::ErrorKind)>,
    capacity: Option<u64>,
    lying: bool,
    /// Changes made in all, and after how many the power goes.
    changes: u64,
    halt_at: Option<u64>,
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
        let mut state = State::default();
        state.dirs.plant(MAIN, DirRef::default());
        Arc::new(SimDisk { state: Arc::new(Mutex::new(state)), dir: MAIN.to_owned() })
    }

    /// The disk for one life of a node: after the next crash every call on it, and on files opened through it, fails.
    pub fn session(&self) -> Arc<dyn Disk> {
        let life = self.state.lock().life;
        Arc::new(Session { life: Some(life), ..self.always() })
    }

    /// The directory `name` beside this one, which shares its space, its planned failures and its crashes; `None` where there is
    /// no such directory.
    pub fn beside(&self, name: &str) -> Option<Arc<SimDisk>> {
        let there = self.state.lock().dirs.get(name).is_some();
        there.then(|| Arc::new(SimDisk { state: self.state.clone(), dir: name.to_owned() }))
    }

    /// A second disk with the same content, durable and pending, and no planned failures.
    pub fn fork(&self) -> Arc<SimDisk> {
        let state = self.state.lock();
        let mut files: Vec<[FileRef; 2]> = Vec::new();
        let mut dirs: Vec<[DirRef; 2]> = Vec::new();
        let dirs =
            state.dirs.copy(|dir| twin(dir, &mut dirs, |dir| dir.copy(|file| twin(file, &mut files, SimFile::clone))));
        let state = State { dirs, ..State::default() };
        Arc::new(SimDisk { state: Arc::new(Mutex::new(state)), dir: self.dir.clone() })
    }

    /// Power loss: what was pending is kept, lost or torn as `seed` decides, everything open fails from now on, and planned
    /// failures other than the capacity and the lying are forgotten.
    pub fn crash(&self, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut state = self.state.lock();
        state.life += 1;
        state.failures.clear();
        state.halt_at = None;
        let crash_dir = |dir: &DirRef, rng: &mut StdRng| {
            let mut names = dir.lock();
            names.crash(rng);
            names.iter().for_each(|(_, file)| file.lock().crash(rng));
        };
        if let Some(main) = state.dirs.get(MAIN) {
            crash_dir(main, &mut rng);
        }
        if state.dirs.is_pending() {
            state.dirs.crash(&mut rng);
        }
        let others = state.dirs.iter().filter(|(name, _)| *name != MAIN);
        others.for_each(|(_, dir)| crash_dir(dir, &mut rng));
    }

    /// Makes the `nth` call of `operation` from now fail with `kind`; 1 is the next one. `StorageFull` is ENOSPC.
    pub fn fail_nth(&self, operation: Operation, nth: u64, kind: io::ErrorKind) {
        self.state.lock().failures.insert(operation, (nth.max(1), kind));
    }

    /// How many planned failures have not come to pass.
    pub fn failures_left(&self) -> usize {
        self.state.lock().failures.len()
    }

    /// Bytes that all files together may have; `None` is no bound. What would exceed it fails with `StorageFull`, and a write
    /// leaves what still fitted.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// Whether syncs, of files and of the directory, answer well without doing anything.
    pub fn set_lying_sync(&self, lying: bool) {
        self.state.lock().lying = lying;
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

    /// Bytes of all files of all directories as a reader sees them.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// The content of a file as a reader sees it.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let dir = self.state.lock().dir(&self.dir).ok()?;
        let names = dir.lock();
        names.get(name).map(|file| file.lock().live.clone())
    }

    /// Puts a file there, or replaces one, durably: a hand that damages or restores.
    pub fn set_content(&self, name: &str, content: Vec<u8>) {
        let file = SimFile { durable: content.clone(), live: content, pending: Vec::new() };
        if let Ok(dir) = self.state.lock().dir(&self.dir) {
            dir.lock().plant(name, Arc::new(Mutex::new(file)));
        }
    }

    /// Removes a file durably, as a careless hand would.
    pub fn lose(&self, name: &str) {
        if let Ok(dir) = self.state.lock().dir(&self.dir) {
            dir.lock().lose(name);
        }
    }

    fn always(&self) -> Session {
        Session { state: self.state.clone(), life: None, dir: self.dir.clone() }
    }
}

/// The copy of `what`: the same one each time it is asked for.
fn twin<T>(what: &Arc<Mutex<T>>, twins: &mut Vec<[Arc<Mutex<T>>; 2]>, copy: impl FnOnce(&T) -> T) -> Arc<Mutex<T>> {
    if let Some([_, twin]) = twins.iter().find(|[original, _]| Arc::ptr_eq(original, what)) {
        return twin.clone();
    }
    let twin = Arc::new(Mutex::new(copy(&what.lock())));
    twins.push([what.clone(), twin.clone()]);
    twin
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
    fn begin_copy(&self, path: &Path) -> io::Result<Box<dyn DiskCopy>> {
        self.always().begin_copy(path)
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
        let state = self.state.lock();
        self.check(&state)?;
        let dir = state.dir(&self.dir)?;
        let file = dir.lock().get(name).cloned().ok_or_else(|| not_found(name))?;
        Ok(self.handle(state.life, &file))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        check_name(name)?;
        let mut state = self.state.lock();
        self.check(&state)?;
        state.change(Operation::Create)?;
        let dir = state.dir(&self.dir)?;
        let mut names = dir.lock();
        if names.get(name).is_some() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, name.to_owned()));
        }
        let file = FileRef::default();
        names.create(name, file.clone());
        Ok(self.handle(state.life, &file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut state = self.state.lock();
        self.check(&state)?;
        state.change(Operation::Rename)?;
        let renamed = state.dir(&self.dir)?.lock().rename(from, to);
        if renamed { Ok(()) } else { Err(not_found(from)) }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        let mut state = self.state.lock();
        self.check(&state)?;
        state.change(Operation::Remove)?;
        let removed = state.dir(&self.dir)?.lock().remove(name);
        if removed { Ok(()) } else { Err(not_found(name)) }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        self.check(&state)?;
        let dir = state.dir(&self.dir)?;
        let names = dir.lock();
        Ok(names.iter().map(|(name, _)| name.clone()).collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        self.check(&state)?;
        state.change(Operation::SyncDir)?;
        let dir = state.dir(&self.dir)?;
        if !state.lying {
            dir.lock().sync();
        }
        Ok(())
    }

    fn begin_copy(&self, path: &Path) -> io::Result<Box<dyn DiskCopy>> {
        Ok(Box::new(SimCopy::begin(self, path)?))
    }
}

impl DiskFile for Handle {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        state.planned(Operation::Read)?;
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
        let mut file = self.file.lock();
        let growth = (offset + data.len() as u64).saturating_sub(file.live.len() as u64);
        if let Err(error) = state.change(Operation::Write) {
            if !state.halted() {
                file.write(offset, &data[..data.len() / 2]);
            }
            return Err(error);
        }
        let len = file.live.len() as u64;
        drop(file);
        let outcome = state.take_space(growth);
        // A disk that fills up takes what still fits.
        let room = if outcome.is_ok() { data.len() as u64 } else { (len + state.space_left()).saturating_sub(offset) };
        self.file.lock().write(offset, &data[..room.min(data.len() as u64) as usize]);
        outcome
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        let outcome = state.change(Operation::Sync);
        let mut file = self.file.lock();
        if outcome.is_err() && !state.halted() {
            file.pending.clear();
        } else if outcome.is_ok() && !state.lying {
            for pending in std::mem::take(&mut file.pending) {
                pending.apply(&mut file.durable);
            }
        }
        outcome
    }

    fn len(&self) -> io::Result<u64> {
        self.state.lock().check_life(self.life)?;
        Ok(self.file.lock().live.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.check_life(self.life)?;
        state.change(Operation::Write)?;
        let growth = len.saturating_sub(self.file.lock().live.len() as u64);
        state.take_space(growth)?;
        let mut file = self.file.lock();
        let change = Pending::SetLen(len);
        change.apply(&mut file.live);
        file.pending.push(change);
        Ok(())
    }

    fn prefill(&self, len: u64) -> io::Result<()> {
        if self.len()? < len { self.set_len(len) } else { Ok(()) }
    }

    fn links(&self) -> io::Result<u64> {
        let state = self.state.lock();
        state.check_life(self.life)?;
        let files = state.files();
        Ok(files.iter().filter(|file| Arc::ptr_eq(file, &self.file)).count() as u64)
    }
}

impl State {
    fn check_life(&self, life: u64) -> io::Result<()> {
        if life == self.life { Ok(()) } else { Err(io::Error::other("opened before the crash of this simulated disk")) }
    }

    fn halted(&self) -> bool {
        self.halt_at.is_some_and(|at| self.changes > at)
    }

    /// Counts a call that changes something, and fails it where that is planned.
    fn change(&mut self, operation: Operation) -> io::Result<()> {
        self.changes += 1;
        if self.halted() {
            return Err(io::Error::other("the simulated power is gone"));
        }
        self.planned(operation)
    }

    fn planned(&mut self, operation: Operation) -> io::Result<()> {
        let Some((left, kind)) = self.failures.get_mut(&operation) else { return Ok(()) };
        *left -= 1;
        if *left > 0 {
            return Ok(());
        }
        let kind = *kind;
        self.failures.remove(&operation);
        Err(io::Error::new(kind, format!("planned failure of {operation:?}")))
    }

    fn dir(&self, name: &str) -> io::Result<DirRef> {
        self.dirs.get(name).cloned().ok_or_else(|| not_found(name))
    }

    /// The file of each name there is.
    fn files(&self) -> Vec<FileRef> {
        let mut files = Vec::new();
        for (_, dir) in self.dirs.iter() {
            files.extend(dir.lock().iter().map(|(_, file)| file.clone()));
        }
        files
    }

    fn used(&self) -> u64 {
        let mut files = self.files();
        files.sort_by_key(Arc::as_ptr);
        files.dedup_by(|a, b| Arc::ptr_eq(a, b));
        files.iter().map(|file| file.lock().live.len() as u64).sum()
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

    fn crash(&mut self, rng: &mut StdRng) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            match rng.random_range(0..4) {
                0 => {}
                1 => pending.iter().for_each(|change| change.apply(&mut self.durable)),
                2 => self.crash_to_prefix(&pending, rng),
                _ => self.crash_to_sectors(&pending, rng),
            }
        }
        self.live = self.durable.clone();
    }

    /// Keeps a prefix of the changes, and a prefix of the bytes of the one after it.
    fn crash_to_prefix(&mut self, pending: &[Pending], rng: &mut StdRng) {
        let kept = rng.random_range(0..pending.len());
        pending[..kept].iter().for_each(|change| change.apply(&mut self.durable));
        if let Pending::Write(offset, data) = &pending[kept] {
            let bytes = rng.random_range(0..=data.len());
            write_into(&mut self.durable, *offset as usize, &data[..bytes]);
        }
    }

    /// Keeps of each sector one of the versions written to it, and of the length one of those it had.
    fn crash_to_sectors(&mut self, pending: &[Pending], rng: &mut StdRng) {
        let mut versions: BTreeMap<u64, Vec<(u64, &[u8])>> = BTreeMap::new();
        let mut lengths = vec![self.durable.len() as u64];
        for change in pending {
            lengths.push(change.len_after(lengths[lengths.len() - 1]));
            let Pending::Write(offset, data) = change else { continue };
            let (mut at, mut rest) = (*offset, data.as_slice());
            while !rest.is_empty() {
                let step = (SECTOR - at % SECTOR).min(rest.len() as u64);
                let (piece, after) = rest.split_at(step as usize);
                versions.entry(at / SECTOR).or_default().push((at, piece));
                (at, rest) = (at + step, after);
            }
        }
        for writes in versions.values() {
            let kept = rng.random_range(0..=writes.len());
            for (offset, piece) in &writes[..kept] {
                write_into(&mut self.durable, *offset as usize, piece);
            }
        }
        // The inode is written by itself: any of the lengths may be the durable one.
        let len = lengths[rng.random_range(0..lengths.len())];
        self.durable.resize(len as usize, 0);
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
