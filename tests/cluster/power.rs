//! Power cuts of a whole node: Raft log and RocksDB on one file system, which is shut down under load.
//!
//! Clients transfer between accounts: a transaction changes two balances and adds a row that records them. After the
//! cut the file system is mounted again and the node restarts. Every acknowledged transfer is there, each balance is
//! the sum of its recorded transfers, and the total is what it was. Long rows fill log files, so that files are sealed,
//! flushed and truncated between the cuts.
//!
//! The same node with a C library whose syncs do nothing must lose acknowledged transfers: that proves the test
//! effective. `engine/tests/power` cuts the power, and says what that needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::Client;

use crate::clients::{connect, connect_with_retries};
use crate::exclusive::ClusterLock;
use crate::power_cut::{Cutter, Volume, now, path, setup};
use crate::process::{POLL_INTERVAL, Process, cortado, free_port, wait_for};

/// The default number of cuts.
const CUTS: u64 = 2;
/// A node without syncs loses something within this many cuts.
const NO_SYNC_CUTS: u64 = 3;
/// Size of the volume, in bytes.
const VOLUME_BYTES: u64 = 1 << 30;

const ACCOUNTS: i64 = 20;
const BALANCE: i64 = 1000;
const CLIENTS: i64 = 4;

/// Syncs that do nothing, for the C library. Rust's standard library and RocksDB call them there.
const NO_SYNC: &str = "
int fsync(int fd) { (void)fd; return 0; }
int fdatasync(int fd) { (void)fd; return 0; }
int syncfs(int fd) { (void)fd; return 0; }
int msync(void *at, unsigned long len, int flags) { (void)at; (void)len; (void)flags; return 0; }
int sync_file_range(int fd, long offset, long len, unsigned flags) {
    (void)fd; (void)offset; (void)len; (void)flags; return 0;
}
";

/// What a cut took.
#[derive(Debug)]
enum Loss {
    /// Transfers that were acknowledged before the cut.
    Acknowledged(Vec<i64>),
    /// A transaction that is there in part.
    Partial(String),
}

/// A node with its data on a volume.
struct Trial {
    volume: Volume,
    /// The library without syncs.
    no_sync: Option<PathBuf>,
    /// The id of the next transfer.
    next: Arc<AtomicI64>,
    /// Transfers that must be there.
    kept: BTreeSet<i64>,
    logs: tempfile::TempDir,
}

/// Transfers that were acknowledged, with the time of the answer by [`now`].
type Acknowledged = Arc<Mutex<Vec<(i64, u64)>>>;

impl Trial {
    fn new(volume: Volume, no_sync: Option<PathBuf>) -> Trial {
        let logs = tempfile::tempdir().unwrap();
        Trial { volume, no_sync, next: Arc::new(AtomicI64::new(1)), kept: BTreeSet::new(), logs }
    }

    /// Starts the node; `syncs` says whether its syncs work.
    fn start(&self, _lock: &ClusterLock, syncs: bool) -> (Process, u16) {
        let (pg, listen, http) = (free_port(), free_port(), free_port());
        let address = |port: u16| format!("127.0.0.1:{port}");
        let mut command = cortado();
        command
            .args(["start-single-node", "--until-stdin-closes", "--cache", "64MiB"])
            .args(["--data", path(&self.volume.mount.join("data"))])
            .args(["--pg", &address(pg), "--listen", &address(listen), "--http", &address(http)]);
        if let Some(library) = self.no_sync.as_ref().filter(|_| !syncs) {
            command.env("LD_PRELOAD", library);
        }
        (Process::spawn(&mut command, &self.logs.path().join(format!("{pg}.log"))), pg)
    }

    /// Creates the tables on a node whose syncs work, and stops it in order.
    async fn prepare(&self, lock: &ClusterLock) {
        let (mut node, pg) = self.start(lock, true);
        let client = connect_with_retries(pg).await;
        let tables = "CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint);
            CREATE TABLE transfers (id bigint PRIMARY KEY, source bigint, target bigint, amount bigint, note text)";
        client.batch_execute(tables).await.unwrap();
        for id in 0..ACCOUNTS {
            client.batch_execute(&format!("INSERT INTO accounts VALUES ({id}, {BALANCE})")).await.unwrap();
        }
        node.signal("TERM");
        assert_eq!(node.wait().code(), Some(0), "{}", node.tail());
    }

