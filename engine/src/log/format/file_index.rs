//! The encoding of the index of a sealed file. It is written and read group by group and run by run, so recovery applies
//! an index without expanding it in memory.
//!
//! See `index/file_summary.rs` for the meaning and `docs/formats.md` for the layout. Every number is checked before it
//! is used. Groups ascend, so each occurs once.

use bytes::Bytes;

use super::items::{BLOCK_ENTRIES, Sink, Span};
use super::numbers::{Cursor, put_bytes, put_varint};
use super::place::UNIT;
use crate::log::error::Damage;
use crate::log::types::GroupId;

/// Flag of a group: it was removed in this file, and all its records in older files are dead.
pub(crate) const RESET: u8 = 1;
/// Flag of a group: the file appends to its log, and an end follows.
pub(crate) const HAS_END: u8 = 2;

/// The changes of one group, without entries and keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupHead {
    pub(crate) group: GroupId,
    pub(crate) reset: bool,
    pub(crate) end: Option<u64>,
    /// 0 means none.
    pub(crate) floor: u64,
}

/// Appends a group to an index: `count` runs, ascending, and its keys, sorted.
pub(crate) fn encode_group(
    head: &GroupHead,
    count: usize,
    spans: impl Iterator<Item = Span>,
    keys: &[IndexKey<'_>],
    out: &mut Vec<u8>,
) {
    put_varint(out, head.group.0);
    let reset = if head.reset { RESET } else { 0 };
    out.push(reset | if head.end.is_some() { HAS_END } else { 0 });
    if let Some(end) = head.end {
        put_varint(out, end);
    }
    put_varint(out, head.floor);
    put_varint(out, count as u64);
    let mut expected = 0;
    for span in spans {
        put_varint(out, span.first - expected);
        put_varint(out, u64::from(span.count));
        put_varint(out, span.offset / UNIT);
        put_varint(out, u64::from(span.ordinal));
        put_varint(out, span.bytes);
        expected = span.end();
    }
    put_varint(out, keys.len() as u64);
    for (key, value) in keys {
        put_bytes(out, key);
        // 0 means removed; otherwise the value's length plus one.
        match value {
            None => put_varint(out, 0),
            Some(value) => {
                put_varint(out, value.len() as u64 + 1);
                out.extend_from_slice(value);
            }
        }
    }
}

/// The changes of one group, as encoded in the index.
#[derive(Debug)]
pub(crate) struct IndexGroup<'a> {
    pub(crate) head: GroupHead,
    spans: IndexSpans<'a>,
    keys: IndexKeys<'a>,
}

/// The encoded runs of a group. Read one at a time: decoded they may not fit into memory.
#[derive(Clone, Debug)]
struct IndexSpans<'a> {
    cursor: Cursor<'a>,
    file: u64,
    /// Runs not read yet.
    left: u64,
    /// The end of the run before.
    expected: u64,
}

/// The encoded keys of a group, set or removed. Read one at a time.
#[derive(Clone, Debug)]
struct IndexKeys<'a> {
    cursor: Cursor<'a>,
    /// Keys not read yet.
    left: u64,
}

/// A key and its value; `None` for a removed key.
pub(crate) type IndexKey<'a> = (&'a [u8], Option<&'a [u8]>);

/// Maximum number of runs that are applied at once.
const RUNS_AT_ONCE: usize = 1024;

/// Applies the changes of one group to its state before the file, in the order that `index/file_summary.rs` lists.
/// `spans` ascend and do not overlap. They are applied in pieces, because there may be many.
pub(crate) fn apply_group(
    head: &GroupHead,
    file: u64,
    spans: impl Iterator<Item = Span>,
    keys: impl Iterator<Item = (Bytes, Option<Bytes>)>,
    sink: &mut (impl Sink + ?Sized),
) -> Result<(), Damage> {
    let group = head.group;
    if head.reset {
        sink.remove(group);
    }
    if head.floor > 0 {
        sink.compact(group, head.floor, file);
    }
    if let Some(mut end) = head.end {
        let mut spans = spans.peekable();
        loop {
            let piece: Vec<Span> = spans.by_ref().take(RUNS_AT_ONCE).collect();
            sink.place(group, end, &piece)?;
            if spans.peek().is_none() {
                break;
            }
            // The first piece has truncated the entries of older files.
            end = u64::MAX;
        }
    }
    for (key, value) in keys {
        match value {
            Some(value) => sink.put(group, &key, &value, file),
            None => sink.delete(group, &key),
        }
    }
    Ok(())
}

