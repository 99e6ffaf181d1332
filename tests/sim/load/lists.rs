//! Lists: transactions that read, scan and lock lists in several regions and append to them. Their history is snapshot
//! isolated, fits their timestamps, and has write skew.
//!
//! Most transactions are explicit: they are not run again, so that each conflict and each unknown outcome is seen. The
//! others are a single append that `Database::run` repeats after a conflict, as a session does for an autocommit
//! statement. It commits in one phase, at a commit_ts that its region computes.
//! After a number of transactions the next generation of lists begins, so that lists stay short.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use kv::Key;
use kv::client::ScanRange;
use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::StdRng;
use simulator::checkers::replay::{Time, Times};
use simulator::checkers::snapshot_isolation::{Op, Outcome, Txn};
use tso::Timestamp;
use txn::{Database, Transaction, TxnError};

use super::{Book, Known, Plan, ReadLog, Seen, Session};

/// Lists of a generation.
const LISTS: u64 = 6;
/// Transactions of the history after which the next generation of lists begins.
const GENERATION: u64 = 60;
/// Pairs of a page of a scan.
const PAGE: u32 = 5;
/// The length to which every second list is padded, so that its value is in `Cf::Default`.
const PADDED: usize = 300;
/// The share of transactions that are a single append, besides those that happen to be.
const AUTOCOMMIT: f64 = 0.25;

/// The key of a list: in the system region, the first or the second data region, if there are two.
fn key(list: u64) -> Key {
    let prefix = ["r", "u", "x"][(list % 3) as usize];
    Key::new(format!("{prefix}{list:04}"))
}

/// The first list of the newest generation.
fn newest(book: &Book) -> u64 {
    book.history.len() as u64 / GENERATION * LISTS
}

/// The keys of all lists so far.
pub(crate) fn keys(book: &Book) -> impl Iterator<Item = Key> {
    (0..newest(book) + LISTS).map(key)
}

fn decode(value: Option<&Bytes>) -> Vec<u64> {
    let text = value.map_or("", |value| std::str::from_utf8(value).expect("text"));
    text.split_whitespace().map(|element| element.parse().expect("a number")).collect()
}

fn encode(list: u64, elements: &[u64]) -> Bytes {
    let mut text = elements.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    if list.is_multiple_of(2) {
        text.extend(std::iter::repeat_n(' ', PADDED.saturating_sub(text.len())));
    }
    Bytes::from(text)
}

/// A transaction so far.
#[derive(Default)]
struct Draft {
    ops: Vec<Op>,
    /// The reads among them that show the snapshot alone. They must fit into one snapshot whatever the outcome is.
    snapshot: Vec<Op>,
    is_committing: bool,
    /// The timestamp of its snapshot, once it has read.
    read_ts: Option<Timestamp>,
    /// `None` if it is not known.
    commit_ts: Option<Timestamp>,
    reads: ReadLog,
    /// Of a transaction that only reads.
    seen: Option<Seen>,
}

impl Draft {
    /// Adds a read at `start_ts`. Returns the elements.
    fn read(&mut self, list: u64, start_ts: Timestamp, value: Option<&Bytes>) -> Vec<u64> {
        let elements = decode(value);
        self.read_ts = Some(start_ts);
        let is_own = self.ops.iter().any(|op| matches!(op, Op::Append(appended, _) if *appended == list));
        if !is_own {
            self.reads.add(key(list), start_ts, value);
            self.snapshot.push(Op::Read(list, elements.clone()));
        }
        self.ops.push(Op::Read(list, elements.clone()));
        elements
    }
}

/// What a transaction does in one step.
#[derive(Clone, Copy, Debug)]
enum Action {
    Read(u64),
    /// Reads, then appends this element.
    Append(u64, u64),
    /// Reads, and locks the list against others.
    Lock(u64),
    /// Scans all lists of the newest generation, which begins with this one.
    Scan(u64),
}

fn plan(rng: &mut StdRng, book: &mut Book) -> Vec<Action> {
    let first = newest(book);
    if rng.random_bool(AUTOCOMMIT) {
        return vec![Action::Append(first + rng.random_range(0..LISTS), book.next())];
    }
    let count = rng.random_range(1..=5);
    let actions = (0..count).map(|_| {
        let list = first + rng.random_range(0..LISTS);
        match rng.random_range(0..100) {
            0..45 => Action::Append(list, book.next()),
            45..53 => Action::Lock(list),
            53..60 => Action::Scan(first),
            _ => Action::Read(list),
        }
    });
    actions.collect()
}

async fn read(txn: &Transaction, list: u64, draft: &Mutex<Draft>) -> Result<Vec<u64>, TxnError> {
    let value = txn.get(&key(list)).await?;
    Ok(draft.lock().read(list, txn.start_ts(), value.as_ref()))
}

async fn scan(txn: &Transaction, first: u64, draft: &Mutex<Draft>) -> Result<(), TxnError> {
    // Between the lists of this generation are lists of others, which are not looked at.
    let mut range = ScanRange { start: key(0), end: Key::from_static(b"y"), reverse: first.is_multiple_of(4) };
    let mut found = Vec::new();
    loop {
        let page = txn.scan(&range, PAGE).await?;
        found.extend(page.pairs);
        let Some(resume) = page.resume else { break };
        range = range.resume_at(resume);
    }
    for list in first..first + LISTS {
        let value = found.iter().find(|(found, _)| *found == key(list)).map(|(_, value)| value);
        draft.lock().read(list, txn.start_ts(), value);
    }
    Ok(())
}

