//! Binding of expressions that the catalog stores as SQL.

use sqlparser::ast::{Expr as Ast, SelectItem, SetExpr, Statement};

use super::binder::Binder;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::parse::{self, Parsed};

/// Binds the stored text of an expression.
pub(super) fn bind_stored<T>(
    text: &str,
    catalog: &Catalog,
    bind: impl FnOnce(&mut Binder<'_>, &Ast) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let statement = parse::parse(&format!("SELECT {text}"))?.pop().ok_or_else(damaged)?;
    let ast = only_expression(&statement).ok_or_else(damaged)?;
    let mut binder = Binder::new(&statement, None, catalog);
    binder.is_stored = true;
    binder.clause = "index expressions";
    bind(&mut binder, ast)
}

fn only_expression(statement: &Parsed) -> Option<&Ast> {
    let Statement::Query(query) = &statement.tree else { return None };
    let SetExpr::Select(select) = &*query.body else { return None };
    match &select.projection[..] {
        [SelectItem::UnnamedExpr(ast)] => Some(ast),
        _ => None,
    }
}

fn damaged() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "an expression of a table cannot be read")
}
