//! Cases that PostgreSQL answered: functions of regular expressions, bad patterns, SIMILAR TO.

use super::*;
use crate::error::ValueError;
use crate::golden::{self, Args, Outcome};
use crate::text::{Escape, similar_pattern, similar_to_regex};

fn some(value: impl ToString) -> Outcome {
    Ok(Some(value.to_string()))
}

fn joined(row: &[Option<&str>]) -> String {
    row.iter().map(|part| part.unwrap_or("<NULL>")).collect::<Vec<_>>().join("|")
}

fn single(args: &Args, flags: usize, function: &str) -> Result<Regex, ValueError> {
    Regex::new(args.text(1), RegexOptions::parse_single(args.text(flags), function)?)
}

fn similar(function: &str, args: &Args) -> Outcome {
    let at = if function == "similar_to_escape" { 0 } else { 1 };
    let escape = args.nullable(at + 1).map_or(Ok(Escape::Default), Escape::parse)?;
    match function {
        "similar_to_escape" => some(similar_to_regex(args.text(0), escape)?),
        "similar" => some(similar_pattern(args.text(1), escape)?.is_match(args.text(0))?),
        _ => Ok(similar_pattern(args.text(1), escape)?.substring(args.text(0))?.map(str::to_owned)),
    }
}

fn run(function: &str, args: &Args) -> Outcome {
    let text = args.text(0);
    match function {
        "~" | "~*" => some(Regex::new(args.text(1), RegexOptions::operator(function == "~*"))?.is_match(text)?),
        "like" => some(single(args, 2, "regexp_like")?.is_match(text)?),
        "match" => Ok(single(args, 2, "regexp_match")?.first(text)?.map(|row| joined(&row))),
        "matches" => {
            let options = RegexOptions::parse(args.text(2))?;
            let regex = Regex::new(args.text(1), options)?;
            let rows = regex.matches(text, options.global)?;
            let rows: Vec<String> = rows.iter().map(|row| joined(row)).collect();
            Ok((!rows.is_empty()).then(|| rows.join("/")))
        }
        "replace" => {
            let options = RegexOptions::parse_replace(args.text(3))?;
            let place = ReplacePlace::all(options.global);
            some(Regex::new(args.text(1), options)?.replace(text, args.text(2), place)?)
        }
        "replace_nth" => {
            let place = ReplacePlace::new(args.int(3), args.int(4))?;
            some(Regex::new(args.text(1), RegexOptions::parse(args.text(5))?)?.replace(text, args.text(2), place)?)
        }
        "split" => some(single(args, 2, "regexp_split_to_array")?.split(text)?.join("|")),
        "count" => {
            let place = MatchPlace::from(args.int(2))?;
            some(single(args, 3, "regexp_count")?.count(text, place)?)
        }
        "instr" => {
            let place = MatchPlace::new(args.int(2), args.int(3), args.int(4), args.int(6))?;
            some(single(args, 5, "regexp_instr")?.instr(text, place)?)
        }
        "substr" => {
            let place = MatchPlace::new(args.int(2), args.int(3), 0, args.int(5))?;
            Ok(single(args, 4, "regexp_substr")?.substr(text, place)?.map(str::to_owned))
        }
        "substring" => Ok(Regex::new(args.text(1), RegexOptions::default())?.substring(text)?.map(str::to_owned)),
        function => similar(function, args),
    }
}

#[test]
fn answers_are_those_of_postgresql() {
    golden::check(include_str!("golden.tsv"), run);
}

#[test]
fn back_references_have_a_bound() {
    let regex = Regex::new("^(a*)*\\1b(a*)*\\2$", RegexOptions::default()).unwrap();
    assert!(regex.is_match("aabaa").unwrap());
    let hard = Regex::new("(a*)(a*)(a*)(a*)(a*)\\1\\2\\3\\4\\5c\\1", RegexOptions::default()).unwrap();
    let error = hard.is_match(&("a".repeat(60) + "cb")).unwrap_err();
    assert_eq!((error.code().0, error.message().contains("too many steps")), ("54001", true));
    let nested = (1..30).fold("(a)".to_owned(), |all, number| format!("{all}(\\{number}\\{number})"));
    assert_eq!(Regex::new(&nested, RegexOptions::default()).unwrap_err().code().0, "2201B");
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    let error = Regex::new(&nested(100_000), RegexOptions::default()).unwrap_err();
    assert_eq!(error.code().0, "2201B");
    let regex = Regex::new(&nested(100), RegexOptions::default()).unwrap();
    assert_eq!(regex.first("xa").unwrap().unwrap().len(), 100);
}

#[test]
fn long_texts_take_linear_time() {
    let text = "ab".repeat(20_000);
    let regex = Regex::new("(a|ab)*(c|b)?$", RegexOptions::default()).unwrap();
    assert_eq!(regex.first(&text).unwrap().unwrap().len(), 2);
    let many = Regex::new(&"(a)".repeat(20_000), RegexOptions::default()).unwrap();
    assert_eq!(many.first(&"a".repeat(20_000)).unwrap().unwrap().len(), 20_000);
    let regex = Regex::new("\\m(\\w)", RegexOptions::default()).unwrap();
    assert_eq!(regex.replace(&text, "<\\1>", ReplacePlace::all(true)).unwrap().len(), text.len() + 2);
}