    /// One life of the node: transfers, cut, restart, check. Returns what was lost.
    async fn cut(&mut self, seed: u64, transfers: usize) -> Result<(), Loss> {
        let lock = ClusterLock::acquire();
        if seed == 1 {
            self.prepare(&lock).await;
        }
        let (mut node, pg) = self.start(&lock, false);
        drop(connect_with_retries(pg).await);
        let cutter = Cutter::new(&self.volume);
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Acknowledged::default());
        let client =
            |n: i64| transfer(pg, seed * 100 + n as u64, self.next.clone(), stop.clone(), acknowledged.clone());
        let clients: Vec<_> = (0..CLIENTS).map(|n| tokio::spawn(client(n))).collect();
        wait_for("acknowledged transfers", || acknowledged.lock().unwrap().len() >= transfers);
        let cut_at = cutter.cut();
        stop.store(true, Ordering::SeqCst);
        node.kill();
        node.wait();
        for client in clients {
            client.await.unwrap();
        }
        let in_time = |answered: &[(i64, u64)]| -> Vec<i64> {
            answered.iter().filter(|(_, at)| *at < cut_at).map(|(id, _)| *id).collect()
        };
        self.kept.extend(in_time(&acknowledged.lock().unwrap()));
        self.volume.unmount().unwrap();
        self.volume.mount().unwrap();
        let (mut node, pg) = self.start(&lock, true);
        let found = self.check(&connect_with_retries(pg).await).await;
        node.signal("TERM");
        assert_eq!(node.wait().code(), Some(0), "{}", node.tail());
        found
    }

    /// Compares the node with what was acknowledged.
    async fn check(&mut self, client: &Client) -> Result<(), Loss> {
        let mut expected: BTreeMap<i64, i64> = (0..ACCOUNTS).map(|id| (id, BALANCE)).collect();
        let mut found = BTreeSet::new();
        for row in client.query("SELECT id, source, target, amount FROM transfers", &[]).await.unwrap() {
            let [id, source, target, amount] = [0, 1, 2, 3].map(|at| row.get::<_, i64>(at));
            *expected.get_mut(&source).unwrap() -= amount;
            *expected.get_mut(&target).unwrap() += amount;
            found.insert(id);
        }
        let missing: Vec<i64> = self.kept.difference(&found).copied().collect();
        if !missing.is_empty() {
            return Err(Loss::Acknowledged(missing));
        }
        let rows = client.query("SELECT id, balance FROM accounts", &[]).await.unwrap();
        let balances: BTreeMap<i64, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        if balances != expected {
            return Err(Loss::Partial(format!("balances {balances:?}, by the transfers {expected:?}")));
        }
        assert_eq!(balances.values().sum::<i64>(), ACCOUNTS * BALANCE);
        // Later cuts must keep these too, acknowledged or not.
        self.kept = found;
        Ok(())
    }
}

/// A client that transfers until it is told to stop. Errors are expected: the power goes off.
async fn transfer(pg: u16, seed: u64, next: Arc<AtomicI64>, stop: Arc<AtomicBool>, acknowledged: Acknowledged) {
    let mut rng = StdRng::seed_from_u64(seed);
    while !stop.load(Ordering::SeqCst) {
        let Some(client) = connect(&[pg]).await else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        while !stop.load(Ordering::SeqCst) {
            let id = next.fetch_add(1, Ordering::SeqCst);
            let source = rng.random_range(0..ACCOUNTS);
            let target = (source + rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
            let (amount, note) = (rng.random_range(1..10), "n".repeat(rng.random_range(0..4000)));
            let statements = format!(
                "BEGIN;
                UPDATE accounts SET balance = balance - {amount} WHERE id = {source};
                UPDATE accounts SET balance = balance + {amount} WHERE id = {target};
                INSERT INTO transfers VALUES ({id}, {source}, {target}, {amount}, '{note}');
                COMMIT"
            );
            match client.batch_execute(&statements).await {
                Ok(()) => acknowledged.lock().unwrap().push((id, now())),
                Err(_) if client.is_closed() => break,
                // A conflict, or an error of the disk.
                Err(_) => drop(client.batch_execute("ROLLBACK").await),
            }
        }
    }
}

/// Nothing acknowledged is lost, and no transaction is there in part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_keeps_what_it_acknowledged_before_a_power_cut() {
    let Some((cuts, volume)) = setup(CUTS, VOLUME_BYTES) else { return };
    let mut trial = Trial::new(volume, None);
    for seed in 1..=cuts {
        let transfers = StdRng::seed_from_u64(seed).random_range(5..400);
        match trial.cut(seed, transfers).await {
            Ok(()) => {}
            Err(Loss::Acknowledged(ids)) => panic!("cut {seed}: acknowledged transfers {ids:?} are missing"),
            Err(Loss::Partial(what)) => panic!("cut {seed}: a transaction is there in part: {what}"),
        }
    }
    println!("{cuts} cuts, {} transfers", trial.kept.len());
}

/// Without syncs acknowledged transfers are lost: what the other test would find.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_syncs_is_detected() {
    let Some((_, volume)) = setup(CUTS, VOLUME_BYTES) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut trial = Trial::new(volume, Some(library_without_syncs(dir.path())));
    let mut lost = None;
    for seed in 1..=NO_SYNC_CUTS {
        lost = trial.cut(seed, 50).await.err();
        if lost.is_some() {
            break;
        }
    }
    match lost {
        Some(Loss::Acknowledged(ids)) => println!("{} acknowledged transfers were lost", ids.len()),
        other => panic!("acknowledged transfers must be lost without syncs, not {other:?}"),
    }
}

/// Compiles the library whose syncs do nothing.
fn library_without_syncs(dir: &Path) -> PathBuf {
    let (source, library) = (dir.join("nosync.c"), dir.join("nosync.so"));
    std::fs::write(&source, NO_SYNC).unwrap();
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o", path(&library), path(&source)]).status();
    assert!(compiled.unwrap().success(), "cc failed");
    library
}
