//! Bank transfers with concurrent readers under injected faults: every snapshot shows the same total. A scan takes
//! several pages in each region, read on kept scans while leaders move and regions split.

use std::sync::Arc;
use std::time::Duration;

use super::common::{VirtualTso, builder, database, key, locks, run, seeded};
use bytes::Bytes;
use futures::FutureExt;
use kv::Key;
use kv::client::ScanRange;
use kv::memory::{CountingTso, Faults, MemoryCluster, MemoryClusterBuilder};
#[cfg(feature = "planted-bugs")]
use kv::planted::PlantedBug;
use kv::read::ReadConfig;
use kv::scan_cache::KeepLimits;
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

/// Fails with the first snapshot whose total is wrong.
async fn reader(db: Database, seed: u64) -> Result<(), String> {
    let mut rng = StdRng::seed_from_u64(seed);
    for _ in 0..30 {
        let txn = db.begin().await.expect("a timestamp");
        match total(&txn, rng.random(), rng.random()).await {
            Ok(total) if total == ACCOUNTS * EACH => {}
            Ok(total) => return Err(format!("snapshot {} has the total {total}", txn.start_ts())),
            Err(TxnError::Conflict(_)) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Pages of one pair, and few kept scans.
fn small_pages(cluster: MemoryClusterBuilder) -> MemoryClusterBuilder {
    let keep = KeepLimits { scans: 3, age_s: 1 };
    let whole = ReadConfig::default().page_steps;
    cluster.reads(ReadConfig {
        page_pairs: 1,
        first_slice_steps: whole,
        keeps_short_scans: true,
        keep,
        ..ReadConfig::default()
    })
}

async fn bank(seed: u64, cluster: MemoryCluster, tso: Arc<dyn TsoSource>) -> Result<(), String> {
    let gateways: Vec<Database> =
        (0..2).map(|n| database(Arc::new(cluster.clone()), Arc::clone(&tso), seeded(seed + n))).collect();
    gateways[0]
        .run(|txn| async move { (0..ACCOUNTS).try_for_each(|n| txn.insert(account(n), money(EACH))) }.boxed())
        .await
        .expect("the accounts are opened");
    let writers = (0..4).map(|n| writer(gateways[n as usize % 2].clone(), seed * 10 + n));
    let readers = (0..3).map(|n| reader(gateways[n as usize % 2].clone(), seed * 10 + n));
    let (done, read) =
        futures::future::join(futures::future::join_all(writers), futures::future::join_all(readers)).await;
    read.into_iter().collect::<Result<(), String>>()?;
    assert!(cluster.continued_scans() >= 50, "seed {seed}: {} pages on kept scans", cluster.continued_scans());
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
    Ok(())
}

#[test]
fn every_snapshot_shows_the_same_total() {
    for seed in 0..12 {
        println!("seed {seed}");
        let faults =
            Faults { undetermined: 0.02, delay_max: Duration::from_millis(seed % 3 * 10), ..Faults::mixed(seed) };
        let found = run(async { bank(seed, small_pages(builder(faults)).build(), VirtualTso::new()).await });
        assert_eq!(found, Ok(()), "seed {seed}");
    }
}

/// Time runs so fast that locks expire during commits: other transactions roll back live coordinators.
#[test]
fn the_total_survives_locks_that_expire_under_live_coordinators() {
    for seed in 0..12 {
        println!("seed {seed}");
        let cluster = small_pages(builder(Faults::mixed(seed))).build();
        let found = run(async { bank(seed, cluster, Arc::new(CountingTso::new(150))).await });
        assert_eq!(found, Ok(()), "seed {seed}");
    }
}

/// The locks of a page must come from the same snapshot as its write records: a lock that is gone by now left a record
/// that the old cursor does not show.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_stale_cursor_of_a_kept_scan_is_found() {
    const SEEDS: u64 = 12;
    let verdict = |seed: u64, bug: Option<PlantedBug>| {
        let faults = Faults { delay_max: Duration::from_millis(10), ..Faults::none() };
        let cluster = small_pages(builder(faults)).planted_bug(bug).build();
        run(async { bank(seed, cluster, VirtualTso::new()).await })
    };
    for seed in 0..SEEDS {
        let Err(found) = verdict(seed, Some(PlantedBug::StaleScanCursor)) else { continue };
        assert!(found.contains("has the total"), "{found}");
        assert_eq!(verdict(seed, None), Ok(()), "without the bug, seed {seed}");
        println!("found with seed {seed}: {found}");
        return;
    }
    panic!("{SEEDS} seeds did not show the planted bug");
}
