//! Counters at READ COMMITTED: transactions lock rows before they change them, in any order, wait for each other, meet
//! deadlocks, and roll back to savepoints. Each leaves a record of what it has added, so that in the end every counter
//! is the sum of the records: an update that was lost, or evaluated on an old row, shows.
//!
//! Most wait without a limit. So a deadlock that is not found, or a waiter that is forgotten, is a session that does
//! not end.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use kv::Key;
use kv::api::{LockMode, LockedRow, Presence, RowFound};
use rand::Rng;
use rand::rngs::StdRng;
use simulator::checkers::{Checked, violated};
use txn::{Database, LockAsk, LockWait, Transaction, TxnError};

use super::{Known, Session};

pub(crate) const COUNTERS: usize = 4;

/// Half of the counters in the system region, half in the last data region.
pub(crate) fn counter(n: usize) -> Key {
    Key::new(format!("{}{n}", if n.is_multiple_of(2) { "cc" } else { "zc" }))
}

/// The record of a transaction.
pub(crate) fn record(number: usize) -> Key {
    Key::new(format!("{}{number:05}", if number.is_multiple_of(2) { "ce" } else { "ze" }))
}

fn number(value: Option<&Bytes>) -> u64 {
    value.map_or(0, |value| std::str::from_utf8(value).expect("text").parse().expect("a number"))
}

/// A statement: adds one to a counter.
#[derive(Clone, Copy, Debug)]
struct Statement {
    counter: usize,
    /// Whether it reads the row in its snapshot before it locks it.
    reads: bool,
    /// Whether it locks the row for others to read first, which may end in a deadlock with one that does the same.
    shares: bool,
    mode: LockMode,
    wait: LockWait,
    is_undone: bool,
}

impl Statement {
    fn draw(rng: &mut StdRng) -> Statement {
        let wait = match rng.random_range(0..10) {
            0 => LockWait::NoWait,
            1 => LockWait::Skip,
            2 => LockWait::Queue(Some(Duration::from_millis(rng.random_range(0..500)))),
            _ => LockWait::Queue(None),
        };
        Statement {
            counter: rng.random_range(0..COUNTERS),
            reads: rng.random_bool(0.5),
            shares: rng.random_bool(0.1),
            mode: if rng.random_bool(0.5) { LockMode::Update } else { LockMode::NoKeyUpdate },
            wait,
            is_undone: rng.random_bool(0.2),
        }
    }

    /// Runs it. Returns whether it has changed its row: otherwise it was locked, and left out.
    async fn run(self, txn: &mut Transaction) -> Result<bool, TxnError> {
        let key = counter(self.counter);
        let is_own = txn.has_written(&key);
        let read = if is_own || self.reads { txn.get(&key).await? } else { None };
        let have = if is_own {
            number(read.as_ref())
        } else {
            let was_read = self.reads;
            if self.shares {
                let ask = LockAsk { mode: LockMode::Share, presence: Presence::Any, was_read, wait: self.wait };
                txn.lock_rows(vec![key.clone()], ask).await?;
            }
            let ask = LockAsk { mode: self.mode, presence: Presence::Any, was_read, wait: self.wait };
            let rows = txn.lock_rows(vec![key.clone()], ask).await?;
            match rows.into_iter().next() {
                Some(LockedRow { is_locked: true, row: RowFound::Unchanged, .. }) => number(read.as_ref()),
                Some(LockedRow { is_locked: true, row: RowFound::Present(newest), .. }) => number(Some(&newest)),
                Some(LockedRow { is_locked: true, row: RowFound::Absent, .. }) => 0,
                _ => return Ok(false),
            }
        };
        txn.put(key, Bytes::from((have + 1).to_string()))?;
        Ok(true)
    }
}

async fn transaction(db: &Database, number: usize, statements: &[Statement]) -> Result<(), TxnError> {
    let mut txn = db.begin_deferred();
    let mut added = Vec::new();
    for statement in statements {
        txn.begin_statement();
        let savepoint = txn.savepoint();
        if !statement.run(&mut txn).await? {
            continue;
        }
        if statement.is_undone {
            txn.rollback_to(savepoint);
            txn.locks_released().await;
        } else {
            added.push(statement.counter.to_string());
        }
    }
    txn.begin_statement();
    txn.put(record(number), Bytes::from(added.join(" ")))?;
    txn.commit().await.map(drop)
}

/// Runs transactions until the book is closed. `is_strict`: nothing takes locks away, so that none meets a conflict.
pub(crate) async fn session(mut session: Session, is_strict: bool) {
    while !session.is_closed() {
        let Some(gateway) = session.gateway().await else { continue };
        let count = session.rng.random_range(1..=4);
        let statements: Vec<Statement> = (0..count).map(|_| Statement::draw(&mut session.rng)).collect();
        let number = {
            let mut book = session.book.borrow_mut();
            book.additions.push(Known::Unknown);
            book.additions.len() - 1
        };
        let db = gateway.database.clone();
        let outcome = session.at(&gateway, transaction(&db, number, &statements)).await;
        if let (true, Some(Err(TxnError::Conflict(why)))) = (is_strict, &outcome) {
            let what = format!("a transaction that had locked its rows met a conflict: {why}");
            session.book.borrow_mut().violation.get_or_insert(what);
        }
        let known = session.judge(outcome).await;
        let mut book = session.book.borrow_mut();
        book.additions[number] = known;
        book.counts.additions += u64::from(known == Known::Committed);
    }
}

/// Checks the last state of the counters against the records of the transactions.
pub(crate) fn check_final(additions: &[Known], found: &BTreeMap<Key, Bytes>) -> Checked {
    let mut sums = [0; COUNTERS];
    for (number, known) in additions.iter().enumerate() {
        match (known, found.get(&record(number))) {
            (Known::Committed, None) => return violated(format!("the acknowledged addition {number} is lost")),
            (Known::Aborted, Some(_)) => return violated(format!("the failed addition {number} took effect")),
            (_, None) => {}
            (_, Some(record)) => {
                let text = std::str::from_utf8(record).expect("text");
                for counter in text.split_whitespace() {
                    sums[counter.parse::<usize>().expect("a counter")] += 1;
                }
            }
        }
    }
    for (n, expected) in sums.into_iter().enumerate() {
        let stands = number(found.get(&counter(n)));
        if stands != expected {
            return violated(format!("counter {n} is {stands}, its additions make {expected}"));
        }
    }
    Ok(())
}
