//! Compression of blocks and metas: LZ4, or zstd if space matters more than time.

use super::place::Codec;
use crate::log::error::{Damage, LogError, Result};

/// Maximum size of a batch, in bytes: lengths in the format are 32 bits wide.
pub(crate) const MAX_BATCH_BYTES: usize = 256 << 20;
/// Maximum size of a block or meta before compression, in bytes: a batch, and the lengths of its entries.
const MAX_RAW_BYTES: usize = 2 * MAX_BATCH_BYTES;

/// The compression of blocks and metas. Data that does not shrink by 5 % is stored raw. Any setting reads data of any
/// other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    Off,
    /// LZ4: about 500 MB/s and more on one core.
    #[default]
    Lz4,
    /// Zstandard at this level, 1 to 19: smaller and several times slower.
    Zstd(i32),
}

impl Compression {
    /// Whether the level is in range.
    pub(crate) fn is_valid(self) -> bool {
        !matches!(self, Compression::Zstd(level) if !(1..=19).contains(&level))
    }
}

/// Compresses data, and keeps its buffers between calls.
pub(crate) struct Compressor {
    compression: Compression,
    /// Shorter inputs are stored raw.
    from: usize,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    /// Reused buffers. Allocating large ones anew costs as much as the compression.
    out: Vec<u8>,
    buffer: Vec<u8>,
}

/// Maximum size of a kept buffer, in bytes.
const MAX_KEPT_BUFFER: usize = 2 << 20;

impl Compressor {
    /// A compressor for a log with these settings.
    pub(crate) fn new(compression: Compression, from: usize) -> Result<Compressor> {
        let zstd = match compression {
            Compression::Zstd(level) => Some(zstd::bulk::Compressor::new(level).map_err(LogError::from)?),
            Compression::Off | Compression::Lz4 => None,
        };
        Ok(Compressor { compression, from, zstd, out: Vec::new(), buffer: Vec::new() })
    }

    /// The compressed form of `raw` if it is at least 5 % smaller; `None` means stored raw.
    pub(crate) fn compress(&mut self, raw: &[u8]) -> Option<(Codec, Vec<u8>)> {
        // A reader would reject a longer one: see `decompress`.
        if raw.len() < self.from || raw.len() > MAX_RAW_BYTES || self.compression == Compression::Off {
            return None;
        }
        match &mut self.zstd {
            // Data that fails to compress is stored raw.
            Some(zstd) => {
                zstd.compress(raw).ok().filter(|packed| pays(raw, packed)).map(|packed| (Codec::Zstd, packed))
            }
            None => {
                let packed = compress_lz4_into(raw, &mut self.out).map(|packed| (Codec::Lz4, packed.to_vec()));
                self.out.truncate(MAX_KEPT_BUFFER);
                self.out.shrink_to(MAX_KEPT_BUFFER);
                packed
            }
        }
    }

    /// An empty buffer for large data. Return it with [`Compressor::return_buffer`].
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// Takes the buffer back.
    pub(crate) fn return_buffer(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        buffer.shrink_to(MAX_KEPT_BUFFER);
        self.buffer = buffer;
    }
}

/// The LZ4 form of `raw` if it is at least 5 % smaller.
pub(crate) fn compress_lz4(raw: &[u8]) -> Option<Vec<u8>> {
    compress_lz4_into(raw, &mut Vec::new()).map(<[u8]>::to_vec)
}

/// As [`compress_lz4`], in a reused buffer.
fn compress_lz4_into<'o>(raw: &[u8], out: &'o mut Vec<u8>) -> Option<&'o [u8]> {
    // A reader would reject a longer one: see `decompress`.
    if raw.len() > MAX_RAW_BYTES {
        return None;
    }
    let max_len = max_paying_len(raw);
    out.resize(out.len().max(max_len), 0);
    // An output that does not fit does not pay.
    let len = lz4::block::compress_to_buffer(raw, None, false, &mut out[..max_len]).ok()?;
    Some(&out[..len]).filter(|packed| pays(raw, packed))
}

/// The longest compressed form that pays.
fn max_paying_len(raw: &[u8]) -> usize {
    raw.len() - raw.len() / 20
}

fn pays(raw: &[u8], packed: &[u8]) -> bool {
    packed.len() <= max_paying_len(raw) && packed.len() < raw.len()
}

