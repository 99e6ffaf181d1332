//! Cases that PostgreSQL answered: strings, encodings, quoting, `format`, LIKE, and functions of `bytea`.

use super::*;
use crate::bytea;
use crate::golden::{self, Args, Outcome};

fn some(value: impl ToString) -> Outcome {
    Ok(Some(value.to_string()))
}

fn bytes(value: impl AsRef<[u8]>) -> Outcome {
    some(format!("\\x{}", encoding::hex(value.as_ref())))
}

fn strings(function: &str, args: &Args) -> Outcome {
    let text = args.text(0);
    match function {
        "initcap" => some(initcap(text)),
        "translate" => some(translate(text, args.text(1), args.text(2))),
        "split_part" => some(split_part(text, args.text(1), args.int(2))?),
        "overlay" => some(overlay(text, args.text(1), args.int(2), args.nullable(3).map(|n| n.parse().unwrap()))?),
        "substr" => some(substr(text, args.int(1))),
        "substr_to" => some(substr_to(text, args.int(1), args.int(2))?),
        "left" => some(left(text, args.int(1))),
        "right" => some(right(text, args.int(1))),
        "btrim" => some(btrim(text, args.text(1))),
        "ltrim" => some(ltrim(text, args.text(1))),
        "rtrim" => some(rtrim(text, args.text(1))),
        "lpad" => some(lpad(text, args.int(1), args.text(2))?),
        "rpad" => some(rpad(text, args.int(1), args.text(2))?),
        "repeat" => some(repeat(text, args.int(1))?),
        "reverse" => some(reverse(text)),
        "position" => some(position(text, args.text(1))),
        "starts_with" => some(starts_with(text, args.text(1))),
        "ascii" => some(ascii(text)),
        "chr" => some(chr(args.int(0))?),
        "to_hex_i32" => some(to_hex_i32(args.int(0))),
        "to_hex_i64" => some(to_hex_i64(text.parse().unwrap())),
        "quote_ident" => some(quote_ident(text)),
        "quote_literal" => some(quote_literal(text)),
        "unistr" => some(unistr(text)?),
        "format" => some(format(text, &args.words(1))?),
        "array_to_string" => some(array_to_string(&args.words(0), args.text(1), args.nullable(2))?),
        "concat" => some(concat(&args.words(0))?),
        "like" | "ilike" => {
            let escape = args.nullable(2).map_or(Ok(Escape::Default), Escape::parse)?;
            some(LikePattern::text(args.text(1), escape, function == "ilike").matches(text)?)
        }
        _ => panic!("{function}"),
    }
}

fn hex(args: &Args, at: usize) -> Vec<u8> {
    decode(args.text(at), "hex").unwrap()
}

fn byte_strings(function: &str, args: &Args) -> Outcome {
    let own = hex(args, 0);
    match function {
        "get_byte" => some(bytea::get_byte(&own, args.int(1))?),
        "get_bit" => some(bytea::get_bit(&own, args.int(1).into())?),
        "set_byte" => bytes(bytea::set_byte(&own, args.int(1), args.int(2))?),
        "set_bit" => bytes(bytea::set_bit(&own, args.int(1).into(), args.int(2))?),
        "bit_count" => some(bytea::bit_count(&own)),
        "substr" => bytes(bytea::substr(&own, args.int(1))),
        "substr_to" => bytes(bytea::substr_to(&own, args.int(1), args.int(2))?),
        "overlay" => bytes(bytea::overlay(&own, &hex(args, 1), args.int(2), Some(args.int(3)))?),
        "position" => some(bytea::position(&own, &hex(args, 1))),
        "btrim" => bytes(bytea::btrim(&own, &hex(args, 1))),
        "ltrim" => bytes(bytea::ltrim(&own, &hex(args, 1))),
        "rtrim" => bytes(bytea::rtrim(&own, &hex(args, 1))),
        "like" => some(LikePattern::bytes(&hex(args, 1), Escape::Default).matches(&own)?),
        _ => panic!("{function}"),
    }
}

#[test]
fn answers_are_those_of_postgresql() {
    golden::check(include_str!("golden.tsv"), |function, args| match function {
        "concat_ws" => concat_ws(args.nullable(0), &args.words(1)),
        "string_to_array" => {
            let fields = string_to_array(args.text(0), args.nullable(1), args.nullable(2));
            let fields: Vec<&str> = fields.into_iter().map(|field| field.unwrap_or("<NULL>")).collect();
            Ok((!fields.is_empty()).then(|| fields.join("|")))
        }
        "md5" => some(hash::md5(args.text(0).as_bytes())),
        "sha224" => bytes(hash::sha224(args.text(0).as_bytes())),
        "sha256" => bytes(hash::sha256(args.text(0).as_bytes())),
        "sha384" => bytes(hash::sha384(args.text(0).as_bytes())),
        "sha512" => bytes(hash::sha512(args.text(0).as_bytes())),
        "encode" => some(encode(&hex(args, 0), args.text(1))?),
        "decode" => bytes(decode(args.text(0), args.text(1))?),
        function => match function.strip_prefix("bytea.") {
            Some(function) => byte_strings(function, args),
            None => strings(function, args),
        },
    });
}

#[test]
fn results_over_1_gb_are_refused() {
    let code = |result: Result<String, crate::ValueError>| result.unwrap_err().code().0;
    assert_eq!(code(repeat("ab", 536_870_910)), "54000");
    assert_eq!(code(lpad("a", 268_435_455, "x")), "54000");
    assert_eq!(code(format("%2147483647s", &[Some("a")])), "54000");
    assert_eq!(repeat("", i32::MAX).unwrap(), "");
}
