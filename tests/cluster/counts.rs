//! What a statement costs, in counts: timestamps, messages between nodes, Raft rounds, syncs of the log, reads of the
//! catalog, for each kind of statement, through the gateway that leads and through another one.
//!
//! Nodes also work in the background: they renew leases, raise the oracle's window, place regions, fetch timestamps
//! ahead. So a kind is counted in rounds of a few statements, and each round is judged as a whole: it is within the
//! table if no counter is above it. Background work disturbs some rounds. An extra message of some of the statements,
//! such as every fifth, disturbs nearly all. So at least half of the rounds must be within the table.
//!
//! On a machine under load a round takes longer, and meets more of the background. So where too few are within, there
//! are more rounds, each followed by an interval of its length without statements. What the intervals count is the
//! background of the rounds: the difference must be within the table, but for a tenth of a statement. What a few rounds
//! meet by chance must not decide: there are more of them until that holds, and pauses of different lengths between
//! them, because much of the background has a fixed period.
//!
//! No round may be below the work that no statement of the kind can leave out, which shows that the counters count.

use std::ops::Range;
use std::time::{Duration, Instant};

use tokio_postgres::{Client, Error, Statement};

use crate::exclusive::ClusterLock;
use crate::harness::{Begun, Cluster};
use crate::process::metrics;

/// Statements, or transactions, of a round.
const STATEMENTS: i64 = 10;
/// Rounds of a kind. Background work disturbs about one in ten. If one statement in five costs more, chance leaves
/// 0.8^10 of the rounds undisturbed, a tenth: half of 8 are so in one case of 150.
const ROUNDS: usize = 8;
/// Further rounds, if too few of the first are within the table: at least so many, and at most.
const MORE_ROUNDS: usize = 16;
const MORE_ROUNDS_MAX: usize = 120;
/// The part of the statements whose cost may be beyond the table, where the background is subtracted. It counts some
/// 25 timestamps a second on three nodes, as a sum of several periods: in 16 rounds of a second each some 20 more or
/// less.
const DOUBT: f64 = 0.1;
/// The names that a gateway fetches ahead for transactions that read nothing (`tso/src/ahead.rs`): far more than the
/// timestamps of a round. Fetching them is background.
const AHEAD: u64 = 1024;
/// The parts of a round's length that the pauses take, one after the other: no period of the background fits them all.
const PAUSES: [f64; 5] = [0.62, 0.24, 0.85, 0.47, 0.09];
/// The test's time limit. Alone on two cores it takes half a minute. Under load each round is slower, and there are
/// more.
const LIMIT: Duration = Duration::from_secs(360);
/// Rows of a range, and of an INSERT of several.
const ROWS: i64 = 3;
/// Statements of a transaction that only reads.
const READS: u64 = 4;

/// The counters of [`Counts`], in its order. `docs/metrics.md` lists them.
const COUNTERS: [&str; 5] = [
    "tso_timestamps_total",
    "cortado_link_sent_messages_total",
    "raftstore_proposals_total",
    "cortado_log_sync_seconds_count",
    "sql_catalog_reads_total",
];

/// What all nodes together did, or may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    timestamps: u64,
    /// Requests and answers between nodes. Raft's are not among them.
    messages: u64,
    proposals: u64,
    syncs: u64,
    catalog_reads: u64,
}

impl Counts {
    /// The counters of all nodes now.
    fn now(cluster: &Cluster) -> Counts {
        let mut sum = [0; COUNTERS.len()];
        for node in &cluster.nodes {
            let found = metrics(node.http, COUNTERS).expect("a node that runs");
            sum.iter_mut().zip(found).for_each(|(sum, found)| *sum += found as u64);
        }
        let [timestamps, messages, proposals, syncs, catalog_reads] = sum;
        Counts { timestamps, messages, proposals, syncs, catalog_reads }
    }

    fn zip(self, other: Counts, with: fn(u64, u64) -> u64) -> Counts {
        Counts {
            timestamps: with(self.timestamps, other.timestamps),
            messages: with(self.messages, other.messages),
            proposals: with(self.proposals, other.proposals),
            syncs: with(self.syncs, other.syncs),
            catalog_reads: with(self.catalog_reads, other.catalog_reads),
        }
    }

