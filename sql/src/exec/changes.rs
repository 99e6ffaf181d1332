//! Changes of rows: their number and the rows of RETURNING. Common to INSERT, UPDATE and DELETE.

use std::collections::VecDeque;

use futures::future::{BoxFuture, Either, Ready, ready};

use super::budget::Budget;
use super::context::ExecContext;
use super::rows::{Row, row_bytes};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::expr::eval::{Env, eval};
use pgtypes::Datum;

/// The work of encoding and buffering a row, or an entry of an index, in units of [`crate::coop::Turn`].
pub(super) const STORE_UNITS: usize = 10;

/// Work that is mostly done at once, without a future of its own.
type MostlyReady<'f> = Either<Ready<Result<(), SqlError>>, BoxFuture<'f, Result<(), SqlError>>>;

/// Takes the advisory locks that expressions take which are about to be evaluated over a row.
pub(super) fn rehearse<'f>(
    exprs: impl IntoIterator<Item = &'f Expr>,
    row: &'f Row,
    ctx: &'f mut ExecContext<'_>,
    params: &'f [Datum],
) -> MostlyReady<'f> {
    if !ctx.rehearses() {
        return Either::Left(ready(Ok(())));
    }
    let exprs: Vec<&Expr> = exprs.into_iter().collect();
    let evaluate = move |env: &Env<'_>| exprs.iter().try_for_each(|expr| eval(expr, row, env).map(drop));
    Either::Right(ctx.rehearse(params, evaluate))
}

/// The result of a change of rows.
#[derive(Default)]
pub(super) struct Changes {
    /// Number of changed rows.
    pub(super) count: u64,
    /// The rows of RETURNING.
    pub(super) returned: VecDeque<Row>,
}

impl Changes {
    /// Counts a changed row and evaluates RETURNING.
    pub(super) fn record(
        &mut self,
        returning: Option<&Vec<Expr>>,
        row: &Row,
        env: &Env<'_>,
        budget: &mut Budget,
    ) -> Result<(), SqlError> {
        self.count += 1;
        if let Some(returning) = returning {
            let returned = returning
                .iter()
                .map(|expr| Ok(eval(expr, row, env)?.into_owned()))
                .collect::<Result<Row, SqlError>>()?;
            budget.charge(row_bytes(&returned))?;
            self.returned.push_back(returned);
        }
        Ok(())
    }
}
