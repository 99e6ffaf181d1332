//! The row locks of a transaction, in the memory of the leaders: taken, waited for, kept and given up.
//!
//! A row that a transaction asks for counts as perhaps locked from before the request is sent, until the answer says
//! that it is not, it is released or the transaction ends. So nothing is forgotten, whatever becomes of an answer. A
//! keeper tells the leaders every third of the ttl which transactions of this node live; if the node dies, its locks
//! end with the ttl.
//!
//! A session may hold locks under two names: those of its transaction, and those of its own (`session_locks.rs`). Each
//! name waits while the other does. The detector is told so, with a report that stands at no row.
//!
//! What was locked says which commit of the row the transaction has seen ([`RowLocks::seen_ts`]). The prewrite names
//! it, and conflicts if there is a newer one: then the lock was lost in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use kv::Key;
use kv::api::{
    AcquireRequest, Acquired, DetectorClock, KeyError, LockId, LockMode, LockedRow, Presence, RowFound, WaitReport,
    Waiting,
};
use kv::client::ClientError;
use tokio::task::JoinHandle;
use tso::Timestamp;

use crate::coordinator::{Coordinator, read_error};
use crate::error::TxnError;
use crate::live_locks::{Asked, LockKind};
use crate::timing::Stopwatch;

/// How long the first request for a row waits. The second one waits twice as long, and so on.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// How long a request for a row waits at most.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How often the locks of a session are given up that lives on. Those of a transaction end with it.
const GIVE_UP_ATTEMPTS: u32 = 32;

/// How long the report of a wait may take.
const REPORT_LIMIT: Duration = Duration::from_millis(500);
/// How long a caller waits for rows to be given up.
const RELEASE_WAIT: Duration = Duration::from_secs(1);

/// How to lock rows.
#[derive(Clone, Copy, Debug)]
pub struct LockAsk {
    /// The strength.
    pub mode: LockMode,
    /// Which of the rows.
    pub presence: Presence,
    /// Whether the rows were read in the snapshot of the statement. Those that have not changed since are not sent.
    pub was_read: bool,
    /// What to do about the locks of others.
    pub wait: LockWait,
}

/// What to do about the row locks of other transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    /// Wait; with a limit for each row.
    Queue(Option<Duration>),
    /// Fail at once.
    NoWait,
    /// Leave the row out.
    Skip,
}

/// A row that is locked.
#[derive(Clone, Copy, Debug)]
struct Held {
    mode: LockMode,
    /// The newest commit of the row, when it was locked.
    seen_ts: Timestamp,
    /// The holding at this strength, as its leader numbers it.
    lock: LockId,
    /// Whether the commit depends on it; see [`crate::Transaction::rely_on_lock`].
    is_relied_on: bool,
}

impl Held {
    /// Takes a lock in addition. What was written since the first one follows from the row as it was then. But a lock
    /// of the key alone lets others update the row, and nothing was written under it.
    fn upgrade(&mut self, to: Held) {
        if self.mode == LockMode::KeyShare && to.mode > LockMode::KeyShare {
            self.seen_ts = to.seen_ts;
        }
        // Of one that it had before, and has asked for again, the first holding counts: it may be lost.
        if to.mode > self.mode {
            (self.mode, self.lock) = (to.mode, to.lock);
        }
    }
}

/// A row that was asked for.
#[derive(Clone, Debug)]
struct AskedRow {
    key: Key,
    /// How it was locked before.
    before: Option<LockMode>,
}

/// The row locks of one transaction. Gives all of them up when it is dropped.
pub(crate) struct RowLocks {
    coordinator: Arc<Coordinator>,
    asked: Arc<Asked>,
    held: BTreeMap<Key, Held>,
    /// What was asked for, in order.
    order: Vec<AskedRow>,
    /// Gives up rows after a rollback to a savepoint. Returns those that it could not.
    releasing: Option<JoinHandle<Vec<Key>>>,
    /// Another name under which its session holds locks. They stay at least as long as a wait under this one.
    companion: Option<Timestamp>,
    /// What the reports of a wait have behind the key of the row: people read there what the wait is for.
    mark: Option<u8>,
}

impl RowLocks {
    pub(crate) fn new(coordinator: &Arc<Coordinator>, start_ts: Timestamp, session: u32) -> RowLocks {
        let asked = Arc::new(Asked::new(start_ts, session));
        if coordinator.live_locks.enter(Arc::clone(&asked)) {
            tokio::spawn(keep(Arc::downgrade(coordinator)));
        }
        RowLocks {
            coordinator: Arc::clone(coordinator),
            asked,
            held: BTreeMap::new(),
            order: Vec::new(),
            releasing: None,
            companion: None,
            mark: None,
        }
    }

