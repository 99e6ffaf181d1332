//! Statements of a session: parsed text, bound plan, prepared statements, portals.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kv::client::ReadOptions;
use parking_lot::Mutex;
use pgwire::messages::Message;
use pgwire::messages::data::{FieldDescription, RowDescription};
use sqlparser::ast::{SetExpr, Statement};
use txn::{StatementSnapshot, Transaction, View};

use super::control::Control;
use super::copy_out::CopyOut;
use super::nested::{Declare, Execute, Prepare};
use super::reads::{Clause, Hints, Moment};
use super::rows::Formats;
use super::scroll::ScrollRows;
use super::txn_state::Outcome;
use crate::copy::{self, CopyStatement};
use crate::error::{SqlError, SqlState};
use crate::exec::{Execution, Row};
use crate::lexer;
use crate::parse::{self, Parsed};
use crate::plan::{CopySpec, Plan, ResultColumn, has_changes};
use pgtypes::{Datum, SqlType};

/// Limit of result columns, as in PostgreSQL.
const MAX_COLUMNS: usize = 1664;

/// The parsed form of a statement.
#[derive(Clone, Debug)]
pub(crate) enum StatementBody {
    /// Only comments and white space.
    Empty,
    /// A session statement.
    Control(Arc<Control>),
    /// A statement for the binder.
    Query(Arc<Query>),
    /// PREPARE of a query.
    Prepare(Arc<Prepare>, Arc<Query>),
    /// EXECUTE, with VALUES of its parameters.
    Execute(Arc<Execute>, Option<Arc<Query>>),
    /// DECLARE of a cursor for a query.
    Declare(Arc<Declare>, Arc<Query>),
}

impl StatementBody {
    /// Makes it a statement of a query string: what it prepares or declares is shown with the whole string.
    pub(crate) fn within(&mut self, string: &str) {
        match self {
            StatementBody::Prepare(prepare, _) => {
                Arc::get_mut(prepare).into_iter().for_each(|prepare| string.clone_into(&mut prepare.text));
            }
            StatementBody::Declare(declare, _) => {
                Arc::get_mut(declare).into_iter().for_each(|declare| string.clone_into(&mut declare.text));
            }
            _ => {}
        }
    }
}

/// A statement that is bound and executed.
#[derive(Debug)]
pub(crate) struct Query {
    /// The text, without semicolon.
    pub(crate) text: Arc<str>,
    /// The syntax tree until the first binding. Trees are large and a second binding is rare: it parses again.
    parsed: Mutex<Option<Parsed>>,
    /// The command name for error messages: `INSERT`, `CREATE TABLE`.
    pub(crate) command: String,
    /// Whether it only reads, and locks nothing.
    pub(crate) is_read: bool,
    /// AS OF SYSTEM TIME.
    pub(crate) as_of: Option<Arc<Moment>>,
    /// Its hints.
    pub(crate) hints: Option<Box<Hints>>,
    /// COPY: the tree is that of its source.
    pub(crate) copy: Option<Box<CopyStatement>>,
}

impl Query {
    /// Parses the text of one statement; `None` if it has only comments.
    pub(crate) fn parse(text: &str) -> Result<Option<Query>, SqlError> {
        let hints = Hints::of(text)?.map(Box::new);
        let copy = copy::parse(text)?.map(Box::new);
        let (mut statements, clause) = parse_source(text, copy.as_deref())?;
        let Some(parsed) = statements.pop() else { return Ok(None) };
        if !statements.is_empty() {
            return Err(several_commands());
        }
        let as_of = clause.map(|clause| Arc::new(clause.moment));
        let is_read = only_reads(&parsed.tree) && !copy.as_ref().is_some_and(|copy| copy.is_from);
        let command = match &copy {
            Some(copy) if copy.is_query() => lexer::command_name(parsed.text.as_str()),
            _ => lexer::command_name(text),
        };
        Ok(Some(Query { text: text.into(), parsed: Mutex::new(Some(parsed)), command, is_read, as_of, hints, copy }))
    }

