//! The oracle: checks a finished history against snapshot isolation.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use engine::Cf;
use engine::store::Store;
use kv::Key;
use kv::api::{CheckTxnStatusRequest, LockMode, MutationOp, RequestBody, Response, ScanRequest, TxnStatus};
use kv::key::split_ts;
use kv::mvcc::mark::is_mark;
use kv::mvcc::{WriteKind, WriteRecord, reader};
use tso::Timestamp;

use super::super::page::scan;
use super::planted::rows;
use super::world::{Phase, Txn, World};

/// The committed versions of each key by commit_ts, and the intervals (start_ts, commit_ts) of its writers and lockers.
#[derive(Default)]
struct History {
    versions: BTreeMap<Key, BTreeMap<Timestamp, Option<Bytes>>>,
    intervals: BTreeMap<Key, Vec<(Timestamp, Timestamp)>>,
}

impl History {
    fn at(&self, key: &Key, ts: Timestamp) -> Option<Bytes> {
        let versions = self.versions.get(key)?;
        versions.range(..=ts).next_back().and_then(|(_, value)| value.clone())
    }

    fn add(&mut self, txn: &Txn, commit_ts: Timestamp) {
        for (key, op) in &txn.writes {
            let value = match op {
                MutationOp::Put(value) | MutationOp::Insert(value) => Some(value.clone()),
                MutationOp::Delete => None,
                MutationOp::Lock => {
                    self.intervals.entry(key.clone()).or_default().push((txn.start_ts, commit_ts));
                    continue;
                }
                MutationOp::Shared(_) | MutationOp::CheckNotExists => continue,
            };
            self.intervals.entry(key.clone()).or_default().push((txn.start_ts, commit_ts));
            self.versions.entry(key.clone()).or_default().insert(commit_ts, value);
        }
    }
}

pub(crate) fn check(world: &mut World) -> Result<(), String> {
    world.resolve_all()?;
    check_overlaps(&acknowledged(world))?;
    let mut history = History::default();
    let mut committed = Vec::new();
    for n in 0..world.txns.len() {
        let outcome = outcome(world, n)?;
        let txn = &world.txns[n];
        match (&txn.phase, outcome) {
            (Phase::Committed(ts), Some(commit_ts)) if *ts == commit_ts => (),
            (Phase::Committed(ts), outcome) => {
                return Err(format!("the coordinator of txn {n} committed at {ts}, but its outcome is {outcome:?}"));
            }
            (Phase::Aborted, Some(ts)) => {
                return Err(format!("the coordinator of txn {n} aborted, but it committed at {ts}"));
            }
            _ => (),
        }
        if let Some(commit_ts) = outcome {
            history.add(txn, commit_ts);
            committed.push((n, commit_ts));
        }
    }
    check_reads(world, &history, &committed)?;
    check_overlaps(&history)?;
    check_shared(world, &history, &committed)?;
    check_records(world)?;
    check_store(world, &history)
}

/// The commits that coordinators know of, without asking the store.
fn acknowledged(world: &World) -> History {
    let mut history = History::default();
    for txn in &world.txns {
        if let Phase::Committed(commit_ts) = txn.phase {
            history.add(txn, commit_ts);
        }
    }
    history
}

/// The commit_ts of the transaction; `None` if it did not commit.
fn outcome(world: &mut World, n: usize) -> Result<Option<Timestamp>, String> {
    let check = RequestBody::CheckTxnStatus(CheckTxnStatusRequest {
        primary: world.txns[n].primary.clone(),
        lock_ts: world.txns[n].start_ts,
        current_ts: Timestamp::MAX,
        rollback_if_missing: false,
        reader_ts: Timestamp::ZERO,
        fell_back: false,
    });
    match world.evaluate(&check)? {
        Response::Status(TxnStatus::Committed { commit_ts }) => Ok(Some(commit_ts)),
        Response::Status(TxnStatus::RolledBack | TxnStatus::Missing) => Ok(None),
        other => Err(format!("txn {n} is {other:?} after all locks were resolved")),
    }
}

/// Checks all reads against their snapshots, also those of transactions that failed later, and all committed inserts.
fn check_reads(world: &World, history: &History, committed: &[(usize, Timestamp)]) -> Result<(), String> {
    for (n, txn) in world.txns.iter().enumerate() {
        for (key, value) in &txn.reads {
            let expected = history.at(key, txn.start_ts);
            if *value != expected {
                return Err(format!("txn {n} read {key:?} at {}: {value:?}, not {expected:?}", txn.start_ts));
            }
        }
    }
    for (n, _) in committed {
        let txn = &world.txns[*n];
        for (key, op) in &txn.writes {
            let absent = matches!(op, MutationOp::Insert(_) | MutationOp::CheckNotExists);
            if absent && history.at(key, txn.start_ts).is_some() {
                return Err(format!("txn {n} committed an insert of {key:?}, which existed"));
            }
        }
    }
    Ok(())
}

/// Checks that no two committed transactions on one key overlap in time.
fn check_overlaps(history: &History) -> Result<(), String> {
    for (key, intervals) in &history.intervals {
        let mut intervals = intervals.clone();
        intervals.sort_by_key(|(_, commit_ts)| *commit_ts);
        for pair in intervals.windows(2) {
            let [(_, committed), (began, _)] = pair else { continue };
            if began < committed {
                return Err(format!(
                    "lost update of {key:?}: one began at {began}, before another's commit at {committed}"
                ));
            }
        }
    }
    Ok(())
}

