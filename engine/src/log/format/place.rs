//! The location of bytes: the log's identity, the file's number and name, the alignment; and the codec.

use crate::log::error::Damage;

/// Alignment of groups and blocks, in bytes.
pub(crate) const UNIT: u64 = 8;
/// Maximum number of a file: the index keeps it in 35 bits. At 64 MiB per file that is 2 EiB.
pub(super) const MAX_SEQ: u64 = (1 << 35) - 1;

/// Identifies a log. Drawn when the log is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(pub(crate) u128);

/// Identifies a file of a log. The seed of every checksum contains it and the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) identity: Identity,
    pub(crate) seq: u64,
}

impl Place {
    /// The checksum of `parts`, one after another, at `offset` of this file.
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

/// The encoding of stored bytes.
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

    pub(super) fn from_byte(byte: u8) -> Result<Codec, Damage> {
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

/// The number of a log file by its name; `None` for other names.
pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
    let seq = name.strip_suffix(".log")?.parse().ok()?;
    ((1..=MAX_SEQ).contains(&seq) && file_name(seq) == name).then_some(seq)
}

/// `at`, or the next multiple of `unit` after it.
pub(crate) fn align(at: u64, unit: u64) -> u64 {
    at.div_ceil(unit) * unit
}
