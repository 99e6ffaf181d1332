//! Catalog records: pinned bytes, and detection of damage.

use super::descriptor;
use super::keys::{self, LeaseRecord, NodeId, OwnerRecord, VersionRecord};
use crate::table::{
    Check, Column, ColumnId, ConstraintId, ForeignKey, Index, IndexColumn, IndexId, IndexedValue, ReferenceAction,
    StorageId, Table, TableId,
};
use pgtypes::SqlType;
use pgtypes::codec::key::KeyOrder;

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
        generated: None,
        identity: None,
        domain: None,
    };
    let descending = KeyOrder { descends: true, nulls_first: true };
    let text = "lower(v)".to_owned();
    Table {
        schema: crate::object::FIRST_SCHEMA,
        id: TableId(16_384),
        storage: StorageId(16_390),
        name: "t".to_owned(),
        columns: vec![
            column(1, "id", SqlType::INT4, true, None),
            column(2, "v", SqlType::varchar(9), false, Some("'x'")),
        ],
        primary_key: vec![0],
        key_name: "t_pkey".to_owned(),
        key_id: IndexId(16_385),
        indexes: vec![Index {
            id: IndexId(16_386),
            storage: StorageId(16_387),
            name: "i".to_owned(),
            columns: vec![
                IndexColumn { value: IndexedValue::Column(1), order: descending },
                IndexColumn { value: IndexedValue::Expression { text, ty: SqlType::TEXT }, order: KeyOrder::default() },
            ],
            unique: true,
            nulls_not_distinct: false,
            is_constraint: true,
            predicate: Some("id > 0".to_owned()),
            included: vec![0],
        }],
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        last_column: ColumnId(2),
    }
}

#[test]
fn golden_descriptor() {
    let bytes = descriptor::encode(&sample());
    // Each line is a field: its tag, its length, its body.
    let columns =
        ["0c", "010101", "020117", "04026964", "0500", "12", "010102", "02029308", "03010e", "040176", "0603277827"];
    let key = ["0103818001", "0206745f706b6579", "030100"];
    let index_columns = ["07", "010101", "0500", "0600", "0d", "02086c6f776572287629", "030119"];
    let index = [
        "0103828001",
        "0203838001",
        "030169",
        "0416",
        &index_columns.concat(),
        "0500",
        "0600",
        "07066964203e2030",
        "080100",
    ];
    let length = |parts: &[&str]| format!("{:02x}", parts.concat().len() / 2);
    let fields = [
        "0103808001",
        "0203868001",
        "030174",
        &["04", &length(&columns), &columns.concat()].concat(),
        &["05", &length(&key), &key.concat()].concat(),
        &["06", &format!("{:02x}", index.concat().len() / 2 + 1), &length(&index), &index.concat()].concat(),
    ];
    assert_eq!(hex(&bytes), ["03", &length(&fields), &fields.concat()].concat());
    assert_eq!(descriptor::decode(&bytes).unwrap(), sample());
    for end in 0..bytes.len() {
        assert!(descriptor::decode(&bytes[..end]).is_err(), "cut at {end}");
    }
}

