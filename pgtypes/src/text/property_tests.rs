//! Properties of functions of text: round trips, agreement of functions with each other, no panics.

use proptest::prelude::*;

use super::regex::{MatchPlace, Regex, RegexOptions, ReplacePlace};
use super::*;

/// A LIKE match by trying everything.
fn like(text: &[char], pattern: &[char]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, _) => text.is_empty(),
        (Some(('%', rest)), _) => (0..=text.len()).any(|taken| like(&text[taken..], rest)),
        (Some(('_', rest)), Some((_, after))) => like(after, rest),
        (Some((c, rest)), Some((d, after))) => c == d && like(after, rest),
        (Some(_), None) => false,
    }
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

proptest! {
    #[test]
    fn encodings_are_read_back(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        for encoding in ["hex", "base64", "escape"] {
            let text = encode(&bytes, encoding).unwrap();
            prop_assert_eq!(&decode(&text, encoding).unwrap(), &bytes, "{}", encoding);
        }
    }

    #[test]
    fn like_tries_everything(text in "[ab\u{e9}]{0,8}", pattern in "[ab\u{e9}%_]{0,6}") {
        let wanted = like(&chars(&text), &chars(&pattern));
        prop_assert_eq!(LikePattern::text(&pattern, Escape::Default, false).matches(&text).unwrap(), wanted);
        let bytes = LikePattern::bytes(pattern.replace('_', "a").as_bytes(), Escape::Default);
        let wanted = like(&chars(&text), &chars(&pattern.replace('_', "a")));
        prop_assert_eq!(bytes.matches(text.as_bytes()).unwrap(), wanted);
    }

    #[test]
    fn parts_make_the_whole(text in "[ab\u{e9}\u{1f600},]{0,10}", count in 1i32..12) {
        prop_assert_eq!([left(&text, count), right(&text, -count)].concat(), text.clone());
        prop_assert_eq!([left(&text, -count), right(&text, count)].concat(), text.clone());
        prop_assert_eq!([substr_to(&text, 1, count).unwrap(), substr(&text, count + 1)].concat(), text.clone());
        let fields = string_to_array(&text, Some(","), None);
        prop_assert_eq!(array_to_string(&fields, ",", None).unwrap(), text.clone());
        prop_assert_eq!(reverse(&reverse(&text)), text.clone());
    }

    #[test]
    fn no_format_panics(
        text in "[%sIL0-9$*\\-x\u{e9}]{0,12}",
        values in prop::collection::vec(prop::option::of("[a1 -]{0,3}"), 0..3),
    ) {
        let values: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
        if let Err(error) = format(&text, &values) {
            prop_assert!(!error.code().0.starts_with("XX"));
        }
    }

    #[test]
    fn no_escape_panics(text in "[\\\\uU+0-9a-fdD\u{e9}]{0,16}") {
        let _ = unistr(&text);
        let _ = decode(&text, "escape");
        let _ = decode(&text, "hex");
        let _ = decode(&text, "base64");
    }

    #[test]
    fn matches_agree(
        pattern in "[ab().*+?|^$\\[\\]\\\\{}1-3,:=!<dwsmyM\u{e9}-]{0,10}",
        text in "[ab1 \n\u{e9}]{0,8}",
        flags in prop::sample::select(vec!["", "i", "n", "x", "e", "q"]),
    ) {
        let options = RegexOptions::parse(flags).unwrap();
        let Ok(regex) = Regex::new(&pattern, options) else { return Ok(()) };
        let first = regex.first(&text).unwrap();
        prop_assert_eq!(first.is_some(), regex.is_match(&text).unwrap());
        let place = MatchPlace::from(1).unwrap();
        let found = regex.substr(&text, place).unwrap();
        prop_assert_eq!(found.is_some(), first.is_some());
        if let (Some(found), Some(groups)) = (found, first) {
            prop_assert!(groups.iter().flatten().all(|group| found.contains(group)));
        }
        let count = usize::try_from(regex.count(&text, place).unwrap()).unwrap();
        prop_assert_eq!(regex.matches(&text, true).unwrap().len(), count);
        prop_assert_eq!(regex.replace(&text, "\\&", ReplacePlace::all(true)).unwrap(), text.clone());
        prop_assert!(regex.split(&text).unwrap().len() <= count + 1);
    }
}
