//! INSERT, UPDATE and DELETE: as statements, and inside WITH.
//!
//! A change inside WITH runs once, to its end, whether its rows are read or not. It is allowed where the WITH belongs
//! to the statement itself.

use sqlparser::ast::{Cte, FromTable, Spanned, Statement};

use sqlparser::tokenizer::Location;

use super::binder::Binder;
use super::node::{Body, ResultColumn, WithBody, WithQuery};
use super::with_name::WithName;
use crate::error::{SqlError, SqlState};

impl Binder<'_> {
    /// Binds INSERT, UPDATE or DELETE. The columns are those of RETURNING.
    pub(super) fn change(&mut self, tree: &Statement) -> Result<(Body, Option<Vec<ResultColumn>>), SqlError> {
        match tree {
            Statement::Insert(insert) => {
                let (plan, columns) = self.insert(insert)?;
                Ok((Body::Insert(plan), columns))
            }
            Statement::Update(update) => {
                let (plan, columns) = self.update(update)?;
                Ok((Body::Update(Box::new(plan)), columns))
            }
            Statement::Delete(delete) => {
                let from = match &delete.from {
                    FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from) => from,
                };
                let (plan, columns) = self.delete(delete, from)?;
                Ok((Body::Delete(plan), columns))
            }
            other => Err(self.unsupported("this statement here is", other.span().start)),
        }
    }

    /// Binds a query of WITH that changes rows. `is_top`: whether the WITH is that of the statement.
    pub(super) fn with_change(
        &mut self,
        name: String,
        (cte, change): (&Cte, &Statement),
        is_top: bool,
    ) -> Result<(), SqlError> {
        if !is_top {
            let message = "WITH clause containing a data-modifying statement must be at the top level";
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, cte.alias.name.span.start));
        }
        let names = self.with_names.len();
        if let Some(with) = &cte.query.with {
            self.with_clause(with, false)?;
        }
        let (aggregates, targets) = (std::mem::take(&mut self.aggregates), std::mem::take(&mut self.targets));
        let clause = std::mem::take(&mut self.clause);
        let bound = self.change(change);
        (self.aggregates, self.targets, self.clause) = (aggregates, targets, clause);
        self.with_names.truncate(names);
        let (body, returned) = bound?;
        let has_rows = returned.is_some();
        let columns = self.renamed(returned.unwrap_or_default(), cte, &name)?;
        let (query, depth) = (self.with.len(), self.frames.len());
        self.with.push(WithQuery { name: name.clone(), body: WithBody::Change(Box::new(body)), is_read: false });
        let args = Vec::new();
        self.with_names.push(WithName { name, columns, has_rows, query, is_recursion: false, args, depth });
        Ok(())
    }

    /// 0A000 for a reference to a change without RETURNING.
    pub(super) fn check_has_rows(&self, with: &WithName, at: Location) -> Result<(), SqlError> {
        if with.has_rows {
            return Ok(());
        }
        let message = format!("WITH query \"{}\" does not have a RETURNING clause", with.name);
        Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at))
    }
}
