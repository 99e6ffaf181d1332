//! A transaction, as a session uses it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::TryFutureExt;
use kv::Key;
use kv::api::{LockInfo, LockMode, LockedRow, RowFound};
use kv::client::{FirstRead, Page, ProofPolicy, ReadOptions, ReplicaPolicy, ScanRange, Snapshot};
use tso::Timestamp;

use crate::bound::CommitBound;
use crate::buffer::{View, WriteBuffer};
use crate::coordinator::{Coordinator, in_time, patience_of};
use crate::driver::{self, CommitRequest};
use crate::error::TxnError;
use crate::live_snapshots::LiveSnapshot;
use crate::renewed::Renewed;
use crate::row_locks::{LockAsk, RowLocks};
use crate::shadow::Sample;

/// The snapshot of a statement, which its first read takes.
#[derive(Clone, Debug, Default)]
pub struct StatementSnapshot(OnceLock<Timestamp>);

/// A position in a transaction to which it can go back. The default is its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savepoint {
    buffer: usize,
    locks: usize,
    renewed: usize,
}

/// A transaction under snapshot isolation. Reads see the snapshot at `start_ts` with the transaction's own writes laid
/// over it. Writes are buffered until [`Transaction::commit`]. Dropping the transaction without a commit discards the
/// buffer, and gives up its row locks.
///
/// # Statements
/// With [`Transaction::begin_statement`] every statement reads a snapshot of its own, as under READ COMMITTED. start_ts
/// is then only the identity of the transaction. Such a transaction locks every row that it writes
/// ([`Transaction::lock_rows`]), and writes what follows from the newest row; otherwise its commit conflicts with
/// every change since start_ts.
///
/// Of a transaction with one snapshot, [`Transaction::renew_snapshot_of`] moves that of some keys.
///
/// # start_ts
/// A transaction that is begun with [`crate::Database::begin_deferred`] takes start_ts when it needs it: with its first
/// read, else with its commit. If the first read is of one key or of a range, the store that serves it takes the
/// timestamp ([`kv::client::Client::first_get`]), and no message is sent for it.
///
/// # Snapshots that others share
/// A writer is named by its start_ts, which no other transaction has. A transaction whose start_ts may be that of
/// others never writes: one in the past ([`crate::Database::begin_at`]), or one with reads that say so
/// ([`Transaction::set_reads`]).
///
/// # Errors of reads
/// Every read may fail with:
/// - [`TxnError::Conflict`]: it met locks of other transactions for longer than [`crate::TxnConfig::read_lock_wait`]
///   (20 s by default).
/// - [`TxnError::Unavailable`]: no replica served in time, or no oracle did, for start_ts or while a lock was resolved.
/// - [`TxnError::SnapshotTooOld`]: garbage collection has passed the snapshot. No other snapshot of it can be read.
/// - [`TxnError::Internal`]: a defect, damaged data, or a request that every store refuses, such as a key or a response
///   above the largest message.
///
/// The transaction stays usable after each of them.
///
/// # Errors of writes
/// Every write may fail with [`TxnError::RowTooLarge`], if the key or the value exceeds [`crate::BufferLimits`], and
/// with [`TxnError::TooLarge`], if the number of keys or the buffered bytes do. The buffer is then unchanged and the
/// transaction stays usable.
///
/// # Panics
/// A write of a transaction that shares its snapshot panics.
///
/// Outside of a tokio runtime, a commit panics if it has something to send, and a read if it has to wait for a timer.
///
/// # Cancel safety
/// The future of a read may be dropped at any time: reads change nothing in the transaction. Writes do not wait. For
/// the commit see [`Transaction::commit`].
pub struct Transaction {
    coordinator: Arc<Coordinator>,
    /// Its identity. Set once, and never to [`Timestamp::ZERO`].
    start_ts: OnceLock<Timestamp>,
    /// What its reads see. Set once for a statement, if statements have snapshots of their own, else with start_ts.
    read_ts: OnceLock<Timestamp>,
    /// Whether every statement has a snapshot of its own.
    has_statements: bool,
    /// What its reads see at another snapshot. Empty if every statement has its own.
    renewed: Renewed,
    buffer: WriteBuffer,
    /// Its row locks in memory. `None`: it has asked for none.
    locks: Option<RowLocks>,
    /// Its session, for people.
    session: u32,
    /// Another name under which its session holds locks.
    companion: Option<Timestamp>,
    /// How far it looks back.
    live: LiveSnapshot,
    is_single_statement: bool,
    bound: Option<CommitBound>,
    /// How its reads choose their replicas. `None`: leaders serve them.
    reads: Option<Arc<ReadOptions>>,
    /// Whether other transactions may have the same start_ts. Then the buffer is empty. Never unset.
    is_shared: bool,
}