    /// Takes the syntax tree, if it is there.
    pub(crate) fn take_tree(&self) -> Option<Parsed> {
        self.parsed.lock().take()
    }

    /// The syntax tree. Parses again if the tree was taken before.
    pub(crate) fn parsed(&self) -> Result<Parsed, SqlError> {
        if let Some(parsed) = self.take_tree() {
            return Ok(parsed);
        }
        let again = parse_source(&self.text, self.copy.as_deref())?.0.pop();
        again.ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "internal error: a statement has become empty"))
    }
}

/// Parses statements, or what COPY reads.
fn parse_source(text: &str, copy: Option<&CopyStatement>) -> Result<(Vec<Parsed>, Option<Clause>), SqlError> {
    match copy {
        None => parse_text(text),
        Some(copy) => parse_text(&copy.source(text)).map_err(|error| copy.locate(text, error)),
    }
}

/// Parses statements. AS OF SYSTEM TIME, which the parser does not know, is returned apart.
fn parse_text(text: &str) -> Result<(Vec<Parsed>, Option<Clause>), SqlError> {
    let clause = Clause::find(text)?;
    let parsed = match &clause {
        Some(clause) => parse::parse(&clause.without(text))?,
        None => parse::parse(text)?,
    };
    Ok((parsed, clause))
}

/// Whether a statement only reads, and locks nothing.
fn only_reads(tree: &Statement) -> bool {
    match tree {
        Statement::Query(query) => {
            let mut query = query;
            while query.locks.is_empty() && !has_changes(query) {
                match &*query.body {
                    SetExpr::Query(inner) => query = inner,
                    SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) => return false,
                    _ => return true,
                }
            }
            false
        }
        Statement::Explain { statement, .. } => only_reads(statement),
        _ => false,
    }
}

/// A statement bound to a catalog version, with its encoded row descriptions.
#[derive(Debug)]
pub(crate) struct BoundStatement {
    /// The plan.
    pub(crate) plan: Arc<Plan>,
    /// Bound to the transaction's own schema changes. Not valid for other transactions, nor after the next change.
    pub(crate) provisional: bool,
    /// The parameter types. Later bindings declare the same.
    pub(crate) params: Arc<[SqlType]>,
    /// COPY: what becomes of its rows.
    pub(crate) copy: Option<CopySpec>,
    row_text: Bytes,
    row_binary: Bytes,
}

impl BoundStatement {
    /// Encodes the row descriptions of a plan.
    pub(crate) fn new(plan: Arc<Plan>, provisional: bool) -> Result<BoundStatement, SqlError> {
        check_counts(plan.params.len(), plan.columns.as_ref().map_or(0, Vec::len))?;
        let (row_text, row_binary) = match &plan.columns {
            Some(columns) => (describe(columns, &Formats::TEXT)?, describe(columns, &Formats::BINARY)?),
            None => (Bytes::new(), Bytes::new()),
        };
        let params = plan.params.as_slice().into();
        Ok(BoundStatement { plan, provisional, params, copy: None, row_text, row_binary })
    }

    /// As one of COPY.
    pub(crate) fn with_copy(self, copy: CopySpec) -> BoundStatement {
        BoundStatement { copy: Some(copy), ..self }
    }

    /// Whether it is COPY FROM.
    pub(crate) fn receives_data(&self) -> bool {
        matches!(self.copy, Some(CopySpec::From { .. }))
    }

    /// The encoded RowDescription in these result formats; `None` for a statement without result columns.
    pub(crate) fn row_description(&self, formats: &Formats) -> Result<Option<Bytes>, SqlError> {
        let Some(columns) = self.plan.columns.as_ref().filter(|_| self.copy.is_none()) else {
            return Ok(None);
        };
        match formats.uniform() {
            Some(pgtypes::Format::Text) => Ok(Some(self.row_text.clone())),
            Some(pgtypes::Format::Binary) => Ok(Some(self.row_binary.clone())),
            None => describe(columns, formats).map(Some),
        }
    }

