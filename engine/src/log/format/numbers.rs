//! Encoding of numbers: fixed width little endian, or groups of 7 bits. Decoding never panics, for any bytes.

use crate::log::error::Damage;

/// Appends a number in 7-bit groups, least significant first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The size of `value` as [`put_varint`] encodes it, in bytes.
pub(crate) fn varint_len(value: u64) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Decodes the output of [`put_varint`] and [`put_bytes`]. Never reads past the end.
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

/// The number at `at`, which must be in bounds.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut out = [0; 4];
    out.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(out)
}

/// The same for 64 bits.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(out)
}
