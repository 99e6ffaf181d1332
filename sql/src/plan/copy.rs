//! Binding of COPY. COPY TO is a query whose rows the session sends in another form. COPY FROM is a plan of its own.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sqlparser::ast::{Expr as Ast, Ident, ObjectName, ObjectNamePart, SetExpr, Statement};

use super::binder::{Binder, Scope};
use super::names::fold_ident;
use super::node::{Body, CopyFromPlan, Plan, Whole};
use super::statement::{bind, takes_locks, uses_sequences};
use super::{constants, cost};
use crate::catalog::Catalog;
use crate::copy::{ColumnSet, CopyOptions, CopyReader, CopyStatement, CopyTarget, CopyWriter, Identifier};
use crate::deep_stack;
use crate::error::{SqlError, SqlState};
use crate::parse::{self, Parsed};
use crate::table::{Table, quote_identifier};

/// What the session does with the rows of a COPY.
#[derive(Debug)]
pub(crate) enum CopySpec {
    /// Reads them from the client.
    From {
        /// The options.
        options: CopyOptions,
        /// Name, whether FORCE_NOT_NULL and whether FORCE_NULL, for each column of the data.
        columns: Vec<(String, bool, bool)>,
    },
    /// Sends them to the client.
    To(CopyWriter),
}

impl CopySpec {
    /// A reader of the client's data. `None` of COPY TO.
    pub(crate) fn reader(&self) -> Option<CopyReader> {
        match self {
            CopySpec::From { options, columns } => Some(CopyReader::new(options.clone(), columns.iter().cloned())),
            CopySpec::To(_) => None,
        }
    }
}

/// Binds COPY. `statement` is the tree of its [`CopyStatement::source`].
pub(crate) fn bind_copy(
    statement: &Parsed,
    copy: &CopyStatement,
    catalog: &Catalog,
) -> Result<(Arc<Plan>, CopySpec), SqlError> {
    deep_stack::run(statement.is_deep(), || match &copy.target {
        CopyTarget::Table { name, columns } if copy.is_from => copy_from(statement, copy, (name, columns), catalog),
        CopyTarget::Table { name, columns } => {
            // Errors have no position: the query is not the client's.
            copy_table(statement, copy, (name, columns), catalog).map_err(|error| error.at(0))
        }
        CopyTarget::Query(_) => {
            let plan = bind_query(statement, catalog)?;
            let spec = copy_to(copy, &plan, None)?;
            Ok((plan, spec))
        }
    })
}

/// Binds the query of COPY.
fn bind_query(statement: &Parsed, catalog: &Catalog) -> Result<Arc<Plan>, SqlError> {
    let is_change = match &statement.tree {
        Statement::Query(query) => {
            if matches!(&*query.body, SetExpr::Select(select) if select.into.is_some()) {
                let message = "COPY (SELECT INTO) is not supported";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            false
        }
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => true,
        _ => {
            let word = statement.command().split(' ').next().unwrap_or_default().to_lowercase();
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{word}\"")));
        }
    };
    let plan = bind(statement, None, catalog)?;
    if is_change && plan.columns.is_none() {
        let message = "COPY query must have a RETURNING clause";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(plan)
}

