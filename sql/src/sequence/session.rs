//! The values that a session has drawn, for `currval` and `lastval`.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::node::NodeSequences;
use super::state::Values;
use crate::error::{SqlError, SqlState};
use crate::object::{ObjectId, Sequence};

/// The sequences of a session. What it has drawn survives a rollback.
pub struct SessionSequences {
    node: NodeSequences,
    drawn: Mutex<Drawn>,
}

#[derive(Default)]
struct Drawn {
    values: HashMap<ObjectId, i64>,
    last: Option<ObjectId>,
}

impl SessionSequences {
    /// A session that has drawn nothing.
    pub(crate) fn new(node: NodeSequences) -> SessionSequences {
        SessionSequences { node, drawn: Mutex::default() }
    }

    fn note(&self, id: ObjectId, value: i64) {
        let mut drawn = self.drawn.lock();
        drawn.values.insert(id, value);
        drawn.last = Some(id);
    }

    /// The next value, if the node has one.
    pub(crate) fn try_next(&self, sequence: &Sequence) -> Option<i64> {
        let value = self.node.try_next(sequence)?;
        self.note(sequence.id, value);
        Some(value)
    }

    /// The next value.
    pub(crate) async fn next(&self, sequence: &Sequence) -> Result<i64, SqlError> {
        let value = self.node.next(sequence).await?;
        self.note(sequence.id, value);
        Ok(value)
    }

    /// `currval`. 55000 if the session has drawn none.
    pub(crate) fn current(&self, sequence: &Sequence) -> Result<i64, SqlError> {
        self.drawn.lock().values.get(&sequence.id).copied().ok_or_else(|| {
            let message = format!("currval of sequence \"{}\" is not yet defined in this session", sequence.name);
            SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        })
    }

    /// `lastval`. 55000 if the session has drawn none, or if `exists` does not know its sequence.
    pub(crate) fn last(&self, exists: impl Fn(ObjectId) -> bool) -> Result<i64, SqlError> {
        let drawn = self.drawn.lock();
        let last = drawn.last.filter(|id| exists(*id)).and_then(|id| drawn.values.get(&id).copied());
        last.ok_or_else(|| {
            let message = "lastval is not yet defined in this session";
            SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        })
    }

    /// `setval`.
    pub(crate) async fn set(&self, sequence: &Sequence, value: i64, is_called: bool) -> Result<(), SqlError> {
        if !(sequence.min..=sequence.max).contains(&value) {
            let Sequence { name, min, max, .. } = sequence;
            let message = format!("setval: value {value} is out of bounds for sequence \"{name}\" ({min}..{max})");
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        self.node.set(sequence, value, is_called).await?;
        if is_called {
            self.drawn.lock().values.insert(sequence.id, value);
        }
        Ok(())
    }

    /// The state of the sequence in the store.
    pub(crate) async fn values(&self, sequence: &Sequence) -> Result<Values, SqlError> {
        self.node.values(sequence).await
    }

    /// DISCARD SEQUENCES.
    pub(crate) fn forget(&self) {
        *self.drawn.lock() = Drawn::default();
    }
}
