//! SQL errors: PostgreSQL's SQLSTATE and wording, and a position in the statement.
//!
//! All modules of the front end return [`SqlError`]. The session turns it into an ErrorResponse. Errors of the
//! transaction layer are mapped by the client's reaction: retry the transaction (40001), find out its outcome (08007),
//! reconnect or wait (57P03), ask for less at a time (53000), make it smaller (54000). XX000 is a defect of this
//! program.

use std::fmt;

use kv::api::WaitReport;
use pgtypes::ValueError;
use txn::TxnError;

use crate::lock_name::LockName;
pub use pgtypes::SqlState;

/// An error for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// The SQLSTATE.
    pub code: SqlState,
    /// The primary message, in PostgreSQL's wording where it has one.
    pub message: String,
    /// The detail line.
    pub detail: Option<Box<str>>,
    /// The hint line.
    pub hint: Option<Box<str>>,
    /// The position in the statement, in characters from 1.
    pub position: Option<u32>,
    /// Where it happened: the line of COPY's data.
    pub context: Option<Box<str>>,
    /// Table and constraint of a constraint violation.
    pub constraint: Option<Box<ConstraintFields>>,
}

/// The schema objects that a constraint violation names.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ConstraintFields {
    /// Schema of the table or the domain.
    pub schema: String,
    /// The table.
    pub table: Option<String>,
    /// The column, for a violation of one column.
    pub column: Option<String>,
    /// The domain, of a violation of its constraints.
    pub data_type: Option<String>,
    /// The constraint, where it has a name.
    pub constraint: Option<String>,
}

/// The message of a prepared statement whose result columns have changed.
pub(crate) const CHANGED_RESULT: &str = "cached plan must not change result type";

impl SqlError {
    /// PostgreSQL's function that reports it, where drivers look at that: asyncpg and pgjdbc prepare such a statement
    /// again.
    pub(crate) fn routine(&self) -> Option<&'static str> {
        let is_changed = self.code == SqlState::FEATURE_NOT_SUPPORTED && self.message == CHANGED_RESULT;
        is_changed.then_some("RevalidateCachedQuery")
    }

    /// An error with a code and a message.
    pub fn new(code: SqlState, message: impl Into<String>) -> SqlError {
        SqlError {
            code,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            context: None,
            constraint: None,
        }
    }

    /// XX000 for a state that only a defect of this program can reach.
    pub(crate) fn internal(why: &str) -> SqlError {
        SqlError::new(SqlState::INTERNAL_ERROR, format!("internal error: {why}"))
    }

    /// The error of a name that begins with more than a schema: 0A000 for one of another database, 42601 for one of
    /// more than `most` parts.
    pub(crate) fn far_name(parts: &[String], most: usize) -> SqlError {
        let name = parts.join(".");
        if parts.len() > most {
            let message = format!("improper qualified name (too many dotted names): {name}");
            return SqlError::new(SqlState::SYNTAX_ERROR, message);
        }
        let message = format!("cross-database references are not implemented: {name}");
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
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

    /// With the address of a node in the command that the detail of an unknown outcome (08007) gives.
    pub(crate) fn with_status_host(mut self, host: Option<&str>) -> SqlError {
        if let (SqlState::TRANSACTION_RESOLUTION_UNKNOWN, Some(command), Some(host)) = (self.code, &self.detail, host) {
            self.detail = Some(format!("{command} --host {host}").into());
        }
        self
    }

    /// With a context, unless it has one.
    pub(crate) fn context(mut self, context: impl FnOnce() -> Option<String>) -> SqlError {
        self.context = self.context.or_else(|| context().map(String::into_boxed_str));
        self
    }

    /// With a position in the statement, in characters from 1. 0 means unknown.
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

impl From<ValueError> for SqlError {
    fn from(error: ValueError) -> SqlError {
        SqlError {
            detail: error.detail().map(Into::into),
            hint: error.hint().map(Into::into),
            ..SqlError::new(error.code(), error.message())
        }
    }
}

impl From<TxnError> for SqlError {
    fn from(error: TxnError) -> SqlError {
        match error {
            TxnError::Conflict(why) => {
                SqlError::new(SqlState::SERIALIZATION_FAILURE, "could not serialize access due to concurrent update")
                    .detail(why)
                    .hint("The transaction might succeed if retried.")
            }
            // The commit maps the key to its constraint. This mapping applies where that is not possible.
            TxnError::AlreadyExists { .. } => {
                SqlError::new(SqlState::UNIQUE_VIOLATION, "duplicate key value violates unique constraint")
                    .detail("Another transaction inserted the same key first.")
            }
            TxnError::Undetermined { start_ts, primary } => {
                SqlError::new(SqlState::TRANSACTION_RESOLUTION_UNKNOWN, "the outcome of the commit is unknown")
                    .detail(format!("cortado txn status {start_ts} --primary {}", primary.to_hex()))
                    .hint("The transaction may have been committed: look before running it again.")
            }
            TxnError::Unavailable(why) => {
                SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the cluster cannot serve now").detail(why)
            }
            // No kind of the class fits: it is a share of the store's time and memory that is used up.
            TxnError::Overloaded(why) => SqlError::new(SqlState::INSUFFICIENT_RESOURCES, "the cluster is overloaded")
                .detail(why)
                .hint("Run fewer large reads at a time, or try again later. Writes and short reads are served first."),
            TxnError::TooLarge(why) => too_large(why),
            error @ TxnError::RowTooLarge(_) => SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error.to_string()),
            TxnError::NotAvailable { .. } => {
                SqlError::new(SqlState::LOCK_NOT_AVAILABLE, "could not obtain lock on row")
            }
            TxnError::LockTimeout { .. } => {
                SqlError::new(SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
            }
            TxnError::Deadlock { cycle } => SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
                .detail(deadlock_detail(&cycle))
                .hint("See server log for query details."),
            error @ TxnError::InFuture(_) => SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error.to_string()),
            TxnError::SnapshotTooOld(why) => snapshot_too_old(why),
            TxnError::Internal(why) => SqlError::new(SqlState::INTERNAL_ERROR, format!("internal error: {why}")),
        }
    }
}

