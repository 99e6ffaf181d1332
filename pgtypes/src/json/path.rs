//! Elements of paths, as indexes of arrays.

use crate::letters::is_space;

/// A path: the elements of a `text[]`, of which some may be NULL.
pub type Path<'a> = [Option<&'a str>];

/// A path element as an index: C's `strtol` over the whole element, in the range of `integer`.
pub(super) fn index(element: &str) -> Option<i32> {
    let digits = element.trim_start_matches(is_space);
    // `parse` takes a sign as `strtol` does.
    digits.parse().ok()
}

/// The position of an index in an array of this length. A negative index counts from the end.
pub(super) fn position(index: i32, length: usize) -> Option<usize> {
    let magnitude = usize::try_from(index.unsigned_abs()).ok()?;
    let position = if index < 0 { length.checked_sub(magnitude)? } else { magnitude };
    (position < length).then_some(position)
}
