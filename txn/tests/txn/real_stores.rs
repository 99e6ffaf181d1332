//! The coordinator over real stores: bank transfers between two replicated regions while leaders change, coordinators
//! die at random steps of a commit, and a store is killed. Every snapshot shows the same total. And row locks that are
//! waited for while leaders change.
//!
//! The stores are those of kv's cluster test: three stores on threads of their own, with real Raft over simulated
//! disks. Time is real here, so a seed does not determine a run.

#[allow(dead_code, reason = "the tests of kv use the rest")]
#[path = "../../../kv/tests/kv/cluster/stores.rs"]
mod stores;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use self::stores::{RunningStores, Stores};
use super::common::endpoints::Stalling;
use super::common::{VirtualTso, database, key, seeded};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use kv::Key;
use kv::api::{LockMode, Presence, Request, Response, RowFound};
use kv::client::{CallError, Endpoint, ScanRange};
use kv::read::ReadConfig;
use kv::scan_cache::KeepLimits;
use kv::server::KvServerConfig;
use prometheus::Registry;
use raftstore::{RegionId, RegionStatus, StoreId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tso::Timestamp;
use txn::{Database, LockAsk, LockWait, Transaction, TxnConfig, TxnError};

const ACCOUNTS: u64 = 12;
const EACH: u64 = 100;
/// How long the locks of a dead coordinator live.
const LOCK_TTL: Duration = Duration::from_millis(300);
/// A call without an answer is lost after this time.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// The most audits without progress before the test fails.
const AUDITS_MAX: usize = 100_000;

/// Half of the accounts in each region.
fn account(n: u64) -> Key {
    key(&format!("{}{n:02}", if n.is_multiple_of(2) { "a" } else { "z" }))
}

/// Calls the running stores in this process.
struct InProcess(Arc<RunningStores>);

impl Endpoint for InProcess {
    fn call(&self, store: StoreId, request: Request) -> BoxFuture<'_, Result<Response, CallError>> {
        Box::pin(async move {
            let why = || "injected".to_owned();
            let server = self.0.server(store).ok_or_else(|| CallError::Unreachable { store, why: why() })?;
            match tokio::time::timeout(CALL_TIMEOUT, server.handle(request)).await {
                Ok(answer) => Ok(answer?),
                Err(_) => Err(CallError::Lost { store, why: why() }),
            }
        })
    }

    fn locate(&self, store: StoreId, key: Vec<u8>) -> BoxFuture<'_, Result<Option<RegionStatus>, CallError>> {
        Box::pin(std::future::ready(Ok(self.0.server(store).and_then(|server| server.locate(&key)))))
    }

    fn stores(&self) -> Vec<StoreId> {
        self.0.ids()
    }
}

/// The state that the tasks of the test share.
struct Bank {
    stores: Arc<RunningStores>,
    tso: Arc<VirtualTso>,
    stop: AtomicBool,
    committed: watch::Sender<u64>,
    died: AtomicU64,
}

impl Bank {
    fn gateway(&self, seed: u64) -> Database {
        self.gateway_over(Arc::new(InProcess(Arc::clone(&self.stores))), seed)
    }

    fn gateway_over(&self, endpoint: Arc<dyn Endpoint>, seed: u64) -> Database {
        database(endpoint, self.tso.clone(), TxnConfig { lock_ttl: LOCK_TTL, ..seeded(seed) })
    }

