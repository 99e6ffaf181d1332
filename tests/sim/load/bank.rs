//! The bank: transfers between accounts of two regions, and audits. Every snapshot shows the same total. Each transfer
//! leaves a record, so that in the end every acknowledged one is there, once, and no failed one.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::FutureExt;
use kv::Key;
use rand::Rng;
use simulator::checkers::{Checked, violated};
use txn::{Database, Transaction, TxnError};

use super::{Known, Plan, ReadLog, Seen, Session};

pub(crate) const ACCOUNTS: u64 = 8;
const EACH: i64 = 100;

/// A transfer that a session began, by its number: what the session knows of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) known: Known,
}

/// Half of the accounts in the system region, half in the last data region.
pub(crate) fn account(n: u64) -> Key {
    Key::new(format!("{}{n:02}", if n.is_multiple_of(2) { "a" } else { "z" }))
}

/// The record of a transfer.
pub(crate) fn record(number: usize) -> Key {
    Key::new(format!("{}{number:05}", if number.is_multiple_of(2) { "d" } else { "zt" }))
}

/// The balance of an account. One without a value was never used.
fn balance(value: Option<&Bytes>) -> i64 {
    value.map_or(EACH, |value| std::str::from_utf8(value).expect("text").parse().expect("a number"))
}

fn money(amount: i64) -> Bytes {
    Bytes::from(amount.to_string())
}

async fn read(txn: &Transaction, n: u64, reads: &ReadLog) -> Result<i64, TxnError> {
    let value = txn.get(&account(n)).await?;
    reads.add(account(n), txn.start_ts(), value.as_ref());
    Ok(balance(value.as_ref()))
}

/// Every second pair of transfers is a single statement.
async fn transfer(
    db: &Database,
    number: usize,
    (from, to): (u64, u64),
    wanted: i64,
    (plan, reads): (&Plan, &ReadLog),
) -> Result<(), TxnError> {
    db.run(|txn| {
        let reads = reads.clone();
        plan.set(txn, false);
        async move {
            if (number / 2).is_multiple_of(2) {
                txn.set_single_statement();
            }
            let have = read(txn, from, &reads).await?;
            let there = read(txn, to, &reads).await?;
            let moved = wanted.min(have);
            txn.put(account(from), money(have - moved))?;
            txn.put(account(to), money(there + moved))?;
            txn.put(record(number), Bytes::from(format!("{from} {to} {moved}")))
        }
        .boxed()
    })
    .await
}

/// The total of one snapshot.
async fn audit(db: &Database, plan: &Plan, reads: &ReadLog) -> Result<(i64, Seen), TxnError> {
    let (txn, floor) = plan.begin(db).await?;
    let keys: Vec<Key> = (0..ACCOUNTS).map(account).collect();
    let found: BTreeMap<Key, Bytes> = txn.batch_get(&keys).await?.into_iter().collect();
    if plan.is_proven() {
        keys.iter().for_each(|key| reads.add(key.clone(), txn.start_ts(), found.get(key)));
    }
    Ok((keys.iter().map(|key| balance(found.get(key))).sum(), Plan::seen(&txn, floor)))
}

/// Transfers and audits until the book is closed.
pub(crate) async fn session(mut session: Session) {
    let reads = session.reads();
    while !session.is_closed() {
        let Some(gateway) = session.gateway().await else { continue };
        let db = gateway.database.clone();
        if session.rng.random_bool(0.3) {
            let plan = session.plan_reader(true);
            let audited = session.at(&gateway, audit(&db, &plan, &reads)).await;
            if let Some(Ok((total, seen))) = audited {
                session.saw(&plan, seen);
                let mut book = session.book.borrow_mut();
                book.counts.audits += 1;
                if plan.is_proven() && total != ACCOUNTS as i64 * EACH {
                    book.violation.get_or_insert_with(|| format!("an audit found the total {total}"));
                }
            }
            session.judge(audited.map(|audited| audited.map(drop))).await;
            continue;
        }
        let from = session.rng.random_range(0..ACCOUNTS);
        let to = (from + session.rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let wanted = session.rng.random_range(1..50);
        let number = {
            let mut book = session.book.borrow_mut();
            book.transfers.push(Transfer { known: Known::Unknown });
            book.transfers.len() - 1
        };
        let plan = session.plan_writer();
        let outcome = session.at(&gateway, transfer(&db, number, (from, to), wanted, (&plan, &reads))).await;
        let known = session.judge(outcome).await;
        let mut book = session.book.borrow_mut();
        book.transfers[number].known = known;
        book.counts.transfers += u64::from(known == Known::Committed);
    }
}

/// Checks the last state of the accounts against the records of the transfers.
pub(crate) fn check_final(transfers: &[Transfer], found: &BTreeMap<Key, Bytes>) -> Checked {
    let mut balances = vec![EACH; ACCOUNTS as usize];
    for (number, transfer) in transfers.iter().enumerate() {
        match (transfer.known, found.get(&record(number))) {
            (Known::Committed, None) => return violated(format!("the acknowledged transfer {number} is lost")),
            (Known::Aborted, Some(_)) => return violated(format!("the failed transfer {number} took effect")),
            (_, None) => {}
            (_, Some(record)) => {
                let text = std::str::from_utf8(record).expect("text");
                let numbers: Vec<i64> = text.split(' ').map(|number| number.parse().expect("a number")).collect();
                balances[numbers[0] as usize] -= numbers[2];
                balances[numbers[1] as usize] += numbers[2];
            }
        }
    }
    for (n, expected) in (0..ACCOUNTS).zip(balances) {
        let balance = balance(found.get(&account(n)));
        if balance != expected {
            return violated(format!("account {n} has {balance}, its transfers make {expected}"));
        }
    }
    Ok(())
}
