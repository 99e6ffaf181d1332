//! An ordered in-memory store with the crash behaviour of the RocksDB store.
//!
//! Snapshots are O(1): the maps are persistent. `flush` saves the current state and `crash` returns to it. So a
//! simulation sees what RocksDB leaves with atomic flush and without a WAL. A simulator can make the nth write or flush
//! fail. Like the RocksDB store, this one is then poisoned until `crash` reopens it.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use imbl::OrdMap;
use parking_lot::Mutex;

use super::hooks::{Compaction, RecordFilter};
use super::{Cursor, Hooks, NewestReader, Reader, Result, RowCheck, Snapshot, Store, StoreError, Visit, is_version_of};
use crate::batch::{Op, WriteBatch};
use crate::cf::Cf;

type Map = OrdMap<Arc<[u8]>, Arc<[u8]>>;
/// An entry of a map.
type Entry = (Arc<[u8]>, Arc<[u8]>);

/// The four column families at one point in time.
#[derive(Clone, Debug, Default)]
struct Families {
    default: Map,
    lock: Map,
    write: Map,
    meta: Map,
}

impl Families {
    fn map(&self, cf: Cf) -> &Map {
        match cf {
            Cf::Default => &self.default,
            Cf::Lock => &self.lock,
            Cf::Write => &self.write,
            Cf::Meta => &self.meta,
        }
    }

    fn map_mut(&mut self, cf: Cf) -> &mut Map {
        match cf {
            Cf::Default => &mut self.default,
            Cf::Lock => &mut self.lock,
            Cf::Write => &mut self.write,
            Cf::Meta => &mut self.meta,
        }
    }

    fn apply(&mut self, batch: &WriteBatch) {
        for op in batch.iter() {
            match op {
                Op::Put { cf, key, value } => {
                    self.map_mut(cf).insert(key.into(), value.into());
                }
                Op::Delete { cf, key } => {
                    self.map_mut(cf).remove(key);
                }
                Op::DeleteRange { cf, start, end } => self.remove_range(cf, start, end),
            }
        }
    }

    fn remove_range(&mut self, cf: Cf, start: &[u8], end: &[u8]) {
        let map = self.map_mut(cf);
        let from = map.range::<_, [u8]>((Bound::Included(start), Bound::Unbounded)).map(|(key, _)| key);
        let doomed: Vec<Arc<[u8]>> = from.take_while(|key| end.is_empty() || key.as_ref() < end).cloned().collect();
        for key in doomed {
            map.remove(&key);
        }
    }
}

/// The state that all handles share.
///
/// Invariant: `flushed` is a present or past state of `live`, in all families at once.
#[derive(Debug, Default)]
struct State {
    live: Arc<Families>,
    flushed: Arc<Families>,
    /// If a write is to fail: successful writes before it.
    writes_left: Option<u64>,
    /// If a flush is to fail: successful flushes before it.
    flushes_left: Option<u64>,
    /// The cause of the first failure.
    poisoned: Option<String>,
}

impl State {
    fn begin_write(&mut self) -> Result<()> {
        self.check()?;
        if count_down(&mut self.writes_left) { Ok(()) } else { Err(self.poison("injected write failure")) }
    }

    fn flush(&mut self) -> Result<()> {
        self.check()?;
        if !count_down(&mut self.flushes_left) {
            return Err(self.poison("injected flush failure"));
        }
        self.flushed = Arc::clone(&self.live);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.poisoned.as_ref().map_or(Ok(()), |cause| Err(StoreError::Poisoned(cause.clone())))
    }

    fn poison(&mut self, cause: &str) -> StoreError {
        self.poisoned = Some(cause.to_owned());
        StoreError::Backend(cause.to_owned())
    }
}

/// Counts down to a planned failure. Returns `false` when its turn has come.
fn count_down(left: &mut Option<u64>) -> bool {
    match left {
        None => true,
        Some(0) => false,
        Some(left) => {
            *left -= 1;
            true
        }
    }
}

/// See the module documentation. Clones share the store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    hooks: Hooks,
}

/// A snapshot of a [`MemoryStore`].
#[derive(Clone, Debug)]
pub struct MemorySnapshot {
    families: Arc<Families>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// An empty store with hooks.
    pub fn with_hooks(hooks: Hooks) -> MemoryStore {
        MemoryStore { hooks, ..MemoryStore::default() }
    }

