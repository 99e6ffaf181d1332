//! A minimal client: finds leaders, retries refused requests, resolves locks, commits in two phases.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kv::Key;
use kv::api::{
    CheckTxnStatusRequest, KeyError, LockInfo, Mutation, MutationOp, PrewriteRequest, Request, RequestBody, Response,
    ServerError, TxnStatus,
};
use raftstore::{Clock, RealClock, RegionContext, RegionError, StoreId};
use tso::Timestamp;

use super::stores::RunningStores;

/// Life of a lock, in milliseconds.
const TTL_MS: u64 = 500;
/// Attempts before a test fails because no store leads.
const ATTEMPTS: usize = 2_000;

#[derive(Debug)]
pub(crate) enum Outcome {
    Committed,
    /// Nothing was changed.
    Aborted,
    /// The commit of the primary has an unknown outcome.
    Unknown,
}

#[derive(Clone)]
pub(crate) struct Client {
    stores: Arc<RunningStores>,
    clock: RealClock,
    last_ts: Arc<AtomicU64>,
}

impl Client {
    pub(crate) fn new(stores: Arc<RunningStores>) -> Client {
        Client { stores, clock: RealClock::new(), last_ts: Arc::default() }
    }

    /// A new timestamp, above all earlier ones.
    pub(crate) fn timestamp(&self) -> Timestamp {
        let now = Timestamp::new(self.clock.now().nanos() / 1_000_000, 0).raw();
        let last = self.last_ts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(now.max(last + 1)));
        Timestamp::from_raw(now.max(last.unwrap_or_default() + 1))
    }

    /// The values of the keys in one snapshot; 0 for an absent key.
    pub(crate) async fn read(&self, keys: &[Key], start_ts: Timestamp) -> Vec<u64> {
        let mut values = Vec::new();
        for key in keys {
            let body = RequestBody::Get { key: key.clone(), start_ts, pass: Vec::new() };
            values.push(loop {
                match self.send(key, &body).await {
                    Ok(Response::Value(value)) => break value.map_or(0, |v| number(&v)),
                    Err(ServerError::Key(KeyError::Locked(locks))) => self.resolve(locks).await,
                    other => panic!("get: {other:?}"),
                }
            });
        }
        values
    }

    /// Applies `change` to the values of the keys in one transaction.
    pub(crate) async fn transact(&self, keys: &[Key], change: impl Fn(&[u64]) -> Vec<u64>) -> Outcome {
        let start_ts = self.timestamp();
        let values = change(&self.read(keys, start_ts).await);
        for (key, value) in keys.iter().zip(values) {
            let mutations = vec![Mutation::new(key.clone(), MutationOp::Put(Bytes::from(value.to_string())))];
            let primary = keys[0].clone();
            let body = RequestBody::Prewrite(PrewriteRequest {
                mutations,
                primary,
                start_ts,
                ttl_ms: TTL_MS,
                commit: kv::api::CommitMode::TwoPhase,
                locker: None,
            });
            match self.send(key, &body).await {
                Ok(_) => (),
                Err(ServerError::Key(error)) => {
                    if let KeyError::Locked(locks) = error {
                        self.resolve(locks).await;
                    }
                    self.roll_back(keys, start_ts).await;
                    return Outcome::Aborted;
                }
                other => panic!("prewrite: {other:?}"),
            }
        }
        let commit_ts = self.timestamp();
        for (n, key) in keys.iter().enumerate() {
            let body = RequestBody::Commit { keys: vec![key.clone()], start_ts, commit_ts };
            match self.send(key, &body).await {
                Ok(_) => (),
                Err(ServerError::Key(KeyError::RolledBack { .. })) if n == 0 => return Outcome::Aborted,
                Err(ServerError::Undetermined(_)) if n == 0 => return Outcome::Unknown,
                // The primary is committed; a reader of this key resolves its lock.
                Err(ServerError::Undetermined(_)) => (),
                other => panic!("commit of key {n}: {other:?}"),
            }
        }
        Outcome::Committed
    }

    async fn roll_back(&self, keys: &[Key], start_ts: Timestamp) {
        for key in keys {
            let body = RequestBody::Rollback { keys: vec![key.clone()], start_ts };
            let result = self.send(key, &body).await;
            assert!(result.is_ok(), "rollback: {result:?}");
        }
    }

    async fn resolve(&self, locks: Vec<LockInfo>) {
        for lock in locks {
            let current_ts = self.timestamp();
            let expired = lock.start_ts.physical_ms() + lock.ttl_ms < current_ts.physical_ms();
            let check = RequestBody::CheckTxnStatus(CheckTxnStatusRequest {
                primary: lock.primary.clone(),
                lock_ts: lock.start_ts,
                current_ts,
                rollback_if_missing: expired,
                reader_ts: Timestamp::ZERO,
                fell_back: false,
            });
            let commit_ts = match self.send(&lock.primary, &check).await {
                Ok(Response::Status(TxnStatus::Committed { commit_ts })) => Some(commit_ts),
                Ok(Response::Status(TxnStatus::RolledBack)) => None,
                Ok(Response::Status(TxnStatus::Alive { .. } | TxnStatus::Missing)) => {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    continue;
                }
                other => panic!("status: {other:?}"),
            };
            let body = RequestBody::ResolveLock { keys: vec![lock.key.clone()], start_ts: lock.start_ts, commit_ts };
            let result = self.send(&lock.key, &body).await;
            assert!(result.is_ok(), "resolve: {result:?}");
        }
    }

    /// Sends to the leader. Retries an unknown outcome, because requests are idempotent, except for a commit.
    async fn send(&self, key: &Key, body: &RequestBody) -> Result<Response, ServerError> {
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            let ids = self.stores.ids();
            let store = ids[attempt % ids.len()];
            let Some(result) = self.try_send(store, key, body).await else { continue };
            match result {
                Err(ServerError::Region(error)) => last = Some(error),
                Err(ServerError::Undetermined(_)) if !matches!(body, RequestBody::Commit { .. }) => (),
                other => return other,
            }
            if attempt % ids.len() == ids.len() - 1 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        panic!("no store serves {key:?}: {last:?}")
    }

    pub(crate) async fn try_send(
        &self,
        store: StoreId,
        key: &Key,
        body: &RequestBody,
    ) -> Option<Result<Response, ServerError>> {
        let server = self.stores.server(store)?;
        let region = server.locate(&key.to_storage())?.region;
        let context = RegionContext { region: region.id, epoch: region.epoch };
        Some(server.handle(Request { context, body: body.clone() }).await)
    }

    /// The leader of the key's region as one store knows it; `None` if the store does not run or has no replica.
    pub(crate) async fn leader_according_to(&self, store: StoreId, key: &Key, body: RequestBody) -> Option<StoreId> {
        for _ in 0..ATTEMPTS {
            match self.try_send(store, key, &body).await? {
                Ok(_) => return Some(store),
                Err(ServerError::Region(RegionError::NotLeader { leader: Some(leader), .. })) => {
                    return Some(leader.store);
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        None
    }
}

fn number(value: &[u8]) -> u64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}
