//! The state of a simulated disk. It decides the outcome of each call.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use super::content::FileRef;
use super::names::Names;
use super::plan::{Lie, Operation, Plan, Verdict};

/// The whole state of a simulated disk, behind one lock.
#[derive(Default)]
pub(super) struct State {
    /// Incremented by every crash and kill. Handles of an earlier life fail.
    pub(super) life: u64,
    pub(super) names: Names,
    /// For each kind of call, a countdown to the planned call and what that one does.
    pub(super) plans: BTreeMap<Operation, (u64, Plan)>,
    /// The most bytes that all files together may have.
    pub(super) capacity: Option<u64>,
    pub(super) lies: BTreeSet<Lie>,
    /// Planned failures of syncs, of files and of the directory.
    pub(super) failed_syncs: u64,
    /// What the last skipped sync should have made durable.
    pub(super) skipped: Vec<String>,
    /// The number of calls of each kind so far.
    pub(super) calls: BTreeMap<Operation, u64>,
    /// The number of changes so far, and after which of them the power goes off.
    pub(super) changes: u64,
    pub(super) halt_at: Option<u64>,
}

impl State {
    pub(super) fn check_life(&self, life: u64) -> io::Result<()> {
        if life == self.life { Ok(()) } else { Err(io::Error::other("opened before the crash of this simulated disk")) }
    }

    /// Counts a call that changes nothing. An error is a planned failure.
    pub(super) fn inspect(&mut self, operation: Operation) -> io::Result<()> {
        self.planned(operation).result()
    }

    /// Counts a call that changes something and decides its outcome.
    pub(super) fn change(&mut self, operation: Operation) -> Verdict {
        self.changes += 1;
        if self.is_halted() {
            return Verdict::PowerOff(io::Error::other("the simulated power is off"));
        }
        let verdict = self.planned(operation);
        let lie = match operation {
            Operation::Sync => Lie::FileSync,
            Operation::SyncDir => Lie::DirSync,
            _ => return verdict,
        };
        if matches!(verdict, Verdict::Done) && self.lies.contains(&lie) { Verdict::Skipped } else { verdict }
    }

    /// Whether the power is off.
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

    /// Every file that has a name, once each.
    pub(super) fn files(&self) -> Vec<FileRef> {
        let mut files: Vec<FileRef> = self.names.iter().map(|(_, file)| file.clone()).collect();
        files.sort_by_key(Arc::as_ptr);
        files.dedup_by(|a, b| Arc::ptr_eq(a, b));
        files
    }

    /// Counts a failed sync of a file, unless the file has no name any more.
    pub(super) fn count_failed_sync(&mut self, file: &FileRef) {
        self.failed_syncs += u64::from(!self.names_of(file).is_empty());
    }

    /// The names of a file.
    pub(super) fn names_of(&self, file: &FileRef) -> Vec<String> {
        let named = self.names.iter().filter(|(_, known)| Arc::ptr_eq(known, file));
        named.map(|(name, _)| name.clone()).collect()
    }

    /// Bytes of all files as readers see them.
    pub(super) fn used(&self) -> u64 {
        self.files().iter().map(|file| file.lock().live.len() as u64).sum()
    }

    pub(super) fn space_left(&self) -> u64 {
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used()))
    }

    /// Fails with `StorageFull` if the files cannot grow by `growth` bytes.
    pub(super) fn take_space(&self, growth: u64) -> io::Result<()> {
        match self.capacity {
            Some(capacity) if growth > 0 && self.used() + growth > capacity => {
                Err(io::Error::new(io::ErrorKind::StorageFull, "the simulated disk is full"))
            }
            _ => Ok(()),
        }
    }
}
