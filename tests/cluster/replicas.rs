//! Reads at a replica that does not lead, on nodes that are apart: what they cost in messages, and what goes on when
//! the replica is cut off from the others.

use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::process::{POLL_INTERVAL, WAIT_TIMEOUT, cortado, metric, metrics, run, wait_for};

/// The delay between two nodes, in each direction.
const ONE_WAY: Duration = Duration::from_millis(10);
const ROWS: i64 = 100;
/// Transactions of [`ROWS`] point gets.
const TRANSACTIONS: u32 = 2;
/// Clients that read at one gateway, and how often each does.
const CLIENTS: usize = 16;
const READS_EACH: u32 = 15;
/// The most rounds of reads in the past, and the least. A busy machine delays some pushes.
const ROUNDS: usize = 20;
const ROUNDS_LEAST: usize = 2;
/// The patience of reads at the node that is cut off.
const PATIENCE: Duration = Duration::from_millis(300);

/// What `SHOW cortado.last_read` says of the statement before, which has read.
#[derive(Debug)]
struct LastRead {
    path: String,
    round_trips: u32,
    start_ts: String,
}

async fn last_read(client: &Client) -> LastRead {
    let text = only(&client.simple_query("SHOW cortado.last_read").await.unwrap());
    let field = |name: &str| {
        let found = text.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
    };
    LastRead { path: field("path"), round_trips: field("round_trips").parse().unwrap(), start_ts: field("start_ts") }
}

/// The first column of the only row.
fn only(messages: &[SimpleQueryMessage]) -> String {
    let rows = messages.iter().filter_map(|m| if let SimpleQueryMessage::Row(row) = m { row.get(0) } else { None });
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows.len(), 1, "{messages:?}");
    rows[0].to_owned()
}

/// A cluster with the table `t`, all of whose rows have version 1, and a node that leads nothing. One of the others
/// leads all regions, so a timestamp costs it no message.
async fn start(lock: &ClusterLock) -> (Cluster, usize) {
    let cluster = Cluster::start_apart(lock, 3, ONE_WAY).await;
    let client = cluster.connect(0).await;
    client.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY, v bigint NOT NULL)").await.unwrap();
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, 1)")).collect();
    client.batch_execute(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await.unwrap();
    let leader = cluster.leader_of(2);
    cluster.make_leader(1, leader).await;
    (cluster, (leader + 1) % 3)
}

const CLOSEST: &str = "SET cortado.replica_read = closest";

/// A session with these settings.
async fn session(cluster: &Cluster, node: usize, settings: &str) -> Client {
    let client = cluster.connect(node).await;
    client.batch_execute(settings).await.unwrap();
    client
}

/// Reads one row.
async fn get(client: &Client, id: i64) -> Result<i64, Error> {
    client.query_one("SELECT v FROM t WHERE id = $1", &[&id]).await.map(|row| row.get(0))
}