    /// Sets another name under which its session holds locks: who waits for that name waits for this one too, while
    /// this one waits.
    pub(crate) fn set_companion(&mut self, companion: Option<Timestamp>) {
        self.companion = companion;
    }

    /// Sets what the reports of a wait have behind the key of the row.
    pub(crate) fn set_mark(&mut self, mark: u8) {
        self.mark = Some(mark);
    }

    /// The name of the locks.
    pub(crate) fn name(&self) -> Timestamp {
        self.asked.start_ts
    }

    /// Locks rows; see [`crate::Transaction::lock_rows`]. With a `snapshot`, what was committed after it is a conflict.
    /// Rows that were read were read at `seen_ts`.
    pub(crate) async fn acquire(
        &mut self,
        keys: Vec<Key>,
        ask: LockAsk,
        (snapshot, seen_ts): (Option<Timestamp>, Timestamp),
    ) -> Result<Vec<LockedRow>, TxnError> {
        let known: Vec<Option<LockedRow>> = keys.iter().map(|key| self.known(key, ask, seen_ts)).collect();
        let unknown = keys.iter().zip(&known).filter(|(_, known)| known.is_none());
        let wanted: Vec<Key> = unknown.map(|(key, _)| key.clone()).collect();
        let (mut found, asked_before) = (Vec::new().into_iter(), self.order.len());
        if !wanted.is_empty() {
            self.await_release().await;
            self.remember(&wanted, ask.mode);
            let (start_ts, mode, presence) = (self.asked.start_ts, ask.mode, ask.presence);
            let waiting = Waiting::Fail;
            let request = AcquireRequest { keys: wanted, start_ts, mode, presence, snapshot, seen_ts, waiting };
            found = self.ask(request, ask.wait).await?.into_iter();
        }
        let mut rows = Vec::with_capacity(keys.len());
        for (key, known) in keys.iter().zip(known) {
            let is_new = known.is_none();
            let Some(row) = known.or_else(|| found.next()) else {
                return Err(TxnError::Internal("a store left a row out of its answer".to_owned()));
            };
            if is_new && row.is_locked {
                let held = Held { mode: ask.mode, seen_ts: row.commit_ts, lock: row.lock, is_relied_on: false };
                self.held.entry(key.clone()).and_modify(|before| before.upgrade(held)).or_insert(held);
            }
            rows.push(row);
        }
        self.forget_unlocked(asked_before);
        Ok(rows)
    }

    /// Rows that the last request has not locked need not be given up. If an earlier attempt of it had locked one, and
    /// its answer was lost, that lock ends with its ttl.
    fn forget_unlocked(&mut self, asked_before: usize) {
        let mut asked = self.asked.keys.lock();
        let answered = self.order.split_off(asked_before);
        self.order.extend(answered.into_iter().filter(|row| {
            let is_locked = self.held.contains_key(&row.key);
            if !is_locked {
                asked.remove(&row.key);
            }
            is_locked
        }));
    }

    /// A row that was read at `read_ts` and is locked already. It cannot have changed since the lock, but for what the
    /// transaction has written itself. It may have changed before: the lock of a row that is not there is taken
    /// although the snapshot has one.
    fn known(&self, key: &Key, ask: LockAsk, read_ts: Timestamp) -> Option<LockedRow> {
        let counts = |held: &&Held| ask.was_read && held.mode >= ask.mode && held.seen_ts <= read_ts;
        let held = self.held.get(key).filter(counts)?;
        Some(LockedRow { is_locked: true, lock: held.lock, commit_ts: held.seen_ts, row: RowFound::Unchanged })
    }

    fn remember(&mut self, wanted: &[Key], mode: LockMode) {
        let mut asked = self.asked.keys.lock();
        for key in wanted {
            let before = self.held.get(key).map(|held| held.mode);
            if asked.insert(key.clone()) || before.is_some_and(|before| before < mode) {
                self.order.push(AskedRow { key: key.clone(), before });
            }
        }
    }

