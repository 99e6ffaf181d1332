//! Bank transfers with concurrent readers under injected faults: every snapshot shows the same total.

use std::sync::Arc;
use std::time::Duration;

use super::common::{VirtualTso, cluster, database, key, locks, run, seeded};
use bytes::Bytes;
use futures::FutureExt;
use kv::Key;
use kv::client::ScanRange;
use kv::memory::{CountingTso, Faults};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tso::TsoSource;
use txn::{Database, Transaction, TxnError};

const ACCOUNTS: u64 = 12;
const EACH: u64 = 100;

/// Accounts are spread over the regions.
fn account(n: u64) -> Key {
    key(&format!("{}{n}", ["a", "b", "c", "d"][n as usize % 4]))
}

fn amount(value: &Bytes) -> u64 {
    std::str::from_utf8(value).expect("text").parse().expect("a number")
}

fn money(amount: u64) -> Bytes {
    Bytes::from(amount.to_string())
}

async fn total(txn: &Transaction, by_scan: bool, reverse: bool) -> Result<u64, TxnError> {
    if !by_scan {
        let keys: Vec<Key> = (0..ACCOUNTS).map(account).collect();
        let found = txn.batch_get(&keys).await?;
        assert_eq!(found.len(), keys.len(), "an account is missing");
        return Ok(found.iter().map(|(_, value)| amount(value)).sum());
    }
    let mut range = ScanRange { start: key("a"), end: Key::default(), reverse };
    let mut sum = 0;
    loop {
        let page = txn.scan(&range, 5).await?;
        sum += page.pairs.iter().map(|(_, value)| amount(value)).sum::<u64>();
        match page.resume {
            Some(resume) => range = range.resume_at(resume),
            None => return Ok(sum),
        }
    }
}

async fn transfer(db: &Database, from: u64, to: u64, wanted: u64) -> Result<(), TxnError> {
    db.run(|txn| {
        async move {
            let balance = |value: Option<Bytes>| value.as_ref().map_or(0, amount);
            let have = balance(txn.get(&account(from)).await?);
            let there = balance(txn.get(&account(to)).await?);
            let moved = wanted.min(have);
            txn.put(account(from), money(have - moved))?;
            txn.put(account(to), money(there + moved))
        }
        .boxed()
    })
    .await
}

async fn writer(db: Database, seed: u64) -> u64 {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut done = 0;
    for _ in 0..30 {
        let from = rng.random_range(0..ACCOUNTS);
        let to = (from + rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
        match transfer(&db, from, to, rng.random_range(1..50)).await {
            Ok(()) => done += 1,
            Err(TxnError::Conflict(_)) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    done
}

async fn reader(db: Database, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    for _ in 0..30 {
        let txn = db.begin().await.expect("a timestamp");
        match total(&txn, rng.random(), rng.random()).await {
            Ok(total) => assert_eq!(total, ACCOUNTS * EACH, "seed {seed}, snapshot {}", txn.start_ts()),
            Err(TxnError::Conflict(_)) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
        tokio::task::yield_now().await;
    }
}

async fn bank(seed: u64, faults: Faults, tso: Arc<dyn TsoSource>) {
    let cluster = cluster(faults);
    let gateways: Vec<Database> =
        (0..2).map(|n| database(Arc::new(cluster.clone()), Arc::clone(&tso), seeded(seed + n))).collect();
    gateways[0]
        .run(|txn| async move { (0..ACCOUNTS).try_for_each(|n| txn.insert(account(n), money(EACH))) }.boxed())
        .await
        .expect("the accounts are opened");
    let writers = (0..4).map(|n| writer(gateways[n as usize % 2].clone(), seed * 10 + n));
    let readers = (0..3).map(|n| reader(gateways[n as usize % 2].clone(), seed * 10 + n));
    let (done, _) = futures::future::join(futures::future::join_all(writers), futures::future::join_all(readers)).await;
    assert!(done.iter().sum::<u64>() > 20, "seed {seed}: hardly a transfer went through: {done:?}");
    cluster.set_faults(Faults::none());
    for db in &gateways {
        assert!(db.drain(Duration::from_secs(60)).await, "seed {seed}: background work does not end");
    }
    for by_scan in [true, false] {
        let txn = gateways[0].begin().await.expect("a timestamp");
        assert_eq!(total(&txn, by_scan, false).await, Ok(ACCOUNTS * EACH), "seed {seed}");
    }
    assert_eq!(locks(&cluster), Vec::new(), "seed {seed}: the final reads resolve every lock");
}

#[test]
fn every_snapshot_shows_the_same_total() {
    for seed in 0..12 {
        println!("seed {seed}");
        let faults =
            Faults { undetermined: 0.02, delay_max: Duration::from_millis(seed % 3 * 10), ..Faults::mixed(seed) };
        run(async { bank(seed, faults, VirtualTso::new()).await });
    }
}

/// Time runs so fast that locks expire during commits: other transactions roll back live coordinators.
#[test]
fn the_total_survives_locks_that_expire_under_live_coordinators() {
    for seed in 0..12 {
        println!("seed {seed}");
        run(async { bank(seed, Faults::mixed(seed), Arc::new(CountingTso::new(150))).await });
    }
}
