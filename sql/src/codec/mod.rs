//! The encoding of rows as keys and values.
//!
//! A row's key is `t{storage id}r{primary key}`, memory-comparable: byte order is SQL order ([`key`]). Its value holds
//! the other columns, each under its column id, so a later schema can read an earlier row ([`row`]). An entry of a
//! secondary index leads from its columns to a row ([`index`]). Golden tests pin them. `docs/formats.md` describes
//! them.
//!
//! # Layers
//!
//! 1. `primitives`: varints, byte slices, the error of malformed bytes
//! 2. `key`, `row`: keys, values
//! 3. `index`: entries of indexes

pub mod index;
pub mod key;
mod primitives;
pub mod row;

pub use primitives::{CodecError, get_varint, put_varint, take};

#[cfg(test)]
mod tests;