    /// Whether `other` has the same result columns, so that a description of `self` fits its rows.
    pub(crate) fn same_columns(&self, other: &BoundStatement) -> bool {
        match (&self.plan.columns, &other.plan.columns) {
            (None, None) => true,
            (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name == b.name && a.ty == b.ty),
            _ => false,
        }
    }
}

/// Checks PostgreSQL's limits on parameters and result columns, which the protocol's 16-bit counts need.
fn check_counts(params: usize, columns: usize) -> Result<(), SqlError> {
    if params > usize::from(u16::MAX) {
        let message = format!("number of parameters must be between 0 and {}", u16::MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    if columns > MAX_COLUMNS {
        let message = format!("target lists can have at most {MAX_COLUMNS} entries");
        return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
    }
    Ok(())
}

/// 42601 for several statements where one is expected.
pub(crate) fn several_commands() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "cannot insert multiple commands into a prepared statement")
}

/// 26000 for an unknown prepared statement.
pub(crate) fn unknown_statement(name: &str) -> SqlError {
    let message = if name.is_empty() {
        "unnamed prepared statement does not exist".to_owned()
    } else {
        format!("prepared statement \"{name}\" does not exist")
    };
    SqlError::new(SqlState::INVALID_SQL_STATEMENT_NAME, message)
}

/// 34000 for an unknown cursor.
pub(crate) fn unknown_cursor(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

/// Encodes a RowDescription.
pub(crate) fn describe(columns: &[ResultColumn], formats: &Formats) -> Result<Bytes, SqlError> {
    let field = |(index, column): (usize, &ResultColumn)| {
        FieldDescription::new(
            column.name.clone(),
            // OIDs are unsigned. The codec declares them signed and writes the same four bytes.
            column.origin.0.cast_signed(),
            column.origin.1,
            column.ty.oid.0,
            column.ty.row().len,
            // The modifier of a row tells its fields to the binder only.
            if column.ty.oid == SqlType::RECORD.oid { -1 } else { column.ty.typmod },
            formats.code(index),
        )
    };
    let mut buffer = BytesMut::new();
    let message = RowDescription::new(columns.iter().enumerate().map(field).collect());
    message.encode(&mut buffer).map_err(|e| {
        SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, format!("row description cannot be encoded: {e}"))
    })?;
    Ok(buffer.freeze())
}

/// A prepared statement.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// The parsed statement.
    pub(crate) body: StatementBody,
    /// For a query: the plan whose types and columns were described to the client.
    pub(crate) bound: Option<Arc<BoundStatement>>,
    /// Characters before the statement in the text that the client sent.
    pub(crate) char_offset: u32,
    /// What the client sent, for `pg_prepared_statements`.
    pub(crate) text: Arc<str>,
    /// When, in microseconds since 2000-01-01 UTC.
    pub(crate) created: i64,
    /// Whether PREPARE has prepared it, not the protocol.
    pub(crate) from_sql: bool,
}

impl Prepared {
    /// The parameter types.
    pub(crate) fn params(&self) -> &[SqlType] {
        self.bound.as_ref().map_or(&[], |b| &b.params)
    }
}

/// A query with its parameters. Kept for a retry after a conflict.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The statement.
    pub(crate) query: Arc<Query>,
    /// The plan.
    pub(crate) bound: Arc<BoundStatement>,
    /// The parameter values.
    pub(crate) params: Vec<Datum>,
    /// The formats of its columns.
    pub(crate) formats: Formats,
}

/// A statement that can be retried.
pub(crate) struct Replay {
    /// The statement.
    pub(crate) call: Box<Call>,
    /// The output position where its reply begins.
    pub(crate) mark: u64,
}

