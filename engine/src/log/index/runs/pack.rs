//! Packed runs: each is encoded as the difference to the run before it. In memory only.
//!
//! A run is a byte of flags, the step to the block's offset in one to four bytes, and the fields that the flags announce:
//! the size class, the gap of indexes before the run, its number of entries less one if it differs, its position in the
//! block, the step to its file. So an entry in a block of its own, in the file of the one before, takes three to six
//! bytes, and 15 at most.

use crate::log::format::{Cursor, Span, UNIT, put_varint};

/// The run that the next one is encoded relative to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PreviousRun {
    /// Index after its last entry.
    pub(super) end: u64,
    file: u64,
    /// Its block's offset, in units of 8 bytes.
    unit: u32,
    class: u8,
    /// Number of runs so far: no more than a chunk has.
    pub(super) runs: u8,
    /// Its number of entries less one.
    count_less_one: u16,
}

/// Block offsets are below this, in units of 8 bytes: signed steps between them fit into four bytes.
pub(super) const UNITS: u64 = 1 << 29;

const CLASS: u8 = 1;
const GAP: u8 = 2;
const COUNT: u8 = 4;
const ORDINAL: u8 = 8;
const FILE: u8 = 16;
/// All flags but the first, which is the most frequent.
const DIFFERENCES: u8 = GAP | COUNT | ORDINAL | FILE;
/// Two bits: the bytes of the offset step, less one.
const STEP_BYTES: u8 = 5;

impl PreviousRun {
    /// The state before the first run, which begins at index `first`.
    pub(super) fn first(first: u64) -> PreviousRun {
        PreviousRun { end: first, ..PreviousRun::default() }
    }

    /// Appends `span` to `out`. Its first index is not below `end`, and its size is one that [`rounded`] returns.
    pub(super) fn put(&mut self, span: &Span, out: &mut Vec<u8>) {
        let unit = (span.offset / UNIT) as u32;
        let class = size_class(span.bytes);
        // No run has more than 4096 entries.
        let count_less_one = (span.count - 1) as u16;
        let step = zigzag(i64::from(unit) - i64::from(self.unit)) as u32;
        let bytes = (32 - step.leading_zeros()).div_ceil(8).max(1) as u8;
        let when = |differs: bool, flag: u8| if differs { flag } else { 0 };
        let flags = when(class != self.class, CLASS)
            | when(span.first != self.end, GAP)
            | when(count_less_one != self.count_less_one, COUNT)
            | when(span.ordinal != 0, ORDINAL)
            | when(span.file != self.file, FILE);
        let [a, b, c, d] = step.to_le_bytes();
        out.extend_from_slice(&[flags | (bytes - 1) << STEP_BYTES, a, b, c, d][..1 + usize::from(bytes)]);
        if flags & CLASS != 0 {
            out.push(class);
        }
        if flags & GAP != 0 {
            put_varint(out, span.first - self.end);
        }
        if flags & COUNT != 0 {
            put_varint(out, u64::from(count_less_one));
        }
        if flags & ORDINAL != 0 {
            put_varint(out, u64::from(span.ordinal));
        }
        if flags & FILE != 0 {
            put_varint(out, zigzag(span.file as i64 - self.file as i64));
        }
        *self = PreviousRun { end: span.end(), file: span.file, unit, class, runs: self.runs + 1, count_less_one };
    }
}

/// Decodes runs.
pub(super) struct RunDecoder<'a> {
    bytes: &'a [u8],
    pub(super) previous: PreviousRun,
}

