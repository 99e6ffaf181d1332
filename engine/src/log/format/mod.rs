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
//!
//! Here is what all of them share; [`file_header`], [`group_header`], [`block_header`] and [`footer`] are one structure each, of
//! [`numbers`].

mod block_header;
mod file_header;
mod footer;
mod group_header;
mod numbers;

use super::error::Damage;

pub(crate) use self::block_header::{BLOCK_HEADER, BlockHeader};
pub(crate) use self::file_header::{FileHeader, HeaderError, MAX_FILES, PAGE, REUSED, VERSION};
pub(crate) use self::footer::{FOOTER, Footer};
pub(crate) use self::group_header::{GROUP_HEADER, GroupHeader};
pub(crate) use self::numbers::{Cursor, put_bytes, put_varint, varint_len};

/// Groups and blocks start at multiples of this.
pub(crate) const UNIT: u64 = 8;
/// No file has a higher number: the index keeps it in 35 bits. At 64 MiB each these are 2 zebibytes.
const MAX_SEQ: u64 = (1 << 35) - 1;

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
