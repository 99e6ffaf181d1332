//! Tables whose rows all carry one version. Every write raises all rows of a table in one transaction, so a commit is
//! there as a whole or not at all, and every read sees what was acknowledged before it began.
//!
//! There is a table for each protocol of commit:
//!
//! | table | rows | a write | protocol |
//! |---|---|---|---|
//! | `one` | 1 | an UPDATE | one phase: one region |
//! | `few` | 8 | UPDATE, CREATE TABLE and INSERT in one transaction | asynchronous: few keys in two regions |
//! | `wide` | 600 | UPDATE of all rows in a transaction | two phases: more than one batch of prewrites |
//!
//! Rows of user tables lie in one region as long as regions do not split, and the catalog lies in another. So a
//! transaction with rows and a new table is one over two regions. The new table is the receipt of its version: at the
//! end there is a receipt for each version up to that of the rows, and for no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use crate::clients::{connect, is_transient};
use crate::lists::Reads;
use crate::process::POLL_INTERVAL;

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    One,
    Few,
    Wide,
}

impl Kind {
    fn table(self) -> &'static str {
        match self {
            Kind::One => "one",
            Kind::Few => "few",
            Kind::Wide => "wide",
        }
    }

    fn rows(self) -> i64 {
        match self {
            Kind::One => 1,
            Kind::Few => 8,
            Kind::Wide => 600,
        }
    }
}

/// A table, and what its writers know.
pub struct Versions {
    kind: Kind,
    /// The newest version that a writer of `one` has sent.
    sent: AtomicI64,
    /// The newest version that was acknowledged.
    acknowledged: AtomicI64,
    /// Acknowledged writes.
    writes: AtomicU64,
}

/// What the versions' clients of one gateway have completed.
#[derive(Default)]
pub struct Completed {
    pub writes: AtomicU64,
    pub reads: AtomicU64,
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Writer,
    Reader,
}

impl Versions {
    /// Creates the table, with version 0.
    pub async fn create(client: &Client, kind: Kind) -> Versions {
        let (table, rows) = (kind.table(), kind.rows());
        let values: Vec<String> = (0..rows).map(|id| format!("({id}, 0)")).collect();
        client
            .batch_execute(&format!("CREATE TABLE {table} (id bigint PRIMARY KEY, v bigint NOT NULL)"))
            .await
            .unwrap();
        client.batch_execute(&format!("INSERT INTO {table} VALUES {}", values.join(", "))).await.unwrap();
        let (sent, acknowledged, writes) = (AtomicI64::new(0), AtomicI64::new(0), AtomicU64::new(0));
        Versions { kind, sent, acknowledged, writes }
    }

    /// The newest version that was acknowledged. A read that begins now must see it.
    pub fn acknowledged(&self) -> i64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// The number of acknowledged writes.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    /// The statement that reads the version of one row.
    pub fn select_row(&self) -> String {
        format!("SELECT v FROM {} WHERE id = $1", self.kind.table())
    }

