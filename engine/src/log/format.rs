//! The bytes of a log file: headers, checksums, numbers. Pure; `docs/formats.md` describes the same in prose.
//!
//! A file is a header, commit groups, and once it is sealed a dense index and a footer in its last bytes:
//!
//! ```text
//! 0           data_offset                                                   length - 64
//! | file header |  group | group | pad | group | ...        | index | zeros  | footer |
//!
//! group:  | header 64 | block | block | ... | meta | pad |
//! block:  | header 16 | stored bytes | 0..7 zeros |
//! ```
//!
//! Every checksum is a CRC-32 that starts from the log's identity, the file's number and the offset of what it
//! covers, so that bytes of another log, of another file or of another place never pass. A group's checksum covers its
//! header and its meta; the meta lists the checksums of the blocks: so the one number binds all of it, and a
//! single block can still be read and verified alone. The next group repeats that number: groups form a chain.

use super::GroupId;
use super::error::Damage;

/// The newest format this program reads, and the one it writes.
pub(crate) const VERSION: u32 = 1;
const FILE_MAGIC: [u8; 8] = *b"CORTALOG";
const SEAL_MAGIC: [u8; 8] = *b"CORTSEAL";
const GROUP_MAGIC: [u8; 4] = *b"CGRP";
/// Groups and blocks start at multiples of this.
pub(crate) const UNIT: u64 = 8;
/// The file header fills pages of this size.
pub(crate) const PAGE: u64 = 4096;
/// Bytes of a group header.
pub(crate) const GROUP_HEADER: usize = 64;
/// Bytes of a block header.
pub(crate) const BLOCK_HEADER: usize = 16;
/// Bytes of the footer of a sealed file.
pub(crate) const FOOTER: usize = 64;
/// No file has a higher number: the index keeps it in 35 bits. At 64 MiB each these are 2 zebibytes.
const MAX_SEQ: u64 = (1 << 35) - 1;
const FILE_HEADER_FIXED: usize = 72;
/// Flag of a file header: the space was used by an earlier file and is not all zeros.
pub(crate) const REUSED: u32 = 1;
/// Flag of a file header: the groups that the file before changes are listed.
const CHANGED: u32 = 2;
/// No log consists of more files: each of them is open as long as the log is, and no process may have more open.
pub(crate) const MAX_FILES: u64 = 1 << 20;
/// No file header is longer: room for as many ranges as there may be files.
const FILE_HEADER_MAX: u32 = FILE_HEADER_FIXED as u32 + 16 * MAX_FILES as u32 + 4;
/// With the groups that the file before changes it is no longer than this.
const WITH_CHANGED_MAX: usize = 1 << 20;

/// Which log the bytes belong to: drawn once, when the log is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(pub(crate) u128);

/// Which file of which log; what every checksum is bound to, besides the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) identity: Identity,
    pub(crate) seq: u64,
}

impl Place {
    /// The checksum of `parts`, one after another, that stand at `offset` of this file.
    pub(crate) fn checksum(&self, offset: u64, parts: &[&[u8]]) -> u32 {
        let mut seed = [0; 32];
        seed[..16].copy_from_slice(&self.identity.0.to_le_bytes());
        seed[16..24].copy_from_slice(&self.seq.to_le_bytes());
        seed[24..].copy_from_slice(&offset.to_le_bytes());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&seed);
        parts.iter().for_each(|part| hasher.update(part));
        hasher.finalize()
    }
}

/// How stored bytes are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Raw,
    Lz4,
    Zstd,
}

impl Codec {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Codec::Raw => 0,
            Codec::Lz4 => 1,
            Codec::Zstd => 2,
        }
    }

    fn from_byte(byte: u8) -> Result<Codec, Damage> {
        match byte {
            0 => Ok(Codec::Raw),
            1 => Ok(Codec::Lz4),
            2 => Ok(Codec::Zstd),
            _ => Err(Damage("unknown codec")),
        }
    }
}

/// The name of file `seq`.
pub(crate) fn file_name(seq: u64) -> String {
    format!("{seq:016}.log")
}

