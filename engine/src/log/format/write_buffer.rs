//! The bytes of a commit group before they are written. Long parts are borrowed, short ones are copied together.

use std::io::IoSlice;

/// Minimum size of a borrowed part, in bytes. A separate slice for a shorter one costs the kernel more than a copy.
const COPY_BELOW: usize = 4096;

/// Bytes to be written with one vectored write.
#[derive(Debug, Default)]
pub(crate) struct WriteBuffer<'a> {
    own: Vec<u8>,
    /// Borrowed parts, each with the position in `own` that it precedes.
    others: Vec<(usize, &'a [u8])>,
    len: usize,
}

impl<'a> WriteBuffer<'a> {
    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a copy.
    pub(crate) fn copy(&mut self, bytes: &[u8]) {
        self.own.extend_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Borrows bytes, or copies them if they are few.
    pub(crate) fn lend(&mut self, bytes: &'a [u8]) {
        if bytes.len() < COPY_BELOW {
            return self.copy(bytes);
        }
        self.others.push((self.own.len(), bytes));
        self.len += bytes.len();
    }

    /// Adds zeros.
    pub(crate) fn zeros(&mut self, count: usize) {
        self.own.resize(self.own.len() + count, 0);
        self.len += count;
    }

    /// Overwrites the first bytes, which must be copies or zeros.
    pub(crate) fn set_head(&mut self, head: &[u8]) {
        self.own[..head.len()].copy_from_slice(head);
    }

    /// A copy of all bytes.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        self.slices().iter().flat_map(|slice| slice.iter().copied()).collect()
    }

    /// The parts in order.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut out = Vec::with_capacity(2 * self.others.len() + 1);
        let mut from = 0;
        for (at, other) in &self.others {
            if *at > from {
                out.push(IoSlice::new(&self.own[from..*at]));
            }
            out.push(IoSlice::new(other));
            from = *at;
        }
        if from < self.own.len() {
            out.push(IoSlice::new(&self.own[from..]));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_order_and_long_ones_are_borrowed() {
        let long = vec![7; COPY_BELOW];
        let mut pieces = WriteBuffer::default();
        pieces.zeros(2);
        pieces.lend(&long);
        pieces.lend(&long);
        pieces.lend(&[1, 2]);
        pieces.set_head(&[9]);
        let slices = pieces.slices();
        assert_eq!(slices.iter().map(|slice| slice.len()).collect::<Vec<_>>(), [2, COPY_BELOW, COPY_BELOW, 2]);
        assert!(std::ptr::eq(slices[1].as_ptr(), long.as_ptr()));
        let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!((all.len(), &all[..3], &all[all.len() - 3..]), (pieces.len(), &[9, 0, 7][..], &[7, 1, 2][..]));
    }
}
