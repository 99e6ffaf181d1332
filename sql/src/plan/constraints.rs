//! Binding of CHECK, of generated columns and of foreign keys, for CREATE TABLE and ALTER TABLE.
//!
//! The catalog stores expressions as SQL. What is stored is bound again at once, and must be the same expression.

use std::sync::Arc;

use sqlparser::ast::{
    ConstraintCharacteristics, ConstraintReferenceMatchKind, DeferrableInitial, Expr as Ast, ForeignKeyConstraint,
    Ident, ReferentialAction, Spanned,
};
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Scope};
use super::found::ColumnRead;
use super::index::{is_immutable, stored_condition, stored_generated};
use super::names::{fold_ident, object_name};
use crate::error::{SqlError, SqlState};
use crate::parse::{start_of, text_of};
use crate::table::{Check, Column, ConstraintId, ForeignKey, MAX_INDEX_COLUMNS, ReferenceAction, Table, TableId};
use pgtypes::functions::resolve;

/// A CHECK of a statement: its name, if it has one, and its condition.
pub(super) type CheckDef<'t> = (Option<&'t Ident>, &'t Ast);

/// A foreign key of a statement: its name, its columns, and the rest.
pub(super) type ForeignKeyDef<'t> = (Option<&'t Ident>, Vec<&'t Ident>, &'t ForeignKeyConstraint);

