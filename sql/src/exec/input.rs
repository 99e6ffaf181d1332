//! What a node reads: another one.

use futures::future::BoxFuture;

use super::context::ExecContext;
use super::rows::Row;
use crate::error::SqlError;
use pgtypes::Datum;

/// Rows that are taken from an input at a time.
pub(super) const BATCH: usize = 256;
/// The work for a row of a node, in units of [`crate::coop::Turn`].
pub(super) const ROW_UNITS: usize = 4;

/// An input of a node.
pub(super) trait Input: Send {
    /// The next rows, at most `most`, and none only at the end. `frame`: the statement's parameters, then the values
    /// of the row around it.
    fn next<'f>(
        &'f mut self,
        ctx: &'f mut ExecContext<'_>,
        frame: &'f [Datum],
        most: usize,
    ) -> BoxFuture<'f, Result<Vec<Row>, SqlError>>;

    /// Begins again, for another frame.
    fn restart(&mut self);
}
