//! Bootstrap of a fresh store, and recovery of regions from disk.
//!
//! A store holds a region if its key-value store has the descriptor. The data and applied position there are those of
//! the last flush, so they may be behind the log, never ahead of it. A log group without a descriptor is left alone:
//! replaying the parent's log will create the region.

use std::collections::BTreeMap;

use engine::log::{Durability, LogBatch, LogEngine, LogError};
use engine::store::{Reader, Store};
use engine::{Cf, WriteBatch};
use raft::eraftpb::HardState;

use crate::error::OpenError;
use crate::records::{self, BOOTSTRAP_POSITION, LogPosition};
use crate::region::{Floors, Region, RegionId};
use crate::snapshot::SnapshotFiles;
use crate::snapshot_worker::check_file;
use crate::storage::{self, Recovered};

/// A region recovered from disk.
pub(crate) struct RecoveredRegion {
    pub(crate) region: Region,
    pub(crate) applied: LogPosition,
    pub(crate) floors: Floors,
    pub(crate) raft: Recovered,
}

/// Writes empty `regions` to a fresh store: descriptor, applied position and log start. Durable on return. Existing
/// regions are left alone, so it may be called at each start, also after a crash in the middle. Blocks until the log
/// and the key-value store have synced.
///
/// # Errors
///
/// `Damaged` if a descriptor is not sound or existing records contradict each other; `Store` or `Log` if one of them
/// fails.
pub fn bootstrap<S: Store>(store: &S, log: &LogEngine, regions: &[Region]) -> Result<(), OpenError> {
    let snapshot = store.snapshot();
    let mut descriptors = WriteBatch::new();
    let mut starts = LogBatch::new();
    for region in regions {
        check_region(region)?;
        if storage::recover(log, region.id)?.is_none() {
            let hard_state = HardState {
                term: BOOTSTRAP_POSITION.term.get(),
                commit: BOOTSTRAP_POSITION.index.get(),
                ..HardState::default()
            };
            storage::restart(storage::group(region.id), BOOTSTRAP_POSITION, &hard_state, &mut starts);
        }
        if snapshot.get(Cf::Meta, &records::descriptor_key(region.id))?.is_none() {
            descriptors.put(Cf::Meta, &records::descriptor_key(region.id), &records::encode_region(region));
            let position = records::encode_position(BOOTSTRAP_POSITION);
            descriptors.put(Cf::Meta, &records::applied_key(region.id), &position);
        }
    }
    // The log first. A group without a descriptor is ignored at recovery; a descriptor without a group would be damage.
    write_log(log, starts)?;
    if !descriptors.is_empty() {
        store.write(&descriptors)?;
        store.flush()?;
    }
    Ok(())
}

/// Refuses a descriptor on which no replica can run.
fn check_region(region: &Region) -> Result<(), OpenError> {
    if region.is_sound() {
        return Ok(());
    }
    Err(OpenError::Damaged { region: region.id, what: "its descriptor is not sound".to_string() })
}

/// Recovers every region and its Raft state. A region with an interrupted snapshot installation has an intent: its peer
/// continues the installation, and until then the region's data is undefined.
pub(crate) fn recover_all<S: Store>(
    store: &S,
    log: &LogEngine,
    snapshots: &SnapshotFiles,
) -> Result<Vec<RecoveredRegion>, OpenError> {
    let snapshot = store.snapshot();
    let mut descriptors = read_descriptors(&snapshot)?;
    for group in log.groups() {
        let Some(Recovered { intent: Some(intent), .. }) = storage::recover(log, RegionId::new(group.0))? else {
            continue;
        };
        check_file(snapshots.check(intent.key), &intent)?;
        descriptors.entry(intent.key.region).or_insert(intent.region);
    }
    let mut regions = Vec::new();
    for region in descriptors.into_values() {
        check_region(&region)?;
        let damaged = |what: &str| OpenError::Damaged { region: region.id, what: what.to_string() };
        let mut raft = storage::recover(log, region.id)?.ok_or_else(|| damaged("it has no log"))?;
        let applied = match snapshot.get(Cf::Meta, &records::applied_key(region.id))? {
            Some(applied) => records::decode_position(&applied).map_err(|e| damaged(&e.to_string()))?,
            None if raft.intent.is_some() => LogPosition::default(),
            None => return Err(damaged("it has no applied position")),
        };
        let floors = match snapshot.get(Cf::Meta, &records::floors_key(region.id))? {
            Some(floors) => records::decode_floors(&floors).map_err(|e| damaged(&e.to_string()))?,
            None => Floors::default(),
        };
        raft.reconcile(region.id, applied)?;
        regions.push(RecoveredRegion { region, applied, floors, raft });
    }
    Ok(regions)
}

fn read_descriptors(snapshot: &impl Reader) -> Result<BTreeMap<RegionId, Region>, OpenError> {
    let (lower, upper) = records::descriptor_range();
    let mut descriptors = BTreeMap::new();
    let mut cursor = snapshot.cursor(Cf::Meta, &lower, &upper)?;
    let mut found = cursor.seek_to_first()?;
    while found {
        let damaged = |what: String| OpenError::Damaged { region: RegionId::default(), what };
        let region = records::decode_region(cursor.value()).map_err(|e| damaged(e.to_string()))?;
        if cursor.key() != records::descriptor_key(region.id) {
            return Err(damaged(format!("descriptor of region {} is stored under another key", region.id)));
        }
        descriptors.insert(region.id, region);
        found = cursor.next()?;
    }
    Ok(descriptors)
}

/// Writes a batch and waits until it is durable.
fn write_log(log: &LogEngine, batch: LogBatch) -> Result<(), LogError> {
    if batch.is_empty() {
        return Ok(());
    }
    log.write(batch, Durability::Synced).map(drop)
}