/// Decompresses the output of a [`Compressor`]. `raw_len` is the length in the header.
pub(crate) fn decompress(codec: Codec, stored: &[u8], raw_len: usize) -> std::result::Result<Vec<u8>, Damage> {
    let whole = |raw: Option<Vec<u8>>| raw.filter(|raw| raw.len() == raw_len).ok_or(Damage("does not decompress"));
    match codec {
        Codec::Raw if stored.len() == raw_len => Ok(stored.to_vec()),
        Codec::Raw => Err(Damage("raw length differs from the stored one")),
        // LZ4 cannot shrink to less than 1/255. A larger length is damage: do not allocate it.
        Codec::Lz4 if raw_len / 255 > stored.len() => Err(Damage("impossible raw length")),
        _ if raw_len > MAX_RAW_BYTES => Err(Damage("impossible raw length")),
        Codec::Lz4 => whole(lz4::block::decompress(stored, Some(raw_len as i32)).ok()),
        Codec::Zstd => {
            // The frame contains its length as well. Memory is allocated only if both are equal.
            let frame_len = zstd::zstd_safe::get_frame_content_size(stored).ok().flatten();
            if frame_len != Some(raw_len as u64) {
                return Err(Damage("raw length differs from that of the frame"));
            }
            whole(zstd::bulk::decompress(stored, raw_len).ok())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `noise` bytes that do not compress, then zeros up to `len`.
    fn mixed(noise: usize, len: usize) -> Vec<u8> {
        let mut state = 88_172_645_463_325_252u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        let mut raw: Vec<u8> = (0..noise).map(|_| next()).collect();
        raw.resize(len, 0);
        raw
    }

    #[test]
    fn five_percent_pays_and_a_byte_less_does_not() {
        let raw = [0; 1000];
        assert!(!pays(&raw, &raw[..951]), "4.9 %");
        assert!(pays(&raw, &raw[..950]), "5 %");
        assert!(pays(&raw, &raw[..949]), "5.1 %");
        assert!(!pays(&[], &[]) && !pays(&[0; 10], &[0; 10]), "nothing saved");
        assert!(pays(&[0; 10], &[0; 9]));
    }

    /// The 5 % rule decides with every codec, on either side of the boundary.
    #[test]
    fn input_that_does_not_pay_is_stored_raw() {
        const LEN: usize = 10_000;
        for compression in [Compression::Lz4, Compression::Zstd(3)] {
            let mut compressor = Compressor::new(compression, 0).unwrap();
            let (mut shrunk, mut raw) = (0, 0);
            for noise in (9300..9700).step_by(5) {
                let bytes = mixed(noise, LEN);
                let len = match compression {
                    Compression::Zstd(level) => zstd::bulk::compress(&bytes, level).unwrap().len(),
                    _ => lz4::block::compress(&bytes, None, false).unwrap().len(),
                };
                let packed = compressor.compress(&bytes);
                assert_eq!(packed.is_some(), len <= 9500, "{compression:?}, {len} bytes of {LEN}");
                if let Some((codec, packed)) = packed {
                    assert_eq!(decompress(codec, &packed, LEN).unwrap(), bytes);
                    shrunk += 1;
                } else {
                    raw += 1;
                }
            }
            assert!(shrunk > 10 && raw > 10, "{shrunk} and {raw}");
        }
    }

    #[test]
    fn short_input_is_stored_raw() {
        for compression in [Compression::Lz4, Compression::Zstd(3)] {
            let mut compressor = Compressor::new(compression, 256).unwrap();
            assert!(compressor.compress(&[0; 255]).is_none());
            assert!(compressor.compress(&[0; 256]).is_some());
        }
    }

    /// `decompress` rejects larger lengths, so longer inputs are stored raw, however well they compress.
    #[test]
    fn too_long_input_is_stored_raw() {
        for compression in [Compression::Lz4, Compression::Zstd(1)] {
            let mut compressor = Compressor::new(compression, 0).unwrap();
            assert!(compressor.compress(&vec![0; MAX_RAW_BYTES + 1]).is_none(), "{compression:?}");
            let (codec, packed) = compressor.compress(&vec![0; 1 << 20]).unwrap();
            assert_eq!(decompress(codec, &packed, 1 << 20).unwrap().len(), 1 << 20);
        }
    }
}
