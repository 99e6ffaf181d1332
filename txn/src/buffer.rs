//! The write buffer of a transaction: its uncommitted changes, which its own reads see.
//!
//! Writes to one key are merged into the one mutation that the commit will prewrite. The merge preserves the check of
//! an `Insert`: once a transaction has inserted a key, the commit checks that the key did not exist before, whatever
//! the transaction did to it afterwards.
//!
//! | buffered \ new | put | insert | delete | lock | share |
//! |---|---|---|---|---|---|
//! | nothing | Put | Insert | Delete | Lock | Shared |
//! | Put | Put | *exists* | Delete | Put | Put |
//! | Insert | Insert | *exists* | CheckNotExists | Insert | Insert |
//! | Delete | Put | Put | Delete | Delete | Delete |
//! | Lock | Put | Insert | Delete | Lock | Lock |
//! | Shared | Put | Insert | Delete | Lock | Shared, the stronger |
//! | CheckNotExists | Insert | Insert | CheckNotExists | CheckNotExists | CheckNotExists |
//!
//! What was seen of a key is what its first write followed from. But the row may have been updated, though not deleted,
//! since its key was locked for KEY SHARE: a stronger write follows from what was seen later.
//!
//! A savepoint is a position in the undo log. A rollback to it restores every key changed since. A [`View`] reads the
//! buffer as it was at a savepoint: a cursor does not see later writes of its own transaction.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use kv::Key;
use kv::api::{LockMode, Mutation, MutationOp};
use kv::client::{Page, ScanRange};
use tso::Timestamp;

use crate::config::BufferLimits;
use crate::error::TxnError;

/// The most changes of a transaction whose inserts are told ([`WriteBuffer::inserts`]).
const MOST_INSERTS: usize = 1024;

/// A mutation, and the position in the undo log of the record that restores its predecessor.
#[derive(Debug)]
struct Entry {
    op: MutationOp,
    /// What the first write of the key followed from ([`Mutation::seen_ts`]).
    seen_ts: Option<Timestamp>,
    undo: usize,
}

/// The entry that a change replaced.
#[derive(Debug)]
struct UndoRecord {
    key: Key,
    old: Option<Entry>,
}

/// The buffer as it was at a savepoint. Valid until a rollback to an earlier one.
///
/// It costs nothing while nothing is written. Each key written since then is remembered once.
#[derive(Debug)]
pub struct View {
    /// The savepoint.
    savepoint: usize,
    /// The undo records from the savepoint to this position are in `old`, unless the buffer was rolled back since.
    seen: usize,
    /// How often the buffer had been rolled back then. After a rollback other records follow the savepoint.
    rollbacks: u64,
    /// Keys changed since the savepoint, with their mutation at the savepoint.
    old: BTreeMap<Key, Option<MutationOp>>,
}

/// The write buffer.
///
/// Invariants:
/// 1. `bytes` is the size of all mutations, in `entries` and in `undo`.
/// 2. Every entry's `undo` is the position of the last undo record of its key.
/// 3. At or after the newest savepoint there is at most one undo record per key.
#[derive(Debug)]
pub(crate) struct WriteBuffer {
    entries: BTreeMap<Key, Entry>,
    undo: Vec<UndoRecord>,
    /// The newest savepoint. Changes to a key between two savepoints share one undo record.
    savepoint: AtomicUsize,
    /// The number of rollbacks to a savepoint.
    rollbacks: u64,
    bytes: usize,
    limits: BufferLimits,
    /// The view that reads use, if one is set.
    view: Option<View>,
}

impl WriteBuffer {
    /// An empty buffer.
    pub(crate) fn new(limits: BufferLimits) -> WriteBuffer {
        WriteBuffer {
            entries: BTreeMap::new(),
            undo: Vec::new(),
            savepoint: AtomicUsize::new(0),
            rollbacks: 0,
            bytes: 0,
            limits,
            view: None,
        }
    }