/// The number of a log file by its name; `None` for a name that is none.
pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
    let seq = name.strip_suffix(".log")?.parse().ok()?;
    ((1..=MAX_SEQ).contains(&seq) && file_name(seq) == name).then_some(seq)
}

/// `at`, or the next multiple of `unit` after it.
pub(crate) fn align(at: u64, unit: u64) -> u64 {
    at.div_ceil(unit) * unit
}

/// The beginning of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) place: Place,
    /// The file before this one, 0 for the first.
    pub(crate) prev_seq: u64,
    /// The position of the first group here.
    pub(crate) first_lsn: u64,
    /// The checksum of the last group of the file before.
    pub(crate) chain: u32,
    /// Where the first group stands.
    pub(crate) data_offset: u32,
    /// [`REUSED`], or 0; whether `changed` is there is added when it is encoded.
    pub(crate) flags: u32,
    /// The older files that the log consists of, as ranges from first to last number, ascending.
    pub(crate) live: Vec<(u64, u64)>,
    /// The groups that the file before changes, ascending: should it be lost, these and no others are concerned. `None` for the first
    /// file, and where there are too many of them to fit.
    pub(crate) changed: Option<Vec<GroupId>>,
}

/// Why a file header does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// It says a newer version.
    Version(u32),
    /// It is not one.
    Damage(Damage),
    /// It is longer than what was given: this many bytes are needed.
    Short(usize),
}

