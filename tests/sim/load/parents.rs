//! Parents and children at READ COMMITTED: a child is written while its parent, or the parent's key, is locked for
//! others to share. Other transactions change and delete parents. No record tells what a child relied on, so it notes
//! its commit_ts and what it saw: in the snapshot right below the commit its parent must be there, and as it was seen
//! if that is what was locked (`reads.rs`). Who removes a parent for good relies on its lock, and looks for children:
//! none may commit between that look and the removal ([`Family`]).
//!
//! A child waits for a while between the lock and the commit, so that leaders fail in between. Half of the children are
//! in another region than their parent.

use std::time::Duration;

use bytes::Bytes;
use kv::Key;
use kv::api::{LockMode, LockedRow, Presence, RowFound};
use rand::Rng;
use rand::rngs::StdRng;
use simulator::checkers::{Checked, violated};
use tso::Timestamp;
use txn::{Database, LockAsk, LockWait, Transaction, TxnError};

use super::{Known, Session};

pub(crate) const PARENTS: usize = 3;

/// One parent in the system region, the others in the last data region.
pub(crate) fn parent(n: usize) -> Key {
    Key::new(format!("{}{n}", if n == 0 { "cp" } else { "zp" }))
}

/// A child, in one region or the other.
pub(crate) fn child(number: usize) -> Key {
    Key::new(format!("{}{number:05}", if number.is_multiple_of(2) { "cq" } else { "zq" }))
}

/// What a transaction does to a parent, or with it.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Writes a child of it, after a pause, and perhaps changes the parent too.
    Child { mode: LockMode, pause: Duration, changes: bool },
    /// Sets it, if there is one.
    Change,
    /// Sets it if there is none, and otherwise deletes it.
    Flip,
    /// Deletes it if there is one, after a look at those who rely on it and a pause.
    Remove { pause: Duration },
}

impl Work {
    fn draw(rng: &mut StdRng) -> Work {
        // Half of them at once, the others after up to so many milliseconds.
        let pause = |rng: &mut StdRng, most| {
            Duration::from_millis(if rng.random_bool(0.5) { 0 } else { rng.random_range(0..most) })
        };
        match rng.random_range(0..13) {
            0..6 => Work::Child {
                mode: if rng.random_bool(0.5) { LockMode::KeyShare } else { LockMode::Share },
                pause: pause(rng, 400),
                changes: rng.random_bool(0.1),
            },
            6..8 => Work::Change,
            8..10 => Work::Flip,
            // Long enough for another leader.
            _ => Work::Remove { pause: pause(rng, 3_000) },
        }
    }
}

/// What a child relied on.
#[derive(Clone, Debug)]
pub(crate) struct Relied {
    parent: Key,
    mode: LockMode,
    value: Bytes,
}

/// Who refers to a parent, and who has removed one.
#[derive(Default)]
pub(crate) struct Family {
    /// Acknowledged children whose parent was only locked, with their commit_ts.
    children: Vec<(Key, Timestamp)>,
    /// Acknowledged removals: the timestamps of the look at children, and of the commit.
    removals: Vec<(Key, Timestamp, Timestamp)>,
}

impl Family {
    /// A removal has seen all children that there are when it commits.
    pub(crate) fn check(&self) -> Checked {
        for (parent, looked, removed) in &self.removals {
            let unseen =
                |(of, committed): &&(Key, Timestamp)| of == parent && committed > looked && committed < removed;
            if let Some((_, committed)) = self.children.iter().find(unseen) {
                return violated(format!(
                    "{parent:?} was removed at {removed}, and nobody referred to it at {looked}: one did at {committed}"
                ));
            }
        }
        Ok(())
    }
}

/// What an acknowledged transaction is checked for.
enum Deed {
    Relied(Relied),
    /// Looked for children then, and removed the parent.
    Removed(Key, Timestamp),
}

