//! The name and the bytes of a snapshot file: header, blocks, footer. Pure: touches no file.
//!
//! ```text
//! header | block | block | ... | footer
//! ```
//!
//! `docs/formats.md` describes the layout field by field; `tests.rs` pins its bytes. All integers are little-endian.
//! The footer holds a total checksum over every byte before it, which detects swapped, missing and repeated blocks.

use std::fmt;

use engine::Cf;

use crate::region::{Floor, Floors, LogIndex, RegionId, Term};

/// Suffix of a complete file.
const SUFFIX: &str = ".snap";
/// First bytes of a file.
const MAGIC: [u8; 8] = *b"CTDOSNAP";
/// Last bytes of a file.
const END_MAGIC: [u8; 8] = *b"CTDOSEND";
/// The format version that this code writes. Version 2 added the floors.
const VERSION: u32 = 2;
/// The oldest version that this code reads.
const VERSION_MIN: u32 = 1;

/// Bytes of the header before the range: magic, version, region, term, index, length of start, length of end.
pub(super) const HEADER_FIXED: usize = 8 + 4 + 8 * 3 + 4 * 2;
/// Bytes of the floors in the header.
const FLOORS: usize = 8 * 2;
/// Bytes of a block's header: codec, stored length, raw length, checksum.
pub(super) const BLOCK_HEADER: usize = 1 + 4 + 4 + 4;
/// Bytes of the footer: rows, blocks, total checksum, own checksum, magic.
pub(super) const FOOTER: usize = 8 + 8 + 4 + 4 + 8;

/// Raw bytes at which a block is closed.
pub(super) const BLOCK_TARGET: usize = 64 << 10;
/// Most raw bytes of a block, hence of a row; a larger length is damage.
pub(super) const BLOCK_MAX: usize = 256 << 20;
/// Longest bound of a region's range, in bytes.
const BOUND_MAX: usize = 1 << 20;

/// The name of a snapshot: its region and log position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotKey {
    /// The region.
    pub region: RegionId,
    /// Term of the last entry it includes.
    pub term: Term,
    /// Index of the last entry it includes.
    pub index: LogIndex,
}

impl fmt::Display for SnapshotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.region, self.term, self.index)
    }
}

impl SnapshotKey {
    pub(super) fn file_name(self) -> String {
        format!("{self}{SUFFIX}")
    }

    /// Parses the name of a complete file; `None` for any other name.
    pub(super) fn from_file_name(name: &str) -> Option<SnapshotKey> {
        let mut numbers = name.strip_suffix(SUFFIX)?.split('-').map(|part| part.parse::<u64>().ok());
        let (region, term, index) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let key = SnapshotKey { region: RegionId::new(region), term: Term::new(term), index: LogIndex::new(index) };
        (key.file_name() == name).then_some(key)
    }
}

/// Why bytes are not a valid snapshot file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damage(pub(super) String);

type Result<T> = std::result::Result<T, Damage>;

fn damage<T>(what: impl Into<String>) -> Result<T> {
    Err(Damage(what.into()))
}

/// The header: identity and range of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) key: SnapshotKey,
    /// First key of the region's range.
    pub(super) start: Vec<u8>,
    /// First key after the range; empty means after every key.
    pub(super) end: Vec<u8>,
    /// The region's floors at the snapshot's index. None in version 1.
    pub(super) floors: Floors,
}

