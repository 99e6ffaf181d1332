//! `numeric`: exact decimal numbers with PostgreSQL's display scale, NaN and the infinities.
//!
//! A finite [`Numeric`] is an integer, the unscaled value, over a power of ten, the display scale. Trailing zeros are
//! kept: `1.0` and `1.00` are equal, but print differently. A value has at most 131072 digits before the decimal point
//! and 16383 after it. Values whose unscaled value fits in 64 bits are stored without an allocation, and the common
//! operations on them neither allocate nor use big integers.
//!
//! Results, result scales, SQLSTATEs and messages are those of PostgreSQL 15.
//!
//! # Layers
//!
//! 1. `decimal`: integer arithmetic in powers of ten
//! 2. `value`: the value, its order and its hash
//! 3. `typmod`: what bounds a value
//! 4. `arithmetic`, `convert`, `key`, `rounding`, `stored`, `text`, `wire`: functions of SQL, casts, forms of a value
//! 5. `bucket`, `format`, `integers`, `series`: more functions, `to_char` and `to_number`, the real functions
//! 6. `logarithm`: roots, exponentials and logarithms
//! 7. `aggregate`, `power`: the states of the aggregates, powers

mod aggregate;
mod arithmetic;
mod bucket;
mod convert;
mod decimal;
pub mod format;
mod integers;
mod key;
mod logarithm;
mod power;
mod rounding;
mod series;
mod stored;
mod text;
mod typmod;
mod value;
mod wire;

pub use aggregate::{Population, SumState, VarianceState};
pub use typmod::Typmod;
pub use value::{Class, MAX_INTEGER_DIGITS, MAX_PRECISION, MAX_SCALE, Numeric};

#[cfg(test)]
mod golden_tests;

#[cfg(test)]
mod tests;
