//! Power cuts of a whole node: Raft log and RocksDB on one file system, which is shut down under load.
//!
//! Clients transfer between accounts: a transaction changes two balances and adds a row that records them. After the
//! cut the file system is mounted again and the node restarts. Every acknowledged transfer is there, each balance is
//! the sum of its recorded transfers, and the total is what it was.
//!
//! Log files are small and rows long, so files are sealed all the time, and the log soon exceeds its purge threshold:
//! then the key-value store is flushed and old log files are dropped. The test asserts that all of this happened before
//! the power was cut.
//!
//! The same node with a C library whose syncs do nothing must lose acknowledged transfers: that proves the test
//! effective. `engine/tests/power` cuts the power, and says what that needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rand::distr::Alphanumeric;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::Client;

use crate::clients::{connect, connect_with_retries};
use crate::exclusive::ClusterLock;
use crate::power_cut::{Cutter, Volume, now, path, setup};
use crate::process::{POLL_INTERVAL, Process, WAIT_TIMEOUT, cortado, free_port, metric, wait_for};

/// The default number of cuts.
const CUTS: u64 = 2;
/// A node without syncs loses something acknowledged within this many lives, and still starts.
const NO_SYNC_LIVES: u64 = 4;
/// Transfers of such a life.
const NO_SYNC_TRANSFERS: usize = 50;
/// Size of the volume, in bytes.
const VOLUME_BYTES: u64 = 1 << 30;

const ACCOUNTS: i64 = 20;
const BALANCE: i64 = 1000;
const CLIENTS: i64 = 4;
/// Maximum length of the text in a transfer's row. It is random, so it takes as much space in the log.
const NOTE_BYTES: usize = 8000;
/// The size of a log file and the purge threshold of the log.
const LOG_FILE: &str = "64KiB";
const LOG_PURGE: &str = "256KiB";

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
    /// The node does not start. The last lines of its log.
    Refused(String),
}

/// A running node, with its SQL and HTTP ports.
struct Node {
    process: Process,
    pg: u16,
    http: u16,
}

/// The work of a node since it started: log files sealed, bytes of log files dropped, and table files written.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    sealed: f64,
    purged: f64,
    tables: usize,
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
    fn start(&self, _lock: &ClusterLock, syncs: bool) -> Node {
        let (pg, listen, http) = (free_port(), free_port(), free_port());
        let address = |port: u16| format!("127.0.0.1:{port}");
        let mut command = cortado();
        command
            .args(["start-single-node", "--until-stdin-closes", "--cache", "64MiB"])
            .args(["--raft-log-file-size", LOG_FILE, "--raft-log-purge", LOG_PURGE])
            .args(["--data", path(&self.data())])
            .args(["--pg", &address(pg), "--listen", &address(listen), "--http", &address(http)]);
        if let Some(library) = self.no_sync.as_ref().filter(|_| !syncs) {
            command.env("LD_PRELOAD", library);
        }
        let process = Process::spawn(&mut command, &self.logs.path().join(format!("{pg}.log")));
        Node { process, pg, http }
    }

    fn data(&self) -> PathBuf {
        self.volume.mount.join("data")
    }

    /// The table files of the key-value store.
    fn tables(&self) -> BTreeSet<PathBuf> {
        let files = std::fs::read_dir(self.data().join("kv/db")).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|known| known == "sst")).collect()
    }

    /// Creates the tables on a node whose syncs work, and stops it in order.
    async fn prepare(&self, lock: &ClusterLock) {
        let mut node = self.start(lock, true);
        let client = connect_with_retries(node.pg).await;
        let tables = "CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint);
            CREATE TABLE transfers (id bigint PRIMARY KEY, source bigint, target bigint, amount bigint, note text)";
        client.batch_execute(tables).await.unwrap();
        for id in 0..ACCOUNTS {
            client.batch_execute(&format!("INSERT INTO accounts VALUES ({id}, {BALANCE})")).await.unwrap();
        }
        node.stop();
    }

    /// One life of the node: transfers until `enough`, given their number and the node's work; cut, restart, check.
    /// Returns what was lost.
    async fn cut(&mut self, seed: u64, mut enough: impl FnMut(usize, Work) -> bool) -> Result<(), Loss> {
        let lock = ClusterLock::acquire();
        if seed == 1 {
            self.prepare(&lock).await;
        }
        let tables_before = self.tables();
        let Node { process: mut node, pg, http } = self.start(&lock, false);
        drop(connect_with_retries(pg).await);
        let cutter = Cutter::new(&self.volume);
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Acknowledged::default());
        let client =
            |n: i64| transfer(pg, seed * 100 + n as u64, self.next.clone(), stop.clone(), acknowledged.clone());
        let clients: Vec<_> = (0..CLIENTS).map(|n| tokio::spawn(client(n))).collect();
        let mut work = Work::default();
        wait_for("acknowledged transfers, and files sealed, purged and flushed", || {
            let counter = |name| metric(http, name).unwrap_or(0.0);
            work = Work {
                sealed: counter("cortado_log_rotations_total"),
                purged: counter("cortado_log_freed_bytes_total"),
                tables: self.tables().difference(&tables_before).count(),
            };
            enough(acknowledged.lock().unwrap().len(), work)
        });
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
        println!("life {seed}: {} transfers in all, {work:?}", self.kept.len());
        self.volume.unmount().unwrap();
        self.volume.mount().unwrap();
        let mut node = self.start(&lock, true);
        let client = node.connect().await?;
        let found = self.check(&client).await;
        node.stop();
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

