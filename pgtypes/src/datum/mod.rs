//! Values, and their sort order: PostgreSQL's under the C collation.
//!
//! There are fewer kinds of values than types: a value of a type without a kind of its own has that of another one
//! ([`Repr`]), and only its type knows how to print it. Values of one kind compare in one way, whatever their types.
//!
//! # Layers
//!
//! 1. `value`: the values
//! 2. `compare`: their order and their hashes
//! 3. `array`: what is made of arrays

mod array;
mod compare;
mod value;

pub use array::{ArrayOfArrays, MAX_DIMENSIONS, MAX_ELEMENTS, SliceBounds};
pub(crate) use array::{MAX_BYTES, too_many_bytes, too_many_dimensions, too_many_elements};
pub use compare::{GroupKey, compare, compare_floats, compare_same, unpadded};
pub use value::{Array, Datum, DatumRef, Dimension, Record, Repr};
