//! Binding of ALTER TABLE: the descriptor that a table is to have, and what becomes of its rows.
//!
//! The actions of a statement come in PostgreSQL's order: what is dropped, types, new columns, properties of columns,
//! constraints. Each changes the descriptor that the ones before have left.

use std::sync::Arc;

use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, ConstraintUsingIndex, DataType, DropBehavior,
    Expr as Ast, Ident, PrimaryKeyConstraint, RenameTableNameKind, Spanned, TableConstraint, UniqueConstraint,
};
use sqlparser::tokenizer::Location;

use super::assign::bind_default;
use super::binder::{Binder, Scope, Typed};
use super::bound_index::TableWrite;
use super::constraints::{CheckDef, ForeignKeyDef, check_types, free_constraint};
use super::ddl::Parts;
use super::dependents::{Dependents, of_column, of_key, without_column};
use super::index::{bind_indexes, normal_condition, stored_condition};
use super::names::fold_ident;
use super::node::{Alteration, Body, Notice};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::object::ObjectId;
use crate::parse::{IdentityChange, NO_LOCATION, identity_change, start_of};
use crate::table::{ColumnId, ForeignKey, IndexId, MAX_COLUMNS, Table};
use pgtypes::Datum;
use pgtypes::cast::{CastContext, cast_context};

const TAG: &str = "ALTER TABLE";
const ALTER_VIEW: &str = "ALTER VIEW";

/// A change under construction.
struct Change {
    alteration: Alteration,
    /// The columns of the new rows, over the old ones.
    row: Vec<Expr>,
    /// What the change drops of other tables.
    dropped: Dependents,
}

