//! What an aggregate does.

use super::args::Args;
use crate::datum::Datum;
use crate::error::ValueError;

/// The state of an aggregate over one group of rows.
pub trait Aggregate: Send + Sync {
    /// Takes the arguments of a row. A strict aggregate gets no NULL.
    ///
    /// # Errors
    /// Those of the function: a sum that overflows.
    fn add(&mut self, args: &Args<'_>) -> Result<(), ValueError>;

    /// The result. `direct` are the direct arguments of an ordered-set aggregate; of others there are none.
    ///
    /// # Errors
    /// Those of the function.
    fn finish(&mut self, direct: &Args<'_>) -> Result<Datum, ValueError>;

    /// Whether `finish` leaves the state as it is, so that it can take more rows.
    fn is_lasting(&self) -> bool {
        false
    }

    /// The bytes that the state occupies beside its own size, for memory budgets. Costs little.
    fn memory(&self) -> usize {
        0
    }
}
