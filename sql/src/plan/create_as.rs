//! Binding of tables that are made from others: CREATE TABLE AS, SELECT INTO, LIKE in CREATE TABLE.

use std::sync::Arc;

use sqlparser::ast::{CheckConstraint, CreateTable, Expr as Ast, Ident, ObjectName, Query, Spanned, Value};
use sqlparser::tokenizer::Location;

use super::binder::Binder;
use super::bound_index::TableWrite;
use super::constraints::free_constraint;
use super::names::{fold_ident, index_columns_name};
use super::node::{Body, ResultColumn};
use super::type_name::check_column_type;
use crate::catalog::ddl::NewTable;
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId, SchemaId, Sequence};
use crate::parse::{LIKE, start_of};
use crate::table::{
    Check, Column, ColumnId, ConstraintId, Index, IndexId, IndexedValue, MAX_COLUMNS, StorageId, Table, TableId,
    drawn_sequence,
};

/// LIKE: the name of a table, and the options behind it.
pub(super) struct LikeDef<'t> {
    name: Vec<&'t Ident>,
    options: Included,
}

/// What LIKE copies beside columns and NOT NULL.
#[derive(Clone, Copy, Default)]
struct Included {
    defaults: bool,
    generated: bool,
    constraints: bool,
    indexes: bool,
    identity: bool,
}

/// A table whose columns have been copied, and the place of the first one.
pub(super) struct Copied {
    table: Arc<Table>,
    first: usize,
    options: Included,
}

/// Whether a CHECK stands for LIKE.
pub(super) fn is_like(check: &CheckConstraint) -> bool {
    check.name.as_ref().is_some_and(|name| name.value == LIKE)
}

