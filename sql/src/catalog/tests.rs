//! Catalog records: pinned bytes, and detection of damage.

use super::descriptor;
use super::keys::{self, LeaseRecord, NodeId, OwnerRecord, VersionRecord};
use crate::table::{Column, ColumnId, StorageId, Table, TableId};
use pgtypes::SqlType;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn sample() -> Table {
    let column = |id, name: &str, ty, not_null, default: Option<&str>| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        ty,
        not_null,
        default: default.map(str::to_owned),
    };
    Table {
        id: TableId(16_384),
        storage: StorageId(16_390),
        name: "t".to_owned(),
        columns: vec![
            column(1, "id", SqlType::INT4, true, None),
            column(2, "v", SqlType::varchar(9), false, Some("'x'")),
        ],
        primary_key: vec![0],
        key_name: "t_pkey".to_owned(),
    }
}

#[test]
fn golden_descriptor() {
    let bytes = descriptor::encode(&sample());
    let expected = [
        "02",
        "808001",
        "868001",
        "0174",
        "06745f706b6579",
        "02",
        "01",
        "17",
        "00",
        "01",
        "026964",
        "02",
        "9308",
        "0e",
        "02",
        "0176",
        "03277827",
        "01",
        "00",
    ];
    assert_eq!(hex(&bytes), expected.concat());
    assert_eq!(descriptor::decode(&bytes).unwrap(), sample());
    for end in 0..bytes.len() {
        assert!(descriptor::decode(&bytes[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn broken_invariants_are_detected() {
    let mut table = sample();
    table.columns[1].name = "id".to_owned();
    assert!(descriptor::decode(&descriptor::encode(&table)).is_err());
    let mut table = sample();
    table.primary_key = vec![1];
    assert!(descriptor::decode(&descriptor::encode(&table)).is_err());
}

#[test]
fn golden_records() {
    let record = VersionRecord { version: 7, writer: tso::Timestamp::from_raw(258) };
    assert_eq!(hex(&record.encode()), "01".to_owned() + "0000000000000007" + "0000000000000102");
    assert_eq!(VersionRecord::decode(&record.encode()).unwrap(), record);
    assert_eq!(hex(&keys::encode_id(16_384)), "0100004000");
    assert_eq!(keys::decode_id(&keys::encode_id(16_384)).unwrap(), 16_384);
    assert!(keys::decode_id(&[2, 0, 0, 64, 0]).is_err());
    assert_eq!(hex(keys::gc_ttl().as_bytes()), "6d7367635f74746c");
    let ttl = std::time::Duration::from_secs(600);
    assert_eq!(hex(&keys::encode_gc_ttl(ttl)), "01".to_owned() + "00000000000927c0");
    assert_eq!(keys::decode_gc_ttl(&keys::encode_gc_ttl(ttl)).unwrap(), ttl);
    assert!(keys::decode_gc_ttl(&[2, 0, 0, 0, 0, 0, 9, 0x27, 0xc0]).is_err());
    assert_eq!(hex(keys::version().as_bytes()), "6d76");
    assert_eq!(hex(keys::next_id().as_bytes()), "6d69");
    assert_eq!(hex(keys::name("t").as_bytes()), "6d6e0000089874");
    assert_eq!(hex(keys::table(TableId(16_384)).as_bytes()), "6d7400004000");
    assert_eq!(hex(keys::dropped(StorageId(16_384)).as_bytes()), "6d6400004000");
    assert_eq!(keys::dropped_id(&keys::dropped(StorageId(5))), Some(StorageId(5)));
    assert_eq!(keys::name_of(&keys::name("größe")), Some("größe"));
}

#[test]
fn golden_control_records() {
    let ts = tso::Timestamp::from_raw;
    let lease = LeaseRecord { term: ts(258), until: ts(772), version: 7 };
    let numbers = ["01", "0000000000000102", "0000000000000304", "0000000000000007"].concat();
    assert_eq!(hex(&lease.encode()), numbers);
    assert_eq!(LeaseRecord::decode(&lease.encode()).unwrap(), lease);
    let owner = OwnerRecord { owner: ts(258), node: NodeId(772), term: ts(7) };
    assert_eq!(hex(&owner.encode()), numbers);
    assert_eq!(OwnerRecord::decode(&owner.encode()).unwrap(), owner);
    assert!(LeaseRecord::decode(&owner.encode()[..24]).is_err());
    assert_eq!(hex(keys::lease(NodeId(258)).as_bytes()), "6d770000000000000102");
    assert_eq!(hex(keys::closed(TableId(16_384)).as_bytes()), "6d7800004000");
    assert_eq!(hex(keys::publication(ts(258)).as_bytes()), "6d790000000000000102");
    assert_eq!(keys::lease_node(&keys::lease(NodeId(5))), Some(NodeId(5)));
    assert_eq!(keys::closed_table(&keys::closed(TableId(5))), Some(TableId(5)));
    assert_eq!(keys::publication_owner(&keys::publication(ts(5))), Some(ts(5)));
    let (start, end) = keys::control();
    let inside = [keys::version(), keys::lease(NodeId(u64::MAX)), keys::publication(ts(u64::MAX))];
    assert!(inside.iter().all(|key| (&start..&end).contains(&key)));
}