    /// Asks again and again, until all rows are answered.
    async fn ask(&self, mut request: AcquireRequest, wait: LockWait) -> Result<Vec<LockedRow>, TxnError> {
        let (keys, mut rows) = (std::mem::take(&mut request.keys), Vec::new());
        let (mut since, mut longest) = (Stopwatch::start(), FIRST_WAIT);
        let mut waits = self.waits();
        let mut note = None;
        loop {
            let as_of = waits.clock;
            request.keys = keys.get(rows.len()..).unwrap_or_default().to_vec();
            request.waiting = match wait {
                LockWait::Skip => Waiting::Skip,
                LockWait::NoWait => Waiting::Fail,
                LockWait::Queue(limit) => {
                    let left = limit.map_or(longest, |limit| limit.saturating_sub(since.elapsed()).min(longest));
                    // A part of a millisecond is waited for too.
                    Waiting::Queue { ms: u32::try_from(left.as_micros().div_ceil(1_000)).unwrap_or(u32::MAX) }
                }
            };
            let answer = self.acquire_or_detect(&request, &mut waits).await?;
            if !answer.rows.is_empty() {
                (since, longest) = (Stopwatch::start(), FIRST_WAIT);
            }
            rows.extend(answer.rows);
            let Some(blocked) = answer.blocked else { return Ok(rows) };
            self.coordinator.metrics.waits.inc();
            note.get_or_insert_with(|| self.asked.note_wait(self.kind()));
            let row = || keys.get(rows.len()).cloned().unwrap_or_default();
            let holders = if blocked.record.is_none() { blocked.holders } else { Vec::new() };
            waits.report = Some(WaitReport { as_of, ..self.wait_report(row(), holders) });
            let is_live = match blocked.record {
                // Its transaction may be dead.
                Some(record) => {
                    !self.coordinator.resolver.resolve(vec![record], Timestamp::ZERO).await?.holders.is_empty()
                }
                None => true,
            };
            match wait {
                LockWait::NoWait if is_live => return Err(TxnError::NotAvailable { key: row() }),
                LockWait::Queue(Some(limit)) if is_live && since.elapsed() >= limit => {
                    return Err(TxnError::LockTimeout { key: row() });
                }
                _ => longest = longest.saturating_mul(2).min(WAIT_MAX),
            }
        }
    }

    /// Sends a request. Meanwhile reports the wait that the last one has met.
    async fn acquire_or_detect(&self, request: &AcquireRequest, waits: &mut Waits<'_>) -> Result<Acquired, TxnError> {
        let kv = &self.coordinator.kv;
        let acquire = async { kv.acquire(request).await.map_err(acquire_error) };
        let Some(report) = waits.report.clone().filter(|report| !report.holders.is_empty()) else {
            return acquire.await;
        };
        waits.is_reported = true;
        let clock = &mut waits.clock;
        let detect = async {
            match deadlock(&self.coordinator, &report, self.companion, clock).await {
                Some(deadlock) => deadlock,
                // The wait is reported again, if it lasts.
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = acquire => answer,
            deadlock = detect => Err(deadlock),
        }
    }

    fn kind(&self) -> LockKind {
        if self.mark.is_some() { LockKind::Session } else { LockKind::Row }
    }

    fn waits(&self) -> Waits<'_> {
        let (coordinator, companion) = (&*self.coordinator, self.companion);
        Waits { coordinator, report: None, companion, is_reported: false, clock: DetectorClock::default() }
    }

    fn wait_report(&self, row: Key, holders: Vec<Timestamp>) -> WaitReport {
        let row = match self.mark {
            Some(mark) => Key::new([row.as_bytes(), &[mark]].concat()),
            None => row,
        };
        let (waiter, session, as_of) = (self.asked.start_ts, self.asked.session, DetectorClock::default());
        WaitReport { at: Key::default(), waiter, holders, session, row, as_of }
    }

    /// Runs `wait`, and meanwhile reports every second that the transaction waits for `holders` at `row`. `wait` is to
    /// look at least as often whether it is still so, and else to complete.
    pub(crate) async fn report_while<T>(
        &self,
        (row, holders): (Key, Vec<Timestamp>),
        wait: impl Future<Output = T>,
    ) -> Result<T, TxnError> {
        let mut report = self.wait_report(row, holders);
        let _note = self.asked.note_wait(self.kind());
        let mut waits = self.waits();
        (waits.report, waits.is_reported) = (Some(report.clone()), !report.holders.is_empty());
        let mut clock = DetectorClock::default();
        let detect = async {
            loop {
                tokio::time::sleep(FIRST_WAIT).await;
                // It was looked at since that was heard, a second ago.
                report.as_of = clock;
                if let Some(deadlock) = deadlock(&self.coordinator, &report, self.companion, &mut clock).await {
                    return deadlock;
                }
                tokio::time::sleep(WAIT_MAX - FIRST_WAIT).await;
            }
        };
        tokio::select! {
            biased;
            done = wait => Ok(done),
            deadlock = detect => Err(deadlock),
        }
    }