impl Binder<'_> {
    /// Binds ALTER TABLE.
    pub(super) fn alter_table(&mut self, alter: &AlterTable) -> Result<Body, SqlError> {
        let at = alter.name.span().start;
        if alter.location.is_some() || alter.on_cluster.is_some() || alter.table_type.is_some() {
            return Err(self.unsupported("this form of ALTER TABLE is", at));
        }
        let of_view = self.statement.command() == ALTER_VIEW;
        let tag = if of_view { ALTER_VIEW } else { TAG };
        if let Some(view) = self.find_view(&alter.name).map_err(|error| error.at(0))? {
            return match alter.operations.as_slice() {
                [
                    AlterTableOperation::RenameTable {
                        table_name: RenameTableNameKind::As(to) | RenameTableNameKind::To(to),
                    },
                ] => self.rename_view((tag, &view), to),
                operations => Err(not_of_views(operations.first(), view.name())),
            };
        }
        let table = match self.table(&alter.name) {
            Err(error) if error.code == SqlState::UNDEFINED_TABLE && alter.if_exists => {
                self.skip(SqlState::SUCCESSFUL_COMPLETION, &error.message);
                return Ok(Body::AlterTables(tag, Vec::new()));
            }
            Ok(table) if of_view => {
                let message = format!("\"{}\" is not a view", table.name);
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
            Err(error) if error.code == SqlState::WRONG_OBJECT_TYPE => {
                return self.alter_index_by_name(alter, SqlError { position: None, ..error });
            }
            Err(error) => return Err(SqlError { position: None, ..error }),
            Ok(table) => table,
        };
        self.target = table.schema;
        let row = (0..table.columns.len()).map(Expr::Column).collect();
        let mut change = Change { alteration: Alteration::of(table), row, dropped: Dependents::default() };
        let mut operations: Vec<&AlterTableOperation> = alter.operations.iter().collect();
        operations.sort_by_key(|operation| pass(operation));
        let typed = operations.partition_point(|operation| pass(operation) <= TYPES);
        let (first, later) = operations.split_at(typed);
        first.iter().try_for_each(|operation| self.alteration(operation, &mut change, at))?;
        if first.last().is_some_and(|operation| pass(operation) == TYPES) {
            self.check_constraints(&change.alteration.new)?;
        }
        later.iter().try_for_each(|operation| self.alteration(operation, &mut change, at))?;
        self.finish(change)
    }

    fn finish(&mut self, change: Change) -> Result<Body, SqlError> {
        let Change { mut alteration, row, dropped } = change;
        alteration.dropped = dropped.objects().to_vec();
        let is_same = row.iter().enumerate().all(|(at, expr)| *expr == Expr::Column(at));
        if alteration.new == *alteration.old && is_same {
            let changes = if alteration.altered.is_empty() { Vec::new() } else { vec![alteration] };
            return Ok(Body::AlterTables(TAG, changes));
        }
        // All that is stored as text must still mean something.
        TableWrite::bind(Arc::new(alteration.new.clone()), self.catalog)?;
        self.check_views(&alteration.new, &alteration.dropped)?;
        alteration.row = (!is_same || row.len() != alteration.old.columns.len()).then_some(row);
        let mut changes = vec![alteration];
        changes.extend(dropped.alterations(self.catalog)?);
        Ok(Body::AlterTables(TAG, changes))
    }

    /// The changes that drop columns of a table with all that depends on them.
    pub(super) fn without_columns(&mut self, table: Arc<Table>, names: &[String]) -> Result<Vec<Alteration>, SqlError> {
        self.target = table.schema;
        let row = (0..table.columns.len()).map(Expr::Column).collect();
        let mut change = Change { alteration: Alteration::of(table), row, dropped: Dependents::default() };
        for name in names {
            self.drop_column(&Ident::with_quote('"', name), true, true, &mut change)?;
        }
        match self.finish(change)? {
            Body::AlterTables(_, changes) => Ok(changes),
            _ => Err(SqlError::internal("columns are dropped by another change")),
        }
    }

    /// A notice that something is left out.
    pub(super) fn skip(&mut self, code: SqlState, message: &str) {
        self.notices.push(Notice { code, message: format!("{message}, skipping"), is_warning: false });
    }

    fn alteration(
        &mut self,
        operation: &AlterTableOperation,
        change: &mut Change,
        at: Location,
    ) -> Result<(), SqlError> {
        match operation {
            AlterTableOperation::AddConstraint { constraint, not_valid: false } => {
                self.add_constraint(constraint, change)
            }
            AlterTableOperation::AddConstraint { .. } => Err(self.unsupported("NOT VALID is", at)),
            AlterTableOperation::DropConstraint { if_exists, name, drop_behavior } => {
                self.drop_constraint(&fold_ident(name), *if_exists, is_cascade(drop_behavior.as_ref()), change)
            }
            AlterTableOperation::AddColumn { if_not_exists, column_def, column_position: None, .. } => {
                self.add_column(column_def, *if_not_exists, change)
            }
            AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                let cascade = is_cascade(drop_behavior.as_ref());
                column_names.iter().try_for_each(|name| self.drop_column(name, *if_exists, cascade, change))
            }
            AlterTableOperation::AlterColumn { column_name, op } => self.alter_column(column_name, op, change),
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                if let Some(at) = change.alteration.old.column(&fold_ident(old_column_name)) {
                    let table = &change.alteration.old;
                    self.refuse_read_name("column", &self.views_of_column(table, table.columns[at].id)?)?;
                }
                self.rename_column(old_column_name, new_column_name, &mut change.alteration)
            }
            AlterTableOperation::RenameTable {
                table_name: RenameTableNameKind::To(name) | RenameTableNameKind::As(name),
            } => {
                let parts = self.name_parts(name)?;
                let [name] = parts.as_slice() else { return Err(self.unsupported("this name is", at)) };
                let new = &mut change.alteration.new;
                self.check_free_relation(name)?;
                self.refuse_read_name("table", &self.views_of(ObjectId(new.id.0)))?;
                self.rename_table(name, new)
            }
            AlterTableOperation::RenameConstraint { old_name, new_name } => {
                let new = &mut change.alteration.new;
                self.rename_constraint(&fold_ident(old_name), &fold_ident(new_name), new)
            }
            AlterTableOperation::ValidateConstraint { name } => {
                let (name, table) = (fold_ident(name), &change.alteration.new);
                // None is NOT VALID.
                if table.has_constraint(&name) {
                    return Ok(());
                }
                let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
                Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
            }
            _ => Err(self.unsupported("this form of ALTER TABLE is", at)),
        }
    }

    fn add_constraint(&mut self, constraint: &TableConstraint, change: &mut Change) -> Result<(), SqlError> {
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
    fn check_rows(&mut self, defs: &[CheckDef<'_>], change: &mut Change) -> Result<(), SqlError> {
        let alteration = &mut change.alteration;
        let before = alteration.new.checks.len();
        self.add_checks(&mut alteration.new, defs)?;
        let added = alteration.new.checks.get(before..).unwrap_or_default();
        alteration.validates.checks.extend(added.iter().map(|check| check.name.clone()));
        Ok(())
    }

    /// Adds foreign keys that hold for the rows.
    fn refer_rows(&mut self, defs: &[ForeignKeyDef<'_>], change: &mut Change) -> Result<(), SqlError> {
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
    fn check_free(&self, name: &str, table: &Table) -> Result<(), SqlError> {
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
        self.plain_constraint(key.index_type.as_ref(), key.index_options.is_empty(), at)?;
        let position = self.constraint_position(key.name.as_ref(), at, "primary");
        let place = |name: &str| table.column(name);
        let columns = self.constraint_columns(&key.columns, place, "primary key constraint", (at, position))?;
        let name = key.name.as_ref().map(fold_ident);
        self.set_primary_key(columns.into_iter().map(|(at, _)| at).collect(), name, change)
    }

    fn set_primary_key(
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

    fn drop_constraint(
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
        let found = of_key(&alteration.new, name, self.catalog);
        let what = format!("constraint {name} on table {}", alteration.new.name);
        self.drop_dependents(&what, found, cascade, change)
    }

    /// Drops what depends on something that is dropped, or refuses to.
    fn drop_dependents(
        &mut self,
        what: &str,
        found: Dependents,
        cascade: bool,
        change: &mut Change,
    ) -> Result<(), SqlError> {
        if let Some(message) = found.check(what, cascade)? {
            self.notices.push(Notice { code: SqlState::SUCCESSFUL_COMPLETION, message, is_warning: false });
        }
        let own = found.columns.clone();
        change.dropped.add(found, &mut change.alteration.new);
        for column in own {
            if let Some(at) = change.alteration.new.position_of(column) {
                self.remove_column(at, change)?;
            }
        }
        Ok(())
    }

    fn add_column(&mut self, def: &ColumnDef, if_not_exists: bool, change: &mut Change) -> Result<(), SqlError> {
        let (alteration, name) = (&mut change.alteration, fold_ident(&def.name));
        let taken = alteration.sequence_names();
        let table = &mut alteration.new;
        if table.column(&name).is_some() {
            let message = format!("column \"{name}\" of relation \"{}\" already exists", table.name);
            if !if_not_exists {
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            self.skip(SqlState::DUPLICATE_COLUMN, &message);
            return Ok(());
        }
        let id = table.last_column.0.saturating_add(1);
        if usize::from(id) > MAX_COLUMNS {
            let message = format!("tables can have at most {MAX_COLUMNS} columns");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        let mut parts = Parts::default();
        let mut column = self.new_column(&table.name, def, &table.columns, &mut parts)?;
        column.id = ColumnId(id);
        let at = table.columns.len();
        table.last_column = column.id;
        table.columns.push(column);
        self.column_expressions(table, at, &parts.defaults, &parts.generated)?;
        let column = &table.columns[at];
        let value = self.default_of(column)?;
        let value = self.of_domain(Typed::new(value, column.ty, NO_LOCATION), column.domain)?.expr;
        let mut rewrites = value != Expr::Const(Datum::Null) || column.generated.is_some();
        if let Some(sequence) = self.sequence_of(def, (&table.name, column), &taken)? {
            alteration.sequences.push((column.id, sequence));
            rewrites = true;
        } else if column.not_null {
            alteration.validates.not_null.push(column.id);
        }
        alteration.rewrites |= rewrites;
        change.row.push(value);
        if parts.key.seen {
            refuse_second_key(&change.alteration.new)?;
            self.set_primary_key(vec![at], parts.key.name.take(), change)?;
        }
        for unique in &parts.unique.columns {
            let table = &mut change.alteration.new;
            let taken: Vec<String> = table.indexes.iter().map(|index| index.name.clone()).collect();
            let index = self.unique_column(&table.name, (unique, &name), &taken);
            self.check_free(&index.name, table)?;
            table.indexes.push(index);
        }
        self.check_rows(&parts.checks, change)?;
        self.refer_rows(&parts.foreign, change)
    }

    fn drop_column(
        &mut self,
        ident: &Ident,
        if_exists: bool,
        cascade: bool,
        change: &mut Change,
    ) -> Result<(), SqlError> {
        let (name, table) = (fold_ident(ident), &change.alteration.new);
        let Some(at) = table.column(&name) else {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            if !if_exists {
                return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
            }
            self.skip(SqlState::SUCCESSFUL_COMPLETION, &message);
            return Ok(());
        };
        let mut found = of_column(table, at, self.catalog)?;
        for id in found.columns.iter().copied().chain([table.columns[at].id]).collect::<Vec<_>>() {
            if let Some(at) = table.position_of(id) {
                self.add_objects((table, &table.columns[at]), &mut found)?;
            }
        }
        let what = format!("column {name} of table {}", table.name);
        self.drop_dependents(&what, found, cascade, change)?;
        match change.alteration.new.column(&name) {
            Some(at) => self.remove_column(at, change),
            None => Ok(()),
        }
    }

    /// Removes a column with the indexes and constraints over it.
    fn remove_column(&mut self, at: usize, change: &mut Change) -> Result<(), SqlError> {
        let had_key = !change.alteration.new.has_hidden_key();
        let id = change.alteration.new.columns.get(at).map(|column| column.id);
        change.alteration.sequences.retain(|(owner, _)| Some(*owner) != id);
        without_column(&mut change.alteration.new, at, self.catalog)?;
        change.row.remove(at);
        let alteration = &mut change.alteration;
        alteration.rewrites |= had_key && alteration.new.has_hidden_key();
        Ok(())
    }

    fn alter_column(&mut self, ident: &Ident, op: &AlterColumnOperation, change: &mut Change) -> Result<(), SqlError> {
        let (name, alteration) = (fold_ident(ident), &mut change.alteration);
        let table = &mut alteration.new;
        let Some(place) = table.column(&name) else {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        let column = &mut table.columns[place];
        let is_generated = column.generated.is_some();
        match op {
            AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropDefault
                if column.identity.is_some() =>
            {
                let message = format!("column \"{name}\" of relation \"{}\" is an identity column", table.name);
                let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
                Err(match op {
                    AlterColumnOperation::DropDefault => {
                        error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.")
                    }
                    _ => error,
                })
            }
            AlterColumnOperation::DropNotNull if column.identity.is_some() => {
                let message = format!("column \"{name}\" of relation \"{}\" is an identity column", table.name);
                Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
            }
            AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropDefault if is_generated => {
                let message = format!("column \"{name}\" of relation \"{}\" is a generated column", table.name);
                Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
            }
            AlterColumnOperation::SetDefault { value } => {
                let text = self.default_of_tree(value, column);
                column.default = text.map_err(|error| SqlError { position: None, ..error })?;
                Ok(())
            }
            AlterColumnOperation::DropDefault => {
                column.default = None;
                Ok(())
            }
            AlterColumnOperation::SetNotNull => {
                alteration.set_not_null(place);
                Ok(())
            }
            AlterColumnOperation::DropNotNull if table.primary_key.contains(&place) => {
                let message = format!("column \"{name}\" is in a primary key");
                Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message))
            }
            AlterColumnOperation::DropNotNull => {
                column.not_null = false;
                Ok(())
            }
            AlterColumnOperation::SetDataType { data_type, using, .. } => {
                self.set_type(place, data_type, using.as_ref(), change)
            }
            AlterColumnOperation::AddGenerated { generated_as, sequence_options } => {
                match identity_change(sequence_options.as_deref()) {
                    IdentityChange::Add(options) => self.add_identity(place, *generated_as, options, alteration),
                    IdentityChange::Set(options) => self.set_identity(place, options, alteration),
                    IdentityChange::Drop { if_exists } => self.drop_identity(place, if_exists, change),
                }
            }
        }
    }

    fn drop_identity(&mut self, place: usize, if_exists: bool, change: &mut Change) -> Result<(), SqlError> {
        let found = self.identity_dependents(place, if_exists, &change.alteration.new)?;
        let Some((found, what)) = found else { return Ok(()) };
        self.drop_dependents(&what, found, false, change)?;
        let column = &mut change.alteration.new.columns[place];
        (column.identity, column.default) = (None, None);
        Ok(())
    }

    fn set_type(
        &mut self,
        place: usize,
        data_type: &DataType,
        using: Option<&Ast>,
        change: &mut Change,
    ) -> Result<(), SqlError> {
        let named = self.type_named(data_type, NO_LOCATION)?;
        let (ty, shown) = (named.ty, self.named_type_text(named));
        let alteration = &mut change.alteration;
        let column = alteration.new.columns[place].clone();
        self.refuse_read_column(&alteration.new, &column)?;
        if column.identity.is_some() && ty != column.ty {
            return Err(self.unsupported("another type of an identity column is", NO_LOCATION));
        }
        let found = of_column(&alteration.new, place, self.catalog)?;
        if let Some(user) = found.columns.first().and_then(|id| alteration.new.position_of(*id)) {
            let message = "cannot alter type of a column used by a generated column";
            let user = &alteration.new.columns[user].name;
            let detail = format!("Column \"{}\" is used by generated column \"{user}\".", column.name);
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(detail));
        }
        let scope = Scope::of(&alteration.old, None);
        let word = Ast::Identifier(Ident::with_quote('"', column.name.clone()));
        let (clause, refused) = (self.clause, self.refuses_queries.replace("transform expression"));
        self.clause = "transform expressions";
        let value = self.expr(using.unwrap_or(&word), &scope);
        (self.clause, self.refuses_queries) = (clause, refused);
        let value = value?;
        let Some(value) = self.coerce(value, ty, CastContext::Assignment)? else {
            return Err(match using {
                None => {
                    let message = format!("column \"{}\" cannot be cast automatically to type {shown}", column.name);
                    let hint = format!("You might need to specify \"USING {}::{shown}\".", quoted(&column.name));
                    SqlError::new(SqlState::DATATYPE_MISMATCH, message).hint(hint)
                }
                Some(_) => {
                    let message = format!(
                        "result of USING clause for column \"{}\" cannot be cast automatically to type {shown}",
                        column.name,
                    );
                    let hint = "You might need to add an explicit cast.";
                    SqlError::new(SqlState::DATATYPE_MISMATCH, message).hint(hint)
                }
            });
        };
        let value = self.of_domain(value, named.domain)?;
        let new = &mut alteration.new.columns[place];
        (new.ty, new.domain) = (ty, named.domain);
        let is_assignable = cast_context(column.ty, ty).is_some_and(|needed| needed <= CastContext::Assignment);
        if let Some(text) = &new.default
            && (!is_assignable || bind_default(text, new, self.catalog).is_err())
        {
            let message = format!("default for column \"{}\" cannot be cast automatically to type {shown}", new.name);
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        // What the new type only calls by another name stays as it is stored.
        alteration.rewrites |= change.row.get(place) != Some(&value.expr) || column.generated.is_some();
        if column.generated.is_none()
            && let Some(slot) = change.row.get_mut(place)
        {
            *slot = value.expr;
        }
        // Casts in checks may be needed no more.
        let table = change.alteration.new.clone();
        for check in &mut change.alteration.new.checks {
            if let Some(text) = normal_condition(&check.text, &table, self.catalog) {
                check.text = text;
            }
        }
        Ok(())
    }

    /// Fails if columns have types that an index or a constraint cannot be made of any more. PostgreSQL makes the
    /// indexes again, then the table's own constraints in the order in which they came, then those of other tables.
    fn check_constraints(&self, table: &Table) -> Result<(), SqlError> {
        bind_indexes(table, self.catalog)?;
        let checks = table.checks.iter().map(|check| check.id);
        let mut own: Vec<_> = checks.chain(table.foreign_keys.iter().map(|key| key.id)).collect();
        own.sort_unstable();
        for id in own {
            for check in table.checks.iter().filter(|check| check.id == id) {
                stored_condition(&check.text, table, self.catalog)?;
            }
            for key in table.foreign_keys.iter().filter(|key| key.id == id) {
                let other = self.catalog.by_id(key.parent).map(|parent| &**parent);
                let parent = if key.parent == table.id { Some(table) } else { other };
                parent.map_or(Ok(()), |parent| check_key_types(key, table, parent))?;
            }
        }
        for child in table.referenced_by.iter().filter_map(|id| self.catalog.by_id(*id)) {
            for key in child.foreign_keys.iter().filter(|key| key.parent == table.id && child.id != table.id) {
                check_key_types(key, child, table)?;
            }
        }
        Ok(())
    }

    fn rename_constraint(&mut self, old: &str, new: &str, table: &mut Table) -> Result<(), SqlError> {
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

    /// ALTER TABLE of an index: PostgreSQL renames it.
    fn alter_index_by_name(&mut self, alter: &AlterTable, error: SqlError) -> Result<Body, SqlError> {
        match alter.operations.as_slice() {
            [
                AlterTableOperation::RenameTable {
                    table_name: RenameTableNameKind::To(name) | RenameTableNameKind::As(name),
                },
            ] => self.rename_index(&alter.name, name, TAG),
            _ => Err(error),
        }
    }
}

impl Alteration {
    /// Marks a column as NOT NULL, which the rows are checked for.
    fn set_not_null(&mut self, at: usize) {
        if let Some(column) = self.new.columns.get_mut(at)
            && !column.not_null
        {
            column.not_null = true;
            self.validates.not_null.push(column.id);
        }
    }
}

/// 42804 for a foreign key whose columns cannot be compared any more.
fn check_key_types(key: &ForeignKey, child: &Table, parent: &Table) -> Result<(), SqlError> {
    for (own, there) in key.columns.iter().zip(&key.parent_columns) {
        if let Some(there) = parent.position_of(*there) {
            check_types(&key.name, &child.columns[*own], &parent.columns[there])?;
        }
    }
    Ok(())
}

/// The place of changes of types in the order of a statement.
const TYPES: u8 = 1;

/// The place of an action in the order of a statement.
fn pass(operation: &AlterTableOperation) -> u8 {
    match operation {
        AlterTableOperation::DropColumn { .. }
        | AlterTableOperation::DropConstraint { .. }
        | AlterTableOperation::AlterColumn {
            op: AlterColumnOperation::DropDefault | AlterColumnOperation::DropNotNull,
            ..
        } => 0,
        AlterTableOperation::AlterColumn { op: AlterColumnOperation::SetDataType { .. }, .. } => TYPES,
        AlterTableOperation::AlterColumn {
            op: AlterColumnOperation::AddGenerated { sequence_options, .. }, ..
        } => match identity_change(sequence_options.as_deref()) {
            IdentityChange::Drop { .. } => 0,
            IdentityChange::Add(_) => 5,
            IdentityChange::Set(_) => 6,
        },
        AlterTableOperation::AddColumn { .. } => 2,
        AlterTableOperation::AlterColumn { .. } => 3,
        AlterTableOperation::AddConstraint { constraint: TableConstraint::ForeignKey(_), .. } => 5,
        AlterTableOperation::AddConstraint { .. } => 4,
        _ => 6,
    }
}

fn is_cascade(behavior: Option<&DropBehavior>) -> bool {
    behavior == Some(&DropBehavior::Cascade)
}

fn refuse_second_key(table: &Table) -> Result<(), SqlError> {
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

fn quoted(name: &str) -> String {
    crate::table::quote_identifier(name)
}

/// 42809 for an action of ALTER TABLE on a view.
fn not_of_views(operation: Option<&AlterTableOperation>, name: &str) -> SqlError {
    let action = match operation {
        Some(AlterTableOperation::AddColumn { .. }) => "ADD COLUMN",
        Some(AlterTableOperation::DropColumn { .. }) => "DROP COLUMN",
        Some(AlterTableOperation::AddConstraint { .. }) => "ADD CONSTRAINT",
        Some(AlterTableOperation::DropConstraint { .. }) => "DROP CONSTRAINT",
        _ => return SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a table")),
    };
    let message = format!("ALTER action {action} cannot be performed on relation \"{name}\"");
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).detail("This operation is not supported for views.")
}
