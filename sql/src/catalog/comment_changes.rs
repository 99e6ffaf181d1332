//! Changes of comments. A comment is dropped with its object, whatever drops that: what a schema change removes, it
//! also forgets here. A comment closes no table.

use std::collections::HashSet;
use std::sync::Arc;

use txn::Transaction;

use super::comments::{Comments, Part, encode};
use super::ddl::SchemaChange;
use super::keys;
use crate::error::{SqlError, storage_error};
use crate::object::{Object, ObjectId};
use crate::table::Table;

impl SchemaChange {
    /// Gives an object, or a part of it, another comment; none without a text.
    pub(crate) fn comment(
        &mut self,
        txn: &mut Transaction,
        (object, part): (ObjectId, Part),
        text: Option<&str>,
    ) -> Result<(), SqlError> {
        let mut comments = self.catalog().comments(object).cloned().unwrap_or_default();
        match text.filter(|text| !text.is_empty()) {
            Some(text) => drop(comments.insert(part, text.to_owned())),
            None => drop(comments.remove(&part)),
        }
        self.put_comments(txn, object, comments)?;
        self.record(txn)
    }

    /// Forgets the comments of what a table had and has not any more: of all of it, if there is no new one.
    pub(super) fn forget_parts(
        &mut self,
        txn: &mut Transaction,
        old: &Table,
        new: Option<&Table>,
    ) -> Result<(), SqlError> {
        let kept: HashSet<u32> = new.into_iter().flat_map(ids_of).collect();
        for id in ids_of(old).filter(|id| !kept.contains(id)) {
            self.forget(txn, ObjectId(id))?;
        }
        let (Some(new), Some(comments)) = (new, self.catalog().comments(ObjectId(old.id.0)).cloned()) else {
            return Ok(());
        };
        let mut left = comments.clone();
        left.retain(|part, _| match part {
            Part::Column(column) => new.position_of(*column).is_some(),
            Part::Whole | Part::Constraint => true,
        });
        if left == comments { Ok(()) } else { self.put_comments(txn, ObjectId(old.id.0), left) }
    }

    /// Forgets the comments of the checks that a domain had and has not any more.
    pub(super) fn forget_checks(
        &mut self,
        txn: &mut Transaction,
        old: &Object,
        new: Option<&Object>,
    ) -> Result<(), SqlError> {
        let kept: HashSet<u32> = new.into_iter().flat_map(checks_of).collect();
        let gone = checks_of(old).filter(|id| !kept.contains(id));
        gone.map(ObjectId).try_for_each(|check| self.forget(txn, check))
    }

    /// Forgets the comments of an object that is dropped.
    pub(super) fn forget(&mut self, txn: &mut Transaction, object: ObjectId) -> Result<(), SqlError> {
        match self.catalog().comments(object) {
            Some(_) => self.put_comments(txn, object, Comments::new()),
            None => Ok(()),
        }
    }

    fn put_comments(&mut self, txn: &mut Transaction, object: ObjectId, comments: Comments) -> Result<(), SqlError> {
        let key = keys::comments(object);
        let written = if comments.is_empty() { txn.delete(key) } else { txn.put(key, encode(&comments)) };
        written.map_err(storage_error)?;
        let catalog = self.catalog().with_comments(self.version(), object, comments);
        self.replace_catalog(Arc::new(catalog));
        Ok(())
    }
}

/// The ids of a domain's checks.
fn checks_of(object: &Object) -> impl Iterator<Item = u32> {
    let checks = match object {
        Object::Domain(domain) => domain.checks.as_slice(),
        _ => &[],
    };
    checks.iter().map(|check| check.id.0)
}

/// The ids of a table and of its parts.
fn ids_of(table: &Table) -> impl Iterator<Item = u32> {
    let indexes = table.indexes.iter().map(|index| index.id.0);
    let constraints = table.checks.iter().map(|check| check.id.0);
    let foreign = table.foreign_keys.iter().map(|key| key.id.0);
    [table.id.0, table.key_id.0].into_iter().filter(|id| *id != 0).chain(indexes).chain(constraints).chain(foreign)
}