impl Binder<'_> {
    /// Binds an expression that the catalog stores. `clause` and `what` name it in errors. Returns the result with the
    /// places and locations of the columns that it reads.
    fn stored<T>(
        &mut self,
        (clause, what): (&'static str, &'static str),
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<(T, Vec<ColumnRead>), SqlError> {
        let clause = std::mem::replace(&mut self.clause, clause);
        let refused = self.refuses_queries.replace(what);
        let aggregates = std::mem::take(&mut self.aggregates);
        let bound = bind(self);
        let read = std::mem::replace(&mut self.aggregates, aggregates).references.into_iter();
        (self.clause, self.refuses_queries) = (clause, refused);
        Ok((bound?, read.map(|(read, _)| read).collect()))
    }

    /// Binds a CHECK of a table. Returns its text, and the places of the columns that it reads, each once.
    fn check_text(&mut self, table: &Table, ast: &Ast) -> Result<(String, Vec<usize>), SqlError> {
        let bound = self.stored(("check constraints", "check constraint"), |binder| {
            binder.condition(ast, &Scope::of_columns(table), "CHECK")
        });
        let (condition, read) = bound?;
        // A row is checked without a session.
        if condition.takes_locks() || condition.uses_sequences() {
            return Err(self.unsupported("a function of sequences or of locks in a CHECK is", start_of(ast)));
        }
        let is_same = |text: &str| stored_condition(text, table, self.catalog).is_ok_and(|again| again == condition);
        let normal = self.stored(("check constraints", "check constraint"), |binder| {
            Ok(binder.normal_text(ast, &Scope::of_columns(table)))
        });
        let is_condition = |text: &str| stored_condition(text, table, self.catalog).is_ok();
        let normal = normal.ok().and_then(|(normal, _)| normal);
        let normal = normal.filter(|normal| is_same(&normal.text) || normal.has_list && is_condition(&normal.text));
        let text = match normal {
            Some(normal) => normal.text,
            None => Some(text_of(ast))
                .filter(|text| is_same(text))
                .ok_or_else(|| self.unsupported("this CHECK is", start_of(ast)))?,
        };
        let scope = Scope::of_columns(table);
        let fixed = self.with_ids(text, |binder, ast| binder.condition(ast, &scope, "CHECK"))?;
        let text = fixed.ok_or_else(|| self.unsupported("this CHECK is", start_of(ast)))?;
        let mut places = Vec::new();
        for (place, _) in read {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Ok((text, places))
    }

    /// Adds CHECKs to a table under construction.
    pub(super) fn add_checks(&mut self, table: &mut Table, defs: &[CheckDef<'_>]) -> Result<(), SqlError> {
        for (name, ast) in defs {
            let (text, places) = self.check_text(table, ast)?;
            let read: Vec<&Column> = places.iter().filter_map(|place| table.columns.get(*place)).collect();
            let column = if let [only] = read.as_slice() { Some(only.name.clone()) } else { None };
            let columns = read.iter().map(|column| column.id).collect();
            let name = match name {
                Some(ident) => {
                    let name = fold_ident(ident);
                    if table.id == TableId(0) && table.checks.iter().any(|check| check.name == name) {
                        let message = format!("check constraint \"{name}\" already exists");
                        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
                    }
                    free_constraint(table, &name)?;
                    name
                }
                None => constraint_name(table, column.as_deref(), "check"),
            };
            table.checks.push(Check { id: ConstraintId(0), name, text, columns });
        }
        Ok(())
    }

    /// Binds GENERATED ALWAYS AS (...) STORED of a column of a table. Returns its text.
    pub(super) fn generated_text(&mut self, table: &Table, at: usize, ast: &Ast) -> Result<String, SqlError> {
        let column = table.columns.get(at).ok_or_else(|| SqlError::internal("a column is missing"))?;
        let what = ("column generation expressions", "column generation expression");
        let (value, read) = self.stored(what, |binder| {
            let value = binder.expr(ast, &Scope::of_columns(table))?;
            binder.assign_default(value, column)
        })?;
        let is_generated =
            |place: usize| place == at || table.columns.get(place).is_some_and(|c| c.generated.is_some());
        if let Some((place, location)) = read.iter().find(|(place, _)| is_generated(*place)) {
            let name = table.columns.get(*place).map_or("", |column| &column.name);
            let message = format!("cannot use generated column \"{name}\" in column generation expression");
            let error = self.error(SqlState::INVALID_OBJECT_DEFINITION, message, *location);
            return Err(error.detail("A generated column cannot reference another generated column."));
        }
        if !is_immutable(&value) {
            let message = "generation expression is not immutable";
            return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
        }
        let is_same =
            |text: &String| stored_generated(text, table, column, self.catalog).is_ok_and(|again| again == value);
        let ty = column.ty;
        let normal = self.stored(what, |binder| Ok(binder.normal_value(ast, &Scope::of_columns(table), ty)));
        let normal = normal.ok().and_then(|(normal, _)| normal).filter(is_same);
        let text = normal.or_else(|| Some(text_of(ast)).filter(is_same));
        let scope = Scope::of_columns(table);
        let value = |binder: &mut Binder<'_>, ast: &Ast| {
            let value = binder.expr(ast, &scope)?;
            binder.assign_default(value, column)
        };
        let text = text.map(|text| self.with_ids(text, value)).transpose()?.flatten();
        text.ok_or_else(|| self.unsupported("this generation expression is", start_of(ast)))
    }

    /// Adds foreign keys to a table under construction, or to one that exists.
    pub(super) fn add_foreign_keys(&mut self, table: &mut Table, defs: &[ForeignKeyDef<'_>]) -> Result<(), SqlError> {
        for def in defs {
            let key = self.foreign_key(table, def)?;
            table.foreign_keys.push(key);
        }
        Ok(())
    }

    fn foreign_key(&mut self, table: &Table, def: &ForeignKeyDef<'_>) -> Result<ForeignKey, SqlError> {
        let (name, columns, ast) = def;
        let at = ast.foreign_table.span().start;
        let is_deferrable = self.characteristics(ast.characteristics.as_ref(), at)?;
        let is_full = match &ast.match_kind {
            None | Some(ConstraintReferenceMatchKind::Simple) => false,
            Some(ConstraintReferenceMatchKind::Full) => true,
            Some(ConstraintReferenceMatchKind::Partial) => {
                let message = "MATCH PARTIAL not yet implemented";
                let position = self.position_after(at, "match");
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(position));
            }
        };
        let words = self.name_parts(&ast.foreign_table)?;
        let is_new = table.id == TableId(0) && words.last() == Some(&table.name);
        let parent: Arc<Table> = if is_new {
            Arc::new(table.clone())
        } else {
            self.table(&ast.foreign_table).map_err(|error| SqlError { position: None, ..error })?
        };
        let (is_temporary, is_parent) = (self.is_temporary(table.schema), self.is_temporary(parent.schema));
        if is_temporary != is_parent {
            let kind = if is_temporary { "temporary" } else { "permanent" };
            let message = format!("constraints on {kind} tables may reference only {kind} tables");
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        let parent = if parent.id == table.id { Arc::new(table.clone()) } else { parent };
        let own = key_columns(table, columns.iter().copied())?;
        let theirs = if ast.referred_columns.is_empty() {
            if parent.has_hidden_key() {
                let message = format!("there is no primary key for referenced table \"{}\"", parent.name);
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
            }
            parent.primary_key.clone()
        } else {
            key_columns(&parent, &ast.referred_columns)?
        };
        if own.len() != theirs.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(SqlError::new(SqlState::INVALID_FOREIGN_KEY, message));
        }
        if parent.key_of(&theirs).is_none() {
            let message =
                format!("there is no unique constraint matching given keys for referenced table \"{}\"", parent.name);
            return Err(SqlError::new(SqlState::INVALID_FOREIGN_KEY, message));
        }
        let name = match name {
            Some(ident) => {
                let name = fold_ident(ident);
                free_constraint(table, &name)?;
                name
            }
            None => {
                let names: Vec<&str> = own.iter().map(|at| table.columns[*at].name.as_str()).collect();
                constraint_name(table, Some(&names.join("_")), "fkey")
            }
        };
        for (at, there) in own.iter().zip(&theirs) {
            check_types(&name, &table.columns[*at], &parent.columns[*there])?;
        }
        Ok(ForeignKey {
            id: ConstraintId(0),
            name,
            columns: own,
            parent: parent.id,
            parent_columns: theirs.iter().map(|at| parent.columns[*at].id).collect(),
            on_delete: action(ast.on_delete.as_ref()),
            on_update: action(ast.on_update.as_ref()),
            is_full,
            is_deferrable,
        })
    }

    /// Whether a constraint is DEFERRABLE. 0A000 for INITIALLY DEFERRED.
    fn characteristics(
        &self,
        characteristics: Option<&ConstraintCharacteristics>,
        at: Location,
    ) -> Result<bool, SqlError> {
        let Some(given) = characteristics else { return Ok(false) };
        if given.initially == Some(DeferrableInitial::Deferred) {
            if given.deferrable == Some(false) {
                let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
                return Err(self.error(SqlState::SYNTAX_ERROR, message, at));
            }
            return Err(self.unsupported("INITIALLY DEFERRED is", at));
        }
        if given.enforced == Some(false) {
            return Err(self.unsupported("NOT ENFORCED is", at));
        }
        Ok(given.deferrable == Some(true))
    }
}

fn action(ast: Option<&ReferentialAction>) -> ReferenceAction {
    match ast {
        None | Some(ReferentialAction::NoAction) => ReferenceAction::NoAction,
        Some(ReferentialAction::Restrict) => ReferenceAction::Restrict,
        Some(ReferentialAction::Cascade) => ReferenceAction::Cascade,
        Some(ReferentialAction::SetNull) => ReferenceAction::SetNull,
        Some(ReferentialAction::SetDefault) => ReferenceAction::SetDefault,
    }
}

/// The positions of the columns of a foreign key.
fn key_columns<'i>(table: &Table, idents: impl IntoIterator<Item = &'i Ident>) -> Result<Vec<usize>, SqlError> {
    let mut columns = Vec::new();
    for ident in idents {
        let name = fold_ident(ident);
        let missing = || {
            let message = format!("column \"{name}\" referenced in foreign key constraint does not exist");
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        };
        columns.push(table.column(&name).ok_or_else(missing)?);
    }
    if columns.len() > MAX_INDEX_COLUMNS {
        let message = format!("cannot have more than {MAX_INDEX_COLUMNS} keys in a foreign key");
        return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
    }
    Ok(columns)
}

