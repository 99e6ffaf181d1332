//! The table of operators: `pg_operator`.

use crate::oid::Oid;
use crate::sql_type::SqlType;

/// An operator, as a row of `pg_operator`.
#[derive(Clone, Copy, Debug)]
pub struct OperatorRow {
    /// Its OID, that of PostgreSQL.
    pub oid: Oid,
    /// Its name.
    pub name: &'static str,
    /// The type of its left operand; `None` of a prefix operator.
    pub left: Option<SqlType>,
    /// The type of its right operand.
    pub right: SqlType,
    /// The type of its result.
    pub result: SqlType,
    /// The function that computes it.
    pub function: Oid,
    /// The operator with the operands exchanged; [`Oid::NONE`] without one.
    pub commutator: Oid,
    /// The operator with the opposite result; [`Oid::NONE`] without one.
    pub negator: Oid,
}
