//! The bank: transfers between accounts keep the total in every snapshot, whatever happens to the nodes.
//!
//! 50 accounts and 6 clients over all gateways. The leader of the data region is killed and restarted; the next leader
//! is stopped in order, and hands its leaderships over; then leadership is passed from node to node; a follower is cut
//! off from the others, and then the leader; the next one is paused until others lead, and continues; then all nodes
//! are paused at once. The gateways that can must make progress in each phase. An auditor at each gateway sums the
//! balances in one statement, and in a transaction of many statements. Each sum must be the total.
//!
//! Auditors and readers take each choice of replicas and proofs in turn ([`Reads`]), and so do the clients of the
//! [`lists`](crate::lists), whose history is checked for snapshot isolation.
//!
//! [`versions`](crate::versions) are written and read meanwhile: by each protocol of commit, and with reads that must
//! see all that was acknowledged before they began. Reads wait at the paused leader, so they are its first work when it
//! continues: it still believes that it leads, and must not answer from its own state.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error, IsolationLevel};

use crate::clients::{connect, is_transient};
use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::lists::{self, Lists, Reads};
use crate::process::{POLL_INTERVAL, WAIT_TIMEOUT, wait_for};
use crate::versions::{self, Completed, Kind, Role, Versions};

const ACCOUNTS: i64 = 50;
const BALANCE: i64 = 1000;
const CLIENTS: u64 = 6;
const TOTAL: i64 = ACCOUNTS * BALANCE;

/// What completes through each gateway in each phase, and the least duration of a phase.
const TRANSFERS: u64 = 10 * CLIENTS;
const AUDITS: u64 = 10;
const WRITES: u64 = 10;
const READS: u64 = 30;
const PHASE_MIN: Duration = Duration::from_secs(1);
/// How often the leadership of each region is passed on, and the time between.
const PASSES: usize = 4;
const PASS_PAUSE: Duration = Duration::from_millis(100);
/// How long all nodes stand still: longer than a leader's lease and an election.
const ALL_PAUSED: Duration = Duration::from_secs(2);
/// Reads of each table that wait at a paused node.
const WAITING_READS: i64 = 6;

/// Counters of one gateway.
#[derive(Default)]
struct Counts {
    transfers: AtomicU64,
    audits: AtomicU64,
    retries: AtomicU64,
    versions: Arc<Completed>,
    /// Transactions that read lists, by how.
    lists: Arc<[AtomicU64; Reads::COUNT as usize]>,
}

/// A gateway, and its counters when the last phase ended.
struct Gateway {
    node: usize,
    port: u16,
    counts: Arc<Counts>,
    /// Transfers, audits, writes and reads of versions.
    last: [u64; 4],
}

impl Gateway {
    fn done(&self) -> [u64; 4] {
        let Counts { transfers, audits, versions, .. } = &*self.counts;
        [transfers, audits, &versions.writes, &versions.reads].map(|count| count.load(Ordering::SeqCst))
    }

    /// What has completed since the last phase ended.
    fn since_last(&self) -> [u64; 4] {
        let (mut done, mut last) = (self.done(), self.last.into_iter());
        done.iter_mut().for_each(|count| *count -= last.next().unwrap());
        done
    }

    /// Whether enough has completed since the last phase ended. More than was in flight then.
    fn has_progressed(&self) -> bool {
        self.since_last().iter().zip([TRANSFERS, AUDITS, WRITES, READS]).all(|(done, least)| *done >= least)
    }

    /// Ends a phase.
    fn report(&mut self, when: &str) {
        let [transfers, audits, writes, reads] = self.since_last();
        let retries = self.counts.retries.load(Ordering::SeqCst);
        println!(
            "node {} {when}: {transfers} transfers, {audits} audits, {writes} writes, {reads} reads, \
             {retries} retries so far",
            self.node + 1
        );
        self.last = self.done();
    }
}