impl Transaction {
    /// A transaction at this start_ts. `None`: it takes one later. It has entered as `live` before it had any.
    pub(crate) fn new(coordinator: Arc<Coordinator>, live: LiveSnapshot, start_ts: Option<Timestamp>) -> Transaction {
        let buffer = WriteBuffer::new(coordinator.config.buffer);
        let start_ts = start_ts.map_or_else(OnceLock::new, OnceLock::from);
        Transaction {
            coordinator,
            read_ts: start_ts.clone(),
            start_ts,
            has_statements: false,
            renewed: Renewed::default(),
            buffer,
            locks: None,
            session: 0,
            companion: None,
            live,
            is_single_statement: false,
            bound: None,
            reads: None,
            is_shared: false,
        }
    }

    /// The same with a start_ts that other transactions may have too.
    pub(crate) fn shared(mut self) -> Transaction {
        self.is_shared = true;
        self
    }

    /// Sets how the reads that follow choose their replicas. With `read_only` or a `floor` the transaction shares its
    /// snapshot from here on, and never writes.
    ///
    /// # Panics
    /// If it has written, and would share its snapshot.
    pub fn set_reads(&mut self, reads: Option<Arc<ReadOptions>>) {
        self.is_shared |= reads.as_ref().is_some_and(|reads| reads.read_only || reads.floor.is_some());
        assert!(!self.is_shared || self.buffer.is_empty(), "a writer does not share its snapshot");
        self.reads = reads;
    }

    /// How its reads choose their replicas, and what they report. `None`: leaders serve them.
    pub fn reads(&self) -> Option<&Arc<ReadOptions>> {
        self.reads.as_ref()
    }

    /// Whether it has nothing to commit.
    pub fn is_unwritten(&self) -> bool {
        self.buffer.is_empty()
    }

    fn check_writes(&self) {
        assert!(!self.is_shared, "a transaction with a shared snapshot writes");
    }

    /// The timestamp of the snapshot, and the identity of the transaction. [`Timestamp::ZERO`] as long as it has none.
    pub fn start_ts(&self) -> Timestamp {
        self.start_ts.get().copied().unwrap_or(Timestamp::ZERO)
    }

    /// The snapshot that its reads see. [`Timestamp::ZERO`] as long as there is none: the next read takes it.
    pub fn read_ts(&self) -> Timestamp {
        self.read_ts.get().copied().unwrap_or(Timestamp::ZERO)
    }

    /// Begins a statement with a snapshot of its own, as under READ COMMITTED: every commit acknowledged before its
    /// first read is in it. The caller keeps no cursor of an earlier one.
    pub fn begin_statement(&mut self) {
        if self.has_statements {
            let here = self.coordinator.tso.try_timestamp().filter(|_| !self.is_shared);
            self.read_ts = here.map_or_else(OnceLock::new, OnceLock::from);
        }
        self.has_statements = true;
    }

    /// A transaction that reads: its snapshot contains every commit acknowledged before the first poll of the future.
    ///
    /// # Errors
    /// As [`crate::Database::begin`].
    pub async fn newest(&self) -> Result<Transaction, TxnError> {
        let live = self.coordinator.live_snapshots.enter(&self.coordinator.tso);
        let start_ts = self.coordinator.tso.timestamp().await?;
        Ok(Transaction::new(Arc::clone(&self.coordinator), live, Some(start_ts)))
    }

    /// The snapshot of the statement, to be set again after others have run.
    pub fn statement(&self) -> StatementSnapshot {
        StatementSnapshot(self.read_ts.clone())
    }

    /// Goes on with a statement, if every one has a snapshot of its own.
    pub fn set_statement(&mut self, snapshot: StatementSnapshot) {
        if self.has_statements {
            self.read_ts = snapshot.0;
        }
    }

    /// Says whose transaction it is: reports of deadlocks name the session, and so does what holds back the safe point.
    pub fn set_session(&mut self, session: u32) {
        self.session = session;
        self.live.set_session(session);
    }

    /// Says under which other name its session holds locks ([`crate::SessionLocks`]). They stay while this transaction
    /// waits for a row, so that a deadlock may go through both.
    pub fn set_companion(&mut self, companion: Option<Timestamp>) {
        self.companion = companion;
    }

