//! The file header and the footer. They contain the log's identity, the last group of the file before, the older files
//! of the log, and the location of the index of a sealed file.

use super::numbers::{Cursor, put_varint, u32_at, u64_at};
use super::place::{Codec, Identity, MAX_SEQ, Place, align};
use crate::log::error::Damage;
use crate::log::types::GroupId;

/// The format that this program writes, and the newest one that it reads.
pub(crate) const VERSION: u32 = 1;
const FILE_MAGIC: [u8; 8] = *b"CORTALOG";
/// Size of a page, in bytes. A file header fills whole pages.
pub(crate) const PAGE: u64 = 4096;
const FILE_HEADER_FIXED: usize = 72;
/// Flag of a file header: an earlier file used the space, which is not all zeros.
pub(crate) const REUSED: u32 = 1;
/// Flag of a file header: it lists the groups that the file before changes.
const CHANGED: u32 = 2;
/// Maximum number of files of a log. All of them are open while the log is, and no process may have more open.
pub(crate) const MAX_FILES: u64 = 1 << 20;
/// Maximum size of a file header, in bytes: as many ranges as files.
const FILE_HEADER_MAX: u32 = FILE_HEADER_FIXED as u32 + 16 * MAX_FILES as u32 + 4;
/// Maximum size of a header that lists changed groups, in bytes.
const WITH_CHANGED_MAX: usize = 1 << 20;

/// The beginning of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) place: Place,
    /// The file before this one; 0 for the first.
    pub(crate) prev_seq: u64,
    /// The position of the first group in this file.
    pub(crate) first_lsn: u64,
    /// The checksum of the last group of the file before.
    pub(crate) chain: u32,
    /// The offset of the first group.
    pub(crate) data_offset: u32,
    /// [`REUSED`], or 0. The flag for `changed` is added when the header is encoded.
    pub(crate) flags: u32,
    /// The older files that the log consists of, as ranges from first to last number, ascending.
    pub(crate) live: Vec<(u64, u64)>,
    /// The groups that the file before changes, ascending: the loss of that file concerns only these. `None` for the
    /// first file, and if the list would be too long.
    pub(crate) changed: Option<Vec<GroupId>>,
}

/// The reason why a file header does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// It has a newer version.
    Version(u32),
    /// It is damaged.
    Damage(Damage),
    /// It is longer than the given bytes. Contains its length.
    Short(usize),
}

impl FileHeader {
    /// The header's pages, padded with zeros. Sets `data_offset`.
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

    /// Whether it lists at most as many files as a reader accepts.
    pub(crate) fn fits(&self) -> bool {
        self.live.iter().map(|(first, last)| last - first + 1).sum::<u64>() <= MAX_FILES
    }

    /// Length of the header without its padding.
    pub(crate) fn encoded_len(&self) -> usize {
        FILE_HEADER_FIXED + self.live.len() * 16 + self.encode_changed().len() + 4
    }

    /// The number of changed groups, and each as the difference to the one before. Empty if they are not known.
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

    /// Decodes the header at the beginning of a file.
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
        // Bounds the memory of a reader, which records each missing file.
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

const SEAL_MAGIC: [u8; 8] = *b"CORTSEAL";
/// Bytes of the footer of a sealed file.
pub(crate) const FOOTER: usize = 64;

/// The last bytes of a sealed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) index_checksum: u32,
    pub(crate) index_offset: u64,
    pub(crate) index_stored: u32,
    pub(crate) index_raw: u32,
    /// Position and checksum of the last group.
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

    /// Decodes a footer; `None` if these bytes are not a footer of this place.
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
