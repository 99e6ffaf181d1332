//! Keys and small records of the catalog, all in the system region under `m`.
//!
//! | key | value |
//! |---|---|
//! | `mv` | the catalog version and the transaction that wrote it |
//! | `mi` | the next free table or storage id |
//! | `mn{schema id}{name}` | the id of the table of that name |
//! | `mt{table id}` | a table's descriptor |
//! | `md{storage id}` | the start_ts of the transaction that dropped this storage; its rows are to be removed |
//!
//! Ids are four bytes, big-endian. Every value starts with a version byte.

use bytes::Bytes;
use kv::Key;
use tso::Timestamp;

use crate::codec::{CodecError, take};
use crate::table::{StorageId, TableId};

/// The only schema.
pub const PUBLIC: &str = "public";
/// Its id, as in PostgreSQL.
const PUBLIC_ID: u32 = 2200;
/// The first id for users' tables, as in PostgreSQL.
pub const FIRST_ID: u32 = 16_384;
const VERSION: u8 = 1;

/// The catalog version record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRecord {
    /// Raised by every schema change.
    pub version: u64,
    /// The start_ts of its writer. A reader that finds its own start_ts has changed the schema itself.
    pub writer: Timestamp,
}

/// The key of the version record.
pub fn version() -> Key {
    Key::new(&b"mv"[..])
}

/// The key of the id counter.
pub fn next_id() -> Key {
    Key::new(&b"mi"[..])
}

/// The key that maps a name in the schema `public` to its table.
pub fn name(name: &str) -> Key {
    let mut out = b"mn".to_vec();
    out.extend_from_slice(&PUBLIC_ID.to_be_bytes());
    out.extend_from_slice(name.as_bytes());
    Key::new(out)
}

/// The name in a key made by [`name`].
pub fn name_of(key: &Key) -> Option<&str> {
    let rest = key.as_bytes().strip_prefix(b"mn")?;
    std::str::from_utf8(rest.get(4..)?).ok()
}

/// The key of a table's descriptor.
pub fn table(id: TableId) -> Key {
    with_id(b"mt", id.0)
}

/// The range of all descriptors.
pub fn tables() -> (Key, Key) {
    (Key::new(&b"mt"[..]), Key::new(&b"mu"[..]))
}

/// The key of the record of a dropped storage.
pub fn dropped(id: StorageId) -> Key {
    with_id(b"md", id.0)
}

/// The range of the records of dropped storages.
pub fn all_dropped() -> (Key, Key) {
    (Key::new(&b"md"[..]), Key::new(&b"me"[..]))
}

/// The storage id in a key made by [`dropped`].
pub fn dropped_id(key: &Key) -> Option<StorageId> {
    let rest = key.as_bytes().strip_prefix(b"md")?;
    Some(StorageId(u32::from_be_bytes(rest.try_into().ok()?)))
}

fn with_id(prefix: &[u8], id: u32) -> Key {
    let mut out = prefix.to_vec();
    out.extend_from_slice(&id.to_be_bytes());
    Key::new(out)
}

impl VersionRecord {
    /// Encodes the record.
    pub fn encode(self) -> Bytes {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.version.to_be_bytes());
        out.extend_from_slice(&self.writer.raw().to_be_bytes());
        out.into()
    }

    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Result<VersionRecord, CodecError> {
        let mut rest = versioned(bytes, "catalog version")?;
        let version = number::<8>(&mut rest, "catalog version")?;
        let writer = number::<8>(&mut rest, "catalog version")?;
        Ok(VersionRecord {
            version: u64::from_be_bytes(version),
            writer: Timestamp::from_raw(u64::from_be_bytes(writer)),
        })
    }
}

/// Encodes the value of [`next_id`] and of [`name`].
pub fn encode_id(id: u32) -> Bytes {
    let mut out = vec![VERSION];
    out.extend_from_slice(&id.to_be_bytes());
    out.into()
}

/// Decodes an id.
pub fn decode_id(bytes: &[u8]) -> Result<u32, CodecError> {
    let mut rest = versioned(bytes, "catalog id")?;
    number::<4>(&mut rest, "catalog id").map(u32::from_be_bytes)
}

/// Encodes the value of [`dropped`]: the start_ts of the transaction that dropped the storage.
pub fn encode_dropped(at: Timestamp) -> Bytes {
    let mut out = vec![VERSION];
    out.extend_from_slice(&at.raw().to_be_bytes());
    out.into()
}

/// Decodes the value of [`dropped`].
pub fn decode_dropped(bytes: &[u8]) -> Result<Timestamp, CodecError> {
    let mut rest = versioned(bytes, "dropped storage")?;
    number::<8>(&mut rest, "dropped storage").map(|raw| Timestamp::from_raw(u64::from_be_bytes(raw)))
}

/// The bytes after the version byte.
pub fn versioned<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a [u8], CodecError> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        _ => Err(CodecError::new(what, "unknown version")),
    }
}

fn number<const N: usize>(input: &mut &[u8], what: &'static str) -> Result<[u8; N], CodecError> {
    take(input, N, what)?.try_into().map_err(|_| CodecError::new(what, "cut short"))
}
