//! A transaction, as a session uses it.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use kv::Key;
use kv::client::{Page, ScanRange};
use tso::Timestamp;

use crate::buffer::Buffer;
use crate::clock::Stopwatch;
use crate::database::Shared;
use crate::driver::Commit;
use crate::error::TxnError;

/// A transaction under snapshot isolation: reads see the snapshot at `start_ts` with the transaction's own writes over
/// it; writes are buffered until `commit`. Dropping it without a commit discards the buffer; nothing was sent.
pub struct Transaction {
    shared: Arc<Shared>,
    start_ts: Timestamp,
    begun: Stopwatch,
    buffer: Buffer,
}

impl Transaction {
    pub(crate) fn new(shared: Arc<Shared>, start_ts: Timestamp) -> Transaction {
        let buffer = Buffer::new(shared.config.buffer);
        Transaction { shared, start_ts, begun: Stopwatch::start(), buffer }
    }

    /// The snapshot.
    pub fn start_ts(&self) -> Timestamp {
        self.start_ts
    }

    /// Whether anything was written.
    pub fn is_read_only(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The value of a key.
    pub async fn get(&self, key: &Key) -> Result<Option<Bytes>, TxnError> {
        if let Some(own) = self.buffer.get(key) {
            return Ok(own);
        }
        self.shared.read(self.start_ts, || self.shared.kv.get(key, self.start_ts)).await
    }

    /// The values of many keys, in the order asked; absent keys are left out.
    pub async fn batch_get(&self, keys: &[Key]) -> Result<Vec<(Key, Bytes)>, TxnError> {
        let mut asked: Vec<Key> = keys.iter().filter(|key| self.buffer.get(key).is_none()).cloned().collect();
        asked.sort();
        asked.dedup();
        let found = if asked.is_empty() {
            Vec::new()
        } else {
            self.shared.read(self.start_ts, || self.shared.kv.batch_get(&asked, self.start_ts)).await?
        };
        let found: HashMap<Key, Bytes> = found.into_iter().collect();
        let value = |key: &Key| self.buffer.get(key).unwrap_or_else(|| found.get(key).cloned());
        Ok(keys.iter().filter_map(|key| Some((key.clone(), value(key)?))).collect())
    }

    /// The values of many keys in key order, as far as they fit about one page: `resume` is the first key that was left
    /// out. For callers that work through many values without need of all at once.
    pub async fn batch_get_page(&self, keys: &[Key]) -> Result<Page, TxnError> {
        let (own, asked): (Vec<&Key>, Vec<&Key>) = keys.iter().partition(|key| self.buffer.get(key).is_some());
        let asked: Vec<Key> = asked.into_iter().cloned().collect();
        let mut page = if asked.is_empty() {
            Page { pairs: Vec::new(), resume: None }
        } else {
            self.shared.read(self.start_ts, || self.shared.kv.batch_get_page(&asked, self.start_ts)).await?
        };
        let resume = page.resume.clone();
        let covered = own.into_iter().filter(|key| resume.as_ref().is_none_or(|resume| *key < resume));
        page.pairs.extend(covered.filter_map(|key| Some((key.clone(), self.buffer.get(key)??))));
        page.pairs.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        page.pairs.dedup_by(|(a, _), (b, _)| a == b);
        Ok(page)
    }

    /// A page of a range, own writes merged in, at most `limit` pairs (a page may be shorter, even empty, with `resume`
    /// given). A limit of 0 counts as 1.
    pub async fn scan(&self, range: &ScanRange, limit: u32) -> Result<Page, TxnError> {
        let limit = limit.max(1);
        let page = self.shared.read(self.start_ts, || self.shared.kv.scan(range, self.start_ts, limit)).await?;
        Ok(self.buffer.merge(range, page, usize::try_from(limit).unwrap_or(usize::MAX)))
    }

    /// Buffers a value.
    pub fn put(&mut self, key: Key, value: Bytes) -> Result<(), TxnError> {
        self.buffer.put(key, value)
    }

    /// Buffers a value for a key that must not exist at commit. A key that this transaction itself wrote is checked at
    /// once; one it deleted becomes a plain put.
    pub fn insert(&mut self, key: Key, value: Bytes) -> Result<(), TxnError> {
        self.buffer.insert(key, value)
    }

    /// Buffers a removal.
    pub fn delete(&mut self, key: Key) -> Result<(), TxnError> {
        self.buffer.delete(key)
    }

    /// Makes the commit conflict with any later change of `key` without changing it.
    pub fn lock(&mut self, key: Key) -> Result<(), TxnError> {
        self.buffer.lock(key)
    }

    /// A mark of the buffer to return to when a statement fails.
    pub fn savepoint(&self) -> usize {
        self.buffer.savepoint()
    }

    /// Undoes every write since `savepoint`.
    pub fn rollback_to(&mut self, savepoint: usize) {
        self.buffer.rollback_to(savepoint);
    }

    /// Commits: `Ok(None)` when nothing was written, else the commit_ts. Once the future was polled, the commit runs in
    /// a task of its own: dropping the future does not stop it, only its outcome is then not learnt.
    pub async fn commit(self) -> Result<Option<Timestamp>, TxnError> {
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let Transaction { shared, start_ts, begun, buffer } = self;
        shared.commit(Commit { start_ts, begun, mutations: buffer.into_mutations() }).await
    }
}
