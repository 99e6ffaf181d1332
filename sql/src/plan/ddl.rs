//! Binding of CREATE TABLE, DROP TABLE and TRUNCATE.

use sqlparser::ast::{
    CascadeOption, ColumnDef, ColumnOption, CreateTable, CreateTableOptions, DataType, Expr as Ast, FunctionArg,
    FunctionArgExpr, FunctionArguments, GeneratedAs, ObjectName, OnCommit, PrimaryKeyConstraint, Spanned, SqlOption,
    TableConstraint, Truncate, TruncateIdentityOption, UniqueConstraint, Value, ValueWithSpan,
};
use sqlparser::tokenizer::Location;

use super::assign::{bind_default, bind_default_tree};
use super::binder::Binder;
use super::constraints::{CheckDef, ForeignKeyDef};
use super::create_as::{LikeDef, is_like, new_of, new_table};
use super::deparse::typed_null;
use super::index_ddl::{UniqueColumn, has_equal_nulls};
use super::names::fold_ident;
use super::node::{Body, Notice};
use super::sequence_ddl::serial;
use super::type_name::check_column_type;
use crate::catalog::{AtCommit, NamedType, NewTable};
use crate::error::{SqlError, SqlState};
use crate::object::{Object, ObjectId, SchemaId, Sequence};
use crate::parse::{NO_LOCATION, default_span, start_of, text_of};
use crate::table::{Column, ColumnId, Identity, Index, MAX_COLUMNS, Table, drawing_default};
use pgtypes::{Names, SqlType, find_name};

/// The primary key under construction.
#[derive(Default)]
pub(super) struct PrimaryKey {
    pub(super) columns: Vec<usize>,
    pub(super) name: Option<String>,
    pub(super) seen: bool,
}

/// What columns and constraints say beside the columns themselves.
#[derive(Default)]
pub(super) struct Parts<'t> {
    pub(super) key: PrimaryKey,
    pub(super) unique: UniqueKeys<'t>,
    pub(super) checks: Vec<CheckDef<'t>>,
    pub(super) foreign: Vec<ForeignKeyDef<'t>>,
    /// The positions and expressions of columns with DEFAULT, and of generated columns.
    pub(super) defaults: Vec<(usize, &'t Ast)>,
    pub(super) generated: Vec<(usize, &'t Ast)>,
}

/// The UNIQUE constraints under construction: those of columns first, as far as they are known.
#[derive(Default)]
pub(super) struct UniqueKeys<'t> {
    pub(super) columns: Vec<UniqueColumn>,
    pub(super) constraints: Vec<&'t UniqueConstraint>,
}

/// Indexes, and whether the statement has named them.
type NamedIndexes = Vec<(Index, bool)>;