impl FileHeader {
    /// The header's pages, zeros at the end; fixes `data_offset`.
    pub(crate) fn encode(&mut self) -> Vec<u8> {
        if self.encoded_len() > WITH_CHANGED_MAX {
            self.changed = None;
        }
        let changed = self.encode_changed();
        let flags = self.flags | if changed.is_empty() { 0 } else { CHANGED };
        let len = self.encoded_len();
        self.data_offset = align(len as u64, PAGE) as u32;
        let mut out = Vec::with_capacity(self.data_offset as usize);
        out.extend_from_slice(&FILE_MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(len as u32).to_le_bytes());
        out.extend_from_slice(&self.place.identity.0.to_le_bytes());
        out.extend_from_slice(&self.place.seq.to_le_bytes());
        out.extend_from_slice(&self.prev_seq.to_le_bytes());
        out.extend_from_slice(&self.first_lsn.to_le_bytes());
        out.extend_from_slice(&self.chain.to_le_bytes());
        out.extend_from_slice(&self.data_offset.to_le_bytes());
        out.extend_from_slice(&(self.live.len() as u32).to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        for (first, last) in &self.live {
            out.extend_from_slice(&first.to_le_bytes());
            out.extend_from_slice(&last.to_le_bytes());
        }
        out.extend_from_slice(&changed);
        let checksum = self.place.checksum(0, &[&out]);
        out.extend_from_slice(&checksum.to_le_bytes());
        out.resize(self.data_offset as usize, 0);
        out
    }

    /// Whether it lists no more files than a reader takes.
    pub(crate) fn fits(&self) -> bool {
        self.live.iter().map(|(first, last)| last - first + 1).sum::<u64>() <= MAX_FILES
    }

    /// Bytes of the header without the zeros at its end.
    pub(crate) fn encoded_len(&self) -> usize {
        FILE_HEADER_FIXED + self.live.len() * 16 + self.encode_changed().len() + 4
    }

    /// How many groups changed, and each less the one before; nothing where that is not known.
    fn encode_changed(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let Some(changed) = &self.changed else { return out };
        put_varint(&mut out, changed.len() as u64);
        let mut before = 0;
        for group in changed {
            put_varint(&mut out, group.0 - before);
            before = group.0;
        }
        out
    }

    /// Reads a header from the beginning of a file.
    pub(crate) fn decode(bytes: &[u8]) -> Result<FileHeader, HeaderError> {
        let damage = |what| HeaderError::Damage(Damage(what));
        if bytes.len() < FILE_HEADER_FIXED + 4 {
            return Err(damage("file is shorter than a header"));
        }
        if bytes[..8] != FILE_MAGIC {
            return Err(damage("not a log file"));
        }
        let version = u32_at(bytes, 8);
        if version > VERSION {
            return Err(HeaderError::Version(version));
        }
        let len = u32_at(bytes, 12);
        let ranges = u32_at(bytes, 64);
        let with_ranges = (FILE_HEADER_FIXED as u64) + 16 * u64::from(ranges) + 4;
        if version == 0 || len > FILE_HEADER_MAX || u64::from(len) < with_ranges {
            return Err(damage("file header has an impossible length"));
        }
        let len = len as usize;
        if bytes.len() < len {
            return Err(HeaderError::Short(len));
        }
        let mut identity = [0; 16];
        identity.copy_from_slice(&bytes[16..32]);
        let place = Place { identity: Identity(u128::from_le_bytes(identity)), seq: u64_at(bytes, 32) };
        if place.checksum(0, &[&bytes[..len - 4]]) != u32_at(bytes, len - 4) {
            return Err(damage("file header fails its checksum"));
        }
        let live = (0..ranges as usize).map(|i| FILE_HEADER_FIXED + i * 16);
        let live: Vec<_> = live.map(|at| (u64_at(bytes, at), u64_at(bytes, at + 8))).collect();
        let (mut below, mut files) = (0, 0);
        for (first, last) in &live {
            if *first <= below || last < first || *last >= place.seq {
                return Err(damage("file header lists impossible files"));
            }
            files += last - first + 1;
            below = *last;
        }
        // Who looks for them remembers each that is missing.
        if files > MAX_FILES {
            return Err(damage("file header lists impossible files"));
        }
        let data_offset = u32_at(bytes, 60);
        let flags = u32_at(bytes, 68);
        if flags & !(REUSED | CHANGED) != 0 {
            return Err(damage("file header has an unknown flag"));
        }
        let rest = &bytes[with_ranges as usize - 4..len - 4];
        let changed =
            if flags & CHANGED != 0 { Some(decode_changed(rest).map_err(HeaderError::Damage)?) } else { None };
        if changed.is_none() && !rest.is_empty() {
            return Err(damage("file header has an impossible length"));
        }
        if u64::from(data_offset) != align(len as u64, PAGE) || !(1..=MAX_SEQ).contains(&place.seq) {
            return Err(damage("file header has an impossible number"));
        }
        Ok(FileHeader {
            place,
            prev_seq: u64_at(bytes, 40),
            first_lsn: u64_at(bytes, 48),
            chain: u32_at(bytes, 56),
            data_offset,
            flags: flags & REUSED,
            live,
            changed,
        })
    }
}

fn decode_changed(bytes: &[u8]) -> Result<Vec<GroupId>, Damage> {
    let mut cursor = Cursor(bytes);
    let mut changed: Vec<GroupId> = Vec::new();
    for _ in 0..cursor.varint()? {
        let step = cursor.varint()?;
        let group = match changed.last() {
            None => Some(step),
            Some(before) => before.0.checked_add(step).filter(|_| step > 0),
        };
        changed.push(GroupId(group.ok_or(Damage("file header lists impossible groups"))?));
    }
    if cursor.is_empty() { Ok(changed) } else { Err(Damage("file header has an impossible length")) }
}

/// The beginning of a commit group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    /// Position of the group.
    pub(crate) lsn: u64,
    /// The position up to which all was known to be synced when the group was encoded.
    pub(crate) synced: u64,
    /// The checksum of the group before.
    pub(crate) chain: u32,
    /// Zeros after the meta.
    pub(crate) pad: u32,
    pub(crate) meta_stored: u32,
    pub(crate) meta_raw: u32,
    /// Bytes of all blocks with their headers.
    pub(crate) body: u32,
    /// Number of blocks.
    pub(crate) blocks: u32,
    /// Number of batches in it.
    pub(crate) batches: u32,
    pub(crate) meta_codec: Codec,
}

