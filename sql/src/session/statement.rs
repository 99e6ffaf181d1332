//! Statements as a session keeps them: what a text is, the plan it was last bound to, the portals made of it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use pgwire::messages::Message;
use pgwire::messages::data::{FieldDescription, RowDescription};

use super::control::Control;
use super::rows::Formats;
use crate::error::{SqlError, SqlState};
use crate::exec::{Execution, Row};
use crate::lexer;
use crate::parse::{self, Parsed};
use crate::plan::{Plan, ResultColumn};
use crate::types::{Datum, SqlType};

/// Most columns of a result, as in PostgreSQL.
const MAX_COLUMNS: usize = 1664;

/// What a statement's text turned out to be.
#[derive(Clone, Debug)]
pub(crate) enum StatementBody {
    /// Nothing but comments and white space.
    Empty,
    /// The session's own.
    Control(Arc<Control>),
    /// To be bound and executed.
    Query(Arc<Query>),
}

/// A statement for the binder.
#[derive(Debug)]
pub(crate) struct Query {
    /// Its text, without semicolon.
    pub(crate) text: Arc<str>,
    /// Its syntax tree until it is first bound; trees are large, and a second binding is rare enough to parse again.
    parsed: Mutex<Option<Parsed>>,
    /// The command's name, as errors give it: `INSERT`, `CREATE TABLE`.
    pub(crate) command: String,
}

impl Query {
    /// Of a text and its tree.
    pub(crate) fn new(text: &str, parsed: Parsed) -> Query {
        Query { text: text.into(), parsed: Mutex::new(Some(parsed)), command: lexer::command_name(text) }
    }

    /// Its syntax tree, to bind.
    pub(crate) fn parsed(&self) -> Result<Parsed, SqlError> {
        if let Some(parsed) = self.parsed.lock().take() {
            return Ok(parsed);
        }
        let again = parse::parse(&self.text)?.pop();
        again.ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "internal error: a statement has become empty"))
    }
}

/// A statement bound to a catalog version, with its row description ready to send.
#[derive(Debug)]
pub(crate) struct BoundStatement {
    /// The plan.
    pub(crate) plan: Arc<Plan>,
    /// BoundStatement to a schema that the transaction itself changed: of no use to any other transaction, nor later in this one.
    pub(crate) provisional: bool,
    /// The types of the parameters, as declared for every later binding.
    pub(crate) params: Arc<[SqlType]>,
    row_text: Bytes,
    row_binary: Bytes,
}

impl BoundStatement {
    /// Of a plan.
    pub(crate) fn new(plan: Arc<Plan>, provisional: bool) -> Result<BoundStatement, SqlError> {
        check_counts(plan.params.len(), plan.columns.as_ref().map_or(0, Vec::len))?;
        let (row_text, row_binary) = match &plan.columns {
            Some(columns) => (describe(columns, &Formats::TEXT)?, describe(columns, &Formats::BINARY)?),
            None => (Bytes::new(), Bytes::new()),
        };
        let params = plan.params.as_slice().into();
        Ok(BoundStatement { plan, provisional, params, row_text, row_binary })
    }

    /// The encoded RowDescription for result formats, or `None` if there are no rows.
    pub(crate) fn row_description(&self, formats: &Formats) -> Result<Option<Bytes>, SqlError> {
        let Some(columns) = &self.plan.columns else {
            return Ok(None);
        };
        match formats.uniform() {
            Some(crate::types::Format::Text) => Ok(Some(self.row_text.clone())),
            Some(crate::types::Format::Binary) => Ok(Some(self.row_binary.clone())),
            None => describe(columns, formats).map(Some),
        }
    }

    /// Whether a client that knows the columns of `self` can read the rows of `other`.
    pub(crate) fn same_columns(&self, other: &BoundStatement) -> bool {
        match (&self.plan.columns, &other.plan.columns) {
            (None, None) => true,
            (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name == b.name && a.ty == b.ty),
            _ => false,
        }
    }
}

/// Refuses what the protocol's counts cannot hold, at PostgreSQL's limits.
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

/// Encodes a RowDescription.
pub(crate) fn describe(columns: &[ResultColumn], formats: &Formats) -> Result<Bytes, SqlError> {
    let field = |(index, column): (usize, &ResultColumn)| {
        FieldDescription::new(
            column.name.clone(),
            // OIDs are unsigned; the codec has them signed and writes the same four bytes.
            column.origin.0.cast_signed(),
            column.origin.1,
            column.ty.oid(),
            column.ty.wire_len(),
            column.ty.type_modifier(),
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
    /// What it is.
    pub(crate) body: StatementBody,
    /// For a query: the plan that the client knows the types and columns of.
    pub(crate) bound: Option<Arc<BoundStatement>>,
    /// Characters before the statement in the text that the client sent.
    pub(crate) char_offset: u32,
}

impl Prepared {
    /// The types of its parameters.
    pub(crate) fn params(&self) -> &[SqlType] {
        self.bound.as_ref().map_or(&[], |b| &b.params)
    }
}

/// A query with parameters, ready to run; kept for a second run if the first meets a conflict.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The statement.
    pub(crate) query: Arc<Query>,
    /// Its plan.
    pub(crate) bound: Arc<BoundStatement>,
    /// The values of its parameters.
    pub(crate) params: Vec<Datum>,
    /// The formats of its columns.
    pub(crate) formats: Formats,
}

/// A query that is running.
pub(crate) struct Run {
    /// The plan.
    pub(crate) bound: Arc<BoundStatement>,
    /// Its execution.
    pub(crate) execution: Execution,
    /// The formats of its columns.
    pub(crate) formats: Formats,
    /// Whether nothing but the commit follows it in its transaction.
    pub(crate) commit_follows: bool,
    /// Whether it reached its end.
    pub(crate) finished: bool,
}

/// Rows that the session itself made, for SHOW.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Their columns.
    pub(crate) columns: Vec<ResultColumn>,
    /// What is left of them.
    pub(crate) rows: std::vec::IntoIter<Row>,
}

/// What a portal runs.
pub(crate) enum Action {
    /// An empty statement.
    Empty,
    /// A query that has not been run.
    Call(Box<Call>),
    /// A query that is running, or has finished.
    Run(Box<Run>),
    /// A session statement that has not been run.
    Control(Arc<Control>),
    /// The result of SHOW.
    Listing(Listing),
    /// A session statement without rows that has been run.
    Done,
}

/// A portal: a statement with its parameters, perhaps half fetched.
pub(crate) struct Portal {
    /// What it runs.
    pub(crate) action: Action,
    /// The formats that the client wants columns in.
    pub(crate) formats: Formats,
    /// As in [`Prepared`].
    pub(crate) char_offset: u32,
}

impl Portal {
    /// The encoded RowDescription, or `None` if it returns no rows.
    pub(crate) fn row_description(&self) -> Result<Option<Bytes>, SqlError> {
        match &self.action {
            Action::Call(call) => call.bound.row_description(&self.formats),
            Action::Run(run) => run.bound.row_description(&self.formats),
            Action::Control(control) => match listing_columns(control) {
                Some(columns) => describe(&columns, &self.formats).map(Some),
                None => Ok(None),
            },
            Action::Listing(listing) => describe(&listing.columns, &self.formats).map(Some),
            Action::Empty | Action::Done => Ok(None),
        }
    }
}

/// The columns of SHOW; `None` for the other session statements.
pub(crate) fn listing_columns(control: &Control) -> Option<Vec<ResultColumn>> {
    let column = |name: &str| ResultColumn { name: name.to_owned(), ty: SqlType::Text, origin: (0, 0) };
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
