//! Lists that transactions read and append to, and a history of it, checked for snapshot isolation by two checkers.
//!
//! A list is a row: its elements as text. Each client runs transactions, all through one gateway: a writer reads some
//! lists and appends to others; a reader reads some. Readers take each choice of replicas and proofs in turn
//! ([`Reads`]), so the checker compares what replicas answer with what leaders do.
//!
//! A fresh snapshot contains all that was acknowledged before it was taken. A session snapshot need not, so in the
//! history its transaction began with the session's last one, whose snapshot it contains. That a session sees what it
//! has written and seen is checked apart.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use simulator::checkers::independent::{self, Model};
use simulator::checkers::snapshot_isolation::{self, Op, Outcome, Txn};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use crate::clients::{connect, is_transient};
use crate::process::POLL_INTERVAL;

/// Lists that are in use at a time, and appends after which the next ones are used.
const OPEN: u64 = 6;
const APPENDS_EACH: u64 = 120;

/// How a client reads.
#[derive(Clone, Copy, Debug)]
pub struct Reads {
    pub replica: &'static str,
    pub grants: bool,
    pub session_snapshot: bool,
    pub hedge: bool,
}

impl Reads {
    /// All combinations, in turn.
    pub fn nth(n: u64) -> Reads {
        let replicas = ["closest", "follower", "any", "leader", "learner"];
        let replica = replicas[n as usize % replicas.len()];
        let rest = n / replicas.len() as u64;
        let (grants, session_snapshot) = (rest.is_multiple_of(2), (rest / 2) % 2 == 1);
        Reads { replica, grants, session_snapshot, hedge: n.is_multiple_of(2) }
    }

    /// The number of combinations.
    pub const COUNT: u64 = 20;

    /// Sets them in a session. `session_snapshot`: whether these may be taken.
    pub async fn set(&self, client: &Client) -> Result<(), Error> {
        let on = |on: bool| if on { "on" } else { "off" };
        let Reads { replica, grants, session_snapshot, hedge } = *self;
        let hedge = if hedge { "auto" } else { "off" };
        let set = format!(
            "SET cortado.replica_read = {replica}; SET cortado.grants = {}; SET cortado.session_snapshot = {}; \
             SET cortado.hedge = {hedge}",
            on(grants),
            on(session_snapshot)
        );
        client.batch_execute(&set).await
    }
}

/// The lists, and what their clients know.
#[derive(Default)]
pub struct Lists {
    /// Positions in the order of events.
    clock: AtomicU64,
    next: AtomicU64,
    history: Mutex<Vec<Txn>>,
}

impl Lists {
    pub async fn create(client: &Client) -> Lists {
        create(client).await;
        Lists { next: AtomicU64::new(1), ..Lists::default() }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// A list that is in use.
    fn some(&self, rng: &mut StdRng) -> u64 {
        self.next.load(Ordering::SeqCst) / APPENDS_EACH * OPEN + rng.random_range(0..OPEN)
    }

    fn record(&self, began: u64, ops: Vec<Op>, outcome: Outcome) {
        let ended = self.tick();
        self.history.lock().unwrap().push(Txn { ops, outcome, began, ended });
    }

    /// Reads all lists, and checks the whole history.
    pub async fn check(&self, client: &Client) {
        let began = self.tick();
        let ops = all(client).await;
        let lists = ops.len();
        self.record(began, ops, Outcome::Committed);
        let history = self.history.lock().unwrap();
        let count = |outcome| history.iter().filter(|txn| txn.outcome == outcome).count();
        let counts = [Outcome::Committed, Outcome::Aborted, Outcome::Unknown].map(count);
        println!("{lists} lists; transactions committed, aborted, unknown: {counts:?}");
        let checked = snapshot_isolation::check(&history);
        if let Err(violation) = checked.and_then(|()| independent::check(&history, Model::StrongSnapshotIsolation)) {
            let path = std::env::temp_dir().join(format!("cortado-lists-{}.txt", std::process::id()));
            std::fs::write(&path, format!("{history:#?}")).unwrap();
            panic!("{violation:?}; the history is in {}", path.display());
        }
    }
}

/// Makes the table of the lists.
pub async fn create(client: &Client) {
    client.batch_execute("CREATE TABLE lists (id bigint PRIMARY KEY, elements text NOT NULL)").await.unwrap();
}

/// Reads all lists.
pub async fn all(client: &Client) -> Vec<Op> {
    let rows = client.query("SELECT id, elements FROM lists", &[]).await.unwrap();
    rows.iter().map(|row| Op::Read(row.get::<_, i64>(0) as u64, elements(row.get(1)))).collect()
}

fn elements(text: &str) -> Vec<u64> {
    text.split(',').filter(|element| !element.is_empty()).map(|element| element.parse().unwrap()).collect()
}

/// What one session has seen of each list.
#[derive(Default)]
struct Seen {
    lists: HashMap<u64, Vec<u64>>,
    /// What it has appended since.
    written: HashMap<u64, Vec<u64>>,
    /// When its last transaction began. Its snapshot contains all that was acknowledged before.
    last: u64,
}

impl Seen {
    /// A session sees what it has seen and written.
    fn check(&mut self, ops: &[Op], reads: Reads) {
        for op in ops {
            match op {
                Op::Read(list, found) => {
                    let before = self.lists.entry(*list).or_default();
                    let own = self.written.remove(list).unwrap_or_default();
                    let is_newer = found.starts_with(before) && own.iter().all(|element| found.contains(element));
                    assert!(is_newer, "{reads:?}: list {list} was {before:?}, then {own:?} was appended: {found:?}");
                    before.clone_from(found);
                }
                Op::Append(list, element) => self.written.entry(*list).or_default().push(*element),
            }
        }
    }
}

/// A client of the lists through the gateway at `port`. It reconnects after an error, and takes other settings then
/// and now and then.
pub async fn run(
    lists: Arc<Lists>,
    port: u16,
    seed: u64,
    stop: Arc<AtomicBool>,
    done: Arc<[AtomicU64; Reads::COUNT as usize]>,
) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut turn = seed;
    while !stop.load(Ordering::SeqCst) {
        let Some(mut client) = connect(&[port]).await else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        let mut seen = Seen::default();
        while !stop.load(Ordering::SeqCst) && !client.is_closed() {
            turn += 1;
            let reads = Reads::nth(turn);
            let result = async {
                reads.set(&client).await?;
                for _ in 0..4 {
                    if rng.random_bool(0.25) {
                        append(&lists, &mut client, &mut seen, &mut rng).await?;
                    } else {
                        read(&lists, &mut client, &mut seen, reads, &mut rng).await?;
                        done[(turn % Reads::COUNT) as usize].fetch_add(1, Ordering::SeqCst);
                    }
                }
                Ok(())
            };
            match result.await {
                Ok(()) => {}
                Err(error) if is_transient(&error) => {}
                Err(error) => panic!("a client of the lists through port {port}, {reads:?}: {error:?}"),
            }
        }
    }
}