impl Header {
    /// Encodes the header.
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        if self.start.len() > BOUND_MAX || self.end.len() > BOUND_MAX {
            return damage("a bound of the region's range is too long");
        }
        let mut out = Vec::with_capacity(HEADER_FIXED + self.start.len() + self.end.len() + FLOORS + 4);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        for number in [self.key.region.get(), self.key.term.get(), self.key.index.get()] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for bound in [&self.start, &self.end] {
            out.extend_from_slice(&(bound.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(&self.start);
        out.extend_from_slice(&self.end);
        for floor in [self.floors.writes, self.floors.reads] {
            out.extend_from_slice(&floor.get().to_le_bytes());
        }
        out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
        Ok(out)
    }

    /// Length of the whole header, from its first [`HEADER_FIXED`] bytes.
    pub(super) fn length(fixed: &[u8; HEADER_FIXED]) -> Result<usize> {
        let mut input = Input(fixed);
        if input.array::<8>()? != MAGIC {
            return damage("this is not a snapshot file");
        }
        let version = input.u32()?;
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return damage(format!("format version {version}, this build reads {VERSION_MIN} to {VERSION}"));
        }
        input.take(8 * 3)?;
        let (start, end) = (input.u32()? as usize, input.u32()? as usize);
        if start > BOUND_MAX || end > BOUND_MAX {
            return damage("a bound of the range is too long");
        }
        Ok(HEADER_FIXED + start + end + if version == 1 { 0 } else { FLOORS } + 4)
    }

    /// Decodes the whole header.
    pub(super) fn decode(bytes: &[u8]) -> Result<Header> {
        let Some((body, crc)) = bytes.split_last_chunk::<4>() else { return damage("header is cut off") };
        if crc32fast::hash(body) != u32::from_le_bytes(*crc) {
            return damage("header checksum does not match");
        }
        let mut input = Input(body);
        input.take(8)?;
        let version = input.u32()?;
        let (region, term, index) = (input.u64()?, input.u64()?, input.u64()?);
        let (start, end) = (input.u32()? as usize, input.u32()? as usize);
        let key = SnapshotKey { region: RegionId::new(region), term: Term::new(term), index: LogIndex::new(index) };
        let (start, end) = (input.take(start)?.to_vec(), input.take(end)?.to_vec());
        let floors = match version {
            1 => Floors::default(),
            _ => Floors { writes: Floor::new(input.u64()?), reads: Floor::new(input.u64()?) },
        };
        let header = Header { key, start, end, floors };
        if input.0.is_empty() { Ok(header) } else { damage("header has bytes after its end") }
    }

    /// Whether the range contains `key`.
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        key >= self.start.as_slice() && (self.end.is_empty() || key < self.end.as_slice())
    }
}

/// The encoding of a block's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Raw = 0,
    Lz4 = 1,
}

/// The header of a block. Its checksum covers codec, lengths and stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    codec: Codec,
    /// Bytes that follow the header.
    pub(super) stored: usize,
    raw: usize,
    crc: u32,
}

impl BlockHeader {
    /// Decodes a block header. Refuses impossible lengths before anything is allocated for them.
    pub(super) fn decode(bytes: &[u8; BLOCK_HEADER]) -> Result<BlockHeader> {
        let mut input = Input(bytes);
        let codec = match input.array::<1>()? {
            [0] => Codec::Raw,
            [1] => Codec::Lz4,
            [other] => return damage(format!("unknown block codec {other}")),
        };
        let (stored, raw, crc) = (input.u32()? as usize, input.u32()? as usize, input.u32()?);
        if raw == 0 || raw > BLOCK_MAX || stored > raw || (codec == Codec::Raw && stored != raw) {
            return damage(format!("impossible block lengths, stored {stored}, raw {raw}"));
        }
        Ok(BlockHeader { codec, stored, raw, crc })
    }

    fn encode_without_checksum(self) -> [u8; BLOCK_HEADER - 4] {
        let mut out = [0; BLOCK_HEADER - 4];
        out[0] = self.codec as u8;
        out[1..5].copy_from_slice(&(self.stored as u32).to_le_bytes());
        out[5..9].copy_from_slice(&(self.raw as u32).to_le_bytes());
        out
    }

    fn checksum(self, stored: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.encode_without_checksum());
        hasher.update(stored);
        hasher.finalize()
    }

    /// Verifies and decompresses the stored bytes of the block.
    pub(super) fn unpack(self, stored: Vec<u8>) -> Result<Vec<u8>> {
        if self.checksum(&stored) != self.crc {
            return damage("block checksum does not match");
        }
        match self.codec {
            Codec::Raw => Ok(stored),
            Codec::Lz4 => match lz4::block::decompress(&stored, Some(i32::try_from(self.raw).unwrap_or(-1))) {
                Ok(raw) if raw.len() == self.raw => Ok(raw),
                Ok(raw) => damage(format!("block holds {} bytes, {} were announced", raw.len(), self.raw)),
                Err(error) => damage(format!("block does not decompress: {error}")),
            },
        }
    }
}

