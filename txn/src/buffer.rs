//! The write buffer of a transaction: what it will change, as its own reads already see it.
//!
//! Writes are merged key by key into the change that the commit will ask for, so that the buffer holds at most one per
//! key. The point of the merge is to keep what an `Insert` promised: once a transaction has inserted a key, the commit
//! checks that it did not exist before, whatever the transaction did to it afterwards.
//!
//! | buffered \ then | put | insert | delete | lock |
//! |---|---|---|---|---|
//! | nothing | Put | Insert | Delete | Lock |
//! | Put | Put | *exists* | Delete | Put |
//! | Insert | Insert | *exists* | CheckNotExists | Insert |
//! | Delete | Put | Put | Delete | Delete |
//! | Lock | Put | Insert | Delete | Lock |
//! | CheckNotExists | Insert | Insert | CheckNotExists | CheckNotExists |
//!
//! A savepoint is a position in the undo log; going back to it restores every key changed since.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use kv::Key;
use kv::api::{Mutation, MutationOp};
use kv::client::{Page, ScanRange};

use crate::config::BufferLimits;
use crate::error::TxnError;

/// A change, and the place in the undo log of what it replaced.
#[derive(Debug)]
struct Entry {
    op: MutationOp,
    undo: usize,
}

/// What a key held before a change.
#[derive(Debug)]
struct Undo {
    key: Key,
    old: Option<Entry>,
}

/// The write set.
///
/// Invariants:
/// 1. `bytes` is the size of all changes, in `entries` and in `undo`.
/// 2. Every entry's `undo` is the position of the last undo record of its key.
/// 3. No undo record at or after the newest savepoint has an older one of the same key at or after that savepoint.
#[derive(Debug)]
pub(crate) struct Buffer {
    entries: BTreeMap<Key, Entry>,
    undo: Vec<Undo>,
    /// The newest savepoint: changes to a key are undone as one between two savepoints.
    savepoint: AtomicUsize,
    bytes: usize,
    limits: BufferLimits,
}

impl Buffer {
    /// An empty buffer.
    pub(crate) fn new(limits: BufferLimits) -> Buffer {
        Buffer { entries: BTreeMap::new(), undo: Vec::new(), savepoint: AtomicUsize::new(0), bytes: 0, limits }
    }

    /// Whether nothing was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sets a key.
    pub(crate) fn put(&mut self, key: Key, value: Bytes) -> Result<(), TxnError> {
        let op = match self.op(&key) {
            Some(MutationOp::Insert(_) | MutationOp::CheckNotExists) => MutationOp::Insert(value),
            _ => MutationOp::Put(value),
        };
        self.set(key, op)
    }

    /// Sets a key that must not exist.
    pub(crate) fn insert(&mut self, key: Key, value: Bytes) -> Result<(), TxnError> {
        let op = match self.op(&key) {
            Some(MutationOp::Put(_) | MutationOp::Insert(_)) => return Err(TxnError::AlreadyExists { key }),
            Some(MutationOp::Delete) => MutationOp::Put(value),
            None | Some(MutationOp::Lock | MutationOp::CheckNotExists) => MutationOp::Insert(value),
        };
        self.set(key, op)
    }

    /// Removes a key.
    pub(crate) fn delete(&mut self, key: Key) -> Result<(), TxnError> {
        let op = match self.op(&key) {
            Some(MutationOp::Insert(_) | MutationOp::CheckNotExists) => MutationOp::CheckNotExists,
            _ => MutationOp::Delete,
        };
        self.set(key, op)
    }

    /// Locks a key; a key that is written is locked anyway.
    pub(crate) fn lock(&mut self, key: Key) -> Result<(), TxnError> {
        if self.entries.contains_key(&key) { Ok(()) } else { self.set(key, MutationOp::Lock) }
    }

    /// What the transaction made of a key: a value, or its absence; `None` if it did not touch it.
    pub(crate) fn get(&self, key: &Key) -> Option<Option<Bytes>> {
        self.op(key).and_then(seen)
    }

    /// A position to go back to.
    pub(crate) fn savepoint(&self) -> usize {
        self.savepoint.fetch_max(self.undo.len(), Ordering::Relaxed);
        self.undo.len()
    }

    /// Undoes every change since `savepoint`, which stays usable; later ones do not.
    pub(crate) fn rollback_to(&mut self, savepoint: usize) {
        while self.undo.len() > savepoint {
            let Some(Undo { key, old }) = self.undo.pop() else { break };
            let undone = match old {
                Some(entry) => self.entries.insert(key.clone(), entry),
                None => self.entries.remove(&key),
            };
            let freed = undone.map_or(0, |entry| size(&key, &entry.op));
            self.bytes = self.bytes.saturating_sub(freed);
        }
        self.savepoint.store(self.undo.len(), Ordering::Relaxed);
    }

    /// The changes in key order.
    pub(crate) fn into_mutations(self) -> Vec<Mutation> {
        self.entries.into_iter().map(|(key, entry)| Mutation { key, op: entry.op }).collect()
    }