    /// Whether every statement has a snapshot of its own.
    pub fn has_statements(&self) -> bool {
        self.has_statements
    }

    /// Takes start_ts now, if the transaction has none. Returns it. Waits no longer than the patience of its reads, if
    /// replicas serve them.
    ///
    /// # Errors
    /// As [`crate::Database::begin`].
    pub async fn take_start_ts(&self) -> Result<Timestamp, TxnError> {
        match self.start_ts.get() {
            Some(start_ts) => Ok(*start_ts),
            None => self.take_read_ts().await,
        }
    }

    /// Takes the snapshot now, if there is none. Returns it. Otherwise as [`Transaction::take_start_ts`].
    ///
    /// # Errors
    /// As [`crate::Database::begin`].
    pub async fn take_read_ts(&self) -> Result<Timestamp, TxnError> {
        if let Some(read_ts) = self.read_ts.get() {
            return Ok(*read_ts);
        }
        if let Some(here) = self.coordinator.tso.try_timestamp() {
            return Ok(self.set_read_ts(here));
        }
        let taken =
            in_time(patience_of(self.reads.as_ref()), self.coordinator.tso.timestamp().map_err(TxnError::from)).await?;
        self.reads.iter().for_each(|reads| reads.trace.add_wait());
        Ok(self.set_read_ts(taken))
    }

    /// Sets the snapshot, unless there is one. The first one is start_ts too.
    fn set_read_ts(&self, taken: Timestamp) -> Timestamp {
        let read_ts = *self.read_ts.get_or_init(|| taken);
        self.start_ts.get_or_init(|| read_ts);
        read_ts
    }

    /// If there is no snapshot, performs the first read of it, which takes it, and returns what that has found.
    /// Otherwise, or if the read found no store that serves it, sees to it that there is a snapshot, and returns the
    /// locks that are in the way. All of it within the patience of the reads.
    async fn first_read<T>(
        &self,
        read: impl Future<Output = Option<FirstRead<T>>>,
    ) -> Result<Result<T, Vec<LockInfo>>, TxnError> {
        match patience_of(self.reads.as_ref()).filter(|_| self.read_ts.get().is_none()) {
            // Plain reads do not pay for the size of this future.
            Some(patience) => Box::pin(in_time(Some(patience), self.read_first(read))).await,
            None => self.read_first(read).await,
        }
    }

    async fn read_first<T>(
        &self,
        read: impl Future<Output = Option<FirstRead<T>>>,
    ) -> Result<Result<T, Vec<LockInfo>>, TxnError> {
        if self.read_ts.get().is_none()
            && let Some(FirstRead { start_ts, outcome }) = read.await
        {
            // A snapshot without a proof says nothing about the oracle.
            if self.reads.as_ref().is_none_or(|reads| reads.proof != ProofPolicy::Unproven) {
                self.coordinator.tso.note(start_ts);
            }
            // Of two first reads at a time, one counts.
            if self.read_ts.set(start_ts).is_ok() {
                // A replica may have taken one of the past.
                self.live.lower(start_ts);
                self.start_ts.get_or_init(|| start_ts);
                self.coordinator.metrics.first_reads.inc();
                return Ok(outcome);
            }
        }
        self.take_read_ts().await?;
        Ok(Err(Vec::new()))
    }

    /// Takes the snapshot for a read of several keys. If a replica takes the snapshot, a read of one of them asks it.
    async fn start_with(&self, key: &Key) -> Result<Timestamp, TxnError> {
        let by_replica = |reads: &Arc<ReadOptions>| {
            reads.floor.is_some() || (reads.read_only && reads.replica != ReplicaPolicy::Leader)
        };
        if self.read_ts.get().is_none() && self.reads.as_ref().is_some_and(by_replica) {
            // What it finds is read again, together with the other keys.
            let _ = Box::pin(self.first_read(self.coordinator.kv.first_get(key, self.reads.as_deref()))).await?;
        }
        self.take_read_ts().await
    }

    /// Has all that follows see these ranges as they are now, and all else in the snapshot that it has. What was read
    /// there before may have changed. A rollback to an earlier savepoint undoes it. The keys of one call of
    /// [`Transaction::lock_rows`] are to have the same snapshot.
    ///
    /// Does nothing if every statement has a snapshot of its own: that of the next one is newer.
    ///
    /// # Errors
    /// As [`crate::Database::begin`].
    pub async fn renew_snapshot_of(&mut self, ranges: Vec<ScanRange>) -> Result<(), TxnError> {
        if self.has_statements {
            return Ok(());
        }
        self.take_read_ts().await?;
        let now = self.coordinator.tso.timestamp().await?;
        self.renewed.extend(ranges, now);
        Ok(())
    }

