//! The relations that defaults name in constants: `'x' || nextval('s')`.
//!
//! The text of a default has their schemas, because the session that inserts may have another search path than the one
//! that has written the default. A default that is `nextval('s')` alone has the id of its sequence instead.

use std::sync::Arc;

use super::assign::bind_default;
use super::binder::Binder;
use crate::catalog::Sight;
use crate::error::SqlError;
use crate::expr::Expr;
use crate::object::ObjectId;
use crate::table::{Column, drawn_sequence, quote_identifier};
use pgtypes::{Names, SqlType};

impl Binder<'_> {
    /// The text of a default with the schemas of the relations that it names. `None` if it cannot be written so. 42P01
    /// if one does not exist.
    pub(super) fn with_schemas(&self, text: String, bound: &Expr, column: &Column) -> Result<Option<String>, SqlError> {
        let names = named(bound);
        if names.is_empty() {
            return Ok(Some(text));
        }
        let sight = self.catalog.sight();
        let nowhere = self.catalog.seen_from(&Sight { path: Arc::new([]), ..sight.clone() });
        let (mut text, mut expected) = (text, bound.clone());
        for name in names {
            let oid = self.catalog.find(SqlType::REGCLASS, &name)?;
            let is_temporary = |id| self.catalog.is_temporary(id);
            let schema = self.catalog.object(ObjectId(oid.0)).and_then(|object| object.schema());
            let Some(whole) = nowhere.show(SqlType::REGCLASS, oid).filter(|_| !schema.is_some_and(is_temporary)) else {
                continue;
            };
            let literal = |name: &str| format!("'{}'", name.replace('\'', "''"));
            text = text.replace(&literal(&name), &literal(&whole));
            expected.replace_with(&mut |part| match part {
                Expr::Input { ty, text, position } if ty.base() == SqlType::REGCLASS && **text == *name => {
                    Some(Expr::Input { ty: *ty, text: whole.as_str().into(), position: *position })
                }
                _ => None,
            });
        }
        let is_same = bind_default(&text, column, self.catalog).is_ok_and(|again| again == expected);
        Ok(is_same.then_some(text))
    }

    /// A table and its column whose default names a sequence in an expression, by its name and not by its id.
    pub(super) fn named_in_default(&self, sequence: ObjectId) -> Option<(String, String)> {
        for table in self.catalog.tables() {
            let is_named = |column: &&Column| {
                let is_drawn = column.default.as_deref().and_then(drawn_sequence).is_some();
                !is_drawn && self.named_relations(column).contains(&sequence)
            };
            if let Some(column) = table.columns.iter().find(is_named) {
                return Some((quote_identifier(&table.name), quote_identifier(&column.name)));
            }
        }
        None
    }

    /// The relations that the default of a column names by constants.
    pub(super) fn named_relations(&self, column: &Column) -> Vec<ObjectId> {
        let Some(text) = &column.default else { return Vec::new() };
        if let Some(drawn) = drawn_sequence(text) {
            return vec![drawn];
        }
        // Few texts have to be bound: a constant that is a name stands in quotes.
        if !text.contains('\'') {
            return Vec::new();
        }
        let Ok(bound) = bind_default(text, column, self.catalog) else { return Vec::new() };
        let found = named(&bound);
        let found = found.iter().filter_map(|name| self.catalog.find(SqlType::REGCLASS, name).ok());
        found.map(|oid| ObjectId(oid.0)).collect()
    }
}

/// The names in the constants of type `regclass`, but for OIDs.
fn named(bound: &Expr) -> Vec<Box<str>> {
    let (mut names, mut waiting) = (Vec::new(), vec![bound]);
    while let Some(node) = waiting.pop() {
        match node {
            Expr::Input { ty, text, .. } if ty.base() == SqlType::REGCLASS => {
                let is_oid = text.bytes().all(|byte| byte.is_ascii_digit());
                if !is_oid && !names.contains(text) {
                    names.push(text.clone());
                }
            }
            _ => {}
        }
        waiting.extend(node.children());
    }
    names
}
