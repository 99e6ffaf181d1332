//! Binding of CREATE INDEX and DROP INDEX: each becomes the descriptor that a table is to have.
//!
//! New indexes have no ids yet; the executor gives them some. Their names are chosen here, as PostgreSQL chooses them.

use sqlparser::ast::{
    CreateIndex, Expr as Ast, Ident, IndexColumn as AstColumn, IndexOption, IndexType, NullsDistinctOption, ObjectName,
    Spanned, UniqueConstraint,
};
use sqlparser::tokenizer::Location;

use super::binder::{Binder, Scope};
use super::dependents::{Dependents, of_key};
use super::index::{check_immutable, stored_condition, stored_expression};
use super::names::{fold_ident, index_columns_name, object_name, sort_options};
use super::node::{Alteration, Body, Notice};
use super::projection::index_column_name;
use super::type_name::check_column_type;
use crate::catalog::Relation;
use crate::error::{SqlError, SqlState};
use crate::object::Object;
use crate::parse::{NO_LOCATION, included, start_of, storage_parameters, text_of};
use crate::table::{Index, IndexColumn, IndexId, IndexedValue, MAX_INDEX_COLUMNS, StorageId, Table};
use pgtypes::SqlType;
use pgtypes::codec::key::KeyOrder;
use pgtypes::functions::has_order;

/// The storage parameters of PostgreSQL's indexes. They are accepted, and mean nothing here.
const STORAGE_PARAMETERS: [&str; 2] = ["fillfactor", "deduplicate_items"];

/// PostgreSQL's operator classes for B-trees.
const OPERATOR_CLASSES: [&str; 32] = [
    "array_ops",
    "bool_ops",
    "bpchar_ops",
    "bpchar_pattern_ops",
    "bytea_ops",
    "char_ops",
    "cidr_ops",
    "date_ops",
    "enum_ops",
    "float4_ops",
    "float8_ops",
    "inet_ops",
    "int2_ops",
    "int4_ops",
    "int8_ops",
    "interval_ops",
    "jsonb_ops",
    "macaddr_ops",
    "name_ops",
    "numeric_ops",
    "oid_ops",
    "oidvector_ops",
    "pg_lsn_ops",
    "record_ops",
    "text_ops",
    "text_pattern_ops",
    "time_ops",
    "timestamp_ops",
    "timestamptz_ops",
    "timetz_ops",
    "uuid_ops",
    "varchar_ops",
];

/// A column with UNIQUE.
pub(super) struct UniqueColumn {
    /// Its position.
    pub(super) at: usize,
    /// The name of the constraint.
    pub(super) name: Option<String>,
    pub(super) nulls_not_distinct: bool,
}

/// Whether an operator class orders values of a type as the key form does. Under the collation C, so do those of
/// patterns.
fn is_operator_class(name: &str, ty: SqlType) -> bool {
    let Some(base) = name.strip_suffix("_ops") else { return false };
    match base.strip_suffix("_pattern").unwrap_or(base) {
        "text" | "varchar" | "bpchar" | "name" => ty.is_text(),
        "array" => ty.element().is_some(),
        base => base == ty.row().name,
    }
}

/// The hint for a name that leads to a relation of another kind.
pub(super) fn hint_to_drop(found: &Relation) -> &'static str {
    match found {
        Relation::Table(_) => "Use DROP TABLE to remove a table.",
        Relation::Index(_) => "Use DROP INDEX to remove an index.",
        Relation::Object(object) if matches!(**object, Object::Sequence(_)) => {
            "Use DROP SEQUENCE to remove a sequence."
        }
        Relation::Object(_) => "Use DROP VIEW to remove a view.",
    }
}

