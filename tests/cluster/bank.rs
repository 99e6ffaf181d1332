//! The bank: transfers between accounts keep the total in every snapshot.
//!
//! 50 accounts and 8 clients over two gateways. The leader of the data region is killed, and restarted. Both gateways
//! must make progress before, between and after. An auditor at each gateway sums the balances in one statement, and in
//! a transaction of many statements. Each sum must be the total.

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
use crate::process::{POLL_INTERVAL, WAIT_TIMEOUT};

const ACCOUNTS: i64 = 50;
const BALANCE: i64 = 1000;
const CLIENTS: u64 = 8;
const TOTAL: i64 = ACCOUNTS * BALANCE;

/// Transfers and audits that complete through each gateway in each phase, and the least duration of a phase.
const TRANSFERS: u64 = 10 * CLIENTS;
const AUDITS: u64 = 10;
const PHASE_MIN: Duration = Duration::from_secs(3);

/// Counters of one gateway.
#[derive(Default)]
struct Counts {
    transfers: AtomicU64,
    audits: AtomicU64,
    retries: AtomicU64,
}

/// A gateway, and its counters when the last phase ended.
struct Gateway {
    port: u16,
    counts: Arc<Counts>,
    /// Transfers and audits.
    last: (u64, u64),
}

impl Gateway {
    fn done(&self) -> (u64, u64) {
        (self.counts.transfers.load(Ordering::SeqCst), self.counts.audits.load(Ordering::SeqCst))
    }

    /// Whether enough has completed since the last phase ended. More than was in flight then.
    fn has_progressed(&self) -> bool {
        let (transfers, audits) = self.done();
        transfers - self.last.0 >= TRANSFERS && audits - self.last.1 >= AUDITS
    }

    /// Ends a phase.
    fn report(&mut self, when: &str) {
        let (transfers, audits) = self.done();
        let retries = self.counts.retries.load(Ordering::SeqCst);
        println!(
            "port {} {when}: {} transfers, {} audits, {retries} retries so far",
            self.port,
            transfers - self.last.0,
            audits - self.last.1
        );
        self.last = (transfers, audits);
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

    phase("before the kill", &mut gateways, &tasks).await;
    assert!(cluster.leads(victim) > 0, "the victim leads");
    cluster.kill(victim);
    phase("between the kill and the restart", &mut gateways, &tasks).await;
    cluster.spawn(victim);
    phase("after the restart", &mut gateways, &tasks).await;

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

/// Waits until both gateways have made progress; no client may fail.
async fn phase(when: &str, gateways: &mut [Gateway], tasks: &[JoinHandle<()>]) {
    let start = Instant::now();
    while start.elapsed() < PHASE_MIN || !gateways.iter().all(Gateway::has_progressed) {
        assert!(tasks.iter().all(|task| !task.is_finished()), "a client failed");
        assert!(start.elapsed() < WAIT_TIMEOUT, "no progress through both gateways {when}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    gateways.iter_mut().for_each(|gateway| gateway.report(when));
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
