//! The calls of an evaluation that take advisory locks or ask other nodes, with their answers.
//!
//! Such a call waits, and evaluation does not. So the executor rehearses what it is about to evaluate: a call without
//! an answer is noted and fails the evaluation; the executor executes it, notes the answer, and begins again, until all
//! calls have answers. Evaluation is deterministic, so the calls come in the same order each time, also when the
//! expressions are evaluated for good.

use parking_lot::Mutex;

use crate::advisory::{Answer, LockCall};
use crate::error::SqlError;
use crate::lock_name::LockName;
use crate::sessions::Signal;
use pgtypes::Datum;

/// A call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitingCall {
    /// `pg_advisory_lock` and its kin.
    Advisory(LockCall, Option<LockName>),
    /// What the cluster is asked about sessions.
    Sessions(SessionsCall),
}

/// What the cluster is asked about sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionsCall {
    /// `pg_cancel_backend`, and `pg_terminate_backend` with the time to wait for the end, in milliseconds.
    Signal { pid: i32, signal: Signal, timeout_ms: u64 },
    /// `pg_blocking_pids`
    Blockers(i32),
}

/// The answer of a call that waits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallAnswer {
    /// Of an advisory lock.
    Advisory(Answer),
    /// Of any other call.
    Value(Datum),
}

/// The calls of the expressions of one row.
#[derive(Debug, Default)]
pub struct LockLog {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answers: Vec<CallAnswer>,
    /// The number of calls of this evaluation so far.
    next: usize,
    pending: Option<WaitingCall>,
    is_rehearsal: bool,
}

impl LockLog {
    /// The answer of the next call. Fails as long as there is none.
    pub(crate) fn answer(&self, call: WaitingCall) -> Result<CallAnswer, SqlError> {
        let mut state = self.state.lock();
        if let Some(answer) = state.answers.get(state.next).cloned() {
            state.next += 1;
            return Ok(answer);
        }
        state.pending = Some(call);
        Err(SqlError::internal("a function waits where the executor does not expect it"))
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
    pub(crate) fn take_pending(&self) -> Option<WaitingCall> {
        self.state.lock().pending.take()
    }

    /// Notes the answer of the call that has failed.
    pub(crate) fn push(&self, answer: CallAnswer) {
        self.state.lock().answers.push(answer);
    }

    /// Whether the evaluation does not count.
    pub(crate) fn is_rehearsal(&self) -> bool {
        self.state.lock().is_rehearsal
    }
}
