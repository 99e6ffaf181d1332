//! The state of a simulated disk, and what becomes of each call on it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::file::FileRef;
use super::names::Names;
use super::plan::{Lie, Plan, Verdict};
use super::{MAIN, Operation, not_found};

/// A directory.
pub(super) type DirRef = Arc<Mutex<Names<FileRef>>>;

/// Everything of a simulated disk, behind one lock.
#[derive(Default)]
pub(super) struct State {
    /// Grows with every crash; handles of an earlier life fail.
    pub(super) life: u64,
    pub(super) dirs: Names<DirRef>,
    /// Calls of a kind left until one does not do what it should, and what it does.
    pub(super) plans: BTreeMap<Operation, (u64, Plan)>,
    pub(super) capacity: Option<u64>,
    pub(super) lies: BTreeSet<Lie>,
    /// Syncs, of files and of the main directory, that failed as planned. Those of a copy beside it are its own affair.
    pub(super) failed_syncs: u64,
    /// What the last sync that was skipped as planned was to make durable.
    pub(super) skipped: Vec<String>,
    /// Calls of each kind made in all.
    pub(super) calls: BTreeMap<Operation, u64>,
    /// Changes made in all, and after how many the power goes.
    pub(super) changes: u64,
    pub(super) halt_at: Option<u64>,
}

impl State {
    pub(super) fn check_life(&self, life: u64) -> io::Result<()> {
        if life == self.life { Ok(()) } else { Err(io::Error::other("opened before the crash of this simulated disk")) }
    }

    /// A call that changes nothing.
    pub(super) fn look(&mut self, operation: Operation) -> io::Result<()> {
        self.planned(operation).answer()
    }

    /// Counts a call that changes something, and says what becomes of it.
    pub(super) fn change(&mut self, operation: Operation) -> Verdict {
        self.changes += 1;
        if self.is_halted() {
            return Verdict::Gone(io::Error::other("the simulated power is gone"));
        }
        let verdict = self.planned(operation);
        let lie = match operation {
            Operation::Sync => Lie::FileSync,
            Operation::SyncDir => Lie::DirSync,
            _ => return verdict,
        };
        if matches!(verdict, Verdict::Done) && self.lies.contains(&lie) { Verdict::Skipped } else { verdict }
    }

    /// Whether the power went with a change that was made.
    pub(super) fn is_halted(&self) -> bool {
        self.halt_at.is_some_and(|at| self.changes > at)
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

    /// A directory.
    pub(super) fn dir(&self, name: &str) -> io::Result<DirRef> {
        self.dirs.get(name).cloned().ok_or_else(|| not_found(name))
    }

    /// Each file that has a name, once.
    pub(super) fn files(&self) -> Vec<FileRef> {
        let mut files = Vec::new();
        for (_, dir) in self.dirs.iter() {
            files.extend(dir.lock().iter().map(|(_, file)| file.clone()));
        }
        files.sort_by_key(Arc::as_ptr);
        files.dedup_by(|a, b| Arc::ptr_eq(a, b));
        files
    }

    /// Counts a failed sync of a file.
    pub(super) fn count_failed(&mut self, file: &FileRef) {
        let main = self.dirs.get(MAIN);
        let known = main.is_some_and(|dir| dir.lock().iter().any(|(_, known)| Arc::ptr_eq(known, file)));
        self.failed_syncs += u64::from(known);
    }

    /// All names of a file.
    pub(super) fn names_of(&self, file: &FileRef) -> Vec<String> {
        let mut out = Vec::new();
        for (_, dir) in self.dirs.iter() {
            let dir = dir.lock();
            out.extend(dir.iter().filter(|(_, known)| Arc::ptr_eq(known, file)).map(|(name, _)| name.clone()));
        }
        out
    }

    pub(super) fn used(&self) -> u64 {
        self.files().iter().map(|file| file.lock().live.len() as u64).sum()
    }

    pub(super) fn space_left(&self) -> u64 {
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used()))
    }

    pub(super) fn take_space(&self, growth: u64) -> io::Result<()> {
        match self.capacity {
            Some(capacity) if growth > 0 && self.used() + growth > capacity => {
                Err(io::Error::new(io::ErrorKind::StorageFull, "the simulated disk is full"))
            }
            _ => Ok(()),
        }
    }
}
