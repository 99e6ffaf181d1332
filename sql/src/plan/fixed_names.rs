//! Ids in the place of names in texts that the catalog stores: defaults, checks, generated columns, expressions and
//! predicates of indexes.
//!
//! A text is read by sessions with other search paths than the one that has written it, and what it names may get
//! another name, or its schema. So the catalog stores `"pg_type 16385"` for a user's type, and `'pg_class 16390'` for a
//! relation in a constant of type `regclass`. The catalog's relations show the names
//! ([`crate::catalog::Catalog::shown_text`]).
//!
//! A relation that the same statement creates has no id yet: such a constant has its schema and name.

use std::cmp::Reverse;
use std::sync::Arc;

use sqlparser::ast::Expr as Ast;

use super::binder::{Binder, Replacement};
use super::stored::bind_stored;
use crate::catalog::FIXED_RELATION;
use crate::error::SqlError;
use crate::expr::Expr;
use crate::object::{Object, ObjectId};
use crate::table::{Index, IndexColumn, IndexedValue, Table};
use pgtypes::{Names, SqlType};

/// What stands before the stored text of an expression when it is bound.
const SELECT: &str = "SELECT ";

/// A text with some parts replaced, which do not overlap.
pub(super) fn replaced(mut text: String, mut parts: Vec<Replacement>) -> String {
    // From the end: what is replaced moves what follows. A part may have been bound twice.
    parts.sort_by_key(|(range, _)| Reverse(range.start));
    parts.dedup();
    for (range, new) in parts {
        text.replace_range(range, &new);
    }
    text
}

impl Binder<'_> {
    /// The text of an expression with ids in the place of names. `bind` binds its tree. `None` if the text would mean
    /// something else then. 42P01 for a relation that does not exist.
    pub(super) fn with_ids(
        &self,
        text: String,
        bind: impl Fn(&mut Binder<'_>, &Ast) -> Result<Expr, SqlError>,
    ) -> Result<Option<String>, SqlError> {
        let read = bind_stored(&text, self.catalog, |binder, ast| {
            binder.names_read = Some(Vec::new()).into();
            binder.creating.clone_from(&self.creating);
            binder.target = self.target;
            let bound = bind(binder, ast)?;
            Ok((bound, binder.names_read.take().unwrap_or_default()))
        });
        let (bound, names) = read?;
        if names.is_empty() {
            return Ok(Some(text));
        }
        let fixed = replaced(format!("{SELECT}{text}"), names);
        let Some(fixed) = fixed.strip_prefix(SELECT).map(str::to_owned) else { return Ok(None) };
        let again = bind_stored(&fixed, self.catalog, bind);
        let is_same = again.is_ok_and(|again| self.with_oids(again) == self.with_oids(bound));
        Ok(is_same.then_some(fixed))
    }

    /// Whether a stored text of a table or domain names a relation by its id.
    pub(super) fn is_named_by_text(&self, id: ObjectId) -> bool {
        let wanted = format!("'{FIXED_RELATION}{}'", id.0);
        let names_it = |text: &String| text.contains(&wanted);
        let in_index = |index: &Index| {
            let mut columns = index.columns.iter();
            let is_it =
                |column: &IndexColumn| matches!(&column.value, IndexedValue::Expression { text, .. } if names_it(text));
            index.predicate.iter().any(names_it) || columns.any(is_it)
        };
        let in_table = |table: Arc<Table>| {
            let mut values = table.columns.iter().flat_map(|column| column.default.iter().chain(&column.generated));
            values.any(names_it)
                || table.checks.iter().any(|check| names_it(&check.text))
                || table.indexes.iter().any(in_index)
        };
        let in_domain = |object: Arc<Object>| match &*object {
            Object::Domain(domain) => {
                domain.default.iter().any(names_it) || domain.checks.iter().any(|check| names_it(&check.text))
            }
            _ => false,
        };
        self.catalog.tables().into_iter().any(in_table) || self.catalog.relations().into_iter().any(in_domain)
    }

    /// An expression with OIDs in the constants of type `regclass`; with the whole name of what is to be created.
    fn with_oids(&self, mut expr: Expr) -> Expr {
        expr.replace_with(&mut |part| match part {
            Expr::Input { ty, text, position } if ty.base() == SqlType::REGCLASS => {
                let oid = self.catalog.find(SqlType::REGCLASS, text).ok().map(|oid| oid.0.to_string());
                let text = oid.or_else(|| self.created_name(text))?.into();
                Some(Expr::Input { ty: *ty, text, position: *position })
            }
            _ => None,
        });
        expr
    }
}
