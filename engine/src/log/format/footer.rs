//! The last bytes of a sealed file: where its index stands, and which is its last group.

use super::numbers::{u32_at, u64_at};
use super::{Codec, Place};

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