impl<'a> RunDecoder<'a> {
    /// The runs in `bytes`, the first of which begins at index `first`.
    pub(super) fn new(first: u64, bytes: &'a [u8]) -> RunDecoder<'a> {
        RunDecoder { bytes, previous: PreviousRun::first(first) }
    }

    /// Decodes what the flags announce: returns the gap before the run and its ordinal, and updates count and file.
    fn differences(&mut self, flags: u8) -> Option<(u64, u32)> {
        let mut cursor = Cursor(self.bytes);
        let (mut gap, mut ordinal) = (0, 0);
        if flags & GAP != 0 {
            gap = cursor.varint().ok()?;
        }
        if flags & COUNT != 0 {
            self.previous.count_less_one = cursor.varint().ok()? as u16;
        }
        if flags & ORDINAL != 0 {
            ordinal = cursor.varint().ok()? as u32;
        }
        if flags & FILE != 0 {
            self.previous.file = self.previous.file.wrapping_add_signed(unzigzag(cursor.varint().ok()?));
        }
        self.bytes = cursor.0;
        Some((gap, ordinal))
    }
}

impl Iterator for RunDecoder<'_> {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        let (flags, rest) = self.bytes.split_first()?;
        let bytes = usize::from(flags >> STEP_BYTES) + 1;
        // Loads four bytes at once if there are as many. The step is in the first of them.
        let four = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut four = [0; 4];
            four[..rest.len()].copy_from_slice(rest);
            four
        });
        let step = u32::from_le_bytes(four) & (u32::MAX >> (32 - 8 * bytes));
        let mut rest = rest.get(bytes..)?;
        if flags & CLASS != 0 {
            (self.previous.class, rest) = rest.split_first().map(|(class, rest)| (*class, rest))?;
        }
        self.bytes = rest;
        self.previous.unit = self.previous.unit.wrapping_add_signed(unzigzag(u64::from(step)) as i32);
        let (gap, ordinal) = match flags & DIFFERENCES {
            0 => (0, 0),
            _ => self.differences(*flags)?,
        };
        let (first, count) = (self.previous.end + gap, u32::from(self.previous.count_less_one) + 1);
        self.previous.end = first + u64::from(count);
        self.previous.runs += 1;
        Some(Span {
            first,
            count,
            file: self.previous.file,
            offset: u64::from(self.previous.unit) * UNIT,
            ordinal,
            bytes: class_size(self.previous.class),
        })
    }
}

/// Maps a signed number near 0 to a small unsigned one.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// `bytes` rounded down as a run keeps it.
pub(super) fn rounded(bytes: u64) -> u64 {
    class_size(size_class(bytes))
}

/// A size as 5 bits of exponent and 3 bits of mantissa, rounded down.
fn size_class(bytes: u64) -> u8 {
    if bytes < 8 {
        return bytes as u8;
    }
    let exponent = 63 - bytes.leading_zeros() - 3;
    if exponent >= 31 {
        return u8::MAX;
    }
    ((exponent + 1) << 3) as u8 | ((bytes >> exponent) as u8 & 7)
}

fn class_size(class: u8) -> u64 {
    let (exponent, mantissa) = (class >> 3, u64::from(class & 7));
    if exponent == 0 { mantissa } else { (8 + mantissa) << (exponent - 1) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span() -> impl Strategy<Value = Span> {
        let file = prop_oneof![1u64..4, 1u64..1 << 35];
        let unit = prop_oneof![0u64..100, 0..UNITS, Just(UNITS - 1)];
        (1u32..=4096, file, unit, 0u32..4096, 0u64..1 << 33).prop_map(|(count, file, unit, ordinal, bytes)| Span {
            first: 0,
            count,
            file,
            offset: unit * UNIT,
            ordinal,
            bytes: rounded(bytes),
        })
    }

    proptest! {
        #[test]
        fn packed_runs_round_trip(
            first in prop_oneof![0u64..10, (u64::MAX - (1 << 40))..(u64::MAX - (1 << 39))],
            spans in prop::collection::vec((prop_oneof![Just(0u64), 0u64..1 << 32], span()), 0..100),
        ) {
            let (mut bytes, mut put, mut next) = (Vec::new(), Vec::new(), first);
            let mut previous = PreviousRun::first(first);
            for (gap, span) in spans {
                let gap = if put.is_empty() { 0 } else { gap };
                let span = Span { first: next + gap, ..span };
                next = span.end();
                let had = bytes.len();
                previous.put(&span, &mut bytes);
                if gap == 0 && span.count == 1 {
                    prop_assert!(bytes.len() - had <= 15, "an entry never takes more");
                }
                put.push(span);
            }
            let mut decoder = RunDecoder::new(first, &bytes);
            prop_assert_eq!(decoder.by_ref().collect::<Vec<_>>(), put);
            prop_assert_eq!(decoder.previous.end, previous.end);
        }

        #[test]
        fn size_class_is_close_to_the_size(bytes in 0u64..1 << 33) {
            let rounded_once = rounded(bytes);
            prop_assert!(rounded_once <= bytes && rounded_once >= bytes - bytes / 8);
            prop_assert_eq!(rounded(rounded_once), rounded_once);
        }
    }
}