    /// Whether the buffer holds no mutation.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sets a key.
    pub(crate) fn put(&mut self, key: Key, value: Bytes, seen_ts: Option<Timestamp>) -> Result<(), TxnError> {
        let op = match self.op(&key) {
            Some(MutationOp::Insert(_) | MutationOp::CheckNotExists) => MutationOp::Insert(value),
            _ => MutationOp::Put(value),
        };
        self.set(key, op, seen_ts)
    }

    /// Sets a key that must not exist.
    pub(crate) fn insert(&mut self, key: Key, value: Bytes, seen_ts: Option<Timestamp>) -> Result<(), TxnError> {
        let op = match self.op(&key) {
            Some(MutationOp::Put(_) | MutationOp::Insert(_)) => return Err(TxnError::AlreadyExists { key }),
            Some(MutationOp::Delete) => MutationOp::Put(value),
            None | Some(MutationOp::Lock | MutationOp::Shared(_) | MutationOp::CheckNotExists) => {
                MutationOp::Insert(value)
            }
        };
        self.set(key, op, seen_ts)
    }

    /// Removes a key.
    pub(crate) fn delete(&mut self, key: Key, seen_ts: Option<Timestamp>) -> Result<(), TxnError> {
        let op = match self.op(&key) {
            Some(MutationOp::Insert(_) | MutationOp::CheckNotExists) => MutationOp::CheckNotExists,
            _ => MutationOp::Delete,
        };
        self.set(key, op, seen_ts)
    }

    /// Locks a key. A written key is locked anyway.
    pub(crate) fn lock(&mut self, key: Key, seen_ts: Option<Timestamp>) -> Result<(), TxnError> {
        match self.op(&key) {
            None | Some(MutationOp::Shared(_)) => self.set(key, MutationOp::Lock, seen_ts),
            Some(_) => Ok(()),
        }
    }

    /// Has the commit confirm a row lock that others may share. A written key is locked anyway.
    pub(crate) fn share(&mut self, key: Key, mode: LockMode, seen_ts: Option<Timestamp>) -> Result<(), TxnError> {
        match self.op(&key) {
            None => self.set(key, MutationOp::Shared(mode), seen_ts),
            Some(MutationOp::Shared(weaker)) if *weaker < mode => self.set(key, MutationOp::Shared(mode), seen_ts),
            Some(_) => Ok(()),
        }
    }

    /// The buffered value of a key: `Some(None)` if it is deleted, `None` if the buffer does not change it.
    pub(crate) fn get(&self, key: &Key) -> Option<Option<Bytes>> {
        match self.view.as_ref().and_then(|view| view.old.get(key)) {
            Some(old) => old.as_ref().and_then(own_value),
            None => self.op(key).and_then(own_value),
        }
    }

    /// A view of the buffer as it is now.
    pub(crate) fn view(&self) -> View {
        let savepoint = self.savepoint();
        View { savepoint, seen: savepoint, rollbacks: self.rollbacks, old: BTreeMap::new() }
    }

    /// Lets reads use a view from now on, or no view. Returns the previous one. Writes are not affected.
    pub(crate) fn set_view(&mut self, view: Option<View>) -> Option<View> {
        let view = view.map(|mut view| {
            let seen = if view.rollbacks == self.rollbacks { view.seen } else { view.savepoint };
            // A key's first record after the savepoint holds its mutation at the savepoint.
            for record in self.undo.get(seen..).unwrap_or_default() {
                view.old.entry(record.key.clone()).or_insert_with(|| record.old.as_ref().map(|entry| entry.op.clone()));
            }
            View { seen: self.undo.len(), rollbacks: self.rollbacks, ..view }
        });
        std::mem::replace(&mut self.view, view)
    }

    /// The current position of the undo log, for [`WriteBuffer::rollback_to`].
    pub(crate) fn savepoint(&self) -> usize {
        self.savepoint.fetch_max(self.undo.len(), Ordering::Relaxed);
        self.undo.len()
    }

    /// The length of the undo log.
    pub(crate) fn changes(&self) -> usize {
        self.undo.len()
    }

