//! Runs the golden files: calls and their results, as PostgreSQL 15 gave them.
//!
//! A line is a function, its arguments and its result, separated by tabs. An error is `!`, its SQLSTATE, its message
//! and, behind ` DETAIL `, its detail. `NULL` is SQL's null.

use std::fmt;

use bytes::BytesMut;

use super::*;
use crate::error::ValueError;

type Outcome = Result<String, ValueError>;

fn number(text: &str) -> Result<Numeric, ValueError> {
    Numeric::parse(text)
}

fn show(value: Result<Numeric, ValueError>) -> Outcome {
    value.map(|value| value.to_text())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn optional(value: Option<impl ToString>) -> Outcome {
    Ok(value.map_or("NULL".to_owned(), |value| value.to_string()))
}

fn int<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: fmt::Debug,
{
    text.parse().unwrap()
}

/// Functions of one number.
fn unary(name: &str, a: &Numeric) -> Option<Outcome> {
    Some(match name {
        "parse" => Ok(a.to_text()),
        "neg" => Ok(a.neg().to_text()),
        "abs" => Ok(a.abs().to_text()),
        "sign" => Ok(a.sign().to_text()),
        "ceil" => show(a.ceil()),
        "floor" => show(a.floor()),
        "sqrt" => show(a.sqrt()),
        "exp" => show(a.exp()),
        "ln" => show(a.ln()),
        "log10" => show(a.log10()),
        "inc" => show(a.inc()),
        "scale" => optional(a.scale()),
        "min_scale" => optional(a.min_scale()),
        "trim_scale" => Ok(a.trim_scale().to_text()),
        "int2" => a.to_i16().map(|v| v.to_string()),
        "int4" => a.to_i32().map(|v| v.to_string()),
        "int8" => a.to_i64().map(|v| v.to_string()),
        "float8" => a.to_f64().map(crate::float::show),
        "float4" => a.to_f32().map(|v| crate::float::show(v.into())),
        "send" => {
            let mut out = BytesMut::new();
            a.write_binary(&mut out);
            // What is sent is received.
            assert_eq!(Numeric::parse_binary(&out, None).unwrap().to_text(), a.to_text());
            Ok(hex(&out))
        }
        _ => return None,
    })
}

/// Functions of two numbers.
fn binary(name: &str, a: &Numeric, b: &Numeric) -> Option<Outcome> {
    Some(match name {
        "add" => show(a.add(b)),
        "sub" => show(a.sub(b)),
        "mul" => show(a.mul(b)),
        "div" => show(a.div(b)),
        "mod" => show(a.rem(b)),
        "divt" => show(a.div_trunc(b)),
        "log" => show(a.log(b)),
        "pow" => show(a.power(b)),
        "gcd" => show(a.gcd(b)),
        "lcm" => show(a.lcm(b)),
        "cmp" => Ok((a.cmp(b) as i32).to_string()),
        _ => return None,
    })
}

/// Aggregates. The values are split into two states that are combined, at a place that depends on their count.
fn aggregate(name: &str, list: &str) -> Outcome {
    let (name, integers) = match name.strip_suffix("_i8").or(name.strip_suffix("_i4")) {
        Some(name) => (name, true),
        None => (name, false),
    };
    let values: Vec<&str> = list.split(' ').filter(|value| !value.is_empty()).collect();
    let (mut state, mut other) = (VarianceState::new(), VarianceState::new());
    for (at, value) in values.iter().enumerate() {
        let state = if at * 3 < values.len() { &mut other } else { &mut state };
        if integers {
            state.add_int(int(value));
        } else {
            state.add(&number(value).unwrap());
        }
    }
    state.combine(&other);
    let result = match name {
        "sum" => state.sum(),
        "avg" => state.avg(),
        "var_pop" => state.variance(Population::Whole),
        "var_samp" => state.variance(Population::Sample),
        "stddev_pop" => state.stddev(Population::Whole),
        "stddev_samp" => state.stddev(Population::Sample),
        _ => panic!("no aggregate {name}"),
    };
    result.and_then(optional)
}

fn call(name: &str, args: &[&str]) -> Outcome {
    match (name, args) {
        ("round", [a, s]) => return show(number(a)?.round(int(s))),
        ("trunc", [a, s]) => return show(number(a)?.trunc(int(s))),
        ("fact", [n]) => return show(Numeric::factorial(int(n))),
        ("typmod", [a, p, s]) => return show(number(a)?.apply_typmod(Some(Typmod::new(int(p), int(s))?))),
        ("bucket", [a, low, high, count]) => {
            return number(a)?.width_bucket(&number(low)?, &number(high)?, int(count)).map(|v| v.to_string());
        }
        ("from_float8", [a]) => return show(Numeric::from_f64(int(a))),
        ("from_float4", [a]) => return show(Numeric::from_f32(int(a))),
        ("to_char", [a, format]) => return format::to_char(&number(a)?, format),
        ("to_char_i4", [a, format]) => return format::to_char_i32(int(a), format),
        ("to_char_i8", [a, format]) => return format::to_char_i64(int(a), format),
        ("to_char_f8", [a, format]) => return format::to_char_f64(int(a), format),
        ("to_char_f4", [a, format]) => return format::to_char_f32(int(a), format),
        ("to_number", [text, format]) => return format::to_number(text, format).and_then(optional),
        ("recv", [bytes]) => return show(Numeric::parse_binary(&unhex(bytes), None)),
        (name, [list]) if matches!(name.get(..3), Some("sum" | "avg" | "var" | "std")) => return aggregate(name, list),
        _ => {}
    }
    let args = args.iter().map(|a| number(a)).collect::<Result<Vec<_>, _>>()?;
    let outcome = match &args[..] {
        [a] => unary(name, a),
        [a, b] => binary(name, a, b),
        _ => None,
    };
    outcome.unwrap_or_else(|| panic!("no function {name} of {} arguments", args.len()))
}

fn outcome(name: &str, args: &[&str]) -> String {
    match call(name, args) {
        Ok(text) => text,
        Err(error) => {
            let detail = error.detail().map(|detail| format!(" DETAIL {detail}")).unwrap_or_default();
            format!("!{} {}{detail}", error.code().0, error.message())
        }
    }
}

/// Runs all lines of a file. Lines that start with `#` are comments.
pub(super) fn run(file: &str) {
    let mut failures = Vec::new();
    let mut count = 0;
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, args @ .., expected] = &fields[..] else { panic!("bad line {line}") };
        let actual = outcome(name, args);
        // Floats are compared by value, not by the digits of their text form.
        if name.starts_with("float")
            && actual.parse::<f64>().ok() == expected.parse::<f64>().ok()
            && !actual.starts_with('!')
        {
            continue;
        }
        count += 1;
        if actual != *expected {
            failures.push(format!("{name} {args:?}\n  expected {expected}\n  actual   {actual}"));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} lines fail:\n{}",
        failures.len(),
        failures[..failures.len().min(20)].join("\n")
    );
}

#[test]
fn arithmetic() {
    run(include_str!("golden/arithmetic.tsv"));
}

#[test]
fn real_functions() {
    run(include_str!("golden/real_functions.tsv"));
}

#[test]
fn aggregates() {
    run(include_str!("golden/aggregates.tsv"));
}

#[test]
fn binary_input() {
    run(include_str!("golden/binary_input.tsv"));
}

#[test]
fn pictures() {
    run(include_str!("golden/pictures.tsv"));
}
