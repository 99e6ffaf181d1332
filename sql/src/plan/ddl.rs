//! Binding of CREATE TABLE, DROP TABLE, TRUNCATE and the maintenance statements.

use sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable, CreateTableOptions, DataType, Expr as Ast, FunctionArg, FunctionArgExpr,
    FunctionArguments, GeneratedAs, ObjectName, PrimaryKeyConstraint, Spanned, SqlOption, TableConstraint, Truncate,
    TruncateIdentityOption, UniqueConstraint, Value, ValueWithSpan,
};
use sqlparser::tokenizer::Location;

use super::assign::{bind_default, bind_default_tree};
use super::binder::Binder;
use super::names::fold_ident;
use super::node::{Body, Notice};
use super::sequence_ddl::serial;
use crate::catalog::ddl::NewTable;
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId, Sequence};
use crate::parse::{NO_LOCATION, default_span, start_of};
use crate::table::{Column, ColumnId, Identity, Index, MAX_COLUMNS, Table, drawing_default};
use pgtypes::{Names, SqlType};

/// The tag of VACUUM, which cannot run in a transaction block.
pub(super) const VACUUM: &str = "VACUUM";

/// The primary key under construction.
#[derive(Default)]
struct PrimaryKey {
    columns: Vec<usize>,
    name: Option<String>,
    seen: bool,
}

/// The UNIQUE constraints under construction: those of columns first, as far as they are known.
#[derive(Default)]
struct UniqueKeys<'t> {
    /// The positions of columns with UNIQUE, and their constraints' names.
    columns: Vec<(usize, Option<String>)>,
    constraints: Vec<&'t UniqueConstraint>,
}

