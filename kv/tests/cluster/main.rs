//! Servers on three replicated stores in one process: transfers between accounts, while leadership moves and a store dies.
//!
//! The stores are the real ones on their threads, over an in-memory key-value store, a simulated disk and a transport of function calls. Two regions
//! hold the accounts, so that a transfer may cross them. Whatever happens, an auditor finds the same sum in every snapshot.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod client;
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

/// Half of the accounts in each region.
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

/// Waits until as many more transfers have been committed, auditing meanwhile.
async fn progress(client: &Client, committed: &AtomicU64, more: u64) {
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
    let client = Client::new(stores.shared());
    let (stop, committed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    runtime.block_on(open_accounts(&client));
    let workers: Vec<_> = (0..4)
        .map(|seed| runtime.spawn(transfer_some(client.clone(), seed, Arc::clone(&stop), Arc::clone(&committed))))
        .collect();

    runtime.block_on(progress(&client, &committed, 50));
    for to in [2, 3, 1, 2] {
        for region in [RegionId::SYSTEM, RegionId::FIRST_DATA] {
            stores.transfer_leader(region, StoreId::new(to));
        }
        runtime.block_on(progress(&client, &committed, 50));
    }
    // The likely leader of both regions goes without a word.
    stores.kill(StoreId::new(2));
    runtime.block_on(progress(&client, &committed, 50));

    stop.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for worker in workers {
            worker.await.unwrap();
        }
        audit(&client).await;
    });
    println!("{} transfers", committed.load(Ordering::Relaxed));
}

/// Every replica serves after it was elected, and refuses before, with a hint that leads on.
#[test]
fn a_follower_names_the_leader() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let stores = Stores::start(3, Key::from_static(b"m"));
    let client = Client::new(stores.shared());
    runtime.block_on(async {
        open_accounts(&client).await;
        let body = RequestBody::Get { key: account(0), start_ts: client.timestamp() };
        let mut leaders = BTreeSet::new();
        for store in 1..=3 {
            leaders.extend(client.ask(StoreId::new(store), &account(0), body.clone()).await);
        }
        assert_eq!(leaders.len(), 1, "{leaders:?}");
    });
}

/// A leader that finds its data damaged stops serving; another replica has it intact, and takes over.
#[test]
fn a_leader_with_damaged_data_is_left_for_another() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let stores = Stores::start(3, Key::from_static(b"m"));
    let (shared, client) = (stores.shared(), Client::new(stores.shared()));
    let row = account(0).to_storage();
    let (mut damage, mut repair) = (WriteBatch::new(), WriteBatch::new());
    damage.put(Cf::Lock, &row, b"no lock record");
    repair.delete(Cf::Lock, &row);
    runtime.block_on(async {
        open_accounts(&client).await;
        let body = RequestBody::Get { key: account(0), start_ts: client.timestamp() };
        for _ in 0..100 {
            let leader = client.ask(StoreId::new(1), &account(0), body.clone()).await.unwrap();
            shared.tamper(leader, &damage);
            let answer = client.try_send(leader, &account(0), &body).await.unwrap();
            if let Err(ServerError::Failed(_)) = answer {
                let why = shared.handle(leader).unwrap().poisoned().unwrap();
                assert!(why.contains("lock record"), "{why}");
                return audit(&client).await;
            }
            // It has lost its leadership, and did not look.
            shared.tamper(leader, &repair);
        }
        panic!("no leader met the damage");
    });
}
