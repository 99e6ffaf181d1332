//! Accounting of the memory that a statement buffers, refused above a limit.
//!
//! What reads rows has `work_mem`: each sort, hash table, set of groups, and what is kept of a query of WITH or of a
//! sub-query. What is written, and the rows that RETURNING gives of it, have a limit of their own, which no setting
//! changes.

use crate::error::{SqlError, SqlState};
use crate::expr::SessionAccess;

/// Limit of bytes that a statement keeps of what it writes and returns.
const STATEMENT_LIMIT: usize = 128 << 20;

/// The memory account of a statement.
#[derive(Debug)]
pub(crate) struct Budget {
    used: usize,
    limit: usize,
}

impl Budget {
    /// The empty account of a statement.
    pub(crate) fn of_statement() -> Budget {
        Budget::new(STATEMENT_LIMIT)
    }

    /// The empty account of a sort, a hash table, or whatever else keeps rows that are read.
    pub(crate) fn of_work(session: &dyn SessionAccess) -> Budget {
        Budget::new(session.work_mem())
    }

    fn new(limit: usize) -> Budget {
        Budget { used: 0, limit }
    }

    /// Adds bytes. 53200 beyond the limit.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.limit {
            return Ok(());
        }
        let limit = self.limit >> 10;
        let detail = format!("The statement needs more than {limit} kB for sorts, groups, joins or returned rows.");
        Err(SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory").detail(detail))
    }

    /// Subtracts bytes.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_above_the_limit() {
        let mut budget = Budget::new(100);
        budget.charge(60).unwrap();
        budget.release(30);
        budget.charge(70).unwrap();
        assert_eq!(budget.charge(1).unwrap_err().code, SqlState::OUT_OF_MEMORY);
    }
}