/// The requests for grants, and the reads that a grant covered at once, of a node.
fn grants(cluster: &Cluster, node: usize) -> [u64; 2] {
    let names = ["cortado_kv_grant_messages_total{kind=\"ask\"}", "cortado_kv_granted_reads_total{wait=\"none\"}"];
    metrics(cluster.nodes[node].http, names).expect("a node that runs").map(|count| count as u64)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_at_a_replica_cost_one_round_trip_at_most() {
    let lock = ClusterLock::acquire();
    let (cluster, follower) = start(&lock).await;
    read_only_transactions(&cluster, follower).await;
    requests_do_not_grow_with_reads(&cluster, follower).await;
    for (settings, select) in [
        ("", "SELECT v FROM t AS OF SYSTEM TIME '-50ms' WHERE id = 7"),
        ("SET cortado.read_staleness = '50ms'", "SELECT v FROM t WHERE id = 7"),
        ("SET cortado.session_snapshot = on", "SELECT v FROM t WHERE id = 7"),
        ("SET cortado.session_snapshot = on", "SELECT sum(v) FROM t"),
    ] {
        reads_in_the_past_cost_nothing(&cluster, follower, settings, select).await;
    }
    status_shows_what_replicas_lack(&cluster, follower);
}

/// Each transaction of many point gets takes one round trip at most, for its snapshot.
async fn read_only_transactions(cluster: &Cluster, follower: usize) {
    let client = session(cluster, follower, CLOSEST).await;
    for _ in 0..TRANSACTIONS {
        let [asked, covered] = grants(cluster, follower);
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.unwrap();
        let mut round_trips = 0;
        let mut snapshots = Vec::new();
        for id in 0..ROWS {
            assert_eq!(get(&client, id).await.unwrap(), 1);
            let read = last_read(&client).await;
            assert_eq!(read.path, "grant", "row {id}");
            round_trips += read.round_trips;
            snapshots.push(read.start_ts);
        }
        client.batch_execute("COMMIT").await.unwrap();
        assert!(round_trips <= 1, "{ROWS} gets took {round_trips} round trips");
        snapshots.dedup();
        assert_eq!(snapshots.len(), 1, "one snapshot");
        let [asks, covers] = grants(cluster, follower);
        assert!(asks - asked <= 1, "{} requests for grants", asks - asked);
        assert!(covers - covered < ROWS as u64 * 2, "{} reads", covers - covered);
    }
}

/// However many reads there are, one request for grants is in flight to a leader. The clock is read around the counts,
/// so the true time between these is shorter.
async fn requests_do_not_grow_with_reads(cluster: &Cluster, follower: usize) {
    let mut sessions = Vec::new();
    for _ in 0..CLIENTS {
        sessions.push(session(cluster, follower, CLOSEST).await);
    }
    let (since, [before, _]) = (Instant::now(), grants(cluster, follower));
    let reads = sessions.into_iter().map(|client| async move {
        for id in 0..READS_EACH {
            assert_eq!(get(&client, i64::from(id)).await.unwrap(), 1);
        }
    });
    let reads: Vec<_> = reads.map(tokio::spawn).collect();
    for read in reads {
        read.await.unwrap();
    }
    let ([after, _], elapsed) = (grants(cluster, follower), since.elapsed());
    let (asks, most) = (after - before, elapsed.as_micros() / (2 * ONE_WAY).as_micros());
    let total = CLIENTS * READS_EACH as usize;
    println!("{total} fresh reads in {elapsed:?}: {asks} requests for grants, {most} round trips of time");
    // Of each of two leaders, one may have been under way at either end.
    assert!(u128::from(asks) <= most + 4, "{asks} requests in {elapsed:?}, which is {most} round trips");
}

/// Reads of a snapshot older than a push needs to arrive cost no message in 95 of 100 cases.
async fn reads_in_the_past_cost_nothing(cluster: &Cluster, follower: usize, settings: &str, select: &str) {
    let client = session(cluster, follower, settings).await;
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let mut local = 0;
        for _ in 0..ROWS {
            client.simple_query(select).await.unwrap();
            local += u32::from(last_read(&client).await.round_trips == 0);
        }
        found.push(local);
        let mean = found.iter().sum::<u32>() as f64 / found.len() as f64;
        if found.len() >= ROUNDS_LEAST && mean >= 0.95 * ROWS as f64 {
            println!("{settings} {select}: {found:?} of {ROWS} reads were local");
            return;
        }
    }
    panic!("{settings} {select}: only {found:?} of {ROWS} reads were local");
}

