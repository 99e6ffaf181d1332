//! Accounting of the memory that a statement buffers, refused above a limit.

use crate::error::{SqlError, SqlState};

/// Limit of bytes that a statement holds in sorts, DISTINCT and returned rows.
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

    fn new(limit: usize) -> Budget {
        Budget { used: 0, limit }
    }

    /// Adds bytes. 53200 beyond the limit.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.limit {
            return Ok(());
        }
        let detail = format!(
            "The statement needs more than {} MiB of memory for sorts, groups, joins or returned rows.",
            self.limit >> 20
        );
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
