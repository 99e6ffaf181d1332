//! Clients like those of an application: they reconnect, and they record what was acknowledged.

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
use crate::process::{POLL_INTERVAL, WAIT_TIMEOUT};

/// Connects to the first of these ports that accepts, like a driver with several hosts.
pub async fn try_connect(ports: &[u16]) -> Result<Client, Error> {
    let list = |item: &dyn Fn(&u16) -> String| ports.iter().map(item).collect::<Vec<_>>().join(",");
    let (hosts, ports) = (list(&|_| "127.0.0.1".to_string()), list(&u16::to_string));
    let config = format!("host={hosts} port={ports} user=postgres dbname=postgres connect_timeout=3");
    let connected = tokio::time::timeout(WAIT_TIMEOUT, tokio_postgres::connect(&config, NoTls)).await;
    let (client, connection) = connected.expect("a node neither accepts nor rejects a connection")?;
    tokio::spawn(connection);
    Ok(client)
}

/// Like [`try_connect`], without the error.
pub async fn connect(ports: &[u16]) -> Option<Client> {
    try_connect(ports).await.ok()
}

/// Connects to a port, with retries until it accepts.
pub async fn connect_with_retries(port: u16) -> Client {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        match try_connect(&[port]).await {
            Ok(client) => return client,
            Err(error) => assert!(Instant::now() < deadline, "port {port} accepts no connection: {error}"),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Whether a client must expect the error while nodes stop and start: a serialization failure (40001), a cluster that
/// cannot serve now (57P03) or is overloaded (53000), a gateway that stops (57P01), an unknown outcome or another
/// connection error (08xxx), or a broken connection.
pub fn is_transient(error: &Error) -> bool {
    match error.code() {
        Some(code) => {
            let codes = [
                SqlState::T_R_SERIALIZATION_FAILURE,
                SqlState::T_R_DEADLOCK_DETECTED,
                SqlState::CANNOT_CONNECT_NOW,
                SqlState::INSUFFICIENT_RESOURCES,
                SqlState::ADMIN_SHUTDOWN,
            ];
            codes.contains(code) || (code.code().starts_with("08") && *code != SqlState::PROTOCOL_VIOLATION)
        }
        None => error.is_closed() || error.source().is_some_and(|source| source.is::<std::io::Error>()),
    }
}

/// A client that inserts rows into the table `log`, one after the other, and reconnects after an error.
pub struct Writer {
    stop: Arc<AtomicBool>,
    progress: Arc<Mutex<Progress>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Progress {
    /// Rows that were sent. The last one may be in flight.
    tried: Range<i64>,
    acknowledged: BTreeSet<i64>,
    /// The time of each acknowledgement.
    times: Vec<Instant>,
}

/// The rows of a writer, for [`check`].
pub struct Written {
    tried: Range<i64>,
    acknowledged: BTreeSet<i64>,
}

/// The value of row `id`. Some values are too long to be stored in the commit record.
fn value(id: i64) -> String {
    let width = if id % 8 == 0 { 400 } else { 0 };
    format!("row {id:0width$}")
}

impl Writer {
    /// Starts writing through the first of `ports` that accepts connections. The row ids start at `first`.
    pub fn start(ports: Vec<u16>, first: i64) -> Writer {
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Arc::new(Mutex::new(Progress { tried: first..first, ..Progress::default() }));
        let task = tokio::spawn(write(ports, stop.clone(), progress.clone()));
        Writer { stop, progress, task }
    }

    fn acknowledged(&self) -> usize {
        self.progress.lock().unwrap().times.len()
    }

    /// Waits until `more` further rows are acknowledged.
    pub async fn wait_for_rows(&self, more: usize) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        let target = self.acknowledged() + more;
        while self.acknowledged() < target {
            assert!(!self.task.is_finished(), "the writer failed");
            assert!(Instant::now() < deadline, "the writer makes no progress");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The longest time without an acknowledgement from `mark` until now.
    pub fn largest_gap(&self, mark: Instant) -> Duration {
        let progress = self.progress.lock().unwrap();
        let later = progress.times.iter().copied().filter(|time| *time > mark).chain([Instant::now()]);
        let mut last = mark;
        let gaps = later.map(|time| time.duration_since(std::mem::replace(&mut last, time)));
        gaps.max().unwrap_or_default()
    }

    /// Stops writing.
    pub async fn finish(self) -> Written {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
        let progress = self.progress.lock().unwrap();
        Written { tried: progress.tried.clone(), acknowledged: progress.acknowledged.clone() }
    }
}

async fn write(ports: Vec<u16>, stop: Arc<AtomicBool>, progress: Arc<Mutex<Progress>>) {
    while !stop.load(Ordering::SeqCst) {
        let client = match try_connect(&ports).await {
            Ok(client) => client,
            Err(error) => {
                assert!(is_transient(&error), "connecting: {error:?}");
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            }
        };
        while !stop.load(Ordering::SeqCst) {
            let id = progress.lock().unwrap().tried.end;
            progress.lock().unwrap().tried.end += 1;
            match client.execute("INSERT INTO log VALUES ($1, $2)", &[&id, &value(id)]).await {
                Ok(1) => {
                    let mut progress = progress.lock().unwrap();
                    progress.acknowledged.insert(id);
                    progress.times.push(Instant::now());
                }
                Ok(n) => panic!("one row was inserted, not {n}"),
                // The outcome of this row is unknown. The next insert is another row, so no retry is needed.
                Err(error) if is_transient(&error) => break,
                Err(error) => panic!("row {id}: {error:?}"),
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Creates the table of the writers.
pub async fn create_log(cluster: &Cluster) {
    let client = cluster.connect(0).await;
    client.batch_execute("CREATE TABLE log (id bigint PRIMARY KEY, v text NOT NULL UNIQUE)").await.unwrap();
    client.batch_execute("CREATE INDEX ON log ((id % 7), v) WHERE id % 2 = 0").await.unwrap();
}

/// Asserts that every node has every acknowledged row with its value, and no row that no writer sent, and that the
/// indexes equal the table.
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
    cluster.check_tables(0);
}
