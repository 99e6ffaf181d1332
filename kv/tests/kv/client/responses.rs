//! Responses of another kind than the request asks for: the client fails the operation and does not send it again.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kv::Key;
use kv::api::{CheckTxnStatusRequest, Mutation, MutationOp, Request, Response};
use kv::client::{CallError, Client, ClientConfig, ClientError, Endpoint, ScanRange};
use kv::memory::MemoryCluster;
use prometheus::Registry;
use raftstore::{RegionId, RegionStatus, StoreId};
use tso::Timestamp;

use super::counter;

/// An in-memory cluster whose stores execute every request and always return the same response.
struct FixedResponse {
    cluster: MemoryCluster,
    response: Response,
}

impl Endpoint for FixedResponse {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(async move {
            drop(self.cluster.call(store, request).await);
            Ok(self.response.clone())
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        self.cluster.locate(store, key)
    }

    fn stores(&self) -> Vec<StoreId> {
        self.cluster.stores()
    }
}

fn key() -> Key {
    Key::from_static(b"k")
}

/// Responses that do not acknowledge a write, and their names in errors.
fn not_done() -> [(Response, &'static str); 4] {
    [
        (Response::Value(None), "a value"),
        (Response::Pairs { pairs: Vec::new(), resume: None }, "pairs"),
        // Would continue a batch get.
        (Response::Pairs { pairs: Vec::new(), resume: Some(key().successor()) }, "pairs"),
        (Response::Ttl(1), "a ttl"),
    ]
}

/// Runs an operation against stores that return `response`. Returns its result and how many commits the client counted
/// as undetermined.
async fn run<T>(
    response: Response,
    operation: impl AsyncFn(&Client, Timestamp) -> Result<T, ClientError>,
) -> (Result<T, ClientError>, u64) {
    let cluster = MemoryCluster::new();
    let registry = Registry::new();
    let endpoint = FixedResponse { cluster: cluster.clone(), response };
    let client = Client::with_config(Arc::new(endpoint), ClientConfig::default(), &registry).expect("valid settings");
    let result = operation(&client, cluster.timestamp()).await;
    assert_eq!(cluster.calls(), 1, "sent once");
    (result, counter(&registry, "cortado_kv_client_undetermined_total"))
}

/// An idempotent write fails unless its region acknowledges it.
async fn check_write(request: &str, operation: impl AsyncFn(&Client, Timestamp) -> Result<(), ClientError>) {
    for (response, kind) in not_done() {
        let failed = ClientError::Failed(format!("a store answered {request} with {kind}"));
        assert_eq!(run(response, &operation).await, (Err(failed), 0));
    }
    assert_eq!(run(Response::Done, &operation).await, (Ok(()), 0));
}

#[tokio::test]
async fn an_unacknowledged_prewrite_fails() {
    let mutations = || vec![Mutation::new(key(), MutationOp::Delete)];
    check_write("Prewrite", async |client, start_ts| {
        client.prewrite(mutations(), &key(), start_ts, || 3_000).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn an_unacknowledged_rollback_fails() {
    check_write("Rollback", async |client, start_ts| client.rollback(&[key()], start_ts).await).await;
}

#[tokio::test]
async fn an_unacknowledged_resolve_fails() {
    check_write("ResolveLock", async |client, start_ts| client.resolve_locks(&[key()], start_ts, None).await).await;
}

/// The store may have executed the commit.
#[tokio::test]
async fn an_unacknowledged_commit_is_undetermined() {
    for (response, _) in not_done() {
        let commit =
            async |client: &Client, start_ts: Timestamp| client.commit(&[key()], start_ts, start_ts.next()).await;
        assert_eq!(run(response, commit).await, (Err(ClientError::Undetermined(RegionId::FIRST_DATA)), 1));
    }
}

#[tokio::test]
async fn an_unacknowledged_commit_of_the_primary_is_undetermined() {
    for (response, _) in not_done() {
        let commit = async |client: &Client, start_ts: Timestamp| {
            client.commit_primary(&key(), &[], start_ts, start_ts.next()).await
        };
        assert_eq!(run(response, commit).await, (Err(ClientError::Undetermined(RegionId::FIRST_DATA)), 1));
    }
}

#[tokio::test]
async fn a_read_that_returns_no_data_fails() {
    let failed = |request: &str| ClientError::Failed(format!("a store answered {request} with an acknowledgement"));
    let get = async |client: &Client, ts: Timestamp| client.get(&key(), ts).await;
    assert_eq!(run(Response::Done, get).await, (Err(failed("Get")), 0));
    let batch_get = async |client: &Client, ts: Timestamp| client.batch_get(&[key()], ts).await;
    assert_eq!(run(Response::Done, batch_get).await, (Err(failed("BatchGet")), 0));
    let range = ScanRange { start: Key::default(), end: Key::default(), reverse: false };
    let scan = async |client: &Client, ts: Timestamp| client.scan(&range, ts, 10).await;
    assert_eq!(run(Response::Done, scan).await, (Err(failed("Scan")), 0));
    let check = async |client: &Client, ts: Timestamp| {
        let status = CheckTxnStatusRequest {
            primary: key(),
            lock_ts: ts,
            current_ts: ts.next(),
            rollback_if_missing: false,
            reader_ts: Timestamp::ZERO,
            fell_back: false,
        };
        client.check_txn_status(status).await
    };
    assert_eq!(run(Response::Done, check).await, (Err(failed("CheckTxnStatus")), 0));
    let heartbeat =
        async |client: &Client, ts: Timestamp| client.heartbeat(&key(), ts, || 3_000, Duration::from_secs(9)).await;
    assert_eq!(run(Response::Done, heartbeat).await, (Err(failed("Heartbeat")), 0));
}
