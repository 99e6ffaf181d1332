//! What a statement costs, in counts: timestamps, messages between nodes, Raft rounds, syncs of the log, reads of the
//! catalog, for each kind of statement, through the gateway that leads and through another one.
//!
//! Nodes also work in the background: they renew leases, raise the oracle's window, place regions. So a kind is counted
//! in rounds of a few statements, until one has met nothing of that: its cost is that of its statements alone. It must
//! not be above the table. And it must not be below the work that no statement of the kind can leave out, which shows
//! that the counters count.

use tokio_postgres::{Client, Statement};

use crate::exclusive::ClusterLock;
use crate::harness::{Begun, Cluster};
use crate::process::metrics;

/// Statements, or transactions, of a round.
const STATEMENTS: i64 = 10;
/// The most rounds of a kind. Most meet nothing else.
const ROUNDS: usize = 60;

/// The counters of [`Counts`], in its order. `docs/metrics.md` lists them.
const COUNTERS: [&str; 5] = [
    "tso_timestamps_total",
    "cortado_link_sent_messages_total",
    "raftstore_proposals_total",
    "cortado_log_sync_seconds_count",
    "sql_catalog_reads_total",
];

/// What all nodes together did, or may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

#[derive(Clone, Copy, Debug)]
enum Kind {
    Select,
    Insert,
    Update,
    /// An explicit transaction that reads a row and updates it.
    ReadWrite,
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

const COSTS: [Cost; 4] = [
    Cost { kind: Kind::Select, by_gateway: 0, by_store: 1, requests: 1, rounds: 0 },
    Cost { kind: Kind::Insert, by_gateway: 0, by_store: 1, requests: 1, rounds: 1 },
    Cost { kind: Kind::Update, by_gateway: 0, by_store: 1, requests: 2, rounds: 1 },
    Cost { kind: Kind::ReadWrite, by_gateway: 1, by_store: 1, requests: 3, rounds: 1 },
];

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
            timestamps: n,
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
    insert: Statement,
    update: Statement,
    next: i64,
}

impl Session {
    async fn open(cluster: &Cluster, node: usize) -> Session {
        let client = cluster.connect(node).await;
        let prepare = async |sql| client.prepare(sql).await.unwrap();
        let select = prepare("SELECT v FROM counted WHERE id = $1").await;
        let insert = prepare("INSERT INTO counted VALUES ($1, 1)").await;
        let update = prepare("UPDATE counted SET v = v + 1 WHERE id = $1").await;
        let mut session = Session { client, select, insert, update, next: 1_000 * (node as i64 + 1) };
        // Caches of regions and plans are filled, and each row that is read is there.
        for kind in [Kind::Insert, Kind::Select, Kind::Update, Kind::ReadWrite] {
            session.run(kind).await;
        }
        session
    }

    /// Runs one statement or transaction.
    async fn run(&mut self, kind: Kind) {
        let (client, id) = (&self.client, self.next);
        match kind {
            Kind::Select => drop(client.query_one(&self.select, &[&(id - 1)]).await.unwrap()),
            Kind::Insert => {
                assert_eq!(client.execute(&self.insert, &[&id]).await.unwrap(), 1);
                self.next += 1;
            }
            Kind::Update => assert_eq!(client.execute(&self.update, &[&(id - 1)]).await.unwrap(), 1),
            Kind::ReadWrite => {
                client.batch_execute("BEGIN").await.unwrap();
                client.query_one(&self.select, &[&(id - 1)]).await.unwrap();
                assert_eq!(client.execute(&self.update, &[&(id - 1)]).await.unwrap(), 1);
                client.batch_execute("COMMIT").await.unwrap();
            }
        }
    }
}

/// The node that leads each region, and what all nodes have begun to lead so far.
fn leaders(cluster: &Cluster) -> (usize, usize, Begun) {
    let nodes: Vec<usize> = (0..cluster.nodes.len()).collect();
    (cluster.leader_of(1), cluster.leader_of(2), cluster.begun(&nodes))
}

/// Counts rounds of each kind through each gateway. Returns what is wrong.
async fn findings(cluster: &Cluster, oracle: usize, leader: usize) -> Vec<String> {
    let mut findings = Vec::new();
    for gateway in 0..cluster.nodes.len() {
        let mut session = Session::open(cluster, gateway).await;
        for cost in &COSTS {
            let (most, least) = cost.bounds(gateway, oracle, leader);
            let mut cheapest: Option<Counts> = None;
            for _ in 0..ROUNDS {
                let before = Counts::now(cluster);
                for _ in 0..STATEMENTS {
                    session.run(cost.kind).await;
                }
                let round = Counts::now(cluster).zip(before, |after, before| after - before);
                cheapest = Some(cheapest.map_or(round, |cheapest| cheapest.zip(round, u64::min)));
                if round.is_within(most) {
                    break;
                }
            }
            let Some(cheapest) = cheapest else { continue };
            println!("{STATEMENTS} {:?} at {gateway}, leader {leader}, oracle {oracle}: {cheapest:?}", cost.kind);
            if !cheapest.is_within(most) || !least.is_within(cheapest) {
                let kind = cost.kind;
                findings.push(format!(
                    "{STATEMENTS} of {kind:?} through gateway {gateway} (leader {leader}, oracle {oracle}): \
                     {cheapest:?}, not from {least:?} to {most:?}"
                ));
            }
        }
    }
    findings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_cost_what_they_must() {
    let lock = ClusterLock::acquire();
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
