//! SQL errors: a SQLSTATE as PostgreSQL gives it, a message in its wording, and where in the statement.
//!
//! Every layer of the front end fails with a [`SqlError`]; the session turns it into an ErrorResponse. What the transaction
//! layer fails with is mapped here, by what the client should do next: run the transaction again (40001), find out what became of
//! it (08007), reconnect or wait (57P03), make it smaller (54000). XX000 is a defect of ours.

use std::fmt;

use txn::TxnError;

/// An error that goes to the client as an ErrorResponse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// Five characters, see PostgreSQL's appendix A.
    pub code: SqlState,
    /// The primary message, in PostgreSQL's wording where it has one.
    pub message: String,
    /// Optional second line.
    pub detail: Option<Box<str>>,
    /// What to do about it.
    pub hint: Option<Box<str>>,
    /// Where in the statement text, in characters, from 1.
    pub position: Option<u32>,
    /// For constraint violations: table and constraint.
    pub constraint: Option<Box<ConstraintFields>>,
}

/// The schema objects that a constraint violation names.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ConstraintFields {
    /// Schema of the table.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The column, where one is to blame.
    pub column: Option<String>,
    /// The constraint, where it has a name.
    pub constraint: Option<String>,
}

/// A SQLSTATE: five characters, the first two of which name its class.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub &'static str);

/// The codes of sessions and transactions, by PostgreSQL's condition names; those of types, binder and executor are in [`crate::types::codes`].
impl SqlState {
    /// COMMIT was sent and its outcome is not known.
    pub const TRANSACTION_RESOLUTION_UNKNOWN: SqlState = SqlState("08007");
    /// A message that the protocol does not allow.
    pub const PROTOCOL_VIOLATION: SqlState = SqlState("08P01");
    /// Something that PostgreSQL has and Cortado does not (yet).
    pub const FEATURE_NOT_SUPPORTED: SqlState = SqlState("0A000");
    /// Bytes that are not text in the client's encoding.
    pub const CHARACTER_NOT_IN_REPERTOIRE: SqlState = SqlState("22021");
    /// A value that the parameter or function does not take.
    pub const INVALID_PARAMETER_VALUE: SqlState = SqlState("22023");
    /// A second row with the same key.
    pub const UNIQUE_VIOLATION: SqlState = SqlState("23505");
    /// A transaction is open where none may be, or a mode is set too late.
    pub const ACTIVE_SQL_TRANSACTION: SqlState = SqlState("25001");
    /// A write in a read-only transaction.
    pub const READ_ONLY_SQL_TRANSACTION: SqlState = SqlState("25006");
    /// A transaction is wanted and none is open.
    pub const NO_ACTIVE_SQL_TRANSACTION: SqlState = SqlState("25P01");
    /// The transaction failed earlier; only its end is taken.
    pub const IN_FAILED_SQL_TRANSACTION: SqlState = SqlState("25P02");
    /// A transaction stood idle for too long.
    pub const IDLE_IN_TRANSACTION_SESSION_TIMEOUT: SqlState = SqlState("25P03");
    /// No prepared statement of that name.
    pub const INVALID_SQL_STATEMENT_NAME: SqlState = SqlState("26000");
    /// The connection names no user.
    pub const INVALID_AUTHORIZATION_SPECIFICATION: SqlState = SqlState("28000");
    /// No portal of that name.
    pub const INVALID_CURSOR_NAME: SqlState = SqlState("34000");
    /// No database of that name.
    pub const INVALID_CATALOG_NAME: SqlState = SqlState("3D000");
    /// Somebody else committed first: the whole transaction can be run again.
    pub const SERIALIZATION_FAILURE: SqlState = SqlState("40001");
    /// The statement cannot be parsed.
    pub const SYNTAX_ERROR: SqlState = SqlState("42601");
    /// No parameter, type or other object of that name.
    pub const UNDEFINED_OBJECT: SqlState = SqlState("42704");
    /// A portal of that name is open.
    pub const DUPLICATE_CURSOR: SqlState = SqlState("42P03");
    /// A prepared statement of that name exists.
    pub const DUPLICATE_PREPARED_STATEMENT: SqlState = SqlState("42P05");
    /// A limit of memory or of things kept per session.
    pub const CONFIGURATION_LIMIT_EXCEEDED: SqlState = SqlState("53400");
    /// As many connections as are allowed.
    pub const TOO_MANY_CONNECTIONS: SqlState = SqlState("53300");
    /// A statement or transaction exceeds a limit of size.
    pub const PROGRAM_LIMIT_EXCEEDED: SqlState = SqlState("54000");
    /// A result with more columns than the protocol allows.
    pub const TOO_MANY_COLUMNS: SqlState = SqlState("54011");
    /// An object that is not in a state for this.
    pub const OBJECT_NOT_IN_PREREQUISITE_STATE: SqlState = SqlState("55000");
    /// A parameter that cannot be changed now, or ever.
    pub const CANT_CHANGE_RUNTIME_PARAM: SqlState = SqlState("55P02");
    /// The client, or statement_timeout, stopped the statement.
    pub const QUERY_CANCELED: SqlState = SqlState("57014");
    /// The server stops.
    pub const ADMIN_SHUTDOWN: SqlState = SqlState("57P01");
    /// The cluster cannot serve now.
    pub const CANNOT_CONNECT_NOW: SqlState = SqlState("57P03");
    /// A session stood idle for too long.
    pub const IDLE_SESSION_TIMEOUT: SqlState = SqlState("57P05");
    /// A defect, or damaged data.
    pub const INTERNAL_ERROR: SqlState = SqlState("XX000");

