//! A disk in memory that loses unsynced data.
//!
//! Each file has durable content, the content that readers see, and the writes in between. [`SimDisk::crash`] decides
//! from a seed what of the pending writes reached the platter: nothing, everything, a prefix whose last write is torn
//! at a byte, or any mixture of 512-byte sectors, each at any of the versions written to it. It may likewise lose
//! creations, renames and removals that no `sync_dir` followed. The seed is the only source of randomness, so a
//! simulation replays exactly.
//!
//! [`SimDisk::crash_with`] lets the caller choose instead, and so enumerate every possible crash.
//!
//! Tests plan failures: the n-th call of a kind fails, the disk is full, the power goes off after a number of changes. A
//! failed sync behaves as on Linux: the pages count as clean. Readers see them until memory is short
//! ([`SimDisk::drop_clean_pages`]); a crash loses them, whatever is synced later. With a [`Lie`], or with
//! [`SimDisk::skip_nth`], the disk reports success for work that it did not do. A checker proves with it that it
//! notices.
//!
//! A file handle and a [`SimDisk::session`] belong to the life in which they were opened: after a crash they only fail.
//!
//! # Layers
//!
//! 1. `plan`, `choice`: the planned outcome of a call; the choices of a crash
//! 2. `content`: the content of a file
//! 3. `names`: the names in the directory
//! 4. `state`: the whole disk, and the outcome of each call
//! 5. `session`: the calls of `Disk` and `DiskFile`

mod choice;
mod content;
mod names;
mod plan;
mod session;
mod state;

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::StdRng;

use self::choice::Choices;
use self::content::{FileRef, SimFile};
use self::plan::Plan;
use self::session::Session;
use self::state::State;
use super::{Disk, DiskFile};

pub use self::plan::{Applied, Lie, Operation};

