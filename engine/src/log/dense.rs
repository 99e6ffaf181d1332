//! The dense index of a sealed file, read group by group: recovery applies it without holding more of it in memory than its bytes.
//!
//! [`super::effects`] says what it means and writes it; `docs/formats.md` has the layout. Every number is checked before it is
//! used, and groups ascend, so that none is named twice.

use bytes::Bytes;

use super::GroupId;
use super::error::Damage;
use super::format::{Cursor, UNIT};
use super::items::{BLOCK_ENTRIES, Sink};
use super::runs::Span;

/// Flag of a group: whatever was there before the file is forgotten.
pub(crate) const RESET: u8 = 1;
/// Flag of a group: its log was appended to, and an end follows.
pub(crate) const HAS_END: u8 = 2;

/// What the file changes of one group, as it stands in the index.
#[derive(Debug)]
pub(crate) struct DenseGroup<'a> {
    pub(crate) group: GroupId,
    pub(crate) reset: bool,
    pub(crate) end: Option<u64>,
    /// 0 is none.
    pub(crate) floor: u64,
    /// Ascending, and apart from each other.
    pub(crate) spans: Vec<Span>,
    /// Keys set, and keys removed.
    pub(crate) keys: Vec<(&'a [u8], Option<&'a [u8]>)>,
}

/// Reads the raw form of an index.
pub(crate) struct DenseReader<'a> {
    len: usize,
    cursor: Cursor<'a>,
    file: u64,
    /// Groups not read yet.
    left: u64,
    last: Option<GroupId>,
}

impl<'a> DenseReader<'a> {
    /// Reads the index of `file` from its beginning.
    pub(crate) fn new(bytes: &'a [u8], file: u64) -> Result<DenseReader<'a>, Damage> {
        let mut cursor = Cursor(bytes);
        let left = cursor.varint()?;
        Ok(DenseReader { len: bytes.len(), cursor, file, left, last: None })
    }

    /// Where the next group stands.
    pub(crate) fn offset(&self) -> usize {
        self.len - self.cursor.0.len()
    }

    /// The next group; `None` after the last one.
    pub(crate) fn read(&mut self) -> Result<Option<DenseGroup<'a>>, Damage> {
        if self.left == 0 {
            return if self.cursor.is_empty() { Ok(None) } else { Err(Damage("index has bytes after its end")) };
        }
        self.left -= 1;
        let read = DenseGroup::decode(&mut self.cursor, self.file)?;
        if self.last >= Some(read.group) {
            return Err(Damage("index names a group twice, or its groups do not ascend"));
        }
        self.last = Some(read.group);
        Ok(Some(read))
    }
}

impl<'a> DenseGroup<'a> {
    /// Decodes the group at the cursor.
    pub(crate) fn decode(cursor: &mut Cursor<'a>, file: u64) -> Result<DenseGroup<'a>, Damage> {
        let group = GroupId(cursor.varint()?);
        let flags = cursor.byte()?;
        if flags & !(RESET | HAS_END) != 0 {
            return Err(Damage("index has an unknown flag"));
        }
        let end = if flags & HAS_END != 0 { Some(cursor.varint()?) } else { None };
        let floor = cursor.varint()?;
        let mut spans = Vec::new();
        let mut expected = 0u64;
        for _ in 0..cursor.varint()? {
            let span = decode_span(cursor, expected, file)?;
            expected = span.end();
            spans.push(span);
        }
        if end.is_none() && !spans.is_empty() {
            return Err(Damage("index has entries without an end"));
        }
        let mut keys = Vec::new();
        for _ in 0..cursor.varint()? {
            let key = cursor.bytes()?;
            let value = match cursor.varint()? {
                0 => None,
                len => Some(cursor.take(len - 1)?),
            };
            keys.push((key, value));
        }
        Ok(DenseGroup { group, reset: flags & RESET != 0, end, floor, spans, keys })
    }

    /// Applies it to the group's state before the file. The order is that of [`super::effects`].
    pub(crate) fn apply(&self, file: u64, sink: &mut dyn Sink) -> Result<(), Damage> {
        if self.reset {
            sink.remove(self.group);
        }
        if self.floor > 0 {
            sink.compact(self.group, self.floor, file);
        }
        if let Some(end) = self.end {
            sink.place(self.group, end, &self.spans)?;
        }
        for (key, value) in &self.keys {
            match value {
                Some(value) => {
                    sink.put(self.group, &Bytes::copy_from_slice(key), &Bytes::copy_from_slice(value), file);
                }
                None => sink.delete(self.group, key),
            }
        }
        Ok(())
    }
}

fn decode_span(cursor: &mut Cursor<'_>, expected: u64, file: u64) -> Result<Span, Damage> {
    let first = expected.checked_add(cursor.varint()?);
    let count = cursor.varint()?;
    let offset = cursor.varint()?;
    let ordinal = cursor.varint()?;
    let bytes = cursor.varint()?;
    let room = BLOCK_ENTRIES as u64;
    let first = first.filter(|first| first.checked_add(room).is_some()).ok_or(Damage("index is too large"))?;
    if count == 0 || count > room || ordinal >= room || ordinal + count > room || offset >= 1 << 29 {
        return Err(Damage("index has an impossible run"));
    }
    Ok(Span { first, count: count as u32, file, offset: offset * UNIT, ordinal: ordinal as u32, bytes })
}
