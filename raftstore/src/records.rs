//! The persistent records of a region, and their keys.
//!
//! Three records live in [`engine::Cf::Meta`] of the key-value store, written in the same batch as the data they
//! describe: the region descriptor, the applied position and the floors. Three are small keys of the region's log
//! group: hard state, log start and snapshot intent. `docs/formats.md` describes the layouts; the tests below pin them.

use raft::eraftpb::{ConfState, HardState};

use crate::codec::{Fields, Malformed, put_bytes};
use crate::region::{Epoch, Floor, Floors, LogIndex, PeerId, PeerMeta, PeerRole, Region, RegionId, StoreId, Term};
use crate::snapshot::SnapshotKey;

const VERSION: u8 = 1;

const META_DESCRIPTOR: u8 = 0x01;
const META_APPLIED: u8 = 0x02;
const META_FLOORS: u8 = 0x03;

/// Key of the hard state in a log group.
pub const HARD_STATE_KEY: &[u8] = b"h";
/// Key of the log start in a log group.
pub const LOG_START_KEY: &[u8] = b"t";
/// Key of the snapshot intent in a log group.
pub const INTENT_KEY: &[u8] = b"s";

/// A position in a region's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// The index.
    pub index: LogIndex,
    /// The term of the entry there.
    pub term: Term,
}

/// The log start of a bootstrapped region, as if one entry had been written, applied and truncated. A replica that was
/// created empty is behind it and therefore gets a snapshot.
pub const BOOTSTRAP_POSITION: LogPosition = LogPosition { index: LogIndex::new(1), term: Term::new(1) };

/// A snapshot being installed. After a crash the installation is redone from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotIntent {
    /// The snapshot file.
    pub key: SnapshotKey,
    /// The region descriptor in the snapshot.
    pub region: Region,
}

/// Meta key of a region's descriptor.
pub fn descriptor_key(region: RegionId) -> [u8; 9] {
    meta_key(META_DESCRIPTOR, region)
}

/// Meta key of a region's applied position.
pub fn applied_key(region: RegionId) -> [u8; 9] {
    meta_key(META_APPLIED, region)
}

/// Meta key of a region's floors. A region without the record has none.
pub fn floors_key(region: RegionId) -> [u8; 9] {
    meta_key(META_FLOORS, region)
}

/// The key range of all descriptors in Meta: first key, and first key after them.
pub fn descriptor_range() -> ([u8; 1], [u8; 1]) {
    ([META_DESCRIPTOR], [META_DESCRIPTOR + 1])
}

fn meta_key(kind: u8, region: RegionId) -> [u8; 9] {
    let mut key = [kind; 9];
    key[1..].copy_from_slice(&region.get().to_be_bytes());
    key
}

/// Encodes a descriptor.
pub fn encode_region(region: &Region) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_u64(&mut out, &[region.id.get(), region.epoch.conf_ver, region.epoch.version]);
    put_bytes(&mut out, &region.start);
    put_bytes(&mut out, &region.end);
    // A region has a handful of replicas. If the count saturated, decoding would fail.
    out.extend_from_slice(&u32::try_from(region.peers.len()).unwrap_or(u32::MAX).to_le_bytes());
    for peer in &region.peers {
        put_u64(&mut out, &[peer.id.get(), peer.store.get()]);
        out.push(match peer.role {
            PeerRole::Voter => 0,
            PeerRole::Learner => 1,
        });
    }
    out
}

/// Decodes a descriptor.
pub fn decode_region(bytes: &[u8]) -> Result<Region, Malformed> {
    let mut fields = Fields::new("region descriptor", bytes);
    let region = read_region(&mut fields)?;
    fields.end()?;
    Ok(region)
}

fn read_region(fields: &mut Fields<'_>) -> Result<Region, Malformed> {
    fields.exactly(VERSION)?;
    let id = RegionId::new(fields.u64()?);
    let epoch = Epoch { conf_ver: fields.u64()?, version: fields.u64()? };
    let start = fields.bytes()?.to_vec();
    let end = fields.bytes()?.to_vec();
    let count = fields.u32()?;
    let mut peers = Vec::new();
    for _ in 0..count {
        let (id, store) = (PeerId::new(fields.u64()?), StoreId::new(fields.u64()?));
        let malformed = fields.malformed();
        let role = match fields.u8()? {
            0 => PeerRole::Voter,
            1 => PeerRole::Learner,
            _ => return Err(malformed),
        };
        peers.push(PeerMeta { id, store, role });
    }
    Ok(Region { id, start, end, epoch, peers })
}

/// Encodes a position (the applied position or the log start).
pub fn encode_position(position: LogPosition) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_u64(&mut out, &[position.index.get(), position.term.get()]);
    out
}

/// Decodes a position.
pub fn decode_position(bytes: &[u8]) -> Result<LogPosition, Malformed> {
    let mut fields = Fields::new("log position", bytes);
    fields.exactly(VERSION)?;
    let position = LogPosition { index: LogIndex::new(fields.u64()?), term: Term::new(fields.u64()?) };
    fields.end()?;
    Ok(position)
}

/// Encodes the floors.
pub fn encode_floors(floors: Floors) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_u64(&mut out, &[floors.writes.get(), floors.reads.get()]);
    out
}