/// The fields of constraints, and of columns that are gone.
#[test]
fn golden_constraints() {
    let mut table = sample();
    table.columns[1].generated = Some("1".to_owned());
    table.checks = vec![Check {
        id: ConstraintId(20_000),
        name: "c".to_owned(),
        text: "id > 0".to_owned(),
        columns: vec![ColumnId(1)],
    }];
    table.foreign_keys = vec![ForeignKey {
        id: ConstraintId(20_001),
        name: "f".to_owned(),
        columns: vec![0],
        parent: TableId(30_000),
        parent_columns: vec![ColumnId(5)],
        on_delete: ReferenceAction::SetNull,
        on_update: ReferenceAction::Cascade,
        is_full: true,
        is_deferrable: true,
    }];
    table.referenced_by = vec![TableId(40_000)];
    table.last_column = ColumnId(9);
    let bytes = descriptor::encode(&table);
    let check = ["0814", "13", "0103a09c01", "020163", "03066964203e2030", "040101"];
    let key =
        ["091e", "1d", "0103a19c01", "020166", "030100", "0403b0ea01", "050105", "060103", "070102", "0800", "0900"];
    let ends = [&check.concat(), &key.concat(), "0a06", "05", "0103c0b802", "0b0109"].concat();
    assert!(hex(&bytes).ends_with(&ends), "{} {ends}", hex(&bytes));
    assert!(hex(&bytes).contains("0603277827080131"), "{}", hex(&bytes));
    assert_eq!(descriptor::decode(&bytes).unwrap(), table);
    for end in 0..bytes.len() {
        assert!(descriptor::decode(&bytes[..end]).is_err(), "cut at {end}");
    }
    for change in [
        |table: &mut Table| table.checks[0].name = "f".to_owned(),
        |table: &mut Table| table.checks[0].name = "i".to_owned(),
        |table: &mut Table| table.foreign_keys[0].columns = vec![7],
        |table: &mut Table| table.foreign_keys[0].parent_columns.clear(),
        |table: &mut Table| table.last_column = ColumnId(1),
    ] {
        let mut broken = table.clone();
        change(&mut broken);
        assert!(descriptor::decode(&descriptor::encode(&broken)).is_err());
    }
}

/// A later release adds fields. A reader that does not know them would not keep what they say.
#[test]
fn unknown_and_repeated_fields_are_refused() {
    let bytes = descriptor::encode(&sample());
    let with = |field: &[u8]| {
        let mut longer = bytes.to_vec();
        longer.extend_from_slice(field);
        longer[1] += u8::try_from(field.len()).unwrap();
        descriptor::decode(&longer)
    };
    assert!(with(&[]).is_ok());
    assert!(with(&[12, 0]).is_err());
    assert!(with(&[6, 0]).is_err());
}

#[test]
fn broken_invariants_are_detected() {
    let mut table = sample();
    table.columns[1].name = "id".to_owned();
    assert!(descriptor::decode(&descriptor::encode(&table)).is_err());
    for change in [
        |table: &mut Table| table.indexes[0].storage = table.storage,
        |table: &mut Table| table.indexes[0].name = "t_pkey".to_owned(),
        |table: &mut Table| table.indexes[0].id = IndexId(16_384),
        |table: &mut Table| table.indexes[0].included = vec![2],
        |table: &mut Table| table.indexes[0].columns.clear(),
    ] {
        let mut table = sample();
        change(&mut table);
        assert!(descriptor::decode(&descriptor::encode(&table)).is_err());
    }
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
    assert_eq!(hex(keys::name(crate::object::FIRST_SCHEMA, "t").as_bytes()), "6d6e0000089874");
    assert_eq!(hex(keys::table(TableId(16_384)).as_bytes()), "6d7400004000");
    assert_eq!(hex(keys::dropped(StorageId(16_384)).as_bytes()), "6d6400004000");
    assert_eq!(hex(keys::building(StorageId(16_384)).as_bytes()), "6d6200004000");
    let sequence = crate::object::ObjectId(5);
    assert_eq!(hex(keys::sequence_epoch(sequence, 1 << 63).as_bytes()), "6d75000000058000000000000000");
    let (start, end) = keys::sequence_values(sequence);
    assert_eq!((hex(start.as_bytes()), hex(end.as_bytes())), ("6d7500000005".to_owned(), "6d7500000006".to_owned()));
    assert_eq!(hex(keys::sequence_values(crate::object::ObjectId(u32::MAX)).1.as_bytes()), "6d76");
    assert_eq!(keys::building_id(&keys::building(StorageId(5))), Some(StorageId(5)));
    assert_eq!(keys::dropped_id(&keys::dropped(StorageId(5))), Some(StorageId(5)));
    assert_eq!(keys::name_of(&keys::name(crate::object::FIRST_SCHEMA, "größe")), Some("größe"));
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
