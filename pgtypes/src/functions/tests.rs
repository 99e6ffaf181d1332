//! The rows are those of PostgreSQL, and the functions compute what it computes.
//!
//! `pg_proc.txt` has a line for each row: OID, name, arguments, result, and the marks of PostgreSQL 15's catalog. The
//! files in `golden/` have calls with results that PostgreSQL gave: a line `# OID name(types) -> type` and below it a
//! call a line, its arguments and its result separated by tabs. `\N` is NULL, `!` begins the SQLSTATE and message of an
//! error; a set has its rows one after the other, those of several columns as text of a row.

mod aggregates;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use super::*;
use crate::datum::{Datum, Record};
use crate::error::ValueError;
use crate::oid::Oid;
use crate::timestamp::{Now, TimeZone};
use crate::{IoEnv, SqlType, find_name, wire};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/functions")
}

#[test]
fn oids_and_signatures_occur_once() {
    let mut seen = std::collections::HashSet::new();
    for row in all() {
        assert!(seen.insert(row.oid), "{} twice", row.oid);
    }
}

#[test]
fn rows_are_those_of_postgresql() {
    let text = std::fs::read_to_string(folder().join("pg_proc.txt")).unwrap();
    let known: HashMap<u32, &str> =
        text.lines().filter_map(|line| Some((line.split('\t').next()?.parse().ok()?, line))).collect();
    let mut wrong = String::new();
    for row in all() {
        let args: Vec<String> = row.args.iter().map(|ty| ty.name()).collect();
        let kind = if row.is_aggregate() { 'a' } else { 'f' };
        let line = format!(
            "{}\t{}\t{kind}\t{}\t{}\t{}\t{}\t{}\t{}",
            row.oid,
            row.name,
            if row.is_aggregate() { false } else { row.is_strict },
            row.volatility.letter(),
            row.is_listed_as_set(),
            row.is_variadic,
            row.result.name(),
            args.join(", ")
        );
        match known.get(&row.oid.0) {
            Some(known) if *known == line => {}
            other => writeln!(wrong, "have {line}\n  PG {}", other.unwrap_or(&"nothing")).unwrap(),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn ty(name: &str) -> SqlType {
    let (base, array) = match name.strip_suffix("[]") {
        Some(base) => (base, true),
        None => (name, false),
    };
    let row = find_name(base).or_else(|| crate::all().find(|row| row.sql_name == base));
    let ty = row.unwrap_or_else(|| panic!("no type {name}")).ty();
    if array { ty.array().unwrap() } else { ty }
}

fn unescape(field: &str) -> String {
    field.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r").replace("\\\\", "\\")
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn show(value: &Datum, ty: SqlType, env: &IoEnv<'_>) -> String {
    if value.is_null() { "\\N".to_owned() } else { escape(&wire::show(value, ty, env)) }
}

fn show_row(row: &ProcRow, values: Vec<Datum>, result: SqlType, env: &IoEnv<'_>) -> String {
    match <[Datum; 1]>::try_from(values) {
        Ok([value]) if row.columns.len() < 2 => show(&value, result, env),
        Ok([value]) => show(&value, result, env),
        Err(values) => {
            let fields = row.columns.iter().map(|(_, ty)| *ty).zip(values).collect();
            show(&Datum::Record(Box::new(Record::new(fields))), SqlType::RECORD, env)
        }
    }
}

/// The result of one call as a line of a golden file has it.
fn call(row: &ProcRow, types: &[SqlType], result: SqlType, fields: &[&str], env: &IoEnv<'_>) -> String {
    let value = |at: usize, field: &str| match field {
        "\\N" => Ok(Datum::Null),
        field => wire::parse(types[at], &unescape(field), env),
    };
    let outcome = || -> Result<String, ValueError> {
        let values: Vec<Cow<'_, Datum>> =
            fields.iter().enumerate().map(|(at, field)| value(at, field).map(Cow::Owned)).collect::<Result<_, _>>()?;
        let args = Args::new(&values, types, result, env);
        if row.is_strict && args.any_null() {
            return Ok("\\N".to_owned());
        }
        match row.run {
            Run::Scalar(run) => run(&args).map(|value| show(&value, result, env)),
            Run::Set(run) => {
                let rows = run(&args)?.map(|values| Ok(show_row(row, values?, result, env)));
                Ok(rows.collect::<Result<Vec<_>, ValueError>>()?.join("\t"))
            }
            _ => panic!("{} is computed elsewhere", row.name),
        }
    };
    outcome().unwrap_or_else(|error| format!("!{} {}", error.code().0, escape(error.message())))
}

/// A function with the types of its arguments and result in the calls below.
type Head = (&'static ProcRow, Vec<SqlType>, SqlType);

/// The function of a line `OID name(types) -> type`.
fn head_of(heading: &str) -> Head {
    let (oid, rest) = heading.split_once(' ').unwrap();
    let (signature, result) = rest.rsplit_once(" -> ").unwrap();
    let (_, args) = signature.trim_end_matches(')').split_once('(').unwrap();
    let types = args.split(',').filter(|name| !name.is_empty()).map(ty).collect();
    let row = find(Oid(oid.parse().unwrap())).unwrap_or_else(|| panic!("no function {heading}"));
    (row, types, ty(result))
}

fn check_file(path: &Path, wrong: &mut String) {
    let zone = TimeZone::find("America/New_York").unwrap();
    let env = IoEnv::new(&zone, Now(0));
    let text = std::fs::read_to_string(path).unwrap();
    let mut head: Option<Head> = None;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            head = Some(head_of(heading));
            continue;
        }
        let (row, types, result) = head.as_ref().unwrap();
        let fields: Vec<&str> = line.split('\t').collect();
        let (args, expected) = fields.split_at(types.len().min(fields.len()));
        let got = call(row, types, *result, args, &env);
        if got != expected.join("\t") {
            writeln!(wrong, "{}({}): got {got}, PostgreSQL {}", row.name, args.join(", "), expected.join("\t"))
                .unwrap();
        }
    }
}

#[test]
fn results_are_those_of_postgresql() {
    let mut wrong = String::new();
    for entry in std::fs::read_dir(folder().join("golden")).unwrap() {
        check_file(&entry.unwrap().path(), &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong}");
}
