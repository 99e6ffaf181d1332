//! Anonymous rows.

use std::cmp::Ordering;

use super::{Datum, compare};
use crate::sql_type::SqlType;

/// Fields with their types.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    fields: Vec<(SqlType, Datum)>,
}

impl Record {
    /// A row of fields.
    pub fn new(fields: Vec<(SqlType, Datum)>) -> Record {
        Record { fields }
    }

    /// Its fields.
    pub fn fields(&self) -> &[(SqlType, Datum)] {
        &self.fields
    }

    /// Memory of the fields, for budgets.
    pub fn memory(&self) -> usize {
        self.fields.iter().map(|(_, field)| size_of::<SqlType>() + field.memory()).sum()
    }

    /// Field by field, NULL last.
    pub fn compare(&self, other: &Record) -> Ordering {
        let mut pairs = self.fields.iter().zip(&other.fields);
        let unequal = pairs.find_map(|((_, a), (_, b))| Some(compare(a, b)).filter(|order| order.is_ne()));
        unequal.unwrap_or_else(|| self.fields.len().cmp(&other.fields.len()))
    }
}