impl Binder<'_> {
    /// Schema and name of a new table. 42710 if a type has the name: the rows of a table are of a type too.
    fn new_table_name(&self, name: &ObjectName, is_temporary: bool) -> Result<(SchemaId, String), SqlError> {
        let (schema, name) = self.new_relation(name, is_temporary)?;
        if self.look_up_type(Some(schema), &name).is_none() {
            return Ok((schema, name));
        }
        Err(SqlError::new(SqlState::DUPLICATE_OBJECT, format!("type \"{name}\" already exists")).hint(
            "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any \
             existing type.",
        ))
    }

    /// Binds CREATE TABLE.
    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<Body, SqlError> {
        let at = create.name.span().start;
        self.refuse_options(create, at)?;
        if create.query.is_none() {
            self.check_database(&self.name_parts(&create.name)?, &create.name)?;
        }
        let (schema, name) = self.new_table_name(&create.name, create.temporary)?;
        self.target = schema;
        if self.is_taken(&name) {
            return self.taken_table(name, create);
        }
        if create.columns.len() > MAX_COLUMNS {
            let message = format!("tables can have at most {MAX_COLUMNS} columns");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        if let Some(query) = &create.query {
            return self.create_table_as(name, create, query);
        }
        let mut table = new_table((schema, name), Vec::new());
        let mut parts = Parts::default();
        let mut likes: Vec<(Location, LikeDef<'_>)> = Vec::new();
        for constraint in &create.constraints {
            match constraint {
                TableConstraint::Check(check) if is_like(check) => likes.push(self.like_of(check)?),
                TableConstraint::PrimaryKey(_) => {}
                TableConstraint::Unique(constraint) => parts.unique.constraints.push(constraint),
                TableConstraint::ForeignKey(key) => {
                    parts.foreign.push((key.name.as_ref(), key.columns.iter().collect(), key));
                }
                TableConstraint::Check(check) if check.enforced.is_some() => {
                    return Err(self.enforced(start_of(&check.expr)));
                }
                TableConstraint::Check(check) => parts.checks.push((check.name.as_ref(), &check.expr)),
                other => return Err(self.unsupported("this table constraint is", other.span().start)),
            }
        }
        let mut likes = likes.into_iter().peekable();
        let mut copied = Vec::new();
        let order = |at: Location| (at.line, at.column);
        for def in &create.columns {
            while let Some((_, like)) = likes.next_if(|(at, _)| order(*at) < order(def.name.span.start)) {
                copied.push(self.copy_columns(like, &mut table.columns)?);
            }
            let column = self.new_column(&table.name, def, &table.columns, &mut parts)?;
            table.columns.push(column);
        }
        for (_, like) in likes {
            copied.push(self.copy_columns(like, &mut table.columns)?);
        }
        for constraint in &create.constraints {
            if let TableConstraint::PrimaryKey(constraint) = constraint {
                self.table_key(&table.name, constraint, &table.columns, &mut parts.key)?;
            }
        }
        for (at, column) in table.columns.iter_mut().enumerate() {
            column.id = ColumnId(u16::try_from(at + 1).unwrap_or(u16::MAX));
        }
        table.last_column = Table::last_of(&table.columns);
        let models: Vec<(usize, Sequence)> = copied.iter().flat_map(|like| self.copied_sequences(like)).collect();
        let sequences = self.column_sequences(&create.columns, &table, models)?;
        self.creating = sequences.iter().map(|(_, sequence)| sequence.name.clone()).collect();
        self.creating.push(table.name.clone());
        let mut table = self.with_parts(table, parts)?;
        for like in copied {
            self.copy_constraints(like, &mut table)?;
        }
        Ok(Body::CreateTable(Some(NewTable { sequences, at_commit: self.at_commit(create)?, ..new_of(table) })))
    }

    /// CREATE TABLE of a name that is taken. The query of CREATE TABLE AS is looked at first.
    fn taken_table(&mut self, name: String, create: &CreateTable) -> Result<Body, SqlError> {
        let message = format!("relation \"{name}\" already exists");
        if let Some(query) = &create.query {
            self.create_table_as(name, create, query)?;
        }
        if !create.if_not_exists {
            // PostgreSQL gives no position here.
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
        let message = format!("{message}, skipping");
        self.notices.push(Notice { code: SqlState::DUPLICATE_TABLE, message, is_warning: false });
        Ok(if create.query.is_some() { Body::Nothing("CREATE TABLE AS") } else { Body::CreateTable(None) })
    }

    /// A table with its constraints.
    fn with_parts(&mut self, mut table: Table, parts: Parts<'_>) -> Result<Table, SqlError> {
        let Parts { mut key, unique, mut checks, mut foreign, defaults, generated } = parts;
        key.columns.iter().for_each(|at| table.columns[*at].not_null = true);
        let (unique, name_of_key) = self.unique_keys(&table.name, &table.columns, &key.columns, &unique)?;
        table.key_name = match (key.columns.is_empty(), key.name.take().or(name_of_key)) {
            (true, _) => String::new(),
            (false, Some(given)) => self.new_index_name(given, &table.name, &[])?,
            (false, None) => self.free_name(&table.name, None, "pkey", &[]),
        };
        table.indexes = self.named_keys(&table, unique)?;
        table.primary_key = key.columns;
        // An expression must not use a generated column, wherever that is defined.
        generated.iter().for_each(|(at, _)| table.columns[*at].generated = Some(String::new()));
        for at in 0..table.columns.len() {
            self.column_expressions(&mut table, at, &defaults, &generated)?;
        }
        // They are numbered in the order of the text.
        let place = |start: Location| (start.line, start.column);
        checks.sort_by_key(|(_, ast)| place(start_of(ast)));
        foreign.sort_by_key(|(_, _, ast)| place(ast.foreign_table.span().start));
        self.add_checks(&mut table, &checks)?;
        self.add_foreign_keys(&mut table, &foreign)?;
        Ok(table)
    }

    /// Binds DEFAULT and GENERATED of a column, which are among those of a statement.
    pub(super) fn column_expressions(
        &mut self,
        table: &mut Table,
        at: usize,
        defaults: &[(usize, &Ast)],
        generated: &[(usize, &Ast)],
    ) -> Result<(), SqlError> {
        // They are in the order of the columns.
        let find = |all: &[(usize, &Ast)]| all.binary_search_by_key(&at, |(place, _)| *place).ok();
        if let Some(found) = find(defaults) {
            table.columns[at].default = self.default_text(defaults[found].1, &table.columns[at])?;
        }
        if let Some(found) = find(generated) {
            table.columns[at].generated = Some(self.generated_text(table, at, generated[found].1)?);
        }
        Ok(())
    }

    /// The indexes of UNIQUE constraints, and whether they have a name of the statement. One that repeats another
    /// constraint is left out, and gives it its name if that has none. The last value is such a name for the primary
    /// key, whose columns are `key`.
    fn unique_keys(
        &self,
        table: &str,
        columns: &[Column],
        key: &[usize],
        unique: &UniqueKeys<'_>,
    ) -> Result<(NamedIndexes, Option<String>), SqlError> {
        let taken = [table.to_owned()];
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        let of_columns = unique.columns.iter().map(|unique| {
            let column = columns.get(unique.at).map_or("", |column| &column.name);
            (self.unique_column(table, (unique, column), &taken), unique.name.is_some())
        });
        let mut all: NamedIndexes = of_columns.collect();
        for constraint in &unique.constraints {
            all.push((self.unique_index(table, constraint, place, &taken)?, constraint.name.is_some()));
        }
        let (mut kept, mut name_of_key) = (NamedIndexes::new(), None);
        for (index, is_named) in all {
            let is_same = |(other, _): &&mut (Index, bool)| {
                (&other.columns, &other.included, other.nulls_not_distinct)
                    == (&index.columns, &index.included, index.nulls_not_distinct)
            };
            let may_be_key = index.included.is_empty() && !index.nulls_not_distinct;
            if may_be_key && index.plain_columns().is_some_and(|positions| positions == key) {
                name_of_key = name_of_key.or(Some(index.name).filter(|_| is_named));
            } else if let Some((prior, has_name)) = kept.iter_mut().find(is_same) {
                if is_named && !*has_name {
                    (prior.name, *has_name) = (index.name, true);
                }
            } else {
                kept.push((index, is_named));
            }
        }
        Ok((kept, name_of_key))
    }

    /// Gives free names to the indexes of UNIQUE constraints that have none.
    fn named_keys(&self, table: &Table, unique: NamedIndexes) -> Result<Vec<Index>, SqlError> {
        let mut taken = vec![table.name.clone(), table.key_name.clone()];
        let mut indexes = Vec::with_capacity(unique.len());
        for (index, is_named) in unique {
            let name = match is_named {
                true => self.new_index_name(index.name, &table.name, &taken)?,
                false if taken.contains(&index.name) => {
                    let mut positions = index.plain_columns().unwrap_or_default();
                    positions.extend(&index.included);
                    let names: Vec<&str> = positions.iter().map(|at| table.columns[*at].name.as_str()).collect();
                    self.free_name(&table.name, Some(&names.join("_")), "key", &taken)
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

    /// ON COMMIT. 42P16 for a table that is not temporary.
    pub(super) fn at_commit(&self, create: &CreateTable) -> Result<Option<AtCommit>, SqlError> {
        let at_commit = match create.on_commit {
            None | Some(OnCommit::PreserveRows) => None,
            Some(OnCommit::DeleteRows) => Some(AtCommit::Empty),
            Some(OnCommit::Drop) => Some(AtCommit::Drop),
        };
        if create.on_commit.is_some() && !self.is_temporary(self.target) {
            let message = "ON COMMIT can only be used on temporary tables";
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        Ok(at_commit)
    }

    fn refuse_options(&self, create: &CreateTable, at: Location) -> Result<(), SqlError> {
        let what = if create.like.is_some() {
            "this form of LIKE is"
        } else if create.inherits.is_some() {
            "inheritance is"
        } else if create.partition_by.is_some() || create.partition_of.is_some() {
            "partitioning is"
        } else if create.or_replace || create.external || create.clone.is_some() {
            "this form of CREATE TABLE is"
        } else {
            ""
        };
        if !what.is_empty() {
            return Err(self.unsupported(what, at));
        }
        match &create.table_options {
            CreateTableOptions::None => Ok(()),
            CreateTableOptions::With(options) => self.storage_parameters(options, at),
            _ => Err(self.unsupported("this form of CREATE TABLE is", at)),
        }
    }

    /// Checks storage parameters. They tune PostgreSQL's heap: those that tools set are accepted and ignored.
    pub(super) fn storage_parameters(&self, options: &[SqlOption], at: Location) -> Result<(), SqlError> {
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

    fn refuse_deferrable(&self, constraint: &UniqueConstraint, at: Location) -> Result<(), SqlError> {
        match constraint.characteristics.as_ref().and_then(|given| given.deferrable) {
            Some(true) => Err(self.unsupported("DEFERRABLE constraints are", at)),
            _ => Ok(()),
        }
    }

    /// The column of a definition. What belongs to the table is added to `parts`.
    pub(super) fn new_column<'t>(
        &mut self,
        table: &str,
        def: &'t ColumnDef,
        earlier: &[Column],
        parts: &mut Parts<'t>,
    ) -> Result<Column, SqlError> {
        self.check_new_name(&def.name)?;
        let name = fold_ident(&def.name);
        let at = def.name.span.start;
        if earlier.iter().any(|column| column.name == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let serial = serial(&def.data_type);
        let NamedType { ty, domain } = match serial {
            Some(ty) => ty.into(),
            None => self.type_named(&def.data_type, at)?,
        };
        check_column_type(&name, ty)?;
        let mut column = Column { domain, ..blank_column(earlier.len(), name, ty) };
        column.not_null = serial.is_some();
        let (mut nullable, mut has_default) = (false, false);
        for option in &def.options {
            match &option.option {
                ColumnOption::Null => nullable = true,
                ColumnOption::NotNull => column.not_null = true,
                ColumnOption::Generated { generated_as, generation_expr: None, .. } => {
                    column.identity = Some(identity(*generated_as, &column)?);
                    column.not_null = true;
                }
                ColumnOption::Default(ast) if has_default => {
                    let name = &column.name;
                    let message =
                        format!("multiple default values specified for column \"{name}\" of table \"{table}\"");
                    let start = default_span(ast).map_or_else(|| start_of(ast), |(_, span)| span.start);
                    let position = self.position_before(start, "default");
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(position));
                }
                ColumnOption::Default(ast) => {
                    has_default = true;
                    parts.defaults.push((earlier.len(), ast));
                }
                ColumnOption::PrimaryKey(constraint) => {
                    self.primary_key_options((None, &constraint.index_options), at)?;
                    self.check_single_key(table, &mut parts.key, || self.position_after(at, "primary"))?;
                    parts.key.columns.push(earlier.len());
                    parts.key.name = option.name.as_ref().map(fold_ident);
                }
                ColumnOption::Collation(name) => self.column_collation(name, ty)?,
                ColumnOption::Unique(constraint) => {
                    self.refuse_deferrable(constraint, at)?;
                    self.key_options((None, &constraint.index_options), at)?;
                    parts.unique.columns.push(UniqueColumn {
                        at: earlier.len(),
                        name: option.name.as_ref().map(fold_ident),
                        nulls_not_distinct: has_equal_nulls(constraint),
                    });
                }
                ColumnOption::ForeignKey(foreign) => {
                    parts.foreign.push((option.name.as_ref(), vec![&def.name], foreign));
                }
                ColumnOption::Check(check) if check.enforced.is_some() => return Err(self.enforced(at)),
                ColumnOption::Check(check) => parts.checks.push((option.name.as_ref(), &check.expr)),
                ColumnOption::Generated { generation_expr: Some(ast), .. } => {
                    parts.generated.push((earlier.len(), ast));
                }
                _ => return Err(self.unsupported("this column option is", at)),
            }
        }
        let is_generated = parts.generated.last().is_some_and(|(place, _)| *place == earlier.len());
        self.check_options(table, &column, (is_generated, has_default, serial.is_some(), nullable), at)?;
        Ok(column)
    }

    /// 42601 for options of a column that rule each other out.
    fn check_options(
        &self,
        table: &str,
        column: &Column,
        (is_generated, has_default, is_serial, nullable): (bool, bool, bool, bool),
        at: Location,
    ) -> Result<(), SqlError> {
        if is_generated && has_default {
            let message = format!(
                "both default and generation expression specified for column \"{}\" of table \"{table}\"",
                column.name
            );
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.position_after(at, "generated")));
        }
        let given = [has_default, is_serial, column.identity.is_some()];
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
            let position = match (is_serial, column.identity) {
                (true, _) => None,
                (false, Some(_)) => Some(self.position_after(at, "generated")),
                (false, None) => Some(self.position_after(at, "not")),
            };
            return Err(SqlError { position, ..SqlError::new(SqlState::SYNTAX_ERROR, message) });
        }
        Ok(())
    }

    /// The sequences of serial and identity columns, with the positions of these. `models`: those of columns that LIKE
    /// has copied.
    fn column_sequences(
        &self,
        defs: &[ColumnDef],
        table: &Table,
        models: Vec<(usize, Sequence)>,
    ) -> Result<Vec<(usize, Sequence)>, SqlError> {
        let (mut out, mut taken) = (Vec::new(), vec![table.name.clone()]);
        for def in defs {
            let Some(at) = table.column(&fold_ident(&def.name)) else { continue };
            if let Some(sequence) = self.sequence_of(def, (&table.name, &table.columns[at]), &taken)? {
                taken.push(sequence.name.clone());
                out.push((at, sequence));
            }
        }
        for (at, model) in models {
            let column = &table.columns[at];
            let blank = self.column_sequence((&table.name, &column.name, column.ty), &[], &taken)?;
            let Sequence { start, increment, min, max, cache, cycles, .. } = model;
            // As in PostgreSQL, its type is that of sequences, not of the column.
            let (ty, restart) = (SqlType::INT8, start);
            let sequence = Sequence { ty, start, increment, min, max, cache, cycles, restart, ..blank };
            taken.push(sequence.name.clone());
            out.push((at, sequence));
        }
        Ok(out)
    }

    /// The sequence of a column that is serial or an identity. `taken`: names that it cannot have.
    pub(super) fn sequence_of(
        &self,
        def: &ColumnDef,
        (table, column): (&str, &Column),
        taken: &[String],
    ) -> Result<Option<Sequence>, SqlError> {
        let options = def.options.iter().find_map(|option| match &option.option {
            ColumnOption::Generated { sequence_options, generation_expr: None, .. } => {
                Some(sequence_options.as_deref().unwrap_or_default())
            }
            _ => None,
        });
        let options = options.or_else(|| serial(&def.data_type).map(|_| &[][..]));
        let named = (table, column.name.as_str(), column.ty);
        options.map(|options| self.column_sequence(named, options, taken)).transpose()
    }

    /// Checks COLLATE of a column.
    pub(super) fn column_collation(&self, name: &ObjectName, ty: SqlType) -> Result<(), SqlError> {
        self.check_collation(name)?;
        self.check_has_collation(ty, name)
    }

    /// The text of a DEFAULT, which binds to the same expression when parsed alone: as PostgreSQL writes it, or as it
    /// was written. `None` if it is NULL, which a column has without one.
    pub(super) fn default_text(&mut self, option: &Ast, column: &Column) -> Result<Option<String>, SqlError> {
        let Some((ast, span)) = default_span(option) else { return self.default_of_tree(option, column) };
        let text = self.statement.text.source(span).to_owned();
        self.checked_default(ast, text, column)
    }

    /// The text of the tree of a DEFAULT.
    pub(super) fn default_of_tree(&mut self, ast: &Ast, column: &Column) -> Result<Option<String>, SqlError> {
        self.checked_default(ast, text_of(ast), column)
    }

    fn checked_default(&mut self, ast: &Ast, text: String, column: &Column) -> Result<Option<String>, SqlError> {
        let bound = bind_default_tree(&mut Binder::new(self.statement, None, self.catalog), ast, column);
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
        if let Some(sequence) = self.drawn(ast) {
            return Ok(Some(drawing_default(sequence)));
        }
        let is_same = |text: &String| bind_default(text, column, self.catalog).is_ok_and(|again| again == bound);
        let normal = Binder::new(self.statement, None, self.catalog).normal_default(ast, column.ty);
        // With a length, or of a domain, NULL is an expression.
        let is_plain = column.domain.is_none() && column.ty.typmod == -1;
        let is_null = normal.as_ref().is_some_and(|normal| *normal == typed_null(column.ty)) || self.is_null_cast(ast);
        if is_plain && is_null {
            return Ok(None);
        }
        let text = normal.filter(is_same).or_else(|| Some(text).filter(is_same));
        let text = match text {
            Some(text) => self.with_ids(text, |binder, ast| bind_default_tree(binder, ast, column))?,
            None => None,
        };
        text.map(Some).ok_or_else(|| self.unsupported("this DEFAULT is", start_of(ast)))
    }

    /// Whether this is NULL, cast by a call: `pg_catalog."int4"(NULL)`.
    fn is_null_cast(&self, ast: &Ast) -> bool {
        let Some((name, Ast::Value(arg))) = sole_argument(ast) else { return false };
        let is_type = |parts: Vec<String>| parts.last().is_some_and(|name| find_name(name).is_some());
        arg.value == Value::Null && self.name_parts(name).is_ok_and(is_type)
    }

    /// The sequence of a default that is `nextval('name')`. The default keeps its id: it may be renamed.
    fn drawn(&self, ast: &Ast) -> Option<ObjectId> {
        let (name, arg) = sole_argument(ast)?;
        let parts = self.name_parts(name).ok()?;
        let literal = match arg {
            Ast::Cast { expr, data_type: DataType::Regclass, .. } => &**expr,
            other => other,
        };
        let Ast::Value(ValueWithSpan { value: Value::SingleQuotedString(name), .. }) = literal else { return None };
        let id = ObjectId(self.catalog.find(SqlType::REGCLASS, name).ok()?.0);
        let is_sequence = matches!(self.catalog.object(id).map(|object| &**object), Some(Object::Sequence(_)));
        (parts.last()? == "nextval" && is_sequence).then_some(id)
    }

    /// ENFORCED, which PostgreSQL does not know.
    pub(super) fn enforced(&self, at: Location) -> SqlError {
        let message = "syntax error at or near \"enforced\"";
        SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.position_after(at, "enforced"))
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
        self.primary_key_options((constraint.index_type.as_ref(), &constraint.index_options), at)?;
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
                    let is_view = self.find_view(&target.name)?.is_some();
                    let found = if is_view { "is a view" } else { "is an index" };
                    error.message = error.message.replace(found, "is not a table");
                }
            }
            let table = table?;
            if !tables.iter().any(|t| t.id == table.id) {
                tables.push(table);
            }
        }
        let cascade = truncate.cascade == Some(CascadeOption::Cascade);
        let mut at = 0;
        while let Some(table) = tables.get(at).cloned() {
            for id in &table.referenced_by {
                let Some(child) = self.catalog.by_id(*id).filter(|_| tables.iter().all(|t| t.id != *id)) else {
                    continue;
                };
                if !cascade {
                    let message = "cannot truncate a table referenced in a foreign key constraint";
                    let detail = format!("Table \"{}\" references \"{}\".", child.name, table.name);
                    let hint =
                        format!("Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.", child.name);
                    let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
                    return Err(error.detail(detail).hint(hint));
                }
                let message = format!("truncate cascades to table \"{}\"", child.name);
                self.notices.push(Notice { code: SqlState::SUCCESSFUL_COMPLETION, message, is_warning: false });
                tables.push(std::sync::Arc::clone(child));
            }
            at += 1;
        }
        let restarts = match truncate.identity {
            Some(TruncateIdentityOption::Restart) => self.restarts(&tables),
            _ => Vec::new(),
        };
        Ok(Body::Truncate(tables, restarts))
    }
}

