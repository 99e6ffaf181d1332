//! The calls of an evaluation that take advisory locks, use sequences or ask other nodes, with their answers.
//!
//! Such a call waits, and evaluation does not. So the executor rehearses what it is about to evaluate: a call without
//! an answer is noted and fails the evaluation; the executor executes it, notes the answer, and begins again, until all
//! calls have answers. Evaluation is deterministic, so the calls come in the same order each time, also when the
//! expressions are evaluated for good.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::advisory::{Answer, LockCall};
use crate::error::SqlError;
use crate::lock_name::LockName;
use crate::object::Sequence;
use crate::sessions::Signal;
use pgtypes::Datum;

/// What an evaluation waits for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// A call about an advisory lock.
    Lock(LockCall, Option<LockName>),
    /// A call about a sequence.
    Sequence(SequenceAsk, Arc<Sequence>),
    /// What the cluster is asked about sessions.
    Sessions(SessionsCall),
}

/// What is asked of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequenceAsk {
    /// `nextval`
    Next,
    /// `setval`
    Set(i64, bool),
    /// `last_value`, and whether it was given.
    Values,
}

/// What the cluster is asked about sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionsCall {
    /// `pg_cancel_backend`, and `pg_terminate_backend` with the time to wait for the end, in milliseconds.
    Signal { pid: i32, signal: Signal, timeout_ms: u64 },
    /// `pg_blocking_pids`
    Blockers(i32),
}

/// The answer.
#[derive(Clone, Debug)]
pub(crate) enum Answered {
    /// Of a call about an advisory lock.
    Lock(Answer),
    /// The value of a sequence, and whether it was given.
    Value(i64, bool),
    /// Of any other call.
    Datum(Datum),
}

/// The calls of the expressions of one row.
#[derive(Debug, Default)]
pub struct LockLog {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answers: Vec<Answered>,
    /// The number of calls of this evaluation so far.
    next: usize,
    pending: Option<Asked>,
    is_rehearsal: bool,
}

impl LockLog {
    /// The answer of the next call, if it is known.
    pub(crate) fn known(&self) -> Option<Answered> {
        let mut state = self.state.lock();
        let answer = state.answers.get(state.next).cloned()?;
        state.next += 1;
        Some(answer)
    }

    /// The answer of the next call. Fails as long as there is none.
    pub(crate) fn answer(&self, asked: Asked) -> Result<Answered, SqlError> {
        if let Some(answer) = self.known() {
            return Ok(answer);
        }
        let message = match &asked {
            Asked::Lock(..) => "an advisory lock is taken where the executor does not expect it",
            Asked::Sequence(..) => "a sequence is used where the executor does not expect it",
            Asked::Sessions(_) => "other nodes are asked where the executor does not expect it",
        };
        self.state.lock().pending = Some(asked);
        Err(SqlError::internal(message))
    }

    /// Notes the answer of a call that an evaluation has found itself.
    pub(crate) fn answer_at_once(&self, answer: Answered) {
        let mut state = self.state.lock();
        state.answers.push(answer);
        state.next = state.answers.len();
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
    pub(crate) fn take_pending(&self) -> Option<Asked> {
        self.state.lock().pending.take()
    }

    /// Notes the answer of the call that has failed.
    pub(crate) fn push(&self, answer: Answered) {
        self.state.lock().answers.push(answer);
    }

    /// Whether the evaluation does not count.
    pub(crate) fn is_rehearsal(&self) -> bool {
        self.state.lock().is_rehearsal
    }
}
