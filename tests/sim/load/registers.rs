//! Autocommit registers: single writes and single reads, each a transaction. They are linearizable, and commit
//! timestamps follow the order in which writes were acknowledged, also of different registers.

use bytes::Bytes;
use futures::FutureExt;
use kv::Key;
use rand::Rng;
use simulator::checkers::history::{INITIAL, Register, Value, WriteOutcome};
use simulator::checkers::{Checked, Violation, violated};
use tso::Timestamp;
use txn::{Database, TxnError};

use super::{Book, Known, Plan, ReadLog, Seen, Session};

const REGISTERS: usize = 4;

/// Half of the registers in the system region, half in the last data region.
pub(crate) fn key(register: usize) -> Key {
    Key::new(format!("{}{register}", if register.is_multiple_of(2) { "b" } else { "zr" }))
}

/// The registers before any write.
pub(crate) fn all() -> Vec<Register> {
    vec![Register::default(); REGISTERS]
}

/// The value of a register, as stored.
pub(crate) fn value(stored: Option<&Bytes>) -> Value {
    stored.map_or(INITIAL, |stored| std::str::from_utf8(stored).expect("text").parse().expect("a number"))
}

/// An acknowledged write: when it began and ended, and its commit_ts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit {
    begin: u64,
    end: u64,
    commit_ts: Timestamp,
}

/// Every second write takes its start_ts with its commit, and is not run again. It returns its commit_ts.
async fn write(db: &Database, register: usize, value: Value) -> Result<Option<Timestamp>, TxnError> {
    let stored = Bytes::from(value.to_string());
    if value.is_multiple_of(2) {
        let mut txn = db.begin_deferred();
        txn.put(key(register), stored)?;
        txn.set_single_statement();
        return txn.commit().await;
    }
    db.run(|txn| {
        txn.set_single_statement();
        let stored = stored.clone();
        async move { txn.put(key(register), stored) }.boxed()
    })
    .await?;
    Ok(None)
}

/// Without options, the store of the register takes the timestamp, unless the oracle is at the gateway.
async fn read(db: &Database, register: usize, plan: &Plan, reads: &ReadLog) -> Result<(Value, Seen), TxnError> {
    let (txn, floor) = plan.begin(db).await?;
    let found = txn.get(&key(register)).await?;
    if plan.is_proven() {
        reads.add(key(register), txn.start_ts(), found.as_ref());
    }
    Ok((value(found.as_ref()), Plan::seen(&txn, floor)))
}

/// The values of one register that a session has seen or written, in the order in which they followed each other.
#[derive(Default)]
struct Order(Vec<Value>);

impl Order {
    /// The register had this value, after those before. Returns whether that is so: values are written once.
    fn add(&mut self, value: Value) -> bool {
        if self.0.last() == Some(&value) {
            return true;
        }
        let is_new = !self.0.contains(&value) && (value != INITIAL || self.0.is_empty());
        self.0.push(value);
        is_new
    }
}

/// Writes and reads until the book is closed.
pub(crate) async fn session(mut session: Session) {
    let reads = session.reads();
    let mut orders: [Order; REGISTERS] = Default::default();
    while !session.is_closed() {
        let Some(gateway) = session.gateway().await else { continue };
        let db = gateway.database.clone();
        let register = session.rng.random_range(0..REGISTERS);
        let begin = session.book.borrow_mut().next();
        if session.rng.random_bool(0.5) {
            let plan = session.plan_reader(true);
            let outcome = session.at(&gateway, read(&db, register, &plan, &reads)).await;
            if let Some(Ok((value, seen))) = outcome {
                session.saw(&plan, seen);
                let mut book = session.book.borrow_mut();
                let end = book.next();
                if plan.is_fresh() {
                    book.counts.register_reads += 1;
                    book.registers[register].read(value, begin, end);
                }
                if plan.is_ordered() && !orders[register].add(value) {
                    let what =
                        format!("a session went back to {value} in register {register}, with {plan:?}: {seen:?}");
                    book.violation.get_or_insert(what);
                }
            }
            session.judge(outcome.map(|outcome| outcome.map(drop))).await;
            continue;
        }
        let value = {
            let mut book = session.book.borrow_mut();
            let value = book.next();
            book.registers[register].begin_write(value, begin);
            value
        };
        let outcome = session.at(&gateway, write(&db, register, value)).await;
        let end = session.book.borrow_mut().next();
        if let Some(Ok(Some(commit_ts))) = outcome {
            session.book.borrow_mut().commits.push(Commit { begin: value, end, commit_ts });
            session.committed(commit_ts);
            orders[register].add(value);
        }
        let known = session.judge(outcome.map(|outcome| outcome.map(drop))).await;
        let mut book = session.book.borrow_mut();
        book.counts.register_writes += u64::from(known == Known::Committed);
        book.registers[register].end_write(
            value,
            match known {
                Known::Committed => WriteOutcome::Confirmed(end),
                Known::Aborted => WriteOutcome::Refused,
                Known::Unknown => WriteOutcome::Unknown,
            },
        );
    }
}

/// Checks that a write commits at or above each one that was acknowledged before it began. Two regions may compute the
/// same commit_ts.
fn check_order(mut commits: Vec<Commit>) -> Checked {
    let mut ended = commits.clone();
    ended.sort_unstable_by_key(|commit| commit.end);
    commits.sort_unstable_by_key(|commit| commit.begin);
    let mut ended = ended.into_iter().peekable();
    let mut newest: Option<Commit> = None;
    for commit in commits {
        while let Some(before) = ended.next_if(|before| before.end < commit.begin) {
            newest = newest.into_iter().chain([before]).max_by_key(|commit| commit.commit_ts);
        }
        if let Some(before) = newest.filter(|before| before.commit_ts > commit.commit_ts) {
            return violated(format!("{commit:?} committed below {before:?}, which was acknowledged before it began"));
        }
    }
    Ok(())
}

/// Checks that every register is linearizable, and the order of their commits.
pub(crate) fn check(book: &Book) -> Checked {
    check_order(book.commits.clone())?;
    for (number, register) in book.registers.iter().enumerate() {
        register
            .check()
            .map_err(|Violation(what)| Violation(format!("register {number} is not linearizable: {what}")))?;
    }
    Ok(())
}