impl Binder<'_> {
    /// Binds CREATE TABLE.
    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<Body, SqlError> {
        let at = create.name.span().start;
        self.refuse_options(create, at)?;
        let (schema, name) = self.new_name(&create.name)?;
        self.target = schema;
        if self.is_taken(&name) {
            let message = format!("relation \"{name}\" already exists");
            if create.if_not_exists {
                let message = format!("{message}, skipping");
                self.notices.push(Notice { code: SqlState::DUPLICATE_TABLE, message, is_warning: false });
                return Ok(Body::CreateTable(None));
            }
            // PostgreSQL gives no position here.
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
        if create.columns.len() > MAX_COLUMNS {
            let message = format!("tables can have at most {MAX_COLUMNS} columns");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        let mut columns: Vec<Column> = Vec::with_capacity(create.columns.len());
        let (mut key, mut unique) = (PrimaryKey::default(), UniqueKeys::default());
        for def in &create.columns {
            let column = self.new_column(&name, def, &columns, (&mut key, &mut unique))?;
            columns.push(column);
        }
        for constraint in &create.constraints {
            match constraint {
                TableConstraint::PrimaryKey(constraint) => {
                    self.table_key(&name, constraint, &columns, &mut key)?;
                }
                TableConstraint::Unique(constraint) => unique.constraints.push(constraint),
                TableConstraint::ForeignKey(_) => {
                    return Err(self.unsupported("foreign keys are", constraint.span().start));
                }
                TableConstraint::Check(_) => {
                    return Err(self.unsupported("CHECK constraints are", constraint.span().start));
                }
                other => return Err(self.unsupported("this table constraint is", other.span().start)),
            }
        }
        key.columns.iter().for_each(|at| columns[*at].not_null = true);
        let sequences = self.column_sequences(&name, &create.columns, &columns)?;
        let key_name = match (key.columns.is_empty(), key.name.take()) {
            (true, _) => String::new(),
            (false, Some(given)) => self.new_index_name(given, &name, &[])?,
            (false, None) => self.free_name(&name, None, "pkey", &[]),
        };
        let indexes = self.unique_keys(&name, &columns, (&key.columns, &key_name), &unique)?;
        let primary_key = key.columns;
        Ok(Body::CreateTable(Some(NewTable { schema, name, columns, primary_key, key_name, indexes, sequences })))
    }

    /// The indexes of UNIQUE constraints. One without a name that repeats another constraint is left out.
    fn unique_keys(
        &self,
        table: &str,
        columns: &[Column],
        (key, key_name): (&[usize], &str),
        unique: &UniqueKeys<'_>,
    ) -> Result<Vec<Index>, SqlError> {
        let mut taken = vec![table.to_owned(), key_name.to_owned()];
        let mut indexes: Vec<Index> = Vec::new();
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        let of_columns = unique.columns.iter().map(|(at, name)| {
            let column = columns.get(*at).map_or("", |column| &column.name);
            let index = self.unique_column(table, (*at, column), &taken);
            (name.clone().map_or(index.clone(), |name| Index { name, ..index }), name.is_some())
        });
        let mut all: Vec<(Index, bool)> = of_columns.collect();
        for constraint in &unique.constraints {
            all.push((self.unique_index(table, constraint, place, &taken)?, constraint.name.is_some()));
        }
        for (index, is_named) in all {
            let positions = index.plain_columns().unwrap_or_default();
            let repeats = positions == key || indexes.iter().any(|other| other.columns == index.columns);
            if repeats && !is_named {
                continue;
            }
            let name = match is_named {
                true => self.new_index_name(index.name, table, &taken)?,
                false if taken.contains(&index.name) => {
                    let names: Vec<&str> = positions.iter().map(|at| columns[*at].name.as_str()).collect();
                    self.free_name(table, Some(&names.join("_")), "key", &taken)
                }
                false => index.name,
            };
            taken.push(name.clone());
            indexes.push(Index { name, ..index });
        }
        Ok(indexes)
    }

    /// The name that a statement gives to an index. 42P07 if it is taken.
    fn new_index_name(&self, name: String, table: &str, taken: &[String]) -> Result<String, SqlError> {
        if name != table && !taken.contains(&name) && !self.is_taken(&name) {
            return Ok(name);
        }
        Err(SqlError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")))
    }

    fn refuse_options(&self, create: &CreateTable, at: Location) -> Result<(), SqlError> {
        let what = if create.temporary {
            "temporary tables are"
        } else if create.query.is_some() {
            "CREATE TABLE AS is"
        } else if create.like.is_some() {
            "LIKE in CREATE TABLE is"
        } else if create.inherits.is_some() {
            "inheritance is"
        } else if create.partition_by.is_some() || create.partition_of.is_some() {
            "partitioning is"
        } else if create.on_commit.is_some() || create.or_replace || create.external || create.clone.is_some() {
            "this form of CREATE TABLE is"
        } else {
            ""
        };
        if !what.is_empty() {
            return Err(self.unsupported(what, at));
        }
        // Storage parameters tune PostgreSQL's heap. Those that tools set are accepted and ignored.
        let options = match &create.table_options {
            CreateTableOptions::None => return Ok(()),
            CreateTableOptions::With(options) => options,
            _ => return Err(self.unsupported("this form of CREATE TABLE is", at)),
        };
        for option in options {
            let SqlOption::KeyValue { key, .. } = option else {
                return Err(self.unsupported("this storage parameter is", at));
            };
            let name = fold_ident(key);
            if name != "fillfactor" && !name.starts_with("autovacuum_") && name != "toast_tuple_target" {
                let message = format!("unrecognized parameter \"{name}\"");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
        Ok(())
    }

    fn new_column(
        &mut self,
        table: &str,
        def: &ColumnDef,
        earlier: &[Column],
        (key, unique): (&mut PrimaryKey, &mut UniqueKeys<'_>),
    ) -> Result<Column, SqlError> {
        self.check_new_name(&def.name)?;
        let name = fold_ident(&def.name);
        let at = def.name.span.start;
        if earlier.iter().any(|column| column.name == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let serial = serial(&def.data_type);
        let ty = serial.map_or_else(|| self.type_named(&def.data_type, at), Ok)?;
        let id = ColumnId(u16::try_from(earlier.len() + 1).unwrap_or(u16::MAX));
        let mut column = Column { id, name, ty, not_null: serial.is_some(), default: None, identity: None };
        let mut nullable = false;
        for option in &def.options {
            match &option.option {
                ColumnOption::Null => nullable = true,
                ColumnOption::NotNull => column.not_null = true,
                ColumnOption::Generated { generated_as, generation_expr: None, .. } => {
                    column.identity = Some(identity(*generated_as, &column)?);
                    column.not_null = true;
                }
                ColumnOption::Default(ast) => column.default = Some(self.default_text(ast, &column)?),
                ColumnOption::PrimaryKey(_) => {
                    self.check_single_key(table, key, || self.position_after(at, "primary"))?;
                    key.columns.push(earlier.len());
                    key.name = option.name.as_ref().map(fold_ident);
                }
                ColumnOption::Collation(name) => self.column_collation(name, ty)?,
                ColumnOption::Unique(constraint) => {
                    if constraint.characteristics.as_ref().is_some_and(|c| c.deferrable == Some(true)) {
                        return Err(self.unsupported("DEFERRABLE constraints are", at));
                    }
                    unique.columns.push((earlier.len(), option.name.as_ref().map(fold_ident)));
                }
                ColumnOption::ForeignKey(_) => return Err(self.unsupported("foreign keys are", at)),
                ColumnOption::Check(_) => return Err(self.unsupported("CHECK constraints are", at)),
                ColumnOption::Generated { .. } | ColumnOption::Identity(_) => {
                    return Err(self.unsupported("generated columns are", at));
                }
                _ => return Err(self.unsupported("this column option is", at)),
            }
        }
        let given = [column.default.is_some(), serial.is_some(), column.identity.is_some()];
        if given.into_iter().filter(|given| *given).count() > 1 {
            let what = match column.identity {
                Some(_) => "both default and identity specified",
                None => "multiple default values specified",
            };
            let message = format!("{what} for column \"{}\" of table \"{table}\"", column.name);
            let position = column.identity.map(|_| self.position_after(at, "generated"));
            return Err(SqlError { position, ..SqlError::new(SqlState::SYNTAX_ERROR, message) });
        }
        if nullable && column.not_null {
            let message =
                format!("conflicting NULL/NOT NULL declarations for column \"{}\" of table \"{table}\"", column.name);
            let position = match (serial, column.identity) {
                (Some(_), _) => None,
                (None, Some(_)) => Some(self.position_after(at, "generated")),
                (None, None) => Some(self.position_after(at, "not")),
            };
            return Err(SqlError { position, ..SqlError::new(SqlState::SYNTAX_ERROR, message) });
        }
        Ok(column)
    }

    /// The sequences of serial and identity columns, with the positions of these.
    fn column_sequences(
        &self,
        table: &str,
        defs: &[ColumnDef],
        columns: &[Column],
    ) -> Result<Vec<(usize, Sequence)>, SqlError> {
        let (mut out, mut taken) = (Vec::new(), vec![table.to_owned()]);
        for (at, (def, column)) in defs.iter().zip(columns).enumerate() {
            let options = def.options.iter().find_map(|option| match &option.option {
                ColumnOption::Generated { sequence_options, generation_expr: None, .. } => {
                    Some(sequence_options.as_deref().unwrap_or_default())
                }
                _ => None,
            });
            let options = options.or_else(|| serial(&def.data_type).map(|_| &[][..]));
            if let Some(options) = options {
                let sequence = self.column_sequence((table, &column.name, column.ty), options, &taken)?;
                taken.push(sequence.name.clone());
                out.push((at, sequence));
            }
        }
        Ok(out)
    }

    pub(super) fn column_collation(&self, name: &ObjectName, ty: SqlType) -> Result<(), SqlError> {
        let at = name.span().start;
        let collation = self.name_parts(name)?.pop().unwrap_or_default();
        if !ty.is_text() {
            let message = format!("collations are not supported by type {}", ty.base_name());
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(self.position_before(at, "collate")));
        }
        if ["c", "posix", "default", "ucs_basic"].contains(&collation.to_ascii_lowercase().as_str()) {
            return Ok(());
        }
        let message = format!("collation \"{collation}\" for encoding \"UTF8\" does not exist");
        Err(self.error(SqlState::UNDEFINED_OBJECT, message, at))
    }

    /// The source text of a DEFAULT, after checking that it binds to the same expression when parsed alone.
    fn default_text(&mut self, option: &Ast, column: &Column) -> Result<String, SqlError> {
        let Some((ast, span)) = default_span(option) else {
            return Err(self.unsupported("this DEFAULT is", start_of(option)));
        };
        let bound = bind_default_tree(Binder::new(self.statement, None, self.catalog), ast, column);
        let bound = bound.map_err(|mut error| {
            if error.code == SqlState::UNDEFINED_COLUMN {
                let message = "cannot use column reference in DEFAULT expression";
                return self.error(SqlState::FEATURE_NOT_SUPPORTED, message, start_of(ast));
            }
            if error.code == SqlState::DATATYPE_MISMATCH {
                error.position = None;
            }
            error
        })?;
        let text = self.statement.text.source(span);
        if let Some(sequence) = self.drawn(ast) {
            return Ok(drawing_default(sequence));
        }
        match bind_default(text, column, self.catalog) {
            Ok(again) if again == bound => Ok(text.to_owned()),
            _ => Err(self.unsupported("this DEFAULT is", start_of(ast))),
        }
    }

    /// The sequence of a default that is `nextval('name')`. The default keeps its id: it may be renamed.
    fn drawn(&self, ast: &Ast) -> Option<ObjectId> {
        let Ast::Function(call) = ast else { return None };
        let FunctionArguments::List(list) = &call.args else { return None };
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))] = list.args.as_slice() else { return None };
        let parts = self.name_parts(&call.name).ok()?;
        let literal = match arg {
            Ast::Cast { expr, data_type: DataType::Regclass, .. } => &**expr,
            other => other,
        };
        let Ast::Value(ValueWithSpan { value: Value::SingleQuotedString(name), .. }) = literal else { return None };
        let id = ObjectId(self.catalog.find(SqlType::REGCLASS, name).ok()?.0);
        let is_sequence = matches!(self.catalog.object(id).map(|object| &**object), Some(Object::Sequence(_)));
        (parts.last()? == "nextval" && is_sequence).then_some(id)
    }

    /// The position of the next occurrence of a word after a location.
    pub(super) fn position_after(&self, at: Location, word: &str) -> u32 {
        let text = &self.statement.text;
        let start = text.offset(at).unwrap_or(text.as_str().len());
        match text.as_str()[start..].to_ascii_lowercase().find(word) {
            Some(found) => text.position_of_byte(start + found),
            None => self.position(at),
        }
    }

    fn check_single_key(&self, table: &str, key: &mut PrimaryKey, position: impl Fn() -> u32) -> Result<(), SqlError> {
        if key.seen {
            let message = format!("multiple primary keys for table \"{table}\" are not allowed");
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message).at(position()));
        }
        key.seen = true;
        Ok(())
    }

    fn table_key(
        &self,
        table: &str,
        constraint: &PrimaryKeyConstraint,
        columns: &[Column],
        key: &mut PrimaryKey,
    ) -> Result<(), SqlError> {
        let at = constraint.columns.first().map_or(NO_LOCATION, |column| start_of(&column.column.expr));
        let position = self.constraint_position(constraint.name.as_ref(), at, "primary");
        self.check_single_key(table, key, || position)?;
        key.name = constraint.name.as_ref().map(fold_ident);
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        let found = self.constraint_columns(&constraint.columns, place, "primary key constraint", (at, position))?;
        key.columns.extend(found.into_iter().map(|(place, _)| place));
        Ok(())
    }

    /// Binds TRUNCATE.
    pub(super) fn truncate(&mut self, truncate: &Truncate) -> Result<Body, SqlError> {
        let mut tables: Vec<std::sync::Arc<Table>> = Vec::new();
        for target in &truncate.table_names {
            let mut table = self.table(&target.name);
            if let Err(error) = &mut table {
                error.position = None;
                if error.code == SqlState::WRONG_OBJECT_TYPE {
                    error.message = error.message.replace("is an index", "is not a table");
                }
            }
            let table = table?;
            if !tables.iter().any(|t| t.id == table.id) {
                tables.push(table);
            }
        }
        let restarts = match truncate.identity {
            Some(TruncateIdentityOption::Restart) => self.restarts(&tables),
            _ => Vec::new(),
        };
        Ok(Body::Truncate(tables, restarts))
    }

    /// VACUUM and ANALYZE. No effect, but the table must exist.
    pub(super) fn maintenance(&mut self, table: Option<&ObjectName>, tag: &'static str) -> Result<Body, SqlError> {
        if let Some(name) = table {
            self.readable_table(name).map_err(|mut error| {
                error.position = None;
                error
            })?;
        }
        Ok(Body::Nothing(tag))
    }
}

/// What GENERATED says. 22023 for a column of another type.
fn identity(generated_as: GeneratedAs, column: &Column) -> Result<Identity, SqlError> {
    if ![SqlType::INT2, SqlType::INT4, SqlType::INT8].contains(&column.ty) {
        let message = "identity column type must be smallint, integer, or bigint";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(match generated_as {
        GeneratedAs::Always => Identity::Always,
        _ => Identity::ByDefault,
    })
}