    /// Undoes every change since `savepoint`, which stays valid. Later savepoints become invalid.
    pub(crate) fn rollback_to(&mut self, savepoint: usize) {
        while self.undo.len() > savepoint {
            let Some(UndoRecord { key, old }) = self.undo.pop() else { break };
            let undone = match old {
                Some(entry) => self.entries.insert(key.clone(), entry),
                None => self.entries.remove(&key),
            };
            let freed = undone.map_or(0, |entry| entry_bytes(&key, &entry.op));
            self.bytes = self.bytes.saturating_sub(freed);
        }
        self.savepoint.store(self.undo.len(), Ordering::Relaxed);
        self.rollbacks += 1;
    }

    /// The keys that must not exist at the commit, with the values that they are to get; none of them if there are more
    /// than [`MOST_INSERTS`] changes.
    pub(crate) fn inserts(&self) -> Vec<(Key, Bytes)> {
        if self.entries.len() > MOST_INSERTS {
            return Vec::new();
        }
        let inserted = |(key, entry): (&Key, &Entry)| match &entry.op {
            MutationOp::Insert(value) => Some((key.clone(), value.clone())),
            _ => None,
        };
        self.entries.iter().filter_map(inserted).collect()
    }

    /// The mutations in key order. Nobody relies on rows who changes nothing and locks none for itself.
    pub(crate) fn into_mutations(self) -> Vec<Mutation> {
        let is_writer = self.entries.values().any(|entry| entry.op.is_exclusive());
        let counts = |entry: &Entry| is_writer || !matches!(entry.op, MutationOp::Shared(_));
        let entries = self.entries.into_iter().filter(|(_, entry)| counts(entry));
        entries.map(|(key, Entry { op, seen_ts, .. })| Mutation { key, op, seen_ts, lock: None }).collect()
    }

    /// Lays the buffer over `page`, the snapshot's answer to a scan of `range`. Returns at most `limit` pairs.
    pub(crate) fn merge(&self, range: &ScanRange, page: Page, limit: usize) -> Page {
        if self.entries.is_empty() && self.view.is_none() && page.pairs.len() <= limit {
            return page;
        }
        // A page of a forward scan covers the range up to its resume key, a page of a reverse scan the range from
        // there. The next page covers the other side.
        let covered = match &page.resume {
            Some(resume) => ScanRange { reverse: !range.reverse, ..range.clone() }.resume_at(resume.clone()),
            None => range.clone(),
        };
        let Some(view) = &self.view else {
            return merge_directed(self.changes_in(&covered), page, limit, range.reverse);
        };
        let bounds = bounds_of(&covered);
        let old = view.old.range::<Key, _>(bounds).filter_map(|(key, op)| Some((key, op.as_ref()?)));
        let kept = self.changes_in(&covered).filter(|(key, _)| !view.old.contains_key(*key));
        let own: BTreeMap<&Key, &MutationOp> = kept.chain(old).collect();
        merge_directed(own.into_iter(), page, limit, range.reverse)
    }

    /// Whether a key of the range is written or deleted.
    pub(crate) fn has_changes_in(&self, range: &ScanRange) -> bool {
        self.changes_in(range).any(|(_, op)| own_value(op).is_some())
    }

    fn changes_in(&self, range: &ScanRange) -> impl DoubleEndedIterator<Item = (&Key, &MutationOp)> {
        self.entries.range::<Key, _>(bounds_of(range)).map(|(key, entry)| (key, &entry.op))
    }

    fn op(&self, key: &Key) -> Option<&MutationOp> {
        self.entries.get(key).map(|entry| &entry.op)
    }

