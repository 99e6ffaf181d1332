//! The calls of an evaluation that take advisory locks, with their answers.
//!
//! Such a call waits, and evaluation does not. So the executor rehearses what it is about to evaluate: a call without
//! an answer is noted and fails the evaluation; the executor executes it, notes the answer, and begins again, until all
//! calls have answers. Evaluation is deterministic, so the calls come in the same order each time, also when the
//! expressions are evaluated for good.

use parking_lot::Mutex;

use crate::advisory::{Answer, LockCall};
use crate::error::SqlError;
use crate::lock_name::LockName;

/// The calls of the expressions of one row.
#[derive(Debug, Default)]
pub struct LockLog {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answers: Vec<Answer>,
    /// The number of calls of this evaluation so far.
    next: usize,
    pending: Option<(LockCall, Option<LockName>)>,
    is_rehearsal: bool,
}

impl LockLog {
    /// The answer of the next call. Fails as long as there is none.
    pub(crate) fn answer(&self, call: LockCall, lock: Option<LockName>) -> Result<Answer, SqlError> {
        let mut state = self.state.lock();
        if let Some(answer) = state.answers.get(state.next).copied() {
            state.next += 1;
            return Ok(answer);
        }
        state.pending = Some((call, lock));
        Err(SqlError::internal("an advisory lock is taken where the executor does not expect it"))
    }

    /// Forgets all calls: another row begins.
    pub(crate) fn clear(&self) {
        *self.state.lock() = State::default();
    }

    /// Begins an evaluation: a rehearsal, or the one that counts.
    pub(crate) fn rewind(&self, is_rehearsal: bool) {
        let mut state = self.state.lock();
        (state.next, state.pending, state.is_rehearsal) = (0, None, is_rehearsal);
    }

    /// The call that has failed the evaluation.
    pub(crate) fn take_pending(&self) -> Option<(LockCall, Option<LockName>)> {
        self.state.lock().pending.take()
    }

    /// Notes the answer of the call that has failed.
    pub(crate) fn push(&self, answer: Answer) {
        self.state.lock().answers.push(answer);
    }

    /// Whether the evaluation does not count.
    pub(crate) fn is_rehearsal(&self) -> bool {
        self.state.lock().is_rehearsal
    }
}
