//! The transaction state of a session, as in PostgreSQL: idle, implicit transaction, block, failed block. Pure: a
//! transition returns what to do with the transaction, and the session does it.
//!
//! An *implicit* transaction spans all statements of a simple query string, or of a pipeline up to its Sync. BEGIN
//! turns it into a block, which includes the statements before BEGIN. COMMIT and ROLLBACK end it with a warning. An
//! error rolls it back.
//!
//! Invariants:
//! 1. The session has a transaction in the store only in the states `Implicit` and `Explicit`, and in `Failed` if the
//!    block has a savepoint.
//! 2. Only COMMIT, ROLLBACK and ROLLBACK TO leave `Failed`. All of them roll back, the last one to a savepoint.

use pgwire::messages::response::TransactionStatus;
use tso::Timestamp;

use super::control::{Isolation, Modes};
use crate::error::{SqlError, SqlState};
use crate::protocol::output::Notice;

/// The transaction state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// No transaction.
    Idle,
    /// An implicit transaction.
    Implicit,
    /// A transaction block.
    Explicit,
    /// A block in which a statement failed.
    Failed,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its writes are committed.
    Commit,
    /// Its writes are discarded.
    Rollback,
}

/// The end of a transaction: the action, and the reply to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockEnd {
    /// Commit or rollback.
    pub(crate) outcome: Outcome,
    /// The command tag.
    pub(crate) tag: &'static str,
    /// A warning to send.
    pub(crate) notice: Option<Notice>,
}

/// The modes of transactions that say nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Defaults {
    /// The isolation level.
    pub(crate) isolation: Isolation,
    /// Whether writes are refused.
    pub(crate) read_only: bool,
    /// DEFERRABLE, which has no effect: snapshots never wait.
    pub(crate) deferrable: bool,
}

/// The state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TxnState {
    block: Block,
    isolation: Isolation,
    read_only: bool,
    deferrable: bool,
    /// The snapshot that AS OF SYSTEM TIME has set. The transaction is read-only then.
    as_of: Option<Timestamp>,
    /// Whether a statement has used the snapshot. The transaction's modes are fixed then.
    snapshot_used: bool,
}

impl TxnState {
    /// The idle state.
    pub(crate) fn new() -> TxnState {
        TxnState {
            block: Block::Idle,
            isolation: Isolation::ReadCommitted,
            read_only: false,
            deferrable: false,
            as_of: None,
            snapshot_used: false,
        }
    }

    /// The current state.
    pub(crate) fn block(&self) -> Block {
        self.block
    }

    /// The status of ReadyForQuery.
    pub(crate) fn status(&self) -> TransactionStatus {
        match self.block {
            Block::Idle | Block::Implicit => TransactionStatus::Idle,
            Block::Explicit => TransactionStatus::Transaction,
            Block::Failed => TransactionStatus::Error,
        }
    }

    /// The isolation level.
    pub(crate) fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Whether writes are refused.
    pub(crate) fn read_only(&self) -> bool {
        self.read_only
    }

    /// The snapshot that AS OF SYSTEM TIME has set.
    pub(crate) fn as_of(&self) -> Option<Timestamp> {
        self.as_of
    }

    /// Whether AS OF SYSTEM TIME may be set now, together with these modes.
    pub(crate) fn check_as_of(&self, modes: Modes) -> Result<(), SqlError> {
        if modes.read_only == Some(false) {
            return Err(as_of_writes());
        }
        if self.snapshot_used {
            let message = "AS OF SYSTEM TIME must be set before any query";
            return Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
        }
        Ok(())
    }

    /// Sets the snapshot of a block, which becomes read-only. [`TxnState::check_as_of`] has allowed it.
    pub(crate) fn set_as_of(&mut self, at: Timestamp) {
        self.as_of = Some(at);
        self.read_only = true;
    }

