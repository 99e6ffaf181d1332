//! Binding of COMMENT.

use sqlparser::ast::{CommentObject, ObjectName, Spanned};

use super::binder::Binder;
use super::domains::no_check;
use super::node::{Body, Notice};
use crate::catalog::{Part, Relation};
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId};
use crate::parse::{COMMENT_ON_CONSTRAINT, COMMENT_ON_DOMAIN_CONSTRAINT};
use crate::table::{ColumnId, Table};

impl Binder<'_> {
    /// Binds COMMENT ON.
    pub(super) fn comment(
        &mut self,
        kind: CommentObject,
        name: &ObjectName,
        text: Option<&String>,
    ) -> Result<Body, SqlError> {
        let (object, part) = match kind {
            CommentObject::Table | CommentObject::View | CommentObject::Sequence | CommentObject::Index => {
                (self.commented_relation(kind, name)?, Part::Whole)
            }
            CommentObject::Column => self.commented_part(name)?,
            CommentObject::Schema => {
                let wanted = self.name_parts(name)?.join(".");
                let schema = self.catalog.schema(&wanted).ok_or_else(|| {
                    SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{wanted}\" does not exist"))
                })?;
                (ObjectId(schema.id.0), Part::Whole)
            }
            CommentObject::Database => {
                let wanted = self.name_parts(name)?.join(".");
                let Some(database) = self.catalog.database(&wanted).map(|database| database.id) else {
                    let message = format!("database \"{wanted}\" does not exist");
                    self.notices.push(Notice { code: SqlState::INVALID_CATALOG_NAME, message, is_warning: true });
                    return Ok(Body::Nothing("COMMENT"));
                };
                (ObjectId(database.0), Part::Whole)
            }
            CommentObject::Domain => (self.domain_named(name, true)?.id, Part::Whole),
            CommentObject::Type => {
                let parts = self.type_parts(name)?;
                match self.find_user_type(&parts) {
                    Some(ty) => (ty.id(), Part::Whole),
                    None => return Err(self.unsupported("a comment on this type is", name.span().start)),
                }
            }
            other => return Err(self.unsupported(&format!("COMMENT ON {other} is"), name.span().start)),
        };
        Ok(Body::Comment(object, part, text.cloned()))
    }

    /// A relation of a kind.
    fn commented_relation(&self, kind: CommentObject, name: &ObjectName) -> Result<ObjectId, SqlError> {
        let (found, last) = self.relation_of(name)?;
        let (is_it, what) = match (kind, &found) {
            (CommentObject::Table, found) => (matches!(found, Relation::Table(_)), "a table"),
            (CommentObject::Index, found) => (matches!(found, Relation::Index(_)), "an index"),
            (CommentObject::View, Relation::Object(object)) => (matches!(**object, Object::View(_)), "a view"),
            (CommentObject::View, _) => (false, "a view"),
            (_, Relation::Object(object)) => (matches!(**object, Object::Sequence(_)), "a sequence"),
            _ => (false, "a sequence"),
        };
        if !is_it {
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{last}\" is not {what}")));
        }
        Ok(ObjectId(found.oid(&last)))
    }

    fn relation_of(&self, name: &ObjectName) -> Result<(Relation, String), SqlError> {
        if let Some(found) = self.find_relation(name)? {
            return Ok(found);
        }
        let parts = self.name_parts(name)?;
        if self.of_system(&parts).is_some() {
            return Err(self.unsupported("a comment on a relation of the system is", name.span().start));
        }
        let message = format!("relation \"{}\" does not exist", parts.join("."));
        Err(SqlError::new(SqlState::UNDEFINED_TABLE, message))
    }

    /// A column, or a constraint, whose name stands behind that of its relation.
    fn commented_part(&self, name: &ObjectName) -> Result<(ObjectId, Part), SqlError> {
        let mut parts = name.0.clone();
        let first = parts.first().and_then(|part| part.as_ident()).map(|ident| ident.value.as_str());
        let is_of_domain = first == Some(COMMENT_ON_DOMAIN_CONSTRAINT);
        let is_constraint = first == Some(COMMENT_ON_CONSTRAINT);
        if is_constraint || is_of_domain {
            parts.remove(0);
        }
        let last = parts.pop().map(|part| ObjectName(vec![part]));
        let wanted = match &last {
            Some(last) => self.name_parts(last)?.pop().unwrap_or_default(),
            None => String::new(),
        };
        if parts.is_empty() {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "column name must be qualified"));
        }
        if is_of_domain {
            let domain = self.domain_named(&ObjectName(parts), true)?;
            let check = domain.checks.iter().find(|check| check.name == wanted);
            let check = check.ok_or_else(|| no_check(&wanted, &self.catalog.domain_text(&domain)))?;
            return Ok((ObjectId(check.id.0), Part::Whole));
        }
        let (relation, last) = self.relation_of(&ObjectName(parts))?;
        match (&relation, is_constraint) {
            (Relation::Table(table), true) => constraint(table, &wanted),
            (Relation::Table(table), false) => match table.columns.iter().find(|column| column.name == wanted) {
                Some(column) => Ok((ObjectId(table.id.0), Part::Column(column.id))),
                None => Err(no_column(&wanted, &last)),
            },
            (Relation::Object(object), false) if let Object::View(view) = &**object => {
                let place = view.columns.iter().position(|(name, _)| *name == wanted);
                let number = place.and_then(|place| u16::try_from(place + 1).ok());
                let number = number.ok_or_else(|| no_column(&wanted, &last))?;
                Ok((view.id, Part::Column(ColumnId(number))))
            }
            (_, true) => Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{last}\" is not a table"))),
            (_, false) => {
                let message = format!("cannot set comment on relation \"{last}\"");
                let what = if matches!(relation, Relation::Index(_)) { "indexes" } else { "sequences" };
                let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
                Err(error.detail(format!("This operation is not supported for {what}.")))
            }
        }
    }
}

fn no_column(column: &str, relation: &str) -> SqlError {
    let message = format!("column \"{column}\" of relation \"{relation}\" does not exist");
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}

/// A constraint of a table. That of a key is a part of its index.
fn constraint(table: &Table, name: &str) -> Result<(ObjectId, Part), SqlError> {
    if !name.is_empty() && table.key_name == name {
        return Ok((ObjectId(table.key_id.0), Part::Constraint));
    }
    if let Some(index) = table.indexes.iter().find(|index| index.is_constraint && index.name == name) {
        return Ok((ObjectId(index.id.0), Part::Constraint));
    }
    let check = table.checks.iter().find(|check| check.name == name).map(|check| check.id);
    let foreign = || table.foreign_keys.iter().find(|key| key.name == name).map(|key| key.id);
    match check.or_else(foreign) {
        Some(id) => Ok((ObjectId(id.0), Part::Whole)),
        None => {
            let message = format!("constraint \"{name}\" for table \"{}\" does not exist", table.name);
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}
