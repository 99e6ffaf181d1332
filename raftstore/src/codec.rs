//! Decoding of the fixed-width records of this crate, without panics.

/// Malformed bytes of a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what} at byte {offset}")]
pub struct Malformed {
    /// The kind of record.
    pub what: &'static str,
    /// Offset of the byte at which decoding stopped.
    pub offset: usize,
}

/// A cursor over the bytes of one record. Integers are little-endian.
pub(crate) struct Fields<'a> {
    what: &'static str,
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Fields<'a> {
        Fields { what, bytes, offset: 0 }
    }

    pub(crate) fn malformed(&self) -> Malformed {
        Malformed { what: self.what, offset: self.offset }
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let end = self.offset.checked_add(len).ok_or_else(|| self.malformed())?;
        let taken = self.bytes.get(self.offset..end).ok_or_else(|| self.malformed())?;
        self.offset = end;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        let [byte] = self.array::<1>()?;
        Ok(byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A length-prefixed byte string.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()?;
        self.take(usize::try_from(len).map_err(|_| self.malformed())?)
    }

    /// Reads a byte that must have this value, such as a version or a kind.
    pub(crate) fn exactly(&mut self, value: u8) -> Result<(), Malformed> {
        let malformed = self.malformed();
        if self.u8()? == value { Ok(()) } else { Err(malformed) }
    }

    /// Reads all remaining bytes.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        self.offset = self.bytes.len();
        rest
    }

    /// Fails if bytes remain.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.offset == self.bytes.len() { Ok(()) } else { Err(self.malformed()) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let malformed = self.malformed();
        self.take(N)?.try_into().map_err(|_| malformed)
    }
}

/// Appends a length-prefixed byte string. Keys are far below 4 GiB. For a longer one the length saturates, and decoding
/// fails.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}
