//! Clients as applications are: they reconnect, and they remember what was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, NoTls};

use crate::harness::Cluster;
use crate::process::{PATIENCE, POLL};

/// A connection to the first of these ports at which somebody takes it, as a driver with several hosts makes it.
pub async fn try_connect(ports: &[u16]) -> Result<Client, Error> {
    let list = |item: &dyn Fn(&u16) -> String| ports.iter().map(item).collect::<Vec<_>>().join(",");
    let (hosts, ports) = (list(&|_| "127.0.0.1".to_string()), list(&u16::to_string));
    let config = format!("host={hosts} port={ports} user=postgres dbname=postgres connect_timeout=3");
    let connected = tokio::time::timeout(PATIENCE, tokio_postgres::connect(&config, NoTls)).await;
    let (client, connection) = connected.expect("a node neither takes nor refuses a connection")?;
    tokio::spawn(connection);
    Ok(client)
}

/// Like [`try_connect`], for who does not care why not.
pub async fn connect(ports: &[u16]) -> Option<Client> {
    try_connect(ports).await.ok()
}

/// A connection to a port, as soon as somebody takes it.
pub async fn connect_patiently(port: u16) -> Client {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match try_connect(&[port]).await {
            Ok(client) => return client,
            Err(error) => assert!(Instant::now() < deadline, "port {port} takes no connection: {error}"),
        }
        tokio::time::sleep(POLL).await;
    }
}

/// What a client must expect while nodes come and go, and nothing else: a transaction to run again (40001), a cluster that cannot
/// serve now (57P03), a gateway that stops (57P01), an outcome that is not known and other trouble with the connection (08xxx), a
/// connection that broke.
pub fn is_transient(error: &Error) -> bool {
    match error.code() {
        Some(code) => {
            let codes = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::CANNOT_CONNECT_NOW, SqlState::ADMIN_SHUTDOWN];
            codes.contains(code) || (code.code().starts_with("08") && *code != SqlState::PROTOCOL_VIOLATION)
        }
        None => error.is_closed() || error.source().is_some_and(|source| source.is::<std::io::Error>()),
    }
}

/// A client that inserts row after row into the table `log`, reconnecting as it must, until it is told to stop.
pub struct Writer {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    /// Rows that were sent; the last one may be on its way.
    tried: Range<i64>,
    acknowledged: BTreeSet<i64>,
    /// When each acknowledgement came.
    times: Vec<Instant>,
}

/// What a writer did, for [`check`].
pub struct Written {
    tried: Range<i64>,
    acknowledged: BTreeSet<i64>,
}

/// What row `id` holds. Some rows are too long to lie beside their commit record.
fn value(id: i64) -> String {
    let width = if id % 8 == 0 { 400 } else { 0 };
    format!("row {id:0width$}")
}

impl Writer {
    /// Writes through the first of `ports` that takes connections. Its rows are numbered from `first`.
    pub fn start(ports: Vec<u16>, first: i64) -> Writer {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new(Seen { tried: first..first, ..Seen::default() }));
        let task = tokio::spawn(write(ports, stop.clone(), seen.clone()));
        Writer { stop, seen, task }
    }

    fn acknowledged(&self) -> usize {
        self.seen.lock().unwrap().times.len()
    }

    /// Waits until `more` further rows are acknowledged.
    pub async fn progress(&self, more: usize) {
        let deadline = Instant::now() + PATIENCE;
        let target = self.acknowledged() + more;
        while self.acknowledged() < target {
            assert!(!self.task.is_finished(), "the writer failed");
            assert!(Instant::now() < deadline, "writing does not go on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The longest time without an acknowledgement from `mark` until now.
    pub fn largest_gap(&self, mark: Instant) -> Duration {
        let seen = self.seen.lock().unwrap();
        let later = seen.times.iter().copied().filter(|time| *time > mark).chain([Instant::now()]);
        let mut last = mark;
        let gaps = later.map(|time| time.duration_since(std::mem::replace(&mut last, time)));
        gaps.max().unwrap_or_default()
    }

    /// Stops writing.
    pub async fn finish(self) -> Written {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
        let seen = self.seen.lock().unwrap();
        Written { tried: seen.tried.clone(), acknowledged: seen.acknowledged.clone() }
    }
}

async fn write(ports: Vec<u16>, stop: Arc<AtomicBool>, seen: Arc<Mutex<Seen>>) {
    while !stop.load(Ordering::SeqCst) {
        let client = match try_connect(&ports).await {
            Ok(client) => client,
            Err(error) => {
                assert!(is_transient(&error), "connecting: {error:?}");
                tokio::time::sleep(POLL).await;
                continue;
            }
        };
        while !stop.load(Ordering::SeqCst) {
            let id = seen.lock().unwrap().tried.end;
            seen.lock().unwrap().tried.end += 1;
            match client.execute("INSERT INTO log VALUES ($1, $2)", &[&id, &value(id)]).await {
                Ok(1) => {
                    let mut seen = seen.lock().unwrap();
                    seen.acknowledged.insert(id);
                    seen.times.push(Instant::now());
                }
                Ok(n) => panic!("one row was inserted, not {n}"),
                // The fate of this row is open; the next one is another row, so no retry is needed.
                Err(error) if is_transient(&error) => break,
                Err(error) => panic!("row {id}: {error:?}"),
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Creates the table that writers write to.
pub async fn create_log(cluster: &Cluster) {
    let client = cluster.connect(0).await;
    client.batch_execute("CREATE TABLE log (id bigint PRIMARY KEY, v text NOT NULL)").await.unwrap();
}

/// Every node must have every acknowledged row with its value, and no row that nobody wrote.
pub async fn check(cluster: &Cluster, written: &[Written]) {
    for node in 0..cluster.nodes.len() {
        let rows = cluster.connect(node).await.query("SELECT id, v FROM log", &[]).await.unwrap();
        let found: BTreeMap<i64, String> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_eq!(found.len(), rows.len(), "node {} has a row twice", node + 1);
        let acknowledged = written.iter().flat_map(|written| &written.acknowledged);
        let lost: Vec<_> = acknowledged.filter(|id| !found.contains_key(id)).collect();
        assert!(lost.is_empty(), "{} acknowledged rows are lost on node {}: {lost:?}", lost.len(), node + 1);
        for (id, v) in &found {
            assert_eq!(*v, value(*id), "row {id} on node {}", node + 1);
            assert!(written.iter().any(|written| written.tried.contains(id)), "nobody wrote row {id}");
        }
    }
}