    /// The same store with other hooks: those of its next life.
    pub fn rehooked(&self, hooks: Hooks) -> MemoryStore {
        MemoryStore { state: Arc::clone(&self.state), hooks }
    }

    /// Loses everything that was not flushed and reopens the store: it is no longer poisoned and has no planned
    /// failures. Older snapshots are unaffected.
    pub fn crash(&self) {
        let mut state = self.state.lock();
        let flushed = Arc::clone(&state.flushed);
        *state = State { live: Arc::clone(&flushed), flushed, ..State::default() };
    }

    /// Makes the `nth` write from now fail (1 is the next one; 0 counts as 1). A failed write changes nothing and
    /// poisons the store. `replace_range` counts as one write, and then as one flush.
    pub fn fail_write(&self, nth: u64) {
        self.state.lock().writes_left = Some(nth.saturating_sub(1));
    }

    /// Makes the `nth` flush from now fail (1 is the next one; 0 counts as 1). Flushed data stays, and the store is
    /// poisoned.
    pub fn fail_flush(&self, nth: u64) {
        self.state.lock().flushes_left = Some(nth.saturating_sub(1));
    }
}

impl Reader for MemorySnapshot {
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.families.map(cf).get(key).map(|value| value.to_vec()))
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> Result<Box<dyn Cursor>> {
        let (lower, upper) = (lower.to_vec(), upper.to_vec());
        Ok(Box::new(MemoryCursor { map: self.families.map(cf).clone(), lower, upper, at: None }))
    }

    fn limited_cursor(&self, cf: Cf, lower: &[u8], upper: &[u8], _: usize) -> Result<Box<dyn Cursor>> {
        self.cursor(cf, lower, upper)
    }
}

impl Snapshot for MemorySnapshot {
    /// Everything is in memory.
    fn cached(&self) -> MemorySnapshot {
        self.clone()
    }
}