    /// The snapshot in which its reads see a key. `None` as long as there is none.
    fn read_ts_of(&self, key: &Key) -> Option<Timestamp> {
        self.renewed.at(key).or_else(|| self.read_ts.get().copied())
    }

    /// The keys at the start of `keys` that are read in one snapshot, and the others.
    fn of_one_snapshot<'k>(&self, keys: &'k [Key]) -> (&'k [Key], &'k [Key]) {
        let Some(first) = keys.first().filter(|_| !self.renewed.is_empty()) else { return (keys, &[]) };
        let at = self.read_ts_of(first);
        keys.split_at(keys.iter().take_while(|key| self.read_ts_of(key) == at).count())
    }

    /// What its reads of a key see, and who serves them.
    fn snapshot_of(&self, key: &Key) -> Snapshot {
        let start_ts = self.read_ts_of(key).unwrap_or(Timestamp::ZERO);
        Snapshot { start_ts, pass: Vec::new(), options: self.reads.clone(), locks_met: false }
    }

    /// Reads the value of a key; `None` if it does not exist. Sends nothing if this transaction wrote the key.
    ///
    /// # Errors
    /// See [`Transaction`].
    pub async fn get(&self, key: &Key) -> Result<Option<Bytes>, TxnError> {
        if let Some(value) = self.try_get(key) {
            // A caller in a loop yields to other tasks now and then, although it never waits.
            tokio::task::coop::consume_budget().await;
            return Ok(value);
        }
        let kv = &self.coordinator.kv;
        let value = match self.first_read(kv.first_get(key, self.reads.as_deref())).await? {
            Ok(value) => value,
            Err(met) => self.coordinator.read(self.snapshot_of(key), met, |at| kv.get(key, at)).await?,
        };
        self.shadow_get(key, value.as_ref());
        Ok(value)
    }

    /// Has a read from `key` on that was served perhaps compared with the leader's.
    fn shadow(&self, key: &Key, sample: impl FnOnce() -> Sample) {
        let at = self.read_ts_of(key).unwrap_or(Timestamp::ZERO);
        self.coordinator.shadow(self.reads.as_ref(), at, sample);
    }

    fn shadow_get(&self, key: &Key, value: Option<&Bytes>) {
        let found = || value.map(|value| (key.clone(), value.clone())).into_iter().collect();
        self.shadow(key, || Sample::Keys(vec![key.clone()], found()));
    }

    /// Reads the value of a key within this call, if that takes neither a message nor a wait. Otherwise returns `None`,
    /// and [`Transaction::get`] is the way.
    pub fn try_get(&self, key: &Key) -> Option<Option<Bytes>> {
        if let Some(own) = self.buffer.get(key) {
            return Some(own);
        }
        let value = self.coordinator.kv.try_get(key, self.read_ts_of(key)?, self.reads.as_deref())?;
        self.shadow_get(key, value.as_ref());
        Some(value)
    }

    /// Reads the values of many keys, in the order of `keys`, which need not be sorted or distinct. Absent keys are
    /// left out. All values are held in memory at once; see [`Transaction::batch_get_page`] for a bounded variant.
    ///
    /// # Errors
    /// See [`Transaction`].
    pub async fn batch_get(&self, keys: &[Key]) -> Result<Vec<(Key, Bytes)>, TxnError> {
        let mut remote: Vec<Key> = keys.iter().filter(|key| self.buffer.get(key).is_none()).cloned().collect();
        remote.sort();
        remote.dedup();
        let found = match remote.as_slice() {
            [] => Vec::new(),
            [key] => self.get(key).await?.map(|value| (key.clone(), value)).into_iter().collect(),
            remote => {
                self.start_with(&remote[0]).await?;
                let (keys, mut rest) = self.of_one_snapshot(remote);
                let mut found = self.batch_get_at(keys).await?;
                while !rest.is_empty() {
                    let (keys, others) = self.of_one_snapshot(rest);
                    found.append(&mut self.batch_get_at(keys).await?);
                    rest = others;
                }
                found
            }
        };
        let found: HashMap<Key, Bytes> = found.into_iter().collect();
        let value = |key: &Key| self.buffer.get(key).unwrap_or_else(|| found.get(key).cloned());
        Ok(keys.iter().filter_map(|key| Some((key.clone(), value(key)?))).collect())
    }

    /// Reads keys of one snapshot that the transaction has not written: distinct ones, at least one.
    async fn batch_get_at(&self, keys: &[Key]) -> Result<Vec<(Key, Bytes)>, TxnError> {
        let kv = &self.coordinator.kv;
        let read = |at| kv.batch_get(keys, at);
        let found = self.coordinator.read(self.snapshot_of(&keys[0]), Vec::new(), read).await?;
        self.shadow(&keys[0], || Sample::Keys(keys.to_vec(), found.clone()));
        Ok(found)
    }

    /// Reads the values of many keys, in key order, as far as they fit about one page
    /// ([`kv::client::ClientConfig::page_bytes`]); buffered values do not count. `keys` need not be sorted or distinct.
    /// `resume` is the smallest key that was not looked up: the caller asks again for the keys from there. Absent keys
    /// are left out.
    ///
    /// # Errors
    /// See [`Transaction`].
    pub async fn batch_get_page(&self, keys: &[Key]) -> Result<Page, TxnError> {
        let (own, remote): (Vec<&Key>, Vec<&Key>) = keys.iter().partition(|key| self.buffer.get(key).is_some());
        let mut remote: Vec<Key> = remote.into_iter().cloned().collect();
        if !self.renewed.is_empty() {
            remote.sort();
        }
        let mut page = match remote.as_slice() {
            [] => Page { pairs: Vec::new(), resume: None },
            [key] => {
                let pair = self.get(key).await?.map(|value| (key.clone(), value));
                Page { pairs: pair.into_iter().collect(), resume: None }
            }
            remote => {
                self.start_with(&remote[0]).await?;
                let kv = &self.coordinator.kv;
                let (keys, others) = self.of_one_snapshot(remote);
                let read = |at| kv.batch_get_page(keys, at);
                let page = self.coordinator.read(self.snapshot_of(&keys[0]), Vec::new(), read).await?;
                self.shadow(&keys[0], || Sample::keys_of_page(keys, &page));
                Page { resume: page.resume.or_else(|| others.first().cloned()), ..page }
            }
        };
        let resume = page.resume.clone();
        let covered = own.into_iter().filter(|key| resume.as_ref().is_none_or(|resume| *key < resume));
        page.pairs.extend(covered.filter_map(|key| Some((key.clone(), self.buffer.get(key)??))));
        page.pairs.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        page.pairs.dedup_by(|(a, _), (b, _)| a == b);
        Ok(page)
    }

    /// Reads one page of a range, own writes included: at most `limit` pairs (0 counts as 1), in the direction of the
    /// range, all of them in the snapshot of its start. A page may be shorter, even empty, while `resume` is set: the
    /// caller continues with [`ScanRange::resume_at`] until it is not.
    ///
    /// # Errors
    /// See [`Transaction`].
    pub async fn scan(&self, range: &ScanRange, limit: u32) -> Result<Page, TxnError> {
        let limit = limit.max(1);
        let kv = &self.coordinator.kv;
        let page = match self.first_read(kv.first_scan(range, limit, self.reads.as_deref())).await? {
            Ok(page) => page,
            Err(met) => {
                self.coordinator.read(self.snapshot_of(&range.start), met, |at| kv.scan(range, at, limit)).await?
            }
        };
        self.shadow(&range.start, || Sample::page(range, &page));
        Ok(self.buffer.merge(range, page, usize::try_from(limit).unwrap_or(usize::MAX)))
    }

    /// Buffers a value for a key, whether the key exists or not.
    ///
    /// # Errors
    /// [`TxnError::TooLarge`]; see [`Transaction`].
    pub fn put(&mut self, key: Key, value: Bytes) -> Result<(), TxnError> {
        self.check_writes();
        let seen_ts = self.seen_ts(&key);
        self.buffer.put(key, value, seen_ts)
    }

    /// Buffers a value for a key that must not exist at commit. A key that this transaction has written is checked at
    /// once; for one that it has deleted this is a plain put, unless it had inserted the key before.
    ///
    /// # Errors
    /// [`TxnError::AlreadyExists`] if this transaction has written the key, [`TxnError::TooLarge`]; see
    /// [`Transaction`].
    pub fn insert(&mut self, key: Key, value: Bytes) -> Result<(), TxnError> {
        self.check_writes();
        let seen_ts = self.seen_ts(&key);
        self.buffer.insert(key, value, seen_ts)
    }

    /// Buffers the removal of a key, whether it exists or not.
    ///
    /// # Errors
    /// [`TxnError::TooLarge`]; see [`Transaction`].
    pub fn delete(&mut self, key: Key) -> Result<(), TxnError> {
        self.check_writes();
        let seen_ts = self.seen_ts(&key);
        self.buffer.delete(key, seen_ts)
    }

    /// As [`Transaction::put`], for a key that nobody writes without writing `owner` too: the entry of a row in an
    /// index. So what was seen of the owner was seen of the key, which need not be locked.
    ///
    /// # Errors
    /// [`TxnError::TooLarge`]; see [`Transaction`].
    pub fn put_owned(&mut self, key: Key, value: Bytes, owner: &Key) -> Result<(), TxnError> {
        self.check_writes();
        let seen_ts = self.seen_ts_of_owner(owner);
        self.buffer.put(key, value, seen_ts)
    }

    /// As [`Transaction::delete`], for a key as in [`Transaction::put_owned`].
    ///
    /// # Errors
    /// [`TxnError::TooLarge`]; see [`Transaction`].
    pub fn delete_owned(&mut self, key: Key, owner: &Key) -> Result<(), TxnError> {
        self.check_writes();
        let locked = self.locks.as_ref().and_then(|locks| locks.seen_ts(&key));
        let seen_ts = locked.or_else(|| self.seen_ts_of_owner(owner));
        self.buffer.delete(key, seen_ts)
    }

    /// Buffers a lock: the commit conflicts with any change of `key` after `start_ts`, without changing the key. A key
    /// that is written is locked anyway.
    ///
    /// # Errors
    /// [`TxnError::TooLarge`]; see [`Transaction`].
    pub fn lock(&mut self, key: Key) -> Result<(), TxnError> {
        self.check_writes();
        let seen_ts = self.seen_ts(&key);
        self.buffer.lock(key, seen_ts)
    }

    /// What a write of a row follows from: the newest commit when it was locked, else the snapshot of the statement.
    /// `None`: start_ts.
    fn seen_ts(&self, key: &Key) -> Option<Timestamp> {
        let locked = self.locks.as_ref().and_then(|locks| locks.seen_ts(key));
        let read = || self.read_ts.get().copied().filter(|_| self.has_statements);
        locked.or_else(|| self.renewed.at(key)).or_else(read)
    }

    /// What was seen of the keys of an owner. Nothing was committed to a locked owner between the commit that was seen
    /// and the lock, so what the transaction has seen until then counts. That of the owner alone would not do: its
    /// record may be collected while those of its keys are not.
    fn seen_ts_of_owner(&self, owner: &Key) -> Option<Timestamp> {
        let seen = self.seen_ts(owner)?;
        let own = [self.start_ts.get().copied(), self.read_ts.get().copied(), self.renewed.at(owner)];
        Some(own.into_iter().flatten().fold(seen, Timestamp::max))
    }

    /// Locks rows in the memory of their leaders, in the order of `keys`, which are distinct. Returns what became of
    /// each. Waits for other transactions as `ask` says. A row that is written is to be locked before. The commit of a
    /// transaction that writes confirms locks that others may share ([`Transaction::share`]).
    ///
    /// # Errors
    /// - [`TxnError::TooLarge`]: there are too many that the commit would have to confirm. They are locked.
    /// - [`TxnError::Conflict`]: the row has changed since the snapshot of the transaction, if that has one for all
    ///   statements. For a shared key: the row is gone.
    /// - [`TxnError::AlreadyExists`]: a row exists that must not ([`Presence::MustBeAbsent`](kv::api::Presence)).
    /// - [`TxnError::NotAvailable`], [`TxnError::LockTimeout`]: another transaction has the lock.
    /// - [`TxnError::Deadlock`]: it waits for this one.
    /// - [`TxnError::Unavailable`], [`TxnError::Internal`]: as for reads.
    ///
    /// # Cancel safety
    /// The future may be dropped. Rows may be locked then; they are released with the transaction.
    pub async fn lock_rows(&mut self, keys: Vec<Key>, ask: LockAsk) -> Result<Vec<LockedRow>, TxnError> {
        self.check_writes();
        // As a name for its locks, one that was fetched before will do.
        if self.has_statements
            && self.start_ts.get().is_none()
            && let Some(ahead) = self.coordinator.take_ahead(&self.live)
        {
            self.start_ts.get_or_init(|| ahead);
        }
        let start_ts = self.take_start_ts().await?;
        let renewed = keys.first().and_then(|key| self.renewed.at(key));
        let snapshot = if self.has_statements { None } else { renewed.or(Some(start_ts)) };
        let seen_ts = match renewed {
            Some(renewed) if ask.was_read => renewed,
            None if ask.was_read => self.take_read_ts().await?,
            _ => Timestamp::ZERO,
        };
        // Whoever shares the key of a row of its snapshot does not mind that the rest of it has changed.
        let only_key = snapshot.is_some() && ask.was_read && ask.mode == LockMode::KeyShare;
        let snapshot = snapshot.filter(|_| !only_key);
        let locks = self.locks.get_or_insert_with(|| RowLocks::new(&self.coordinator, start_ts, self.session));
        locks.set_companion(self.companion);
        if ask.mode >= LockMode::NoKeyUpdate {
            return locks.acquire(keys, ask, (snapshot, seen_ts)).await;
        }
        let mut rows = locks.acquire(keys.clone(), ask, (snapshot, seen_ts)).await?;
        for row in rows.iter_mut().filter(|_| only_key) {
            match row.row {
                RowFound::Present(_) => row.row = RowFound::Unchanged,
                RowFound::Absent => return Err(TxnError::Conflict(format!("a row was deleted after {start_ts}"))),
                RowFound::Unchanged | RowFound::Skipped => {}
            }
        }
        for (key, _) in keys.into_iter().zip(&rows).filter(|(_, row)| row.is_locked) {
            self.share(key, ask.mode)?;
        }
        Ok(rows)
    }

    /// How the transaction has locked a row in the memory of its leader, as far as it knows.
    pub fn row_lock(&self, key: &Key) -> Option<LockMode> {
        self.locks.as_ref().and_then(|locks| locks.mode(key))
    }

    /// Has the commit depend on the lock that the transaction has on a row, which it changes or deletes: if the lock is
    /// lost before, with its leader, by a split or because this node was not heard of, the commit is a conflict. To be
    /// called before the transaction looks at what only that lock keeps others from adding: they leave no trace on the
    /// row. Does nothing for a row that the transaction has not locked.
    pub fn rely_on_lock(&mut self, key: &Key) {
        if let Some(locks) = &mut self.locks {
            locks.rely_on(key);
        }
    }

    /// Has the commit confirm a row lock below [`LockMode::Update`] that the transaction has taken: it fails if the row
    /// has changed since in a way that the lock forbids, and until it is decided, nobody changes it so. Without any
    /// write there is nothing to confirm. [`Transaction::lock_rows`] does it for locks below
    /// [`LockMode::NoKeyUpdate`].
    ///
    /// # Errors
    /// [`TxnError::TooLarge`]; see [`Transaction`].
    ///
    /// # Panics
    /// Nobody shares a lock of [`LockMode::Update`]: [`Transaction::lock`] confirms it.
    pub fn share(&mut self, key: Key, mode: LockMode) -> Result<(), TxnError> {
        assert!(mode < LockMode::Update, "nobody shares it");
        self.check_writes();
        // With one snapshot for all statements, the transaction relies on the row of that snapshot, although a shared
        // key may have been seen with a newer row.
        let snapshot = self.start_ts.get().copied().filter(|_| !self.has_statements);
        let snapshot = self.renewed.at(&key).or(snapshot);
        let seen_ts = self.seen_ts(&key).map(|seen| snapshot.map_or(seen, |snapshot| seen.min(snapshot)));
        self.buffer.share(key, mode, seen_ts)
    }

    /// Whether the transaction has written a key of a range.
    pub fn has_written_in(&self, range: &ScanRange) -> bool {
        self.buffer.has_changes_in(range)
    }

    /// Whether the transaction has written the row.
    pub fn has_written(&self, key: &Key) -> bool {
        self.buffer.get(key).is_some()
    }

    /// The keys that must not exist at the commit, with the values that they are to get: what was to be written where
    /// the commit fails with [`TxnError::AlreadyExists`]. Empty for a transaction with more than 1024 changes: every
    /// commit pays for it.
    pub fn inserts(&self) -> Vec<(Key, Bytes)> {
        self.buffer.inserts()
    }

    /// Returns a position for [`Transaction::rollback_to`], for instance before each statement. Costs no memory until a
    /// key is changed or locked after it.
    pub fn savepoint(&self) -> Savepoint {
        let locks = self.locks.as_ref().map_or(0, RowLocks::savepoint);
        Savepoint { buffer: self.buffer.savepoint(), locks, renewed: self.renewed.savepoint() }
    }

    /// The number of changes that can be undone: grows with each key that is written.
    pub fn changes(&self) -> usize {
        self.buffer.changes()
    }

    /// Undoes every write since `savepoint`, which stays valid, and gives up the rows that were locked since, in the
    /// background. Later savepoints become invalid.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        self.buffer.rollback_to(savepoint.buffer);
        self.renewed.rollback_to(savepoint.renewed);
        if let Some(locks) = &mut self.locks {
            locks.rollback_to(savepoint.locks);
        }
    }

    /// Waits until the rows are free that a rollback to a savepoint gives up, a second at most. To be awaited before a
    /// client is told, which may tell another one.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time: the rows are given up all the same.
    pub async fn locks_released(&mut self) {
        if let Some(locks) = &mut self.locks {
            locks.released().await;
        }
    }

    /// Gives up all row locks, and waits for it as [`Transaction::locks_released`]. For a transaction that ends without
    /// a commit.
    pub async fn release_locks(&mut self) {
        if let Some(locks) = &mut self.locks {
            locks.rollback_to(0);
            locks.released().await;
        }
    }

    /// A view of the transaction as it is now, for a reader that must not see later writes of this transaction. Costs
    /// no memory until a key is changed after it. A rollback to an earlier savepoint invalidates it.
    pub fn view(&self) -> View {
        self.buffer.view()
    }

    /// Lets reads use `view` until the next call; `None` for the newest state. Returns the view that was set, to be
    /// set again later. Writes are not affected. A reader that is dropped in between leaves its view behind: set
    /// `None` before other reads, or drop the transaction.
    pub fn set_view(&mut self, view: Option<View>) -> Option<View> {
        self.buffer.set_view(view)
    }

    /// Says that the transaction is one statement, which arrived before the transaction began and is complete. Its
    /// commit then needs no other timestamp. Otherwise one is fetched when the commit begins, so that the commit comes
    /// after every commit that was acknowledged before.
    pub fn set_single_statement(&mut self) {
        self.is_single_statement = true;
    }

    /// Sets the greatest commit_ts. If the commit gets a greater one, it fails with [`TxnError::Conflict`]. The limit
    /// counts at the moment when the commit_ts is known, so its owner may raise it until then.
    pub fn set_commit_bound(&mut self, bound: CommitBound) {
        self.bound = Some(bound);
    }

    /// Commits the transaction. Returns the commit_ts, or `None` if nothing had to be committed: the buffer is empty or
    /// holds only checks that a key does not exist. Nothing is sent if it is empty, or holds only locks that are
    /// shared.
    ///
    /// Answers at the commit point. The secondaries, or the locks of a failed commit, are cleaned up in the background;
    /// with more than [`crate::TxnConfig::background`] such tasks, before the answer.
    ///
    /// # Errors
    /// - [`TxnError::Conflict`]: another transaction committed one of the keys after `start_ts` or holds a lock on it,
    ///   or our locks expired, or the commit_ts is above the transaction's bound. Nothing was committed.
    /// - [`TxnError::AlreadyExists`]: an inserted key exists. Nothing was committed.
    /// - [`TxnError::TooLarge`]: a region rejects a request for its size. Nothing was committed.
    /// - [`TxnError::Unavailable`]: a region or the oracle did not serve in time. Nothing was committed.
    /// - [`TxnError::Undetermined`]: the commit of the primary may have been delivered, and its outcome is unknown: no
    ///   answer came in time, or a later attempt was refused for good. The transaction may be committed now, later, or
    ///   never.
    /// - [`TxnError::Internal`]: a defect, damaged data, or a request that every store refuses. Nothing was committed.
    ///
    /// # Cancel safety
    /// The first poll starts the commit. Dropping the future after that does not stop it: it goes on in a task of its
    /// own, and the caller only loses its outcome. Dropping the future before the first poll commits nothing.
    pub async fn commit(self) -> Result<Option<Timestamp>, TxnError> {
        if !self.buffer.is_empty() {
            self.check_writes();
        }
        let Transaction { coordinator, start_ts, buffer, is_single_statement, bound, locks, live, .. } = self;
        let (start_ts, mut mutations) = (start_ts.into_inner(), buffer.into_mutations());
        if let Some(locks) = &locks {
            mutations.iter_mut().for_each(|mutation| mutation.lock = locks.relied_on(&mutation.key));
        }
        if mutations.is_empty() {
            if let Some(locks) = locks {
                locks.end().await;
            }
            return Ok(None);
        }
        let request = CommitRequest { start_ts, mutations, is_single_statement, bound, locks, live };
        driver::commit(coordinator, request).await
    }
}
