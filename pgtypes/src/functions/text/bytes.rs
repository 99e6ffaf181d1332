//! Functions of `bytea`, between `bytea` and `text`, and of `uuid`.

use super::{bytes, count, int, text};
use crate::bytea;
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, scalar, session};
use crate::sql_type::SqlType as T;
use crate::text::{self as texts, check_alloc, hash};

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    scalar(2011, "byteacat", &[T::BYTEA, T::BYTEA], T::BYTEA, cat),
    scalar(2010, "length", &[T::BYTEA], T::INT4, length),
    scalar(720, "octet_length", &[T::BYTEA], T::INT4, length),
    scalar(1810, "bit_length", &[T::BYTEA], T::INT4, |args| count(args.bytes(0)?.len().saturating_mul(8))),
    scalar(1713, "length", &[T::BYTEA, T::NAME], T::INT4, encoded_length).stable(),
    scalar(2012, "substring", &[T::BYTEA, T::INT4, T::INT4], T::BYTEA, substr_to),
    scalar(2013, "substring", &[T::BYTEA, T::INT4], T::BYTEA, substr),
    scalar(2085, "substr", &[T::BYTEA, T::INT4, T::INT4], T::BYTEA, substr_to),
    scalar(2086, "substr", &[T::BYTEA, T::INT4], T::BYTEA, substr),
    scalar(749, "overlay", &[T::BYTEA, T::BYTEA, T::INT4, T::INT4], T::BYTEA, |args| overlay(args, Some(args.i32(3)?))),
    scalar(752, "overlay", &[T::BYTEA, T::BYTEA, T::INT4], T::BYTEA, |args| overlay(args, None)),
    scalar(2014, "position", &[T::BYTEA, T::BYTEA], T::INT4, |args| {
        int(bytea::position(args.bytes(0)?, args.bytes(1)?))
    }),
    scalar(2015, "btrim", &[T::BYTEA, T::BYTEA], T::BYTEA, |args| bytes(bytea::btrim(args.bytes(0)?, args.bytes(1)?))),
    scalar(6195, "ltrim", &[T::BYTEA, T::BYTEA], T::BYTEA, |args| bytes(bytea::ltrim(args.bytes(0)?, args.bytes(1)?))),
    scalar(6196, "rtrim", &[T::BYTEA, T::BYTEA], T::BYTEA, |args| bytes(bytea::rtrim(args.bytes(0)?, args.bytes(1)?))),
    scalar(721, "get_byte", &[T::BYTEA, T::INT4], T::INT4, |args| int(bytea::get_byte(args.bytes(0)?, args.i32(1)?)?)),
    scalar(722, "set_byte", &[T::BYTEA, T::INT4, T::INT4], T::BYTEA, |args| {
        bytes(bytea::set_byte(args.bytes(0)?, args.i32(1)?, args.i32(2)?)?)
    }),
    scalar(723, "get_bit", &[T::BYTEA, T::INT8], T::INT4, |args| int(bytea::get_bit(args.bytes(0)?, args.int(1)?)?)),
    scalar(724, "set_bit", &[T::BYTEA, T::INT8, T::INT4], T::BYTEA, |args| {
        bytes(bytea::set_bit(args.bytes(0)?, args.int(1)?, args.i32(2)?)?)
    }),
    scalar(6163, "bit_count", &[T::BYTEA], T::INT8, |args| Ok(Datum::Int(bytea::bit_count(args.bytes(0)?)))),
    scalar(2321, "md5", &[T::BYTEA], T::TEXT, |args| text(hash::md5(args.bytes(0)?))),
    scalar(3419, "sha224", &[T::BYTEA], T::BYTEA, |args| bytes(hash::sha224(args.bytes(0)?))),
    scalar(3420, "sha256", &[T::BYTEA], T::BYTEA, |args| bytes(hash::sha256(args.bytes(0)?))),
    scalar(3421, "sha384", &[T::BYTEA], T::BYTEA, |args| bytes(hash::sha384(args.bytes(0)?))),
    scalar(3422, "sha512", &[T::BYTEA], T::BYTEA, |args| bytes(hash::sha512(args.bytes(0)?))),
    scalar(1946, "encode", &[T::BYTEA, T::TEXT], T::TEXT, |args| text(texts::encode(args.bytes(0)?, args.text(1)?)?)),
    scalar(1947, "decode", &[T::TEXT, T::TEXT], T::BYTEA, |args| bytes(texts::decode(args.text(0)?, args.text(1)?)?)),
    scalar(1813, "convert", &[T::BYTEA, T::NAME, T::NAME], T::BYTEA, |args| {
        bytes(texts::convert(args.bytes(0)?, args.text(1)?, args.text(2)?)?)
    })
    .stable(),
    scalar(1714, "convert_from", &[T::BYTEA, T::NAME], T::TEXT, |args| {
        text(texts::convert_from(args.bytes(0)?, args.text(1)?)?)
    })
    .stable(),
    scalar(1717, "convert_to", &[T::TEXT, T::NAME], T::BYTEA, |args| {
        bytes(texts::convert_to(args.text(0)?, args.text(1)?)?)
    })
    .stable(),
    session(810, "pg_client_encoding", &[], T::NAME),
    session(3432, "gen_random_uuid", &[], T::UUID).volatile(),
];

fn cat(args: &Args<'_>) -> Result<Datum, ValueError> {
    let (left, right) = (args.bytes(0)?, args.bytes(1)?);
    check_alloc(left.len() + right.len())?;
    bytes([left, right].concat())
}

fn length(args: &Args<'_>) -> Result<Datum, ValueError> {
    count(args.bytes(0)?.len())
}

fn encoded_length(args: &Args<'_>) -> Result<Datum, ValueError> {
    count(texts::encoded_length(args.bytes(0)?, args.text(1)?)?)
}

fn substr(args: &Args<'_>) -> Result<Datum, ValueError> {
    bytes(bytea::substr(args.bytes(0)?, args.i32(1)?))
}

fn substr_to(args: &Args<'_>) -> Result<Datum, ValueError> {
    bytes(bytea::substr_to(args.bytes(0)?, args.i32(1)?, args.i32(2)?)?)
}

fn overlay(args: &Args<'_>, length: Option<i32>) -> Result<Datum, ValueError> {
    bytes(bytea::overlay(args.bytes(0)?, args.bytes(1)?, args.i32(2)?, length)?)
}
