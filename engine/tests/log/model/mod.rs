//! The reference model of the log: a map per group, and a history of all states.
//!
//! The model shares no code with the engine: it applies batches to plain maps. A [`Driver`] feeds the same batches to
//! both, and records the outcomes in a [`History`]. After a crash it checks that the recovered state is one of the
//! history, at or after the last one acknowledged as synced ([`check`] has all invariants). [`each_crash`] enumerates
//! every possible crash.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test binary and the fuzz targets use a part of it"
)]

pub mod cases;
pub mod check;
pub mod driver;
pub mod outcomes;
pub mod salvaged;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use engine::disk::{Disk, SimDisk};
use engine::log::{GroupId, LogBatch, LogEngine, LogOptions, LogWriter, RecoveryReport, Result};
use rand::Rng;
use rand::rngs::StdRng;

pub use check::{After, History, Violation};
pub use driver::Driver;
pub use outcomes::{each_crash, fingerprint};
pub use salvaged::check_salvaged;

/// One change, in a form for engine and model.
#[derive(Clone)]
pub enum Change {
    Append { group: u64, first: u64, entries: Vec<Bytes> },
    Put { group: u64, key: Vec<u8>, value: Vec<u8> },
    Delete { group: u64, key: Vec<u8> },
    Compact { group: u64, first_kept: u64 },
    Remove { group: u64 },
}

impl std::fmt::Debug for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Change::Append { group, first, entries } => write!(f, "append {group} {first} +{}", entries.len()),
            Change::Put { group, key, value } => write!(f, "put {group} {} {}", short(key), short(value)),
            Change::Delete { group, key } => write!(f, "delete {group} {}", short(key)),
            Change::Compact { group, first_kept } => write!(f, "compact {group} {first_kept}"),
            Change::Remove { group } => write!(f, "remove {group}"),
        }
    }
}

/// The first bytes, for messages.
fn short(bytes: &[u8]) -> String {
    bytes.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// A group in the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelGroup {
    pub floor: u64,
    pub entries: BTreeMap<u64, Bytes>,
    pub keys: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// All groups. The states of a history share the groups that a batch does not change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State(pub BTreeMap<u64, Arc<ModelGroup>>);

/// What an observer sees of all groups.
pub type Observed = BTreeMap<u64, Seen>;

/// What an observer sees of a group.
#[derive(Clone, PartialEq, Eq)]
pub struct Seen {
    pub first: u64,
    pub last: u64,
    pub entries: Vec<Bytes>,
    pub keys: Vec<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
    /// The state after a batch, or `None` if the log must refuse the batch.
    pub fn after(&self, changes: &[Change]) -> Option<State> {
        let mut next = self.clone();
        for change in changes {
            next.apply(change)?;
        }
        next.0.retain(|_, group| **group != ModelGroup::default());
        Some(next)
    }

    fn apply(&mut self, change: &Change) -> Option<()> {
        match change {
            Change::Append { group, first, entries } => {
                let group = self.group_mut(*group);
                let lowest = group.entries.keys().next().copied().unwrap_or(group.floor);
                let end = group.entries.keys().next_back().map(|last| last + 1);
                if *first < lowest || end.is_some_and(|end| *first > end) {
                    return None;
                }
                group.entries.split_off(first);
                group.entries.extend((*first..).zip(entries.iter().cloned()));
            }
            Change::Put { group, key, value } => {
                self.group_mut(*group).keys.insert(key.clone(), value.clone());
            }
            Change::Delete { group, key } => {
                if let Some(group) = self.0.get_mut(group) {
                    Arc::make_mut(group).keys.remove(key);
                }
            }
            Change::Compact { group, first_kept } => {
                let group = self.group_mut(*group);
                group.floor = group.floor.max(*first_kept);
                group.entries = group.entries.split_off(first_kept);
            }
            Change::Remove { group } => {
                self.0.remove(group);
            }
        }
        Some(())
    }

    fn group_mut(&mut self, group: u64) -> &mut ModelGroup {
        Arc::make_mut(self.0.entry(group).or_default())
    }

    pub fn seen(&self) -> Observed {
        let seen = |group: &ModelGroup| {
            let (first, last) = group.bounds();
            let keys = group.keys.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
            Seen { first, last, entries: group.entries.values().cloned().collect(), keys }
        };
        self.0.iter().map(|(id, group)| (*id, seen(group))).collect()
    }

    /// Whether an observer of this state sees `seen`.
    pub fn looks_like(&self, seen: &Observed) -> bool {
        let mut pairs = self.0.iter().zip(seen);
        self.0.len() == seen.len() && pairs.all(|((id, group), (other, seen))| id == other && group.looks_like(seen))
    }
}

impl ModelGroup {
    /// The first and the last index; `last + 1 == first` without entries.
    fn bounds(&self) -> (u64, u64) {
        let first = self.entries.keys().next().copied().unwrap_or(self.floor.max(1));
        (first, self.entries.keys().next_back().copied().unwrap_or(first - 1))
    }

    fn looks_like(&self, seen: &Seen) -> bool {
        self.bounds() == (seen.first, seen.last)
            && self.entries.values().eq(&seen.entries)
            && self.keys.iter().eq(seen.keys.iter().map(|(key, value)| (key, value)))
    }
}

/// The name of a log file.
pub fn file(seq: u64) -> String {
    format!("{seq:016}.log")
}

/// Flips a bit of a file, also for open handles.
pub fn flip(disk: &SimDisk, name: &str, offset: usize) {
    let file = Disk::open(disk, name).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, offset as u64).unwrap();
    file.write_at(&[byte[0] ^ 4], offset as u64).unwrap();
}

