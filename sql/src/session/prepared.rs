//! PREPARE and EXECUTE. Prepared statements of SQL and of the protocol share a name space and everything else: Bind
//! runs what PREPARE has prepared, and EXECUTE what Parse has. They outlive transactions, failed ones too.

use std::sync::Arc;

use super::execute::changed_result;
use super::fault::Fault;
use super::long_text::is_long;
use super::nested::{Execute, Prepare};
use super::rows::Formats;
use super::state::Session;
use super::statement::{BoundStatement, Call, Prepared, Query, Run, StatementBody, unknown_statement};
use crate::error::{SqlError, SqlState};
use crate::exec::Execution;
use crate::metrics::StatementKind;
use crate::plan;
use crate::protocol::output::Output;
use pgtypes::{Datum, SqlType};

/// Approximate memory of a plan, as a multiple of its text.
const PLAN_WEIGHT: usize = 16;

/// The memory of a prepared statement, accounted by its text.
pub(crate) fn prepared_bytes(text: &str) -> usize {
    text.len().saturating_mul(PLAN_WEIGHT)
}

/// 42P05.
pub(crate) fn duplicate_statement(name: &str) -> SqlError {
    let message = format!("prepared statement \"{name}\" already exists");
    SqlError::new(SqlState::DUPLICATE_PREPARED_STATEMENT, message)
}

impl Session {
    /// PREPARE. Binds the query at once, so that its errors are those of PREPARE.
    pub(crate) async fn prepare(&mut self, prepare: &Prepare, query: &Arc<Query>) -> Result<(), Fault> {
        self.state.check_not_failed()?;
        self.node.metrics.statement(StatementKind::Other);
        let bytes = prepared_bytes(&prepare.text);
        self.statements.check_capacity(&prepare.name, bytes)?;
        self.begin_for(query).await?;
        let (catalog, _) = self.catalog()?;
        let declared: Arc<[SqlType]> = prepare.types(&catalog)?.into();
        let bound = self.plan(query, Some(&declared), None).await?;
        if self.statements.get(&prepare.name).is_some() {
            return Err(duplicate_statement(&prepare.name).into());
        }
        let prepared = Prepared {
            body: StatementBody::Query(query.clone()),
            bound: Some(bound),
            char_offset: self.char_offset,
            text: prepare.text.as_str().into(),
            created: (self.node.wall_clock)(),
            from_sql: true,
        };
        self.statements.insert(prepare.name.clone(), prepared, bytes);
        Ok(())
    }

    /// The call that EXECUTE stands for. Evaluates its parameters.
    pub(crate) async fn execute_call(
        &mut self,
        execute: &Execute,
        values: Option<&Arc<Query>>,
        formats: Formats,
        out: &mut Output,
    ) -> Result<Call, Fault> {
        self.state.check_not_failed()?;
        let name = execute.name.as_str();
        let Some(prepared) = self.statements.get(name).cloned() else {
            return Err(unknown_statement(name).into());
        };
        let StatementBody::Query(query) = &prepared.body else {
            let message = format!("EXECUTE of \"{name}\" is not supported: it is a statement of the session");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).into());
        };
        let bound = self.current_plan(name, &prepared).await?;
        let params = self.parameters(name, values, bound.params.clone(), out).await?;
        let (query, bound) = match &execute.explain {
            None => (query.clone(), bound),
            Some(explain) => {
                let Some(explained) = Query::parse(&format!("{explain}{}", query.text.trim_start()))? else {
                    return Err(SqlError::internal("an explained statement is empty").into());
                };
                let explained = Arc::new(explained);
                let types = bound.params.clone();
                let bound = self.plan(&explained, Some(&types), None).await?;
                (explained, bound)
            }
        };
        let params = self.check_constants(&bound, params).await?;
        Ok(Call { query, bound, params, formats })
    }

    /// Evaluates the parameters of EXECUTE, converted to `types`.
    async fn parameters(
        &mut self,
        name: &str,
        values: Option<&Arc<Query>>,
        types: Arc<[SqlType]>,
        out: &mut Output,
    ) -> Result<Vec<Datum>, Fault> {
        if types.is_empty() {
            // As in PostgreSQL, any others are ignored.
            return Ok(Vec::new());
        }
        let Some(values) = values else { return Err(plan::wrong_number(name, types.len(), 0).into()) };
        let (catalog, _) = self.catalog()?;
        let Some(active) = &self.active else { return Err(SqlError::internal("no transaction").into()) };
        let snapshot = active.txn.statement();
        let bind = {
            let (values, name) = (values.clone(), name.to_owned());
            move || plan::bind_parameters(&values.parsed()?, &name, &types, &catalog)
        };
        let plan = if is_long(&values.text) {
            Box::pin(self.interrupt.guard(self.deadline, self.node.workers.run(bind))).await?
        } else {
            bind()?
        };
        let bound = Arc::new(BoundStatement::new(plan, true)?);
        let execution = Execution::new(bound.plan.clone(), Vec::new())?;
        let (reads, notices, formats) = (None, Vec::new(), Formats::TEXT);
        let (commit_follows, locks_rows, finished, copy) = (false, false, false, None);
        let mut run =
            Run { bound, execution, formats, reads, notices, commit_follows, locks_rows, snapshot, finished, copy };
        let mut params = None;
        let mut keep = |row| {
            params = Some(row);
            Ok(())
        };
        self.next_rows(&mut run, 1, Some(&mut keep), out).await?;
        params.ok_or_else(|| SqlError::internal("parameters without a row").into())
    }

    /// The plan of a prepared statement for the current catalog. Fails if the result columns differ from those
    /// described to the client.
    pub(crate) async fn current_plan(&mut self, name: &str, prepared: &Prepared) -> Result<Arc<BoundStatement>, Fault> {
        let (StatementBody::Query(query) | StatementBody::Declare(_, query), Some(reported)) =
            (&prepared.body, &prepared.bound)
        else {
            return Err(unknown_statement(name).into());
        };
        // Parameter types stay as described to the client, whatever inference would give now.
        let bound = self.plan(query, Some(&reported.params), Some(reported)).await?;
        if Arc::ptr_eq(&bound, reported) {
            return Ok(bound);
        }
        if !reported.same_columns(&bound) {
            return Err(changed_result().into());
        }
        if let Some(kept) = self.statements.get_mut(name) {
            kept.bound = Some(bound.clone());
        }
        Ok(bound)
    }
}
