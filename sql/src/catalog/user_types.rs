//! The types that users have made, in a catalog: what their names and OIDs mean, and how they are shown.
//!
//! An enum is a type of its own. A domain is not: its name means the base type, and the constraints of a line of
//! domains.

use std::sync::Arc;

use super::snapshot::Catalog;
use crate::object::{Domain, EnumType, Object, ObjectId, SchemaId};
use crate::table::{Check, quote_identifier};
use pgtypes::{Oid, SqlType};

/// What the name of a type means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedType {
    /// The type of the values.
    pub(crate) ty: SqlType,
    /// The domain that they are of, if the name is that of one.
    pub(crate) domain: Option<ObjectId>,
}

impl From<SqlType> for NamedType {
    fn from(ty: SqlType) -> NamedType {
        NamedType { ty, domain: None }
    }
}

impl NamedType {
    /// What the name of an object means, as far as it is a type.
    pub(crate) fn of(object: &Object) -> Option<NamedType> {
        match object {
            Object::Enum(ty) => Some(ty.ty().into()),
            Object::Domain(domain) => Some(NamedType { ty: domain.base, domain: Some(domain.id) }),
            _ => None,
        }
    }

    /// The array type of a type that is no domain.
    pub(crate) fn array(self) -> Option<NamedType> {
        if self.domain.is_none() { self.ty.array().map(NamedType::from) } else { None }
    }

    /// The OID in `pg_type`.
    pub(crate) fn oid(self) -> Oid {
        self.domain.map_or(self.ty.oid, |domain| Oid(domain.0))
    }
}

impl Catalog {
    /// What the folded name of a type means that a user has made.
    pub(crate) fn find_type(&self, schema: Option<&str>, name: &str) -> Option<NamedType> {
        self.find_type_by(schema, name, |schema, name| self.user_type(schema, name).cloned())
    }

    /// The same with a look-up of the caller's, of the names that the type may have.
    pub(crate) fn find_type_by(
        &self,
        schema: Option<&str>,
        name: &str,
        look_up: impl Fn(Option<SchemaId>, &str) -> Option<Arc<Object>>,
    ) -> Option<NamedType> {
        let schema = match schema {
            Some(schema) => Some(self.schema(schema)?.id),
            None => None,
        };
        // An array has its element's name after an underscore.
        match look_up(schema, name) {
            Some(found) => NamedType::of(&found),
            None => NamedType::of(&*look_up(schema, name.strip_prefix('_')?)?)?.array(),
        }
    }

    /// The enum of this OID, of any database.
    pub(crate) fn enum_type(&self, oid: Oid) -> Option<&EnumType> {
        match &**self.object(ObjectId(oid.0))? {
            Object::Enum(ty) => Some(ty),
            _ => None,
        }
    }

    /// The domain of this id, of any database.
    pub(crate) fn domain(&self, id: ObjectId) -> Option<&Domain> {
        match &**self.object(id)? {
            Object::Domain(domain) => Some(domain),
            _ => None,
        }
    }

    /// The check with this OID of a domain of the session's database.
    pub(crate) fn check_of_domain(&self, oid: u32) -> Option<Check> {
        let check = |object: Arc<Object>| match &*object {
            Object::Domain(domain) => domain.checks.iter().find(|check| check.id.0 == oid).cloned(),
            _ => None,
        };
        self.relations().into_iter().find_map(check)
    }

    /// A domain and those that it is made of: all whose constraints hold for its values.
    pub(crate) fn line_of_domains(&self, id: ObjectId) -> Vec<&Domain> {
        let parent = |domain: &&Domain| domain.parent.and_then(|parent| self.domain(parent));
        std::iter::successors(self.domain(id), parent).collect()
    }

    /// The type of the values whose type a client names by its OID: the base type of a domain.
    pub(crate) fn type_of_values(&self, ty: SqlType) -> SqlType {
        self.domain(ObjectId(ty.oid.0)).map_or(ty.base(), |domain| domain.base.base())
    }

    /// How a type with this OID is shown, if a user has made it, in the session's database.
    pub(crate) fn user_type_text(&self, oid: Oid) -> Option<String> {
        let element = SqlType::new(oid).element().map_or(oid, |element| element.oid);
        let found = self.object(ObjectId(element.0)).filter(|found| found.is_type())?;
        let schema = found.schema().filter(|schema| self.is_seen(*schema))?;
        let brackets = if element == oid { "" } else { "[]" };
        Some(format!("{}{brackets}", self.qualified_type(schema, found.name())))
    }

    /// Whether a user's type, or its array, is found without its schema. `None` without such a type in this database.
    pub(crate) fn is_visible_type(&self, oid: Oid) -> Option<bool> {
        let element = SqlType::new(oid).element().map_or(oid, |element| element.oid);
        let found = self.object(ObjectId(element.0)).filter(|found| found.is_type())?;
        found.schema().filter(|schema| self.is_seen(*schema))?;
        Some(self.user_type(None, found.name()).is_some_and(|first| first.id() == found.id()))
    }

    /// A type as SQL, with its modifier. That of a user has its schema, unless the search path finds it.
    pub(crate) fn type_text(&self, ty: SqlType) -> String {
        let element = ty.scalar();
        let Some(found) = self.enum_type(element.oid) else { return ty.name() };
        let brackets = if element == ty { "" } else { "[]" };
        format!("{}{brackets}", self.qualified_type(found.schema, &found.name))
    }

    /// A domain as SQL, with its schema unless the search path finds it.
    pub(crate) fn domain_text(&self, domain: &Domain) -> String {
        self.qualified_type(domain.schema, &domain.name)
    }

    fn qualified_type(&self, schema: SchemaId, name: &str) -> String {
        let shown = quote_identifier(name);
        let is_visible = self.user_type(None, name).is_some_and(|first| first.schema() == Some(schema));
        match self.schema_by_id(schema).filter(|_| !is_visible) {
            Some(schema) => format!("{}.{shown}", quote_identifier(&schema.name)),
            None => shown,
        }
    }
}