/// All files of a disk.
pub fn contents(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let names = Disk::list(disk).unwrap();
    names.into_iter().map(|name| (name.clone(), disk.content(&name).unwrap())).collect()
}

/// Opens the log on a disk, to be driven step by step.
pub fn open(disk: &SimDisk, options: &LogOptions) -> Result<(LogEngine, LogWriter, RecoveryReport)> {
    LogEngine::open_driven(disk.session(), options.clone())
}

/// Everything that an observer can read from the engine.
pub fn observe(engine: &LogEngine) -> Result<Observed> {
    let mut out = BTreeMap::new();
    for id in engine.groups() {
        let bounds = engine.bounds(id).unwrap();
        let entries = engine.entries(id, bounds.first, bounds.last + 1, usize::MAX)?;
        for (index, entry) in (bounds.first..).zip(&entries) {
            assert_eq!(engine.entry(id, index)?, entry, "invariant 5: entry {index} of {id:?}, alone and in a range");
        }
        let keys = engine.scan(id)?.into_iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        out.insert(id.0, Seen { first: bounds.first, last: bounds.last, entries, keys });
    }
    Ok(out)
}

/// Small files and blocks: little work reaches every path.
pub fn small_options() -> LogOptions {
    LogOptions {
        file_bytes: 64 << 10,
        prefill_bytes: 16 << 10,
        group_bytes: 8 << 10,
        block_bytes: 1 << 10,
        // The queue is allocated by each open, of which the tests make very many.
        queue_batches: 1024,
        cache_bytes: 64 << 10,
        identity: Some(7),
        purge_threshold: 0,
        recovery_threads: 1,
        ..LogOptions::default()
    }
}

/// Generates batches that are mostly valid in a given state.
pub struct Generator {
    pub groups: u64,
    pub max_entry: usize,
    /// Whether groups are removed and recreated frequently.
    pub removes: bool,
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
        let known = state.0.get(&group).cloned().unwrap_or_default();
        let end = known.entries.keys().next_back().map_or(known.floor.max(1), |last| last + 1);
        let first = known.entries.keys().next().copied().unwrap_or(end);
        if self.removes && rng.random_bool(0.08) {
            return Change::Remove { group };
        }
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