/// Binds COPY TO of a table: a query for its columns.
fn copy_table(
    statement: &Parsed,
    copy: &CopyStatement,
    (name, columns): (&[Identifier], &[Identifier]),
    catalog: &Catalog,
) -> Result<(Arc<Plan>, CopySpec), SqlError> {
    let view = Binder::new(statement, None, catalog).find_view(&object_name(name)).map_err(|error| error.at(0))?;
    if let Some(view) = view {
        let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("cannot copy from view \"{}\"", view.name()));
        return Err(error.hint("Try the COPY (SELECT ...) TO variant."));
    }
    if columns.is_empty() {
        let table = Binder::new(statement, None, catalog).table(&object_name(name))?;
        let listed = copied(&table);
        if listed.len() < table.columns.len() {
            // Generated columns are left out.
            let names: Vec<String> = listed.iter().map(|at| quote_identifier(&table.columns[*at].name)).collect();
            let text = format!("SELECT {} FROM {}", names.join(", "), object_name(name));
            let parsed = parse::parse(&text)?.pop().ok_or_else(|| SqlError::internal("COPY has no query"))?;
            let plan = bind(&parsed, None, catalog)?;
            let spec = copy_to(copy, &plan, None)?;
            return Ok((plan, spec));
        }
        let plan = bind(statement, None, catalog)?;
        let spec = copy_to(copy, &plan, None)?;
        return Ok((plan, spec));
    }
    let table = Binder::new(statement, None, catalog).readable_table(&object_name(name))?;
    CopyOptions::of(copy)?;
    targets(&table, columns)?;
    let plan = bind(statement, None, catalog)?;
    let spec = copy_to(copy, &plan, Some(&table))?;
    Ok((plan, spec))
}

/// What the session does with the rows of a plan. `table`: that of which only some columns are copied.
fn copy_to(copy: &CopyStatement, plan: &Plan, table: Option<&Table>) -> Result<CopySpec, SqlError> {
    let options = CopyOptions::of(copy)?;
    let names: Vec<&str> = plan.columns.iter().flatten().map(|column| column.name.as_str()).collect();
    let relation = if copy.is_query() { None } else { plan.tables().next().map(|table| table.name.as_str()) };
    let quoted = chosen(&options.force_quote, &names, |name| {
        if table.is_some_and(|table| table.column(name).is_some()) {
            return not_copied("FORCE_QUOTE", name);
        }
        match relation {
            Some(relation) => no_column(name, relation),
            None => SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist")),
        }
    })?;
    Ok(CopySpec::To(CopyWriter::new(options, quoted)))
}

/// The table that COPY FROM fills.
fn copied_table(binder: &Binder<'_>, name: &[Identifier]) -> Result<Arc<Table>, SqlError> {
    if let Some(view) = binder.find_view(&object_name(name)).map_err(|error| error.at(0))? {
        let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("cannot copy to view \"{}\"", view.name()));
        return Err(error.hint("To enable copying to a view, provide an INSTEAD OF INSERT trigger."));
    }
    binder.table(&object_name(name)).map_err(|error| error.at(0))
}

/// The WHERE of a statement that is a plain SELECT.
fn where_of(tree: &Statement) -> Option<&Ast> {
    let Statement::Query(query) = tree else { return None };
    match &*query.body {
        SetExpr::Select(select) => select.selection.as_ref(),
        _ => None,
    }
}

