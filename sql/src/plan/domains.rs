//! Domains in statements: the constraints that a cast and a write check, and the defaults of columns.
//!
//! A type that is a domain stands for its base type everywhere. What is bound here is beside that: a cast to it and a
//! column of it have a [`DomainCheck`], if there is anything to check.

use std::sync::Arc;

use super::binder::{Binder, Scope, ScopeColumn, ScopeTable, Typed};
use super::stored::bind_stored;
use crate::catalog::{Catalog, NamedType};
use crate::error::{SqlError, SqlState};
use crate::expr::{DomainCheck, Expr};
use crate::object::{Domain, ObjectId};
use crate::table::{Column, Table};

/// The constraints of a domain and of those that it is made of; `None` if there are none. PostgreSQL's order: NOT NULL,
/// then the checks, those of the innermost domain first.
pub(super) fn domain_check(id: ObjectId, catalog: &Catalog) -> Result<Option<Arc<DomainCheck>>, SqlError> {
    let line = catalog.line_of_domains(id);
    let Some(domain) = line.first() else { return Err(SqlError::internal("a domain is missing")) };
    let mut conditions = Vec::new();
    for check in line.iter().rev().flat_map(|domain| &domain.checks) {
        conditions.push((check.name.clone(), stored_value_condition(&check.text, domain, catalog)?));
    }
    let not_null = line.iter().any(|domain| domain.not_null);
    if conditions.is_empty() && !not_null {
        return Ok(None);
    }
    let schema = catalog.schema_by_id(domain.schema).map(|schema| schema.name.clone());
    let name = (schema.unwrap_or_default(), domain.name.clone());
    Ok(Some(Arc::new(DomainCheck { shown: catalog.domain_text(domain), name, not_null, conditions })))
}

/// The checks of a table's columns, with the places of these.
pub(super) fn column_checks(table: &Table, catalog: &Catalog) -> Result<Vec<(usize, Arc<DomainCheck>)>, SqlError> {
    let mut checks = Vec::new();
    for (at, column) in table.columns.iter().enumerate() {
        if let Some(domain) = column.domain {
            checks.extend(domain_check(domain, catalog)?.map(|check| (at, check)));
        }
    }
    Ok(checks)
}

/// Binds the stored text of a check of a domain.
pub(super) fn stored_value_condition(text: &str, domain: &Domain, catalog: &Catalog) -> Result<Expr, SqlError> {
    bind_stored(text, catalog, |binder, ast| binder.condition(ast, &value_scope(domain), "CHECK"))
}

/// The scope of a domain's checks: `VALUE` alone.
pub(super) fn value_scope(domain: &Domain) -> Scope {
    let column = ScopeColumn { name: "value".to_owned(), ty: domain.base, number: 1 };
    let (name, columns) = (String::new(), vec![column]);
    let table = ScopeTable {
        name,
        hidden_name: None,
        columns,
        offset: 0,
        oid: 0,
        relation: None,
        is_scalar: false,
        may_be_missing: false,
        has_key: false,
    };
    Scope { tables: vec![table], merged: Vec::new() }
}

/// 42704 for a check that a domain, as SQL, does not have.
pub(super) fn no_check(name: &str, shown: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("constraint \"{name}\" for domain {shown} does not exist"))
}

/// The text of a column's DEFAULT: its own, or that of its domain.
pub(super) fn default_text<'c>(column: &'c Column, catalog: &'c Catalog) -> Option<&'c str> {
    let of_domain = || catalog.domain(column.domain?)?.default.as_deref();
    column.default.as_deref().or_else(of_domain)
}

impl Binder<'_> {
    /// A value as one of a type that it has been converted to: it is checked, if the type is a domain.
    pub(super) fn of_domain(&self, value: Typed, domain: Option<ObjectId>) -> Result<Typed, SqlError> {
        let Some(domain) = domain else { return Ok(value) };
        self.note_domains(domain);
        Ok(match domain_check(domain, self.catalog)? {
            Some(check) => Typed { expr: Expr::Domain { expr: Box::new(value.expr), check }, ..value },
            None => value,
        })
    }

    /// The statement depends on a domain and on those that it is made of.
    pub(super) fn note_domains(&self, domain: ObjectId) {
        self.catalog.line_of_domains(domain).iter().for_each(|domain| self.note_domain(domain.id));
    }

    /// The statement depends on the domains of a table's columns.
    pub(super) fn note_domains_of(&self, table: &Table) {
        table.columns.iter().filter_map(|column| column.domain).for_each(|domain| self.note_domains(domain));
    }

    /// The name of a type without its modifier, or of a domain.
    pub(super) fn named_type_text(&self, named: NamedType) -> String {
        match named.domain.and_then(|domain| self.catalog.domain(domain)) {
            Some(domain) => self.catalog.domain_text(domain),
            None => self.type_text(named.ty),
        }
    }

    /// The name of a column's type.
    pub(super) fn column_type_text(&self, column: &Column) -> String {
        self.named_type_text(NamedType { ty: column.ty, domain: column.domain })
    }
}
