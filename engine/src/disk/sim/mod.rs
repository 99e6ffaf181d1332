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
//! There may be more directories than the one that the disk is: what [`Disk::begin_copy`] makes stands beside it
//! ([`SimDisk::beside`]), shares its space and its fate, and holds second names of the same files.
//!
//! Failures are planned: the n-th call of a kind fails, the space runs out, the power goes after so many changes. A failed
//! sync behaves as Linux does: the pages count as clean, are still read until memory is short
//! ([`SimDisk::drop_clean_pages`]), and are gone after a crash, whatever is synced later. With a [`Lie`], or with
//! [`SimDisk::skip_nth`], the disk answers well and does not do what it says, so that a checker can prove that it notices.
//!
//! A file handle and a [`SimDisk::session`] belong to the life in which they were opened: after a crash they only fail.

mod copy;
mod crash;
mod file;
mod names;
mod plan;
mod session;
mod state;

use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::StdRng;

use self::crash::Fate;
use self::file::{FileRef, SimFile};
use self::plan::Plan;
use self::session::Session;
use self::state::{DirRef, State};
use super::{Disk, DiskCopy, DiskFile};

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
    /// `links`.
    Links,
    /// `write_at`, `set_len`, `reserve` and `prefill`.
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

/// The directory that a new disk is.
const MAIN: &str = "main";

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

    /// A second disk with the same content, durable and pending, no planned failures and no lies.
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
        // A directory, or a file, that a pending change takes away may come back.
        let dirs = once(state.dirs.all());
        let dir_names = if state.dirs.is_pending() { state.dirs.crashes() } else { 1 };
        let names = dirs.iter().map(|dir| dir.lock().crashes()).fold(dir_names, u64::saturating_mul);
        let files = once(dirs.iter().flat_map(|dir| dir.lock().all()).collect());
        files.iter().fold(names, |product, file| product.saturating_mul(file.lock().crashes()))
    }

    fn crash_to(&self, mut fate: Fate<'_>) {
        self.kill();
        let mut state = self.state.lock();
        let keeps_old = state.lies.contains(&Lie::OldNames);
        let crash_dir = |dir: &DirRef, fate: &mut Fate<'_>| {
            let mut names = dir.lock();
            names.crash(keeps_old, fate);
            names.iter().for_each(|(_, file)| file.lock().crash(fate));
        };
        if let Some(main) = state.dirs.get(MAIN) {
            crash_dir(main, &mut fate);
        }
        if state.dirs.is_pending() {
            state.dirs.crash(keeps_old, &mut fate);
        }
        let others = state.dirs.iter().filter(|(name, _)| *name != MAIN);
        others.for_each(|(_, dir)| crash_dir(dir, &mut fate));
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
        for file in self.state.lock().files() {
            let mut file = file.lock();
            let mut content = file.durable.clone();
            file.pending.iter().for_each(|change| change.apply(&mut content));
            content.resize(file.live.len(), 0);
            file.live = content;
        }
    }

    /// Whether the power went, as planned with [`SimDisk::halt_after`].
    pub fn is_halted(&self) -> bool {
        self.state.lock().is_halted()
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

    /// How many syncs, of files of the directory and of itself, failed as planned since the disk was made, or was lost or left last.
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
        if let Ok(dir) = self.state.lock().dir(&self.dir) {
            dir.lock().plant(name, Arc::new(Mutex::new(SimFile::durable(content))));
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

/// The same, each once.
fn once<T>(mut all: Vec<Arc<T>>) -> Vec<Arc<T>> {
    all.sort_by_key(Arc::as_ptr);
    all.dedup_by(|one, other| Arc::ptr_eq(one, other));
    all
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
    fn free_bytes(&self) -> io::Result<u64> {
        self.always().free_bytes()
    }

    fn begin_copy(&self, path: &Path) -> io::Result<Box<dyn DiskCopy>> {
        self.always().begin_copy(path)
    }
}

fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, name.to_owned())
}
