//! A write batch as plain data.
//!
//! Evaluation of a transaction builds a batch, Raft replicates its bytes, and apply writes it to the store. The bytes
//! are built once and never re-encoded. `docs/formats.md` fixes the layout:
//!
//! ```text
//! batch  = version:u8 op*                    version = 1
//! op     = kind:u8 cf:u8 field field         kind 1: put (key, value)
//!        | kind:u8 cf:u8 field               kind 2: delete (key)
//!        | kind:u8 cf:u8 field field         kind 3: delete range (start, end)
//! field  = length:varint byte*               varint: LEB128, shortest form only
//! ```
//!
//! [`WriteBatch::from_bytes`] validates all bytes from outside, so [`WriteBatch::iter`] never sees a malformed batch. A
//! batch has exactly one encoding: equal operations in equal order have equal bytes.

use crate::cf::Cf;

/// The first byte of the encoding.
const VERSION: u8 = 1;
/// The encoding of an empty batch.
const EMPTY: &[u8] = &[VERSION];

const KIND_PUT: u8 = 1;
const KIND_DELETE: u8 = 2;
const KIND_DELETE_RANGE: u8 = 3;

/// The longest encoding of a length in bytes: ceil(64 / 7).
const MAX_VARINT_BYTES: usize = 10;

/// An ordered list of puts and deletes over the column families, kept in encoded form.
///
/// A later operation overrides earlier ones on the same key.
///
/// Invariants: (1) `bytes` is empty exactly if `count` is 0; (2) otherwise `bytes` is a version byte and `count`
/// well-formed operations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    count: usize,
}

/// One operation of a [`WriteBatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Set `key` to `value`.
    Put {
        /// The column family.
        cf: Cf,
        /// The key.
        key: &'a [u8],
        /// Its new value.
        value: &'a [u8],
    },
    /// Remove `key`, if it exists.
    Delete {
        /// The column family.
        cf: Cf,
        /// The key.
        key: &'a [u8],
    },
    /// Remove every key in `[start, end)`. An empty `end` means no upper bound. A non-empty `end` at or below `start`
    /// removes nothing.
    DeleteRange {
        /// The column family.
        cf: Cf,
        /// The first key removed.
        start: &'a [u8],
        /// The first key kept, or empty.
        end: &'a [u8],
    },
}

/// The bytes are not a write batch.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("malformed write batch at byte {offset}")]
pub struct MalformedBatch {
    /// Where decoding stopped.
    pub offset: usize,
}

impl WriteBatch {
    /// An empty batch. Does not allocate.
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// Appends a put.
    pub fn put(&mut self, cf: Cf, key: &[u8], value: &[u8]) {
        self.push(KIND_PUT, cf, key, Some(value));
    }

    /// Appends a delete.
    pub fn delete(&mut self, cf: Cf, key: &[u8]) {
        self.push(KIND_DELETE, cf, key, None);
    }

    /// Appends the removal of `[start, end)`; an empty `end` means no upper bound.
    pub fn delete_range(&mut self, cf: Cf, start: &[u8], end: &[u8]) {
        self.push(KIND_DELETE_RANGE, cf, start, Some(end));
    }

    /// Appends every operation of `other`.
    pub fn append(&mut self, other: &WriteBatch) {
        if self.is_empty() {
            self.bytes.extend_from_slice(&other.bytes);
        } else {
            self.bytes.extend_from_slice(other.operations());
        }
        self.count += other.count;
    }

    /// Whether the batch has no operations.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The size of the encoding in bytes.
    pub fn size(&self) -> usize {
        self.as_bytes().len()
    }

    /// Removes all operations and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// The operations in order.
    pub fn iter(&self) -> impl Iterator<Item = Op<'_>> + '_ {
        let mut decoder = Decoder { bytes: &self.bytes, offset: EMPTY.len() };
        // Invariant 2 rules out an error here. If it breaks, the batch ends at the bad operation.
        std::iter::from_fn(move || decoder.next_op().ok().flatten())
    }

    /// The encoding, for replication.
    pub fn as_bytes(&self) -> &[u8] {
        if self.bytes.is_empty() { EMPTY } else { &self.bytes }
    }

