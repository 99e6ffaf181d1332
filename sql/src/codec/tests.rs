//! The codec keeps order and round-trips values, and its bytes are pinned.

use proptest::prelude::*;

use super::{index, key, row};
use crate::table::{Column, ColumnId, Index, IndexColumn, IndexId, IndexedValue, StorageId, Table, TableId};
use pgtypes::codec::key::KeyOrder;
use pgtypes::datum::compare;
use pgtypes::{Datum, SqlType};

fn table(columns: &[(&str, SqlType)], key: &[usize]) -> Table {
    let columns = columns.iter().enumerate().map(|(at, (name, ty))| Column {
        id: ColumnId(u16::try_from(at + 1).unwrap()),
        name: (*name).to_owned(),
        ty: *ty,
        not_null: key.contains(&at),
        default: None,
        generated: None,
        identity: None,
        domain: None,
    });
    let table = Table {
        schema: crate::object::FIRST_SCHEMA,
        id: TableId(16_384),
        storage: StorageId(16_385),
        name: "t".to_owned(),
        columns: columns.collect(),
        primary_key: key.to_vec(),
        key_name: "t_pkey".to_owned(),
        key_id: IndexId(16_999),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        last_column: ColumnId(u16::MAX),
    };
    table.check().unwrap();
    table
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn golden_row() {
    let columns = [
        ("id", SqlType::INT8),
        ("a", SqlType::INT4),
        ("b", SqlType::TEXT),
        ("c", SqlType::BOOL),
        ("d", SqlType::FLOAT8),
        ("e", SqlType::BYTEA),
        ("f", SqlType::TIMESTAMPTZ),
        ("g", SqlType::BOOL),
        ("h", SqlType::TEXT),
    ];
    let table = table(&columns, &[0]);
    let values = vec![
        Datum::Int(300),
        Datum::Int(-3),
        Datum::Text("hi".into()),
        Datum::Bool(true),
        Datum::Float(1.5),
        Datum::Bytes([7].into()),
        Datum::Int(1_000_000),
        Datum::Bool(false),
        Datum::Null,
    ];
    let key = key::row_key(&table, &values).unwrap();
    assert_eq!(hex(key.as_bytes()), "740000400172".to_owned() + "82012c");
    let value = row::encode(&table, &values);
    let presence = "fe00";
    let ends = "010304080 90c0d".replace(' ', "");
    let data = ["fd", "6869", "01", "0000c03f", "07", "40420f", "00"].concat();
    assert_eq!(hex(&value), ["02", "01", "09", presence, &ends, &data].concat());
    let mut back = vec![Datum::Null; values.len()];
    key::get_row_key(&table, &key, &mut back).unwrap();
    row::decode(&table, &value, &[true; 9], &mut back).unwrap();
    assert_eq!(back, values);
}

#[test]
fn golden_hidden_key() {
    let key = key::hidden_key(StorageId(1), tso::Timestamp::from_raw(0x0102_0304_0506_0708), 5);
    assert_eq!(hex(key.as_bytes()), "740000000172".to_owned() + "0102030405060708" + "8105");
}

#[test]
fn golden_index_entries() {
    let columns = [("id", SqlType::INT4), ("a", SqlType::INT4), ("f", SqlType::FLOAT8), ("v", SqlType::TEXT)];
    let mut table = table(&columns, &[0]);
    let column = |at, descends| IndexColumn {
        value: IndexedValue::Column(at),
        order: KeyOrder { descends, nulls_first: descends },
    };
    table.indexes.push(Index {
        id: IndexId(17_000),
        storage: StorageId(258),
        name: "i".to_owned(),
        columns: vec![column(1, true), column(2, false)],
        unique: true,
        nulls_not_distinct: false,
        is_constraint: false,
        predicate: None,
        included: vec![3],
    });
    table.check().unwrap();
    let index = table.indexes[0].clone();
    let entry = |row: &[Datum]| {
        let row_key = key::row_key(&table, row).unwrap();
        let entry = index::entry(&table, &index, &row[1..3], &row_key, row);
        let mut back = vec![Datum::Null; 4];
        let found = index::decode(&table, &index, (&entry.key, &entry.value), &mut back).unwrap();
        assert_eq!(
            (found, index::row_key(&table, &index, (&entry.key, &entry.value)).unwrap()),
            (row_key.clone(), row_key)
        );
        assert!(
            back.iter().zip(row).all(|(a, b)| a.is_null() == b.is_null() && (a.is_null() || compare(a, b).is_eq()))
        );
        assert_eq!(format!("{back:?}"), format!("{row:?}"), "values that the key does not tell exactly");
        entry
    };
    // Unique without NULL: the row is in the value. -0 is beside the key.
    let found = entry(&[Datum::Int(5), Datum::Int(1), Datum::Float(-0.0), Datum::Text("v".into())]);
    assert!(found.is_unique);
    assert_eq!(hex(found.key.as_bytes()), ["740000010269", "01", "7efe", "01", "8000000000000000"].concat());
    // Ids: 1 the row, 2 and 3 the columns, 4 the primary key, 5 the included column.
    assert_eq!(
        hex(&found.value),
        ["02", "01", "05", "15", "02060 7".replace(' ', "").as_str(), "8105", "00000080", "76"].concat()
    );
    // With NULL: the row is in the key.
    let found = entry(&[Datum::Int(5), Datum::Null, Datum::Float(1.0), Datum::Null]);
    assert!(!found.is_unique);
    assert_eq!(hex(found.key.as_bytes()), ["740000010269", "00", "01", "bff0000000000000", "8105"].concat());
    assert_eq!(hex(&found.value), ["02", "01", "05", "00"].concat());
}

#[test]
fn negative_zero_survives_in_a_key() {
    let table = table(&[("x", SqlType::FLOAT8)], &[0]);
    let key = key::row_key(&table, &[Datum::Float(-0.0)]).unwrap();
    let value = row::encode(&table, &[Datum::Float(-0.0)]);
    let mut back = vec![Datum::Null];
    key::get_row_key(&table, &key, &mut back).unwrap();
    row::decode(&table, &value, &[true], &mut back).unwrap();
    assert!(matches!(back[0], Datum::Float(f) if f.is_sign_negative()));
}

#[test]
fn rows_survive_schema_changes() {
    let old = table(&[("id", SqlType::INT4), ("a", SqlType::TEXT), ("b", SqlType::INT4)], &[0]);
    let value = row::encode(&old, &[Datum::Int(1), Datum::Text("x".into()), Datum::Int(2)]);
    // `a` dropped, `c` added.
    let mut new = table(&[("id", SqlType::INT4), ("b", SqlType::INT4), ("c", SqlType::TEXT)], &[0]);
    new.columns[1].id = ColumnId(3);
    new.columns[2].id = ColumnId(4);
    let mut back = vec![Datum::Null; 3];
    row::decode(&new, &value, &[true; 3], &mut back).unwrap();
    assert_eq!(back, [Datum::Null, Datum::Int(2), Datum::Null]);
}

#[test]
fn damage_is_an_error() {
    let table = table(&[("id", SqlType::INT4), ("a", SqlType::TEXT)], &[0]);
    let mut out = vec![Datum::Null; 2];
    for bad in [
        &[][..],
        &[9],
        &[1, 0x0d],
        &[2, 1],
        &[2, 3, 0],
        &[2, 1, 2],
        &[2, 1, 2, 2],
        &[2, 1, 2, 2, 5, b'x'],
        &[2, 1, 2, 2, 1, 0xff],
        &[2, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    ] {
        assert!(row::decode(&table, bad, &[true; 2], &mut out).is_err(), "{bad:?}");
    }
    let key = |bytes: &[u8]| {
        let mut full = key::row_prefix(table.storage);
        full.extend_from_slice(bytes);
        kv::Key::new(full)
    };
    for bad in [&[][..], &[0x89, 1], &[0x82, 1], &[0x81, 1, 0]] {
        assert!(key::get_row_key(&table, &key(bad), &mut out).is_err(), "{bad:?}");
    }
}

/// Values of one type, many of them close together.
fn values() -> impl Strategy<Value = (SqlType, Vec<Datum>)> {
    let ints = prop_oneof![any::<i64>(), -300i64..300, Just(i64::MIN), Just(i64::MAX)];
    let floats = prop_oneof![any::<f64>(), Just(0.0), Just(-0.0), Just(f64::NAN), Just(f64::INFINITY), -2.0..2.0];
    let bytes = proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255), any::<u8>()], 0..6);
    prop_oneof![
        proptest::collection::vec(ints.prop_map(Datum::Int), 2..5).prop_map(|v| (SqlType::INT8, v)),
        proptest::collection::vec(any::<i64>().prop_map(Datum::Int), 2..5).prop_map(|v| (SqlType::TIMESTAMPTZ, v)),
        proptest::collection::vec(floats.prop_map(Datum::Float), 2..5).prop_map(|v| (SqlType::FLOAT8, v)),
        proptest::collection::vec("\\PC{0,4}".prop_map(|s| Datum::Text(s.into())), 2..5)
            .prop_map(|v| (SqlType::TEXT, v)),
        proptest::collection::vec(bytes.prop_map(|b| Datum::Bytes(b.into())), 2..5).prop_map(|v| (SqlType::BYTEA, v)),
        proptest::collection::vec(any::<bool>().prop_map(Datum::Bool), 2..5).prop_map(|v| (SqlType::BOOL, v)),
    ]
}

