//! The environment of a statement's execution.

use std::time::Duration;

use txn::Transaction;

use crate::catalog::SchemaChange;
use crate::expr::SessionAccess;
use crate::expr::eval::Env;
use crate::types::{Datum, TimeZone};

/// The environment of a statement's execution.
pub struct ExecContext<'a> {
    /// The transaction.
    pub txn: &'a mut Transaction,
    /// The transaction's schema change. Set if the plan changes the schema.
    pub schema: Option<&'a mut SchemaChange>,
    /// The session's time zone.
    pub zone: &'a TimeZone,
    /// `now()`: the start of the transaction, in microseconds since 2000-01-01 UTC.
    pub now: i64,
    /// The session's user, for `current_user`.
    pub user: &'a str,
    /// The database's name.
    pub database: &'a str,
    /// The session.
    pub session: &'a dyn SessionAccess,
    /// Whether the commit is the next action of the transaction.
    pub commit_follows: bool,
    /// Whether the statement locks the rows that it writes, before it writes them, and finds duplicate keys itself.
    /// Otherwise the commit finds conflicts.
    pub locks_rows: bool,
    /// How long the statement waits for the lock of a row; `None` for ever.
    pub lock_timeout: Option<Duration>,
}

impl<'a> ExecContext<'a> {
    /// The environment of the statement's expressions.
    pub(super) fn env<'p>(&self, params: &'p [Datum]) -> Env<'p>
    where
        'a: 'p,
    {
        Env {
            params,
            zone: self.zone,
            now: self.now,
            user: self.user,
            database: self.database,
            session: self.session,
            locals: &[],
        }
    }
}