    /// Decodes and validates a whole batch: `iter` never fails afterwards.
    pub fn from_bytes(bytes: &[u8]) -> Result<WriteBatch, MalformedBatch> {
        if bytes.first() != Some(&VERSION) {
            return Err(MalformedBatch { offset: 0 });
        }
        let mut decoder = Decoder { bytes, offset: EMPTY.len() };
        let mut count = 0;
        while decoder.next_op()?.is_some() {
            count += 1;
        }
        // The empty batch has one representation, so that equal operations compare equal.
        let bytes = if count == 0 { Vec::new() } else { bytes.to_vec() };
        Ok(WriteBatch { bytes, count })
    }

    /// The encoded operations, without the version byte.
    fn operations(&self) -> &[u8] {
        self.bytes.get(EMPTY.len()..).unwrap_or_default()
    }

    fn push(&mut self, kind: u8, cf: Cf, first: &[u8], second: Option<&[u8]>) {
        let second_len = second.map_or(0, |field| field.len() + MAX_VARINT_BYTES);
        self.bytes.reserve(EMPTY.len() + 2 + MAX_VARINT_BYTES + first.len() + second_len);
        if self.bytes.is_empty() {
            self.bytes.push(VERSION);
        }
        self.bytes.extend_from_slice(&[kind, cf.code()]);
        put_field(&mut self.bytes, first);
        if let Some(second) = second {
            put_field(&mut self.bytes, second);
        }
        self.count += 1;
    }
}