/// The clients of all gateways.
struct Load {
    gateways: Vec<Gateway>,
    tables: [Arc<Versions>; 3],
    lists: Arc<Lists>,
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    async fn start(cluster: &Cluster, seed: u64) -> Load {
        let client = cluster.connect(0).await;
        open_accounts(&client).await;
        let create = async |kind| Arc::new(Versions::create(&client, kind).await);
        let tables = [create(Kind::One).await, create(Kind::Few).await, create(Kind::Wide).await];
        let lists = Arc::new(Lists::create(&client).await);
        let stop = Arc::new(AtomicBool::new(false));
        let gateway = |node| Gateway { node, port: cluster.nodes[node].pg, counts: Arc::default(), last: [0; 4] };
        let gateways: Vec<Gateway> = (0..3).map(gateway).collect();
        let mut tasks = Vec::new();
        for n in 0..CLIENTS {
            let (gateway, seed) = (&gateways[n as usize % 3], seed.wrapping_add(n));
            tasks.push(tokio::spawn(transfers(gateway.port, seed, stop.clone(), gateway.counts.clone())));
        }
        for gateway in &gateways {
            tasks.push(tokio::spawn(audits(gateway.port, stop.clone(), gateway.counts.clone())));
            let done = gateway.counts.lists.clone();
            let first = seed.wrapping_add(7 * gateway.node as u64);
            tasks.push(tokio::spawn(lists::run(lists.clone(), gateway.port, first, stop.clone(), done)));
            let [one, few, wide] = tables.clone();
            let seed = seed.wrapping_add(gateway.node as u64);
            // A schema change waits for nodes that do not answer, and must not hold up the other writers.
            for (tables, role) in
                [(vec![one, wide], Role::Writer), (vec![few], Role::Writer), (tables.to_vec(), Role::Reader)]
            {
                let completed = gateway.counts.versions.clone();
                tasks.push(tokio::spawn(versions::run(tables, role, gateway.port, seed, stop.clone(), completed)));
            }
        }
        Load { gateways, tables, lists, stop, tasks }
    }