    /// Gives up these rows, and the places in their queues, whatever was asked for since. Returns once they are given
    /// up, or cannot be for now: then they are tried again later.
    pub(crate) async fn give_up(&mut self, rows: &[Key]) {
        let rows: BTreeSet<&Key> = rows.iter().collect();
        let is_dropped = |asked: &AskedRow| rows.contains(&asked.key);
        let (dropped, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.order).into_iter().partition(is_dropped);
        self.order = kept;
        self.release(dropped.into_iter().map(|asked| (asked.key, None)).collect(), GIVE_UP_ATTEMPTS);
        self.await_release().await;
    }

    /// The newest commit of a row when it was locked; `None` if it is not locked.
    pub(crate) fn seen_ts(&self, key: &Key) -> Option<Timestamp> {
        self.held.get(key).map(|held| held.seen_ts)
    }

    /// Has the commit depend on the lock of a row, as it is held now.
    pub(crate) fn rely_on(&mut self, key: &Key) {
        if let Some(held) = self.held.get_mut(key) {
            held.is_relied_on = true;
        }
    }

    /// The lock of a row that the commit depends on.
    pub(crate) fn relied_on(&self, key: &Key) -> Option<LockId> {
        self.held.get(key).filter(|held| held.is_relied_on).map(|held| held.lock)
    }

    /// How a row is locked.
    pub(crate) fn mode(&self, key: &Key) -> Option<LockMode> {
        self.held.get(key).map(|held| held.mode)
    }

    /// The locks of these rows end with what was committed to them.
    pub(crate) fn forget<'k>(&mut self, committed: impl Iterator<Item = &'k Key>) {
        let mut asked = self.asked.keys.lock();
        for key in committed {
            asked.remove(key);
        }
    }

    /// A position for [`RowLocks::rollback_to`].
    pub(crate) fn savepoint(&self) -> usize {
        self.order.len()
    }

    /// Gives up the rows that were asked for since `savepoint`, and of those that were locked before what is stronger,
    /// in the background.
    pub(crate) fn rollback_to(&mut self, savepoint: usize) {
        let dropped = self.order.split_off(savepoint.min(self.order.len()));
        // The first of each row counts.
        self.release(dropped.into_iter().rev().map(|asked| (asked.key, asked.before)).collect(), 1);
    }

    /// Gives up rows, or keeps the weaker lock that is named.
    fn release(&mut self, rows: BTreeMap<Key, Option<LockMode>>, attempts: u32) {
        let (mut dropped, mut lowered) = (Vec::new(), BTreeMap::<LockMode, Vec<Key>>::new());
        for (key, keep) in rows {
            match (keep, self.held.get_mut(&key)) {
                (Some(mode), Some(held)) => {
                    if mode < held.mode {
                        // What it was relied on for is undone. Its leader gives the weaker one a number that is not
                        // known here.
                        *held = Held { mode, lock: LockId::NONE, is_relied_on: false, ..*held };
                    }
                    lowered.entry(mode).or_default().push(key);
                }
                _ => {
                    self.held.remove(&key);
                    dropped.push(key);
                }
            }
        }
        if dropped.is_empty() && lowered.is_empty() {
            return;
        }
        self.forget(dropped.iter());
        let (kv, start_ts, earlier) = (self.coordinator.kv.clone(), self.asked.start_ts, self.releasing.take());
        self.releasing = Some(tokio::spawn(async move {
            let mut left = match earlier {
                Some(earlier) => earlier.await.unwrap_or_default(),
                None => Vec::new(),
            };
            for (mode, rows) in lowered {
                if let Err(error) = kv.release(rows, start_ts, Some(mode)).await {
                    tracing::debug!(%start_ts, %error, "row locks stay stronger than they need be");
                }
            }
            for attempt in 1..=attempts {
                let Err(error) = kv.release(dropped.clone(), start_ts, None).await else { return left };
                tracing::debug!(%start_ts, %error, attempt, "row locks stay for now");
                if attempt < attempts {
                    tokio::time::sleep(FIRST_WAIT).await;
                }
            }
            left.extend(dropped);
            left
        }));
    }

    /// Gives up what is left, and waits for it, for [`RELEASE_WAIT`] at most. To be awaited before a client is told
    /// that its transaction is over: it may tell another one, which finds the rows free.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time: the rows are given up all the same.
    pub(crate) async fn end(self) {
        if let Some(released) = self.release_all() {
            // Later they end with their ttl.
            let _ = tokio::time::timeout(RELEASE_WAIT, released).await;
        }
    }

    /// Gives up what is left, in a task.
    fn release_all(&self) -> Option<JoinHandle<()>> {
        let keys: Vec<Key> = std::mem::take(&mut *self.asked.keys.lock()).into_iter().collect();
        // Without a runtime they end with their ttl.
        if keys.is_empty() || tokio::runtime::Handle::try_current().is_err() {
            return None;
        }
        let (kv, start_ts) = (self.coordinator.kv.clone(), self.asked.start_ts);
        Some(self.coordinator.tasks.spawn(async move {
            if let Err(error) = kv.release(keys, start_ts, None).await {
                tracing::debug!(%start_ts, %error, "row locks end with their ttl");
            }
        }))
    }

    /// Waits until the rows are given up that were locked after a savepoint, for [`RELEASE_WAIT`] at most.
    pub(crate) async fn released(&mut self) {
        // Later they end with their ttl.
        let _ = tokio::time::timeout(RELEASE_WAIT, self.await_release()).await;
    }

    /// Waits until the rows are given up that were locked after a savepoint: the transaction may ask for them again.
    async fn await_release(&mut self) {
        let Some(releasing) = &mut self.releasing else { return };
        let left = releasing.await.unwrap_or_default();
        self.releasing = None;
        self.asked.keys.lock().extend(left);
    }
}

