//! The bank: transfers between accounts keep the total at every snapshot.
//!
//! 50 accounts, 8 clients over two gateways, 30 seconds with the data region's leader killed in the middle. An auditor reads all balances in
//! one statement and in one transaction of many statements; each must add up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::{Client, Error};

use crate::harness::{Cluster, connect, wait_for};

const ACCOUNTS: i64 = 50;
const BALANCE: i64 = 1000;
const CLIENTS: u64 = 8;
const TOTAL: i64 = ACCOUNTS * BALANCE;

#[derive(Default)]
struct Counts {
    transfers: AtomicU64,
    retries: AtomicU64,
    audits: AtomicU64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_total_never_changes() {
    let seed: u64 = std::env::var("CORTADO_TEST_SEED").ok().map_or_else(rand::random, |s| s.parse().unwrap());
    println!("seed {seed} (repeat the clients' choices with CORTADO_TEST_SEED={seed})");
    let mut cluster = Cluster::start(3).await;
    let client = cluster.connect(0).await;
    client.batch_execute("CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL)").await.unwrap();
    for id in 1..=ACCOUNTS {
        client.execute("INSERT INTO accounts VALUES ($1, $2)", &[&id, &BALANCE]).await.unwrap();
    }

    let mut leader = None;
    wait_for("a leader", || {
        leader = cluster.leader_of(2, 0);
        leader.is_some()
    });
    // The gateways stay up; whoever leads the data region is killed, and may be neither.
    let victim = leader.unwrap();
    let gateways: Vec<u16> = (0..3).filter(|n| *n != victim).map(|n| cluster.nodes[n].pg).collect();

    let stop = Arc::new(AtomicBool::new(false));
    let counts = Arc::new(Counts::default());
    let mut tasks = Vec::new();
    for n in 0..CLIENTS {
        let port = gateways[n as usize % 2];
        tasks.push(tokio::spawn(transfers(port, seed.wrapping_add(n), stop.clone(), counts.clone())));
    }
    for port in gateways {
        tasks.push(tokio::spawn(audits(port, stop.clone(), counts.clone())));
    }

    let start = Instant::now();
    for (at, kill) in [(10, true), (18, false), (30, false)] {
        while start.elapsed() < Duration::from_secs(at) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(tasks.iter().all(|task| !task.is_finished()), "a client failed");
        }
        match (at, kill) {
            (_, true) => cluster.kill(victim),
            (18, false) => cluster.spawn(victim),
            _ => {}
        }
    }
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
    let read = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
    let (transfers, audits) = (read(&counts.transfers), read(&counts.audits));
    println!("{transfers} transfers, {} retries, {audits} audits", read(&counts.retries));
    assert!(transfers > 100 && audits > 10, "the test must have done something");
}

async fn transfers(port: u16, seed: u64, stop: Arc<AtomicBool>, counts: Arc<Counts>) {
    let mut rng = StdRng::seed_from_u64(seed);
    while !stop.load(Ordering::SeqCst) {
        let Some(mut client) = connect(port).await else { continue };
        while !stop.load(Ordering::SeqCst) && !client.is_closed() {
            let from = rng.random_range(1..=ACCOUNTS);
            let to = (from + rng.random_range(1..ACCOUNTS) - 1) % ACCOUNTS + 1;
            let amount = rng.random_range(1..=10);
            match transfer(&mut client, from, to, amount).await {
                Ok(()) => counts.transfers.fetch_add(1, Ordering::SeqCst),
                Err(_) => counts.retries.fetch_add(1, Ordering::SeqCst),
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
        let Some(mut client) = connect(port).await else { continue };
        while !stop.load(Ordering::SeqCst) && !client.is_closed() {
            if let Ok(totals) = audit(&mut client).await {
                assert_eq!(totals, [TOTAL, TOTAL, TOTAL], "money appeared or vanished");
                counts.audits.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

/// The total three times within one snapshot: at once, row by row, at once again.
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
