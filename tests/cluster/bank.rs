//! The bank: transfers between accounts keep the total in every snapshot.
//!
//! 50 accounts and 8 clients over two gateways, for 20 seconds, in which the leader of the data region is killed. An
//! auditor at each gateway sums the balances in one statement, and in a transaction of many statements. Each sum must
//! be the total.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error};

use crate::clients::{connect, is_transient};
use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::process::POLL_INTERVAL;

const ACCOUNTS: i64 = 50;
const BALANCE: i64 = 1000;
const CLIENTS: u64 = 8;
const TOTAL: i64 = ACCOUNTS * BALANCE;

/// When the leader is killed, when it is restarted, and when the clients stop.
const KILL: Duration = Duration::from_secs(5);
const RESTART: Duration = Duration::from_secs(12);
const END: Duration = Duration::from_secs(20);

/// Counters of one gateway.
#[derive(Default)]
struct Counts {
    transfers: AtomicU64,
    audits: AtomicU64,
    retries: AtomicU64,
}

/// A gateway, and its counters at the last check.
struct Gateway {
    port: u16,
    counts: Arc<Counts>,
    /// Transfers and audits.
    last: (u64, u64),
}

impl Gateway {
    /// Asserts that more operations have completed than were in flight at the last check.
    fn check_progress(&mut self, when: &str) {
        let now = (self.counts.transfers.load(Ordering::SeqCst), self.counts.audits.load(Ordering::SeqCst));
        let (transfers, audits) = (now.0 - self.last.0, now.1 - self.last.1);
        let retries = self.counts.retries.load(Ordering::SeqCst);
        println!("port {} {when}: {transfers} transfers, {audits} audits, {retries} retries so far", self.port);
        assert!(transfers > CLIENTS && audits > 1, "the gateway at port {} made no progress {when}", self.port);
        self.last = now;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_total_never_changes() {
    let seed: u64 = std::env::var("CORTADO_TEST_SEED").ok().map_or_else(rand::random, |s| s.parse().unwrap());
    println!("seed {seed} (repeat the clients' choices with CORTADO_TEST_SEED={seed})");
    let lock = ClusterLock::acquire();
    let mut cluster = Cluster::start(&lock, 3).await;
    open_accounts(&cluster.connect(0).await).await;

    // The leader of the data region is killed. The two other nodes are the gateways.
    let victim = cluster.leader_of(2);
    let gateway = |port| Gateway { port, counts: Arc::default(), last: (0, 0) };
    let mut gateways: Vec<Gateway> =
        cluster.gateways(&[(victim + 1) % 3, (victim + 2) % 3]).into_iter().map(gateway).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for n in 0..CLIENTS {
        let gateway = &gateways[n as usize % 2];
        tasks.push(tokio::spawn(transfers(gateway.port, seed.wrapping_add(n), stop.clone(), gateway.counts.clone())));
    }
    for gateway in &gateways {
        tasks.push(tokio::spawn(audits(gateway.port, stop.clone(), gateway.counts.clone())));
    }

    let start = Instant::now();
    let mut all_progressed = |when: &str| gateways.iter_mut().for_each(|gateway| gateway.check_progress(when));
    load_until(start + KILL, &tasks).await;
    all_progressed("before the kill");
    assert!(cluster.leads(victim) > 0, "the victim leads");
    cluster.kill(victim);
    load_until(start + RESTART, &tasks).await;
    all_progressed("between the kill and the restart");
    cluster.spawn(victim);
    load_until(start + END, &tasks).await;
    all_progressed("after the restart");

    stop.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.unwrap();
    }
    cluster.wait_until_serving(victim).await;
    for node in 0..3 {
        let client = cluster.connect(node).await;
        let total: i64 = client.query_one("SELECT sum(balance)::bigint FROM accounts", &[]).await.unwrap().get(0);
        assert_eq!(total, TOTAL, "at the end, on node {}", node + 1);
    }
}

async fn open_accounts(client: &Client) {
    client.batch_execute("CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL)").await.unwrap();
    for id in 1..=ACCOUNTS {
        client.execute("INSERT INTO accounts VALUES ($1, $2)", &[&id, &BALANCE]).await.unwrap();
    }
}

/// Waits while the clients work; none of them may fail.
async fn load_until(end: Instant, tasks: &[JoinHandle<()>]) {
    while Instant::now() < end {
        assert!(tasks.iter().all(|task| !task.is_finished()), "a client failed");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn transfers(port: u16, seed: u64, stop: Arc<AtomicBool>, counts: Arc<Counts>) {
    let mut rng = StdRng::seed_from_u64(seed);
    while !stop.load(Ordering::SeqCst) {
        let Some(mut client) = connect(&[port]).await else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        while !stop.load(Ordering::SeqCst) && !client.is_closed() {
            let from = rng.random_range(1..=ACCOUNTS);
            let to = (from + rng.random_range(1..ACCOUNTS) - 1) % ACCOUNTS + 1;
            let amount = rng.random_range(1..=10);
            match transfer(&mut client, from, to, amount).await {
                Ok(()) => counts.transfers.fetch_add(1, Ordering::SeqCst),
                Err(error) if is_transient(&error) => counts.retries.fetch_add(1, Ordering::SeqCst),
                Err(error) => panic!("a transfer through port {port}: {error:?}"),
            };
        }
    }
}

async fn transfer(client: &mut Client, from: i64, to: i64, amount: i64) -> Result<(), Error> {
    let txn = client.transaction().await?;
    let balance: i64 = txn.query_one("SELECT balance FROM accounts WHERE id = $1", &[&from]).await?.get(0);
    if balance < amount {
        return txn.rollback().await;
    }
    txn.execute("UPDATE accounts SET balance = $2 WHERE id = $1", &[&from, &(balance - amount)]).await?;
    txn.execute("UPDATE accounts SET balance = balance + $2 WHERE id = $1", &[&to, &amount]).await?;
    txn.commit().await
}

async fn audits(port: u16, stop: Arc<AtomicBool>, counts: Arc<Counts>) {
    while !stop.load(Ordering::SeqCst) {
        let Some(mut client) = connect(&[port]).await else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        while !stop.load(Ordering::SeqCst) && !client.is_closed() {
            match audit(&mut client).await {
                Ok(totals) => {
                    assert_eq!(totals, [TOTAL, TOTAL, TOTAL], "money appeared or vanished");
                    counts.audits.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) if is_transient(&error) => drop(counts.retries.fetch_add(1, Ordering::SeqCst)),
                Err(error) => panic!("an audit through port {port}: {error:?}"),
            }
        }
    }
}

/// Sums the balances three times in one snapshot: in one statement, row by row, in one statement again.
async fn audit(client: &mut Client) -> Result<[i64; 3], Error> {
    const SUM: &str = "SELECT sum(balance)::bigint FROM accounts";
    let txn = client.build_transaction().read_only(true).start().await?;
    let first = txn.query_one(SUM, &[]).await?.get(0);
    let mut piecewise = 0;
    for id in 1..=ACCOUNTS {
        piecewise += txn.query_one("SELECT balance FROM accounts WHERE id = $1", &[&id]).await?.get::<_, i64>(0);
    }
    let last = txn.query_one(SUM, &[]).await?.get(0);
    txn.commit().await?;
    Ok([first, piecewise, last])
}