    fn has_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Transfers until the test ends. A transfer with an unknown outcome does not matter.
    async fn transfer_until_stopped(self: Arc<Bank>, seed: u64) {
        let db = self.gateway(seed);
        let mut rng = StdRng::seed_from_u64(seed);
        while !self.has_stopped() {
            match transfer(&db, &mut rng).await {
                Ok(()) => self.committed.send_modify(|n| *n += 1),
                Err(TxnError::Conflict(_) | TxnError::Undetermined { .. }) => {}
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
    }

    /// Kills one coordinator after the other between its first read and its last commit, with a committed transfer of
    /// another task in between.
    async fn kill_coordinators(self: Arc<Bank>, seed: u64) {
        let mut rng = StdRng::seed_from_u64(seed);
        while !self.has_stopped() {
            let endpoint = Arc::new(InProcess(Arc::clone(&self.stores)));
            let dying = Stalling::new(endpoint, rng.random_range(2..8), rng.random());
            let db = self.gateway_over(dying.clone(), rng.random());
            let mut of_its_own = StdRng::seed_from_u64(rng.random());
            let mut transfer = tokio::spawn(async move { transfer(&db, &mut of_its_own).await });
            tokio::select! {
                () = dying.until_stalled() => drop(self.died.fetch_add(1, Ordering::Relaxed)),
                _ = &mut transfer => {}
            }
            // Its requests in flight never complete.
            transfer.abort();
            let before = *self.committed.borrow();
            let mut committed = self.committed.subscribe();
            drop(committed.wait_for(|n| *n > before || self.has_stopped()).await);
        }
    }

    /// Audits until `more` further transfers have been committed.
    async fn audit_until(&self, db: &Database, more: u64) {
        let goal = *self.committed.borrow() + more;
        for n in 0..AUDITS_MAX {
            audit(db, n % 2 == 0).await;
            if *self.committed.borrow() >= goal {
                return;
            }
        }
        panic!("no progress");
    }
}

fn amount(value: Option<&Bytes>) -> u64 {
    value.map_or(0, |value| std::str::from_utf8(value).expect("text").parse().expect("a number"))
}

fn money(amount: u64) -> Bytes {
    Bytes::from(amount.to_string())
}

async fn transfer(db: &Database, rng: &mut StdRng) -> Result<(), TxnError> {
    let from = rng.random_range(0..ACCOUNTS);
    let to = (from + rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
    let wanted = rng.random_range(1..50);
    db.run(|txn| {
        async move {
            let have = amount(txn.get(&account(from)).await?.as_ref());
            let there = amount(txn.get(&account(to)).await?.as_ref());
            let moved = wanted.min(have);
            txn.put(account(from), money(have - moved))?;
            txn.put(account(to), money(there + moved))
        }
        .boxed()
    })
    .await
}

async fn balances(txn: &Transaction, by_scan: bool) -> Result<Vec<u64>, TxnError> {
    let pairs = if by_scan {
        let mut rest = ScanRange { start: key("a"), end: Key::default(), reverse: false };
        let mut pairs = Vec::new();
        loop {
            let page = txn.scan(&rest, 100).await?;
            pairs.extend(page.pairs);
            match page.resume {
                Some(resume) => rest = rest.resume_at(resume),
                None => break pairs,
            }
        }
    } else {
        let keys: Vec<Key> = (0..ACCOUNTS).map(account).collect();
        txn.batch_get(&keys).await?
    };
    Ok(pairs.iter().map(|(_, value)| amount(Some(value))).collect())
}

async fn audit(db: &Database, by_scan: bool) {
    let txn = db.begin().await.expect("a timestamp");
    match balances(&txn, by_scan).await {
        Ok(balances) => {
            let total = balances.iter().sum::<u64>();
            assert_eq!((balances.len() as u64, total), (ACCOUNTS, ACCOUNTS * EACH), "at {}", txn.start_ts());
        }
        // The audit waited too long for locks.
        Err(TxnError::Conflict(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

async fn open_accounts(db: &Database) {
    db.run(|txn| async move { (0..ACCOUNTS).try_for_each(|n| txn.insert(account(n), money(EACH))) }.boxed())
        .await
        .expect("the accounts are opened");
}

/// Pages of two accounts, in slices of a few steps, so that each scan has several and kept scans are reused.
fn small_pages() -> KvServerConfig {
    let reads = ReadConfig {
        page_pairs: 2,
        first_slice_steps: 3,
        pool_slice_steps: 3,
        keeps_short_scans: true,
        keep: KeepLimits { scans: 2, age_s: 1 },
        ..ReadConfig::default()
    };
    KvServerConfig { reads, ..KvServerConfig::default() }
}

/// The pages that a server read on kept scans.
fn continued_scans(registry: &Registry) -> f64 {
    let families = registry.gather();
    let family = families.iter().find(|family| family.name() == "cortado_kv_continued_scans_total");
    family.expect("the counter is registered").get_metric()[0].get_counter().get_value()
}

#[test]
fn the_total_is_constant_while_leaders_change_and_coordinators_die() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _inside = runtime.enter();
    let registries: Vec<Registry> = (0..3).map(|_| Registry::new()).collect();
    let tso = VirtualTso::new();
    let mut stores = Stores::with_config(registries.clone(), key("m"), &small_pages(), tso.clone());
    let bank = Arc::new(Bank {
        stores: stores.running(),
        tso,
        stop: AtomicBool::new(false),
        committed: watch::Sender::new(0),
        died: AtomicU64::new(0),
    });
    let auditor = bank.gateway(100);
    runtime.block_on(open_accounts(&auditor));
    let mut workers: Vec<_> =
        (0..3).map(|seed| runtime.spawn(Arc::clone(&bank).transfer_until_stopped(seed))).collect();
    workers.push(runtime.spawn(Arc::clone(&bank).kill_coordinators(50)));

    runtime.block_on(bank.audit_until(&auditor, 40));
    for to in [2, 3, 1, 2] {
        for region in [RegionId::SYSTEM, RegionId::FIRST_DATA] {
            stores.transfer_leader(region, StoreId::new(to));
        }
        runtime.block_on(bank.audit_until(&auditor, 40));
    }
    // The likely leader of both regions is killed.
    stores.kill(StoreId::new(2));
    runtime.block_on(bank.audit_until(&auditor, 40));

    bank.stop.store(true, Ordering::Relaxed);
    bank.committed.send_modify(|_| ());
    runtime.block_on(async {
        for worker in workers {
            worker.await.unwrap();
        }
        for by_scan in [true, false] {
            let txn = auditor.begin().await.expect("a timestamp");
            let last = balances(&txn, by_scan).await.expect("served");
            assert_eq!(last.iter().sum::<u64>(), ACCOUNTS * EACH, "{last:?}");
        }
    });
    let (committed, died) = (*bank.committed.borrow(), bank.died.load(Ordering::Relaxed));
    println!("{committed} transfers, {died} coordinators died");
    assert!(died >= 10, "hardly a coordinator died: {died}");
    // Half of the audits scan, in four pages of each region.
    let continued: f64 = registries.iter().map(continued_scans).sum();
    assert!(continued >= 100.0, "hardly a page was read on a kept scan: {continued}");
}

/// The queue of a row, as the leaders know it: transactions that wait, in their order.
fn waiting(stores: &RunningStores, row: &Key) -> Vec<Timestamp> {
    let servers = stores.ids().into_iter().filter_map(|id| stores.server(id));
    let leads = |server: &stores::Server| {
        let region = server.locate(&row.to_storage()).filter(|region| region.is_leader);
        region.is_some()
    };
    let locks = servers.filter(leads).flat_map(|server| server.row_locks(usize::MAX).0);
    locks.filter(|lock| lock.key == *row && lock.wait.is_some()).map(|lock| lock.start_ts).collect()
}

async fn until(what: &str, is_done: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if is_done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}");
}

/// Locks the row, and appends to it what is given.
async fn append(db: Database, row: Key, text: &str) -> Result<(), TxnError> {
    let mut txn = db.begin().await?;
    txn.begin_statement();
    let ask = LockAsk { mode: LockMode::Update, presence: Presence::Any, was_read: false, wait: LockWait::Queue(None) };
    let found = txn.lock_rows(vec![row.clone()], ask).await?.remove(0).row;
    let RowFound::Present(old) = found else { panic!("{found:?}") };
    txn.put(row, [&old[..], text.as_bytes()].concat().into())?;
    txn.commit().await.map(drop)
}

/// Transactions wait for far longer than a request may take, while every leader hands over, more than once. Nobody
/// loses a lock or a place.
#[test]
fn long_waits_survive_timeouts_and_planned_changes_of_leaders() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _inside = runtime.enter();
    let tso = VirtualTso::new();
    let registries = (0..3).map(|_| Registry::new()).collect();
    let stores = Stores::with_config(registries, key("m"), &KvServerConfig::default(), tso.clone());
    let running = stores.running();
    let gateway = |seed| database(Arc::new(InProcess(Arc::clone(&running))), tso.clone(), seeded(seed));
    let rows = [key("a"), key("z")];
    let ask = LockAsk { mode: LockMode::Update, presence: Presence::Any, was_read: false, wait: LockWait::Queue(None) };
    runtime.block_on(async {
        let mut holder = gateway(1).begin().await.unwrap();
        holder.begin_statement();
        holder.lock_rows(rows.to_vec(), ask).await.unwrap();
        let mut waiters = Vec::new();
        for (n, text) in ["1", "2", "3"].into_iter().enumerate() {
            for row in &rows {
                waiters.push(tokio::spawn(append(gateway(10 + n as u64), row.clone(), text)));
                until("it waits", || waiting(&running, row).len() == n + 1).await;
            }
        }
        let queues = rows.clone().map(|row| waiting(&running, &row));
        for to in [2, 3, 1].map(StoreId::new) {
            for region in [RegionId::SYSTEM, RegionId::FIRST_DATA] {
                let leads = || running.handle(to).and_then(|handle| handle.leader(region)) == Some(to);
                for _ in 0..20 {
                    stores.transfer_leader(region, to);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    if leads() {
                        break;
                    }
                }
                until("it leads", leads).await;
            }
            let found = || rows.clone().map(|row| waiting(&running, &row));
            until("the queues are there", || found() == queues).await;
            // Longer than a request waits.
            tokio::time::sleep(CALL_TIMEOUT + Duration::from_millis(500)).await;
            assert_eq!(found(), queues);
        }
        for row in &rows {
            holder.put(row.clone(), Bytes::from_static(b"0")).unwrap();
        }
        holder.commit().await.expect("its locks are there");
        for waiter in waiters {
            waiter.await.unwrap().expect("nobody has met a conflict");
        }
        let read = gateway(2).begin().await.unwrap();
        for row in &rows {
            assert_eq!(read.get(row).await.unwrap(), Some(Bytes::from_static(b"0123")), "in the order of the queue");
        }
    });
}