/// Decodes the floors.
pub fn decode_floors(bytes: &[u8]) -> Result<Floors, Malformed> {
    let mut fields = Fields::new("floors", bytes);
    fields.exactly(VERSION)?;
    let floors = Floors { writes: Floor::new(fields.u64()?), reads: Floor::new(fields.u64()?) };
    fields.end()?;
    Ok(floors)
}

/// Encodes a hard state.
pub fn encode_hard_state(state: &HardState) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_u64(&mut out, &[state.term, state.vote, state.commit]);
    out
}

/// Decodes a hard state.
pub fn decode_hard_state(bytes: &[u8]) -> Result<HardState, Malformed> {
    let mut fields = Fields::new("hard state", bytes);
    fields.exactly(VERSION)?;
    let state = HardState { term: fields.u64()?, vote: fields.u64()?, commit: fields.u64()? };
    fields.end()?;
    Ok(state)
}

/// Encodes a snapshot intent.
pub fn encode_intent(intent: &SnapshotIntent) -> Vec<u8> {
    let mut out = vec![VERSION];
    put_u64(&mut out, &[intent.key.region.get(), intent.key.term.get(), intent.key.index.get()]);
    out.extend_from_slice(&encode_region(&intent.region));
    out
}

/// Decodes a snapshot intent.
pub fn decode_intent(bytes: &[u8]) -> Result<SnapshotIntent, Malformed> {
    let mut fields = Fields::new("snapshot intent", bytes);
    fields.exactly(VERSION)?;
    let key = SnapshotKey {
        region: RegionId::new(fields.u64()?),
        term: Term::new(fields.u64()?),
        index: LogIndex::new(fields.u64()?),
    };
    let region = read_region(&mut fields)?;
    fields.end()?;
    Ok(SnapshotIntent { key, region })
}

/// The voters and learners of a descriptor, as raft-rs represents them.
pub fn conf_state(region: &Region) -> ConfState {
    let ids = |role| region.peers.iter().filter(|p| p.role == role).map(|p| p.id.get()).collect::<Vec<u64>>();
    ConfState { voters: ids(PeerRole::Voter), learners: ids(PeerRole::Learner), ..ConfState::default() }
}

fn put_u64(out: &mut Vec<u8>, values: &[u64]) {
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region() -> Region {
        let peer = |id, store, role| PeerMeta { id: PeerId::new(id), store: StoreId::new(store), role };
        Region {
            id: RegionId::new(2),
            start: b"a".to_vec(),
            end: b"bc".to_vec(),
            epoch: Epoch { conf_ver: 3, version: 4 },
            peers: vec![peer(5, 6, PeerRole::Voter), peer(7, 8, PeerRole::Learner)],
        }
    }

    fn le(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    fn golden_region() -> Vec<u8> {
        let parts: [&[u8]; 11] = [
            &[1],
            &le(&[2, 3, 4]),
            &[1, 0, 0, 0],
            b"a",
            &[2, 0, 0, 0],
            b"bc",
            &[2, 0, 0, 0],
            &le(&[5, 6]),
            &[0],
            &le(&[7, 8]),
            &[1],
        ];
        parts.concat()
    }

    #[test]
    fn golden_bytes() {
        assert_eq!(encode_region(&region()), golden_region());
        let position = LogPosition { index: LogIndex::new(9), term: Term::new(8) };
        assert_eq!(encode_position(position), [vec![1], le(&[9, 8])].concat());
        let floors = Floors { writes: Floor::new(9), reads: Floor::new(8) };
        assert_eq!(encode_floors(floors), [vec![1], le(&[9, 8])].concat());
        assert_eq!(decode_floors(&encode_floors(floors)), Ok(floors));
        assert_eq!(floors_key(RegionId::new(2)), [3, 0, 0, 0, 0, 0, 0, 0, 2]);
        let hard = HardState { term: 1, vote: 2, commit: 3 };
        assert_eq!(encode_hard_state(&hard), [vec![1], le(&[1, 2, 3])].concat());
        let key = SnapshotKey { region: RegionId::new(2), term: Term::new(8), index: LogIndex::new(9) };
        let intent = SnapshotIntent { key, region: region() };
        assert_eq!(encode_intent(&intent), [vec![1], le(&[2, 8, 9]), golden_region()].concat());
        assert_eq!(descriptor_key(RegionId::new(2)), [1, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(applied_key(RegionId::new(2)), [2, 0, 0, 0, 0, 0, 0, 0, 2]);
    }

    #[test]
    fn records_round_trip() {
        assert_eq!(decode_region(&golden_region()), Ok(region()));
        let position = LogPosition { index: LogIndex::new(9), term: Term::new(8) };
        assert_eq!(decode_position(&encode_position(position)), Ok(position));
        let hard = HardState { term: 1, vote: 2, commit: 3 };
        assert_eq!(decode_hard_state(&encode_hard_state(&hard)), Ok(hard));
        let key = SnapshotKey { region: RegionId::new(2), term: Term::new(8), index: LogIndex::new(9) };
        let intent = SnapshotIntent { key, region: region() };
        assert_eq!(decode_intent(&encode_intent(&intent)), Ok(intent));
    }

    #[test]
    fn truncated_and_foreign_records_are_refused() {
        let bytes = golden_region();
        for len in 0..bytes.len() {
            assert!(decode_region(&bytes[..len]).is_err(), "cut at {len}");
        }
        let mut newer = bytes.clone();
        newer[0] = 2;
        assert!(decode_region(&newer).is_err());
        let mut longer = bytes;
        longer.push(0);
        assert!(decode_region(&longer).is_err());
    }
}