impl Binder<'_> {
    /// Binds CREATE INDEX.
    pub(super) fn create_index(&mut self, create: &CreateIndex) -> Result<Body, SqlError> {
        let at = create.table_name.span().start;
        if let Some(view) = self.find_view(&create.table_name).map_err(|error| error.at(0))? {
            let message = format!("cannot create index on relation \"{}\"", view.name());
            let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
            return Err(error.detail("This operation is not supported for views."));
        }
        let table = self.table(&create.table_name).map_err(|error| SqlError { position: None, ..error })?;
        self.target = table.schema;
        self.index_method(create.using.as_ref(), at)?;
        if !create.index_options.is_empty() || !create.alter_options.is_empty() {
            return Err(self.unsupported("this option of CREATE INDEX is", at));
        }
        create.with.iter().try_for_each(|option| self.storage_parameter(option))?;
        let given = create.name.as_ref().map(|name| self.index_name(name)).transpose()?;
        let nulls_not_distinct = create.nulls_distinct == Some(false);
        let mut index = Index { nulls_not_distinct, ..new_index(create.unique, false) };
        let mut names = Vec::new();
        for column in &create.columns {
            names.push(self.column_name_of(column));
            index.columns.push(self.index_column(&table, column)?);
        }
        for ident in &create.include {
            let name = fold_ident(ident);
            let missing = || SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"));
            index.included.push(table.column(&name).ok_or_else(missing)?);
            names.push(name);
        }
        check_width(&index)?;
        if let Some(ast) = &create.predicate {
            index.predicate = Some(self.stored_predicate(&table, ast)?);
        }
        if let Some(name) = &given
            && self.is_taken(name)
        {
            let message = format!("relation \"{name}\" already exists");
            if create.if_not_exists {
                let message = format!("{message}, skipping");
                self.notices.push(Notice { code: SqlState::DUPLICATE_TABLE, message, is_warning: false });
                return Ok(Body::AlterTables("CREATE INDEX", Vec::new()));
            }
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
        let joined = index_columns_name(&names);
        index.name = match given {
            Some(name) => name,
            None => self.free_name(&table.name, Some(&joined), "idx", &[]),
        };
        let mut change = Alteration::of(table);
        change.new.indexes.push(index);
        Ok(Body::AlterTables("CREATE INDEX", vec![change]))
    }

    fn index_method(&self, method: Option<&IndexType>, at: Location) -> Result<(), SqlError> {
        let name = match method {
            None | Some(IndexType::BTree) => return Ok(()),
            Some(IndexType::Custom(ident)) => {
                let name = fold_ident(ident);
                if !["hash", "gin", "gist", "spgist", "brin"].contains(&name.as_str()) {
                    let message = format!("access method \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
                }
                name
            }
            Some(known) => known.to_string().to_lowercase(),
        };
        Err(self.unsupported(&format!("access method \"{name}\" is"), at))
    }

    fn storage_parameter(&self, option: &Ast) -> Result<(), SqlError> {
        let name = match option {
            Ast::BinaryOp { left, .. } => match &**left {
                Ast::Identifier(ident) => fold_ident(ident),
                _ => String::new(),
            },
            Ast::Identifier(ident) => fold_ident(ident),
            _ => String::new(),
        };
        Self::known_parameter(&name)
    }

    /// 22023 for a storage parameter that no index has.
    fn known_parameter(name: &str) -> Result<(), SqlError> {
        if STORAGE_PARAMETERS.contains(&name) {
            return Ok(());
        }
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("unrecognized parameter \"{name}\"")))
    }

    /// The folded name of a new index. It is in the schema of its table.
    fn index_name(&self, name: &ObjectName) -> Result<String, SqlError> {
        let ident = name.0.last().and_then(|part| part.as_ident());
        ident.map_or(Ok(()), |ident| self.check_new_name(ident))?;
        let parts = self.name_parts(name)?;
        match parts.as_slice() {
            [name] => Ok(name.clone()),
            // An index is in the schema of its table.
            _ => {
                let position = self.position_after(name.span().start, ".");
                Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \".\"").at(position))
            }
        }
    }

    /// What a column contributes to the name of its index.
    fn column_name_of(&self, column: &AstColumn) -> String {
        index_column_name(&column.column.expr)
    }

    fn index_column(&mut self, table: &Table, column: &AstColumn) -> Result<IndexColumn, SqlError> {
        let (mut ast, mut collation) = (&column.column.expr, None);
        if let Ast::Collate { expr, collation: name } = ast {
            (ast, collation) = (expr, Some(name));
        }
        let (value, ty) = match ast {
            Ast::Identifier(ident) => {
                let name = fold_ident(ident);
                let Some(at) = table.column(&name) else {
                    let message = format!("column \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
                };
                (IndexedValue::Column(at), table.columns[at].ty)
            }
            ast => self.indexed_expression(table, ast)?,
        };
        if let Some(name) = collation {
            self.column_collation(name, ty).map_err(|error| SqlError { position: None, ..error })?;
        }
        self.check_operator_class(column.operator_class.as_ref(), ty)?;
        let options = &column.column.options;
        let (descends, nulls_first) = sort_options(options);
        Ok(IndexColumn { value, order: KeyOrder { descends, nulls_first } })
    }

    /// 42704 for a type whose values an index cannot order, and for an operator class that does not exist.
    pub(super) fn check_operator_class(&self, class: Option<&ObjectName>, ty: SqlType) -> Result<(), SqlError> {
        if !has_order(ty) {
            let name = ty.name();
            let message = format!("data type {name} has no default operator class for access method \"btree\"");
            let hint = "You must specify an operator class for the index or define a default operator class for the \
                        data type.";
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).hint(hint));
        }
        let Some(class) = class else { return Ok(()) };
        let name = self.name_parts(class)?.pop().unwrap_or_default();
        if is_operator_class(&name, ty) {
            return Ok(());
        }
        if OPERATOR_CLASSES.contains(&name.as_str()) {
            let message = format!("operator class \"{name}\" does not accept data type {}", ty.name());
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
        let message = format!("operator class \"{name}\" does not exist for access method \"btree\"");
        Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
    }

    /// An expression, after checking that its stored text binds to the same expression.
    fn indexed_expression(&mut self, table: &Table, ast: &Ast) -> Result<(IndexedValue, SqlType), SqlError> {
        let inner = match ast {
            Ast::Nested(inner) => inner,
            other => other,
        };
        self.clause = "index expressions";
        let value = self.expr(inner, &Scope::of_columns(table))?;
        let value = self.resolve_unknown(value)?;
        check_column_type(&index_column_name(ast), value.ty)?;
        check_immutable(&value.expr, "expression")?;
        let text = text_of(inner);
        match stored_expression(&text, table, self.catalog) {
            Ok((again, ty)) if again == value.expr && ty == value.ty => {}
            _ => return Err(self.unsupported("this index expression is", start_of(ast))),
        }
        let scope = Scope::of_columns(table);
        let fixed = self.with_ids(text, |binder, ast| {
            let value = binder.expr(ast, &scope)?;
            Ok(binder.resolve_unknown(value)?.expr)
        });
        let text = fixed?.ok_or_else(|| self.unsupported("this index expression is", start_of(ast)))?;
        Ok((IndexedValue::Expression { text, ty: value.ty }, value.ty))
    }

    fn stored_predicate(&mut self, table: &Table, ast: &Ast) -> Result<String, SqlError> {
        self.clause = "index predicates";
        let condition = self.condition(ast, &Scope::of_columns(table), "WHERE")?;
        check_immutable(&condition, "predicate")?;
        let is_same = |text: &String| stored_condition(text, table, self.catalog).is_ok_and(|again| again == condition);
        let normal = self.normal_text(ast, &Scope::of_columns(table)).map(|normal| normal.text).filter(is_same);
        let text = normal.or_else(|| Some(text_of(ast)).filter(is_same));
        let scope = Scope::of_columns(table);
        let condition = |binder: &mut Binder<'_>, ast: &Ast| binder.condition(ast, &scope, "WHERE");
        let text = text.map(|text| self.with_ids(text, condition)).transpose()?.flatten();
        text.ok_or_else(|| self.unsupported("this index predicate is", start_of(ast)))
    }

    /// Whether a name is free: no relation has it, nor is it one of `taken`.
    fn is_free(&self, name: &str, taken: &[String]) -> bool {
        !taken.iter().any(|other| other == name) && !self.is_taken(name)
    }

    /// The first free name for an index: `{table}_{columns}_{label}`, with a number if that is taken.
    pub(super) fn free_name(&self, table: &str, columns: Option<&str>, label: &str, taken: &[String]) -> String {
        let mut pass = 0u32;
        loop {
            let label = if pass == 0 { label.to_owned() } else { format!("{label}{pass}") };
            let name = object_name(table, columns, &label);
            if self.is_free(&name, taken) {
                return name;
            }
            pass = pass.saturating_add(1);
        }
    }

    /// The index of a UNIQUE constraint. `taken`: names that the statement has given already.
    pub(super) fn unique_index(
        &self,
        table: &str,
        constraint: &UniqueConstraint,
        place: impl Fn(&str) -> Option<usize>,
        taken: &[String],
    ) -> Result<Index, SqlError> {
        let at = constraint.columns.first().map_or(NO_LOCATION, |column| start_of(&column.column.expr));
        let included = self.key_options((constraint.index_type.as_ref(), &constraint.index_options), at)?;
        if constraint.characteristics.as_ref().is_some_and(|c| c.deferrable == Some(true)) {
            return Err(self.unsupported("DEFERRABLE constraints are", at));
        }
        let position = || self.constraint_position(constraint.name.as_ref(), at, "unique");
        let columns = self.constraint_columns(&constraint.columns, &place, "unique constraint", (at, position()))?;
        let mut names: Vec<String> = columns.iter().map(|(_, name)| name.clone()).collect();
        let mut index = Index { nulls_not_distinct: has_equal_nulls(constraint), ..new_index(true, true) };
        index.columns = columns.iter().map(|(place, _)| plain_column(*place)).collect();
        for ident in &included {
            let name = fold_ident(ident);
            index.included.push(place(&name).ok_or_else(|| missing_in_key(&name, position()))?);
            names.push(name);
        }
        index.name = match &constraint.name {
            Some(ident) => fold_ident(ident),
            None => self.free_name(table, Some(&index_columns_name(&names)), "key", taken),
        };
        check_width(&index)?;
        Ok(index)
    }

    /// The index of UNIQUE behind a column.
    pub(super) fn unique_column(
        &self,
        table: &str,
        (unique, column): (&UniqueColumn, &str),
        taken: &[String],
    ) -> Index {
        let name = unique.name.clone().unwrap_or_else(|| self.free_name(table, Some(column), "key", taken));
        let (columns, nulls_not_distinct) = (vec![plain_column(unique.at)], unique.nulls_not_distinct);
        Index { name, columns, nulls_not_distinct, ..new_index(true, true) }
    }

    /// The columns of INCLUDE of a key constraint. Its storage parameters tune PostgreSQL's indexes: they are accepted
    /// and ignored.
    pub(super) fn key_options(
        &self,
        (method, options): (Option<&IndexType>, &[IndexOption]),
        at: Location,
    ) -> Result<Vec<Ident>, SqlError> {
        self.index_method(method, at)?;
        let mut names = Vec::new();
        for option in options {
            if let Some(parameters) = storage_parameters(option) {
                parameters.iter().try_for_each(|ident| Self::known_parameter(&fold_ident(ident)))?;
            } else if let Some(included) = included(option) {
                names = included;
            } else {
                return Err(self.unsupported("this option of a constraint is", at));
            }
        }
        Ok(names)
    }

    /// Checks the options of a primary key, which has its row as its value: there is nothing to include.
    pub(super) fn primary_key_options(
        &self,
        options: (Option<&IndexType>, &[IndexOption]),
        at: Location,
    ) -> Result<(), SqlError> {
        match self.key_options(options, at)?.is_empty() {
            true => Ok(()),
            false => Err(self.unsupported("INCLUDE of a primary key is", at)),
        }
    }

    /// Where PostgreSQL points for an error of a table constraint.
    pub(super) fn constraint_position(&self, name: Option<&Ident>, at: Location, word: &str) -> u32 {
        match name {
            Some(name) => self.position_before(name.span.start, "constraint"),
            None => self.position_before(at, word),
        }
    }

    /// The columns of a key constraint.
    pub(super) fn constraint_columns(
        &self,
        columns: &[AstColumn],
        place: impl Fn(&str) -> Option<usize>,
        what: &str,
        (at, position): (Location, u32),
    ) -> Result<Vec<(usize, String)>, SqlError> {
        let mut out: Vec<(usize, String)> = Vec::with_capacity(columns.len());
        for column in columns {
            let ident = constraint_column(column).ok_or_else(|| self.unsupported("this form of a key is", at))?;
            let name = fold_ident(ident);
            let place = place(&name).ok_or_else(|| missing_in_key(&name, position))?;
            if out.iter().any(|(earlier, _)| *earlier == place) {
                let message = format!("column \"{name}\" appears twice in {what}");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message).at(position));
            }
            out.push((place, name));
        }
        Ok(out)
    }

    /// Binds DROP INDEX.
    pub(super) fn drop_index(
        &mut self,
        names: &[ObjectName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Body, SqlError> {
        let mut changes: Vec<Alteration> = Vec::new();
        let mut dropped: Vec<(String, Dependents)> = Vec::new();
        for name in names {
            let Some((relation, shown)) = self.find_relation(name)? else {
                let shown = self.name_parts(name)?.join(".");
                let message = format!("index \"{shown}\" does not exist");
                if !if_exists {
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
                }
                let message = format!("{message}, skipping");
                self.notices.push(Notice { code: SqlState::SUCCESSFUL_COMPLETION, message, is_warning: false });
                continue;
            };
            let Relation::Index(table) = relation else {
                let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{shown}\" is not an index"));
                return Err(error.hint(hint_to_drop(&relation)));
            };
            if table.index(&shown).is_none_or(|index| index.is_constraint) {
                let message =
                    format!("cannot drop index {shown} because constraint {shown} on table {} requires it", table.name);
                let hint = format!("You can drop constraint {shown} on table {} instead.", table.name);
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message).hint(hint));
            }
            let known = changes.iter().position(|change| change.old.id == table.id);
            let at = known.unwrap_or_else(|| {
                changes.push(Alteration::of(table));
                changes.len() - 1
            });
            if let Some(change) = changes.get_mut(at) {
                change.new.indexes.retain(|index| index.name != shown);
                let found = of_key(&change.new, &shown, self.catalog);
                dropped.push((shown, found));
            }
        }
        let what = match dropped.as_slice() {
            [(only, _)] => format!("index {only}"),
            _ => "desired object(s)".to_owned(),
        };
        let mut found = Dependents::default();
        dropped.into_iter().for_each(|(_, keys)| found.add_keys(keys));
        if let Some(message) = found.check(&what, cascade)? {
            self.notices.push(Notice { code: SqlState::SUCCESSFUL_COMPLETION, message, is_warning: false });
        }
        for other in found.alterations(self.catalog)? {
            let (child, keys) = (other.old.id, &other.new.foreign_keys);
            // These are not referred to any more.
            for change in changes.iter_mut().filter(|change| keys.iter().all(|key| key.parent != change.old.id)) {
                change.new.referenced_by.retain(|id| *id != child);
            }
            match changes.iter_mut().find(|change| change.old.id == child) {
                Some(change) => change.new.foreign_keys = other.new.foreign_keys,
                None => changes.push(other),
            }
        }
        Ok(Body::AlterTables("DROP INDEX", changes))
    }
}

