//! The type of an OID or a name.
//!
//! The OIDs of the types that users make come in pairs: an even one for the type, the next one for its array type. So
//! the kind of a type is known without the catalog; its name and labels are not.

use std::sync::LazyLock;

use crate::oid::Oid;
use crate::row::{Category, TypeRow};
use crate::rows::{ENUM_ARRAY_ROW, ENUM_ROW, ROWS, UNKNOWN_ROW, array_of};
use crate::sql_type::SqlType;

/// One more than the largest OID of a built-in type.
const OID_END: usize = 5_081;
/// A place beyond all rows: the type is an array, and its element's place is the rest.
const ARRAY: u8 = 0x80;

/// The place of each OID's row, plus 1; 0 without one.
static PLACES: [u8; OID_END] = places();
/// The rows of the array types, each at the place of its element's.
static ARRAYS: LazyLock<Vec<TypeRow>> = LazyLock::new(|| ROWS.iter().map(array_of).collect());

const fn places() -> [u8; OID_END] {
    let mut places = [0; OID_END];
    let mut at = 0;
    while at < ROWS.len() {
        places[ROWS[at].oid.0 as usize] = at as u8 + 1;
        if ROWS[at].array.0 != 0 {
            places[ROWS[at].array.0 as usize] = (at as u8 + 1) | ARRAY;
        }
        at += 1;
    }
    places
}

/// The row of a built-in type.
pub fn find(oid: Oid) -> Option<&'static TypeRow> {
    if oid == UNKNOWN_ROW.oid {
        return Some(&UNKNOWN_ROW);
    }
    let place = *PLACES.get(usize::try_from(oid.0).ok()?)?;
    let at = usize::from(place & !ARRAY).checked_sub(1)?;
    if place & ARRAY == 0 { ROWS.get(at) } else { ARRAYS.get(at) }
}

/// The row of a built-in type by its name in `pg_type`.
pub fn find_name(name: &str) -> Option<&'static TypeRow> {
    match name.strip_prefix('_') {
        Some(element) => find(find_name(element)?.array),
        None => all().find(|row| row.name == name),
    }
}

/// All built-in types but the arrays.
pub fn all() -> impl Iterator<Item = &'static TypeRow> {
    ROWS.iter().chain(std::iter::once(&UNKNOWN_ROW))
}

impl SqlType {
    /// The type of a parameter's declared OID; `None` if there is none. OID 0 is `unknown`.
    pub fn from_oid(oid: u32) -> Option<SqlType> {
        match oid {
            0 => Some(SqlType::UNKNOWN),
            oid => find(Oid(oid)).map(|row| SqlType::new(row.oid)),
        }
    }

    /// The row of the type. That of `unknown` if there is no such type.
    pub fn row(self) -> &'static TypeRow {
        match find(self.oid) {
            Some(row) => row,
            None if self.oid.is_builtin() => &UNKNOWN_ROW,
            None if self.oid.0.is_multiple_of(2) => &ENUM_ROW,
            None => &ENUM_ARRAY_ROW,
        }
    }

    /// The type of the elements of an array; `None` for other types.
    pub fn element(self) -> Option<SqlType> {
        let row = self.row();
        match () {
            () if row.element != Oid::NONE => Some(SqlType { oid: row.element, typmod: self.typmod }),
            () if std::ptr::eq(row, &ENUM_ARRAY_ROW) => Some(SqlType::new(Oid(self.oid.0 - 1))),
            () => None,
        }
    }

    /// The type of the elements of an array; any other type itself.
    pub fn scalar(self) -> SqlType {
        self.element().unwrap_or(self)
    }

    /// Whether a column can have the type: it is no pseudo-type, and no array of one.
    pub fn is_storable(self) -> bool {
        !matches!(self.scalar().row().category, Category::Pseudo | Category::Unknown)
    }

    /// The type of arrays with elements of this type; `None` if there is none.
    pub fn array(self) -> Option<SqlType> {
        let row = self.row();
        match () {
            () if row.array != Oid::NONE => Some(SqlType { oid: row.array, typmod: self.typmod }),
            () if std::ptr::eq(row, &ENUM_ROW) => Some(SqlType::new(Oid(self.oid.0 + 1))),
            () => None,
        }
    }

    /// Whether it is a true array: not a vector of the catalog.
    pub fn is_array(self) -> bool {
        self.element().is_some_and(|element| element.array() == Some(self))
    }

    /// Whether it is an enum.
    pub fn is_enum(self) -> bool {
        std::ptr::eq(self.row(), &ENUM_ROW)
    }

    /// The name as `format_type` prints it.
    pub fn name(self) -> String {
        let row = self.row();
        match row.modifier {
            Some(modifier) if self.typmod >= 0 => (modifier.show)(row, self.typmod),
            _ => row.sql_name.to_owned(),
        }
    }

    /// The name without a modifier, as most error messages print it.
    pub fn base_name(self) -> &'static str {
        self.row().sql_name
    }
}