impl Binder<'_> {
    /// The LIKE that a CHECK stands for, and where it is.
    pub(super) fn like_of<'t>(&self, check: &'t CheckConstraint) -> Result<(Location, LikeDef<'t>), SqlError> {
        let at = start_of(&check.expr);
        let damaged = || self.unsupported("this form of LIKE is", at);
        let Ast::BinaryOp { left, right, .. } = &*check.expr else { return Err(damaged()) };
        let name = match &**left {
            Ast::Identifier(ident) => vec![ident],
            Ast::CompoundIdentifier(parts) => parts.iter().collect(),
            _ => return Err(damaged()),
        };
        let Ast::Value(value) = &**right else { return Err(damaged()) };
        let Value::SingleQuotedString(text) = &value.value else { return Err(damaged()) };
        let mut options = Included::default();
        let words: Vec<&str> = text.split_whitespace().collect();
        for pair in words.chunks(2) {
            let on = match pair {
                ["including", _] => true,
                ["excluding", _] => false,
                _ => return Err(damaged()),
            };
            match pair.get(1).copied().unwrap_or_default() {
                "all" => options = Included { defaults: on, generated: on, constraints: on, indexes: on, identity: on },
                "defaults" => options.defaults = on,
                "generated" => options.generated = on,
                "constraints" => options.constraints = on,
                "indexes" => options.indexes = on,
                "identity" => options.identity = on,
                // There is nothing of these to copy.
                "comments" | "compression" | "statistics" | "storage" => {}
                _ => return Err(damaged()),
            }
        }
        Ok((at, LikeDef { name, options }))
    }

    /// Adds the columns of LIKE.
    pub(super) fn copy_columns(&self, like: LikeDef<'_>, columns: &mut Vec<Column>) -> Result<Copied, SqlError> {
        let name = ObjectName::from(like.name.into_iter().cloned().collect::<Vec<Ident>>());
        let table = self.table(&name)?;
        let first = columns.len();
        for column in &table.columns {
            if columns.iter().any(|known| known.name == column.name) {
                let message = format!("column \"{}\" specified more than once", column.name);
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            // Without INCLUDING IDENTITY it is a plain column. With it, it gets a sequence of its own.
            let identity = column.identity.filter(|_| like.options.identity);
            let has_default = like.options.defaults && column.identity.is_none();
            columns.push(Column {
                identity,
                default: column.default.clone().filter(|_| has_default),
                generated: column.generated.clone().filter(|_| like.options.generated),
                ..column.clone()
            });
        }
        if columns.len() > MAX_COLUMNS {
            let message = format!("tables can have at most {MAX_COLUMNS} columns");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        Ok(Copied { table, first, options: like.options })
    }

    /// The sequences of identity columns that LIKE has copied, with the places of their columns.
    pub(super) fn copied_sequences(&self, copied: &Copied) -> Vec<(usize, Sequence)> {
        let columns = copied.table.columns.iter().enumerate();
        let identities = columns.filter(|(_, column)| copied.options.identity && column.identity.is_some());
        let sequence = |(at, column): (usize, &Column)| {
            let id = column.default.as_deref().and_then(drawn_sequence)?;
            match self.catalog.object(id).map(|object| &**object)? {
                Object::Sequence(sequence) => Some((copied.first + at, sequence.clone())),
                _ => None,
            }
        };
        identities.filter_map(sequence).collect()
    }

    /// Adds the checks and indexes of LIKE, under names of the new table.
    pub(super) fn copy_constraints(&self, copied: Copied, table: &mut Table) -> Result<(), SqlError> {
        let Copied { table: source, first, options } = copied;
        if options.constraints {
            for check in &source.checks {
                free_constraint(table, &check.name)?;
                let place = |id: &ColumnId| source.position_of(*id).and_then(|at| table.columns.get(first + at));
                let columns = check.columns.iter().filter_map(place).map(|column| column.id).collect();
                table.checks.push(Check { id: ConstraintId(0), columns, ..check.clone() });
            }
        }
        if options.indexes {
            self.copy_indexes(&source, first, table)?;
        }
        // Their texts must mean the same here.
        let bound = TableWrite::bind(Arc::new(table.clone()), self.catalog);
        bound.map(drop).map_err(|_| {
            let message = "LIKE of a table whose expressions name the table is not supported yet";
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        })
    }

    fn copy_indexes(&self, source: &Table, first: usize, table: &mut Table) -> Result<(), SqlError> {
        let taken = |table: &Table| -> Vec<String> {
            let names = table.indexes.iter().map(|index| index.name.clone());
            names.chain([table.key_name.clone(), table.name.clone()]).collect()
        };
        if !source.has_hidden_key() {
            if !table.has_hidden_key() {
                let message = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
                return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
            }
            table.primary_key = source.primary_key.iter().map(|at| at + first).collect();
            table.key_name = self.free_name(&table.name, None, "pkey", &taken(table));
        }
        for index in &source.indexes {
            let mut names: Vec<String> = index
                .columns
                .iter()
                .map(|column| match &column.value {
                    IndexedValue::Column(at) => source.columns[*at].name.clone(),
                    IndexedValue::Expression { .. } => "expr".to_owned(),
                })
                .collect();
            names.extend(index.included.iter().map(|at| source.columns[*at].name.clone()));
            let label = if index.is_constraint { "key" } else { "idx" };
            let name = self.free_name(&table.name, Some(&index_columns_name(&names)), label, &taken(table));
            let mut copy = Index { id: IndexId(0), storage: StorageId(0), name, ..index.clone() };
            copy.included.iter_mut().for_each(|at| *at += first);
            for column in &mut copy.columns {
                if let IndexedValue::Column(at) = &mut column.value {
                    *at += first;
                }
            }
            table.indexes.push(copy);
        }
        Ok(())
    }

    /// CREATE TABLE AS.
    pub(super) fn create_table_as(
        &mut self,
        name: String,
        create: &CreateTable,
        query: &Query,
    ) -> Result<Body, SqlError> {
        let at = create.name.span().start;
        let is_plain = create.columns.iter().all(|column| column.options.is_empty());
        if !create.constraints.is_empty() || !is_plain {
            return Err(self.unsupported("this form of CREATE TABLE AS is", at));
        }
        let names: Vec<&Ident> = create.columns.iter().map(|column| &column.name).collect();
        let mut body = self.table_of_query(name, &names, query)?;
        if let Body::CreateTableAs(parts) = &mut body {
            parts.0.at_commit = self.at_commit(create)?;
        }
        Ok(body)
    }

    /// A new table with the rows of a query.
    fn table_of_query(&mut self, name: String, names: &[&Ident], query: &Query) -> Result<Body, SqlError> {
        let (plan, results) = self.query(query)?;
        if names.len() > results.len() {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "too many column names were specified"));
        }
        let mut columns: Vec<Column> = Vec::with_capacity(results.len());
        for (at, result) in results.iter().enumerate() {
            let given = names.get(at).map(|ident| fold_ident(ident));
            let domain = self.domain_of(result);
            columns.push(Column { domain, ..column_of(at, given, result, &columns)? });
        }
        if columns.len() > MAX_COLUMNS {
            let message = format!("tables can have at most {MAX_COLUMNS} columns");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        Ok(Body::CreateTableAs(Box::new((new_of(new_table((self.target, name), columns)), plan))))
    }

    /// The domain of a result column that is a column of a table.
    fn domain_of(&self, result: &ResultColumn) -> Option<ObjectId> {
        let (table, number) = result.origin;
        let table = self.catalog.by_id(TableId(table))?;
        let at = table.position_of(ColumnId(u16::try_from(number).ok()?))?;
        table.columns.get(at)?.domain
    }

    /// SELECT INTO.
    pub(super) fn select_into(
        &mut self,
        (target, is_temporary): (&ObjectName, bool),
        query: &Query,
    ) -> Result<Body, SqlError> {
        let (schema, name) = self.new_relation(target, is_temporary)?;
        self.target = schema;
        self.allows_into = true;
        let body = self.table_of_query(name.clone(), &[], query)?;
        self.check_free_relation(&name)?;
        Ok(body)
    }
}

/// A column with the values of a result column.
fn column_of(at: usize, given: Option<String>, result: &ResultColumn, earlier: &[Column]) -> Result<Column, SqlError> {
    let name = given.unwrap_or_else(|| result.name.clone());
    if earlier.iter().any(|column| column.name == name) {
        let message = format!("column \"{name}\" specified more than once");
        return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
    }
    check_column_type(&name, result.ty)?;
    let id = ColumnId(u16::try_from(at + 1).unwrap_or(u16::MAX));
    Ok(Column {
        id,
        name,
        ty: result.ty,
        not_null: false,
        default: None,
        generated: None,
        identity: None,
        domain: None,
    })
}

/// What a new table is to have.
pub(super) fn new_of(table: Table) -> NewTable {
    NewTable {
        schema: table.schema,
        name: table.name,
        columns: table.columns,
        primary_key: table.primary_key,
        key_name: table.key_name,
        indexes: table.indexes,
        checks: table.checks,
        foreign_keys: table.foreign_keys,
        sequences: Vec::new(),
        at_commit: None,
    }
}

/// A table without ids, and with nothing but columns.
pub(super) fn new_table((schema, name): (SchemaId, String), columns: Vec<Column>) -> Table {
    Table {
        id: TableId(0),
        storage: StorageId(0),
        schema,
        name,
        last_column: Table::last_of(&columns),
        columns,
        primary_key: Vec::new(),
        key_name: String::new(),
        key_id: IndexId(0),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
    }
}