/// A query that is running.
pub(crate) struct Run {
    /// The plan.
    pub(crate) bound: Arc<BoundStatement>,
    /// Its execution.
    pub(crate) execution: Execution,
    /// The formats of its columns.
    pub(crate) formats: Formats,
    /// How its reads choose their replicas. `None`: leaders serve them, and nobody counts.
    pub(crate) reads: Option<Arc<ReadOptions>>,
    /// Which of its hints are ignored.
    pub(crate) notices: Vec<String>,
    /// Whether the commit is the next action of its transaction.
    pub(crate) commit_follows: bool,
    /// Whether it locks the rows that it writes, before it writes them.
    pub(crate) locks_rows: bool,
    /// What it sees.
    pub(crate) snapshot: StatementSnapshot,
    /// Whether all rows were produced.
    pub(crate) finished: bool,
    /// COPY TO: the messages of the rows.
    pub(crate) copy: Option<CopyOut>,
}

impl Run {
    /// Lets the transaction read as the statement does: another one may have run since.
    pub(crate) fn resume(&self, txn: &mut txn::Transaction) {
        if self.reads.is_some() || txn.reads().is_some() {
            txn.set_reads(self.reads.clone());
        }
        txn.set_statement(self.snapshot.clone());
    }
}

/// The rows of SHOW or FETCH.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The columns.
    pub(crate) columns: Vec<ResultColumn>,
    /// The remaining rows.
    pub(crate) rows: std::vec::IntoIter<Row>,
    /// Whether they are those of FETCH.
    pub(crate) is_fetch: bool,
}

impl Listing {
    /// The command tag after `sent` rows.
    pub(crate) fn tag(&self, sent: usize) -> String {
        if self.is_fetch { format!("FETCH {sent}") } else { "SHOW".to_owned() }
    }
}

/// How long a cursor lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// To the end of its transaction.
    No,
    /// WITH HOLD, in its transaction.
    Asked,
    /// Its rows are in memory, and the commit is under way.
    Ready,
    /// Its transaction has committed.
    Held,
}

/// A query whose rows FETCH asks for.
pub(crate) struct Cursor {
    /// Its name.
    pub(crate) name: String,
    /// The query.
    pub(crate) bound: Arc<BoundStatement>,
    /// Where its next rows come from; `None` if all were read.
    pub(crate) run: Option<Box<Run>>,
    /// Its rows in memory, and its position.
    pub(crate) rows: ScrollRows,
    /// BINARY.
    pub(crate) binary: bool,
    /// WITH HOLD.
    pub(crate) hold: Hold,
    /// Whether a FETCH has failed. It cannot be used any more.
    pub(crate) failed: bool,
}

/// What a portal runs.
pub(crate) enum Action {
    /// An empty statement.
    Empty,
    /// A query that has not started.
    Call(Box<Call>),
    /// A query that is running or at its end.
    Run(Box<Run>),
    /// A session statement that has not run.
    Control(Arc<Control>),
    /// The remaining result of SHOW or FETCH.
    Listing(Listing),
    /// PREPARE that has not run.
    Prepare(Arc<Prepare>, Arc<Query>),
    /// EXECUTE that has not run.
    Execute(Arc<Execute>, Option<Arc<Query>>),
    /// DECLARE that has not run.
    Declare(Arc<Declare>, Box<Call>),
    /// A cursor, or a portal that FETCH has used.
    Cursor(Box<Cursor>),
    /// A finished session statement without rows.
    Done,
}

/// A portal: a statement with its parameters, possibly fetched in part.
pub(crate) struct Portal {
    /// What it runs.
    pub(crate) action: Action,
    /// The result formats.
    pub(crate) formats: Formats,
    /// Characters before the statement in the client's text.
    pub(crate) char_offset: u32,
    /// The state of the transaction that a query sees which has not started.
    pub(crate) view: Option<View>,
    /// The number of savepoints when it was opened.
    pub(crate) level: usize,
    /// What the client sent, for `pg_cursors`.
    pub(crate) text: Arc<str>,
    /// When it was opened, in microseconds since 2000-01-01 UTC.
    pub(crate) created: i64,
}

