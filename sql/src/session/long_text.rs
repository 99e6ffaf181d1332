//! Long texts: split, parsed and bound on a thread for blocking work, because that cannot yield.
//!
//! Short texts take the direct path in [`super::execute`]. The session waits for the other thread as for anything
//! else: cancel, `statement_timeout` and shutdown end the wait, and the thread's result is dropped there.
//! [`crate::coop::Workers`] bounds the threads of a node.

use std::sync::Arc;

use super::control;
use super::nested::{Nested, parse_nested};
use super::state::Session;
use super::statement::{BoundStatement, Query, StatementBody};
use crate::catalog::Catalog;
use crate::coop::drop_elsewhere;
use crate::error::SqlError;
use crate::lexer::{self, StatementSpan};
use crate::plan;
use pgtypes::{Datum, IoEnv, NoNames, SqlType};

/// Texts up to this length are parsed and bound on the session's own thread, in at most some 3 ms: on a small machine
/// a row of VALUES takes 200 ns a byte.
const LONG_TEXT_BYTES: usize = 16 << 10;

/// Whether a text is parsed and bound on another thread.
pub(super) fn is_long(text: &str) -> bool {
    text.len() > LONG_TEXT_BYTES
}

/// A query string that was split, and parsed if it is a single statement.
pub(crate) enum SplitText {
    /// Not one statement: none, or several that were not parsed.
    Spans(Vec<StatementSpan>),
    /// One statement. A parse error is one of the statement alone; see [`StatementSpan::locate`].
    Single(StatementSpan, Result<StatementBody, SqlError>),
}

impl SplitText {
    /// Splits a text. Parses it if it is one statement.
    pub(super) fn new(text: &str) -> SplitText {
        let spans = lexer::split_statements(text);
        match spans.as_slice() {
            [only] => SplitText::Single(*only, parse_body(only.text(text))),
            _ => SplitText::Spans(spans),
        }
    }
}

/// Parses one statement.
pub(super) fn parse_body(text: &str) -> Result<StatementBody, SqlError> {
    if let Some(nested) = parse_nested(text)? {
        return parse_inner(nested);
    }
    if let Some(control) = control::parse_control(text)? {
        return Ok(StatementBody::Control(Arc::new(control)));
    }
    Ok(match Query::parse(text)? {
        Some(query) => StatementBody::Query(Arc::new(query)),
        None => StatementBody::Empty,
    })
}

/// Parses the query of a statement around one.
fn parse_inner(nested: Nested) -> Result<StatementBody, SqlError> {
    let inner = |text: &str| match Query::parse(text)? {
        Some(query) => Ok(Arc::new(query)),
        None => Err(SqlError::internal("an empty query")),
    };
    Ok(match nested {
        Nested::Prepare(prepare, query) => StatementBody::Prepare(Arc::new(prepare), inner(&query)?),
        Nested::Declare(declare, query) => StatementBody::Declare(Arc::new(declare), inner(&query)?),
        Nested::Explain(query) => StatementBody::Query(inner(&query)?),
        Nested::Execute(execute, values) => {
            StatementBody::Execute(Arc::new(execute), values.as_deref().map(inner).transpose()?)
        }
    })
}

/// Parses one statement and drops the tree.
pub(super) fn check_body(text: &str) -> Result<(), SqlError> {
    parse_body(text).map(drop)
}

/// Binds a query.
pub(super) fn bind_body(
    query: &Query,
    declared: Option<&[SqlType]>,
    catalog: &Catalog,
    provisional: bool,
) -> Result<Arc<BoundStatement>, SqlError> {
    if let Some(copy) = &query.copy {
        let (plan, spec) = plan::bind_copy(&query.parsed()?, copy, catalog)?;
        return Ok(Arc::new(BoundStatement::new(plan, provisional)?.with_copy(spec)));
    }
    let plan = plan::bind(&query.parsed()?, declared, catalog)?;
    Ok(Arc::new(BoundStatement::new(plan, provisional)?))
}

impl Session {
    /// Runs `work` over a copy of `text` on another thread, for the running statement.
    pub(super) async fn off_thread<T: Send + 'static>(
        &self,
        text: &str,
        work: impl FnOnce(&str) -> T + Send + 'static,
    ) -> Result<T, SqlError> {
        let text = text.to_owned();
        self.interrupt.guard(self.deadline, self.node.workers.run(move || Ok(work(&text)))).await
    }

    /// Binds a query on another thread, for the running statement.
    pub(super) async fn bind_off_thread(
        &self,
        query: &Arc<Query>,
        declared: Option<&Arc<[SqlType]>>,
        (catalog, provisional): (Arc<Catalog>, bool),
    ) -> Result<Arc<BoundStatement>, SqlError> {
        let (query, declared) = (query.clone(), declared.cloned());
        let bind = move || bind_body(&query, declared.as_deref(), &catalog, provisional);
        self.interrupt.guard(self.deadline, self.node.workers.run(bind)).await
    }

    /// [`plan::Plan::check_constants`], on another thread if the plan is large.
    pub(super) async fn check_constants(
        &self,
        bound: &BoundStatement,
        params: Vec<Datum>,
    ) -> Result<Vec<Datum>, SqlError> {
        let io = self.settings.io(self.now, &NoNames);
        if !(bound.plan.constant_parts && bound.plan.is_large()) {
            return bound.plan.check_constants(&params, &io).map(|()| params);
        }
        let (plan, zone) = (bound.plan.clone(), io.zone.clone());
        let IoEnv { order, interval_style, style, now, .. } = io;
        let check = move || {
            let io = IoEnv { zone: &zone, order, interval_style, style, now, names: &NoNames };
            plan.check_constants(&params, &io).map(|()| params)
        };
        Box::pin(self.interrupt.guard(self.deadline, self.node.workers.run(check))).await
    }
}

impl Drop for Query {
    /// The tree of a long statement that was never bound has many parts.
    fn drop(&mut self) {
        if is_long(&self.text)
            && let Some(tree) = self.take_tree()
        {
            drop_elsewhere(tree);
        }
    }
}
