//! Reading the fixed-width records of this crate without panics.

/// Bytes that are not what they should be: which record, and at which byte reading stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what} at byte {offset}")]
pub struct Malformed {
    /// Which record.
    pub what: &'static str,
    /// Where reading stopped.
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

    /// A byte that must have this value: versions and kinds.
    pub(crate) fn exactly(&mut self, value: u8) -> Result<(), Malformed> {
        let malformed = self.malformed();
        if self.u8()? == value { Ok(()) } else { Err(malformed) }
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.offset..).unwrap_or_default();
        self.offset = self.bytes.len();
        rest
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.offset == self.bytes.len() { Ok(()) } else { Err(self.malformed()) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let malformed = self.malformed();
        self.take(N)?.try_into().map_err(|_| malformed)
    }
}

/// Appends a length-prefixed byte string. Keys are far below 4 GiB; a longer one is cut, and its reader refuses it.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}
