//! The storage over a log engine on a simulated disk.

use std::sync::Arc;

use bytes::Bytes;
use engine::disk::SimDisk;
use engine::log::{Durability, LogBatch, LogEngine, LogOptions, LogWriter};
use raft::eraftpb::{ConfState, Entry, EntryType, HardState};
use raft::{GetEntriesContext, Storage, StorageError};

use super::log_op::{decode_entry, encode_entry};
use super::{LogOp, PeerStorage, group, recover, restart, truncate};
use crate::records::{LogPosition, SnapshotIntent};
use crate::region::{Epoch, LogIndex, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreId, Term};
use crate::snapshot::SnapshotKey;

const ID: RegionId = RegionId::new(3);

fn region() -> Region {
    let peer = PeerMeta { id: PeerId::new(1), store: StoreId::new(1), role: PeerRole::Voter };
    Region { id: ID, start: Vec::new(), end: Vec::new(), epoch: Epoch::default(), peers: vec![peer] }
}

fn position(index: u64, term: u64) -> LogPosition {
    LogPosition { index: LogIndex::new(index), term: Term::new(term) }
}

fn entries(range: std::ops::RangeInclusive<u64>, term: u64) -> Vec<Entry> {
    range.map(|index| Entry { index, term, data: vec![index as u8; 100], ..Entry::default() }).collect()
}

struct Fixture {
    disk: Arc<SimDisk>,
    log: LogEngine,
    writer: LogWriter,
    storage: PeerStorage,
    writes: u64,
}

/// A region whose log starts after (5, term 2). Its cache holds two entries.
fn fixture() -> Fixture {
    let disk = SimDisk::new();
    let (log, mut writer, _) = LogEngine::open_driven(disk.session(), LogOptions::default()).unwrap();
    let mut batch = LogBatch::new();
    restart(group(ID), position(5, 2), &HardState { term: 2, vote: 1, commit: 5 }, &mut batch);
    log.submit_with(batch, Durability::Synced, Box::new(|_| {})).unwrap();
    writer.turn();
    let recovered = recover(&log, ID).unwrap().unwrap();
    let storage = PeerStorage::new(log.clone(), &region(), &recovered, 250).unwrap();
    Fixture { disk, log, writer, storage, writes: 0 }
}

impl Fixture {
    fn append(&mut self, entries: Vec<Entry>, acknowledge: bool) {
        self.writes += 1;
        self.storage.append(&entries, self.writes);
        self.submit(LogOp::Append(entries));
        if acknowledge {
            self.writer.turn();
            self.storage.on_durable(self.writes);
        }
    }

    fn submit(&mut self, op: LogOp) {
        let mut batch = LogBatch::new();
        op.add_to(ID, &mut batch);
        self.log.submit_with(batch, Durability::Synced, Box::new(|_| {})).unwrap();
    }

    fn read(&self, low: u64, high: u64, max: u64) -> raft::Result<Vec<(u64, u64)>> {
        let entries = self.storage.entries(low, high, max, GetEntriesContext::empty(false))?;
        Ok(entries.iter().map(|e| (e.index, e.term)).collect())
    }
}

#[test]
fn entries_are_read_across_log_and_cache() {
    let mut fixture = fixture();
    fixture.append(entries(6..=9, 2), true);
    fixture.append(entries(10..=11, 3), false);
    assert_eq!(fixture.storage.cache.first(), 10, "the unacknowledged entries stay");
    let all = [(6, 2), (7, 2), (8, 2), (9, 2), (10, 3), (11, 3)];
    assert_eq!(fixture.read(6, 12, u64::MAX).unwrap(), all);
    assert_eq!(fixture.read(8, 11, u64::MAX).unwrap(), all[2..5]);
    assert_eq!(fixture.read(6, 12, 1).unwrap(), all[..1], "at least one");
    assert!(fixture.read(8, 12, 300).unwrap().len() < 4);
    assert_eq!(fixture.storage.term(7).unwrap(), 2);
    assert_eq!(fixture.storage.term(11).unwrap(), 3);
    assert_eq!(fixture.storage.term(5).unwrap(), 2);
    assert!(fixture.storage.term(4).is_err() && fixture.storage.term(12).is_err());
    assert!(matches!(fixture.read(5, 7, 1), Err(raft::Error::Store(StorageError::Compacted))));
}

#[test]
fn unacknowledged_overwrites_hide_entries_in_the_log() {
    let mut fixture = fixture();
    fixture.append(entries(6..=9, 2), true);
    fixture.append(entries(7..=7, 4), false);
    assert_eq!(fixture.read(6, 8, u64::MAX).unwrap(), [(6, 2), (7, 4)]);
    assert_eq!(fixture.storage.last_index().unwrap(), 7);
}

