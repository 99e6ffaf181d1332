//! Slices and assignments are those of PostgreSQL: `golden.txt`.
//!
//! A line has what is done (`get`: a slice, `set`: an element, `put`: a slice is assigned), an array, subscripts, the
//! new value, and the result, separated by tabs. `\N` is NULL, `!` begins the SQLSTATE and message of an error.

use std::fmt::Write;

use super::*;
use crate::timestamp::{Now, TimeZone};
use crate::{IoEnv, SqlType, wire};

fn array(text: &str, env: &IoEnv<'_>) -> Array {
    match wire::parse(SqlType::INT4_ARRAY, text, env) {
        Ok(Datum::Array(array)) => *array,
        other => panic!("{text}: {other:?}"),
    }
}

fn subscripts(text: &str) -> impl Iterator<Item = &str> {
    text.trim_matches(['[', ']']).split("][")
}

fn bounds(text: &str) -> Vec<SliceBounds> {
    let bound = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
    let pair = |text: &str| text.split_once(':').map(|(first, last)| (bound(first), bound(last))).unwrap();
    subscripts(text).map(pair).collect()
}

#[test]
fn slices_and_assignments_are_those_of_postgresql() {
    let zone = TimeZone::find("UTC").unwrap();
    let env = IoEnv::new(&zone, Now(0));
    let mut wrong = String::new();
    for line in include_str!("golden.txt").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [what, text, at, value, expected] = fields[..] else { panic!("{line}") };
        let old = array(text, &env);
        let new = match what {
            "get" => Ok(old.slice(&bounds(at))),
            "set" => {
                let at: Vec<i64> = subscripts(at).map(|at| at.parse().unwrap()).collect();
                old.assign(&at, value.parse().map_or(Datum::Null, Datum::Int))
            }
            _ => old.assign_slice(&bounds(at), &array(value, &env)),
        };
        let got = match new {
            Ok(array) => wire::show(&Datum::Array(Box::new(array)), SqlType::INT4_ARRAY, &env),
            Err(error) => format!("!{} {}", error.code().0, error.message()),
        };
        if got != expected {
            writeln!(wrong, "{what} {text}{at} {value}: got {got}, PostgreSQL {expected}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