    /// The value of a `transaction_*` setting.
    pub(crate) fn setting(&self, name: &str) -> Option<&'static str> {
        let on_off = |flag: bool| if flag { "on" } else { "off" };
        match name.to_ascii_lowercase().as_str() {
            "transaction_isolation" => Some(self.isolation.name()),
            "transaction_read_only" => Some(on_off(self.read_only)),
            "transaction_deferrable" => Some(on_off(self.deferrable)),
            _ => None,
        }
    }

    /// Begins an implicit transaction when idle. Precedes the execution or description of a statement.
    pub(crate) fn begin_implicit(&mut self, defaults: Defaults) {
        if self.block == Block::Idle {
            self.start(Block::Implicit, defaults);
        }
    }

    /// Records that a statement uses the snapshot.
    pub(crate) fn mark_snapshot_used(&mut self) {
        self.snapshot_used = true;
    }

    /// Refuses all statements but COMMIT and ROLLBACK in a failed block.
    pub(crate) fn check_not_failed(&self) -> Result<(), SqlError> {
        if self.block == Block::Failed {
            return Err(SqlError::new(
                SqlState::IN_FAILED_SQL_TRANSACTION,
                "current transaction is aborted, commands ignored until end of transaction block",
            ));
        }
        Ok(())
    }

    /// Refuses a write in a read-only transaction.
    pub(crate) fn check_write(&self, command: &str) -> Result<(), SqlError> {
        if self.read_only {
            let message = format!("cannot execute {command} in a read-only transaction");
            return Err(SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, message));
        }
        Ok(())
    }

    /// Refuses a statement that cannot run in a block, nor after others in an implicit transaction.
    pub(crate) fn check_outside_block(&self, command: &str, behind_others: bool) -> Result<(), SqlError> {
        if behind_others || matches!(self.block, Block::Explicit | Block::Failed) {
            let message = format!("{command} cannot run inside a transaction block");
            return Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
        }
        Ok(())
    }

    /// BEGIN. `nested`: there is a savepoint.
    pub(crate) fn begin(&mut self, modes: Modes, defaults: Defaults, nested: bool) -> Result<Option<Notice>, SqlError> {
        check_isolation(modes.isolation)?;
        let notice = match self.block {
            Block::Explicit | Block::Failed => {
                Some(Notice::warning(SqlState::ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress"))
            }
            Block::Implicit => {
                self.block = Block::Explicit;
                None
            }
            Block::Idle => {
                self.start(Block::Explicit, defaults);
                None
            }
        };
        self.apply(modes, nested)?;
        Ok(notice)
    }

    /// SET TRANSACTION. Returns a warning outside of a block. `nested`: there is a savepoint.
    pub(crate) fn set_modes(&mut self, modes: Modes, nested: bool) -> Result<Option<Notice>, SqlError> {
        check_isolation(modes.isolation)?;
        if self.block != Block::Explicit {
            let message = "SET TRANSACTION can only be used in transaction blocks";
            return Ok(Some(Notice::warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, message)));
        }
        self.apply(modes, nested)?;
        Ok(None)
    }

    /// RELEASE of a savepoint at which the state was `saved`: the access mode is again that of then, as in PostgreSQL.
    pub(crate) fn release(&mut self, saved: &TxnState) {
        self.read_only = saved.read_only;
    }

    /// COMMIT. The state becomes idle even if the commit fails later. With `chain` the caller calls `restart` after a
    /// successful commit.
    pub(crate) fn commit(&mut self, chain: bool) -> Result<BlockEnd, SqlError> {
        match self.block {
            Block::Explicit => Ok(self.end(Outcome::Commit, "COMMIT", None)),
            Block::Failed => Ok(self.end(Outcome::Rollback, "ROLLBACK", None)),
            Block::Idle | Block::Implicit if chain => Err(no_block_to_chain("COMMIT")),
            Block::Idle | Block::Implicit => Ok(self.end(Outcome::Commit, "COMMIT", Some(no_transaction()))),
        }
    }

    /// ROLLBACK.
    pub(crate) fn rollback(&mut self, chain: bool) -> Result<BlockEnd, SqlError> {
        match self.block {
            Block::Explicit | Block::Failed => Ok(self.end(Outcome::Rollback, "ROLLBACK", None)),
            Block::Idle | Block::Implicit if chain => Err(no_block_to_chain("ROLLBACK")),
            Block::Idle | Block::Implicit => Ok(self.end(Outcome::Rollback, "ROLLBACK", Some(no_transaction()))),
        }
    }

    /// AND CHAIN: begins a block with the modes of the last one.
    pub(crate) fn restart(&mut self) {
        self.block = Block::Explicit;
        self.snapshot_used = false;
    }

    /// Ends the implicit transaction at the end of a query string or pipeline. Returns whether there was one.
    pub(crate) fn end_implicit(&mut self) -> bool {
        let implicit = self.block == Block::Implicit;
        if implicit {
            self.block = Block::Idle;
        }
        implicit
    }

    /// Fails the transaction: idle after an implicit one, `Failed` after a block.
    pub(crate) fn fail(&mut self) {
        self.block = match self.block {
            Block::Idle | Block::Implicit => Block::Idle,
            Block::Explicit | Block::Failed => Block::Failed,
        };
    }

    /// Whether a savepoint statement may run: `command` in a block, ROLLBACK TO in a failed one too.
    pub(crate) fn check_savepoints(&self, command: &str) -> Result<(), SqlError> {
        match self.block {
            Block::Explicit | Block::Failed => Ok(()),
            Block::Idle | Block::Implicit => {
                let message = format!("{command} can only be used in transaction blocks");
                Err(SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message))
            }
        }
    }

    /// ROLLBACK TO a savepoint at which the state was `saved`. The snapshot, once used, stays.
    pub(crate) fn rollback_to(&mut self, saved: &TxnState) {
        let snapshot_used = self.snapshot_used;
        *self = TxnState { block: Block::Explicit, snapshot_used, ..saved.clone() };
    }

    fn start(&mut self, block: Block, Defaults { isolation, read_only, deferrable }: Defaults) {
        *self = TxnState { block, isolation, read_only, deferrable, as_of: None, snapshot_used: false };
    }

    /// Sets modes of the transaction. 25001 where PostgreSQL refuses it: after a query, or in a subtransaction.
    pub(crate) fn apply(&mut self, modes: Modes, nested: bool) -> Result<(), SqlError> {
        check_isolation(modes.isolation)?;
        let refuse = |message: &str| Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
        if modes.isolation.is_some_and(|level| level != self.isolation) {
            if self.snapshot_used {
                return refuse("SET TRANSACTION ISOLATION LEVEL must be called before any query");
            }
            if nested {
                return refuse("SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction");
            }
        }
        if modes.read_only == Some(false) && self.read_only {
            if nested {
                return refuse("cannot set transaction read-write mode inside a read-only transaction");
            }
            if self.snapshot_used {
                return refuse("transaction read-write mode must be set before any query");
            }
        }
        if modes.deferrable.is_some() {
            if nested {
                return refuse("SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction");
            }
            if self.snapshot_used {
                return refuse("SET TRANSACTION [NOT] DEFERRABLE must be called before any query");
            }
        }
        if modes.read_only == Some(false) && self.as_of.is_some() {
            return Err(as_of_writes());
        }
        self.isolation = modes.isolation.unwrap_or(self.isolation);
        self.read_only = modes.read_only.unwrap_or(self.read_only);
        self.deferrable = modes.deferrable.unwrap_or(self.deferrable);
        Ok(())
    }

    fn end(&mut self, outcome: Outcome, tag: &'static str, notice: Option<Notice>) -> BlockEnd {
        self.block = Block::Idle;
        BlockEnd { outcome, tag, notice }
    }
}

