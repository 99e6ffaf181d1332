//! A foreign key at the side of the row that refers: the key of the store that must exist, and the error if there is
//! none.

use kv::Key;
use pgtypes::cast::Cast;
use pgtypes::datum::compare;
use pgtypes::{Datum, IoEnv, SqlType, wire};

use super::constraints::of_constraint;
use super::rows::{Row, empty_row};
use crate::codec::index::entry;
use crate::codec::key;
use crate::error::{SqlError, SqlState};
use crate::table::{ForeignKey, KeyOf, Table, quote_identifier};

/// A foreign key with its two tables.
#[derive(Clone, Copy)]
pub(super) struct ForeignKeyOf<'t> {
    pub(super) key: &'t ForeignKey,
    pub(super) child: &'t Table,
    pub(super) parent: &'t Table,
}

impl ForeignKeyOf<'_> {
    /// The positions of the columns that it refers to.
    pub(super) fn parent_columns(&self) -> Vec<usize> {
        self.key.parent_columns.iter().filter_map(|id| self.parent.position_of(*id)).collect()
    }

    /// The key that makes the columns unique.
    pub(super) fn key_of(&self) -> Result<KeyOf, SqlError> {
        let found = self.parent.key_of(&self.parent_columns());
        found.ok_or_else(|| SqlError::internal("a foreign key refers to no key"))
    }

    /// The key of the store that exists if a row has these values: that of the row, or of its entry in an index. `None`
    /// if no row can have them.
    pub(super) fn store_key(&self, values: &[Datum], io: &IoEnv<'_>) -> Result<Option<Key>, SqlError> {
        let mut row = empty_row(self.parent);
        let places = self.parent_columns();
        for ((own, there), value) in self.key.columns.iter().zip(&places).zip(values) {
            let (Some(own), Some(column)) = (self.child.columns.get(*own), self.parent.columns.get(*there)) else {
                return Err(SqlError::internal("a column of a foreign key is missing"));
            };
            let Some(value) = converted(value, own.ty, column.ty, io) else { return Ok(None) };
            row[*there] = value;
        }
        self.key_of_row(&row).map(Some)
    }

    /// The same of a row of the parent.
    pub(super) fn key_of_row(&self, row: &Row) -> Result<Key, SqlError> {
        match self.key_of()? {
            KeyOf::Primary => key::row_key(self.parent, row).ok_or_else(|| SqlError::internal("a key is not complete")),
            KeyOf::Index(at) => {
                let index = self.parent.indexes.get(at).ok_or_else(|| SqlError::internal("an index is missing"))?;
                let columns = index.plain_columns().unwrap_or_default();
                let values: Vec<Datum> = columns.iter().filter_map(|at| row.get(*at).cloned()).collect();
                // The key of a unique entry does not tell the row.
                Ok(entry(self.parent, index, &values, &Key::new(Vec::new()), row).key)
            }
        }
    }

    /// 23503 for values that do not exist.
    pub(super) fn missing(&self, values: &[Datum], io: &IoEnv<'_>) -> SqlError {
        let shown = described(self.child, &self.key.columns, values, io);
        let detail = format!("Key {shown} is not present in table \"{}\".", self.parent.name);
        violated_by_child(self.child, self.key, &detail, io)
    }
}

/// 23503 for a row that refers.
fn violated_by_child(child: &Table, key: &ForeignKey, detail: &str, io: &IoEnv<'_>) -> SqlError {
    let message =
        format!("insert or update on table \"{}\" violates foreign key constraint \"{}\"", child.name, key.name);
    of_constraint(SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message).detail(detail), (child, &key.name), io)
}

/// 23503 for a row of `parent` with these values, which others refer to.
pub(super) fn still_referenced(
    (parent, columns): (&Table, &[usize]),
    (child, key): (&Table, &ForeignKey),
    values: &[Datum],
    io: &IoEnv<'_>,
) -> SqlError {
    let message = format!(
        "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
        parent.name, key.name, child.name
    );
    let shown = described(parent, columns, values, io);
    let detail = format!("Key {shown} is still referenced from table \"{}\".", child.name);
    of_constraint(SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message).detail(detail), (child, &key.name), io)
}

/// `(a, b)=(1, 2)`
fn described(table: &Table, columns: &[usize], values: &[Datum], io: &IoEnv<'_>) -> String {
    let columns: Vec<_> = columns.iter().filter_map(|at| table.columns.get(*at)).collect();
    let names: Vec<String> = columns.iter().map(|column| quote_identifier(&column.name)).collect();
    let values: Vec<String> =
        columns.iter().zip(values).map(|(column, value)| wire::show(value, column.ty, io)).collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

/// A value as the column of another type would store it. `None` if that type has no such value.
fn converted(value: &Datum, from: SqlType, to: SqlType, io: &IoEnv<'_>) -> Option<Datum> {
    let integers = [SqlType::INT2, SqlType::INT4, SqlType::INT8];
    let is_integer = |ty: SqlType| integers.contains(&ty.base());
    if from.oid == to.oid || is_integer(from) && is_integer(to) {
        return Some(value.clone());
    }
    match Cast::find(from, to.base(), false) {
        Some(cast) => cast.apply(value.clone(), io).ok(),
        None => Some(value.clone()),
    }
}

/// The values of a row's foreign key, if they must exist: `None` if one is NULL. 23503 for MATCH FULL with some NULLs.
pub(super) fn values_of(
    child: &Table,
    key: &ForeignKey,
    row: &Row,
    io: &IoEnv<'_>,
) -> Result<Option<Vec<Datum>>, SqlError> {
    let values: Vec<Datum> = key.columns.iter().filter_map(|at| row.get(*at).cloned()).collect();
    let nulls = values.iter().filter(|value| value.is_null()).count();
    match nulls {
        0 => Ok(Some(values)),
        some if key.is_full && some < values.len() => {
            Err(violated_by_child(child, key, "MATCH FULL does not allow mixing of null and nonnull key values.", io))
        }
        _ => Ok(None),
    }
}

/// Whether two rows have the same values in some columns.
pub(super) fn are_equal(columns: &[usize], a: &Row, b: &Row) -> bool {
    columns.iter().all(|at| a.get(*at).zip(b.get(*at)).is_some_and(|(a, b)| compare(a, b).is_eq()))
}
