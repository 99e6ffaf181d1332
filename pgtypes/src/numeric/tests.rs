//! Tests of the forms of `numeric`: bytes that are pinned, round trips, order of keys, damaged bytes.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::BytesMut;
use proptest::prelude::*;

use super::value::overflow;
use super::*;

fn number(text: &str) -> Numeric {
    Numeric::parse(text).unwrap()
}

fn key(value: &Numeric) -> Vec<u8> {
    let mut out = Vec::new();
    value.write_key(&mut out);
    out
}

fn stored(value: &Numeric) -> Vec<u8> {
    let mut out = Vec::new();
    value.write_stored(&mut out);
    out
}

fn hash(value: &Numeric) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// These bytes are on disks. They never change.
#[test]
fn stored_bytes() {
    let pinned = [
        ("NaN", "02"),
        ("Infinity", "06"),
        ("-Infinity", "07"),
        ("0", "00"),
        ("0.00", "10"),
        ("1", "0001"),
        ("-1", "0101"),
        ("1.50", "1096"),
        ("-1234.5678", "214e61bc"),
        ("0.0000000000000001", "800101"),
        ("9223372036854775807", "00ffffffffffffff7f"),
        ("-9223372036854775808", "010000000000000080"),
        ("9223372036854775808", "000000000000000080"),
        ("18446744073709551616", "00000000000000000001"),
        ("123450000000000000000000000000.00", "141b3930"),
        ("-1e100", "056401"),
    ];
    for (text, bytes) in pinned {
        assert_eq!(hex(&stored(&number(text))), bytes, "{text}");
    }
}

/// These bytes are on disks. They never change. The order of the list is the order of the values.
#[test]
fn key_bytes() {
    let pinned = [
        ("-Infinity", "02"),
        ("-1e131071", "037dffffeb"),
        ("-1e63", "037fffbfeb"),
        ("-1e62", "037fffc0eb"),
        ("-1e61", "04eb"),
        ("-123.45", "3fe6ba9b"),
        ("-123", "3fe6c3"),
        ("-100", "3feb"),
        ("-0.001", "44eb"),
        ("-1e-61", "7eeb"),
        ("-1e-62", "7f80003ceb"),
        ("0", "80"),
        ("1e-16383", "817fc00214"),
        ("1e-62", "817fffc314"),
        ("1e-61", "8214"),
        ("0.001", "bc14"),
        ("1", "bf14"),
        ("1.00000001", "bf1501010114"),
        ("12", "c018"),
        ("12.5", "c01964"),
        ("1e61", "fc14"),
        ("1e62", "fd80003f14"),
        ("1e131071", "fd82000014"),
        ("Infinity", "fe"),
        ("NaN", "ff"),
    ];
    for (text, bytes) in pinned {
        assert_eq!(hex(&key(&number(text))), bytes, "{text}");
    }
    assert!(pinned.windows(2).all(|pair| number(pair[0].0) < number(pair[1].0) && pair[0].1 < pair[1].1));
}

#[test]
fn equal_values_are_one_key() {
    let same = ["100", "100.0", "1e2", "100.00000000000000000000000000000000000000", "0100.000"];
    for text in same {
        assert_eq!(number(text), number("100"));
        assert_eq!(key(&number(text)), key(&number("100")));
        assert_eq!(hash(&number(text)), hash(&number("100")));
    }
    assert_eq!(hash(&number("0.000")), hash(&number("0")));
    assert_eq!(hash(&number("NaN")), hash(&Numeric::NAN));
    assert_eq!(Numeric::parse_key(&key(&number("100.00"))).unwrap().0.to_text(), "100");
}

#[test]
fn typmods() {
    for precision in [1, 2, 10, 999, 1000] {
        for scale in [-1000, -1, 0, 1, 5, 1000] {
            let typmod = Typmod::new(precision, scale).unwrap();
            assert_eq!(Typmod::decode(typmod.encode()), Some(typmod));
        }
    }
    // As in pg_attribute.atttypmod.
    assert_eq!(Typmod::from_arguments(&[10, 2]).unwrap().encode(), 655_366);
    assert_eq!(Typmod::from_arguments(&[10]).unwrap().encode(), 655_364);
    assert_eq!(Typmod::from_arguments(&[3, -2]).unwrap().encode(), 198_658);
    assert_eq!(Typmod::from_arguments(&[3, -2]).unwrap().to_string(), "(3,-2)");
    assert_eq!(Typmod::decode(-1), None);
    assert_eq!(Typmod::from_arguments(&[1, 2, 3]).unwrap_err().message(), "invalid NUMERIC type modifier");
}

