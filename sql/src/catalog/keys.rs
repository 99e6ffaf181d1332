//! Keys and small records of the catalog, all in the system region under `m`.
//!
//! | key | value |
//! |---|---|
//! | `ma` | the number of ANALYZEs so far |
//! | `ma{table id}` | statistics of a table (module [`super::statistics`]) |
//! | `mi` | the next free table or storage id |
//! | `mn{schema id}{name}` | the id of the relation of that name: a table, an index, a view or a sequence |
//! | `mo{object id}` | an object that is no table ([`super::object_record`]) |
//! | `mo{object id}c` | the comments on an object of any kind ([`super::comments`]) |
//! | `mp{database id}{name}` | the id of the schema of that name |
//! | `mq{schema id}{name}` | the id of the type of that name |
//! | `mr{name}` | the id of the database of that name |
//! | `mt{table id}` | a table's descriptor |
//! | `mb{storage id}` | the start_ts of the schema change that fills this storage ([`super::reclaim`]) |
//! | `md{id}` | the start_ts of the transaction that dropped this storage or sequence, with rows or values left |
//! | `msgc_ttl` | how long old versions are kept, in milliseconds |
//! | `mu{sequence id}` | the values of a sequence (module `sequence`) |
//! | `mu{sequence id}{epoch}` | those of an epoch that a RESTART began |
//! | `mv` | the catalog version and the transaction that wrote it |
//! | `mw{node}` | the node's lease on the catalog |
//! | `mx{table id}` | the table is closed by a schema change |
//! | `my{start_ts}` | the committed schema change of that transaction is not published yet |
//!
//! Ids are four bytes, nodes and timestamps eight, big-endian. Every value starts with a version byte. The records from
//! `mv` on, the *control records*, are few and small: one scan reads them all ([`super::control`]).

use std::time::Duration;

use bytes::Bytes;
use kv::Key;
use tso::Timestamp;

use crate::codec::{CodecError, take};
use crate::object::{DatabaseId, Object, ObjectId, SchemaId};
use crate::table::{StorageId, TableId};

/// The first id for users' tables, as in PostgreSQL.
pub const FIRST_ID: u32 = 16_384;
const VERSION: u8 = 1;

/// A node: the id of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// A node's lease on the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The start_ts of the transaction that acquired the lease. Renewals keep it.
    pub term: Timestamp,
    /// The end of the lease. The node plans no statement, and commits nothing, above it.
    pub until: Timestamp,
    /// The catalog version that the node has adopted, with all of its transactions. 0 for none.
    pub version: u64,
}

/// The schema change that closes a table, or that waits for its publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerRecord {
    /// The start_ts of its transaction.
    pub owner: Timestamp,
    /// The node that runs it.
    pub node: NodeId,
    /// The term of that node's lease.
    pub term: Timestamp,
}

/// The catalog version record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRecord {
    /// Raised by every schema change.
    pub version: u64,
    /// The start_ts of its writer.
    pub writer: Timestamp,
}

/// The key of the version record.
pub fn version() -> Key {
    Key::new(&b"mv"[..])
}

/// The key of the time for which old versions are kept.
pub fn gc_ttl() -> Key {
    Key::new(&b"msgc_ttl"[..])
}

/// Encodes the time for which old versions are kept.
pub fn encode_gc_ttl(ttl: Duration) -> Vec<u8> {
    let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    [&[VERSION], &millis.to_be_bytes()[..]].concat()
}

/// Decodes the time for which old versions are kept.
pub fn decode_gc_ttl(record: &[u8]) -> Result<Duration, CodecError> {
    let mut rest = versioned(record, "gc_ttl")?;
    let millis = number::<8>(&mut rest, "gc_ttl")?;
    Ok(Duration::from_millis(u64::from_be_bytes(millis)))
}

/// The range of the control records.
pub fn control() -> (Key, Key) {
    (version(), Key::new(&b"mz"[..]))
}

/// The key of a node's lease.
pub fn lease(node: NodeId) -> Key {
    with_number(b"mw", node.0)
}

/// The node in a key made by [`lease`].
pub fn lease_node(key: &Key) -> Option<NodeId> {
    number_in(key, b"mw").map(NodeId)
}

/// The key of the mark that a table is closed.
pub fn closed(id: TableId) -> Key {
    with_id(b"mx", id.0)
}

/// The table in a key made by [`closed`].
pub fn closed_table(key: &Key) -> Option<TableId> {
    let rest = key.as_bytes().strip_prefix(b"mx")?;
    Some(TableId(u32::from_be_bytes(rest.try_into().ok()?)))
}

/// The range of the marks of closed tables.
pub fn all_closed() -> (Key, Key) {
    (Key::new(&b"mx"[..]), Key::new(&b"my"[..]))
}

/// The key of the record that a schema change is to be published.
pub fn publication(owner: Timestamp) -> Key {
    with_number(b"my", owner.raw())
}

