//! The tables of one catalog version.

use std::collections::HashMap;
use std::sync::Arc;

use crate::table::{StorageId, Table};

/// The catalog at one snapshot, cached per version. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Grows with every committed schema change. Plans of another version are bound again. After a transaction's own
    /// schema change, a number that no other catalog has.
    pub version: u64,
    tables: Arc<HashMap<String, Arc<Table>>>,
}

impl Catalog {
    /// A catalog of these tables.
    pub fn new(version: u64, tables: impl IntoIterator<Item = Table>) -> Catalog {
        let tables = tables.into_iter().map(|table| (table.name.clone(), Arc::new(table))).collect();
        Catalog { version, tables: Arc::new(tables) }
    }

    /// A table of the schema `public` by its folded name.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name)
    }

    /// The table with this storage.
    pub(super) fn by_storage(&self, storage: StorageId) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.storage == storage)
    }
}