impl GroupHeader {
    /// The header's bytes and its checksum, for a group at `offset` of `place` with this stored meta.
    pub(crate) fn encode(&self, place: Place, offset: u64, meta: &[u8]) -> ([u8; GROUP_HEADER], u32) {
        let mut out = [0; GROUP_HEADER];
        out[..4].copy_from_slice(&GROUP_MAGIC);
        out[8..16].copy_from_slice(&self.lsn.to_le_bytes());
        out[16..24].copy_from_slice(&self.synced.to_le_bytes());
        out[24..28].copy_from_slice(&self.chain.to_le_bytes());
        out[28..32].copy_from_slice(&self.pad.to_le_bytes());
        out[32..36].copy_from_slice(&self.meta_stored.to_le_bytes());
        out[36..40].copy_from_slice(&self.meta_raw.to_le_bytes());
        out[40..44].copy_from_slice(&self.body.to_le_bytes());
        out[44..48].copy_from_slice(&self.blocks.to_le_bytes());
        out[48..52].copy_from_slice(&self.batches.to_le_bytes());
        out[52] = self.meta_codec.byte();
        out[56..64].copy_from_slice(&place.seq.to_le_bytes());
        let checksum = place.checksum(offset, &[&out[8..], meta]);
        out[4..8].copy_from_slice(&checksum.to_le_bytes());
        (out, checksum)
    }

    /// Whether a group may begin with these bytes.
    pub(crate) fn starts(bytes: &[u8]) -> bool {
        bytes.starts_with(&GROUP_MAGIC)
    }

    /// Reads the fields. Nothing is verified but the shape: that needs the meta.
    pub(crate) fn decode(bytes: &[u8; GROUP_HEADER], place: Place) -> Result<GroupHeader, Damage> {
        if bytes[..4] != GROUP_MAGIC {
            return Err(Damage("no commit group here"));
        }
        if u64_at(bytes, 56) != place.seq || bytes[53..56] != [0, 0, 0] {
            return Err(Damage("commit group of another file or format"));
        }
        Ok(GroupHeader {
            lsn: u64_at(bytes, 8),
            synced: u64_at(bytes, 16),
            chain: u32_at(bytes, 24),
            pad: u32_at(bytes, 28),
            meta_stored: u32_at(bytes, 32),
            meta_raw: u32_at(bytes, 36),
            body: u32_at(bytes, 40),
            blocks: u32_at(bytes, 44),
            batches: u32_at(bytes, 48),
            meta_codec: Codec::from_byte(bytes[52])?,
        })
    }

    /// Verifies the checksum over the header's bytes and the stored meta, and returns it.
    pub(crate) fn verify(bytes: &[u8; GROUP_HEADER], place: Place, offset: u64, meta: &[u8]) -> Result<u32, Damage> {
        let checksum = u32_at(bytes, 4);
        if place.checksum(offset, &[&bytes[8..], meta]) == checksum {
            Ok(checksum)
        } else {
            Err(Damage("commit group fails its checksum"))
        }
    }

    /// Bytes from the start of the group to where the next one may start.
    pub(crate) fn total(&self) -> u64 {
        GROUP_HEADER as u64 + u64::from(self.body) + u64::from(self.meta_stored) + u64::from(self.pad)
    }
}

/// The beginning of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) checksum: u32,
    pub(crate) stored: u32,
    pub(crate) raw: u32,
    pub(crate) entries: u16,
    pub(crate) codec: Codec,
}

impl BlockHeader {
    /// The header's bytes and its checksum, for a block at `offset` of `place`.
    pub(crate) fn encode(
        codec: Codec,
        raw: u32,
        entries: u16,
        stored: &[u8],
        place: Place,
        offset: u64,
    ) -> ([u8; BLOCK_HEADER], u32) {
        let mut out = [0; BLOCK_HEADER];
        out[4..8].copy_from_slice(&(stored.len() as u32).to_le_bytes());
        out[8..12].copy_from_slice(&raw.to_le_bytes());
        out[12..14].copy_from_slice(&entries.to_le_bytes());
        out[14] = codec.byte();
        let checksum = place.checksum(offset, &[&out[4..], stored]);
        out[..4].copy_from_slice(&checksum.to_le_bytes());
        (out, checksum)
    }