/// 42804 for columns whose values cannot be compared.
pub(super) fn check_types(name: &str, own: &Column, there: &Column) -> Result<(), SqlError> {
    let comparable = resolve::binary("=", there.ty, own.ty).is_ok_and(|(_, choice)| {
        // The key there is looked up as it is stored.
        choice.args.first().is_some_and(|(_, ty)| ty.oid == there.ty.oid || there.ty.is_text())
    });
    if comparable {
        return Ok(());
    }
    let detail = format!(
        "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
        own.name,
        there.name,
        own.ty.base().name(),
        there.ty.base().name()
    );
    let message = format!("foreign key constraint \"{name}\" cannot be implemented");
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).detail(detail))
}

/// 42710 if a constraint of a table has the name.
pub(super) fn free_constraint(table: &Table, name: &str) -> Result<(), SqlError> {
    if !table.has_constraint(name) {
        return Ok(());
    }
    let message = format!("constraint \"{name}\" for relation \"{}\" already exists", table.name);
    Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message))
}

/// The first free name of a constraint: `{table}_{columns}_{label}`, with a number if that is taken.
fn constraint_name(table: &Table, columns: Option<&str>, label: &str) -> String {
    let mut pass = 0u32;
    loop {
        let label = if pass == 0 { label.to_owned() } else { format!("{label}{pass}") };
        let name = object_name(&table.name, columns, &label);
        if !table.has_constraint(&name) {
            return name;
        }
        pass = pass.saturating_add(1);
    }
}