/// `cortado status` says how far the safe_ts of each replica is behind that does not lead.
fn status_shows_what_replicas_lack(cluster: &Cluster, follower: usize) {
    wait_for("the status to know each replica's safe_ts", || {
        let status = cluster.status(0);
        let regions = status["regions"].as_array().map_or(&[][..], Vec::as_slice);
        regions.len() == 2
            && regions.iter().all(|region| {
                let replicas = region["replicas"].as_array().unwrap();
                replicas.len() == 3
                    && replicas.iter().all(|replica| {
                        let leads = replica["node"] == region["leader"];
                        replica["behind_ms"].is_u64() != leads
                    })
            })
    });
    let host = format!("127.0.0.1:{}", cluster.nodes[0].listen);
    let table = run(cortado().args(["status", "--host", &host]));
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("safe_ts behind (node:ms)") && table.contains(&format!(" {}:", follower + 1)), "{table}");
}

/// What the sessions of the node that is cut off find.
struct CutOff {
    fresh: Client,
    session: Client,
    bounded: Client,
    unbounded: Client,
    /// A time from before the cut, as a literal, and the version of all rows then.
    past: String,
    version: i64,
}

impl CutOff {
    async fn open(cluster: &Cluster, node: usize) -> CutOff {
        let patience = format!("SET cortado.replica_wait = '{}ms';", PATIENCE.as_millis());
        let open = async |more: &str| session(cluster, node, &format!("{patience} {more}")).await;
        let fresh = open(CLOSEST).await;
        let version = get(&fresh, 0).await.unwrap();
        let past = last_read(&fresh).await.start_ts;
        CutOff {
            fresh,
            session: open("SET cortado.session_snapshot = on").await,
            bounded: open("SET cortado.read_staleness = 'max 1h'").await,
            unbounded: open("SET cortado.read_staleness = unbounded").await,
            past,
            version,
        }
    }

    /// Reads in the past go on, with what was there when the node was cut off.
    async fn check_past(&self, when: &str) {
        for client in [&self.session, &self.bounded] {
            assert_eq!(get(client, 0).await.unwrap(), self.version, "{when}");
            let read = last_read(client).await;
            assert_eq!((&*read.path, read.round_trips), ("session_snapshot", 0), "{when}: {read:?}");
            let sum = client.query_one("SELECT sum(v)::bigint FROM t", &[]).await.unwrap();
            assert_eq!(sum.get::<_, i64>(0), ROWS * self.version, "{when}");
        }
        assert_eq!(get(&self.unbounded, 0).await.unwrap(), self.version, "{when}");
        let read = last_read(&self.unbounded).await;
        assert_eq!((&*read.path, read.round_trips), ("unproven", 0), "{when}: {read:?}");
        for moment in [format!("'{}'", self.past), "with_max_staleness('1h')".to_owned()] {
            let select = format!("SELECT sum(v) FROM t AS OF SYSTEM TIME {moment}");
            let sum = only(&self.fresh.simple_query(&select).await.unwrap());
            assert_eq!(sum, (ROWS * self.version).to_string(), "{when}: {moment}");
        }
        let begin = format!("BEGIN AS OF SYSTEM TIME '{}'", self.past);
        self.fresh.batch_execute(&begin).await.unwrap();
        assert_eq!(get(&self.fresh, 1).await.unwrap(), self.version, "{when}");
        self.fresh.batch_execute("COMMIT").await.unwrap();
    }

