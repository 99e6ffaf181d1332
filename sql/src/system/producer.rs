//! What a topic says about a relation: how its rows are computed.
//!
//! A producer gives the values of some columns; of the others it gives the same in all rows, or NULL.

use super::env::{Rows, SystemEnv};

/// How the rows of a relation are computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Producer {
    /// The relation; with its schema if that is not `pg_catalog`.
    pub(super) relation: &'static str,
    /// Columns with the same value in all rows, as text.
    pub(super) constants: &'static [(&'static str, &'static str)],
    /// The columns of the rows that `rows` gives.
    pub(super) columns: &'static [&'static str],
    pub(super) rows: fn(&SystemEnv<'_>) -> Rows,
}
