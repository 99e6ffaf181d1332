//! Binding of the parameters of EXECUTE: expressions without columns, converted to the types of a prepared statement.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sqlparser::ast::{Expr as Ast, SetExpr, Statement};

use super::binder::{Binder, Scope};
use super::constants;
use super::cost;
use super::insert::values_plan;
use super::names::is_default;
use super::node::{Body, Plan, ResultColumn, Whole};
use super::statement::needs_transaction;
use crate::catalog::Catalog;
use crate::deep_stack;
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::lexer::{Lexer, Token};
use crate::parse::{Parsed, start_of};
use pgtypes::SqlType;
use pgtypes::cast::CastContext;

/// Binds VALUES of one row, the parameters of the prepared statement `name`, to a query for the converted values.
pub(crate) fn bind_parameters(
    statement: &Parsed,
    name: &str,
    types: &[SqlType],
    catalog: &Catalog,
) -> Result<Arc<Plan>, SqlError> {
    deep_stack::run(statement.is_deep(), || bind_on_this_stack(statement, name, types, catalog))
}

/// 42601 for another number of parameters than the statement has.
pub(crate) fn wrong_number(name: &str, expected: usize, given: usize) -> SqlError {
    let message = format!("wrong number of parameters for prepared statement \"{name}\"");
    SqlError::new(SqlState::SYNTAX_ERROR, message).detail(format!("Expected {expected} parameters but got {given}."))
}

fn bind_on_this_stack(
    statement: &Parsed,
    name: &str,
    types: &[SqlType],
    catalog: &Catalog,
) -> Result<Arc<Plan>, SqlError> {
    let asts = row_of(statement)?;
    if asts.len() != types.len() {
        return Err(wrong_number(name, types.len(), asts.len()));
    }
    refuse_subqueries(statement)?;
    let mut binder = Binder::new(statement, None, catalog);
    binder.clause = "EXECUTE parameters";
    let mut row = Vec::with_capacity(types.len());
    for (at, (ast, ty)) in asts.iter().zip(types).enumerate() {
        if is_default(ast) {
            let message = "DEFAULT is not allowed in this context";
            return Err(binder.error(SqlState::SYNTAX_ERROR, message, start_of(ast)));
        }
        let value = binder.expr(ast, &Scope::default())?;
        let (from, start) = (binder.type_text(value.ty), value.at);
        let Some(value) = binder.coerce(value, *ty, CastContext::Assignment)? else {
            let number = at + 1;
            let to = binder.type_text(*ty);
            let message = format!("parameter ${number} of type {from} cannot be coerced to the expected type {to}");
            let hint = "You will need to rewrite or cast the expression.";
            return Err(binder.error(SqlState::DATATYPE_MISMATCH, message, start).hint(hint));
        };
        row.push(value.expr);
    }
    if row.iter().any(Expr::takes_locks) {
        let message = "functions of advisory locks in EXECUTE parameters are not supported";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    if row.iter().any(Expr::uses_sequences) {
        let message = "functions of sequences in EXECUTE parameters are not supported";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let column = |ty: &SqlType| ResultColumn { name: "parameter".to_owned(), ty: *ty, origin: (0, 0) };
    let body = Body::Select(values_plan(vec![row]));
    let whole = Whole { body: &body, subplans: &[], with: &[] };
    let (constant_parts, cost) = (constants::any_in(&whole), cost::of(&whole));
    Ok(Arc::new(Plan {
        valid_for: AtomicU64::new(catalog.version),
        sight: catalog.sight().clone(),
        lookups: binder.take_lookups(),
        command: None,
        params: Vec::new(),
        columns: Some(types.iter().map(column).collect()),
        writes: false,
        is_ddl: false,
        outside_block_only: None,
        constant_parts,
        takes_locks: false,
        changes_in_with: false,
        uses_sequences: false,
        changed_sequence: None,
        needs_transaction: needs_transaction(&whole),
        cost,
        plain: None,
        notices: Vec::new(),
        analyze: None,
        references: None,
        statistics: None,
        subplans: Vec::new(),
        with: Vec::new(),
        body,
    }))
}

/// The expressions of the row.
fn row_of(statement: &Parsed) -> Result<&[Ast], SqlError> {
    if let Statement::Query(query) = &statement.tree
        && let SetExpr::Values(values) = &*query.body
        && let [row] = values.rows.as_slice()
    {
        return Ok(&row.content);
    }
    Err(SqlError::internal("parameters are not one row"))
}

/// 0A000 for a subquery.
fn refuse_subqueries(statement: &Parsed) -> Result<(), SqlError> {
    let mut lexer = Lexer::new(statement.text.as_str());
    let mut opened = None;
    // The word before, if the construct begins with it; that of NOT IN.
    let (mut word_before, mut not_before) = (None, None);
    let mut is_first = true;
    while let Some(found) = lexer.next() {
        let is_any = |word: &str, words: &[&str]| words.iter().any(|w| word.eq_ignore_ascii_case(w));
        match (&found.token, opened) {
            (Token::Word(word), Some(at)) if is_any(word, &["select", "values", "with"]) => {
                let message = "cannot use subquery in EXECUTE parameter";
                let position = statement.text.position_of_byte(at);
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(position));
            }
            // The first one is that of VALUES.
            (Token::Symbol('('), None) if is_first => is_first = false,
            (Token::Symbol('('), at) => opened = at.or(word_before).or(Some(found.start)),
            (Token::Word(word), _) => {
                opened = None;
                let follows_not = not_before.filter(|_| word.eq_ignore_ascii_case("in"));
                word_before = follows_not.or(is_any(word, &["exists", "array", "in"]).then_some(found.start));
                not_before = word.eq_ignore_ascii_case("not").then_some(found.start);
                continue;
            }
            _ => opened = None,
        }
        (word_before, not_before) = (None, None);
    }
    Ok(())
}
