//! Autocommit registers: single writes and single reads, each a transaction. They are linearizable.

use bytes::Bytes;
use futures::FutureExt;
use kv::Key;
use rand::Rng;
use simulator::checkers::history::{INITIAL, Register, Value, WriteOutcome};
use simulator::checkers::{Checked, Violation};
use txn::{Database, TxnError};

use super::{Book, Known, ReadLog, Session};

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

/// Every second write takes its start_ts with its commit, and is not run again.
async fn write(db: &Database, register: usize, value: Value) -> Result<(), TxnError> {
    let stored = Bytes::from(value.to_string());
    if value.is_multiple_of(2) {
        let mut txn = db.begin_deferred();
        txn.put(key(register), stored)?;
        txn.set_single_statement();
        return txn.commit().await.map(drop);
    }
    db.run(|txn| {
        txn.set_single_statement();
        let stored = stored.clone();
        async move { txn.put(key(register), stored) }.boxed()
    })
    .await
}

/// The store of the register takes the timestamp, unless the oracle is at the gateway.
async fn read(db: &Database, register: usize, reads: &ReadLog) -> Result<Value, TxnError> {
    let txn = db.begin_deferred();
    let found = txn.get(&key(register)).await?;
    reads.add(key(register), txn.start_ts(), found.as_ref());
    Ok(value(found.as_ref()))
}

/// Writes and reads until the book is closed.
pub(crate) async fn session(mut session: Session) {
    let reads = session.reads();
    while !session.is_closed() {
        let Some(gateway) = session.gateway().await else { continue };
        let db = gateway.database.clone();
        let register = session.rng.random_range(0..REGISTERS);
        let begin = session.book.borrow_mut().next();
        if session.rng.random_bool(0.5) {
            let outcome = session.at(&gateway, read(&db, register, &reads)).await;
            if let Some(Ok(value)) = outcome {
                let mut book = session.book.borrow_mut();
                let end = book.next();
                book.counts.register_reads += 1;
                book.registers[register].read(value, begin, end);
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
        let known = session.judge(outcome).await;
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

/// Checks that every register is linearizable.
pub(crate) fn check(book: &Book) -> Checked {
    for (number, register) in book.registers.iter().enumerate() {
        register
            .check()
            .map_err(|Violation(what)| Violation(format!("register {number} is not linearizable: {what}")))?;
    }
    Ok(())
}
