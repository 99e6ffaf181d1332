//! Advisory locks of real processes: a node that holds a lock is killed, or sleeps; the leader of the system region is
//! killed; migration tools; `cortado locks`.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::exclusive::ClusterLock;
use crate::harness::Cluster;
use crate::process::wait_for;

/// The documented bound: the lease of a node on its locks, and the time until the system region has a leader.
const FREE_AFTER_DEATH: Duration = Duration::from_secs(10 + 15);
/// How long a lock that is held is watched.
const WATCH: Duration = Duration::from_secs(3);

async fn tries(client: &Client, key: i64) -> bool {
    client.query_one("SELECT pg_try_advisory_lock($1)", &[&key]).await.unwrap().get(0)
}

/// Whether a statement has failed, and how.
fn state(result: Result<Vec<tokio_postgres::SimpleQueryMessage>, tokio_postgres::Error>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.code().map_or_else(|| "closed".to_owned(), |code| code.code().to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_outlives_the_leader_and_ends_with_its_node() {
    let lock = ClusterLock::acquire();
    let mut cluster = Cluster::start(&lock, 3).await;
    let leader = cluster.leader_of(1);
    let (holder, waiter) = ((leader + 1) % 3, (leader + 2) % 3);
    let (holds, waits, watches) =
        (cluster.connect(holder).await, cluster.connect(waiter).await, cluster.connect(waiter).await);
    holds.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int)").await.unwrap();
    holds.batch_execute("SELECT pg_advisory_lock(7), pg_advisory_lock_shared(1, 2)").await.unwrap();
    assert!(!tries(&watches, 7).await);
    let waiting = tokio::spawn(async move {
        waits.batch_execute("SELECT pg_advisory_lock(7)").await.unwrap();
        waits
    });
    // The leader and its queue are gone. The record is not.
    cluster.kill(leader);
    let deadline = Instant::now() + WATCH;
    let mut looks = 0;
    while Instant::now() < deadline || looks < 3 {
        match watches.query_one("SELECT pg_try_advisory_lock(7)", &[]).await {
            Ok(row) => {
                assert!(!row.get::<_, bool>(0), "two hold the lock");
                looks += 1;
            }
            // There is no leader yet.
            Err(error) => assert_eq!(error.code().map(|code| code.code()), Some("57P03"), "{error:?}"),
        }
        assert!(!waiting.is_finished(), "two hold the lock");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    holds.batch_execute("INSERT INTO t VALUES (1, 1)").await.unwrap();
    cluster.spawn(leader);
    cluster.wait_until_serving(leader).await;
    // The holder dies without a word.
    let killed = Instant::now();
    cluster.kill(holder);
    let waits = tokio::time::timeout(FREE_AFTER_DEATH, waiting).await.expect("the lock is free in time").unwrap();
    eprintln!("the lock of a dead node was free after {:?}", killed.elapsed());
    assert!(!tries(&watches, 7).await, "the one that waited has it");
    waits.batch_execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    assert!(tries(&watches, 7).await);
    assert!(watches.query_one("SELECT pg_try_advisory_lock(1, 2)", &[]).await.unwrap().get::<_, bool>(0));
}

/// A node sleeps past its lease. When it wakes up its session has lost the lock: it can neither commit nor go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_sleeps_loses_its_locks() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    let leader = cluster.leader_of(1);
    let (sleeper, other) = ((leader + 1) % 3, leader);
    let holds = cluster.connect(sleeper).await;
    let (idle, takes) = (cluster.connect(sleeper).await, cluster.connect(other).await);
    holds.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)").await.unwrap();
    idle.batch_execute("SELECT pg_advisory_lock(8)").await.unwrap();
    holds.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(7); UPDATE t SET v = 1").await.unwrap();
    cluster.pause(&[sleeper]);
    let got = takes.batch_execute("SET statement_timeout = '25s'; SELECT pg_advisory_lock(7), pg_advisory_lock(8)");
    got.await.expect("the lock is free in time");
    takes.batch_execute("UPDATE t SET v = 2 WHERE id = 1").await.unwrap();
    cluster.resume(&[sleeper]);
    let ended = state(holds.simple_query("COMMIT").await);
    assert!(["57P01", "40001", "closed"].contains(&&*ended), "{ended}");
    wait_for("the idle session has ended", || idle.is_closed());
    let row = takes.query_one("SELECT v FROM t", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 2, "the sleeper has written under the lock of another one");
    // A new session of that node goes on.
    let again = cluster.connect(sleeper).await;
    assert!(!tries(&again, 7).await);
    takes.batch_execute("SELECT pg_advisory_unlock_all()").await.unwrap();
    assert!(tries(&again, 7).await);
}