    fn set(&mut self, key: Key, op: MutationOp, seen_ts: Option<Timestamp>) -> Result<(), TxnError> {
        let limits = self.limits;
        if key.as_bytes().len() > limits.key_bytes {
            return Err(TxnError::RowTooLarge(beyond("a key", key.as_bytes().len(), limits.key_bytes)));
        }
        if value_len(&op) > limits.value_bytes {
            return Err(TxnError::RowTooLarge(beyond("a value", value_len(&op), limits.value_bytes)));
        }
        let savepoint = self.savepoint.load(Ordering::Relaxed);
        // An undo record since the newest savepoint already restores the state at that savepoint. No rollback can
        // target a state in between, so the replaced entry needs no record.
        let replaced = self.entries.get(&key).filter(|entry| entry.undo >= savepoint);
        let freed = replaced.map_or(0, |entry| entry_bytes(&key, &entry.op));
        let undo = replaced.map(|entry| entry.undo);
        let bytes = self.bytes.saturating_sub(freed).saturating_add(entry_bytes(&key, &op));
        if bytes > limits.bytes {
            return Err(TxnError::TooLarge(beyond("the transaction", bytes, limits.bytes)));
        }
        if self.entries.len() >= limits.keys && !self.entries.contains_key(&key) {
            return Err(TxnError::TooLarge(format!("it writes more than {} keys", limits.keys)));
        }
        self.bytes = bytes;
        let kept = self.entries.get(&key).filter(|entry| entry.op != MutationOp::Shared(LockMode::KeyShare));
        let seen_ts = kept.map_or(seen_ts, |entry| entry.seen_ts);
        match undo {
            Some(undo) => {
                self.entries.insert(key, Entry { op, seen_ts, undo });
            }
            None => {
                let entry = Entry { op, seen_ts, undo: self.undo.len() };
                let old = self.entries.insert(key.clone(), entry);
                self.undo.push(UndoRecord { key, old });
            }
        }
        Ok(())
    }
}

/// The value that the transaction's own reads see for a mutated key; `None` if the mutation does not change the value.
fn own_value(op: &MutationOp) -> Option<Option<Bytes>> {
    match op {
        MutationOp::Put(value) | MutationOp::Insert(value) => Some(Some(value.clone())),
        MutationOp::Delete | MutationOp::CheckNotExists => Some(None),
        MutationOp::Lock | MutationOp::Shared(_) => None,
    }
}

/// The bounds of a range for a map of keys.
fn bounds_of(range: &ScanRange) -> (Bound<&Key>, Bound<&Key>) {
    // BTreeMap::range panics if start > end.
    let end = if range.is_empty() {
        Bound::Excluded(&range.start)
    } else if range.end.is_empty() {
        Bound::Unbounded
    } else {
        Bound::Excluded(&range.end)
    };
    (Bound::Included(&range.start), end)
}

fn merge_directed<'a>(
    own: impl DoubleEndedIterator<Item = (&'a Key, &'a MutationOp)>,
    page: Page,
    limit: usize,
    reverse: bool,
) -> Page {
    if reverse { merge_sorted(own.rev(), page, limit, true) } else { merge_sorted(own, page, limit, false) }
}

fn merge_sorted<'a>(
    own: impl Iterator<Item = (&'a Key, &'a MutationOp)>,
    page: Page,
    limit: usize,
    reverse: bool,
) -> Page {
    let mut own = own.filter_map(|(key, op)| own_value(op).map(|value| (key, value))).peekable();
    let mut base = page.pairs.into_iter().peekable();
    let mut pairs: Vec<(Key, Bytes)> = Vec::new();
    let mut last: Option<Key> = None;
    loop {
        let ours_first = match (own.peek(), base.peek()) {
            (None, None) => return Page { pairs, resume: page.resume },
            (Some(_), None) => true,
            (None, Some(_)) => false,
            // On the same key the buffered value comes first and hides the snapshot's.
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
        MutationOp::Delete | MutationOp::Lock | MutationOp::Shared(_) | MutationOp::CheckNotExists => 0,
    }
}

/// The accounted size of a mutation: its bytes and an estimate of the memory around them.
fn entry_bytes(key: &Key, op: &MutationOp) -> usize {
    const OVERHEAD: usize = 64;
    key.as_bytes().len() + value_len(op) + OVERHEAD
}

fn beyond(what: &str, bytes: usize, limit: usize) -> String {
    format!("{what} has {bytes} bytes, of at most {limit}")
}

#[cfg(test)]
mod tests;
