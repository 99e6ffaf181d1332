//! Binding of expressions that the catalog stores as SQL.

use sqlparser::ast::Expr as Ast;

use super::binder::Binder;
use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::parse;

/// Binds the stored text of an expression.
pub(super) fn bind_stored<T>(
    text: &str,
    catalog: &Catalog,
    bind: impl FnOnce(&mut Binder<'_>, &Ast) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let statement = parse::parse(&format!("SELECT {text}"))?.pop().ok_or_else(damaged)?;
    let ast = statement.only_expression().ok_or_else(damaged)?;
    let mut binder = Binder::new(&statement, None, catalog);
    binder.is_stored = true;
    binder.clause = "index expressions";
    bind(&mut binder, ast)
}

fn damaged() -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, "an expression of a table cannot be read")
}
