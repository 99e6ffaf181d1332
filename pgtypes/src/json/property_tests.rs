//! Round trips and orders of generated values.

use proptest::prelude::*;

use super::*;
use crate::numeric::Numeric;

fn value() -> impl Strategy<Value = Jsonb> {
    let number =
        (any::<bool>(), 0u32..100_000, 0u32..1000, -6i32..6).prop_map(|(negative, whole, fraction, exponent)| {
            let sign = if negative { "-" } else { "" };
            Jsonb::Number(Numeric::parse(&format!("{sign}{whole}.{fraction}e{exponent}")).unwrap())
        });
    let small = (-3i64..3).prop_map(|value| Jsonb::Number(value.into()));
    let text = prop::sample::select(vec!["", "a", "b", "aa", "\u{1}", "\u{1}\u{1}", "é", "\"\\\n", "a\u{0}", "😀"]);
    let leaf = prop_oneof![
        Just(Jsonb::Null),
        any::<bool>().prop_map(Jsonb::Bool),
        number,
        small,
        text.clone().prop_filter("no NUL in text", |text| !text.contains('\0')).prop_map(|t| Jsonb::String(t.into())),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let key = prop::sample::select(vec!["", "a", "b", "ab", "é", "\u{1}"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|elements| Jsonb::from_elements(elements).unwrap()),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|pairs| Jsonb::from_pairs(pairs.into_iter().map(|(k, v)| (k.into(), v))).unwrap()),
        ]
    })
}

fn key(value: &Jsonb) -> Vec<u8> {
    let mut out = Vec::new();
    value.write_order_key(&mut out);
    out
}

proptest! {
    #[test]
    fn forms_are_read_back(value in value()) {
        let text = value.to_string();
        prop_assert_eq!(Jsonb::parse(&text).unwrap().to_string(), text.clone(), "scales are kept");
        prop_assert_eq!(&Jsonb::parse(&value.pretty().unwrap()).unwrap(), &value);
        prop_assert_eq!(&Jsonb::from_binary(&value.to_binary()).unwrap(), &value);
        let json = Json::parse(text).unwrap();
        prop_assert_eq!(Jsonb::parse(json.strip_nulls().unwrap().as_str()).unwrap(), value.strip_nulls());
        prop_assert_eq!(json.type_name().unwrap(), value.type_name());
    }

    #[test]
    fn keys_have_the_order_of_values(a in value(), b in value(), c in value()) {
        prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b), "{} {}", a, b);
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
        if a <= b && b <= c {
            prop_assert!(a <= c);
        }
    }

    #[test]
    fn no_text_panics(text in "[\\[\\]{}:,\"\\\\/utrfalsen0-9eE+. \u{e9}\u{1}d8c]{0,24}") {
        let _ = Jsonb::parse(&text);
        let _ = Json::parse(text);
    }

    #[test]
    fn a_value_contains_itself_and_its_parts(a in value(), b in value()) {
        prop_assert!(a.contains(&a));
        let both = a.concat(&b).unwrap();
        if !matches!((&a, &b), (Jsonb::Object(_), Jsonb::Object(_)) | (Jsonb::Array(_), _) | (_, Jsonb::Array(_))) {
            prop_assert!(both.contains(&Jsonb::Array(vec![a])));
        }
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let deepest = Jsonb::parse(&nested(MAX_DEPTH)).unwrap();
    assert_eq!(deepest, deepest.clone());
    assert!(deepest.contains(&deepest) && deepest.cmp(&deepest).is_eq());
    assert_eq!(deepest.strip_nulls().to_string(), nested(MAX_DEPTH));
    assert!(deepest.pretty().unwrap().len() > MAX_DEPTH && !key(&deepest).is_empty());
    assert_eq!(Json::parse(nested(MAX_DEPTH)).unwrap().strip_nulls().unwrap().as_str(), nested(MAX_DEPTH));
    let path = vec![Some("0"); MAX_DEPTH - 1];
    assert_eq!(deepest.at_path(&path).unwrap().to_string(), "[]");
    assert_eq!(deepest.set(&path, &Jsonb::Null, true).unwrap().at_path(&path), Some(&Jsonb::Null));
    for error in [
        Jsonb::parse(&nested(MAX_DEPTH + 1)).unwrap_err(),
        Json::parse(nested(1_000_000)).unwrap_err(),
        Jsonb::from_elements(vec![deepest.clone()]).unwrap_err(),
        deepest.set(&path, &deepest, true).unwrap_err(),
        Jsonb::from_pairs([("a".into(), deepest)]).unwrap_err(),
    ] {
        assert_eq!((error.code().0, error.message()), ("54001", "stack depth limit exceeded"));
    }
}

#[test]
fn short_texts_of_long_numbers_are_bounded() {
    let text = "[1e131071, 1e131071]";
    assert!(Jsonb::parse(text).is_ok());
    let error = Jsonb::parse_within(text, 100_000).unwrap_err();
    let message = "total size of jsonb array elements exceeds the maximum of 268435455 bytes";
    assert_eq!((error.code().0, error.message()), ("54000", message));
}

#[test]
fn stored_bytes_are_checked() {
    let error = Jsonb::from_binary(b"\x02{}").unwrap_err();
    assert_eq!((error.code().0, error.message()), ("XX000", "unsupported jsonb version number 2"));
    assert_eq!(Jsonb::from_binary(b"").unwrap_err().code().0, "08P01");
    assert_eq!(Jsonb::from_binary(b"\x01{").unwrap_err().code().0, "22P02");
    assert_eq!(Jsonb::parse("[1, {}]").unwrap().to_binary(), b"\x01[1, {}]");
}
