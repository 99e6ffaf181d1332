//! The bytes of values are pinned, keep their order and round-trip.

use proptest::prelude::*;

use super::key::{self, KeyOrder};
use super::stored;
use crate::datum::compare;
use crate::{Datum, SqlType};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn encoded(value: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    key::put(value, &mut out).unwrap();
    out
}

#[test]
fn golden_key_values() {
    let expected = [
        (Datum::Int(0), "80"),
        (Datum::Int(1), "8101"),
        (Datum::Int(255), "81ff"),
        (Datum::Int(256), "820100"),
        (Datum::Int(i64::MAX), "887fffffffffffffff"),
        (Datum::Int(-1), "7f"),
        (Datum::Int(-2), "7efe"),
        (Datum::Int(-256), "7e00"),
        (Datum::Int(-257), "7dfeff"),
        (Datum::Int(i64::MIN), "778000000000000000"),
        (Datum::Int(1_000_000), "830f4240"),
        (Datum::Bool(false), "00"),
        (Datum::Bool(true), "01"),
        (Datum::Float(0.0), "8000000000000000"),
        (Datum::Float(-0.0), "8000000000000000"),
        (Datum::Float(1.5), "bff8000000000000"),
        (Datum::Float(-1.5), "4007ffffffffffff"),
        (Datum::Float(f64::NAN), "fff8000000000000"),
        (Datum::Text("".into()), "0001"),
        (Datum::Text("ab".into()), "61620001"),
        (Datum::Padded("ab  ".into()), "61620001"),
        (Datum::Bytes([0, 1, 255].into()), "00ff01ff0001"),
    ];
    for (value, bytes) in expected {
        assert_eq!(hex(&encoded(&value)), bytes, "{value:?}");
    }
}

#[test]
fn golden_stored_values() {
    let expected = [
        (SqlType::INT8, Datum::Int(0), ""),
        (SqlType::INT8, Datum::Int(1), "01"),
        (SqlType::INT8, Datum::Int(-1), "ff"),
        (SqlType::INT8, Datum::Int(127), "7f"),
        (SqlType::INT8, Datum::Int(128), "8000"),
        (SqlType::INT8, Datum::Int(-128), "80"),
        (SqlType::INT8, Datum::Int(-129), "7fff"),
        (SqlType::INT8, Datum::Int(i64::MIN), "0000000000000080"),
        (SqlType::INT8, Datum::Int(i64::MAX), "ffffffffffffff7f"),
        (SqlType::BOOL, Datum::Bool(true), "01"),
        (SqlType::FLOAT8, Datum::Float(1.5), "0000c03f"),
        (SqlType::FLOAT8, Datum::Float(-0.0), "00000080"),
        (SqlType::FLOAT8, Datum::Float(0.1), "9a9999999999b93f"),
        (SqlType::TEXT, Datum::Text("ab".into()), "6162"),
        (SqlType::BPCHAR, Datum::Padded("ab ".into()), "616220"),
        (SqlType::BYTEA, Datum::Bytes([0, 255].into()), "00ff"),
    ];
    for (ty, value, bytes) in expected {
        let mut out = Vec::new();
        stored::put(&value, &mut out);
        assert_eq!(hex(&out), bytes, "{value:?}");
        assert_eq!(stored::get_datum(ty, &out).unwrap(), value);
    }
}

#[test]
fn columns_of_an_index_place_null_and_descend() {
    let orders = [(false, false), (false, true), (true, false), (true, true)];
    for (descends, nulls_first) in orders {
        let order = KeyOrder { descends, nulls_first };
        let values = [Datum::Int(-300), Datum::Int(0), Datum::Int(7), Datum::Null];
        let put = |value: &Datum| {
            let mut out = Vec::new();
            key::put_ordered(value, order, &mut out);
            out
        };
        let mut sorted = values.clone();
        sorted.sort_by_key(put);
        let mut expected: Vec<Datum> = values[..3].to_vec();
        if descends {
            expected.reverse();
        }
        expected.insert(if nulls_first { 0 } else { 3 }, Datum::Null);
        assert_eq!(sorted.to_vec(), expected, "{order:?}");
        for value in &values {
            let mut bytes = put(value);
            bytes.push(9);
            let mut input = &bytes[..];
            assert_eq!(key::get_ordered(SqlType::INT8, order, &mut input).unwrap(), *value);
            assert_eq!(input, [9]);
        }
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
        proptest::collection::vec("[ab ]{0,4}".prop_map(|s| Datum::Padded(s.into())), 2..5)
            .prop_map(|v| (SqlType::BPCHAR, v)),
        proptest::collection::vec(bytes.prop_map(|b| Datum::Bytes(b.into())), 2..5).prop_map(|v| (SqlType::BYTEA, v)),
        proptest::collection::vec(any::<bool>().prop_map(Datum::Bool), 2..5).prop_map(|v| (SqlType::BOOL, v)),
    ]
}

proptest! {
    #[test]
    fn byte_order_is_value_order((_, values) in values()) {
        for a in &values {
            for b in &values {
                prop_assert_eq!(encoded(a).cmp(&encoded(b)), compare(a, b), "{:?} {:?}", a, b);
            }
        }
    }

    #[test]
    fn no_encoding_is_a_prefix_of_another((_, values) in values()) {
        for a in &values {
            for b in &values {
                let (x, y) = (encoded(a), encoded(b));
                prop_assert!(x == y || !y.starts_with(&x), "{:?} {:?}", a, b);
            }
        }
    }

    #[test]
    fn key_values_round_trip((ty, values) in values()) {
        let bytes: Vec<u8> = values.iter().flat_map(encoded).collect();
        let mut input = &bytes[..];
        for value in &values {
            let back = key::get(ty, &mut input).unwrap();
            prop_assert!(compare(&back, value).is_eq(), "{:?} {:?}", back, value);
        }
        prop_assert!(input.is_empty());
    }

    #[test]
    fn stored_values_round_trip((ty, values) in values()) {
        for value in &values {
            let mut out = Vec::new();
            stored::put(value, &mut out);
            let back = stored::get_datum(ty, &out).unwrap();
            prop_assert_eq!(format!("{:?}", &back), format!("{:?}", value));
        }
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, descends: bool, nulls_first: bool) {
        for ty in crate::all().map(|row| SqlType::new(row.oid)) {
            let _ = key::get(ty, &mut &bytes[..]);
            let _ = key::get_ordered(ty, KeyOrder { descends, nulls_first }, &mut &bytes[..]);
            let _ = stored::get_datum(ty, &bytes);
        }
    }
}
