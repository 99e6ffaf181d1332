//! Row values, format 2: the columns that the key does not hold, found by column id without a look at the others.
//!
//! ```text
//! 2 | width | count | presence | ends | data
//! ```
//!
//! `count`, a varint, is the highest column id that the row knows. `presence` has a bit for each id from 1 on, the
//! lowest first: whether the column has a value here. `ends` has for each of those, in the order of ids, where its
//! value ends in `data`: a little-endian number of `width` bytes, 1, 2 or 4. The type of the column says how to read
//! the value ([`pgtypes::codec::stored`]).
//!
//! A column without a value is NULL, or in the key; one above `count` was added later. Values of ids that the table
//! does not have any more are passed over. Ids are never reused.

use bytes::Bytes;
use pgtypes::codec::{key as key_form, stored};
use pgtypes::{Datum, DatumRef};

use super::primitives::{CodecError, get_varint, put_varint};
use crate::table::Table;

const WHAT: &str = "row value";
/// The version of the format. Version 1 is no longer read.
pub const VERSION: u8 = 2;

/// Encodes the columns of `row` that its key does not tell exactly.
pub fn encode(table: &Table, row: &[Datum]) -> Bytes {
    let count = table.columns.iter().map(|column| usize::from(column.id.0)).max().unwrap_or(0);
    let stored = table.columns.iter().zip(row).enumerate().filter(|(at, (_, value))| {
        let is_in_key = table.primary_key.contains(at) && !key_form::loses(value);
        !value.is_null() && !is_in_key
    });
    encode_values(count, row, stored.map(|(_, (column, value))| (column.id.0, value)))
}

/// Encodes values by their ids, which grow, are at least 1 and at most `count`. `row` has at least these values.
pub(super) fn encode_values<'v>(count: usize, row: &[Datum], values: impl Iterator<Item = (u16, &'v Datum)>) -> Bytes {
    let mut data = Vec::with_capacity(row.iter().map(stored::size_hint).sum());
    let mut ends = Vec::with_capacity(row.len());
    let mut presence = vec![0u8; count.div_ceil(8)];
    for (id, value) in values {
        stored::put(value, &mut data);
        ends.push(data.len());
        let bit = usize::from(id).saturating_sub(1);
        if let Some(byte) = presence.get_mut(bit / 8) {
            *byte |= 1 << (bit % 8);
        }
    }
    let width = match data.len() {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    };
    let mut out = Vec::with_capacity(5 + presence.len() + width * ends.len() + data.len());
    out.extend_from_slice(&[VERSION, width as u8]);
    put_varint(count as u64, &mut out);
    out.extend_from_slice(&presence);
    for end in ends {
        out.extend_from_slice(end.to_le_bytes().get(..width).unwrap_or_default());
    }
    out.extend_from_slice(&data);
    out.into()
}

/// Encoded values.
pub(super) struct Reader<'v> {
    count: u64,
    presence: &'v [u8],
    ends: &'v [u8],
    width: usize,
    data: &'v [u8],
}

impl<'v> Reader<'v> {
    pub(super) fn new(value: &'v [u8]) -> Result<Reader<'v>, CodecError> {
        let [version, width, rest @ ..] = value else { return Err(CodecError::new(WHAT, "cut short")) };
        if *version != VERSION {
            return Err(CodecError::new(WHAT, "unknown version"));
        }
        let width = match width {
            1 | 2 | 4 => usize::from(*width),
            _ => return Err(CodecError::new(WHAT, "unknown width")),
        };
        let mut rest = rest;
        let count = get_varint(&mut rest, WHAT)?;
        let cut = CodecError::new(WHAT, "cut short");
        let bytes = usize::try_from(count.div_ceil(8)).unwrap_or(usize::MAX);
        let (presence, rest) = rest.split_at_checked(bytes).ok_or_else(|| cut.clone())?;
        let present: usize = presence.iter().map(|byte| byte.count_ones() as usize).sum();
        let (ends, data) = rest.split_at_checked(present * width).ok_or(cut)?;
        Ok(Reader { count, presence, ends, width, data })
    }

    /// The stored value of an id.
    pub(super) fn get(&self, id: u16) -> Result<Option<&'v [u8]>, CodecError> {
        if id == 0 || u64::from(id) > self.count {
            return Ok(None);
        }
        let bit = usize::from(id) - 1;
        let (before, rest) = self.presence.split_at_checked(bit / 8).unwrap_or((self.presence, &[]));
        let byte = rest.first().copied().unwrap_or(0);
        if byte >> (bit % 8) & 1 == 0 {
            return Ok(None);
        }
        let below = byte & ((1u8 << (bit % 8)) - 1);
        let rank = below.count_ones() as usize + before.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
        let start = if rank == 0 { 0 } else { self.end(rank - 1) };
        let value = self.data.get(start..self.end(rank));
        value.map(Some).ok_or(CodecError::new(WHAT, "ends do not grow"))
    }

    fn end(&self, rank: usize) -> usize {
        let bytes = self.ends.get(rank * self.width..(rank + 1) * self.width).unwrap_or_default();
        bytes.iter().rev().fold(0, |end, byte| end << 8 | usize::from(*byte))
    }
}

/// Decodes the columns marked in `needed` into `row`, which has a place for every column. The others keep their values:
/// NULL, or a key column already decoded.
pub fn decode(table: &Table, value: &[u8], needed: &[bool], row: &mut [Datum]) -> Result<(), CodecError> {
    let reader = Reader::new(value)?;
    for ((column, place), _) in table.columns.iter().zip(row).zip(needed).filter(|(_, needed)| **needed) {
        if let Some(bytes) = reader.get(column.id.0)? {
            *place = stored::get_datum(column.ty, bytes)?;
        }
    }
    Ok(())
}

/// Passes the position and the value of each stored column that is marked in `needed` to `found`, in the order of
/// the columns. A column that is not stored is not passed: it is NULL, or in the key.
pub fn visit<'v>(
    table: &Table,
    value: &'v [u8],
    needed: &[bool],
    mut found: impl FnMut(usize, DatumRef<'v>),
) -> Result<(), CodecError> {
    let reader = Reader::new(value)?;
    for (at, (column, _)) in table.columns.iter().zip(needed).enumerate().filter(|(_, (_, needed))| **needed) {
        if let Some(bytes) = reader.get(column.id.0)? {
            found(at, stored::get(column.ty, bytes)?);
        }
    }
    Ok(())
}