    /// Waits until the gateways on the nodes that run have made progress; no client may fail.
    async fn phase(&mut self, when: &str, running: &[usize]) {
        self.gateways.iter_mut().for_each(|gateway| gateway.last = gateway.done());
        let (start, few) = (Instant::now(), self.tables[1].writes());
        let mut gateways: Vec<&mut Gateway> = self.gateways.iter_mut().filter(|g| running.contains(&g.node)).collect();
        // A schema change waits until the leases of nodes that do not answer are over.
        let all_run = gateways.len() == 3;
        while start.elapsed() < PHASE_MIN
            || !gateways.iter().all(|gateway| gateway.has_progressed())
            || (all_run && self.tables[1].writes() == few)
        {
            assert!(self.tasks.iter().all(|task| !task.is_finished()), "a client failed");
            assert!(start.elapsed() < WAIT_TIMEOUT, "no progress through nodes {running:?} {when}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        println!("{when}: {:?}", start.elapsed());
        gateways.iter_mut().for_each(|gateway| gateway.report(when));
    }

    /// Pauses the leader of the data region until others lead, and lets it continue with reads that wait for it.
    async fn pause_the_leader(&mut self, cluster: &Cluster) {
        let paused = cluster.leader_of(2);
        let others = [(paused + 1) % 3, (paused + 2) % 3];
        let mut sessions = Vec::new();
        for n in 0..3 * WAITING_READS {
            let (client, versions) = (cluster.connect(paused).await, self.tables[n as usize % 3].clone());
            let select = client.prepare(&versions.select_row()).await.unwrap();
            sessions.push((client, select, versions));
        }
        println!("node {} leads {} regions and is paused", paused + 1, cluster.leads(paused));
        cluster.pause(&[paused]);
        cluster.wait_until_they_lead(&others);
        let seen = self.tables.clone().map(|versions| versions.acknowledged());
        wait_for("writes that the paused node has not seen", || {
            [0, 2].into_iter().all(|at| self.tables[at].acknowledged() > seen[at])
        });
        let wait = |(client, select, versions): (Client, _, Arc<Versions>)| async move {
            let least = versions.acknowledged();
            (client.query_one(&select, &[&0_i64]).await.map(|row| row.get::<_, i64>(0)), least, versions)
        };
        let reads: Vec<_> = sessions.into_iter().map(|session| tokio::spawn(wait(session))).collect();
        self.phase("while the leader stands still", &others).await;
        assert!(reads.iter().all(|read| !read.is_finished()), "the node does not stand still");
        cluster.resume(&[paused]);
        let mut answered = 0;
        for read in reads {
            match read.await.unwrap() {
                (Ok(found), least, versions) => {
                    versions.check(found, least);
                    answered += 1;
                }
                (Err(error), ..) => assert!(is_transient(&error), "a read that waited: {error:?}"),
            }
        }
        println!("{answered} of {} waiting reads were answered", 3 * WAITING_READS);
        self.phase("after the leader has continued", &[0, 1, 2]).await;
    }

    /// Pauses all nodes at once, and lets them continue.
    async fn pause_all(&mut self, cluster: &Cluster) {
        cluster.pause(&[0, 1, 2]);
        tokio::time::sleep(ALL_PAUSED).await;
        cluster.resume(&[0, 1, 2]);
        self.phase("after all have continued", &[0, 1, 2]).await;
    }

    /// Stops the clients, and checks what is there through each node.
    async fn finish(self, cluster: &Cluster) {
        self.stop.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.unwrap();
        }
        for node in 0..3 {
            let client = cluster.connect(node).await;
            let total: i64 = client.query_one("SELECT sum(balance)::bigint FROM accounts", &[]).await.unwrap().get(0);
            assert_eq!(total, TOTAL, "at the end, on node {}", node + 1);
            for versions in &self.tables {
                versions.check_end(&client).await;
            }
        }
        cluster.check_tables(0);
        self.lists.check(&cluster.connect(0).await).await;
        let read = |n: usize| self.gateways.iter().map(|gateway| gateway.counts.lists[n].load(Ordering::SeqCst)).sum();
        let read: Vec<u64> = (0..Reads::COUNT as usize).map(read).collect();
        println!("transactions that read lists, by how: {read:?}");
        assert!(read.iter().all(|count| *count > 0), "each choice of replicas and proofs was used: {read:?}");
    }

    /// Stops the leader of the data region in order. It hands its leaderships over. Restarts it.
    async fn stop_the_leader(&mut self, cluster: &mut Cluster) {
        let stopped = cluster.leader_of(2);
        let others = [(stopped + 1) % 3, (stopped + 2) % 3];
        assert_eq!(cluster.terminate(stopped), Some(0));
        self.phase("after a handover", &others).await;
        cluster.spawn(stopped);
        cluster.wait_until_serving(stopped).await;
    }

    /// Passes the leadership of each region on, again and again, while the clients go on.
    async fn pass_leadership_on(&mut self, cluster: &Cluster) {
        let handovers = cluster.begun(&[0, 1, 2]).by_handover;
        let passes = async {
            cluster.pass_leadership_on(2, PASSES, PASS_PAUSE).await;
            cluster.pass_leadership_on(1, PASSES, PASS_PAUSE).await;
        };
        tokio::join!(passes, self.phase("while leadership is passed on", &[0, 1, 2]));
        let handovers = cluster.begun(&[0, 1, 2]).by_handover - handovers;
        assert!(handovers >= 2 * PASSES, "{handovers} handovers");
    }

    /// Cuts a node that leads nothing off from the others, with its clients, and then the leader of the data region.
    /// Lets each come back.
    async fn cut_off_one(&mut self, cluster: &Cluster) {
        let leader = cluster.leader_of(2);
        cluster.make_leader(1, leader).await;
        for (alone, when) in
            [((leader + 1) % 3, "while a follower is cut off"), (leader, "while the leader is cut off")]
        {
            let others = [(alone + 1) % 3, (alone + 2) % 3];
            cluster.cut_off(&[alone]);
            cluster.wait_until_they_lead(&others);
            self.phase(when, &others).await;
            cluster.cut_off(&[]);
        }
    }
}

/// Commits by protocol, and locks that were passed or resolved, of all nodes.
fn protocols(cluster: &Cluster) -> [f64; 4] {
    let commits =
        |protocol| cluster.sum_metric(&format!("cortado_txn_commit_protocols_total{{protocol=\"{protocol}\"}}"));
    let locks = ["cortado_txn_locks_passed_total", "cortado_txn_locks_resolved_total"];
    let met = locks.into_iter().map(|name| cluster.sum_metric(name)).sum();
    [commits("one_phase"), commits("async"), commits("two_phase"), met]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_total_never_changes() {
    let seed: u64 = std::env::var("CORTADO_TEST_SEED").ok().map_or_else(rand::random, |s| s.parse().unwrap());
    println!("seed {seed} (repeat the clients' choices with CORTADO_TEST_SEED={seed})");
    let lock = ClusterLock::acquire();
    let mut cluster = Cluster::start_apart(&lock, 3, Duration::ZERO).await;
    let mut load = Load::start(&cluster, seed).await;

    load.phase("before the kill", &[0, 1, 2]).await;
    let victim = cluster.leader_of(2);
    assert!(cluster.leads(victim) > 0, "the victim leads");
    cluster.kill(victim);
    load.phase("between the kill and the restart", &[(victim + 1) % 3, (victim + 2) % 3]).await;
    cluster.spawn(victim);
    cluster.wait_until_serving(victim).await;
    load.stop_the_leader(&mut cluster).await;

    // From here on no node loses its counters.
    let (before, [_, few, wide]) = (protocols(&cluster), load.tables.clone());
    let written = (few.writes(), wide.writes());
    load.pass_leadership_on(&cluster).await;
    load.cut_off_one(&cluster).await;
    load.pause_the_leader(&cluster).await;
    load.pause_all(&cluster).await;
    let (few, wide) = ((few.writes() - written.0) as f64, (wide.writes() - written.1) as f64);
    let [one_phase, asynchronous, two_phase, locks] = {
        let mut before = before.into_iter();
        protocols(&cluster).map(|now| now - before.next().unwrap())
    };
    println!(
        "{few} few and {wide} wide writes; commits: {one_phase} one-phase, {asynchronous} async, {two_phase} \
         two-phase; {locks} locks passed or resolved"
    );
    assert!(one_phase > 0.0 && asynchronous > 0.0 && locks > 0.0 && few > 0.0 && wide > 0.0);
    // The writers of each table, one for each gateway, may have had a commit that was counted and not answered yet.
    let (few, wide) = (few - 3.0, wide - 3.0);
    // A commit of few keys may fall back to two phases; one of many has no other way.
    assert!(two_phase >= wide && asynchronous + two_phase >= few + wide);
    load.finish(&cluster).await;
}

async fn open_accounts(client: &Client) {
    client.batch_execute("CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL)").await.unwrap();
    client
        .batch_execute("CREATE INDEX ON accounts (balance); CREATE INDEX ON accounts (id) WHERE balance > 100")
        .await
        .unwrap();
    for id in 1..=ACCOUNTS {
        client.execute("INSERT INTO accounts VALUES ($1, $2)", &[&id, &BALANCE]).await.unwrap();
    }
}

async fn transfers(port: u16, seed: u64, stop: Arc<AtomicBool>, counts: Arc<Counts>) {
    let mut rng = StdRng::seed_from_u64(seed);
    while !stop.load(Ordering::SeqCst) {
        let Some(mut client) = connect(&[port]).await else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        while !stop.load(Ordering::SeqCst) && !client.is_closed() {
            let from = rng.random_range(1..=ACCOUNTS);
            let to = (from + rng.random_range(1..ACCOUNTS) - 1) % ACCOUNTS + 1;
            let amount = rng.random_range(1..=10);
            match transfer(&mut client, from, to, amount).await {
                Ok(()) => counts.transfers.fetch_add(1, Ordering::SeqCst),
                Err(error) if is_transient(&error) => counts.retries.fetch_add(1, Ordering::SeqCst),
                Err(error) => panic!("a transfer through port {port}: {error:?}"),
            };
        }
    }
}

async fn transfer(client: &mut Client, from: i64, to: i64, amount: i64) -> Result<(), Error> {
    let txn = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await?;
    let balance: i64 = txn.query_one("SELECT balance FROM accounts WHERE id = $1", &[&from]).await?.get(0);
    if balance < amount {
        return txn.rollback().await;
    }
    txn.execute("UPDATE accounts SET balance = $2 WHERE id = $1", &[&from, &(balance - amount)]).await?;
    txn.execute("UPDATE accounts SET balance = balance + $2 WHERE id = $1", &[&to, &amount]).await?;
    txn.commit().await
}

async fn audits(port: u16, stop: Arc<AtomicBool>, counts: Arc<Counts>) {
    let mut turn = u64::from(port);
    while !stop.load(Ordering::SeqCst) {
        let Some(mut client) = connect(&[port]).await else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        while !stop.load(Ordering::SeqCst) && !client.is_closed() {
            turn += 1;
            match audit(&mut client, Reads::nth(turn)).await {
                Ok(totals) => {
                    assert_eq!(totals, [TOTAL, TOTAL, TOTAL], "money appeared or vanished");
                    counts.audits.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) if is_transient(&error) => drop(counts.retries.fetch_add(1, Ordering::SeqCst)),
                Err(error) => panic!("an audit through port {port}: {error:?}"),
            }
        }
    }
}

/// Sums the balances three times in one snapshot: in one statement, row by row, in one statement again.
async fn audit(client: &mut Client, reads: Reads) -> Result<[i64; 3], Error> {
    const SUM: &str = "SELECT sum(balance)::bigint FROM accounts";
    reads.set(client).await?;
    let txn =
        client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true).start().await?;
    let first = txn.query_one(SUM, &[]).await?.get(0);
    let mut piecewise = 0;
    for id in 1..=ACCOUNTS {
        piecewise += txn.query_one("SELECT balance FROM accounts WHERE id = $1", &[&id]).await?.get::<_, i64>(0);
    }
    let last = txn.query_one(SUM, &[]).await?.get(0);
    txn.commit().await?;
    Ok([first, piecewise, last])
}