    /// Writes the next version.
    async fn write(&self, client: &mut Client) -> Result<(), Error> {
        let version = match self.kind {
            Kind::One => {
                let version = self.sent.fetch_add(1, Ordering::SeqCst) + 1;
                // Another writer may have been faster. Nor may a late copy of an older write lower the version.
                client.execute("UPDATE one SET v = $1 WHERE id = 0 AND v < $1", &[&version]).await?;
                version
            }
            Kind::Few | Kind::Wide => self.raise(client).await?,
        };
        self.acknowledged.fetch_max(version, Ordering::SeqCst);
        self.writes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Raises the version of all rows by one. Returns the new one.
    async fn raise(&self, client: &mut Client) -> Result<i64, Error> {
        let txn =
            client.build_transaction().isolation_level(tokio_postgres::IsolationLevel::RepeatableRead).start().await?;
        let version = txn.query_one(&self.select_row(), &[&0_i64]).await?.get::<_, i64>(0) + 1;
        let update = format!("UPDATE {} SET v = $1", self.kind.table());
        assert_eq!(txn.execute(&update, &[&version]).await?, self.kind.rows() as u64, "{:?}", self.kind);
        if self.kind == Kind::Few {
            let receipt = format!(
                "CREATE TABLE receipt_{version} (id bigint PRIMARY KEY); INSERT INTO receipt_{version} VALUES (7)"
            );
            txn.batch_execute(&receipt).await?;
        }
        txn.commit().await?;
        Ok(version)
    }

    /// Reads one row, or all, in a statement of its own.
    async fn read(&self, client: &Client, rng: &mut StdRng) -> Result<(), Error> {
        let least = self.acknowledged();
        let found = if rng.random_bool(0.7) {
            let id = rng.random_range(0..self.kind.rows());
            client.query_one(&self.select_row(), &[&id]).await?.get(0)
        } else {
            self.read_all(client).await?
        };
        self.check(found, least);
        Ok(())
    }

    /// The version of all rows, read in one statement.
    async fn read_all(&self, client: &Client) -> Result<i64, Error> {
        let select = format!("SELECT count(*), min(v), max(v) FROM {}", self.kind.table());
        let row = client.query_one(&select, &[]).await?;
        let [count, least, most] = [0, 1, 2].map(|at| row.get::<_, i64>(at));
        assert_eq!(
            (count, least),
            (self.kind.rows(), most),
            "{:?}: rows, and their least and newest version",
            self.kind
        );
        Ok(most)
    }

    /// Asserts that a read that began when `least` was acknowledged did not find an older version.
    pub fn check(&self, found: i64, least: i64) {
        assert!(found >= least, "{:?}: version {found} was read after {least} was acknowledged", self.kind);
    }

    /// The end: nothing acknowledged is lost, and there is a receipt for each version.
    pub async fn check_end(&self, client: &Client) {
        let version = self.read_all(client).await.unwrap();
        self.check(version, self.acknowledged());
        if self.kind == Kind::Few {
            for receipt in 1..=version + 1 {
                let found = client.query(&format!("SELECT id FROM receipt_{receipt}"), &[]).await;
                let rows = found.map(|rows| rows.len()).map_err(|error| error.code().cloned());
                let expected = if receipt <= version { Ok(1) } else { Err(Some(SqlState::UNDEFINED_TABLE)) };
                assert_eq!(rows, expected, "the receipt of version {receipt}, where the rows have version {version}");
            }
        }
    }
}

/// A client of the tables `all`, in turn, through the gateway at `port`. It reconnects after an error.
pub async fn run(
    all: Vec<Arc<Versions>>,
    role: Role,
    port: u16,
    seed: u64,
    stop: Arc<AtomicBool>,
    completed: Arc<Completed>,
) {
    let mut rng = StdRng::seed_from_u64(seed);
    while !stop.load(Ordering::SeqCst) {
        let Some(mut client) = connect(&[port]).await else {
            tokio::time::sleep(POLL_INTERVAL).await;
            continue;
        };
        let reads = Reads { session_snapshot: false, ..Reads::nth(rng.random_range(0..Reads::COUNT)) };
        if role == Role::Reader && reads.set(&client).await.is_err() {
            continue;
        }
        while !stop.load(Ordering::SeqCst) && !client.is_closed() {
            for versions in &all {
                let result = match role {
                    Role::Writer => versions.write(&mut client).await,
                    Role::Reader => versions.read(&client, &mut rng).await,
                };
                let counter = if role == Role::Writer { &completed.writes } else { &completed.reads };
                match result {
                    Ok(()) => drop(counter.fetch_add(1, Ordering::SeqCst)),
                    // Another writer has created the receipt of this version.
                    Err(error) if is_transient(&error) || error.code() == Some(&SqlState::DUPLICATE_TABLE) => {}
                    Err(error) => panic!("a {role:?} of {:?} through port {port}: {error:?}", versions.kind),
                }
            }
        }
    }
}
