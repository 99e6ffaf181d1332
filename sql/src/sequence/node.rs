//! The blocks of a node: draws them from the store, one draw of a sequence at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kv::Key;
use parking_lot::Mutex;
use txn::{Database, Transaction, TxnError};

use super::state::{Cache, Rules, Values, exhausted};
use crate::catalog::keys;
use crate::clock;
use crate::error::{SqlError, storage_error};
use crate::object::{ObjectId, Sequence};

/// The first pause after a conflict with another node, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(25);
/// The sequences whose blocks a node keeps. More make it drop all blocks.
const KEPT: usize = 65_536;

/// The sequences of a node. Clones share them.
#[derive(Clone)]
pub(crate) struct NodeSequences {
    db: Database,
    slots: Arc<Mutex<HashMap<ObjectId, Arc<Slot>>>>,
}

/// A sequence.
#[derive(Default)]
struct Slot {
    cache: Mutex<Cache>,
    /// Held while the record is changed.
    turn: tokio::sync::Mutex<()>,
}

impl NodeSequences {
    /// No blocks yet.
    pub(crate) fn new(db: Database) -> NodeSequences {
        NodeSequences { db, slots: Arc::default() }
    }

    fn slot(&self, id: ObjectId) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        if slots.len() >= KEPT && !slots.contains_key(&id) {
            slots.clear();
        }
        slots.entry(id).or_default().clone()
    }

    /// The next value, if the node has one.
    pub(super) fn try_next(&self, sequence: &Sequence) -> Option<i64> {
        self.slot(sequence.id).cache.lock().next(&Rules::of(sequence))
    }

    /// The next value. Draws a block if the node has none. 2200H if there are no more.
    pub(super) async fn next(&self, sequence: &Sequence) -> Result<i64, SqlError> {
        let (slot, rules) = (self.slot(sequence.id), Rules::of(sequence));
        let _turn = slot.turn.lock().await;
        // Whoever had the turn before may have drawn more than one value.
        let wanted = {
            let mut cache = slot.cache.lock();
            if let Some(value) = cache.next(&rules) {
                return Ok(value);
            }
            cache.wanted(&rules, clock::instant())
        };
        let block = self
            .change(&key(sequence.id, &rules), |stored| {
                let taken = Values::under(&rules, stored).take(&rules, wanted);
                taken.ok_or_else(|| exhausted(sequence))
            })
            .await?;
        let mut cache = slot.cache.lock();
        cache.install(rules, block, wanted, clock::instant());
        cache.next(&rules).ok_or_else(|| SqlError::internal("a block of a sequence is empty"))
    }

    /// Sets the values, and drops the block of this node.
    pub(super) async fn set(&self, sequence: &Sequence, value: i64, is_called: bool) -> Result<(), SqlError> {
        let (slot, rules) = (self.slot(sequence.id), Rules::of(sequence));
        let _turn = slot.turn.lock().await;
        let set = |stored| Ok(((), Values::under(&rules, stored).set(value, is_called)));
        let done = self.change(&key(sequence.id, &rules), set).await;
        slot.cache.lock().clear();
        done
    }

    /// The state of the sequence in the store.
    pub(super) async fn values(&self, sequence: &Sequence) -> Result<Values, SqlError> {
        let rules = Rules::of(sequence);
        let stored = read(&self.db.begin().await?, &key(sequence.id, &rules)).await?;
        Ok(Values::under(&rules, stored))
    }

    /// Changes the record, in a transaction of its own. Repeats it until it is known to be committed.
    async fn change<T>(
        &self,
        key: &Key,
        change: impl Fn(Option<Values>) -> Result<(T, Values), SqlError>,
    ) -> Result<T, SqlError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut txn = self.db.begin().await?;
            let (result, values) = change(read(&txn, key).await?)?;
            txn.put(key.clone(), values.encode()).map_err(storage_error)?;
            match txn.commit().await {
                Ok(_) => return Ok(result),
                Err(TxnError::Conflict(_) | TxnError::Undetermined { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            clock::sleep(clock::jitter(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// The key of the record that these rules are about.
fn key(id: ObjectId, rules: &Rules) -> Key {
    match rules.own_record() {
        Some(epoch) => keys::sequence_epoch(id, epoch),
        None => keys::sequence(id),
    }
}

async fn read(txn: &Transaction, key: &Key) -> Result<Option<Values>, SqlError> {
    let stored = txn.get(key).await.map_err(storage_error)?;
    Ok(stored.map(|stored| Values::decode(&stored)).transpose()?)
}
