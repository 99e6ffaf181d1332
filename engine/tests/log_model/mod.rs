//! What the log must do, as simply as it can be said: a map per group, and a history of all states.
//!
//! The model checks itself against nothing of the engine's code: it applies batches to plain maps. A driver feeds the same
//! batches to both, and after a crash asks whether what was recovered is one of the states of the history, at or after
//! the last one that was acknowledged as synced.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)] // shared by test binaries that use parts of it

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use engine::disk::{Disk, SimDisk};
use engine::log::{
    Durability, GroupId, LogBatch, LogEngine, LogError, LogOptions, LogWriter, OnDone, RecoveryReport, Result,
};
use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::StdRng;

/// One change, in a form that both sides understand.
#[derive(Clone, Debug)]
pub enum Change {
    Append { group: u64, first: u64, entries: Vec<Bytes> },
    Put { group: u64, key: Vec<u8>, value: Vec<u8> },
    Delete { group: u64, key: Vec<u8> },
    Compact { group: u64, first_kept: u64 },
    Remove { group: u64 },
}

/// A group as the model sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelGroup {
    pub floor: u64,
    pub entries: BTreeMap<u64, Bytes>,
    pub keys: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// All groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State(pub BTreeMap<u64, ModelGroup>);

/// What an observer can see of a group.
#[derive(Clone, PartialEq, Eq)]
pub struct Seen {
    pub first: u64,
    pub last: u64,
    pub entries: Vec<Bytes>,
    pub keys: Vec<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = |bytes: &[u8]| bytes.iter().take(6).map(|byte| format!("{byte:02x}")).collect::<String>();
        let entries: Vec<String> = self.entries.iter().map(|e| format!("{}:{}", short(e), e.len())).collect();
        let keys: Vec<String> = self.keys.iter().map(|(k, v)| format!("{}={}", short(k), short(v))).collect();
        write!(f, "[{}..={}] {entries:?} {keys:?}", self.first, self.last)
    }
}

pub fn batch_of(changes: &[Change]) -> LogBatch {
    let mut batch = LogBatch::new();
    for change in changes.iter().cloned() {
        match change {
            Change::Append { group, first, entries } => batch.append(GroupId(group), first, entries),
            Change::Put { group, key, value } => batch.put(GroupId(group), &key, &value),
            Change::Delete { group, key } => batch.delete(GroupId(group), &key),
            Change::Compact { group, first_kept } => batch.compact(GroupId(group), first_kept),
            Change::Remove { group } => batch.remove(GroupId(group)),
        }
    }
    batch
}

impl State {
    /// The state after a batch, or `None` if the batch must be refused.
    pub fn after(&self, changes: &[Change]) -> Option<State> {
        let mut next = self.clone();
        for change in changes {
            next.apply(change)?;
        }
        next.0.retain(|_, group| *group != ModelGroup::default());
        Some(next)
    }

    fn apply(&mut self, change: &Change) -> Option<()> {
        match change {
            Change::Append { group, first, entries } => {
                let group = self.0.entry(*group).or_default();
                let lowest = group.entries.keys().next().copied().unwrap_or(group.floor);
                let end = group.entries.keys().next_back().map(|last| last + 1);
                if *first < lowest || end.is_some_and(|end| *first > end) {
                    return None;
                }
                group.entries.split_off(first);
                group.entries.extend((*first..).zip(entries.iter().cloned()));
            }
            Change::Put { group, key, value } => {
                self.0.entry(*group).or_default().keys.insert(key.clone(), value.clone());
            }
            Change::Delete { group, key } => {
                if let Some(group) = self.0.get_mut(group) {
                    group.keys.remove(key);
                }
            }
            Change::Compact { group, first_kept } => {
                let group = self.0.entry(*group).or_default();
                group.floor = group.floor.max(*first_kept);
                group.entries = group.entries.split_off(first_kept);
            }
            Change::Remove { group } => {
                self.0.remove(group);
            }
        }
        Some(())
    }

    pub fn seen(&self) -> BTreeMap<u64, Seen> {
        let seen = |group: &ModelGroup| {
            let first = group.entries.keys().next().copied().unwrap_or(group.floor.max(1));
            let last = group.entries.keys().next_back().copied().unwrap_or(first - 1);
            let keys = group.keys.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
            Seen { first, last, entries: group.entries.values().cloned().collect(), keys }
        };
        self.0.iter().map(|(id, group)| (*id, seen(group))).collect()
    }
}

/// Everything an observer can read from the engine.
pub fn observe(engine: &LogEngine) -> Result<BTreeMap<u64, Seen>> {
    let mut out = BTreeMap::new();
    for id in engine.groups() {
        let bounds = engine.bounds(id).unwrap();
        let entries = engine.entries(id, bounds.first, bounds.last + 1, usize::MAX)?;
        assert_eq!(entries.len() as u64, bounds.last + 1 - bounds.first);
        for (index, entry) in (bounds.first..).zip(&entries) {
            assert_eq!(engine.entry(id, index)?, entry);
        }
        let keys = engine.scan(id)?.into_iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        out.insert(id.0, Seen { first: bounds.first, last: bounds.last, entries, keys });
    }
    Ok(out)
}