/// Binds COPY FROM.
fn copy_from(
    statement: &Parsed,
    copy: &CopyStatement,
    (name, columns): (&[Identifier], &[Identifier]),
    catalog: &Catalog,
) -> Result<(Arc<Plan>, CopySpec), SqlError> {
    let mut binder = Binder::new(statement, None, catalog);
    let table = copied_table(&binder, name)?;
    let filter = where_of(&statement.tree);
    binder.clause = "COPY FROM WHERE conditions";
    let filter = filter.map(|filter| binder.condition(filter, &Scope::of(&table, None), "WHERE")).transpose()?;
    let options = CopyOptions::of(copy)?;
    let columns = if columns.is_empty() { copied(&table) } else { targets(&table, columns)? };
    let names: Vec<&str> = columns.iter().map(|at| table.columns[*at].name.as_str()).collect();
    let missing = |option: &'static str| {
        let table = &table;
        move |name: &str| match table.column(name) {
            Some(_) => not_copied(option, name),
            None => no_column(name, &table.name),
        }
    };
    let not_null = chosen(&options.force_not_null, &names, missing("FORCE_NOT_NULL"))?;
    let null = chosen(&options.force_null, &names, missing("FORCE_NULL"))?;
    let forced = not_null.into_iter().zip(null);
    let data = names.iter().zip(forced).map(|(name, (not_null, null))| ((*name).to_owned(), not_null, null)).collect();
    let others = (0..table.columns.len()).filter(|at| !columns.contains(at));
    let defaults =
        others.map(|at| Ok((at, binder.default_of(&table.columns[at])?))).collect::<Result<_, SqlError>>()?;
    let write = binder.table_write(table)?;
    let lookups = binder.take_lookups();
    let references = binder.references.take();
    let body = Body::CopyFrom(CopyFromPlan { write, columns, defaults, filter });
    // PostgreSQL allows none in WHERE either.
    if !binder.subplans.is_empty() {
        let message = "cannot use subquery in COPY FROM WHERE condition";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let whole = Whole { body: &body, subplans: &[], with: &[] };
    if takes_locks(&whole)? {
        let message = "functions of advisory locks in COPY are not supported";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let draws = uses_sequences(&whole)?;
    let (constant_parts, cost) = (constants::any_in(&whole), cost::of(&whole));
    let plan = Plan {
        valid_for: AtomicU64::new(catalog.version),
        sight: catalog.sight().clone(),
        lookups,
        params: Vec::new(),
        columns: None,
        command: Some("COPY FROM"),
        writes: true,
        is_ddl: false,
        outside_block_only: None,
        constant_parts,
        needs_transaction: false,
        takes_locks: false,
        changes_in_with: false,
        uses_sequences: draws,
        changed_sequence: None,
        plain: None,
        notices: Vec::new(),
        cost,
        analyze: None,
        subplans: Vec::new(),
        with: Vec::new(),
        references,
        statistics: None,
        body,
    };
    Ok((Arc::new(plan), CopySpec::From { options, columns: data }))
}

/// The positions of columns by name.
fn targets(table: &Table, columns: &[Identifier]) -> Result<Vec<usize>, SqlError> {
    let mut targets = Vec::with_capacity(columns.len());
    for column in columns {
        let name = fold_ident(&ident(column));
        let at = table.column(&name).ok_or_else(|| no_column(&name, &table.name))?;
        if targets.contains(&at) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        if table.columns.get(at).is_some_and(|column| column.generated.is_some()) {
            let error =
                SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, format!("column \"{name}\" is a generated column"));
            return Err(error.detail("Generated columns cannot be used in COPY."));
        }
        targets.push(at);
    }
    Ok(targets)
}

/// The columns that are copied if none are named.
fn copied(table: &Table) -> Vec<usize> {
    let places = table.columns.iter().enumerate();
    places.filter(|(_, column)| column.generated.is_none()).map(|(at, _)| at).collect()
}

/// Which of the copied columns an option names. `missing`: the error of one that is not copied.
fn chosen(set: &ColumnSet, names: &[&str], missing: impl Fn(&str) -> SqlError) -> Result<Vec<bool>, SqlError> {
    let mut chosen = vec![*set == ColumnSet::All; names.len()];
    let ColumnSet::Named(listed) = set else { return Ok(chosen) };
    for (at, listed_name) in listed.iter().enumerate() {
        if listed[..at].contains(listed_name) {
            let message = format!("column \"{listed_name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let place = names.iter().position(|name| name == listed_name).ok_or_else(|| missing(listed_name))?;
        chosen[place] = true;
    }
    Ok(chosen)
}

fn no_column(name: &str, table: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" of relation \"{table}\" does not exist"))
}

fn not_copied(option: &str, name: &str) -> SqlError {
    let message = format!("{option} column \"{name}\" not referenced by COPY");
    SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message)
}

fn ident(name: &Identifier) -> Ident {
    if name.is_quoted { Ident::with_quote('"', name.text.clone()) } else { Ident::new(name.text.clone()) }
}

fn object_name(parts: &[Identifier]) -> ObjectName {
    ObjectName(parts.iter().map(|part| ObjectNamePart::Identifier(ident(part))).collect())
}