impl Portal {
    /// A portal that has not started.
    pub(crate) fn new(action: Action, formats: Formats, char_offset: u32) -> Portal {
        Portal { action, formats, char_offset, view: None, level: 0, text: Arc::from(""), created: 0 }
    }

    /// Its cursor, if it is one.
    pub(crate) fn cursor(&self) -> Option<&Cursor> {
        match &self.action {
            Action::Cursor(cursor) => Some(cursor),
            _ => None,
        }
    }

    /// Its cursor, if it is one.
    pub(crate) fn cursor_mut(&mut self) -> Option<&mut Cursor> {
        match &mut self.action {
            Action::Cursor(cursor) => Some(cursor),
            _ => None,
        }
    }

    /// Whether it outlives transactions.
    pub(crate) fn is_held(&self) -> bool {
        self.cursor().is_some_and(|cursor| cursor.hold == Hold::Held)
    }

    /// Whether it outlives the transaction if that ends so.
    pub(crate) fn may_outlive(&self, outcome: Outcome) -> bool {
        match self.cursor().map(|cursor| cursor.hold) {
            Some(Hold::Held) => true,
            Some(Hold::Ready) => outcome == Outcome::Commit,
            _ => false,
        }
    }

    /// Its transaction has committed.
    pub(crate) fn hold(&mut self) {
        if let Some(cursor) = self.cursor_mut() {
            cursor.hold = Hold::Held;
        }
        self.level = 0;
    }

    /// The bytes of rows that it keeps.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.cursor().map_or(0, |cursor| cursor.rows.bytes())
    }

    /// Whether its query has started and is not at its end.
    pub(crate) fn is_running(&self) -> bool {
        match &self.action {
            Action::Run(run) => !run.finished,
            Action::Cursor(cursor) => cursor.run.is_some(),
            _ => false,
        }
    }

    /// The plan of a query that is not at its end.
    pub(crate) fn open_plan(&self) -> Option<&Plan> {
        match &self.action {
            Action::Call(call) => Some(&call.bound.plan),
            Action::Run(run) if !run.finished => Some(&run.bound.plan),
            Action::Cursor(cursor) if cursor.run.is_some() => Some(&cursor.bound.plan),
            _ => None,
        }
    }

    /// Keeps a query from seeing the writes that follow in its transaction, as in PostgreSQL: a portal is insensitive.
    pub(crate) fn freeze(&mut self, txn: &Transaction) {
        match &mut self.action {
            Action::Call(call) if !call.bound.plan.changes_rows() => {
                self.view.get_or_insert_with(|| txn.view());
            }
            Action::Run(run) => run.execution.freeze(|| txn.view()),
            Action::Cursor(cursor) => {
                cursor.run.iter_mut().for_each(|run| run.execution.freeze(|| txn.view()));
            }
            _ => {}
        }
    }
}

/// The result columns of SHOW; `None` for other session statements.
pub(crate) fn listing_columns(control: &Control) -> Option<Vec<ResultColumn>> {
    let column = |name: &str| ResultColumn { name: name.to_owned(), ty: SqlType::TEXT, origin: (0, 0) };
    match control {
        Control::Show(None) => Some(vec![column("name"), column("setting"), column("description")]),
        Control::Show(Some(name)) => Some(vec![column(super::settings::shown_name(name))]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_fit_the_protocol() {
        assert_eq!(check_counts(65_535, 1664), Ok(()));
        assert_eq!(check_counts(65_536, 0).unwrap_err().code.0, "54000");
        assert_eq!(check_counts(0, 1665).unwrap_err().code.0, "54011");
    }
}