impl NewestReader for MemoryStore {
    fn get_newest(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.state.lock().live.map(cf).get(key).map(|value| value.to_vec()))
    }

    fn visit_versions(&self, cf: Cf, prefix: &[u8], from: &[u8], visit: &mut Visit<'_>) -> Result<()> {
        let families = Arc::clone(&self.state.lock().live);
        let records = families.map(cf).range::<_, [u8]>((Bound::Included(from), Bound::Unbounded));
        for (key, value) in records.take_while(|(key, _)| key.starts_with(prefix)) {
            if is_version_of(key, prefix) && visit(key, value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

/// The newest state.
struct MemoryNewest<'a>(&'a MemoryStore);

impl Reader for MemoryNewest<'_> {
    fn get(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.0.get_newest(cf, key)
    }

    fn cursor(&self, cf: Cf, lower: &[u8], upper: &[u8]) -> Result<Box<dyn Cursor>> {
        self.0.snapshot().cursor(cf, lower, upper)
    }

    fn limited_cursor(&self, cf: Cf, lower: &[u8], upper: &[u8], _: usize) -> Result<Box<dyn Cursor>> {
        self.cursor(cf, lower, upper)
    }
}

impl Store for MemoryStore {
    type Snapshot = MemorySnapshot;

    fn snapshot(&self) -> MemorySnapshot {
        MemorySnapshot { families: Arc::clone(&self.state.lock().live) }
    }

    fn cached(&self) -> impl Reader + '_ {
        MemoryNewest(self)
    }

    fn write(&self, batch: &WriteBatch) -> Result<()> {
        let mut state = self.state.lock();
        state.begin_write()?;
        Arc::make_mut(&mut state.live).apply(batch);
        drop(state);
        self.hooks.observe(&mut batch.iter());
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.state.lock().flush()
    }

    fn get_flushed(&self, cf: Cf, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.state.lock().flushed.map(cf).get(key).map(|value| value.to_vec()))
    }

    /// After an error the range holds the first half of the rows, flushed: the worst that the contract allows. Callers
    /// are tested against it.
    fn replace_range(
        &self,
        start: &[u8],
        end: &[u8],
        rows: &mut dyn Iterator<Item = Result<(Cf, Vec<u8>, Vec<u8>)>>,
        last: &WriteBatch,
    ) -> Result<()> {
        // The rows may come from this store: read them before taking its lock.
        let mut taken = Vec::new();
        let read = read_rows(start, end, rows, &mut taken);
        let mut state = self.state.lock();
        state.check()?;
        let outcome = read.and_then(|()| state.begin_write());
        let kept = if outcome.is_ok() { taken.len() } else { taken.len() / 2 };
        let families = Arc::make_mut(&mut state.live);
        for cf in Cf::DATA {
            families.remove_range(cf, start, end);
        }
        for (cf, key, value) in taken.into_iter().take(kept) {
            self.hooks.observe(&mut std::iter::once(Op::Put { cf, key: &key, value: &value }));
            families.map_mut(cf).insert(key.into(), value.into());
        }
        if outcome.is_err() {
            state.flushed = Arc::clone(&state.live);
            return outcome;
        }
        Arc::make_mut(&mut state.live).apply(last);
        state.flush()
    }

    /// As in RocksDB: what was written is flushed first, the filter sees flushed records only, and what goes is gone
    /// from the disk as well.
    fn compact_range(&self, cf: Cf, start: &[u8], end: &[u8]) -> Result<()> {
        let Some(new_filter) = &self.hooks.new_filter else { return self.flush() };
        let mut state = self.state.lock();
        state.flush()?;
        let families = Arc::clone(&state.flushed);
        let view = || Some(Box::new(MemorySnapshot { families: Arc::clone(&families) }) as Box<dyn Reader + Send>);
        let Some(mut stays) = new_filter(&Compaction::new(cf, true, &view)) else { return Ok(()) };
        let gone = gone(families.map(cf), start, end, &mut stays);
        let State { live, flushed, .. } = &mut *state;
        for key in gone {
            Arc::make_mut(live).map_mut(cf).remove(&key);
            Arc::make_mut(flushed).map_mut(cf).remove(&key);
        }
        Ok(())
    }

    /// No files, so one range.
    fn divide(&self, _: Cf, _: &[u8], _: &[u8], _: u64) -> Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    fn key_at(&self, cf: Cf, start: &[u8], end: &[u8], part: f64) -> Result<Vec<u8>> {
        let families = Arc::clone(&self.state.lock().live);
        let rows = || {
            let rows = families.map(cf).range::<_, [u8]>((Bound::Included(start), Bound::Unbounded));
            rows.take_while(|(key, _)| end.is_empty() || key.as_ref() < end)
        };
        let before = (rows().count() as f64 * part.clamp(0.0, 1.0)) as usize;
        Ok(rows().nth(before).map_or_else(|| start.to_vec(), |(key, _)| key.to_vec()))
    }

    fn bytes_on_disk(&self, cf: Cf, start: &[u8], end: &[u8]) -> Result<u64> {
        let families = Arc::clone(&self.state.lock().flushed);
        let rows = families.map(cf).range::<_, [u8]>((Bound::Included(start), Bound::Unbounded));
        let rows = rows.take_while(|(key, _)| end.is_empty() || key.as_ref() < end);
        Ok(rows.map(|(key, value)| (key.len() + value.len()) as u64).sum())
    }

    fn is_strained(&self) -> bool {
        false
    }
}

/// The keys of `[start, end)` that do not pass the filter.
fn gone(map: &Map, start: &[u8], end: &[u8], stays: &mut RecordFilter) -> Vec<Arc<[u8]>> {
    let rows = map.range::<_, [u8]>((Bound::Included(start), Bound::Unbounded));
    let rows = rows.take_while(|(key, _)| end.is_empty() || key.as_ref() < end);
    rows.filter(|(key, value)| !stays(key, value)).map(|(key, _)| Arc::clone(key)).collect()
}

/// Moves rows into `taken` up to the end or the first failure.
fn read_rows(
    start: &[u8],
    end: &[u8],
    rows: &mut dyn Iterator<Item = Result<(Cf, Vec<u8>, Vec<u8>)>>,
    taken: &mut Vec<(Cf, Vec<u8>, Vec<u8>)>,
) -> Result<()> {
    let mut check = RowCheck::new(start, end);
    for row in rows {
        let (cf, key, value) = row?;
        check.accept(cf, &key)?;
        taken.push((cf, key, value));
    }
    Ok(())
}

/// A cursor over one map, which it shares with the snapshot. Every step searches from the root, so both directions cost
/// the same.
struct MemoryCursor {
    map: Map,
    lower: Vec<u8>,
    upper: Vec<u8>,
    at: Option<Entry>,
}

