//! The catalog as a session sees it: its database, and the schemas of its search path.
//!
//! The view is kept as long as the node's catalog and the search path are the same, so that a statement pays for two
//! comparisons of addresses.

use std::sync::Arc;

use crate::catalog::{Catalog, SessionSchemas, Sight};
use crate::error::{SqlError, SqlState};
use crate::object::SchemaId;

/// The last view of a session.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    last: Option<SeenCatalog>,
}

#[derive(Debug)]
struct SeenCatalog {
    base: Arc<Catalog>,
    path: Arc<[String]>,
    temporary: Option<SchemaId>,
    seen: Arc<Catalog>,
}

impl Seen {
    /// The catalog as the session last saw it.
    pub(crate) fn last(&self) -> Option<&Arc<Catalog>> {
        self.last.as_ref().map(|last| &last.seen)
    }

    /// The catalog `base` as a session sees it. 3D000 if its database is gone.
    pub(crate) fn look(
        &mut self,
        base: &Arc<Catalog>,
        path: &Arc<[String]>,
        (database, user): (&str, &str),
        temporary: &SessionSchemas,
    ) -> Result<Arc<Catalog>, SqlError> {
        let temporary = temporary.current(base);
        let is_last = |last: &&SeenCatalog| {
            Arc::ptr_eq(&last.base, base) && Arc::ptr_eq(&last.path, path) && last.temporary == temporary
        };
        if let Some(last) = self.last.as_ref().filter(is_last) {
            return Ok(last.seen.clone());
        }
        let seen = Arc::new(see(base, (database, temporary), path, user)?);
        self.last = Some(SeenCatalog { base: base.clone(), path: path.clone(), temporary, seen: seen.clone() });
        Ok(seen)
    }
}

/// The catalog from a database with a search path. Schemas that do not exist are left out, as in PostgreSQL.
fn see(
    base: &Catalog,
    (database, temporary): (&str, Option<SchemaId>),
    path: &[String],
    user: &str,
) -> Result<Catalog, SqlError> {
    let Some(found) = base.database(database) else { return Err(no_database(database)) };
    let all = base.seen_from(&Sight { database: found.id, path: Arc::new([]), temporary });
    let mut ids: Vec<SchemaId> = Vec::new();
    for name in path {
        let name = if name == "$user" { user } else { name };
        let found = all.schema(name).map(|schema| schema.id);
        ids.extend(found.filter(|id| !ids.contains(id)));
    }
    Ok(base.seen_from(&Sight { database: found.id, path: ids.into(), temporary }))
}

/// 3D000.
pub(crate) fn no_database(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist"))
}
