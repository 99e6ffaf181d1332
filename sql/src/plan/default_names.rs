//! The relations that defaults name in constants: `'x' || nextval('s')`.
//!
//! The text of a default has their ids ([`super::fixed_names`]), but for relations that were created with it.

use super::assign::bind_default;
use super::binder::Binder;
use crate::expr::Expr;
use crate::object::ObjectId;
use crate::table::{Column, drawn_sequence, quote_identifier};
use pgtypes::{Names, SqlType};

impl Binder<'_> {
    /// A table and its column whose default names a sequence in an expression, by its name and not by its id.
    pub(super) fn named_in_default(&self, sequence: ObjectId) -> Option<(String, String)> {
        let is_it = |name: &str| !is_oid(name) && self.relation_in_constant(name) == Some(sequence);
        for table in self.catalog.tables() {
            let mut columns = table.columns.iter();
            if let Some(column) = columns.find(|column| self.names_in(column).iter().any(|name| is_it(name))) {
                return Some((quote_identifier(&table.name), quote_identifier(&column.name)));
            }
        }
        None
    }

    /// The relations that the default of a column names by constants.
    pub(super) fn named_relations(&self, column: &Column) -> Vec<ObjectId> {
        if let Some(drawn) = column.default.as_deref().and_then(drawn_sequence) {
            return vec![drawn];
        }
        self.names_in(column).iter().filter_map(|name| self.relation_in_constant(name)).collect()
    }

    fn relation_in_constant(&self, name: &str) -> Option<ObjectId> {
        if is_oid(name) {
            return name.parse().ok().map(ObjectId);
        }
        self.catalog.find(SqlType::REGCLASS, name).ok().map(|oid| ObjectId(oid.0))
    }

    /// The names, and the OIDs, of relations in the default of a column that is more than `nextval` of a sequence.
    fn names_in(&self, column: &Column) -> Vec<Box<str>> {
        // Few texts have to be bound: a constant stands in quotes.
        let text = column.default.as_deref().filter(|text| text.contains('\'') && drawn_sequence(text).is_none());
        let bound = text.and_then(|text| bind_default(text, column, self.catalog).ok());
        bound.map(|bound| named(&bound)).unwrap_or_default()
    }
}

fn is_oid(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

/// The constants of type `regclass`.
fn named(bound: &Expr) -> Vec<Box<str>> {
    let (mut names, mut waiting) = (Vec::new(), vec![bound]);
    while let Some(node) = waiting.pop() {
        if let Expr::Input { ty, text, .. } = node
            && ty.base() == SqlType::REGCLASS
            && !names.contains(text)
        {
            names.push(text.clone());
        }
        waiting.extend(node.children());
    }
    names
}