/// Input with a declared type is rounded before its digits are counted, as COPY does it.
#[test]
fn typed_input() {
    let typmod = Some(Typmod::new(5, 2).unwrap());
    let parse = |text: &str| Numeric::parse_typed(text, typmod).map(|value| value.to_text());
    assert_eq!(parse("1.005").unwrap(), "1.01");
    assert_eq!(parse("-1.0049999").unwrap(), "-1.00");
    assert_eq!(parse(&format!("1.{}", "9".repeat(30_000))).unwrap(), "2.00");
    assert_eq!(parse("1e-30000").unwrap(), "0.00");
    assert_eq!(parse(" NaN ").unwrap(), "NaN");
    assert_eq!(parse("999.995").unwrap_err().message(), "numeric field overflow");
    assert_eq!(parse("1e200000").unwrap_err().message(), "numeric field overflow");
    assert_eq!(parse("1e1073741823").unwrap_err().message(), "value overflows numeric format");
    assert_eq!(parse("1x").unwrap_err().message(), "invalid input syntax for type numeric: \"1x\"");
}

/// The longest values: their forms and functions do not fail.
#[test]
fn longest_values() {
    let longest = number(&format!("{}.{}", "9".repeat(131_072), "9".repeat(16_383)));
    let mut wire = BytesMut::new();
    longest.write_binary(&mut wire);
    assert_eq!(Numeric::parse_binary(&wire, None).unwrap(), longest);
    assert_eq!(Numeric::parse_stored(&stored(&longest)).unwrap(), longest);
    assert_eq!(Numeric::parse_key(&key(&longest)).unwrap().0, longest);
    assert_eq!(longest.inc().unwrap_err().message(), "value overflows numeric format");
    assert_eq!(longest.round(0).unwrap_err().message(), "value overflows numeric format");
    assert_eq!(longest.mul(&longest).unwrap_err().message(), "value overflows numeric format");
    assert_eq!(longest.sub(&longest).unwrap(), Numeric::ZERO);
    assert_eq!(longest.ln().unwrap().round(10).unwrap().to_text(), "301804.4333089156");
}

/// Pictures may be longer than the widths that formatting takes.
#[test]
fn long_pictures() {
    let long = format!("9.{}EEEE", "9".repeat(100_000));
    for text in ["0", "1.5", "-123456", "NaN"] {
        let out = format::to_char(&number(text), &long).unwrap();
        assert_eq!(out.len(), 100_007, "{text}");
    }
    assert_eq!(format::to_char_f64(0.1, &long).unwrap().len(), 100_007);
    assert_eq!(format::to_char_i32(7, &long).unwrap().len(), 100_007);
    let wide = "9".repeat(100_000);
    assert_eq!(format::to_char(&number("12"), &wide).unwrap().len(), 100_001);
    assert_eq!(format::to_number("12", &format!("{wide}V{wide}")).unwrap().unwrap(), Numeric::ZERO);
    assert_eq!(format::to_char(&Numeric::ONE, &format!("9V{}", "9".repeat(140_000))).unwrap_err(), overflow());
}

/// Values are moved and copied often.
#[test]
fn size() {
    assert_eq!(size_of::<Numeric>(), 16);
}

#[test]
fn spaces() {
    for text in ["\t1.5\n", " 1.5\x0b\x0c", "\r\n1.5 "] {
        assert_eq!(number(text).to_text(), "1.5");
    }
    assert_eq!(number("1e\t3").to_text(), "1000");
    for text in ["1.5\u{a0}", "1 .5", "\u{2003}1", "- 1", "1\0"] {
        let error = Numeric::parse(text).unwrap_err();
        assert_eq!(error.message(), format!("invalid input syntax for type numeric: \"{text}\""));
    }
}

