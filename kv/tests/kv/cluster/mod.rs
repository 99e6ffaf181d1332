//! Servers on three replicated stores in one process: bank transfers while leadership moves and a store dies.
//!
//! The stores are the real ones on their own threads, over an in-memory key-value store, a simulated disk and a
//! transport of function calls. Two regions hold the accounts, so a transfer may span both. An auditor must find the
//! same sum in every snapshot.

mod client;
mod redirect;
mod stores;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::{Cf, WriteBatch};
use kv::Key;
use kv::api::{RequestBody, ServerError};
use raftstore::{RegionId, StoreId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use client::{Client, Outcome};
use stores::Stores;

const ACCOUNTS: u64 = 8;
const BALANCE: u64 = 100;

/// The key of account `n`. Each region holds half of the accounts.
fn account(n: u64) -> Key {
    Key::new(format!("{}{n}", if n.is_multiple_of(2) { "a" } else { "z" }))
}

async fn open_accounts(client: &Client) {
    for n in 0..ACCOUNTS {
        let outcome = client.transact(&[account(n)], |_| vec![BALANCE]).await;
        assert!(matches!(outcome, Outcome::Committed), "{outcome:?}");
    }
}

async fn transfer_some(client: Client, seed: u64, stop: Arc<AtomicBool>, committed: Arc<AtomicU64>) {
    let mut rng = StdRng::seed_from_u64(seed);
    while !stop.load(Ordering::Relaxed) {
        let from = rng.random_range(0..ACCOUNTS);
        let to = (from + rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let amount = rng.random_range(1..20);
        let keys = [account(from), account(to)];
        let outcome = client
            .transact(&keys, |balances| {
                let amount = amount.min(balances[0]);
                vec![balances[0] - amount, balances[1] + amount]
            })
            .await;
        committed.fetch_add(u64::from(matches!(outcome, Outcome::Committed)), Ordering::Relaxed);
    }
}

async fn audit(client: &Client) {
    let keys: Vec<Key> = (0..ACCOUNTS).map(account).collect();
    let balances = client.read(&keys, client.timestamp()).await;
    assert_eq!(balances.iter().sum::<u64>(), ACCOUNTS * BALANCE, "{balances:?}");
}

/// Audits until `more` further transfers have committed.
async fn audit_until_progress(client: &Client, committed: &AtomicU64, more: u64) {
    let goal = committed.load(Ordering::Relaxed) + more;
    for _ in 0..100_000 {
        audit(client).await;
        if committed.load(Ordering::Relaxed) >= goal {
            return;
        }
    }
    panic!("no progress");
}

#[test]
fn the_sum_is_constant_while_leaders_move_and_a_store_dies() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut stores = Stores::start(3, Key::from_static(b"m"));
    let client = Client::new(stores.running());
    let (stop, committed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    runtime.block_on(open_accounts(&client));
    let workers: Vec<_> = (0..4)
        .map(|seed| runtime.spawn(transfer_some(client.clone(), seed, Arc::clone(&stop), Arc::clone(&committed))))
        .collect();

    runtime.block_on(audit_until_progress(&client, &committed, 50));
    for to in [2, 3, 1, 2] {
        for region in [RegionId::SYSTEM, RegionId::FIRST_DATA] {
            stores.transfer_leader(region, StoreId::new(to));
        }
        runtime.block_on(audit_until_progress(&client, &committed, 50));
    }
    // Kill the likely leader of both regions.
    stores.kill(StoreId::new(2));
    runtime.block_on(audit_until_progress(&client, &committed, 50));

    stop.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for worker in workers {
            worker.await.unwrap();
        }
        audit(&client).await;
    });
    println!("{} transfers", committed.load(Ordering::Relaxed));
}

/// All stores name the same leader.
#[test]
fn all_stores_name_the_same_leader() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let stores = Stores::start(3, Key::from_static(b"m"));
    let client = Client::new(stores.running());
    runtime.block_on(async {
        open_accounts(&client).await;
        let body = RequestBody::Get { key: account(0), start_ts: client.timestamp(), pass: Vec::new() };
        let mut leaders = BTreeSet::new();
        for store in 1..=3 {
            leaders.extend(client.leader_according_to(StoreId::new(store), &account(0), body.clone()).await);
        }
        assert_eq!(leaders.len(), 1, "{leaders:?}");
    });
}

/// A leader that finds its data corrupt stops serving, and a replica with intact data takes over.
#[test]
fn a_leader_with_corrupt_data_is_replaced() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let stores = Stores::start(3, Key::from_static(b"m"));
    let (running, client) = (stores.running(), Client::new(stores.running()));
    let row = account(0).to_storage();
    let (mut corruption, mut repair) = (WriteBatch::new(), WriteBatch::new());
    corruption.put(Cf::Lock, &row, b"no lock record");
    repair.delete(Cf::Lock, &row);
    runtime.block_on(async {
        open_accounts(&client).await;
        let body = RequestBody::Get { key: account(0), start_ts: client.timestamp(), pass: Vec::new() };
        for _ in 0..100 {
            let leader = client.leader_according_to(StoreId::new(1), &account(0), body.clone()).await.unwrap();
            running.write_raw(leader, &corruption);
            let answer = client.try_send(leader, &account(0), &body).await.unwrap();
            if let Err(ServerError::Failed(_)) = answer {
                let why = running.handle(leader).unwrap().poisoned().unwrap();
                assert!(why.contains("lock record"), "{why}");
                return audit(&client).await;
            }
            // It lost the leadership before it read the row.
            running.write_raw(leader, &repair);
        }
        panic!("no leader read the corrupt row");
    });
}