    /// Whether no count is above that of `most`.
    fn is_within(self, most: Counts) -> bool {
        self == self.zip(most, u64::min)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Select,
    Insert,
    /// An INSERT of [`ROWS`] rows.
    InsertRows,
    /// An INSERT with its values in the text, by the simple protocol.
    SimpleInsert,
    Update,
    Delete,
    /// A SELECT of [`ROWS`] rows by a range of their keys.
    SelectRange,
    /// An explicit transaction that reads a row and updates it.
    ReadWrite,
    /// An explicit transaction of [`READS`] SELECTs, each of which has a snapshot of its own.
    ReadCommitted,
    /// The same with one snapshot.
    RepeatableRead,
}

impl Kind {
    /// Timestamps that it cannot do without.
    fn timestamps_min(self) -> u64 {
        if self == Kind::ReadCommitted { READS } else { 1 }
    }
}

/// What one statement, or transaction, of a kind may cost at most.
struct Cost {
    kind: Kind,
    /// Timestamps that the gateway takes from the oracle.
    by_gateway: u64,
    /// Timestamps that the leader of the row's region takes, unless the oracle is at the gateway.
    by_store: u64,
    /// Requests to the leader of the row's region.
    requests: u64,
    /// Raft rounds. Each is one sync on each of the three stores.
    rounds: u64,
}

/// INSERT and SELECT first: the others change, delete and read their rows.
const COSTS: [Cost; 10] = [
    Cost { kind: Kind::Select, by_gateway: 0, by_store: 1, requests: 1, rounds: 0 },
    Cost { kind: Kind::Insert, by_gateway: 0, by_store: 1, requests: 1, rounds: 1 },
    Cost { kind: Kind::InsertRows, by_gateway: 0, by_store: 1, requests: 1, rounds: 1 },
    Cost { kind: Kind::SimpleInsert, by_gateway: 0, by_store: 1, requests: 1, rounds: 1 },
    Cost { kind: Kind::SelectRange, by_gateway: 0, by_store: 1, requests: 1, rounds: 0 },
    Cost { kind: Kind::Update, by_gateway: 0, by_store: 1, requests: 2, rounds: 1 },
    Cost { kind: Kind::Delete, by_gateway: 0, by_store: 1, requests: 2, rounds: 1 },
    // A snapshot for each statement, and a timestamp for the commit.
    Cost { kind: Kind::ReadWrite, by_gateway: 2, by_store: 1, requests: 3, rounds: 1 },
    // One for each statement, and one for all: the store of the first read takes that.
    Cost { kind: Kind::ReadCommitted, by_gateway: READS, by_store: 0, requests: READS, rounds: 0 },
    Cost { kind: Kind::RepeatableRead, by_gateway: 0, by_store: 1, requests: READS, rounds: 0 },
];

/// The kinds that are counted at the gateways that lead.
const BESIDE: [Kind; 4] = [Kind::Select, Kind::Insert, Kind::ReadWrite, Kind::ReadCommitted];

impl Cost {
    /// The most and the least that a round may cost, by the nodes of the gateway, the oracle and the region's leader.
    fn bounds(&self, gateway: usize, oracle: usize, leader: usize) -> (Counts, Counts) {
        let n = STATEMENTS as u64;
        let (oracle_is_remote, region_is_remote) = (gateway != oracle, gateway != leader);
        let store_asks = oracle_is_remote && leader != oracle;
        let requests = self.by_gateway * u64::from(oracle_is_remote)
            + self.by_store * u64::from(store_asks)
            + self.requests * u64::from(region_is_remote);
        let most = Counts {
            timestamps: n * (self.by_gateway + self.by_store),
            messages: n * 2 * requests,
            proposals: n * self.rounds,
            syncs: n * self.rounds * 3,
            catalog_reads: 0,
        };
        let least = Counts {
            timestamps: n * self.kind.timestamps_min(),
            messages: n * 2 * u64::from(region_is_remote),
            proposals: n * self.rounds,
            // The last store may still be about to sync.
            syncs: n * self.rounds * 2,
            catalog_reads: 0,
        };
        (most, least)
    }
}

/// A session with its prepared statements.
struct Session {
    client: Client,
    select: Statement,
    select_range: Statement,
    insert: Statement,
    insert_rows: Statement,
    update: Statement,
    delete: Statement,
    /// The rows of this session: the first that is not deleted yet, and the one after the last.
    rows: Range<i64>,
}

impl Session {
    async fn open(cluster: &Cluster, node: usize) -> Session {
        let client = cluster.connect(node).await;
        let prepare = async |sql| client.prepare(sql).await.unwrap();
        let select = prepare("SELECT v FROM counted WHERE id = $1").await;
        let select_range = prepare("SELECT v FROM counted WHERE id >= $1 AND id < $2").await;
        let insert = prepare("INSERT INTO counted VALUES ($1, 1)").await;
        let insert_rows = prepare("INSERT INTO counted VALUES ($1, 1), ($2, 1), ($3, 1)").await;
        let update = prepare("UPDATE counted SET v = v + 1 WHERE id = $1").await;
        let delete = prepare("DELETE FROM counted WHERE id = $1").await;
        let first = 10_000 * (node as i64 + 1);
        let rows = first..first;
        let mut session = Session { client, select, select_range, insert, insert_rows, update, delete, rows };
        // Caches of regions and plans are filled, and each row that is read is there.
        session.run(Kind::InsertRows).await;
        for cost in &COSTS {
            session.run(cost.kind).await;
        }
        session
    }