/// A simulated disk. Used as a [`Disk`] directly, it survives crashes. Give a simulated node a [`SimDisk::session`]
/// instead.
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Arc<SimDisk> {
        Arc::new(SimDisk { state: Arc::default() })
    }

    /// The disk for one life of a node. After the next crash every call on it, and on files opened through it, fails.
    pub fn session(&self) -> Arc<dyn Disk> {
        let life = self.state.lock().life;
        Arc::new(Session { state: self.state.clone(), life: Some(life) })
    }

    /// A second disk with the same content, durable and pending, without planned failures and lies.
    pub fn fork(&self) -> Arc<SimDisk> {
        let state = self.state.lock();
        let mut copies: Vec<[FileRef; 2]> = Vec::new();
        let names = state.names.map(|file| copy_once(file, &mut copies));
        Arc::new(SimDisk { state: Arc::new(Mutex::new(State { names, ..State::default() })) })
    }

    /// Power loss. The seed decides which pending changes are kept, lost or torn. All handles and sessions fail from
    /// now on. The disk forgets its planned failures, but not its capacity and its lies.
    pub fn crash(&self, seed: u64) {
        self.crash_by(Choices::Seeded(Box::new(StdRng::seed_from_u64(seed))));
    }

    /// A crash with every choice made by `choose`: given `n`, at least 1, it returns one of `0..n`. All sequences of
    /// answers make up all possible crashes; some sequences make the same one.
    pub fn crash_with(&self, choose: &mut dyn FnMut(usize) -> usize) {
        self.crash_by(Choices::Caller(choose));
    }

    /// An upper bound on the number of sequences of answers that [`SimDisk::crash_with`] can be given now.
    pub fn possible_crashes(&self) -> u64 {
        let state = self.state.lock();
        let mut files = state.names.all_files();
        files.sort_by_key(Arc::as_ptr);
        files.dedup_by(|one, other| Arc::ptr_eq(one, other));
        let counts = files.iter().map(|file| file.lock().possible_crashes());
        counts.fold(state.names.possible_crashes(), u64::saturating_mul)
    }

    fn crash_by(&self, mut choices: Choices<'_>) {
        self.kill();
        let mut state = self.state.lock();
        let keeps_old = state.lies.contains(&Lie::OldNames);
        state.names.crash(keeps_old, &mut choices);
        state.names.iter().for_each(|(_, file)| file.lock().crash(&mut choices));
    }

    /// The process ends and the machine keeps running: all handles and sessions fail from now on, and no data is lost.
    /// The disk forgets its planned failures, but not its capacity and its lies.
    pub fn kill(&self) {
        let mut state = self.state.lock();
        state.life += 1;
        state.plans.clear();
        state.halt_at = None;
        state.failed_syncs = 0;
    }

    /// Memory is short: the page cache drops its clean pages, and readers see the disk's content. Data that a failed
    /// sync did not write shows its old content. Lengths stay.
    pub fn drop_clean_pages(&self) {
        for file in self.state.lock().files() {
            let mut file = file.lock();
            let mut content = file.durable.to_vec();
            file.pending.iter().for_each(|change| change.apply(&mut content));
            content.resize(file.live.len(), 0);
            file.live = Arc::new(content);
        }
    }

    /// Whether the power is off, as planned with [`SimDisk::halt_after`].
    pub fn is_halted(&self) -> bool {
        self.state.lock().is_halted()
    }

    /// Makes the `nth` call of `operation` from now fail with `kind`; 1 is the next one. `StorageFull` is ENOSPC. Half
    /// of a failed write takes effect, nothing of any other call.
    pub fn fail_nth(&self, operation: Operation, nth: u64, kind: io::ErrorKind) {
        let applied = if operation == Operation::Write { Applied::Half } else { Applied::Nothing };
        self.fail_nth_applying(operation, nth, kind, applied);
    }

    /// Like [`SimDisk::fail_nth`], with the part of the call that takes effect.
    pub fn fail_nth_applying(&self, operation: Operation, nth: u64, kind: io::ErrorKind, applied: Applied) {
        self.state.lock().plans.insert(operation, (nth.max(1), Plan::Fail(kind, applied)));
    }

    /// Makes the `nth` call of `operation`, one that changes something, report success and do nothing.
    pub fn skip_nth(&self, operation: Operation, nth: u64) {
        self.state.lock().plans.insert(operation, (nth.max(1), Plan::Skip));
    }

    /// What the last skipped sync should have made durable: the name of the file, with `(length)` if only its length
    /// had changed, or the changed names of the directory.
    pub fn skipped(&self) -> Vec<String> {
        self.state.lock().skipped.clone()
    }

    /// How many planned failures have not happened yet.
    pub fn failures_left(&self) -> usize {
        self.state.lock().plans.len()
    }

    /// How many syncs, of files and of the directory, failed as planned since the last crash or kill.
    pub fn failed_syncs(&self) -> u64 {
        self.state.lock().failed_syncs
    }

    /// The most bytes that all files together may have; `None` is unlimited. A call that would exceed it fails with
    /// `StorageFull`; a write keeps the part that fits.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state.lock().capacity = bytes;
    }

    /// Whether syncs, of files and of the directory, report success without doing anything.
    pub fn set_lying_sync(&self, lying: bool) {
        self.set_lies(if lying { &[Lie::FileSync, Lie::DirSync] } else { &[] });
    }

    /// How the disk lies from now on. An empty list makes it honest.
    pub fn set_lies(&self, lies: &[Lie]) {
        self.state.lock().lies = lies.iter().copied().collect();
    }

    /// Turns the power off after `changes` more calls that change something: later ones fail until the next crash.
    pub fn halt_after(&self, changes: u64) {
        let mut state = self.state.lock();
        state.halt_at = Some(state.changes + changes);
    }

    /// The number of calls so far that change something: writes, syncs, creations, renames, removals.
    pub fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// The number of calls of a kind so far, including failed ones.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.state.lock().calls.get(&operation).copied().unwrap_or_default()
    }

    /// Bytes of all files as readers see them.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// The content of a file as readers see it.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.state.lock().names.get(name).map(|file| file.lock().live.to_vec())
    }

    /// Creates or replaces a file durably, past the log: tests damage and restore files with it.
    pub fn set_content(&self, name: &str, content: Vec<u8>) {
        self.state.lock().names.insert_durable(name, Arc::new(Mutex::new(SimFile::durable(content))));
    }

    /// Removes a file durably, past the log.
    pub fn lose(&self, name: &str) {
        self.state.lock().names.remove_durable(name);
    }

    /// A session that survives crashes.
    fn always(&self) -> Session {
        Session { state: self.state.clone(), life: None }
    }
}

/// A copy of `file`, made once: later calls with the same list of `[original, copy]` return the same copy.
fn copy_once(file: &FileRef, copies: &mut Vec<[FileRef; 2]>) -> FileRef {
    if let Some([_, copy]) = copies.iter().find(|[original, _]| Arc::ptr_eq(original, file)) {
        return copy.clone();
    }
    let copy = Arc::new(Mutex::new(file.lock().clone()));
    copies.push([file.clone(), copy.clone()]);
    copy
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
}
