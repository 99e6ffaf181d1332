//! The OIDs of PostgreSQL's types, by their names in `pg_type`.

use std::fmt;

/// Identifies an object of the catalog: a type, a function, an operator, a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(pub u32);

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Oid {
    /// No object.
    pub const NONE: Oid = Oid(0);
    /// The first OID of an object that a user has made.
    pub const FIRST_USER: Oid = Oid(16_384);

    /// Whether it is that of a built-in object.
    pub fn is_builtin(self) -> bool {
        self < Oid::FIRST_USER
    }
}