/// Reads a list.
pub async fn look(txn: &tokio_postgres::Transaction<'_>, list: u64) -> Result<Op, Error> {
    let row = txn.query_opt("SELECT elements FROM lists WHERE id = $1", &[&(list as i64)]).await?;
    Ok(Op::Read(list, row.map(|row| elements(row.get(0))).unwrap_or_default()))
}

/// Appends an element to a list.
pub async fn add(txn: &tokio_postgres::Transaction<'_>, list: u64, element: u64) -> Result<(), Error> {
    let (list, element) = (list as i64, format!("{element},"));
    let upsert = "INSERT INTO lists VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET elements = lists.elements || $2";
    txn.execute(upsert, &[&list, &element]).await.map(drop)
}

async fn read(
    lists: &Lists,
    client: &mut Client,
    seen: &mut Seen,
    reads: Reads,
    rng: &mut StdRng,
) -> Result<(), Error> {
    let began = if reads.session_snapshot { seen.last } else { lists.tick() };
    let txn = client
        .build_transaction()
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let mut ops = Vec::new();
    for _ in 0..3 {
        ops.push(look(&txn, lists.some(rng)).await?);
    }
    txn.commit().await?;
    seen.check(&ops, reads);
    lists.record(began, ops, Outcome::Committed);
    seen.last = began;
    Ok(())
}

async fn append(lists: &Lists, client: &mut Client, seen: &mut Seen, rng: &mut StdRng) -> Result<(), Error> {
    let began = lists.tick();
    let mut ops = Vec::new();
    let work = async {
        let txn =
            client.build_transaction().isolation_level(tokio_postgres::IsolationLevel::RepeatableRead).start().await?;
        for _ in 0..2 {
            ops.push(look(&txn, lists.some(rng)).await?);
        }
        // In the order of their ids, so that nobody waits in a circle.
        let mut ids = [lists.some(rng), lists.some(rng)];
        ids.sort_unstable();
        for list in ids {
            let element = lists.next.fetch_add(1, Ordering::SeqCst);
            ops.push(Op::Append(list, element));
            add(&txn, list, element).await?;
        }
        Ok(txn)
    };
    let committed: Result<(), (Error, Outcome)> = match work.await {
        Ok(txn) => txn.commit().await.map_err(|error| {
            let outcome = if is_refused(&error) { Outcome::Aborted } else { Outcome::Unknown };
            (error, outcome)
        }),
        Err(error) => Err((error, Outcome::Aborted)),
    };
    match committed {
        Ok(()) => {
            seen.check(&ops, Reads { replica: "leader", grants: false, session_snapshot: false, hedge: false });
            lists.record(began, ops, Outcome::Committed);
            seen.last = began;
            Ok(())
        }
        Err((error, outcome)) => {
            lists.record(began, ops, outcome);
            Err(error)
        }
    }
}

/// Whether the error of a commit says that nothing was committed.
pub fn is_refused(error: &Error) -> bool {
    let refused = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::INSUFFICIENT_RESOURCES,
    ];
    error.code().is_some_and(|code| refused.contains(code))
}
