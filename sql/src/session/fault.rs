//! Why a statement, or the connection, cannot go on: grouped by what the session does next.

use std::io;

use txn::TxnError;

use crate::error::{SqlError, SqlState};

/// A failure on the way of a statement.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The statement failed; the client is reported.
    Statement(SqlError),
    /// The statement's transaction met another one: run again from the start it may succeed. Where that cannot be done, the client is reported.
    Retry(SqlError),
    /// The session ends; the client is reported.
    Fatal(SqlError),
    /// The connection broke.
    Io(io::Error),
}

impl Fault {
    /// The error of a failed statement; what ends the connection is handed on.
    pub(crate) fn into_statement(self) -> Result<SqlError, Fault> {
        match self {
            Fault::Statement(error) | Fault::Retry(error) => Ok(error),
            fatal => Err(fatal),
        }
    }
}

impl From<SqlError> for Fault {
    fn from(error: SqlError) -> Fault {
        match error.code {
            SqlState::SERIALIZATION_FAILURE => Fault::Retry(error),
            SqlState::ADMIN_SHUTDOWN => Fault::Fatal(error),
            _ => Fault::Statement(error),
        }
    }
}

impl From<TxnError> for Fault {
    fn from(error: TxnError) -> Fault {
        Fault::from(SqlError::from(error))
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Io(error)
    }
}