/// The transaction in a key made by [`publication`].
pub fn publication_owner(key: &Key) -> Option<Timestamp> {
    number_in(key, b"my").map(Timestamp::from_raw)
}

/// The range of the records of unpublished schema changes.
pub fn all_publications() -> (Key, Key) {
    (Key::new(&b"my"[..]), Key::new(&b"mz"[..]))
}

/// The key of the id counter.
pub fn next_id() -> Key {
    Key::new(&b"mi"[..])
}

/// The key that maps the name of a relation to its id.
pub fn name(schema: SchemaId, name: &str) -> Key {
    with_name(b"mn", &schema.0.to_be_bytes(), name)
}

/// The name in a key made by [`name`].
pub fn name_of(key: &Key) -> Option<&str> {
    let rest = key.as_bytes().strip_prefix(b"mn")?;
    std::str::from_utf8(rest.get(4..)?).ok()
}

/// The key that maps the name of a schema to its id.
pub fn schema_name(database: DatabaseId, name: &str) -> Key {
    with_name(b"mp", &database.0.to_be_bytes(), name)
}

/// The name in a key made by [`schema_name`].
pub fn schema_name_of(key: &Key) -> Option<&str> {
    let rest = key.as_bytes().strip_prefix(b"mp")?;
    std::str::from_utf8(rest.get(4..)?).ok()
}

/// The key that maps the name of a database to its id.
pub fn database_name(name: &str) -> Key {
    with_name(b"mr", &[], name)
}

/// The name in a key made by [`database_name`].
pub fn database_name_of(key: &Key) -> Option<&str> {
    std::str::from_utf8(key.as_bytes().strip_prefix(b"mr")?).ok()
}

/// The key of an object that is no table.
pub fn object(id: ObjectId) -> Key {
    with_id(b"mo", id.0)
}

/// The key of the comments on an object. It lies in the range of [`objects`], behind the object itself.
pub fn comments(id: ObjectId) -> Key {
    Key::new([&b"mo"[..], &id.0.to_be_bytes(), b"c"].concat())
}

/// The object in a key made by [`comments`].
pub fn commented(key: &Key) -> Option<ObjectId> {
    let id = key.as_bytes().strip_prefix(b"mo")?;
    match *id {
        [a, b, c, d, b'c'] => Some(ObjectId(u32::from_be_bytes([a, b, c, d]))),
        _ => None,
    }
}

/// The key of the values of a sequence.
pub fn sequence(id: ObjectId) -> Key {
    with_id(b"mu", id.0)
}

/// The key of the values of a sequence in an epoch that has a record of its own.
pub fn sequence_epoch(id: ObjectId, epoch: u64) -> Key {
    Key::new([&b"mu"[..], &id.0.to_be_bytes(), &epoch.to_be_bytes()].concat())
}

/// The range of the values of a sequence, of all its epochs.
pub fn sequence_values(id: ObjectId) -> (Key, Key) {
    let end = id.0.checked_add(1).map_or_else(|| Key::new(&b"mv"[..]), |next| with_id(b"mu", next));
    (sequence(id), end)
}

/// The key that maps the name of an object to its id.
pub fn object_name(object: &Object) -> Key {
    match object {
        Object::Database(database) => database_name(&database.name),
        Object::Schema(schema) => schema_name(schema.database, &schema.name),
        Object::View(view) => name(view.schema, &view.name),
        Object::Sequence(sequence) => name(sequence.schema, &sequence.name),
        Object::Enum(ty) => type_name(ty.schema, &ty.name),
        Object::Domain(domain) => type_name(domain.schema, &domain.name),
    }
}

/// The key that maps the name of a type to its id.
fn type_name(schema: SchemaId, name: &str) -> Key {
    with_name(b"mq", &schema.0.to_be_bytes(), name)
}

/// The range of all objects that are no tables, and of the comments.
pub fn objects() -> (Key, Key) {
    (Key::new(&b"mo"[..]), Key::new(&b"mp"[..]))
}

/// The key of a table's descriptor.
pub fn table(id: TableId) -> Key {
    with_id(b"mt", id.0)
}

/// The range of all descriptors.
pub fn tables() -> (Key, Key) {
    (Key::new(&b"mt"[..]), Key::new(&b"mu"[..]))
}

/// The key of the statistics of a table.
pub fn statistics(id: TableId) -> Key {
    with_id(b"ma", id.0)
}

/// The table in a key made by [`statistics`].
pub fn statistics_table(key: &Key) -> Option<TableId> {
    let rest = key.as_bytes().strip_prefix(b"ma")?;
    Some(TableId(u32::from_be_bytes(rest.try_into().ok()?)))
}

/// The range of the statistics of all tables.
pub fn all_statistics() -> (Key, Key) {
    (Key::new(&b"ma\0"[..]), Key::new(&b"mb"[..]))
}

/// The key of the number of ANALYZEs so far.
pub fn statistics_counter() -> Key {
    Key::new(&b"ma"[..])
}

/// Encodes a counter.
pub fn encode_counter(count: u64) -> Vec<u8> {
    [&[VERSION], &count.to_be_bytes()[..]].concat()
}

