//! Sequences of several gateways: no value is given twice, also if the outcome of a draw is not known.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::support::TestServer;
use futures::SinkExt;
use futures::future::BoxFuture;
use kv::api::{Request, RequestBody, Response};
use kv::client::{CallError, Endpoint};
use kv::memory::MemoryCluster;
use raftstore::{RegionStatus, StoreId};
use tokio_postgres::{Client, SimpleQueryMessage};

async fn numbers(client: &Client, text: &str) -> Vec<i64> {
    let messages = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).expect("no NULL").parse().expect("an integer")),
        _ => None,
    });
    rows.collect()
}

#[tokio::test]
async fn gateways_never_give_a_value_twice() {
    let cluster = MemoryCluster::new();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let first = servers[0].connect().await;
    numbers(&first, "create sequence s").await;
    numbers(&first, "create table t (id serial primary key, who int)").await;
    let mut tasks = Vec::new();
    for who in 0..6 {
        let client = servers[who % 2].connect().await;
        tasks.push(tokio::spawn(async move {
            let mut drawn = Vec::new();
            for _ in 0..40 {
                drawn.extend(numbers(&client, "select nextval('s') from generate_series(1, 7)").await);
                numbers(&client, &format!("insert into t (who) values ({who}), ({who})")).await;
            }
            drawn
        }));
    }
    let (mut seen, mut count) = (HashSet::new(), 0);
    for task in tasks {
        let drawn = task.await.expect("no panic");
        assert!(drawn.windows(7).step_by(7).all(|row| row.is_sorted()), "values of a statement grow");
        count += drawn.len();
        seen.extend(drawn);
    }
    assert_eq!((count, seen.len()), (6 * 40 * 7, 6 * 40 * 7));
    assert_eq!(numbers(&first, "select count(*) from t").await, [480]);
}

/// Another client changes the record all the time, so that draws meet conflicts.
#[tokio::test]
async fn draws_that_meet_conflicts_are_repeated() {
    let cluster = MemoryCluster::new();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let (a, b) = (servers[0].connect().await, servers[1].connect().await);
    numbers(&a, "create sequence s").await;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let other = tokio::spawn(async move {
        let mut drawn = Vec::new();
        while !stopped.load(Ordering::Relaxed) {
            drawn.extend(numbers(&b, "select nextval('s')").await);
        }
        drawn
    });
    let mut drawn = Vec::new();
    for _ in 0..300 {
        drawn.extend(numbers(&a, "select nextval('s')").await);
    }
    stop.store(true, Ordering::Relaxed);
    drawn.extend(other.await.expect("no panic"));
    let seen: HashSet<i64> = drawn.iter().copied().collect();
    assert_eq!(seen.len(), drawn.len());
}

/// The node that runs `setval` goes on there at once; RESTART is seen by all.
#[tokio::test]
async fn setval_and_restart_drop_blocks() {
    let cluster = MemoryCluster::new();
    let servers = [TestServer::over(&cluster).await, TestServer::over(&cluster).await];
    let (a, b) = (servers[0].connect().await, servers[1].connect().await);
    numbers(&a, "create sequence s cache 10").await;
    assert_eq!(numbers(&a, "select nextval('s')").await, [1]);
    assert_eq!(numbers(&b, "select nextval('s')").await, [11]);
    assert_eq!(numbers(&a, "select setval('s', 100)").await, [100]);
    assert_eq!(numbers(&a, "select nextval('s')").await, [101]);
    assert_eq!(numbers(&b, "select nextval('s')").await, [12], "the rest of its block");
    numbers(&a, "alter sequence s restart with 500").await;
    assert_eq!(numbers(&b, "select nextval('s')").await, [500]);
    assert_eq!(numbers(&a, "select nextval('s')").await, [510]);
    numbers(&a, "begin; alter sequence s restart; rollback").await;
    assert_eq!(numbers(&a, "select nextval('s')").await, [511]);
}

/// Rows of COPY draw in order, and an error in the data leaves a gap.
#[tokio::test]
async fn rows_of_copy_draw_their_defaults() {
    let server = TestServer::start().await;
    let client = server.connect().await;
    numbers(&client, "create table t (id serial primary key, v int)").await;
    copy(&client, "1\n2\n3\n").await.expect("copies");
    assert_eq!(numbers(&client, "select id from t order by v").await, [1, 2, 3]);
    copy(&client, "4\nx\n").await.expect_err("no number");
    copy(&client, "5\n").await.expect("copies");
    let last = numbers(&client, "select id from t where v = 5").await;
    assert!(last[0] > 4, "{last:?}");
}

async fn copy(client: &Client, data: &'static str) -> Result<u64, tokio_postgres::Error> {
    let sink = client.copy_in("copy t (v) from stdin").await?;
    let mut sink = std::pin::pin!(sink);
    sink.send(bytes::Bytes::from_static(data.as_bytes())).await?;
    sink.finish().await
}

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

/// The block of the draw whose answers are lost is taken. The repeated draw takes another one.
#[tokio::test]
async fn a_draw_of_unknown_outcome_is_not_given_again() {
    let cluster = MemoryCluster::new();
    let (armed, losing, lost) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let endpoint = Arc::new(LostAnswers { cluster: cluster.clone(), armed, losing, lost });
    let server = TestServer::over_endpoint_within(&cluster, endpoint.clone(), Duration::from_millis(200)).await;
    let client = server.connect().await;
    numbers(&client, "create sequence s cache 5").await;
    assert_eq!(numbers(&client, "select nextval('s')").await, [1]);
    assert_eq!(numbers(&client, "select setval('s', 10)").await, [10]);
    endpoint.armed.store(true, Ordering::SeqCst);
    assert_eq!(numbers(&client, "select nextval('s')").await, [16], "11 to 15 are lost");
    assert!(endpoint.lost.load(Ordering::SeqCst) > 0);
    assert_eq!(numbers(&client, "select nextval('s')").await, [17]);
    assert_eq!(numbers(&client, "select last_value from s").await, [20]);
}