/// A salvaged log shows what the sound one would, or says that it cannot: nothing else. Groups that the report does not name are all
/// there, but for entries in damaged blocks. Returns how many entries were read.
pub fn is_true_to(engine: &LogEngine, report: &RecoveryReport, state: &State) -> std::result::Result<u64, String> {
    let mut read = 0;
    let nobody = ModelGroup::default();
    let ids: BTreeSet<u64> =
        state.0.keys().copied().chain(engine.groups().into_iter().map(|id| id.0)).chain([4711]).collect();
    for id in ids {
        let (group, known) = (GroupId(id), state.0.get(&id).unwrap_or(&nobody));
        let is_named = report.lost.iter().any(|loss| loss.group == group);
        let blind = report.losses.iter().any(|loss| loss.concerns.is_none());
        let last = known.entries.keys().next_back().copied().unwrap_or(known.floor.max(1) - 1);
        for index in 0..last + 3 {
            let (found, real) = (engine.entry(group, index), known.entries.get(&index));
            let fits = match &found {
                Ok(entry) => Some(entry) == real,
                Err(LogError::NotFound { .. }) => real.is_none() && (index > last || !state.0.contains_key(&id)),
                Err(LogError::Compacted { .. }) => real.is_none() && index <= last,
                Err(LogError::Lost { group: lost, .. }) => *lost == group && (is_named || blind),
                Err(LogError::Corrupt { groups, .. }) => groups.contains(&group),
                Err(_) => false,
            };
            read += u64::from(found.is_ok());
            if !fits {
                let (real, found) = (real.map(Bytes::len), found.map(|entry| entry.len()));
                return Err(format!("entry {id}/{index} has {real:?} bytes, and reads {found:?}"));
            }
        }
        for key in [&[0u8][..], &[1], &[2], &[3], b"hard", b"nothing"] {
            let (found, real) = (engine.get(group, key), known.keys.get(key));
            let fits = match &found {
                Ok(value) => value.as_ref().map(|value| value.as_ref()) == real.map(Vec::as_slice),
                Err(error) => matches!(error, LogError::Lost { .. }) && (is_named || blind),
            };
            if !fits {
                return Err(format!("key {key:?} of {id} is {real:?}, and reads {found:?}"));
            }
        }
        let pairs = engine.scan(group);
        let owned = |(key, value): &(Bytes, Bytes)| (key.to_vec(), value.to_vec());
        let fits = match &pairs {
            Ok(pairs) => pairs.iter().map(owned).collect::<BTreeMap<_, _>>() == known.keys,
            Err(error) => matches!(error, LogError::Lost { .. }),
        };
        if !fits {
            return Err(format!("keys of {id} read {pairs:?}"));
        }
        let Some(bounds) = engine.bounds(group) else { continue };
        match engine.entries(group, bounds.first, bounds.last + 1, usize::MAX) {
            Ok(entries) => {
                let real = known.entries.range(bounds.first..bounds.last + 1).map(|(_, entry)| entry);
                if !entries.iter().eq(real) {
                    return Err(format!("entries of {id} differ within {bounds:?}"));
                }
            }
            Err(LogError::Lost { .. } | LogError::Corrupt { .. }) => {}
            Err(error) => return Err(format!("entries of {id} in {bounds:?}: {error}")),
        }
    }
    Ok(read)
}

/// What became of a submitted batch.
type Fates = Arc<Mutex<Vec<(Vec<Change>, Durability, Result<()>)>>>;

/// Engine and model side by side.
pub struct Driver {
    pub disk: Arc<SimDisk>,
    pub options: LogOptions,
    pub engine: LogEngine,
    pub writer: LogWriter,
    /// All states, oldest first; batches whose fate is unknown are in it as if they had been written.
    pub history: Vec<State>,
    /// The state that is acknowledged as synced, by its place in the history.
    pub synced: usize,
    /// The state that is acknowledged.
    pub current: usize,
    fates: Fates,
}

impl Driver {
    pub fn new(options: LogOptions) -> Driver {
        Driver::on(SimDisk::new(), options)
    }

    pub fn on(disk: Arc<SimDisk>, options: LogOptions) -> Driver {
        let (engine, writer, _) = LogEngine::open(disk.session(), options.clone()).unwrap();
        Driver {
            disk,
            options,
            engine,
            writer,
            history: vec![State::default()],
            synced: 0,
            current: 0,
            fates: Fates::default(),
        }
    }

    /// Queues a batch; its fate is known after a turn.
    pub fn submit(&mut self, changes: Vec<Change>, durability: Durability) {
        let fates = self.fates.clone();
        let batch = batch_of(&changes);
        let kept = changes.clone();
        let done: OnDone = Box::new(move |outcome| fates.lock().push((kept, durability, outcome.map(drop))));
        if let Err(error) = self.engine.submit(batch, durability, done) {
            self.fates.lock().push((changes, durability, Err(error)));
        }
    }