fn too_large(why: String) -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "transaction is too large")
        .detail(why)
        .hint("Write it in several transactions; --max-transaction-size sets how many bytes one may have.")
}

/// The versions that a snapshot shows may be collected.
fn snapshot_too_old(why: String) -> SqlError {
    SqlError::new(SqlState::SNAPSHOT_TOO_OLD, "snapshot too old")
        .detail(why)
        .hint("Old versions are kept for cortado.gc_ttl, and as long as a live transaction needs them.")
}

/// Who waits for whom, in PostgreSQL's words.
fn deadlock_detail(cycle: &[WaitReport]) -> String {
    // A session that waits under one of its two names waits under the other one too; that is no wait of its own.
    let waits = || cycle.iter().filter(|wait| !wait.row.as_bytes().is_empty());
    let next = waits().cycle().skip(1);
    let lines = waits().zip(next).map(|(wait, holder)| {
        let (waiter, blocked_by) = (wait.session, holder.session);
        let lock = LockName::wait_in_words(&wait.row);
        let lock = lock.unwrap_or_else(|| format!("ShareLock on transaction {}", holder.waiter));
        format!("Process {waiter} waits for {lock}; blocked by process {blocked_by}.")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The SQL error of a read or write in a transaction, with the message of the transaction layer. The conversion `From`
/// serves begin and commit.
pub(crate) fn storage_error(error: TxnError) -> SqlError {
    let code = match &error {
        TxnError::Conflict(_) => SqlState::SERIALIZATION_FAILURE,
        TxnError::AlreadyExists { .. } => SqlState::UNIQUE_VIOLATION,
        TxnError::Undetermined { .. } => SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
        TxnError::Unavailable(_) => SqlState::CANNOT_CONNECT_NOW,
        // With its hint.
        TxnError::Overloaded(_) | TxnError::TooLarge(_) | TxnError::RowTooLarge(_) => return error.into(),
        TxnError::LockTimeout { .. } | TxnError::NotAvailable { .. } | TxnError::Deadlock { .. } => {
            return error.into();
        }
        TxnError::SnapshotTooOld(why) => return snapshot_too_old(why.clone()),
        TxnError::InFuture(_) => SqlState::INVALID_PARAMETER_VALUE,
        TxnError::Internal(_) => SqlState::INTERNAL_ERROR,
    };
    SqlError::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use tso::Timestamp;

    use super::*;

    #[test]
    fn transaction_errors_map_to_sqlstates() {
        let states = [
            (TxnError::Conflict("k".into()), "40001"),
            (TxnError::AlreadyExists { key: kv::Key::new("k") }, "23505"),
            (TxnError::Undetermined { start_ts: Timestamp::new(17, 4), primary: kv::Key::new("t1") }, "08007"),
            (TxnError::Unavailable("no leader".into()), "57P03"),
            (TxnError::Overloaded("read pool".into()), "53000"),
            (TxnError::TooLarge("100 MiB".into()), "54000"),
            (TxnError::RowTooLarge("5 MiB".into()), "54000"),
            (TxnError::InFuture(Timestamp::MAX), "22023"),
            (TxnError::Internal("bad record".into()), "XX000"),
        ];
        for (error, state) in states {
            assert_eq!(SqlError::from(error).code.0, state);
        }
        assert_eq!(SqlState::SERIALIZATION_FAILURE.class(), "40");
        let unknown = TxnError::Undetermined { start_ts: Timestamp::new(17, 4), primary: kv::Key::new("t1") };
        let command = "cortado txn status 17.4 --primary 7431";
        let error = SqlError::from(unknown);
        assert_eq!(error.detail.as_deref(), Some(command), "what to ask for");
        assert_eq!(error.clone().with_status_host(None), error);
        let located = error.with_status_host(Some("n1:26257")).detail;
        assert_eq!(located, Some(format!("{command} --host n1:26257").into()), "and where");
        let shed = storage_error(TxnError::Overloaded("store 1 is busy: read pool".into()));
        assert_eq!((shed.code.0, shed.detail.as_deref()), ("53000", Some("store 1 is busy: read pool")));
        assert!(shed.hint.is_some_and(|hint| hint.contains("fewer large reads")));
        let other = SqlError::from(TxnError::Unavailable("no leader".into()));
        assert_eq!(other.clone().with_status_host(Some("n1:26257")), other);
    }
}