    /// Waits until fresh reads fail because the node's lease on the catalog is over.
    async fn until_no_lease(&self) {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let error = get(&self.fresh, 0).await.expect_err("cut off");
            let detail = error.as_db_error().and_then(|error| error.detail()).unwrap_or_default().to_owned();
            if detail.contains("neither the catalog nor the oracle") {
                return;
            }
            assert!(Instant::now() < deadline, "the lease does not end: {error:?}");
        }
    }

    /// Fresh reads end with 57P03 when their patience is over, not before, and not with the deadlines of others.
    async fn check_fresh(&self, when: &str) {
        for select in ["SELECT v FROM t WHERE id = 0", "SELECT sum(v) FROM t"] {
            let since = Instant::now();
            let error = self.fresh.simple_query(select).await.expect_err(when);
            assert_eq!(error.code(), Some(&SqlState::CANNOT_CONNECT_NOW), "{when}: {error:?}");
            assert!(since.elapsed() >= PATIENCE, "{when}: {error:?} after {:?}", since.elapsed());
            println!("{when}: {:?} after {:?}", error.as_db_error().and_then(|e| e.detail()), since.elapsed());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_cut_off_goes_on_in_the_past() {
    let lock = ClusterLock::acquire();
    let (cluster, follower) = start(&lock).await;
    let others: Vec<usize> = (0..3).filter(|node| *node != follower).collect();
    let at = CutOff::open(&cluster, follower).await;
    at.check_past("before").await;

    cluster.cut_off(&[follower]);
    // Acknowledged after the cut: no read at the node may end as if it were fresh.
    let writer = cluster.connect(others[0]).await;
    writer.batch_execute("UPDATE t SET v = 2").await.unwrap();
    at.check_past("after the cut").await;
    at.check_fresh("after the cut").await;
    at.check_past("after fresh reads").await;
    // A token of what the node cannot have is not answered from what it has.
    writer.batch_execute(CLOSEST).await.unwrap();
    let token = only(&writer.simple_query("SHOW cortado.session_token").await.unwrap());
    let behind = session(&cluster, follower, "SET cortado.session_snapshot = on; SET cortado.replica_wait = '300ms'");
    let behind = behind.await;
    let refused = async {
        behind.batch_execute(&format!("SET cortado.session_token = '{token}'")).await?;
        get(&behind, 0).await
    };
    let refused: Result<i64, Error> = refused.await;
    assert_eq!(refused.expect_err("a newer token").code(), Some(&SqlState::CANNOT_CONNECT_NOW));

    // The node loses its lease on the catalog.
    at.until_no_lease().await;
    at.check_fresh("without a lease").await;
    at.check_past("without a lease").await;

    cluster.cut_off(&[]);
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        match get(&at.fresh, 0).await {
            Ok(version) => break assert_eq!(version, 2, "a fresh read"),
            Err(error) => {
                assert_eq!(error.code(), Some(&SqlState::CANNOT_CONNECT_NOW), "{error:?}");
                assert!(Instant::now() < deadline, "no fresh read after the links are whole: {error:?}");
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    behind.batch_execute(&format!("SET cortado.session_token = '{token}'")).await.unwrap();
    assert_eq!(get(&behind, 0).await.unwrap(), 2, "with the newer token");
    a_former_leader_goes_on_too(&cluster).await;
}

/// A leader that is cut off is a replica like the others, once another leads. It has granted itself what it has granted
/// them.
async fn a_former_leader_goes_on_too(cluster: &Cluster) {
    let leader = cluster.leader_of(2);
    let at = CutOff::open(cluster, leader).await;
    assert_eq!(at.version, 2);
    // It grants itself nothing newer than with its last exchange.
    let exchanged =
        || metric(cluster.nodes[leader].http, "cortado_kv_grant_messages_total{kind=\"exchange\"}").unwrap();
    let before = exchanged();
    wait_for("an exchange after the read", || exchanged() >= before + 4.0);
    cluster.cut_off(&[leader]);
    let others: Vec<usize> = (0..3).filter(|node| *node != leader).collect();
    cluster.wait_until_they_lead(&others);
    let writer = cluster.connect(others[0]).await;
    writer.batch_execute("UPDATE t SET v = 3").await.unwrap();
    let deadline = Instant::now() + WAIT_TIMEOUT;
    // Until it knows that it leads no more, it waits for its followers.
    while let Err(error) = get(&at.session, 0).await {
        assert_eq!(error.code(), Some(&SqlState::CANNOT_CONNECT_NOW), "{error:?}");
        assert!(Instant::now() < deadline, "{error:?}");
    }
    at.check_past("at the former leader").await;
    at.check_fresh("at the former leader").await;
    at.check_past("at the former leader, after fresh reads").await;
}