    /// Lets the writer work, and follows in the model. Panics where the two disagree about what is a valid batch.
    pub fn turn(&mut self) {
        self.writer.turn();
        for (changes, durability, outcome) in std::mem::take(&mut *self.fates.lock()) {
            let latest = &self.history[self.history.len() - 1];
            let after = latest.after(&changes);
            match outcome {
                Ok(()) => {
                    let after = after.unwrap_or_else(|| panic!("accepted {changes:?} after {latest:?}"));
                    self.history.push(after);
                    self.current = self.history.len() - 1;
                    if durability == Durability::Synced {
                        self.synced = self.current;
                    }
                }
                Err(LogError::Gap { .. } | LogError::Compacted { .. }) => {
                    assert!(after.is_none(), "refused {changes:?} after {latest:?}");
                }
                Err(LogError::Poisoned(_)) => self.history.extend(after),
                Err(LogError::NoSpace(_) | LogError::Busy) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// The engine shows exactly the acknowledged state.
    pub fn check_live(&self) {
        assert_eq!(observe(&self.engine).unwrap(), self.history[self.current].seen());
    }

    /// Power loss and reopen. An error names what does not hold.
    pub fn crash(&mut self, seed: u64) -> std::result::Result<RecoveryReport, String> {
        self.disk.crash(seed);
        self.reopen()
    }

    /// Opens again what is on the disk, and looks for it in the history.
    pub fn reopen(&mut self) -> std::result::Result<RecoveryReport, String> {
        let session: Arc<dyn Disk> = self.disk.session();
        let (engine, writer, report) =
            LogEngine::open(session, self.options.clone()).map_err(|e| format!("open: {e}"))?;
        self.engine = engine;
        self.writer = writer;
        self.fates.lock().clear();
        let seen = observe(&self.engine).map_err(|error| format!("read: {error}"))?;
        let found = self.history.iter().rposition(|state| state.seen() == seen);
        let Some(found) = found else { return Err(format!("recovered no state that ever was: {seen:?}")) };
        // Equal states may stand at several places: the newest is meant.
        if found < self.synced {
            return Err(format!("recovered state {found}, but {} is synced", self.synced));
        }
        self.history.truncate(found + 1);
        self.current = found;
        // What recovery kept, it made durable.
        self.synced = found;
        Ok(report)
    }
}

/// Small files and blocks, so that little work reaches every path.
pub fn small_options() -> LogOptions {
    LogOptions {
        file_bytes: 64 << 10,
        prefill_bytes: 16 << 10,
        group_bytes: 8 << 10,
        block_bytes: 1 << 10,
        cache_bytes: 64 << 10,
        identity: Some(7),
        purge_threshold: 0,
        recovery_threads: 1,
        ..LogOptions::default()
    }
}

/// Draws batches that are mostly valid for the state they follow.
pub struct Generator {
    pub groups: u64,
    pub max_entry: usize,
}

impl Generator {
    pub fn batch(&self, rng: &mut StdRng, state: &State) -> Vec<Change> {
        let mut next = state.clone();
        let mut changes = Vec::new();
        for _ in 0..rng.random_range(1..=3) {
            let change = self.change(rng, &next);
            if next.apply(&change).is_none() && rng.random_bool(0.8) {
                continue;
            }
            changes.push(change);
        }
        changes
    }

    fn change(&self, rng: &mut StdRng, state: &State) -> Change {
        let group = rng.random_range(1..=self.groups);
        let empty = ModelGroup::default();
        let known = state.0.get(&group).unwrap_or(&empty);
        let end = known.entries.keys().next_back().map_or(known.floor.max(1), |last| last + 1);
        let first = known.entries.keys().next().copied().unwrap_or(end);
        match rng.random_range(0..100) {
            0..50 => Change::Append { group, first: end, entries: self.entries(rng) },
            50..60 => {
                let beyond = u64::from(rng.random_bool(0.1)) * 3;
                let first = rng.random_range(first..=end + beyond);
                Change::Append { group, first, entries: self.entries(rng) }
            }
            60..78 => Change::Compact { group, first_kept: rng.random_range(first..=end) },
            78..80 => Change::Compact { group, first_kept: end + rng.random_range(0..5) },
            80..93 => {
                let value = (0..rng.random_range(0..40)).map(|_| rng.random()).collect();
                Change::Put { group, key: vec![rng.random_range(0..4)], value }
            }
            93..98 => Change::Delete { group, key: vec![rng.random_range(0..4)] },
            _ => Change::Remove { group },
        }
    }

    fn entries(&self, rng: &mut StdRng) -> Vec<Bytes> {
        let count = if rng.random_bool(0.1) { rng.random_range(1..20) } else { rng.random_range(1..4) };
        (0..count).map(|_| self.entry(rng)).collect()
    }

    fn entry(&self, rng: &mut StdRng) -> Bytes {
        let len = if rng.random_bool(0.05) {
            rng.random_range(0..self.max_entry * 4)
        } else {
            rng.random_range(0..self.max_entry)
        };
        if rng.random_bool(0.5) {
            (0..len).map(|_| rng.random::<u8>()).collect()
        } else {
            vec![rng.random(); len].into()
        }
    }
}
