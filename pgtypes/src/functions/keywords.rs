//! `pg_get_keywords`: the words of PostgreSQL's grammar. Drivers ask it which names need quotes.
//!
//! `keywords.txt` has a word on each line, sorted; its category: `U`nreserved, `C`olumn name, `T`ype or function name,
//! `R`eserved; and `AS` if it is no alias of a result column without that word.

use super::args::Args;
use super::row::{ProcRow, SetRows, set};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::sql_type::SqlType as T;

const WORDS: &str = include_str!("keywords.txt");

pub(super) static ROWS: &[ProcRow] = &[set(1686, "pg_get_keywords", &[], T::RECORD, keywords).stable().columns(&[
    ("word", T::TEXT),
    ("catcode", T::CHAR),
    ("barelabel", T::BOOL),
    ("catdesc", T::TEXT),
    ("baredesc", T::TEXT),
])];

fn keywords(_: &Args<'_>) -> Result<SetRows, ValueError> {
    Ok(Box::new(WORDS.lines().map(|line| Ok(keyword(line)))))
}

fn keyword(line: &str) -> Vec<Datum> {
    let mut parts = line.split(' ');
    let (word, category) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_label = parts.next().is_none();
    let description = match category {
        "C" => "unreserved (cannot be function or type name)",
        "T" => "reserved (can be function or type name)",
        "R" => "reserved",
        _ => "unreserved",
    };
    let text = |value: &str| Datum::Text(value.into());
    let labels = if is_label { "can be bare label" } else { "requires AS" };
    vec![text(word), text(category), Datum::Bool(is_label), text(description), text(labels)]
}

#[test]
fn words_are_sorted_and_have_a_category() {
    let words: Vec<&str> = WORDS.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert!(words.is_sorted());
    assert_eq!(words.len(), 460);
    for line in WORDS.lines() {
        let rest: Vec<&str> = line.split(' ').skip(1).collect();
        assert!(matches!(rest[..], ["U" | "C" | "T" | "R"] | ["U" | "C" | "T" | "R", "AS"]), "{line}");
    }
}