fn put_field(out: &mut Vec<u8>, field: &[u8]) {
    let mut rest = field.len() as u64;
    while rest >= 0x80 {
        out.push((rest as u8) | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out.extend_from_slice(field);
}

/// Decodes operations one by one. Stops at the first malformed byte.
struct Decoder<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Decoder<'a> {
    /// The next operation; `None` at the end.
    fn next_op(&mut self) -> Result<Option<Op<'a>>, MalformedBatch> {
        if self.offset >= self.bytes.len() {
            return Ok(None);
        }
        let kind_offset = self.offset;
        let kind = self.byte()?;
        let cf_offset = self.offset;
        let cf = Cf::from_code(self.byte()?).ok_or(MalformedBatch { offset: cf_offset })?;
        let op = match kind {
            KIND_PUT => Op::Put { cf, key: self.field()?, value: self.field()? },
            KIND_DELETE => Op::Delete { cf, key: self.field()? },
            KIND_DELETE_RANGE => Op::DeleteRange { cf, start: self.field()?, end: self.field()? },
            _ => return Err(MalformedBatch { offset: kind_offset }),
        };
        Ok(Some(op))
    }

    fn byte(&mut self) -> Result<u8, MalformedBatch> {
        let byte = *self.bytes.get(self.offset).ok_or(MalformedBatch { offset: self.offset })?;
        self.offset += 1;
        Ok(byte)
    }

    fn field(&mut self) -> Result<&'a [u8], MalformedBatch> {
        let start = self.offset;
        let len = self.varint()?;
        let end = usize::try_from(len).ok().and_then(|len| self.offset.checked_add(len));
        let field = end.and_then(|end| self.bytes.get(self.offset..end)).ok_or(MalformedBatch { offset: start })?;
        self.offset += field.len();
        Ok(field)
    }

    fn varint(&mut self) -> Result<u64, MalformedBatch> {
        let start = self.offset;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit. A last byte of zero means that a shorter form exists.
            if (shift == 63 && part > 1) || (byte == 0 && shift > 0) {
                return Err(MalformedBatch { offset: start });
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(MalformedBatch { offset: start })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> WriteBatch {
        let mut batch = WriteBatch::new();
        batch.put(Cf::Default, b"k", b"value");
        batch.delete(Cf::Lock, b"");
        batch.delete_range(Cf::Write, b"a", b"b");
        batch.put(Cf::Meta, &[0xff; 200], b"");
        batch
    }

    /// A change of these bytes is a change of the format and needs a new version byte.
    #[test]
    fn golden_bytes() {
        let mut expected = vec![1];
        expected.extend_from_slice(b"\x01\x00\x01k\x05value");
        expected.extend_from_slice(b"\x02\x01\x00");
        expected.extend_from_slice(b"\x03\x02\x01a\x01b");
        expected.extend_from_slice(b"\x01\x03\xc8\x01");
        expected.extend_from_slice(&[0xff; 200]);
        expected.push(0);
        assert_eq!(sample().as_bytes(), expected);
        assert_eq!(WriteBatch::new().as_bytes(), [1]);
    }

    #[test]
    fn empty_batches_are_equal() {
        let decoded = WriteBatch::from_bytes(&[1]).unwrap();
        assert_eq!(decoded, WriteBatch::new());
        assert!(decoded.is_empty());
        assert_eq!((decoded.len(), decoded.size(), decoded.iter().count()), (0, 1, 0));
        let mut cleared = sample();
        cleared.clear();
        assert_eq!(cleared, WriteBatch::new());
    }

    #[test]
    fn append_keeps_order_and_encoding() {
        let mut whole = WriteBatch::new();
        whole.append(&WriteBatch::new());
        whole.append(&sample());
        whole.append(&WriteBatch::new());
        whole.append(&sample());
        let mut expected = sample().as_bytes().to_vec();
        expected.extend_from_slice(&sample().as_bytes()[1..]);
        assert_eq!(whole.as_bytes(), expected);
        assert_eq!(whole.len(), 8);
        assert_eq!(WriteBatch::from_bytes(whole.as_bytes()), Ok(whole));
    }

    /// A truncated batch is accepted only if cut between two operations. It is then the batch of the operations before
    /// the cut.
    #[test]
    fn every_truncation_is_refused_or_decodes_to_a_prefix() {
        let whole = sample();
        let mut borders = vec![1];
        for kept in 1..=whole.len() {
            let mut prefix = WriteBatch::new();
            for op in whole.iter().take(kept) {
                push_op(&mut prefix, op);
            }
            borders.push(prefix.size());
        }
        for cut in 0..whole.size() {
            match WriteBatch::from_bytes(&whole.as_bytes()[..cut]) {
                Ok(batch) => assert_eq!(borders.get(batch.len()), Some(&cut)),
                Err(error) => assert!(!borders.contains(&cut) && error.offset <= cut, "{cut}: {error}"),
            }
        }
    }

    #[test]
    fn malformed_inputs() {
        let cases: [(&[u8], usize); 9] = [
            (b"", 0),
            (b"\x02", 0),
            (b"\x01\x00\x00\x00", 1),
            (b"\x01\x04\x00\x00", 1),
            (b"\x01\x02\x04\x00", 2),
            (b"\x01\x02\x00\x02k", 3),
            // An overlong length, one above 64 bits, and one that overflows the address space.
            (b"\x01\x02\x00\x81\x00k", 3),
            (b"\x01\x02\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 3),
            (b"\x01\x02\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 3),
        ];
        for (bytes, offset) in cases {
            assert_eq!(WriteBatch::from_bytes(bytes), Err(MalformedBatch { offset }), "{bytes:?}");
        }
    }

    fn push_op(batch: &mut WriteBatch, op: Op<'_>) {
        match op {
            Op::Put { cf, key, value } => batch.put(cf, key, value),
            Op::Delete { cf, key } => batch.delete(cf, key),
            Op::DeleteRange { cf, start, end } => batch.delete_range(cf, start, end),
        }
    }

    proptest! {
        #[test]
        fn round_trip(ops in proptest::collection::vec((0u8..3, 0u8..4, any::<Vec<u8>>(), any::<Vec<u8>>()), 0..20)) {
            let mut batch = WriteBatch::new();
            let mut expected = Vec::new();
            for (kind, cf, first, second) in &ops {
                let cf = Cf::from_code(*cf).unwrap();
                let op = match kind {
                    0 => Op::Put { cf, key: first, value: second },
                    1 => Op::Delete { cf, key: first },
                    _ => Op::DeleteRange { cf, start: first, end: second },
                };
                push_op(&mut batch, op);
                expected.push(op);
            }
            prop_assert_eq!(batch.len(), ops.len());
            let decoded = WriteBatch::from_bytes(batch.as_bytes()).unwrap();
            prop_assert_eq!(decoded.iter().collect::<Vec<_>>(), expected);
            prop_assert_eq!(decoded, batch);
        }

        /// An accepted batch has `len` operations and only one encoding.
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in any::<Vec<u8>>()) {
            bytes.insert(0, VERSION);
            if let Ok(batch) = WriteBatch::from_bytes(&bytes) {
                prop_assert_eq!(batch.iter().count(), batch.len());
                let mut again = WriteBatch::new();
                batch.iter().for_each(|op| push_op(&mut again, op));
                prop_assert_eq!(again.as_bytes(), bytes);
            }
        }
    }
}
