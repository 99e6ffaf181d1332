//! The kinds of joins, and the locks that a query takes of its rows: what the nodes of a query and its locks share.

use kv::api::LockMode;

/// The kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}

impl JoinKind {
    /// Whether rows of the left side without a partner are kept.
    pub(crate) fn keeps_left(self) -> bool {
        matches!(self, JoinKind::Left | JoinKind::Full)
    }

    /// Whether rows of the right side without a partner are kept.
    pub(crate) fn keeps_right(self) -> bool {
        matches!(self, JoinKind::Right | JoinKind::Full)
    }
}

/// The locks of the rows that a query returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowLock {
    pub(crate) mode: LockMode,
    pub(crate) wait: RowWait,
}

/// What a query does about rows that other transactions have locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowWait {
    /// Waits.
    Queue,
    /// SKIP LOCKED.
    Skip,
    /// NOWAIT.
    NoWait,
}