    /// The first two characters.
    pub fn class(self) -> &'static str {
        self.0.get(..2).unwrap_or(self.0)
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl SqlError {
    /// An error with a code and a message.
    pub fn new(code: SqlState, message: impl Into<String>) -> SqlError {
        SqlError { code, message: message.into(), detail: None, hint: None, position: None, constraint: None }
    }

    /// With a detail line.
    pub fn detail(mut self, detail: impl Into<String>) -> SqlError {
        self.detail = Some(detail.into().into_boxed_str());
        self
    }

    /// With a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> SqlError {
        self.hint = Some(hint.into().into_boxed_str());
        self
    }

    /// With a position in the statement, in characters from 1; 0 means unknown.
    pub fn at(mut self, position: u32) -> SqlError {
        self.position = (position > 0).then_some(position);
        self
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {}: {}", self.code.0, self.message)
    }
}

impl std::error::Error for SqlError {}

impl From<TxnError> for SqlError {
    fn from(error: TxnError) -> SqlError {
        match error {
            TxnError::Conflict(why) => {
                SqlError::new(SqlState::SERIALIZATION_FAILURE, "could not serialize access due to concurrent update")
                    .detail(why)
                    .hint("The transaction might succeed if retried.")
            }
            // The statement that inserted knows which constraint; here only the fact is left.
            TxnError::AlreadyExists { .. } => {
                SqlError::new(SqlState::UNIQUE_VIOLATION, "duplicate key value violates unique constraint")
                    .detail("Another transaction inserted the same key first.")
            }
            TxnError::Undetermined => {
                SqlError::new(SqlState::TRANSACTION_RESOLUTION_UNKNOWN, "the outcome of the commit is unknown")
                    .hint("The transaction may have been committed: look before running it again.")
            }
            TxnError::Unavailable(why) => {
                SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the cluster cannot serve now").detail(why)
            }
            TxnError::TooLarge(why) => {
                SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "transaction is too large").detail(why)
            }
            TxnError::Internal(why) => SqlError::new(SqlState::INTERNAL_ERROR, format!("internal error: {why}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_errors_have_the_state_that_tells_the_client_what_to_do() {
        let states = [
            (TxnError::Conflict("k".into()), "40001"),
            (TxnError::AlreadyExists { key: kv::Key::new("k") }, "23505"),
            (TxnError::Undetermined, "08007"),
            (TxnError::Unavailable("no leader".into()), "57P03"),
            (TxnError::TooLarge("100 MiB".into()), "54000"),
            (TxnError::Internal("bad record".into()), "XX000"),
        ];
        for (error, state) in states {
            assert_eq!(SqlError::from(error).code.0, state);
        }
        assert_eq!(SqlState::SERIALIZATION_FAILURE.class(), "40");
    }
}