    /// Runs one statement or transaction.
    async fn run(&mut self, kind: Kind) {
        let (client, last, rows) = (&self.client, self.rows.end - 1, &mut self.rows);
        let one = |changed: Result<u64, Error>| assert_eq!(changed.unwrap(), 1, "{kind:?}");
        match kind {
            Kind::Select => drop(client.query_one(&self.select, &[&last]).await.unwrap()),
            Kind::SelectRange => {
                let found = client.query(&self.select_range, &[&(rows.end - ROWS), &rows.end]).await.unwrap();
                assert_eq!(found.len() as i64, ROWS);
            }
            Kind::Insert => {
                one(client.execute(&self.insert, &[&rows.end]).await);
                rows.end += 1;
            }
            Kind::InsertRows => {
                let ids = [rows.end, rows.end + 1, rows.end + 2];
                let inserted = client.execute(&self.insert_rows, &[&ids[0], &ids[1], &ids[2]]).await.unwrap();
                assert_eq!(inserted as i64, ROWS);
                rows.end += ROWS;
            }
            Kind::SimpleInsert => {
                client.batch_execute(&format!("INSERT INTO counted VALUES ({}, 1)", rows.end)).await.unwrap();
                rows.end += 1;
            }
            Kind::Update => one(client.execute(&self.update, &[&last]).await),
            Kind::Delete => {
                one(client.execute(&self.delete, &[&rows.start]).await);
                rows.start += 1;
            }
            Kind::ReadWrite => {
                client.batch_execute("BEGIN").await.unwrap();
                client.query_one(&self.select, &[&last]).await.unwrap();
                one(client.execute(&self.update, &[&last]).await);
                client.batch_execute("COMMIT").await.unwrap();
            }
            Kind::ReadCommitted | Kind::RepeatableRead => {
                let level = if kind == Kind::ReadCommitted { "READ COMMITTED" } else { "REPEATABLE READ" };
                client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}")).await.unwrap();
                for _ in 0..READS {
                    client.query_one(&self.select, &[&last]).await.unwrap();
                }
                client.batch_execute("COMMIT").await.unwrap();
            }
        }
    }

    /// Counts a round, and how long it takes.
    async fn round(&mut self, cluster: &Cluster, kind: Kind) -> (Counts, Duration) {
        let (before, start) = (Counts::now(cluster), Instant::now());
        for _ in 0..STATEMENTS {
            self.run(kind).await;
        }
        let took = start.elapsed();
        (Counts::now(cluster).zip(before, |after, before| after - before), took)
    }

    /// Counts rounds of a kind. Returns them, and whether enough of them are within `most`.
    async fn rounds(&mut self, cluster: &Cluster, kind: Kind, most: Counts) -> (Vec<Counts>, bool) {
        let is_within = |round: &&Counts| round.is_within(most);
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push(self.round(cluster, kind).await.0);
        }
        if 2 * rounds.iter().filter(is_within).count() >= ROUNDS {
            return (rounds, true);
        }
        let mut more = MoreRounds::default();
        loop {
            let (round, took) = self.round(cluster, kind).await;
            rounds.push(round);
            let (before, start) = (Counts::now(cluster), Instant::now());
            tokio::time::sleep(took).await;
            let idle = start.elapsed();
            more.add((round, took), (Counts::now(cluster).zip(before, |after, before| after - before), idle));
            let is_proved = more.count >= MORE_ROUNDS && more.are_within(most);
            if is_proved || more.count == MORE_ROUNDS_MAX {
                println!("{kind:?}, is proved: {is_proved}: {more:?}");
                return (rounds, is_proved);
            }
            tokio::time::sleep(took.mul_f64(PAUSES[more.count % PAUSES.len()])).await;
        }
    }
}

/// Rounds with statements, and as many intervals without.
#[derive(Debug, Default)]
struct MoreRounds {
    count: usize,
    rounds: Counts,
    took: Duration,
    idle: Counts,
    idle_took: Duration,
}

impl MoreRounds {
    fn add(&mut self, mut round: (Counts, Duration), mut idle: (Counts, Duration)) {
        for counts in [&mut round.0, &mut idle.0] {
            counts.timestamps = counts.timestamps.checked_sub(AHEAD).unwrap_or(counts.timestamps);
        }
        self.count += 1;
        self.rounds = self.rounds.zip(round.0, |sum, more| sum + more);
        self.took += round.1;
        self.idle = self.idle.zip(idle.0, |sum, more| sum + more);
        self.idle_took += idle.1;
    }

