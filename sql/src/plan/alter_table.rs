//! Binding of ALTER TABLE: the descriptor that a table is to have, and what becomes of its rows.
//!
//! The actions of a statement come in PostgreSQL's order: what is dropped, types, new columns, properties of columns,
//! constraints. Each changes the descriptor that the ones before have left.

use std::sync::Arc;

use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, DropBehavior, Ident, RenameTableNameKind,
    Spanned, TableConstraint,
};
use sqlparser::tokenizer::Location;

use super::alter_constraint::refuse_second_key;
use super::binder::{Binder, Typed};
use super::bound_index::TableWrite;
use super::constraints::ForeignKeyDef;
use super::ddl::Parts;
use super::dependents::of_column;
use super::names::fold_ident;
use super::node::{Alteration, Body, Notice};
use super::table_change::{Change, place_of};
use crate::catalog::index_names;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::object::ObjectId;
use crate::parse::{IdentityChange, NO_LOCATION, identity_change};
use crate::table::{ColumnId, MAX_COLUMNS, Table};
use pgtypes::Datum;

const TAG: &str = "ALTER TABLE";
const ALTER_VIEW: &str = "ALTER VIEW";

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
                [AlterTableOperation::RenameColumn { old_column_name, new_column_name }] => {
                    self.rename_view_column((tag, &view), old_column_name, new_column_name)
                }
                [
                    AlterTableOperation::AlterColumn {
                        op: AlterColumnOperation::SetDefault { .. } | AlterColumnOperation::DropDefault,
                        ..
                    },
                ] => Err(self.unsupported("a default of a column of a view is", at)),
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
        let mut change = Change::of(table);
        let mut operations: Vec<&AlterTableOperation> = alter.operations.iter().collect();
        operations.sort_by_key(|operation| pass(operation));
        let (drops, others) = operations.split_at(operations.partition_point(|operation| pass(operation) < TYPES));
        let (types, later) = others.split_at(others.partition_point(|operation| pass(operation) == TYPES));
        drops.iter().try_for_each(|operation| self.alteration(operation, &mut change, at))?;
        let Alteration { old, new, .. } = &change.alteration;
        let gone = index_names(old).filter(|name| index_names(new).all(|kept| kept != *name));
        self.freed = gone.map(str::to_owned).collect();
        self.set_types(types, &mut change)?;
        self.add_and_change(later, &mut change, at)?;
        self.finish(change)
    }

    /// The actions behind changes of types. The foreign keys of new columns may refer to keys that come later.
    fn add_and_change(
        &mut self,
        operations: &[&AlterTableOperation],
        change: &mut Change,
        at: Location,
    ) -> Result<(), SqlError> {
        let mut foreign = Vec::new();
        for operation in operations {
            if pass(operation) >= FOREIGN_KEYS {
                self.refer_rows(&std::mem::take(&mut foreign), change)?;
            }
            match operation {
                AlterTableOperation::AddColumn { if_not_exists, column_def, column_position: None, .. } => {
                    foreign.extend(self.add_column(column_def, *if_not_exists, change)?);
                }
                operation => self.alteration(operation, change, at)?,
            }
        }
        self.refer_rows(&foreign, change)
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
        let mut change = Change::of(table);
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
            AlterTableOperation::SetOptionsParens { options } => self.storage_parameters(options, at),
            // There are no roles.
            AlterTableOperation::OwnerTo { .. } => Ok(()),
            _ => Err(self.unsupported("this form of ALTER TABLE is", at)),
        }
    }

    /// Adds a column. Returns its foreign keys, which are not added yet.
    fn add_column<'d>(
        &mut self,
        def: &'d ColumnDef,
        if_not_exists: bool,
        change: &mut Change,
    ) -> Result<Vec<ForeignKeyDef<'d>>, SqlError> {
        let (alteration, name) = (&mut change.alteration, fold_ident(&def.name));
        let taken = alteration.sequence_names();
        let table = &mut alteration.new;
        if table.column(&name).is_some() {
            let message = format!("column \"{name}\" of relation \"{}\" already exists", table.name);
            if !if_not_exists {
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            self.skip(SqlState::DUPLICATE_COLUMN, &message);
            return Ok(Vec::new());
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
        Ok(parts.foreign)
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

    fn alter_column(&mut self, ident: &Ident, op: &AlterColumnOperation, change: &mut Change) -> Result<(), SqlError> {
        let (name, alteration) = (fold_ident(ident), &mut change.alteration);
        let table = &mut alteration.new;
        let place = place_of(&name, table)?;
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
                let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
                Err(match op {
                    AlterColumnOperation::DropDefault => {
                        error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.")
                    }
                    _ => error,
                })
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
            AlterColumnOperation::SetDataType { .. } => Err(SqlError::internal("types change before other properties")),
            AlterColumnOperation::AddGenerated { generated_as, sequence_options } => {
                match identity_change(sequence_options.as_deref()) {
                    IdentityChange::Add(options) => self.add_identity(place, *generated_as, options, alteration),
                    IdentityChange::Set(options) => self.set_identity(place, options, alteration),
                    IdentityChange::DropExpression { if_exists } => {
                        self.drop_expression(place, if_exists, &mut alteration.new)
                    }
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

/// The place of changes of types in the order of a statement.
const TYPES: u8 = 1;
/// The place of new foreign keys.
const FOREIGN_KEYS: u8 = 5;

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
            IdentityChange::Drop { .. } | IdentityChange::DropExpression { .. } => 0,
            IdentityChange::Add(_) => FOREIGN_KEYS,
            IdentityChange::Set(_) => 6,
        },
        AlterTableOperation::AddColumn { .. } => 2,
        AlterTableOperation::AlterColumn { .. } => 3,
        AlterTableOperation::AddConstraint { constraint: TableConstraint::ForeignKey(_), .. } => FOREIGN_KEYS,
        AlterTableOperation::AddConstraint { .. } => 4,
        _ => 6,
    }
}

fn is_cascade(behavior: Option<&DropBehavior>) -> bool {
    behavior == Some(&DropBehavior::Cascade)
}

/// 42809 for an action of ALTER TABLE on a view.
fn not_of_views(operation: Option<&AlterTableOperation>, name: &str) -> SqlError {
    let action = match operation {
        Some(AlterTableOperation::AddColumn { .. }) => "ADD COLUMN",
        Some(AlterTableOperation::DropColumn { .. }) => "DROP COLUMN",
        Some(AlterTableOperation::AddConstraint { .. }) => "ADD CONSTRAINT",
        Some(AlterTableOperation::DropConstraint { .. }) => "DROP CONSTRAINT",
        Some(AlterTableOperation::AlterColumn { op: AlterColumnOperation::SetNotNull, .. }) => {
            "ALTER COLUMN ... SET NOT NULL"
        }
        Some(AlterTableOperation::AlterColumn { op: AlterColumnOperation::DropNotNull, .. }) => {
            "ALTER COLUMN ... DROP NOT NULL"
        }
        Some(AlterTableOperation::AlterColumn { op: AlterColumnOperation::SetDataType { .. }, .. }) => {
            "ALTER COLUMN ... SET DATA TYPE"
        }
        _ => return SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a table")),
    };
    let message = format!("ALTER action {action} cannot be performed on relation \"{name}\"");
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).detail("This operation is not supported for views.")
}