fn new_index(unique: bool, is_constraint: bool) -> Index {
    Index {
        id: IndexId(0),
        storage: StorageId(0),
        name: String::new(),
        columns: Vec::new(),
        unique,
        nulls_not_distinct: false,
        is_constraint,
        predicate: None,
        included: Vec::new(),
    }
}

/// Whether a UNIQUE constraint takes NULLs for equal.
pub(super) fn has_equal_nulls(constraint: &UniqueConstraint) -> bool {
    constraint.nulls_distinct == NullsDistinctOption::NotDistinct
}

fn missing_in_key(name: &str, position: u32) -> SqlError {
    let message = format!("column \"{name}\" named in key does not exist");
    SqlError::new(SqlState::UNDEFINED_COLUMN, message).at(position)
}

fn plain_column(at: usize) -> IndexColumn {
    IndexColumn { value: IndexedValue::Column(at), order: KeyOrder::default() }
}

fn check_width(index: &Index) -> Result<(), SqlError> {
    if index.columns.len() + index.included.len() <= MAX_INDEX_COLUMNS {
        return Ok(());
    }
    let message = format!("cannot use more than {MAX_INDEX_COLUMNS} columns in an index");
    Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message))
}

/// The name of a column in a constraint that is a plain column.
fn constraint_column(column: &AstColumn) -> Option<&Ident> {
    let options = &column.column.options;
    if column.operator_class.is_some() || options.asc.is_some() || options.nulls_first.is_some() {
        return None;
    }
    match &column.column.expr {
        Ast::Identifier(ident) => Some(ident),
        _ => None,
    }
}