/// Reads the raw form of an index.
pub(crate) struct IndexReader<'a> {
    len: usize,
    cursor: Cursor<'a>,
    file: u64,
    /// Groups not read yet.
    left: u64,
    last: Option<GroupId>,
}

impl<'a> IndexReader<'a> {
    /// Reads the index of `file` from its beginning.
    pub(crate) fn new(bytes: &'a [u8], file: u64) -> Result<IndexReader<'a>, Damage> {
        let mut cursor = Cursor(bytes);
        let left = cursor.varint()?;
        Ok(IndexReader { len: bytes.len(), cursor, file, left, last: None })
    }

    /// The offset of the next group.
    pub(crate) fn offset(&self) -> usize {
        self.len - self.cursor.0.len()
    }

    /// The next group; `None` after the last one.
    pub(crate) fn read(&mut self) -> Result<Option<IndexGroup<'a>>, Damage> {
        if self.left == 0 {
            return if self.cursor.is_empty() { Ok(None) } else { Err(Damage("index has bytes after its end")) };
        }
        self.left -= 1;
        let read = IndexGroup::decode(&mut self.cursor, self.file)?;
        if self.last >= Some(read.head.group) {
            return Err(Damage("index names a group twice, or its groups do not ascend"));
        }
        self.last = Some(read.head.group);
        Ok(Some(read))
    }
}

impl<'a> IndexGroup<'a> {
    /// Decodes the group at the cursor.
    pub(crate) fn decode(cursor: &mut Cursor<'a>, file: u64) -> Result<IndexGroup<'a>, Damage> {
        let group = GroupId(cursor.varint()?);
        let flags = cursor.byte()?;
        if flags & !(RESET | HAS_END) != 0 {
            return Err(Damage("index has an unknown flag"));
        }
        let end = if flags & HAS_END != 0 { Some(cursor.varint()?) } else { None };
        let floor = cursor.varint()?;
        let left = cursor.varint()?;
        if end.is_none() && left > 0 {
            return Err(Damage("index has entries without an end"));
        }
        let spans = IndexSpans { cursor: *cursor, file, left, expected: 0 };
        *cursor = spans.clone().verify()?;
        let left = cursor.varint()?;
        let keys = IndexKeys { cursor: *cursor, left };
        *cursor = keys.clone().verify()?;
        let head = GroupHead { group, reset: flags & RESET != 0, end, floor };
        Ok(IndexGroup { head, spans, keys })
    }

    /// Its runs: ascending, without overlaps.
    pub(crate) fn spans(&self) -> impl Iterator<Item = Span> + 'a {
        // They were verified when the group was decoded.
        self.spans.clone().map_while(Result::ok)
    }

    /// Keys set, and keys removed.
    pub(crate) fn keys(&self) -> impl Iterator<Item = IndexKey<'a>> + 'a {
        self.keys.clone().map_while(Result::ok)
    }

    /// Applies it to the group's state before the file.
    pub(crate) fn apply(&self, file: u64, sink: &mut impl Sink) -> Result<(), Damage> {
        let keys = self.keys().map(|(key, value)| (Bytes::copy_from_slice(key), value.map(Bytes::copy_from_slice)));
        apply_group(&self.head, file, self.spans(), keys, sink)
    }
}

impl<'a> IndexSpans<'a> {
    /// Reads all of them. Returns the cursor after them.
    fn verify(mut self) -> Result<Cursor<'a>, Damage> {
        self.by_ref().try_for_each(|span| span.map(drop))?;
        Ok(self.cursor)
    }
}

impl Iterator for IndexSpans<'_> {
    type Item = Result<Span, Damage>;

    fn next(&mut self) -> Option<Result<Span, Damage>> {
        self.left = self.left.checked_sub(1)?;
        let span = decode_span(&mut self.cursor, self.expected, self.file);
        Some(span.inspect(|span| self.expected = span.end()))
    }
}

impl<'a> IndexKeys<'a> {
    /// Reads all of them. Returns the cursor after them.
    fn verify(mut self) -> Result<Cursor<'a>, Damage> {
        self.by_ref().try_for_each(|key| key.map(drop))?;
        Ok(self.cursor)
    }

    fn read(&mut self) -> Result<IndexKey<'a>, Damage> {
        let key = self.cursor.bytes()?;
        let value = match self.cursor.varint()? {
            0 => None,
            len => Some(self.cursor.take(len - 1)?),
        };
        Ok((key, value))
    }
}

impl<'a> Iterator for IndexKeys<'a> {
    type Item = Result<IndexKey<'a>, Damage>;

    fn next(&mut self) -> Option<Result<IndexKey<'a>, Damage>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.read())
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