/// Appends a block to `out`, compressed if that saves at least one part in twenty. `raw` is not empty and not longer
/// than [`BLOCK_MAX`].
pub(super) fn encode_block(raw: &[u8], out: &mut Vec<u8>) {
    assert!(!raw.is_empty() && raw.len() <= BLOCK_MAX, "a block of {} bytes", raw.len());
    let mut packed = vec![0; raw.len() - raw.len() / 20];
    // Fails if the buffer is too small, that is if compression does not pay.
    let (codec, stored) = match lz4::block::compress_to_buffer(raw, None, false, &mut packed) {
        Ok(len) => (Codec::Lz4, &packed[..len]),
        Err(_) => (Codec::Raw, raw),
    };
    let mut header = BlockHeader { codec, stored: stored.len(), raw: raw.len(), crc: 0 };
    header.crc = header.checksum(stored);
    out.extend_from_slice(&header.encode_without_checksum());
    out.extend_from_slice(&header.crc.to_le_bytes());
    out.extend_from_slice(stored);
}

/// Encoded bytes of a row.
pub(super) fn row_len(key: &[u8], value: &[u8]) -> usize {
    1 + 4 + 4 + key.len() + value.len()
}

/// Appends a row to a block's raw bytes.
pub(super) fn encode_row(cf: Cf, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(cf.code());
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// A row, borrowed from its block.
pub(super) struct Row<'a> {
    pub(super) cf: Cf,
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

/// Decodes the row at the start of `bytes`; also returns its length.
pub(super) fn decode_row(bytes: &[u8]) -> Result<(Row<'_>, usize)> {
    let mut input = Input(bytes);
    let [code] = input.array::<1>()?;
    let Some(cf) = Cf::from_code(code).filter(|cf| Cf::DATA.contains(cf)) else {
        return damage(format!("row of an unexpected column family {code}"));
    };
    let (key, value) = (input.u32()? as usize, input.u32()? as usize);
    let row = Row { cf, key: input.take(key)?, value: input.take(value)? };
    Ok((row, bytes.len() - input.0.len()))
}

/// The footer: counts and checksum of the file before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) rows: u64,
    pub(super) blocks: u64,
    /// CRC-32 of every byte before the footer.
    pub(super) total: u32,
}

impl Footer {
    /// Encodes the footer.
    pub(super) fn encode(&self) -> [u8; FOOTER] {
        let mut out = [0; FOOTER];
        out[..8].copy_from_slice(&self.rows.to_le_bytes());
        out[8..16].copy_from_slice(&self.blocks.to_le_bytes());
        out[16..20].copy_from_slice(&self.total.to_le_bytes());
        let crc = crc32fast::hash(&out[..20]);
        out[20..24].copy_from_slice(&crc.to_le_bytes());
        out[24..].copy_from_slice(&END_MAGIC);
        out
    }

    /// Decodes the last [`FOOTER`] bytes of a file.
    pub(super) fn decode(bytes: &[u8; FOOTER]) -> Result<Footer> {
        let mut input = Input(bytes);
        let (rows, blocks, total) = (input.u64()?, input.u64()?, input.u32()?);
        if input.u32()? != crc32fast::hash(&bytes[..20]) || input.array::<8>()? != END_MAGIC {
            return damage("footer is damaged or the file is cut off");
        }
        Ok(Footer { rows, blocks, total })
    }
}

/// Reads fixed-size fields off the front of a slice.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.0.split_at_checked(len) else {
            return damage(format!("{len} bytes expected, {} left", self.0.len()));
        };
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((taken, rest)) = self.0.split_first_chunk::<N>() else {
            return damage(format!("{N} bytes expected, {} left", self.0.len()));
        };
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