/// What was reported of a wait. Reports its end when it is dropped.
struct Waits<'a> {
    coordinator: &'a Coordinator,
    report: Option<WaitReport>,
    companion: Option<Timestamp>,
    is_reported: bool,
    /// The newest clock of the detector that was heard.
    clock: DetectorClock,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let (true, Some(report)) = (self.is_reported, self.report.take()) else { return };
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let companion = self.companion.map(|name| companion_report(name, &report));
        let kv = self.coordinator.kv.clone();
        self.coordinator.tasks.spawn(async move {
            for ended in std::iter::once(report).chain(companion) {
                // Otherwise it is forgotten when it is not reported any more.
                let _ = kv.report_wait(&WaitReport { holders: Vec::new(), ..ended }, REPORT_LIMIT).await;
            }
        });
    }
}

/// The locks under the name of the companion stay while this wait lasts. It stands at no row.
fn companion_report(companion: Timestamp, report: &WaitReport) -> WaitReport {
    WaitReport { waiter: companion, holders: vec![report.waiter], row: Key::default(), ..report.clone() }
}

/// Reports a wait. Returns the deadlock that it has closed. Sets `heard` to the newest clock that was heard.
async fn deadlock(
    coordinator: &Coordinator,
    report: &WaitReport,
    companion: Option<Timestamp>,
    heard: &mut DetectorClock,
) -> Option<TxnError> {
    let companion = companion.filter(|name| *name != report.waiter).map(|name| companion_report(name, report));
    for report in std::iter::once(report.clone()).chain(companion) {
        let Ok((cycle, clock)) = coordinator.kv.report_wait(&report, REPORT_LIMIT).await else { continue };
        *heard = clock.max(*heard);
        if !cycle.is_empty() {
            return Some(TxnError::Deadlock { cycle });
        }
    }
    None
}

impl Drop for RowLocks {
    fn drop(&mut self) {
        self.coordinator.live_locks.leave(self.asked.start_ts);
        drop(self.release_all());
    }
}

/// Tells the leaders which transactions live, until there are none with row locks.
async fn keep(coordinator: Weak<Coordinator>) {
    while let Some(interval) = coordinator.upgrade().map(|coordinator| coordinator.config.lock_ttl / 3) {
        tokio::time::sleep(interval).await;
        let Some(coordinator) = coordinator.upgrade() else { return };
        let Some(locks) = coordinator.live_locks.to_refresh(&coordinator.kv) else { return };
        let kv = coordinator.kv.clone();
        // A region that does not answer keeps the others from nothing.
        tokio::spawn(async move {
            if let Ok(Err(error)) = tokio::time::timeout(interval, kv.refresh(locks)).await {
                tracing::debug!(%error, "row locks are not refreshed");
            }
        });
    }
}

/// Maps a client error of a request for row locks.
fn acquire_error(error: ClientError) -> TxnError {
    match error {
        ClientError::Key(KeyError::AlreadyExists { key }) => TxnError::AlreadyExists { key },
        ClientError::Key(error @ (KeyError::WriteConflict { .. } | KeyError::TooOld { .. })) => {
            TxnError::Conflict(error.to_string())
        }
        error => read_error(error),
    }
}