#[test]
fn recovery_finds_acknowledged_state() {
    let mut fixture = fixture();
    fixture.append(entries(6..=9, 2), true);
    fixture.submit(LogOp::HardState(HardState { term: 3, vote: 1, commit: 8 }));
    let mut batch = LogBatch::new();
    truncate(ID, position(7, 2), &mut batch);
    fixture.log.submit_with(batch, Durability::Synced, Box::new(|_| {})).unwrap();
    fixture.writer.turn();
    fixture.append(entries(10..=11, 3), false);
    fixture.disk.crash(1);
    let (log, ..) = LogEngine::open_driven(fixture.disk.session(), LogOptions::default()).unwrap();
    let recovered = recover(&log, ID).unwrap().unwrap();
    assert_eq!(recovered.hard_state, HardState { term: 3, vote: 1, commit: 8 });
    assert_eq!((recovered.start, recovered.last, recovered.intent), (position(7, 2), LogIndex::new(9), None));
}

#[test]
fn restarted_log_keeps_nothing_of_the_old_one() {
    let mut fixture = fixture();
    fixture.append(entries(6..=20, 2), true);
    let hard_state = HardState { term: 9, vote: 0, commit: 12 };
    fixture.submit(LogOp::Intent(SnapshotIntent {
        key: SnapshotKey { region: ID, term: Term::new(7), index: LogIndex::new(12) },
        region: region(),
    }));
    fixture.writer.turn();
    assert!(recover(&fixture.log, ID).unwrap().unwrap().intent.is_some());
    fixture.submit(LogOp::Restart { start: position(12, 7), hard_state: hard_state.clone() });
    fixture.storage.restart(position(12, 7), ConfState::default());
    fixture.append(entries(13..=14, 9), true);
    let recovered = recover(&fixture.log, ID).unwrap().unwrap();
    let found = (recovered.hard_state, recovered.start, recovered.last, recovered.intent);
    assert_eq!(found, (hard_state, position(12, 7), LogIndex::new(14), None));
    assert_eq!(fixture.read(13, 15, u64::MAX).unwrap(), [(13, 9), (14, 9)]);
}

#[test]
fn read_failure_is_remembered() {
    let mut fixture = fixture();
    fixture.append(entries(6..=9, 2), true);
    fixture.storage.on_durable(1);
    let garbage = vec![Bytes::from_static(b"?")];
    let mut batch = LogBatch::new();
    batch.append(group(ID), 6, garbage);
    fixture.log.submit_with(batch, Durability::Synced, Box::new(|_| {})).unwrap();
    fixture.writer.turn();
    assert!(fixture.storage.failure().is_none());
    assert!(fixture.read(6, 7, u64::MAX).is_err());
    assert!(fixture.storage.failure().is_some());
}

#[test]
fn snapshot_before_the_log_start_is_rebuilt() {
    let mut fixture = fixture();
    fixture.append(entries(6..=20, 2), true);
    assert!(fixture.storage.snapshot(0, 2).is_err());
    assert!(fixture.storage.take_snapshot_request() && !fixture.storage.take_snapshot_request());
    let key = SnapshotKey { region: ID, term: Term::new(2), index: LogIndex::new(10) };
    fixture.storage.on_snapshot_built(Some((key, region())));
    assert_eq!(fixture.storage.snapshot(0, 2).unwrap().get_metadata().index, 10);
    fixture.storage.truncate(position(11, 2));
    assert!(fixture.storage.snapshot(0, 2).is_err());
    assert!(fixture.storage.take_snapshot_request());
}

#[test]
fn golden_bytes_of_an_entry() {
    let mut entry = Entry { index: 9, term: 3, data: b"xy".to_vec(), ..Entry::default() };
    assert_eq!(&encode_entry(&entry)[..], [0x10, 3, 0, 0, 0, 0, 0, 0, 0, b'x', b'y']);
    entry.set_entry_type(EntryType::EntryConfChangeV2);
    entry.context = b"c".to_vec();
    assert_eq!(&encode_entry(&entry)[..], [0x92, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, b'c', b'x', b'y']);
    assert_eq!(decode_entry(9, &encode_entry(&entry)), Ok(entry));
}

#[test]
fn malformed_entries_are_refused() {
    assert!(decode_entry(1, &[]).is_err());
    assert!(decode_entry(1, &[0x20, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
    assert!(decode_entry(1, &[0x10, 0, 0]).is_err());
    assert!(decode_entry(1, &[0x90, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]).is_err());
}

/// Regression: a read of entries that were overwritten meanwhile failed the replica, and with it the whole store.
#[test]
fn late_read_of_an_overwritten_log_is_dropped() {
    let mut fixture = fixture();
    fixture.append(entries(6..=20, 2), true);
    assert!(fixture.storage.entries(6, 21, None, GetEntriesContext::empty(true)).is_err());
    let fetch = fixture.storage.take_fetches()[0];
    fixture.append(entries(12..=12, 3), true);
    let read = fixture.log.entries(group(ID), 6, 21, 1 << 20);
    assert!(read.is_err(), "the log is shorter now");
    let failed = read.map(|_| Vec::new());
    assert!(fixture.storage.on_fetched(fetch, failed).is_empty());
    assert_eq!(fixture.storage.failure(), None);
}