proptest! {
    #[test]
    fn row_values_round_trip((ty, values) in values(), nulls: [bool; 5]) {
        let names = ["a", "b", "c", "d", "e"];
        let columns: Vec<(&str, SqlType)> = names.iter().take(values.len()).map(|name| (*name, ty)).collect();
        let table = table(&columns, &[]);
        let or_null = |(value, null)| if null { Datum::Null } else { value };
        let values: Vec<Datum> = values.into_iter().zip(nulls).map(or_null).collect();
        let bytes = row::encode(&table, &values);
        let mut back = vec![Datum::Null; values.len()];
        row::decode(&table, &bytes, &vec![true; values.len()], &mut back).unwrap();
        for (a, b) in back.iter().zip(&values) {
            prop_assert_eq!(a.is_null(), b.is_null());
            prop_assert!(a.is_null() || compare(a, b).is_eq());
        }
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let table = table(&[("id", SqlType::INT4), ("a", SqlType::TEXT), ("b", SqlType::FLOAT8)], &[0]);
        let mut out = vec![Datum::Null; 3];
        let _ = row::decode(&table, &bytes, &[true; 3], &mut out);
        let mut versioned = vec![2];
        versioned.extend_from_slice(&bytes);
        let _ = row::decode(&table, &versioned, &[true; 3], &mut out);
        versioned[0] = 3;
        let _ = crate::catalog::descriptor::decode(&versioned);
        for ty in [SqlType::BOOL, SqlType::INT4, SqlType::FLOAT8, SqlType::TEXT, SqlType::BYTEA, SqlType::TIMESTAMPTZ] {
            let _ = key::get(ty, &mut &bytes[..]);
        }
    }
}