/// The statements of migration tools, word by word, from two nodes at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migration_tools_take_turns() {
    let lock = ClusterLock::acquire();
    let cluster = Cluster::start(&lock, 3).await;
    let (a, b) = (cluster.connect(0).await, cluster.connect(1).await);
    // Rails: a 63-bit number, with the comment that it adds.
    let rails = "SELECT pg_try_advisory_lock(2053462845369364075) /*application:App*/";
    let unlock = "SELECT pg_advisory_unlock(2053462845369364075)";
    let get = |row: tokio_postgres::Row| row.get::<_, bool>(0);
    assert!(get(a.query_one(rails, &[]).await.unwrap()));
    assert!(!get(b.query_one(rails, &[]).await.unwrap()), "ConcurrentMigrationError");
    assert!(get(a.query_one(unlock, &[]).await.unwrap()));
    assert!(get(b.query_one(rails, &[]).await.unwrap()) && get(b.query_one(unlock, &[]).await.unwrap()));
    // golang-migrate and sqlx: prepared, with a parameter; Ecto and node-pg-migrate wait or try.
    let key = 3_735_928_559_i64;
    for (take, give) in [
        ("SELECT pg_advisory_lock($1)", "SELECT pg_advisory_unlock($1)"),
        ("select pg_try_advisory_lock($1)", "select pg_advisory_unlock($1) as \"lockReleased\""),
    ] {
        let (take, give) = (a.prepare(take).await.unwrap(), a.prepare(give).await.unwrap());
        a.query_one(&take, &[&key]).await.unwrap();
        assert!(!tries(&b, key).await);
        assert!(get(a.query_one(&give, &[&key]).await.unwrap()));
    }
    // The two integers as parameters, whose types the server tells.
    let pair = a.prepare("SELECT pg_try_advisory_lock($1, $2), pg_advisory_unlock($1, $2)").await.unwrap();
    let row = a.query_one(&pair, &[&-1_i32, &i32::MAX]).await.unwrap();
    assert!(row.get::<_, bool>(0) && row.get::<_, bool>(1));
    // Prisma: a constant, in a simple query, under a timeout.
    let prisma = "SELECT pg_advisory_lock(72707369)";
    a.batch_execute(prisma).await.unwrap();
    b.batch_execute("SET lock_timeout = '200ms'").await.unwrap();
    assert_eq!(state(b.simple_query(prisma).await), "55P03");
    a.batch_execute("SELECT pg_advisory_unlock(72707369)").await.unwrap();
    assert_eq!(state(b.simple_query(prisma).await), "ok");
    b.batch_execute("RESET lock_timeout; SELECT pg_advisory_unlock_all()").await.unwrap();
    // Flyway and Liquibase's extension: for a transaction, tried again and again; a migration within it.
    a.batch_execute("BEGIN").await.unwrap();
    let flyway = "SELECT pg_try_advisory_xact_lock(77431831)";
    assert!(get(a.query_one(flyway, &[]).await.unwrap()));
    assert!(!get(b.query_one(flyway, &[]).await.unwrap()));
    a.batch_execute("CREATE TABLE flyway_schema_history (installed_rank int PRIMARY KEY)").await.unwrap();
    a.batch_execute("COMMIT").await.unwrap();
    assert!(get(b.query_one(flyway, &[]).await.unwrap()));
    // Django's and Alembic's helpers: two integers.
    a.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(4711, -1)").await.unwrap();
    assert!(!get(b.query_one("SELECT pg_try_advisory_xact_lock(4711, -1)", &[]).await.unwrap()));
    a.batch_execute("ROLLBACK").await.unwrap();
    // Many at once: each migration runs once.
    let mut tasks = Vec::new();
    a.batch_execute("CREATE TABLE migrations (id int PRIMARY KEY)").await.unwrap();
    for at in 0..6 {
        let client = cluster.connect(at % 3).await;
        tasks.push(tokio::spawn(async move {
            client.batch_execute("SELECT pg_advisory_lock(99)").await.unwrap();
            let done = client.query("SELECT id FROM migrations", &[]).await.unwrap().len();
            if done == 0 {
                client.batch_execute("INSERT INTO migrations VALUES (1)").await.unwrap();
            }
            client.batch_execute("SELECT pg_advisory_unlock(99)").await.unwrap();
            done
        }));
    }
    let mut runs = 0;
    for task in tasks {
        runs += usize::from(task.await.unwrap() == 0);
    }
    assert_eq!(runs, 1);
}
