//! LIKE and ILIKE, and patterns with other escape characters.
//!
//! A pattern is read for each call. That costs what finding a kept one would cost: patterns are short, and reading one
//! is one pass without a choice.

use super::{boolean, bytes, text};
use crate::datum::Datum;
use crate::error::ValueError;
use crate::functions::args::Args;
use crate::functions::row::{ProcRow, ScalarFn, scalar};
use crate::sql_type::SqlType as T;
use crate::text::{Escape, LikePattern, check_alloc, like_escape, like_escape_bytes};

const fn text_row(oid: u32, name: &'static str, run: ScalarFn) -> ProcRow {
    scalar(oid, name, &[T::TEXT, T::TEXT], T::BOOL, run)
}

const fn name_row(oid: u32, name: &'static str, run: ScalarFn) -> ProcRow {
    scalar(oid, name, &[T::NAME, T::TEXT], T::BOOL, run)
}

const fn padded_row(oid: u32, name: &'static str, run: ScalarFn) -> ProcRow {
    scalar(oid, name, &[T::BPCHAR, T::TEXT], T::BOOL, run)
}

const fn bytes_row(oid: u32, name: &'static str, run: ScalarFn) -> ProcRow {
    scalar(oid, name, &[T::BYTEA, T::BYTEA], T::BOOL, run)
}

pub(in crate::functions) static ROWS: &[ProcRow] = &[
    text_row(850, "textlike", like),
    text_row(851, "textnlike", not_like),
    text_row(1569, "like", like),
    text_row(1570, "notlike", not_like),
    text_row(1633, "texticlike", ilike),
    text_row(1634, "texticnlike", not_ilike),
    name_row(858, "namelike", like),
    name_row(859, "namenlike", not_like),
    name_row(1571, "like", like),
    name_row(1572, "notlike", not_like),
    name_row(1635, "nameiclike", ilike),
    name_row(1636, "nameicnlike", not_ilike),
    padded_row(1631, "bpcharlike", like),
    padded_row(1632, "bpcharnlike", not_like),
    padded_row(1660, "bpchariclike", ilike),
    padded_row(1661, "bpcharicnlike", not_ilike),
    bytes_row(2005, "bytealike", |args| boolean(bytes_match(args)?)),
    bytes_row(2006, "byteanlike", |args| boolean(!bytes_match(args)?)),
    bytes_row(2007, "like", |args| boolean(bytes_match(args)?)),
    bytes_row(2008, "notlike", |args| boolean(!bytes_match(args)?)),
    scalar(1637, "like_escape", &[T::TEXT, T::TEXT], T::TEXT, |args| {
        let pattern = args.text(0)?;
        check_alloc(pattern.len().saturating_mul(2))?;
        text(like_escape(pattern, args.text(1)?)?)
    }),
    scalar(2009, "like_escape", &[T::BYTEA, T::BYTEA], T::BYTEA, |args| {
        let pattern = args.bytes(0)?;
        check_alloc(pattern.len().saturating_mul(2))?;
        bytes(like_escape_bytes(pattern, args.bytes(1)?)?)
    }),
];

/// The blanks of a `character` count.
fn matches(args: &Args<'_>, fold: bool) -> Result<bool, ValueError> {
    LikePattern::text(args.text(1)?, Escape::Default, fold).matches(args.text(0)?)
}

fn bytes_match(args: &Args<'_>) -> Result<bool, ValueError> {
    LikePattern::bytes(args.bytes(1)?, Escape::Default).matches(args.bytes(0)?)
}

fn like(args: &Args<'_>) -> Result<Datum, ValueError> {
    boolean(matches(args, false)?)
}

fn not_like(args: &Args<'_>) -> Result<Datum, ValueError> {
    boolean(!matches(args, false)?)
}

fn ilike(args: &Args<'_>) -> Result<Datum, ValueError> {
    boolean(matches(args, true)?)
}

fn not_ilike(args: &Args<'_>) -> Result<Datum, ValueError> {
    boolean(!matches(args, true)?)
}