/// Decodes a counter.
pub fn decode_counter(record: &[u8]) -> Result<u64, CodecError> {
    let mut rest = versioned(record, "counter")?;
    Ok(u64::from_be_bytes(number::<8>(&mut rest, "counter")?))
}

/// The key of the record of a dropped storage or sequence.
pub fn dropped(id: StorageId) -> Key {
    with_id(b"md", id.0)
}

/// The range of the records of dropped storages and sequences.
pub fn all_dropped() -> (Key, Key) {
    (Key::new(&b"md"[..]), Key::new(&b"me"[..]))
}

/// The storage id in a key made by [`dropped`].
pub fn dropped_id(key: &Key) -> Option<StorageId> {
    let rest = key.as_bytes().strip_prefix(b"md")?;
    Some(StorageId(u32::from_be_bytes(rest.try_into().ok()?)))
}

/// The key of the record that a storage is filled by a schema change.
pub fn building(id: StorageId) -> Key {
    with_id(b"mb", id.0)
}

/// The range of the records of storages that schema changes fill.
pub fn all_building() -> (Key, Key) {
    (Key::new(&b"mb"[..]), Key::new(&b"mc"[..]))
}

/// The storage id in a key made by [`building`].
pub fn building_id(key: &Key) -> Option<StorageId> {
    let rest = key.as_bytes().strip_prefix(b"mb")?;
    Some(StorageId(u32::from_be_bytes(rest.try_into().ok()?)))
}

fn with_id(prefix: &[u8], id: u32) -> Key {
    let mut out = prefix.to_vec();
    out.extend_from_slice(&id.to_be_bytes());
    Key::new(out)
}

fn with_name(prefix: &[u8], id: &[u8], name: &str) -> Key {
    Key::new([prefix, id, name.as_bytes()].concat())
}

fn with_number(prefix: &[u8], number: u64) -> Key {
    let mut out = prefix.to_vec();
    out.extend_from_slice(&number.to_be_bytes());
    Key::new(out)
}

fn number_in(key: &Key, prefix: &[u8]) -> Option<u64> {
    let rest = key.as_bytes().strip_prefix(prefix)?;
    Some(u64::from_be_bytes(rest.try_into().ok()?))
}

impl LeaseRecord {
    /// Encodes the record.
    pub fn encode(self) -> Bytes {
        encode_numbers([self.term.raw(), self.until.raw(), self.version])
    }

    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Result<LeaseRecord, CodecError> {
        let [term, until, version] = decode_numbers(bytes, "catalog lease")?;
        Ok(LeaseRecord { term: Timestamp::from_raw(term), until: Timestamp::from_raw(until), version })
    }
}

impl OwnerRecord {
    /// Encodes the record.
    pub fn encode(self) -> Bytes {
        encode_numbers([self.owner.raw(), self.node.0, self.term.raw()])
    }

    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Result<OwnerRecord, CodecError> {
        let [owner, node, term] = decode_numbers(bytes, "schema change")?;
        Ok(OwnerRecord { owner: Timestamp::from_raw(owner), node: NodeId(node), term: Timestamp::from_raw(term) })
    }
}

fn encode_numbers(numbers: [u64; 3]) -> Bytes {
    let mut out = vec![VERSION];
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
    out.into()
}

fn decode_numbers(bytes: &[u8], what: &'static str) -> Result<[u64; 3], CodecError> {
    let mut rest = versioned(bytes, what)?;
    let mut numbers = [0; 3];
    for slot in &mut numbers {
        *slot = u64::from_be_bytes(number::<8>(&mut rest, what)?);
    }
    Ok(numbers)
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

/// Encodes the value of [`dropped`] and of [`building`]: the start_ts of the schema change.
pub fn encode_dropped(at: Timestamp) -> Bytes {
    let mut out = vec![VERSION];
    out.extend_from_slice(&at.raw().to_be_bytes());
    out.into()
}

/// Decodes the value of [`dropped`] and of [`building`].
pub fn decode_dropped(bytes: &[u8]) -> Result<Timestamp, CodecError> {
    let mut rest = versioned(bytes, "dropped storage")?;
    number::<8>(&mut rest, "dropped storage").map(|raw| Timestamp::from_raw(u64::from_be_bytes(raw)))
}

/// The bytes after the version byte.
pub fn versioned<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a [u8], CodecError> {
    of_version(VERSION, bytes, what)
}

/// The bytes after a version byte.
pub fn of_version<'a>(version: u8, bytes: &'a [u8], what: &'static str) -> Result<&'a [u8], CodecError> {
    match bytes.split_first() {
        Some((found, rest)) if *found == version => Ok(rest),
        _ => Err(CodecError::new(what, "unknown version")),
    }
}

fn number<const N: usize>(input: &mut &[u8], what: &'static str) -> Result<[u8; N], CodecError> {
    take(input, N, what)?.try_into().map_err(|_| CodecError::new(what, "cut short"))
}