/// The name of a function that is called with one argument, and this.
fn sole_argument(ast: &Ast) -> Option<(&ObjectName, &Ast)> {
    let Ast::Function(call) = ast else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))] = list.args.as_slice() else { return None };
    Some((&call.name, arg))
}

/// A column after so many others, with nothing but a type.
fn blank_column(earlier: usize, name: String, ty: SqlType) -> Column {
    let id = ColumnId(u16::try_from(earlier + 1).unwrap_or(u16::MAX));
    Column { id, name, ty, not_null: false, default: None, generated: None, identity: None, domain: None }
}

/// 22023 for a type of an identity column that has no sequences.
pub(super) fn check_identity_type(named: NamedType) -> Result<(), SqlError> {
    if [SqlType::INT2, SqlType::INT4, SqlType::INT8].contains(&named.ty) && named.domain.is_none() {
        return Ok(());
    }
    let message = "identity column type must be smallint, integer, or bigint";
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

/// The kind of an identity column. 22023 if its type has no sequences.
pub(super) fn identity(generated_as: GeneratedAs, column: &Column) -> Result<Identity, SqlError> {
    check_identity_type(NamedType { ty: column.ty, domain: column.domain })?;
    Ok(match generated_as {
        GeneratedAs::Always => Identity::Always,
        _ => Identity::ByDefault,
    })
}