    /// Whether the rounds together, without their background, are within `most` each.
    fn are_within(&self, most: Counts) -> bool {
        let doubt = DOUBT * STATEMENTS as f64 * self.count as f64;
        let length = self.took.as_secs_f64() / self.idle_took.as_secs_f64();
        let is_within = |of: fn(&Counts) -> u64, unit: f64| {
            let counted = of(&self.rounds) as f64 - of(&self.idle) as f64 * length;
            counted <= self.count as f64 * of(&most) as f64 + doubt * unit
        };
        // A request has an answer, and a Raft round a sync on each of three stores.
        is_within(|counts| counts.timestamps, 1.0)
            && is_within(|counts| counts.messages, 2.0)
            && is_within(|counts| counts.proposals, 1.0)
            && is_within(|counts| counts.syncs, 3.0)
            && is_within(|counts| counts.catalog_reads, 1.0)
    }
}

#[test]
fn an_extra_message_of_every_fifth_statement_is_beyond_the_background() {
    let most = Counts { timestamps: 10, messages: 20, proposals: 0, syncs: 0, catalog_reads: 0 };
    let second = Duration::from_secs(1);
    for (messages, is_within) in [(160, true), (162, true), (163, false), (164, false)] {
        let mut more = MoreRounds::default();
        let background = Counts { messages: 70, ..Counts::default() };
        for _ in 0..MORE_ROUNDS {
            // The idle interval is half as long.
            more.add((Counts { messages, ..most }, 2 * second), (background, second));
        }
        assert_eq!(more.are_within(most), is_within, "{messages}");
    }
}

/// The node that leads each region, and what all nodes have begun to lead so far.
fn leaders(cluster: &Cluster) -> (usize, usize, Begun) {
    let nodes: Vec<usize> = (0..cluster.nodes.len()).collect();
    (cluster.leader_of(1), cluster.leader_of(2), cluster.begun(&nodes))
}

/// The gateways that differ, each with the kinds that are counted there. All kinds are counted where all that they ask
/// is on other nodes. At the leader and at the oracle, one of each shape shows that what is beside them costs nothing.
fn plan(nodes: usize, oracle: usize, leader: usize) -> Vec<(usize, Vec<&'static Cost>)> {
    let far =
        (0..nodes).find(|node| *node != oracle && *node != leader).expect("three nodes, at most two of which lead");
    let mut plan = vec![(far, COSTS.iter().collect())];
    let one_of_each: Vec<&Cost> = COSTS.iter().filter(|cost| BESIDE.contains(&cost.kind)).collect();
    plan.push((leader, one_of_each.clone()));
    if oracle != leader {
        plan.push((oracle, one_of_each));
    }
    plan
}

/// Counts rounds of each kind through each gateway. Returns what is wrong.
async fn findings(cluster: &Cluster, oracle: usize, leader: usize) -> Vec<String> {
    let mut findings = Vec::new();
    for (gateway, costs) in plan(cluster.nodes.len(), oracle, leader) {
        let mut session = Session::open(cluster, gateway).await;
        for cost in costs {
            let (most, least) = cost.bounds(gateway, oracle, leader);
            let (rounds, is_proved) = session.rounds(cluster, cost.kind, most).await;
            let within = rounds.iter().filter(|round| round.is_within(most)).count();
            let (kind, all) = (cost.kind, rounds.len());
            println!("{kind:?} at {gateway}, leader {leader}, oracle {oracle}: {within} of {all} rounds are within");
            if !is_proved || !rounds.iter().all(|round| least.is_within(*round)) {
                let rounds: Vec<String> = rounds.iter().map(|round| format!("{round:?}")).collect();
                findings.push(format!(
                    "{STATEMENTS} of {kind:?} through gateway {gateway} (leader {leader}, oracle {oracle}): \
                     {within} of {all} rounds are from {least:?} to {most:?}:\n{}",
                    rounds.join("\n")
                ));
            }
        }
    }
    findings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_cost_what_they_must() {
    let lock = ClusterLock::acquire_for(LIMIT);
    let cluster = Cluster::start(&lock, 3).await;
    let client = cluster.connect(0).await;
    client.batch_execute("CREATE TABLE counted (id bigint PRIMARY KEY, v bigint NOT NULL)").await.unwrap();
    loop {
        let before = leaders(&cluster);
        let findings = findings(&cluster, before.0, before.1).await;
        // A leader that moved meanwhile proves nothing. The lock's watchdog bounds the attempts.
        if leaders(&cluster) == before {
            assert!(findings.is_empty(), "{}", findings.join("\n"));
            return;
        }
        client.batch_execute("TRUNCATE counted").await.unwrap();
    }
}
