//! Failures of a statement or connection, grouped by how the session reacts.

use std::io;

use txn::TxnError;

use crate::error::{SqlError, SqlState};

/// A failure while a message is handled.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The statement failed. The client gets the error.
    Statement(SqlError),
    /// The transaction met a conflict and may succeed if run again from the start. Without a retry the client gets the
    /// error.
    Retry(SqlError),
    /// The session ends. The client gets the error.
    Fatal(SqlError),
    /// The connection broke.
    Io(io::Error),
}

impl Fault {
    /// Whether it may come from what the statement has read. A cancelled statement stays cancelled.
    pub(crate) fn is_of_rows(&self) -> bool {
        match self {
            Fault::Statement(error) => error.code != SqlState::QUERY_CANCELED,
            Fault::Retry(_) => true,
            Fault::Fatal(_) | Fault::Io(_) => false,
        }
    }

    /// The error of a failed statement. Faults that end the connection are returned as `Err`.
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
