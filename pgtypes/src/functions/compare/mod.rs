//! Comparisons: `=`, `<>`, `<`, `<=`, `>`, `>=` of all types, and the functions of the same order.
//!
//! Values of one kind compare in one way, whatever their types, so most rows share the functions of `order`. Those of
//! types whose order is not that of the kind are in `special`.
//!
//! # Layers
//!
//! 1. `order`: the order of values of one kind
//! 2. `special`: orders that depend on the types
//! 3. `numbers`, `texts`, `times`, `values`: the rows

mod numbers;
mod order;
mod special;
mod texts;
mod times;
mod values;

use super::row::ProcRow;
pub(super) use special::{check_equality, check_order, lsn, order_of};
pub use special::{check_fields, has_equality, has_order};

/// Numbers, and what is stored as one.
pub(super) static NUMBERS: &[ProcRow] = numbers::ROWS;
/// Texts and bytes.
pub(super) static TEXTS: &[ProcRow] = texts::ROWS;
/// Dates, times and intervals.
pub(super) static TIMES: &[ProcRow] = times::ROWS;
/// All other types.
pub(super) static VALUES: &[ProcRow] = values::ROWS;

#[cfg(test)]
mod tests;