/// Texts of numbers of all sizes.
fn texts() -> impl Strategy<Value = String> {
    let digits = prop_oneof!["[0-9]{1,4}", "[09]{1,6}", "[0-9]{1,20}", "[0-9]{15,60}", "[1-9]0{1,40}"];
    let fraction = prop_oneof![Just(String::new()), "\\.[0-9]{1,4}", "\\.0{0,30}[0-9]{1,4}", "\\.[0-9]{10,40}"];
    let exponent = prop_oneof![4 => Just(String::new()), 1 => "e-?[0-9]{1,2}", 1 => "e-?[0-9]{3}"];
    prop_oneof![
        30 => ("-?", digits, fraction, exponent).prop_map(|(sign, whole, rest, exp)| sign + &whole + &rest + &exp),
        1 => prop_oneof![Just("NaN"), Just("Infinity"), Just("-Infinity")].prop_map(str::to_owned),
    ]
}

proptest! {
    #[test]
    fn text_round_trip(text in texts()) {
        let value = number(&text);
        let again = number(&value.to_text());
        prop_assert_eq!(again.to_text(), value.to_text());
        prop_assert_eq!(again.scale(), value.scale());
    }

    #[test]
    fn binary_round_trip(text in texts()) {
        let value = number(&text);
        let mut wire = BytesMut::new();
        value.write_binary(&mut wire);
        prop_assert_eq!(Numeric::parse_binary(&wire, None).unwrap().to_text(), value.to_text());
    }

    #[test]
    fn stored_round_trip(text in texts()) {
        let value = number(&text);
        prop_assert_eq!(Numeric::parse_stored(&stored(&value)).unwrap().to_text(), value.to_text());
    }

    #[test]
    fn key_round_trip(text in texts(), tail in proptest::collection::vec(any::<u8>(), 0..4)) {
        let value = number(&text);
        let mut bytes = key(&value);
        bytes.extend_from_slice(&tail);
        let (again, rest) = Numeric::parse_key(&bytes).unwrap();
        prop_assert_eq!(&again, &value);
        prop_assert_eq!(again.scale(), value.min_scale());
        prop_assert_eq!(rest, &tail[..]);
    }

    #[test]
    fn order_of_keys(a in texts(), b in texts(), near in any::<bool>(), zeros in 0usize..30) {
        let a = number(&a);
        // Half of the pairs are equal up to the scale, or differ in the last digits.
        let b = if !near {
            number(&b)
        } else if a.scale().is_some_and(|scale| scale > 0) {
            number(&format!("{a}{}", "0".repeat(zeros)))
        } else {
            a.add(&number(&format!("1e-{zeros}"))).unwrap()
        };
        prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        if a == b {
            prop_assert_eq!(hash(&a), hash(&b));
        } else {
            prop_assert!(!key(&a).starts_with(&key(&b)) && !key(&b).starts_with(&key(&a)));
        }
    }

    /// Damaged bytes are an error or a value that has just these bytes.
    #[test]
    fn damaged_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..14), flip in any::<u8>(), text in texts()) {
        let mut damaged = stored(&number(&text));
        if let Some(byte) = damaged.first_mut() {
            *byte ^= flip;
        }
        for bytes in [&bytes, &damaged] {
            if let Ok(value) = Numeric::parse_stored(bytes) {
                prop_assert_eq!(&stored(&value), bytes);
            }
            if let Ok((value, rest)) = Numeric::parse_key(bytes) {
                prop_assert_eq!(key(&value).len() + rest.len(), bytes.len());
                prop_assert!(bytes.starts_with(&key(&value)));
            }
            let _ = Numeric::parse_binary(bytes, None);
        }
    }

    #[test]
    fn laws_of_arithmetic(a in texts(), b in texts()) {
        let (a, b) = (number(&a), number(&b));
        prop_assert_eq!(a.add(&b).unwrap(), b.add(&a).unwrap());
        prop_assert_eq!(a.mul(&b).unwrap(), b.mul(&a).unwrap());
        if a.is_finite() && b.is_finite() {
            prop_assert_eq!(a.add(&b).unwrap().sub(&b).unwrap(), a.clone());
            if !b.is_zero() {
                let whole = a.div_trunc(&b).unwrap().mul(&b).unwrap();
                prop_assert_eq!(whole.add(&a.rem(&b).unwrap()).unwrap(), a);
            }
        }
    }
}
