//! The bank: transfers between accounts of two regions through gateways that crash, and audits. Every snapshot shows
//! the same total.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use kv::Key;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use txn::{Database, TxnError};

use crate::nodes::{Life, Nodes};

const ACCOUNTS: u64 = 8;
const EACH: u64 = 100;
/// The pause of a session that finds no gateway, or whose gateway failed.
const PAUSE: Duration = Duration::from_millis(200);

/// How often what happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) transfers: u64,
    pub(crate) audits: u64,
    pub(crate) conflicts: u64,
    pub(crate) unavailable: u64,
    pub(crate) unknown: u64,
    pub(crate) gateways_lost: u64,
}

/// What happened, and the first violation.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) counts: Counts,
    pub(crate) violation: Option<String>,
    /// Sessions begin nothing new.
    pub(crate) is_closed: bool,
}

pub(crate) type SharedBook = Rc<RefCell<Book>>;

/// Half of the accounts in each region.
fn account(n: u64) -> Key {
    Key::new(format!("{}{n:02}", if n.is_multiple_of(2) { "a" } else { "z" }))
}

fn amount(value: &Bytes) -> u64 {
    std::str::from_utf8(value).expect("text").parse().expect("a number")
}

fn money(amount: u64) -> Bytes {
    Bytes::from(amount.to_string())
}

async fn open(db: &Database) -> Result<(), TxnError> {
    db.run(|txn| {
        async move {
            for n in 0..ACCOUNTS {
                txn.put(account(n), money(EACH))?;
            }
            Ok(())
        }
        .boxed()
    })
    .await
}

async fn transfer(db: &Database, from: u64, to: u64, wanted: u64) -> Result<(), TxnError> {
    db.run(|txn| {
        async move {
            let have = txn.get(&account(from)).await?.as_ref().map_or(0, amount);
            let there = txn.get(&account(to)).await?.as_ref().map_or(0, amount);
            let moved = wanted.min(have);
            txn.put(account(from), money(have - moved))?;
            txn.put(account(to), money(there + moved))
        }
        .boxed()
    })
    .await
}

/// The total of one snapshot.
pub(crate) async fn audit(db: &Database) -> Result<Option<u64>, TxnError> {
    let txn = db.begin().await?;
    let keys: Vec<Key> = (0..ACCOUNTS).map(account).collect();
    let found = txn.batch_get(&keys).await?;
    Ok((found.len() as u64 == ACCOUNTS).then(|| found.iter().map(|(_, value)| amount(value)).sum()))
}

/// Whether a total is right.
pub(crate) fn is_total(total: Option<u64>) -> bool {
    total == Some(ACCOUNTS * EACH)
}

/// Runs `work` at a gateway until its life ends. `None` if it ended first: the outcome is unknown.
async fn at<T>(life: &Life, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = life.ended.cancelled() => None,
        done = work => Some(done),
    }
}

/// A node that runs.
fn any(nodes: &Nodes, rng: &mut StdRng) -> Option<Life> {
    nodes.life(nodes.stores[rng.random_range(0..nodes.stores.len())])
}

/// Opens the accounts: before any transfer, and again until it is known to be done.
pub(crate) async fn open_accounts(nodes: Arc<Nodes>, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    loop {
        if let Some(life) = any(&nodes, &mut rng)
            && let Some(Ok(())) = at(&life, open(&life.database)).await
        {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Transfers and audits until the book is closed.
pub(crate) async fn session(nodes: Arc<Nodes>, book: SharedBook, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    while !book.borrow().is_closed {
        let Some(life) = any(&nodes, &mut rng) else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let outcome = if rng.random_bool(0.3) {
            let audited = at(&life, audit(&life.database)).await;
            if let Some(Ok(total)) = audited {
                let mut book = book.borrow_mut();
                book.counts.audits += 1;
                if !is_total(total) {
                    book.violation.get_or_insert_with(|| format!("an audit found the total {total:?}"));
                }
            }
            audited.map(|outcome| outcome.map(drop))
        } else {
            let from = rng.random_range(0..ACCOUNTS);
            let to = (from + rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
            let outcome = at(&life, transfer(&life.database, from, to, rng.random_range(1..50))).await;
            book.borrow_mut().counts.transfers += u64::from(matches!(outcome, Some(Ok(()))));
            outcome
        };
        let failed = {
            let mut book = book.borrow_mut();
            match outcome {
                Some(Ok(())) => false,
                None => {
                    book.counts.gateways_lost += 1;
                    true
                }
                Some(Err(TxnError::Conflict(_))) => {
                    book.counts.conflicts += 1;
                    false
                }
                Some(Err(TxnError::Undetermined)) => {
                    book.counts.unknown += 1;
                    true
                }
                Some(Err(TxnError::Unavailable(_))) => {
                    book.counts.unavailable += 1;
                    true
                }
                Some(Err(error)) => {
                    book.violation.get_or_insert_with(|| format!("a session failed: {error}"));
                    true
                }
            }
        };
        if failed {
            tokio::time::sleep(PAUSE).await;
        }
    }
}
