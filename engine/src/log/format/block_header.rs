//! The beginning of a block of entries, which can be read and verified alone.

use super::super::error::Damage;
use super::numbers::u32_at;
use super::{Codec, Place};

/// Bytes of a block header.
pub(crate) const BLOCK_HEADER: usize = 16;

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
