//! Constraints in ALTER TABLE: those that are added, dropped and renamed.

use sqlparser::ast::{ConstraintUsingIndex, PrimaryKeyConstraint, Spanned, TableConstraint, UniqueConstraint};

use super::binder::Binder;
use super::constraints::{CheckDef, ForeignKeyDef, free_constraint};
use super::dependents::of_key;
use super::names::fold_ident;
use super::node::Notice;
use super::table_change::Change;
use crate::error::{SqlError, SqlState};
use crate::parse::{NO_LOCATION, start_of};
use crate::table::{IndexId, Table};

impl Binder<'_> {
    pub(super) fn add_constraint(&mut self, constraint: &TableConstraint, change: &mut Change) -> Result<(), SqlError> {
        match constraint {
            TableConstraint::PrimaryKey(key) => self.add_primary_key(key, change),
            TableConstraint::Unique(unique) => self.add_unique(unique, change),
            TableConstraint::Check(check) if check.enforced.is_some() => Err(self.enforced(start_of(&check.expr))),
            TableConstraint::Check(check) => self.check_rows(&[(check.name.as_ref(), &check.expr)], change),
            TableConstraint::ForeignKey(key) => {
                self.refer_rows(&[(key.name.as_ref(), key.columns.iter().collect(), key)], change)
            }
            TableConstraint::PrimaryKeyUsingIndex(using) => self.key_of_index(using, true, change),
            TableConstraint::UniqueUsingIndex(using) => self.key_of_index(using, false, change),
            other => Err(self.unsupported("this table constraint is", other.span().start)),
        }
    }

    /// Adds checks that the rows must pass.
    pub(super) fn check_rows(&mut self, defs: &[CheckDef<'_>], change: &mut Change) -> Result<(), SqlError> {
        let alteration = &mut change.alteration;
        let before = alteration.new.checks.len();
        self.add_checks(&mut alteration.new, defs)?;
        let added = alteration.new.checks.get(before..).unwrap_or_default();
        alteration.validates.checks.extend(added.iter().map(|check| check.name.clone()));
        Ok(())
    }

    /// Adds foreign keys that hold for the rows.
    pub(super) fn refer_rows(&mut self, defs: &[ForeignKeyDef<'_>], change: &mut Change) -> Result<(), SqlError> {
        let alteration = &mut change.alteration;
        let before = alteration.new.foreign_keys.len();
        self.add_foreign_keys(&mut alteration.new, defs)?;
        let added = alteration.new.foreign_keys.get(before..).unwrap_or_default();
        alteration.validates.foreign_keys.extend(added.iter().map(|key| key.name.clone()));
        Ok(())
    }

    fn add_unique(&mut self, unique: &UniqueConstraint, change: &mut Change) -> Result<(), SqlError> {
        let table = &mut change.alteration.new;
        let taken: Vec<String> = table.indexes.iter().map(|index| index.name.clone()).collect();
        let index = self.unique_index(&table.name, unique, |name| table.column(name), &taken)?;
        self.check_free(&index.name, table)?;
        table.indexes.push(index);
        Ok(())
    }

    /// 42P07 if a relation has the name, or another index of the same table.
    pub(super) fn check_free(&self, name: &str, table: &Table) -> Result<(), SqlError> {
        if table.index(name).is_none() && table.key_name != name {
            return self.check_free_relation(name);
        }
        Err(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")))
    }

    pub(super) fn check_free_relation(&self, name: &str) -> Result<(), SqlError> {
        if !self.is_taken(name) {
            return Ok(());
        }
        Err(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")))
    }

    fn add_primary_key(&mut self, key: &PrimaryKeyConstraint, change: &mut Change) -> Result<(), SqlError> {
        let at = key.columns.first().map_or(NO_LOCATION, |column| start_of(&column.column.expr));
        let table = &change.alteration.new;
        refuse_second_key(table)?;
        self.primary_key_options((key.index_type.as_ref(), &key.index_options), at)?;
        let position = self.constraint_position(key.name.as_ref(), at, "primary");
        let place = |name: &str| table.column(name);
        let columns = self.constraint_columns(&key.columns, place, "primary key constraint", (at, position))?;
        let name = key.name.as_ref().map(fold_ident);
        self.set_primary_key(columns.into_iter().map(|(at, _)| at).collect(), name, change)
    }

    pub(super) fn set_primary_key(
        &mut self,
        columns: Vec<usize>,
        name: Option<String>,
        change: &mut Change,
    ) -> Result<(), SqlError> {
        let alteration = &mut change.alteration;
        let table = &mut alteration.new;
        let taken: Vec<String> = table.indexes.iter().map(|index| index.name.clone()).collect();
        table.key_name = match name {
            Some(name) => {
                self.check_free(&name, table)?;
                name
            }
            None => self.free_name(&table.name, None, "pkey", &taken),
        };
        for at in &columns {
            alteration.set_not_null(*at);
        }
        alteration.new.primary_key = columns;
        alteration.rewrites = true;
        Ok(())
    }

    /// ADD PRIMARY KEY USING INDEX, ADD UNIQUE USING INDEX.
    fn key_of_index(
        &mut self,
        using: &ConstraintUsingIndex,
        is_primary: bool,
        change: &mut Change,
    ) -> Result<(), SqlError> {
        let name = fold_ident(&using.index_name);
        let table = &mut change.alteration.new;
        let word = if is_primary { "primary" } else { "unique" };
        let position = self.constraint_position(using.name.as_ref(), using.index_name.span.start, word);
        let Some(index) = table.index(&name).cloned() else {
            let message = format!("index \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).at(position));
        };
        let refuse = |message: String, detail: &str| {
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).detail(detail).at(position))
        };
        if index.is_constraint {
            let message = format!("index \"{name}\" is already associated with a constraint");
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).at(position));
        }
        if !index.unique {
            let detail = "Cannot create a primary key or unique constraint using such an index.";
            return refuse(format!("\"{name}\" is not a unique index"), detail);
        }
        let detail = "Cannot create a primary key or unique constraint using such an index.";
        if index.predicate.is_some() {
            return refuse(format!("\"{name}\" is a partial index"), detail);
        }
        let Some(columns) = index.plain_columns() else {
            return refuse(format!("index \"{name}\" contains expressions"), detail);
        };
        if let Some(at) = index.columns.iter().position(|column| column.order != Default::default()) {
            let message = format!("index \"{name}\" column number {} does not have default sorting behavior", at + 1);
            return refuse(message, detail);
        }
        let constraint = using.name.as_ref().map_or(name.clone(), fold_ident);
        if constraint != name {
            let message =
                format!("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{name}\" to \"{constraint}\"");
            self.notices.push(Notice { code: SqlState::SUCCESSFUL_COMPLETION, message, is_warning: false });
        }
        if is_primary {
            refuse_second_key(table)?;
            if !index.included.is_empty() {
                return Err(self.unsupported("INCLUDE of a primary key is", using.index_name.span.start));
            }
            // The rows are the entries of a primary key.
            table.indexes.retain(|other| other.name != name);
            if constraint != name {
                self.check_free(&constraint, table)?;
            }
            change.alteration.new.key_id = index.id;
            return self.set_key(columns, constraint, change);
        }
        if constraint != name {
            self.check_free(&constraint, table)?;
        }
        for other in table.indexes.iter_mut().filter(|other| other.name == name) {
            other.is_constraint = true;
            other.name.clone_from(&constraint);
        }
        Ok(())
    }

    fn set_key(&mut self, columns: Vec<usize>, name: String, change: &mut Change) -> Result<(), SqlError> {
        let alteration = &mut change.alteration;
        columns.iter().for_each(|at| alteration.set_not_null(*at));
        (alteration.new.primary_key, alteration.new.key_name) = (columns, name);
        alteration.rewrites = true;
        Ok(())
    }

    pub(super) fn drop_constraint(
        &mut self,
        name: &str,
        if_exists: bool,
        cascade: bool,
        change: &mut Change,
    ) -> Result<(), SqlError> {
        let alteration = &mut change.alteration;
        let table = &mut alteration.new;
        let is_key = table.key_name == name && !table.has_hidden_key();
        let is_unique = table.index(name).is_some_and(|index| index.is_constraint);
        let before = table.clone();
        if is_key {
            (table.primary_key, table.key_name, table.key_id) = (Vec::new(), String::new(), IndexId(0));
            alteration.rewrites = true;
        } else if is_unique {
            table.indexes.retain(|index| index.name != name);
        } else if table.checks.iter().any(|check| check.name == name) {
            table.checks.retain(|check| check.name != name);
            return Ok(());
        } else if table.foreign_keys.iter().any(|key| key.name == name) {
            table.foreign_keys.retain(|key| key.name != name);
            return Ok(());
        } else {
            let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
            if !if_exists {
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
            }
            self.skip(SqlState::SUCCESSFUL_COMPLETION, &message);
            return Ok(());
        }
        let mut found = of_key(&alteration.new, name, self.catalog);
        let what = format!("constraint {name} on table {}", alteration.new.name);
        if is_key {
            // A view may group by the key alone, and so depend on it.
            self.add_views(self.unbound_views(&before, &alteration.new), &what, &mut found);
        }
        self.drop_dependents(&what, found, cascade, change)
    }

    pub(super) fn rename_constraint(&mut self, old: &str, new: &str, table: &mut Table) -> Result<(), SqlError> {
        if !table.has_constraint(old) {
            return Err(missing_constraint(old, table));
        }
        let is_index = table.key_name == old || table.index(old).is_some();
        if is_index {
            self.check_free(new, table)?;
        }
        free_constraint(table, new)?;
        if table.key_name == old {
            new.clone_into(&mut table.key_name);
        }
        let keys = table.indexes.iter_mut().map(|index| &mut index.name);
        let checks = table.checks.iter_mut().map(|check| &mut check.name);
        let foreign = table.foreign_keys.iter_mut().map(|key| &mut key.name);
        keys.chain(checks).chain(foreign).filter(|name| *name == old).for_each(|name| new.clone_into(name));
        table.checks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }
}

pub(super) fn refuse_second_key(table: &Table) -> Result<(), SqlError> {
    if table.has_hidden_key() {
        return Ok(());
    }
    let message = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
    Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message))
}

fn missing_constraint(name: &str, table: &Table) -> SqlError {
    let message = format!("constraint \"{name}\" for table \"{}\" does not exist", table.name);
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}
