//! The replicated records of the system region: stores, the id counter, the oracle's mark, the safe point.
//!
//! They are plain key-value records in `Cf::Default`, outside MVCC: the oracle and the registration of stores must work
//! before timestamps exist. Their keys begin with `s`. That is within the system region, and no encoded MVCC key begins
//! with it (those are `m` and `t` keys). Only the region's leader changes them, one change at a time, and proposes each
//! change on the snapshot that it was computed from. `docs/formats.md` pins the layouts.

use std::num::NonZeroU64;

use engine::store::{Reader, StoreError};
use engine::{Cf, WriteBatch};
use raftstore::StoreId;
use tso::Timestamp;

const STORE_PREFIX: &[u8] = b"s:store:";
/// The first key after every store record (`:` + 1).
const STORE_END: &[u8] = b"s:store;";
const NEXT_ID: &[u8] = b"s:next-id";
const TSO_MARK: &[u8] = b"s:tso-mark";
const SAFE_POINT: &[u8] = b"s:safe-point";
const RECORD_VERSION: u8 = 1;
/// Version 2 of store records added `joining`.
const STORE_VERSION: u8 = 2;

/// Identifies a process that wants to become a store: a random number, drawn once per process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceId(NonZeroU64);

impl InstanceId {
    /// The instance with this number; `None` for 0.
    pub const fn new(raw: u64) -> Option<InstanceId> {
        match NonZeroU64::new(raw) {
            Some(raw) => Some(InstanceId(raw)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// A store of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRecord {
    /// The store.
    pub id: StoreId,
    /// The address for other nodes.
    pub address: String,
    /// The locality of the node, as configured.
    pub locality: String,
    /// The process that received the id; `None` once the store has sent its first heartbeat. Until then the store holds
    /// no replica.
    pub joining: Option<InstanceId>,
}

/// The decision on a process that wants to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The process was admitted before; the response may have been lost. It gets the same id.
    Known(StoreId),
    /// Refused: the address belongs to a store that has sent heartbeats.
    Taken(StoreId),
    /// The process gets a new id.
    New {
        /// The id of an earlier process at the same address, which ended before its first heartbeat. It is never used:
        /// remove its record.
        abandoned: Option<StoreId>,
    },
}

/// Decides whether `instance` may join at `address`. An id is never given to two processes.
pub fn admit(stores: &[StoreRecord], address: &str, instance: InstanceId) -> Admission {
    match stores.iter().find(|store| store.address == address) {
        None => Admission::New { abandoned: None },
        Some(store) => match store.joining {
            Some(joining) if joining == instance => Admission::Known(store.id),
            Some(_) => Admission::New { abandoned: Some(store.id) },
            None => Admission::Taken(store.id),
        },
    }
}

/// Why a record of the registry could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record is malformed or of an unknown version; names the record.
    #[error("malformed registry record {0}")]
    Malformed(&'static str),
}

/// All registered stores, in the order of their ids.
///
/// # Errors
///
/// [`RegistryError`] if the store fails or a record is malformed.
pub fn stores(reader: &dyn Reader) -> Result<Vec<StoreRecord>, RegistryError> {
    let mut cursor = reader.cursor(Cf::Default, STORE_PREFIX, STORE_END)?;
    let mut found = Vec::new();
    let mut more = cursor.seek_to_first()?;
    while more {
        found.push(decode_store(cursor.key(), cursor.value())?);
        more = cursor.next()?;
    }
    Ok(found)
}

/// Writes the record of a new or changed store.
pub fn put_store(batch: &mut WriteBatch, record: &StoreRecord) {
    batch.put(Cf::Default, &store_key(record.id), &encode_store(record));
}

/// Deletes the record of a store.
pub fn remove_store(batch: &mut WriteBatch, id: StoreId) {
    batch.delete(Cf::Default, &store_key(id));
}

/// Allocates `count` consecutive ids for stores and peers: returns the first and advances the counter in `batch`.
///
/// # Errors
///
/// [`RegistryError`] if the store fails or the counter is malformed.
pub fn allocate_ids(reader: &dyn Reader, batch: &mut WriteBatch, count: u64) -> Result<u64, RegistryError> {
    let first = match reader.get(Cf::Default, NEXT_ID)? {
        None => FIRST_FREE_ID,
        Some(bytes) => decode_u64(&bytes).ok_or(RegistryError::Malformed("s:next-id"))?,
    };
    batch.put(Cf::Default, NEXT_ID, &encode_u64(first + count));
    Ok(first)
}

/// The first id that [`allocate_ids`] returns. The initialisation of a cluster uses ids below it.
pub const FIRST_FREE_ID: u64 = 1000;

/// The oracle's high-water mark, as a raw timestamp; 0 in a new cluster.
///
/// # Errors
///
/// [`RegistryError`] if the store fails or the mark is malformed.
pub fn tso_mark(reader: &dyn Reader) -> Result<u64, RegistryError> {
    match reader.get(Cf::Default, TSO_MARK)? {
        None => Ok(0),
        Some(bytes) => decode_u64(&bytes).ok_or(RegistryError::Malformed("s:tso-mark")),
    }
}

/// Writes the oracle's mark.
pub fn put_tso_mark(batch: &mut WriteBatch, mark: u64) {
    batch.put(Cf::Default, TSO_MARK, &encode_u64(mark));
}

/// The safe point of garbage collection that was chosen last; zero in a new cluster. No region has a greater one.
///
/// # Errors
///
/// [`RegistryError`] if the store fails or the record is malformed.
pub fn safe_point(reader: &dyn Reader) -> Result<Timestamp, RegistryError> {
    match reader.get(Cf::Default, SAFE_POINT)? {
        None => Ok(Timestamp::ZERO),
        Some(bytes) => decode_u64(&bytes).map(Timestamp::from_raw).ok_or(RegistryError::Malformed("s:safe-point")),
    }
}

/// Writes the safe point, before any region has it.
pub fn put_safe_point(batch: &mut WriteBatch, safe_point: Timestamp) {
    batch.put(Cf::Default, SAFE_POINT, &encode_u64(safe_point.raw()));
}

fn store_key(id: StoreId) -> Vec<u8> {
    [STORE_PREFIX, &id.get().to_be_bytes()].concat()
}

fn encode_store(record: &StoreRecord) -> Vec<u8> {
    let mut out = vec![STORE_VERSION];
    for text in [&record.address, &record.locality] {
        out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(&record.joining.map_or(0, InstanceId::get).to_le_bytes());
    out
}

fn decode_store(key: &[u8], value: &[u8]) -> Result<StoreRecord, RegistryError> {
    const WHAT: RegistryError = RegistryError::Malformed("s:store");
    let id = key.strip_prefix(STORE_PREFIX).and_then(|rest| rest.try_into().ok()).map(u64::from_be_bytes);
    let (Some(id), Some((version, rest))) = (id, value.split_first()) else {
        return Err(WHAT);
    };
    let (address, rest) = take_text(rest).ok_or(WHAT)?;
    let (locality, rest) = take_text(rest).ok_or(WHAT)?;
    let joining = match (version, <[u8; 8]>::try_from(rest)) {
        (&STORE_VERSION, Ok(raw)) => InstanceId::new(u64::from_le_bytes(raw)),
        // Version 1 has no `joining`: its stores have sent heartbeats.
        (1, Err(_)) if rest.is_empty() => None,
        _ => return Err(WHAT),
    };
    Ok(StoreRecord { id: StoreId::new(id), address, locality, joining })
}

fn take_text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    Some((String::from_utf8(text.to_vec()).ok()?, rest))
}

fn encode_u64(value: u64) -> Vec<u8> {
    [&[RECORD_VERSION], &value.to_le_bytes()[..]].concat()
}

fn decode_u64(bytes: &[u8]) -> Option<u64> {
    match bytes.split_first()? {
        (&RECORD_VERSION, rest) => Some(u64::from_le_bytes(rest.try_into().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use engine::store::Store;
    use engine::store::memory::MemoryStore;

    use super::*;

    fn record(id: u64) -> StoreRecord {
        StoreRecord {
            id: StoreId::new(id),
            address: format!("10.0.0.{id}:26257"),
            locality: "region=eu".to_string(),
            joining: None,
        }
    }

    #[test]
    fn stores_are_listed_by_id_with_their_last_record() {
        let store = MemoryStore::new();
        let mut batch = WriteBatch::new();
        put_store(&mut batch, &record(300));
        put_store(&mut batch, &record(2));
        put_store(&mut batch, &StoreRecord { address: "moved:1".to_string(), ..record(2) });
        put_tso_mark(&mut batch, 7);
        store.write(&batch).unwrap();
        let found = stores(&store.snapshot()).unwrap();
        assert_eq!(
            found.iter().map(|s| (s.id.get(), s.address.as_str())).collect::<Vec<_>>(),
            [(2, "moved:1"), (300, "10.0.0.300:26257")]
        );
    }

    #[test]
    fn an_instance_that_asks_again_gets_the_same_id() {
        let instance = |raw| InstanceId::new(raw).unwrap();
        let reported = record(1000);
        let joining = StoreRecord { joining: Some(instance(7)), ..record(1001) };
        let known = [reported.clone(), joining.clone()];
        let admit = |address: &str, raw| admit(&known, address, instance(raw));
        assert_eq!(admit("elsewhere:1", 7), Admission::New { abandoned: None });
        assert_eq!(admit(&reported.address, 7), Admission::Taken(reported.id));
        assert_eq!(admit(&joining.address, 7), Admission::Known(joining.id));
        assert_eq!(admit(&joining.address, 8), Admission::New { abandoned: Some(joining.id) });
    }

    #[test]
    fn removed_stores_are_not_listed() {
        let store = MemoryStore::new();
        let mut batch = WriteBatch::new();
        put_store(&mut batch, &record(2));
        put_store(&mut batch, &record(3));
        store.write(&batch).unwrap();
        let mut batch = WriteBatch::new();
        remove_store(&mut batch, StoreId::new(2));
        store.write(&batch).unwrap();
        assert_eq!(stores(&store.snapshot()).unwrap(), [record(3)]);
    }

    #[test]
    fn ids_are_allocated_once() {
        let store = MemoryStore::new();
        let mut seen = Vec::new();
        for _ in 0..3 {
            let mut batch = WriteBatch::new();
            seen.push(allocate_ids(&store.snapshot(), &mut batch, 2).unwrap());
            store.write(&batch).unwrap();
        }
        assert_eq!(seen, [1000, 1002, 1004]);
    }

    #[test]
    fn the_mark_reads_back() {
        let store = MemoryStore::new();
        assert_eq!(tso_mark(&store.snapshot()).unwrap(), 0);
        let mut batch = WriteBatch::new();
        put_tso_mark(&mut batch, 1 << 60);
        store.write(&batch).unwrap();
        assert_eq!(tso_mark(&store.snapshot()).unwrap(), 1 << 60);
        assert_eq!(safe_point(&store.snapshot()).unwrap(), Timestamp::ZERO);
        let mut batch = WriteBatch::new();
        put_safe_point(&mut batch, Timestamp::new(5, 1));
        store.write(&batch).unwrap();
        let bytes = store.snapshot().get(Cf::Default, SAFE_POINT).unwrap().unwrap();
        assert_eq!(bytes[..], [1, 1, 0, 0x14, 0, 0, 0, 0, 0]);
        assert_eq!(safe_point(&store.snapshot()).unwrap(), Timestamp::new(5, 1));
    }

    #[test]
    fn store_records_are_pinned_and_malformed_ones_are_errors() {
        let joining = StoreRecord { joining: InstanceId::new(0x0102), ..record(5) };
        let good = encode_store(&joining);
        let mut pinned = vec![2, 14, 0, 0, 0];
        pinned.extend_from_slice(b"10.0.0.5:26257");
        pinned.extend_from_slice(&[9, 0, 0, 0]);
        pinned.extend_from_slice(b"region=eu");
        pinned.extend_from_slice(&[2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(good, pinned);
        let decode = |value: &[u8]| decode_store(&store_key(StoreId::new(5)), value);
        assert_eq!(decode(&good).unwrap(), joining);
        assert_eq!(decode(&encode_store(&record(5))).unwrap(), record(5));
        for cut in 0..good.len() {
            assert!(decode(&good[..cut]).is_err(), "cut at {cut}");
        }
        let (mut first, mut newer) = (good[..good.len() - 8].to_vec(), good.clone());
        (first[0], newer[0]) = (1, 3);
        assert_eq!(decode(&first).unwrap(), record(5), "version 1");
        assert!(decode(&newer).is_err(), "a newer version");
        assert_eq!(encode_u64(258), [1, 2, 1, 0, 0, 0, 0, 0, 0]);
    }
}