impl MemoryCursor {
    /// Moves to the first key from `from` on, if it is within the bounds.
    fn seek_forward(&mut self, from: Bound<&[u8]>) -> bool {
        let found = self.map.range::<_, [u8]>((from, Bound::Unbounded)).next();
        self.at = found.filter(|(key, _)| self.holds(key)).map(|(key, value)| (Arc::clone(key), Arc::clone(value)));
        self.at.is_some()
    }

    /// Moves to the last key up to `to`, if it is within the bounds.
    fn seek_backward(&mut self, to: Bound<&[u8]>) -> bool {
        let found = self.map.range::<_, [u8]>((Bound::Unbounded, to)).next_back();
        self.at = found.filter(|(key, _)| self.holds(key)).map(|(key, value)| (Arc::clone(key), Arc::clone(value)));
        self.at.is_some()
    }

    /// Whether `key` is within the bounds.
    fn holds(&self, key: &[u8]) -> bool {
        key >= self.lower.as_slice() && (self.upper.is_empty() || key < self.upper.as_slice())
    }
}

impl Cursor for MemoryCursor {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let from = key.max(&self.lower).to_vec();
        Ok(self.seek_forward(Bound::Included(&from)))
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        if self.upper.is_empty() || key < self.upper.as_slice() {
            Ok(self.seek_backward(Bound::Included(key)))
        } else {
            self.seek_to_last()
        }
    }

    fn seek_to_first(&mut self) -> Result<bool> {
        self.seek(&[])
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        let upper = self.upper.clone();
        Ok(self.seek_backward(if upper.is_empty() { Bound::Unbounded } else { Bound::Excluded(&upper) }))
    }

    fn next(&mut self) -> Result<bool> {
        let Some((key, _)) = self.at.take() else { return Ok(false) };
        Ok(self.seek_forward(Bound::Excluded(&key)))
    }

    fn prev(&mut self) -> Result<bool> {
        let Some((key, _)) = self.at.take() else { return Ok(false) };
        Ok(self.seek_backward(Bound::Excluded(&key)))
    }

    #[expect(clippy::expect_used, reason = "documented: the cursor must be valid")]
    fn key(&self) -> &[u8] {
        &self.at.as_ref().expect("the cursor is valid").0
    }

    #[expect(clippy::expect_used, reason = "documented: the cursor must be valid")]
    fn value(&self) -> &[u8] {
        &self.at.as_ref().expect("the cursor is valid").1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &[u8]) -> WriteBatch {
        let mut batch = WriteBatch::new();
        batch.put(Cf::Default, key, b"v");
        batch
    }

    fn keys(store: &MemoryStore) -> usize {
        store.snapshot().families.default.len()
    }

    #[test]
    fn a_failed_write_changes_nothing_and_poisons() {
        let store = MemoryStore::new();
        store.fail_write(2);
        store.write(&put(b"a")).unwrap();
        assert!(matches!(store.write(&put(b"b")), Err(StoreError::Backend(_))));
        assert!(matches!(store.write(&put(b"b")), Err(StoreError::Poisoned(_))));
        assert!(matches!(store.flush(), Err(StoreError::Poisoned(_))));
        assert_eq!(keys(&store), 1);
        store.crash();
        assert_eq!(keys(&store), 0);
        store.write(&put(b"b")).unwrap();
    }

    #[test]
    fn a_failed_flush_keeps_the_old_state() {
        let store = MemoryStore::new();
        store.write(&put(b"a")).unwrap();
        store.flush().unwrap();
        store.write(&put(b"b")).unwrap();
        store.fail_flush(1);
        assert!(matches!(store.flush(), Err(StoreError::Backend(_))));
        assert!(matches!(store.write(&put(b"c")), Err(StoreError::Poisoned(_))));
        assert_eq!(keys(&store), 2);
        store.crash();
        assert_eq!(keys(&store), 1);
        store.flush().unwrap();
    }

    #[test]
    fn a_failed_replacement_leaves_half_of_the_rows_flushed() {
        let store = MemoryStore::new();
        store.write(&put(b"old")).unwrap();
        store.fail_write(1);
        let rows = [b"a", b"b", b"c", b"d"].map(|key| Ok((Cf::Default, key.to_vec(), Vec::new())));
        let failed = store.replace_range(b"", b"", &mut rows.into_iter(), &put(b"last"));
        assert!(matches!(failed, Err(StoreError::Backend(_))));
        store.crash();
        assert_eq!(keys(&store), 2);
        assert_eq!(store.get_flushed(Cf::Default, b"last").unwrap(), None);
    }
}