async fn lock(txn: &mut Transaction, key: &Key, mode: LockMode) -> Result<Option<LockedRow>, TxnError> {
    let presence = if mode == LockMode::Update { Presence::Any } else { Presence::Present };
    let ask = LockAsk { mode, presence, was_read: false, wait: LockWait::Queue(None) };
    Ok(txn.lock_rows(vec![key.clone()], ask).await?.into_iter().find(|row| row.is_locked))
}

/// Runs a transaction. Returns its commit_ts, if it has written anything, and what it is checked for.
async fn transaction(
    db: &Database,
    number: usize,
    (at, work): (usize, Work),
) -> Result<(Option<Timestamp>, Option<Deed>), TxnError> {
    let (mut txn, key) = (db.begin_deferred(), parent(at));
    let newest = Bytes::from(number.to_string());
    txn.begin_statement();
    let mut deed = None;
    match work {
        Work::Child { mode, pause, changes } => {
            let Some(LockedRow { row: RowFound::Present(value), .. }) = lock(&mut txn, &key, mode).await? else {
                return Ok((None, None));
            };
            tokio::time::sleep(pause).await;
            txn.begin_statement();
            txn.put(child(number), newest.clone())?;
            if changes {
                if lock(&mut txn, &key, LockMode::NoKeyUpdate).await?.is_some() {
                    txn.put(key, newest)?;
                }
            } else {
                deed = Some(Deed::Relied(Relied { parent: key, mode, value }));
            }
        }
        Work::Change => {
            if lock(&mut txn, &key, LockMode::NoKeyUpdate).await?.is_some() {
                txn.put(key, newest)?;
            }
        }
        Work::Flip => match lock(&mut txn, &key, LockMode::Update).await? {
            Some(LockedRow { row: RowFound::Present(_), .. }) => txn.delete(key)?,
            Some(_) => txn.put(key, newest)?,
            None => (),
        },
        Work::Remove { pause } => {
            let Some(LockedRow { row: RowFound::Present(_), .. }) = lock(&mut txn, &key, LockMode::Update).await?
            else {
                return Ok((None, None));
            };
            txn.rely_on_lock(&key);
            txn.begin_statement();
            let looked = txn.take_read_ts().await?;
            tokio::time::sleep(pause).await;
            deed = Some(Deed::Removed(key.clone(), looked));
            txn.delete(key)?;
        }
    }
    Ok((txn.commit().await?, deed))
}

/// Runs transactions until the book is closed. `is_strict`: nothing takes locks away, so that none meets a conflict.
pub(crate) async fn session(mut session: Session, is_strict: bool) {
    let reads = session.reads();
    while !session.is_closed() {
        let Some(gateway) = session.gateway().await else { continue };
        let what = (session.rng.random_range(0..PARENTS), Work::draw(&mut session.rng));
        let number = {
            let mut book = session.book.borrow_mut();
            book.children += 1;
            book.children - 1
        };
        let db = gateway.database.clone();
        let outcome = session.at(&gateway, transaction(&db, number, what)).await;
        if let (true, Some(Err(TxnError::Conflict(why)))) = (is_strict, &outcome) {
            let what = format!("a transaction that had locked its rows met a conflict: {why}");
            session.book.borrow_mut().violation.get_or_insert(what);
        }
        match &outcome {
            Some(Ok((Some(commit_ts), Some(Deed::Relied(Relied { parent, mode, value }))))) => {
                match mode {
                    LockMode::KeyShare => reads.add_present(parent.clone(), commit_ts.prev()),
                    _ => reads.add(parent.clone(), commit_ts.prev(), Some(value)),
                }
                let mut book = session.book.borrow_mut();
                book.counts.children += 1;
                book.family.children.push((parent.clone(), *commit_ts));
            }
            Some(Ok((Some(commit_ts), Some(Deed::Removed(parent, looked))))) => {
                let mut book = session.book.borrow_mut();
                book.counts.removals += 1;
                book.family.removals.push((parent.clone(), *looked, *commit_ts));
            }
            _ => (),
        }
        let known = session.judge(outcome.map(|outcome| outcome.map(drop))).await;
        session.book.borrow_mut().counts.family += u64::from(known == Known::Committed);
    }
}
