//! Functions of text: strings, encodings, quoting, `format`, LIKE, SIMILAR TO, regular expressions.
//!
//! Positions and lengths count characters, from 1. Results over PostgreSQL's limit of 1 GB are refused as it does.
//! `lc_ctype` is C.UTF-8. NULL is `None`, where a function is not strict.
//!
//! # Layers
//!
//! 1. `ctype`: the classes of characters; `limit`: the size of results
//! 2. `charset`, `encoding`, `ident`, `like`, `lists`, `quote`, `strings`, `unistr`: functions
//! 3. `format`, `hash`, `regex`: functions that use others
//! 4. `similar`: SIMILAR TO, by way of regular expressions

mod charset;
mod ctype;
mod encoding;
mod format;
pub mod hash;
mod ident;
mod like;
pub(crate) mod limit;
mod lists;
mod quote;
pub mod regex;
mod similar;
mod strings;
mod unistr;

pub use charset::{convert, convert_from, convert_to, encoded_length};
pub use encoding::{decode, encode};
pub use format::format;
pub use ident::parse_ident;
pub use like::{Escape, LikePattern, like_escape, like_escape_bytes};
pub(crate) use limit::check_alloc;
pub use lists::{array_to_string, concat, concat_ws, string_to_array};
pub use quote::{quote_ident, quote_literal, quote_nullable};
pub use similar::{similar_pattern, similar_to_regex};
pub(crate) use strings::negative_length;
pub use strings::{
    ascii, btrim, chr, initcap, left, lpad, ltrim, overlay, position, repeat, replace, reverse, right, rpad, rtrim,
    split_part, starts_with, substr, substr_to, to_hex_i32, to_hex_i64, translate,
};
pub use unistr::unistr;

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod property_tests;
