//! The headers of commit groups and of blocks. A group's checksum also covers the meta, which lists the checksums of
//! its blocks: so one checksum covers the whole group. A block can be verified alone.

use super::numbers::{u32_at, u64_at};
use super::place::{Codec, Place};
use crate::log::error::Damage;

const GROUP_MAGIC: [u8; 4] = *b"CGRP";
/// Bytes of a group header.
pub(crate) const GROUP_HEADER: usize = 64;

/// The beginning of a commit group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    /// Position of the group.
    pub(crate) lsn: u64,
    /// The position up to which everything was known to be synced when the group was encoded.
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
    /// Number of batches in it; 0 in the mark of a clean stop.
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

    /// Whether these bytes start with the magic number of a group.
    pub(crate) fn starts(bytes: &[u8]) -> bool {
        bytes.starts_with(&GROUP_MAGIC)
    }

    /// Decodes the fields. Verifies only the shape; the checksum needs the meta.
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

    /// Decodes the fields. [`BlockHeader::verify`] checks them and the content.
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

    /// Verifies the checksum of header and stored bytes.
    pub(crate) fn verify(bytes: &[u8; BLOCK_HEADER], place: Place, offset: u64, stored: &[u8]) -> Result<(), Damage> {
        if place.checksum(offset, &[&bytes[4..], stored]) == u32_at(bytes, 0) {
            Ok(())
        } else {
            Err(Damage("block fails its checksum"))
        }
    }
}
