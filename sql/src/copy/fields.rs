//! A row of fields as bytes: one buffer for all of them, because most are short.

use std::ops::Range;

/// The fields of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    bytes: Vec<u8>,
    ranges: Vec<Option<Range<usize>>>,
}

impl Fields {
    /// Removes all fields.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ranges.clear();
    }

    /// The buffer, to append the bytes of the next field.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends a field that began at `start` of the buffer.
    pub(super) fn end(&mut self, start: usize) {
        self.ranges.push(Some(start..self.bytes.len()));
    }

    /// Adds NULL.
    pub(super) fn null(&mut self) {
        self.ranges.push(None);
    }

    /// Makes a field NULL.
    pub(super) fn set_null(&mut self, at: usize) {
        if let Some(field) = self.ranges.get_mut(at) {
            *field = None;
        }
    }

    /// Gives a field that is NULL a value.
    pub(super) fn fill(&mut self, at: usize, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len();
        if let Some(field) = self.ranges.get_mut(at) {
            *field = Some(start..end);
        }
    }

    /// The number of fields.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// A field; `None` for NULL.
    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        let range = self.ranges.get(at)?.clone()?;
        self.bytes.get(range)
    }

    /// The fields in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        (0..self.len()).map(|at| self.get(at))
    }
}