/// Checks that no row changed, between the snapshot and the commit of a committed transaction, that it relies on: who
/// holds the key alone relies on the row being there all the time.
fn check_shared(world: &World, history: &History, committed: &[(usize, Timestamp)]) -> Result<(), String> {
    for (n, commit_ts) in committed {
        let txn = &world.txns[*n];
        for (key, op) in &txn.writes {
            let MutationOp::Shared(mode) = op else { continue };
            let Some(versions) = history.versions.get(key) else { continue };
            let was_there = history.at(key, txn.start_ts).is_some();
            for (ts, value) in versions.range(txn.start_ts.next()..*commit_ts) {
                if *mode != LockMode::KeyShare || !was_there || value.is_none() {
                    let from = txn.start_ts;
                    return Err(format!("{mode:?} of {key:?} by txn {n} from {from} to {commit_ts} broke at {ts}"));
                }
            }
        }
    }
    Ok(())
}

/// Decodes a versioned key.
fn decode(versioned: &[u8]) -> Result<(Key, Timestamp), String> {
    let (storage, ts) = split_ts(versioned).map_err(|error| error.to_string())?;
    Ok((Key::from_storage(storage).map_err(|error| error.to_string())?, ts))
}

/// Checks the records: one per key and transaction, no lock, a record for every long value, no rollback mark lost.
fn check_records(world: &World) -> Result<(), String> {
    let mut records = BTreeSet::new();
    let mut values = BTreeSet::new();
    let mut needed = BTreeSet::new();
    let mut marks = BTreeSet::new();
    for (cf, key, value) in rows(&world.store.store) {
        match cf {
            Cf::Lock => return Err("a lock outlived its resolution".to_owned()),
            Cf::Write => {
                let (key, _) = decode(&key)?;
                let write = WriteRecord::decode(&value).map_err(|error| error.to_string())?;
                if write.kind == WriteKind::Put && write.short_value.is_none() {
                    needed.insert((key.clone(), write.start_ts));
                }
                if !records.insert((key.clone(), write.start_ts)) {
                    return Err(format!("two records of {} on {key:?}", write.start_ts));
                }
            }
            _ if is_mark(&value).map_err(|error| error.to_string())? => {
                if !records.insert(decode(&key)?) {
                    return Err(format!("a mark and a record at {}", key.escape_ascii()));
                }
                marks.insert(key);
            }
            _ => {
                values.insert(decode(&key)?);
            }
        }
    }
    if let Some(lost) = world.store.marks.difference(&marks).next() {
        return Err(format!("the rollback mark at {} was lost", lost.escape_ascii()));
    }
    if values == needed { Ok(()) } else { Err(format!("values {values:?}, records of values {needed:?}")) }
}

/// Checks point reads and scans at every past timestamp.
fn check_store(world: &World, history: &History) -> Result<(), String> {
    let snapshot = world.store.store.snapshot();
    let keys = World::keys();
    let timestamps: BTreeSet<Timestamp> =
        history.versions.values().flat_map(|versions| versions.keys().copied()).collect();
    let timestamps = timestamps.into_iter().flat_map(|ts| [ts.prev(), ts]).chain([Timestamp::MAX]);
    for (i, ts) in timestamps.enumerate() {
        let expected: Vec<(Key, Bytes)> =
            keys.iter().filter_map(|key| Some((key.clone(), history.at(key, ts)?))).collect();
        for key in &keys {
            let value = reader::get(&snapshot, key, ts, &[]).map_err(|error| error.to_string())?;
            if value != history.at(key, ts) {
                return Err(format!("get of {key:?} at {ts}: {value:?}"));
            }
        }
        let batch = batch_pages(world, ts, i)?;
        if batch != expected {
            return Err(format!("batch_get at {ts}: {batch:?}, not {expected:?}"));
        }
        for reverse in [false, true] {
            let mut pairs = scan_pages(world, ts, reverse, 1 + i % 4)?;
            if reverse {
                pairs.reverse();
            }
            if pairs != expected {
                return Err(format!("scan at {ts}, reverse {reverse}: {pairs:?}, not {expected:?}"));
            }
        }
    }
    Ok(())
}

/// A batch get of all keys, in pages of one key or of some hundred bytes.
fn batch_pages(world: &World, ts: Timestamp, i: usize) -> Result<Vec<(Key, Bytes)>, String> {
    let snapshot = world.store.store.snapshot();
    let mut rest = World::keys();
    let mut pairs = Vec::new();
    loop {
        let max_bytes = if i.is_multiple_of(2) { 1 } else { 400 };
        let page = reader::batch_get(&snapshot, &rest, (ts, &[]), max_bytes).map_err(|error| error.to_string())?;
        pairs.extend(page.pairs);
        match page.resume.and_then(|resume| rest.iter().position(|key| *key == resume)) {
            Some(at) if at > 0 => drop(rest.drain(..at)),
            Some(_) => return Err(format!("batch_get at {ts} does not advance")),
            None => return Ok(pairs),
        }
    }
}

/// A scan of all keys in small pages. Some end at their limit, some at their number of steps.
fn scan_pages(world: &World, ts: Timestamp, reverse: bool, size: usize) -> Result<Vec<(Key, Bytes)>, String> {
    let snapshot = world.store.store.snapshot();
    let mut request = ScanRequest {
        start: Key::default(),
        end: Key::default(),
        start_ts: ts,
        limit: size as u32,
        max_bytes: 1_000,
        reverse,
        keys_only: false,
        pass: Vec::new(),
    };
    let mut pairs = Vec::new();
    loop {
        let page = scan(&snapshot, &request, 3 * size).map_err(|error| error.to_string())?;
        pairs.extend(page.pairs);
        match page.resume {
            None => return Ok(pairs),
            Some(resume) if reverse => request.end = resume,
            Some(resume) => request.start = resume,
        }
    }
}