    /// Reads the fields; [`BlockHeader::verify`] says whether they and the content are right.
    pub(crate) fn decode(bytes: &[u8; BLOCK_HEADER]) -> Result<BlockHeader, Damage> {
        if bytes[15] != 0 {
            return Err(Damage("block header has an unknown flag"));
        }
        Ok(BlockHeader {
            checksum: u32_at(bytes, 0),
            stored: u32_at(bytes, 4),
            raw: u32_at(bytes, 8),
            entries: u16::from_le_bytes([bytes[12], bytes[13]]),
            codec: Codec::from_byte(bytes[14])?,
        })
    }

    /// Verifies header and stored bytes.
    pub(crate) fn verify(bytes: &[u8; BLOCK_HEADER], place: Place, offset: u64, stored: &[u8]) -> Result<(), Damage> {
        if place.checksum(offset, &[&bytes[4..], stored]) == u32_at(bytes, 0) {
            Ok(())
        } else {
            Err(Damage("block fails its checksum"))
        }
    }
}

/// The last bytes of a sealed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) index_checksum: u32,
    pub(crate) index_offset: u64,
    pub(crate) index_stored: u32,
    pub(crate) index_raw: u32,
    /// Position of the last group, and its checksum.
    pub(crate) last_lsn: u64,
    pub(crate) chain: u32,
    pub(crate) codec: Codec,
}

impl Footer {
    /// The footer's bytes, for a footer at `offset`.
    pub(crate) fn encode(&self, place: Place, offset: u64) -> [u8; FOOTER] {
        let mut out = [0; FOOTER];
        out[..8].copy_from_slice(&SEAL_MAGIC);
        out[12..16].copy_from_slice(&self.index_checksum.to_le_bytes());
        out[16..24].copy_from_slice(&self.index_offset.to_le_bytes());
        out[24..28].copy_from_slice(&self.index_stored.to_le_bytes());
        out[28..32].copy_from_slice(&self.index_raw.to_le_bytes());
        out[32..40].copy_from_slice(&self.last_lsn.to_le_bytes());
        out[40..44].copy_from_slice(&self.chain.to_le_bytes());
        out[44] = self.codec.byte();
        out[48..56].copy_from_slice(&place.seq.to_le_bytes());
        let checksum = place.checksum(offset, &[&out[12..]]);
        out[8..12].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The footer, if these bytes are one that belongs to this place.
    pub(crate) fn decode(bytes: &[u8; FOOTER], place: Place, offset: u64) -> Option<Footer> {
        if bytes[..8] != SEAL_MAGIC || place.checksum(offset, &[&bytes[12..]]) != u32_at(bytes, 8) {
            return None;
        }
        Some(Footer {
            index_checksum: u32_at(bytes, 12),
            index_offset: u64_at(bytes, 16),
            index_stored: u32_at(bytes, 24),
            index_raw: u32_at(bytes, 28),
            last_lsn: u64_at(bytes, 32),
            chain: u32_at(bytes, 40),
            codec: Codec::from_byte(bytes[44]).ok()?,
        })
    }
}

/// Appends a number in 7-bit groups, least significant first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The bytes that [`put_varint`] takes for `value`.
pub(crate) fn varint_len(value: u64) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what [`put_varint`] and its like wrote; never past the end, never panics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Damage> {
        let (first, rest) = self.0.split_first().ok_or(Damage("record ends early"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Damage> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Damage("number is too large"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damage("number is too long"))
    }

    pub(crate) fn take(&mut self, len: u64) -> Result<&'a [u8], Damage> {
        let len = usize::try_from(len).map_err(|_| Damage("length is too large"))?;
        if len > self.0.len() {
            return Err(Damage("record ends early"));
        }
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Damage> {
        let len = self.varint()?;
        self.take(len)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Damage> {
        Ok(u32_at(self.take(4)?, 0))
    }
}

/// A number at a place that the caller knows to be inside.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut out = [0; 4];
    out.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(out)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(out)
}
