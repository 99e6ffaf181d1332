//! The blocks of a node: draws them from the store, one draw of a sequence at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

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
            .change(sequence.id, |stored| {
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
        let done = self.change(sequence.id, set).await;
        slot.cache.lock().clear();
        done
    }

    /// The state of the sequence in the store.
    pub(super) async fn values(&self, sequence: &Sequence) -> Result<Values, SqlError> {
        let stored = read(&self.db.begin().await?, sequence.id).await?;
        Ok(Values::under(&Rules::of(sequence), stored))
    }

    /// Changes the record, in a transaction of its own. Repeats it until it is known to be committed.
    async fn change<T>(
        &self,
        id: ObjectId,
        change: impl Fn(Option<Values>) -> Result<(T, Values), SqlError>,
    ) -> Result<T, SqlError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut txn = self.db.begin().await?;
            let (result, values) = change(read(&txn, id).await?)?;
            txn.put(keys::sequence(id), values.encode()).map_err(storage_error)?;
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

async fn read(txn: &Transaction, id: ObjectId) -> Result<Option<Values>, SqlError> {
    let stored = txn.get(&keys::sequence(id)).await.map_err(storage_error)?;
    Ok(stored.map(|stored| Values::decode(&stored)).transpose()?)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use futures::future::BoxFuture;
    use kv::api::{Request, RequestBody, Response};
    use kv::client::{CallError, Client, ClientConfig, Endpoint};
    use kv::memory::MemoryCluster;
    use prometheus::Registry;
    use raftstore::{RegionStatus, StoreId};
    use tso::TsoClient;

    use super::*;
    use crate::object::SchemaId;
    use pgtypes::SqlType;

    /// Loses the answers of what a commit sends, from its first request to the next read.
    struct LostAnswers {
        cluster: MemoryCluster,
        /// Whether the next commit is to lose its answers.
        armed: AtomicBool,
        losing: AtomicBool,
        lost: AtomicU64,
    }

    impl Endpoint for LostAnswers {
        fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
            Box::pin(async move {
                match &request.body {
                    RequestBody::Get { .. } => self.losing.store(false, Ordering::SeqCst),
                    RequestBody::Prewrite(_) if self.armed.swap(false, Ordering::SeqCst) => {
                        self.losing.store(true, Ordering::SeqCst);
                    }
                    _ => {}
                }
                let answer = self.cluster.call(store, request).await;
                if self.losing.load(Ordering::SeqCst) {
                    self.lost.fetch_add(1, Ordering::SeqCst);
                    return Err(CallError::Lost { store, why: "injected".to_owned() });
                }
                answer
            })
        }

        fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
            self.cluster.locate(store, key)
        }

        fn stores(&self) -> Vec<StoreId> {
            self.cluster.stores()
        }
    }

    fn sequence() -> Sequence {
        Sequence {
            id: ObjectId(20_000),
            schema: SchemaId(2200),
            name: "s".to_owned(),
            ty: SqlType::INT8,
            start: 1,
            increment: 1,
            min: 1,
            max: i64::MAX,
            cache: 1,
            cycles: false,
            epoch: 0,
            restart: 1,
            owner: None,
        }
    }

    /// The block of the draw whose answers are lost is taken. The repeated draw takes another one.
    #[tokio::test(start_paused = true)]
    async fn a_draw_of_unknown_outcome_is_not_given_again() {
        let cluster = MemoryCluster::new();
        let (armed, losing, lost) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
        let endpoint = Arc::new(LostAnswers { cluster: cluster.clone(), armed, losing, lost });
        let config = ClientConfig { deadline: Duration::from_millis(200), ..ClientConfig::default() };
        let client = Client::with_config(endpoint.clone(), config, &Registry::new()).unwrap();
        let node = NodeSequences::new(Database::new(client, TsoClient::new(cluster.tso())));
        let sequence = sequence();
        assert_eq!(node.next(&sequence).await.unwrap(), 1);
        endpoint.armed.store(true, Ordering::SeqCst);
        assert_eq!(node.next(&sequence).await.unwrap(), 4, "2 and 3 are lost");
        assert!(endpoint.lost.load(Ordering::SeqCst) > 0);
        assert_eq!(node.next(&sequence).await.unwrap(), 5);
        assert_eq!(node.values(&sequence).await.unwrap().last, 5);
    }
}