async fn append(txn: &mut Transaction, list: u64, element: u64, draft: &Mutex<Draft>) -> Result<(), TxnError> {
    let mut elements = read(txn, list, draft).await?;
    elements.push(element);
    txn.put(key(list), encode(list, &elements))?;
    draft.lock().ops.push(Op::Append(list, element));
    Ok(())
}

/// A transaction that only reads, on the snapshot of its plan.
async fn read_only(db: &Database, actions: &[Action], plan: &Plan, draft: &Mutex<Draft>) -> Result<(), TxnError> {
    let (txn, floor) = plan.begin(db).await?;
    for action in actions {
        match *action {
            Action::Read(list) => drop(read(&txn, list, draft).await?),
            Action::Scan(first) => scan(&txn, first, draft).await?,
            Action::Append(..) | Action::Lock(_) => unreachable!("a transaction that writes"),
        }
    }
    draft.lock().seen = Some(Plan::seen(&txn, floor));
    Ok(())
}

/// An explicit transaction. It takes its start_ts with its first read, of a list or of a page of all lists.
async fn explicit(db: &Database, actions: &[Action], plan: &Plan, draft: &Mutex<Draft>) -> Result<(), TxnError> {
    let mut txn = db.begin_deferred();
    plan.set(&mut txn, false);
    for action in actions {
        match *action {
            Action::Read(list) => drop(read(&txn, list, draft).await?),
            Action::Append(list, element) => append(&mut txn, list, element, draft).await?,
            Action::Lock(list) => {
                read(&txn, list, draft).await?;
                txn.lock(key(list))?;
            }
            Action::Scan(first) => scan(&txn, first, draft).await?,
        }
    }
    draft.lock().is_committing = true;
    let commit_ts = txn.commit().await?;
    draft.lock().commit_ts = commit_ts;
    Ok(())
}

/// An append that runs again after a conflict.
async fn autocommit(
    db: &Database,
    (list, element): (u64, u64),
    plan: &Plan,
    draft: &Arc<Mutex<Draft>>,
) -> Result<(), TxnError> {
    db.run(|txn| {
        plan.set(txn, false);
        let draft = Arc::clone(draft);
        async move {
            txn.set_single_statement();
            {
                let mut draft = draft.lock();
                *draft = Draft { is_committing: true, reads: draft.reads.clone(), ..Draft::default() };
            }
            append(txn, list, element, &draft).await
        }
        .boxed()
    })
    .await
}

/// Reads and appends until the book is closed.
pub(crate) async fn session(mut session: Session) {
    let reads = session.reads();
    while !session.is_closed() {
        let Some(gateway) = session.gateway().await else { continue };
        let db = gateway.database.clone();
        let draft = Arc::new(Mutex::new(Draft { reads: reads.clone(), ..Draft::default() }));
        let (actions, began) = {
            let mut book = session.book.borrow_mut();
            (plan(&mut session.rng, &mut book), book.next())
        };
        let only_reads = actions.iter().all(|action| matches!(action, Action::Read(_) | Action::Scan(_)));
        let plan = if only_reads { session.plan_reader(false) } else { session.plan_writer() };
        let outcome = match actions[..] {
            [Action::Append(list, element)] => {
                session.at(&gateway, autocommit(&db, (list, element), &plan, &draft)).await
            }
            _ if only_reads => session.at(&gateway, read_only(&db, &actions, &plan, &draft)).await,
            _ => session.at(&gateway, explicit(&db, &actions, &plan, &draft)).await,
        };
        let ended = session.book.borrow_mut().next();
        let known = session.judge(outcome).await;
        let Draft { ops, snapshot, is_committing, read_ts, commit_ts, seen, .. } = std::mem::take(&mut *draft.lock());
        if let Some(seen) = seen {
            session.saw(&plan, seen);
        }
        // An older snapshot need not show what was acknowledged before.
        let began = if plan.is_fresh() { began } else { 0 };
        let outcome = match known {
            Known::Committed => Outcome::Committed,
            // A transaction whose commit was not asked for commits nothing.
            Known::Unknown if is_committing => Outcome::Unknown,
            Known::Aborted | Known::Unknown => Outcome::Aborted,
        };
        let mut book = session.book.borrow_mut();
        book.counts.lists += u64::from(outcome == Outcome::Committed);
        if outcome != Outcome::Committed && !snapshot.is_empty() {
            add(&mut book, Txn { ops: snapshot, outcome: Outcome::Committed, began, ended }, read_ts, None);
        }
        // Whoever does not know the outcome has read the same, and that is in the history already.
        let read_ts = read_ts.filter(|_| outcome == Outcome::Committed);
        add(&mut book, Txn { ops, outcome, began, ended }, read_ts, commit_ts);
    }
}

/// Adds a transaction to the history, with its timestamps if it has read.
fn add(book: &mut Book, txn: Txn, read_ts: Option<Timestamp>, commit_ts: Option<Timestamp>) {
    let time = |timestamp: Timestamp| Time(timestamp.raw());
    if let Some(read_ts) = read_ts {
        book.times.push(Times { txn: book.history.len(), read: time(read_ts), commit: commit_ts.map(time) });
    }
    book.history.push(txn);
}

/// Adds the last read of every list to the history.
pub(crate) fn add_final(book: &mut Book, found: &BTreeMap<Key, Bytes>) {
    let ops = (0..newest(book) + LISTS).map(|list| Op::Read(list, decode(found.get(&key(list))))).collect();
    let (began, ended) = (book.next(), book.next());
    book.history.push(Txn { ops, outcome: Outcome::Committed, began, ended });
}