/// Refuses SERIALIZABLE.
pub(crate) fn check_isolation(isolation: Option<Isolation>) -> Result<(), SqlError> {
    if isolation == Some(Isolation::Serializable) {
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "isolation level SERIALIZABLE is not supported")
            .hint("REPEATABLE READ (snapshot isolation) is the strongest level."));
    }
    Ok(())
}

fn as_of_writes() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "AS OF SYSTEM TIME specified with READ WRITE mode")
}

fn no_transaction() -> Notice {
    Notice::warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress")
}

fn no_block_to_chain(command: &str) -> SqlError {
    let message = format!("{command} AND CHAIN can only be used in transaction blocks");
    SqlError::new(SqlState::NO_ACTIVE_SQL_TRANSACTION, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Defaults = Defaults { isolation: Isolation::ReadCommitted, read_only: false, deferrable: false };

    fn modes() -> Modes {
        Modes::default()
    }

    #[test]
    fn a_block_lasts_from_begin_to_commit() {
        let mut state = TxnState::new();
        state.begin_implicit(PLAIN);
        assert_eq!(state.status(), TransactionStatus::Idle);
        assert_eq!(state.begin(modes(), PLAIN, false), Ok(None));
        assert_eq!(state.status(), TransactionStatus::Transaction);
        assert!(!state.end_implicit(), "a block outlives its query string");
        let again = state.begin(modes(), PLAIN, false).unwrap().unwrap();
        assert_eq!(again.code.0, "25001");
        assert_eq!(state.commit(false).unwrap(), BlockEnd { outcome: Outcome::Commit, tag: "COMMIT", notice: None });
        assert_eq!(state.block(), Block::Idle);
    }

    #[test]
    fn a_failed_block_accepts_only_its_end_and_commit_rolls_back() {
        let mut state = TxnState::new();
        state.begin(modes(), PLAIN, false).unwrap();
        state.fail();
        assert_eq!(state.status(), TransactionStatus::Error);
        assert_eq!(state.check_not_failed().unwrap_err().code.0, "25P02");
        state.fail();
        assert_eq!(
            state.commit(false).unwrap(),
            BlockEnd { outcome: Outcome::Rollback, tag: "ROLLBACK", notice: None }
        );
        assert_eq!(state.status(), TransactionStatus::Idle);
    }

    #[test]
    fn an_implicit_transaction_ends_with_its_query_string() {
        let mut state = TxnState::new();
        state.begin_implicit(PLAIN);
        assert!(state.end_implicit());
        assert!(!state.end_implicit());
        state.begin_implicit(PLAIN);
        state.fail();
        assert!(!state.end_implicit());
        state.begin_implicit(PLAIN);
        let ending = state.rollback(false).unwrap();
        assert_eq!((ending.outcome, ending.notice.unwrap().code.0), (Outcome::Rollback, "25P01"));
        state.begin_implicit(PLAIN);
        assert_eq!(state.commit(true).unwrap_err().code.0, "25P01");
    }

    #[test]
    fn modes_are_checked() {
        let mut state = TxnState::new();
        let serializable = Modes { isolation: Some(Isolation::Serializable), ..modes() };
        assert_eq!(state.begin(serializable, PLAIN, false).unwrap_err().code.0, "0A000");
        assert_eq!(state.block(), Block::Idle);
        state.begin(Modes { read_only: Some(true), ..modes() }, PLAIN, false).unwrap();
        assert_eq!(state.check_write("INSERT").unwrap_err().code.0, "25006");
        state.mark_snapshot_used();
        let read_write = Modes { read_only: Some(false), ..modes() };
        assert_eq!(state.set_modes(read_write, false).unwrap_err().code.0, "25001");
        let same = Modes { isolation: Some(Isolation::ReadCommitted), ..modes() };
        assert_eq!(state.set_modes(same, false), Ok(None), "nothing changes");
        let level = Modes { isolation: Some(Isolation::RepeatableRead), ..modes() };
        assert_eq!(state.set_modes(level, false).unwrap_err().code.0, "25001");
        assert_eq!(state.check_as_of(modes()).unwrap_err().code.0, "25001", "a query has its snapshot");
        state.rollback(true).unwrap();
        state.restart();
        assert_eq!(state.check_as_of(read_write).unwrap_err().code.0, "42601");
        assert_eq!(state.check_as_of(modes()), Ok(()));
        state.set_as_of(Timestamp::new(7, 0));
        assert_eq!(state.set_modes(read_write, false).unwrap_err().code.0, "42601");
        assert_eq!(
            (state.check_write("INSERT").unwrap_err().code.0, state.as_of()),
            ("25006", Some(Timestamp::new(7, 0)))
        );
        assert!(state.read_only(), "a chained block keeps its modes");
        state.commit(false).unwrap();
        state.begin_implicit(Defaults { read_only: true, ..PLAIN });
        assert!(state.read_only(), "the session's default");
        state.commit(false).unwrap();
        let savepoint = {
            state.begin(modes(), PLAIN, false).unwrap();
            state.clone()
        };
        let nested = |state: &mut TxnState, modes| state.apply(modes, true).map_err(|error| error.code.0);
        assert_eq!(nested(&mut state, level), Err("25001"));
        assert_eq!(nested(&mut state, Modes { deferrable: Some(false), ..modes() }), Err("25001"));
        assert_eq!(nested(&mut state, Modes { read_only: Some(true), ..modes() }), Ok(()));
        assert_eq!(nested(&mut state, read_write), Err("25001"));
        state.release(&savepoint);
        assert!(!state.read_only(), "the access mode ends with its subtransaction");
        state.rollback(false).unwrap();
        state.begin_implicit(Defaults { read_only: true, ..PLAIN });
        assert_eq!(state.set_modes(read_write, false).unwrap().unwrap().code.0, "25P01");
    }
}