impl Node {
    /// Connects once the node serves, unless it ends before.
    async fn connect(&mut self) -> Result<Client, Loss> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            if self.process.has_ended() {
                return Err(Loss::Refused(self.process.tail()));
            }
            if let Some(client) = connect(&[self.pg]).await {
                return Ok(client);
            }
            assert!(Instant::now() < deadline, "the node does not serve: {}", self.process.tail());
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Stops it in order.
    fn stop(&mut self) {
        self.process.signal("TERM");
        assert_eq!(self.process.wait().code(), Some(0), "{}", self.process.tail());
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
            let (amount, len) = (rng.random_range(1..10), rng.random_range(0..NOTE_BYTES));
            let note: String = (0..len).map(|_| rng.sample(Alphanumeric) as char).collect();
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

/// Nothing acknowledged is lost, and no transaction is there in part. The first cut comes at a random time after log
/// files were sealed and purged and tables were flushed, the others as soon as that may be under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_keeps_what_it_acknowledged_before_a_power_cut() {
    let Some((cuts, volume)) = setup(CUTS, VOLUME_BYTES) else { return };
    let mut trial = Trial::new(volume, None);
    for seed in 1..=cuts {
        let mut rng = StdRng::seed_from_u64(seed);
        let transfers = rng.random_range(5..400);
        let mut all_done_at = None;
        let enough = |acknowledged: usize, work: Work| {
            let purged = work.sealed >= 3.0 && work.purged > 0.0 && work.tables > 0;
            if seed == 1 && purged {
                let done_at = *all_done_at.get_or_insert(acknowledged);
                return acknowledged >= done_at + transfers;
            }
            seed > 1 && work.sealed >= 1.0 && acknowledged >= transfers
        };
        match trial.cut(seed, enough).await {
            Ok(()) => {}
            Err(Loss::Acknowledged(ids)) => panic!("cut {seed}: acknowledged transfers {ids:?} are missing"),
            Err(Loss::Partial(what)) => panic!("cut {seed}: a transaction is there in part: {what}"),
            Err(Loss::Refused(log)) => panic!("cut {seed}: the node does not start again:\n{log}"),
        }
    }
    println!("{cuts} cuts, {} transfers", trial.kept.len());
}

/// Without syncs acknowledged transfers are lost: what the other test would find. Each life has a volume of its own. A
/// node that does not start afterwards, or shows part of a transaction, is not enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_syncs_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let mut others = Vec::new();
    for life in 1..=NO_SYNC_LIVES {
        let Some((_, volume)) = setup(CUTS, VOLUME_BYTES) else { return };
        let mut trial = Trial::new(volume, Some(library_without_syncs(dir.path())));
        match trial.cut(1, |acknowledged, _| acknowledged >= NO_SYNC_TRANSFERS).await {
            Err(Loss::Acknowledged(ids)) => {
                println!("life {life}: {} acknowledged transfers were lost; before that {others:?}", ids.len());
                return;
            }
            other => others.push(other),
        }
    }
    panic!("acknowledged transfers must be lost without syncs, not {others:?}");
}

/// Compiles the library whose syncs do nothing.
fn library_without_syncs(dir: &Path) -> PathBuf {
    let (source, library) = (dir.join("nosync.c"), dir.join("nosync.so"));
    std::fs::write(&source, NO_SYNC).unwrap();
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o", path(&library), path(&source)]).status();
    assert!(compiled.unwrap().success(), "cc failed");
    library
}
