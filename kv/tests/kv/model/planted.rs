//! The store of a history. It can contain a planted bug, and it tracks the rollback marks that must survive.

use std::collections::BTreeSet;

use engine::store::memory::MemoryStore;
use engine::store::{Reader, Store};
use engine::{Cf, Op, WriteBatch};
use kv::api::{KeyError, RequestBody, Response};
use kv::error::ActionError;
use kv::key::split_ts;
use kv::mvcc::mark::is_mark;
use kv::mvcc::{LockRow, WriteKind, WriteRecord};
use kv::percolator;

/// A bug to plant: what an action does not see, or does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlantedBug {
    /// Prewrite does not see commits above its start_ts.
    NoConflictCheck,
    /// Reads do not see locks.
    IgnoreLocks,
    /// Prewrite does not see rollback records.
    IgnoreRollbacks,
    /// A commit at the timestamp of another transaction's rollback mark removes the mark.
    RemoveRollbackMark,
    /// The commit record of a lock does not name the data record below it.
    ForgetLastData,
    /// The prewrite of a writer does not see the locks that others share.
    IgnoreShared,
}

/// The store, and the rollback marks that were ever written to it.
pub(crate) struct ModelStore {
    pub(crate) store: MemoryStore,
    bug: Option<PlantedBug>,
    /// The keys of the rollback marks.
    pub(crate) marks: BTreeSet<Vec<u8>>,
    /// The number of commits at exactly the timestamp of another transaction's mark.
    pub(crate) overlaps: u64,
}

impl ModelStore {
    pub(crate) fn new(bug: Option<PlantedBug>) -> ModelStore {
        ModelStore { store: MemoryStore::new(), bug, marks: BTreeSet::new(), overlaps: 0 }
    }

    /// The store as reads see it.
    pub(crate) fn read_view(&self) -> MemoryStore {
        match self.bug {
            Some(PlantedBug::IgnoreLocks) => self.without(|cf, _, _| cf == Cf::Lock),
            _ => self.store.clone(),
        }
    }

    /// Executes a write. Returns its result and whether it changed anything.
    pub(crate) fn execute(&mut self, body: &RequestBody) -> Result<(Result<Response, KeyError>, bool), String> {
        let store = match (body, self.bug) {
            (RequestBody::Prewrite(request), Some(PlantedBug::NoConflictCheck)) => {
                let above = |key: &[u8]| split_ts(key).unwrap().1 > request.start_ts;
                self.without(|cf, key, _| cf == Cf::Write && above(key))
            }
            (RequestBody::Prewrite(request), Some(PlantedBug::IgnoreShared))
                if request.mutations.iter().all(|mutation| mutation.op.is_exclusive()) =>
            {
                self.without(|cf, key, _| cf == Cf::Lock && !matches!(LockRow::of(key), Ok(LockRow::Lock(_))))
            }
            (RequestBody::Prewrite(_), Some(PlantedBug::IgnoreRollbacks)) => {
                self.without(|cf, _, value| cf == Cf::Default && is_mark(value).unwrap())
            }
            _ => self.store.clone(),
        };
        match percolator::evaluate(&store.snapshot(), body, percolator::PrewriteAction::Lock) {
            Ok((batch, response)) => {
                let commits =
                    matches!(body, RequestBody::Commit { .. } | RequestBody::ResolveLock { commit_ts: Some(_), .. });
                let overlapped = if commits { self.overlapped_marks(&batch) } else { Vec::new() };
                self.overlaps += overlapped.len() as u64;
                self.write(&self.plant(&batch, &overlapped))?;
                Ok((Ok(response), !batch.is_empty()))
            }
            Err(ActionError::Key(error)) => Ok((Err(error), false)),
            Err(error) => Err(format!("{body:?}: {error}")),
        }
    }

    /// The batch of an action with the planted bug.
    fn plant(&self, batch: &WriteBatch, overlapped: &[Vec<u8>]) -> WriteBatch {
        match self.bug {
            Some(PlantedBug::RemoveRollbackMark) => {
                let mut out = batch.clone();
                overlapped.iter().for_each(|mark| out.delete(Cf::Default, mark));
                out
            }
            Some(PlantedBug::ForgetLastData) => without_positions(batch),
            _ => batch.clone(),
        }
    }

    /// The marks at exactly the keys and timestamps of the commit records of a batch.
    fn overlapped_marks(&self, batch: &WriteBatch) -> Vec<Vec<u8>> {
        let records = batch.iter().filter_map(|op| match op {
            Op::Put { cf: Cf::Write, key, .. } => Some(key.to_vec()),
            _ => None,
        });
        records.filter(|key| self.marks.contains(key)).collect()
    }

    /// Writes a batch and tracks its rollback marks. Fails if it removes or overwrites one.
    pub(crate) fn write(&mut self, batch: &WriteBatch) -> Result<(), String> {
        for op in batch.iter() {
            let (cf, key, mark) = match op {
                Op::Put { cf, key, value } => (cf, key, cf == Cf::Default && is_mark(value).unwrap()),
                Op::Delete { cf, key } => (cf, key, false),
                Op::DeleteRange { .. } => return Err("an action deleted a range".to_owned()),
            };
            if mark {
                self.marks.insert(key.to_vec());
            } else if cf == Cf::Default && self.marks.contains(key) {
                return Err(format!("the rollback mark at {} was lost", key.escape_ascii()));
            }
        }
        self.store.write(batch).map_err(|error| error.to_string())
    }

    /// A copy of the store without some rows.
    fn without(&self, hidden: impl Fn(Cf, &[u8], &[u8]) -> bool) -> MemoryStore {
        let mut batch = WriteBatch::new();
        for (cf, key, value) in rows(&self.store) {
            if !hidden(cf, &key, &value) {
                batch.put(cf, &key, &value);
            }
        }
        let copy = MemoryStore::new();
        copy.write(&batch).unwrap();
        copy
    }
}

/// The batch with lock records that name no data record.
fn without_positions(batch: &WriteBatch) -> WriteBatch {
    let mut out = WriteBatch::new();
    for op in batch.iter() {
        match op {
            Op::Put { cf: Cf::Write, key, value } => {
                let write = WriteRecord::decode(value).unwrap();
                let kind = match write.kind {
                    WriteKind::Lock { .. } => WriteKind::Lock { last_data: None },
                    kind => kind,
                };
                out.put(Cf::Write, key, &WriteRecord { kind, ..write }.encode());
            }
            Op::Put { cf, key, value } => out.put(cf, key, value),
            Op::Delete { cf, key } => out.delete(cf, key),
            Op::DeleteRange { .. } => panic!("no action deletes a range"),
        }
    }
    out
}

/// All rows of the store.
pub(crate) fn rows(store: &MemoryStore) -> Vec<(Cf, Vec<u8>, Vec<u8>)> {
    let snapshot = store.snapshot();
    let mut rows = Vec::new();
    for cf in Cf::DATA {
        let mut cursor = snapshot.cursor(cf, b"", b"").unwrap();
        let mut found = cursor.seek_to_first().unwrap();
        while found {
            rows.push((cf, cursor.key().to_vec(), cursor.value().to_vec()));
            found = cursor.next().unwrap();
        }
    }
    rows
}