    /// Lays the buffer over a page of the snapshot: `page` answers a scan of `range`. At most `limit` pairs.
    pub(crate) fn merge(&self, range: &ScanRange, page: Page, limit: usize) -> Page {
        // A page of a forward scan covers up to its resume key, one of a reverse scan from there: the other end than
        // the next page's.
        let covered = match &page.resume {
            Some(resume) => ScanRange { reverse: !range.reverse, ..range.clone() }.resume_at(resume.clone()),
            None => range.clone(),
        };
        let own = self.changes_in(&covered);
        if range.reverse { merge_sorted(own.rev(), page, limit, true) } else { merge_sorted(own, page, limit, false) }
    }

    fn changes_in(&self, range: &ScanRange) -> impl DoubleEndedIterator<Item = (&Key, &MutationOp)> {
        let end = if range.end.is_empty() { Bound::Unbounded } else { Bound::Excluded(&range.end) };
        // A BTreeMap panics on a range that is the wrong way round.
        let bounds = if range.is_empty() {
            (Bound::Included(&range.start), Bound::Excluded(&range.start))
        } else {
            (Bound::Included(&range.start), end)
        };
        self.entries.range::<Key, _>(bounds).map(|(key, entry)| (key, &entry.op))
    }

    fn op(&self, key: &Key) -> Option<&MutationOp> {
        self.entries.get(key).map(|entry| &entry.op)
    }

    fn set(&mut self, key: Key, op: MutationOp) -> Result<(), TxnError> {
        let limits = self.limits;
        if key.as_bytes().len() > limits.key_bytes {
            return Err(too_large("a key", key.as_bytes().len(), limits.key_bytes));
        }
        if value_len(&op) > limits.value_bytes {
            return Err(too_large("a value", value_len(&op), limits.value_bytes));
        }
        let savepoint = self.savepoint.load(Ordering::Relaxed);
        // The record that brings the savepoint's state back is already there: nobody can go back to the state in
        // between.
        let replaced = self.entries.get(&key).filter(|entry| entry.undo >= savepoint);
        let freed = replaced.map_or(0, |entry| size(&key, &entry.op));
        let undo = replaced.map(|entry| entry.undo);
        let bytes = self.bytes.saturating_sub(freed).saturating_add(size(&key, &op));
        if bytes > limits.bytes {
            return Err(too_large("the transaction", bytes, limits.bytes));
        }
        if self.entries.len() >= limits.keys && !self.entries.contains_key(&key) {
            return Err(TxnError::TooLarge(format!("it writes more than {} keys", limits.keys)));
        }
        self.bytes = bytes;
        match undo {
            Some(undo) => {
                self.entries.insert(key, Entry { op, undo });
            }
            None => {
                let entry = Entry { op, undo: self.undo.len() };
                let old = self.entries.insert(key.clone(), entry);
                self.undo.push(Undo { key, old });
            }
        }
        Ok(())
    }
}

/// What a change makes of a key for the transaction's own reads; `None` if it leaves it as it is.
fn seen(op: &MutationOp) -> Option<Option<Bytes>> {
    match op {
        MutationOp::Put(value) | MutationOp::Insert(value) => Some(Some(value.clone())),
        MutationOp::Delete | MutationOp::CheckNotExists => Some(None),
        MutationOp::Lock => None,
    }
}

fn merge_sorted<'a>(
    own: impl Iterator<Item = (&'a Key, &'a MutationOp)>,
    page: Page,
    limit: usize,
    reverse: bool,
) -> Page {
    let mut own = own.filter_map(|(key, op)| seen(op).map(|value| (key, value))).peekable();
    let mut base = page.pairs.into_iter().peekable();
    let mut pairs: Vec<(Key, Bytes)> = Vec::new();
    let mut last: Option<Key> = None;
    loop {
        let ours_first = match (own.peek(), base.peek()) {
            (None, None) => return Page { pairs, resume: page.resume },
            (Some(_), None) => true,
            (None, Some(_)) => false,
            // On the same key ours comes first and hides the other.
            (Some((ours, _)), Some((theirs, _))) => {
                if reverse {
                    *ours >= theirs
                } else {
                    *ours <= theirs
                }
            }
        };
        if pairs.len() >= limit {
            let next = if ours_first {
                own.peek().map(|(key, _)| (*key).clone())
            } else {
                base.peek().map(|(key, _)| key.clone())
            };
            return Page { pairs, resume: if reverse { last } else { next } };
        }
        let (key, value) = if ours_first {
            let Some((key, value)) = own.next() else { continue };
            if base.peek().is_some_and(|(theirs, _)| theirs == key) {
                base.next();
            }
            (key.clone(), value)
        } else {
            let Some((key, value)) = base.next() else { continue };
            (key, Some(value))
        };
        last = Some(key.clone());
        if let Some(value) = value {
            pairs.push((key, value));
        }
    }
}

fn value_len(op: &MutationOp) -> usize {
    match op {
        MutationOp::Put(value) | MutationOp::Insert(value) => value.len(),
        MutationOp::Delete | MutationOp::Lock | MutationOp::CheckNotExists => 0,
    }
}

/// What a change counts: its bytes, and something for what surrounds them in memory.
fn size(key: &Key, op: &MutationOp) -> usize {
    const OVERHEAD: usize = 64;
    key.as_bytes().len() + value_len(op) + OVERHEAD
}

fn too_large(what: &str, bytes: usize, limit: usize) -> TxnError {
    TxnError::TooLarge(format!("{what} has {bytes} bytes, of at most {limit}"))
}

#[cfg(test)]
mod tests;
