//! The type of an OID or a name.

use crate::oid::Oid;
use crate::row::TypeRow;
use crate::rows::{ROWS, UNKNOWN_ROW};
use crate::sql_type::SqlType;

/// One more than the largest OID of a built-in type.
const OID_END: usize = 5_080;

/// The place of each OID's row, plus 1; 0 without one.
static PLACES: [u8; OID_END] = places();

const fn places() -> [u8; OID_END] {
    let mut places = [0; OID_END];
    let mut at = 0;
    while at < ROWS.len() {
        places[ROWS[at].oid.0 as usize] = at as u8 + 1;
        at += 1;
    }
    places
}

/// The row of a built-in type.
pub fn find(oid: Oid) -> Option<&'static TypeRow> {
    let place = *PLACES.get(usize::try_from(oid.0).ok()?)?;
    ROWS.get(usize::from(place).checked_sub(1)?)
}

/// The row of a built-in type by its name in `pg_type`.
pub fn find_name(name: &str) -> Option<&'static TypeRow> {
    ROWS.iter().find(|row| row.name == name)
}

/// All built-in types, by their OIDs.
pub fn all() -> &'static [TypeRow] {
    &ROWS
}

impl SqlType {
    /// The type of a parameter's declared OID; `None` if there is none. OID 0 is `unknown`.
    pub fn from_oid(oid: u32) -> Option<SqlType> {
        match oid {
            0 => Some(SqlType::UNKNOWN),
            oid => find(Oid(oid)).map(|row| SqlType::new(row.oid)),
        }
    }

    /// The row of the type. That of `unknown` for a type that is not built in.
    pub fn row(self) -> &'static TypeRow {
        find(self.oid).unwrap_or(&UNKNOWN_ROW)
    }

    /// The name as `format_type` prints it.
    pub fn name(self) -> String {
        let row = self.row();
        match row.show_modifier {
            Some(show) if self.typmod >= 0 => show(row, self.typmod),
            _ => row.sql_name.to_owned(),
        }
    }

    /// The name without a modifier, as most error messages print it.
    pub fn base_name(self) -> &'static str {
        self.row().sql_name
    }
}
