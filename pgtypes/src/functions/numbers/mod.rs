//! Functions and operators of numbers: arithmetic, bits, mathematics, series, number pictures.
//!
//! # Layers
//!
//! 1. `fault`: the errors that all of them share
//! 2. `angle`: the functions of angles and hyperbolas
//! 3. `bucket`, `decimal`, `float`, `integer`, `lsn`, `picture`, `series`: the rows

mod angle;
mod bucket;
mod decimal;
mod fault;
mod float;
mod integer;
mod lsn;
mod picture;
mod series;

use super::row::ProcRow;
pub(super) use fault::overflow as float_overflow;

/// Arithmetic and bits of `smallint`, `integer` and `bigint`.
pub(super) static INTEGERS: &[ProcRow] = integer::ROWS;
/// Arithmetic and mathematics of `real` and `double precision`.
pub(super) static FLOATS: &[ProcRow] = float::ROWS;
/// Arithmetic and mathematics of `numeric`.
pub(super) static DECIMALS: &[ProcRow] = decimal::ROWS;
/// Histograms.
pub(super) static BUCKETS: &[ProcRow] = bucket::ROWS;
/// Texts of numbers.
pub(super) static PICTURES: &[ProcRow] = picture::ROWS;
/// Sets of numbers.
pub(super) static SERIES: &[ProcRow] = series::ROWS;
/// Distances in the log.
pub(super) static POSITIONS: &[ProcRow] = lsn::ROWS;
