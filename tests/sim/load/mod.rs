//! The sessions of a run: transfers and audits (`bank`), row locks (`counters`, `parents`), transactions on lists
//! (`lists`), autocommit on registers (`registers`), and what they share: gateways, the book of what happened, and
//! outcomes. `surface` draws how they read, and `reads` repeats their reads.

pub(crate) mod bank;
pub(crate) mod counters;
pub(crate) mod lists;
pub(crate) mod parents;
mod reads;
pub(crate) mod registers;
mod surface;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kv::Key;
use rand::Rng;
use rand::rngs::StdRng;
use simulator::checkers::history::Register;
use simulator::checkers::replay::Times;
use simulator::checkers::snapshot_isolation::Txn;
use simulator::checkers::{Checked, Violation};
use tso::Timestamp;
use txn::TxnError;

use crate::nodes::{Gateway, Nodes};
use crate::options::Options;
use bank::Transfer;
pub(crate) use reads::ReadLog;
use surface::{Plan, Seen};

/// The pause of a session that finds no gateway, or whose gateway failed.
const FAILURE_PAUSE: Duration = Duration::from_millis(200);
/// A session leaves at a random time up to this, if it leaves in the middle of a transaction.
const CANCEL_MS: u64 = 60;

/// How often what happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) transfers: u64,
    pub(crate) audits: u64,
    /// Acknowledged transactions on lists.
    pub(crate) lists: u64,
    /// Those whose snapshot and commit_ts are known.
    pub(crate) replayed: u64,
    /// Whether the lists have write skew, which snapshot isolation allows.
    pub(crate) write_skews: u64,
    pub(crate) register_writes: u64,
    pub(crate) register_reads: u64,
    /// Acknowledged transactions on counters.
    pub(crate) additions: u64,
    /// Acknowledged transactions on parents and children, and children among them whose parent was only locked.
    pub(crate) family: u64,
    pub(crate) children: u64,
    /// Acknowledged removals of parents after a look for children.
    pub(crate) removals: u64,
    pub(crate) conflicts: u64,
    pub(crate) deadlocks: u64,
    /// Row locks that were not free in time.
    pub(crate) not_available: u64,
    pub(crate) unavailable: u64,
    pub(crate) unknown: u64,
    /// Transactions whose session left, or lost its gateway.
    pub(crate) left: u64,
    /// Reads of snapshots that the safe point had passed.
    pub(crate) too_old: u64,
    /// Snapshots that were held and read again.
    pub(crate) held: u64,
    /// Rounds that raised the safe point everywhere.
    pub(crate) rounds: u64,
}

/// What happened, and the first violation.
#[derive(Default)]
pub(crate) struct Book {
    pub(crate) counts: Counts,
    pub(crate) violation: Option<String>,
    /// Sessions begin nothing new.
    pub(crate) is_closed: bool,
    pub(crate) transfers: Vec<Transfer>,
    /// What is known of each transaction on counters.
    pub(crate) additions: Vec<Known>,
    /// The number of transactions on parents and children.
    pub(crate) children: usize,
    pub(crate) family: parents::Family,
    pub(crate) history: Vec<Txn>,
    /// The timestamps of those transactions that have read.
    pub(crate) times: Vec<Times>,
    pub(crate) registers: Vec<Register>,
    /// Acknowledged writes of registers whose commit_ts is known.
    pub(crate) commits: Vec<registers::Commit>,
    pub(crate) reads: ReadLog,
    /// The greatest safe point that was chosen. Nothing is read below it any more.
    pub(crate) safe_point: Timestamp,
    /// Transactions with options, by what they ask for.
    pub(crate) kinds: BTreeMap<&'static str, u64>,
    /// The last moment or element.
    last: u64,
}

impl Book {
    /// The next moment, element or value: above all before.
    pub(crate) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Every key that a session may have written.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let transfers = (0..self.transfers.len()).map(bank::record);
        let accounts = (0..bank::ACCOUNTS).map(bank::account);
        let registers = (0..self.registers.len()).map(registers::key);
        let counters = (0..counters::COUNTERS).map(counters::counter);
        let additions = (0..self.additions.len()).map(counters::record);
        let family = (0..parents::PARENTS).map(parents::parent).chain((0..self.children).map(parents::child));
        let locked = counters.chain(additions).chain(family);
        accounts.chain(transfers).chain(registers).chain(locked).chain(lists::keys(self)).collect()
    }

    pub(crate) fn check(&self) -> Checked {
        match &self.violation {
            Some(what) => Err(Violation(what.clone())),
            None => Ok(()),
        }
    }
}

pub(crate) type SharedBook = Rc<RefCell<Book>>;

/// What a session knows of a transaction that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Committed,
    /// Certainly not committed, nor ever.
    Aborted,
    Unknown,
}

/// Runs one session's transactions: draws gateways, runs work at them, and counts outcomes.
pub(crate) struct Session {
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) book: SharedBook,
    pub(crate) rng: StdRng,
    /// The largest of its last commit and its last snapshot.
    token: Timestamp,
    /// The share of transactions that choose how they read, and whether by the age of their snapshot too.
    surface: (f64, bool),
    name: String,
    pause: Duration,
    cancels: f64,
}

impl Session {
    pub(crate) fn new(options: &Options, nodes: &Arc<Nodes>, book: &SharedBook, name: String, rng: StdRng) -> Session {
        let (pause, cancels, surface) = (options.pause, options.coordinators.cancels, (options.surface, options.ages));
        let (nodes, book) = (Arc::clone(nodes), Rc::clone(book));
        Session { nodes, book, rng, token: Timestamp::ZERO, surface, name, pause, cancels }
    }

    /// The gateway of a random node, after a pause. `None` if that node does not run.
    pub(crate) async fn gateway(&mut self) -> Option<Gateway> {
        let pause = self.rng.random_range(Duration::ZERO..=self.pause);
        tokio::time::sleep(pause).await;
        let store = self.nodes.stores[self.rng.random_range(0..self.nodes.stores.len())];
        let gateway = self.nodes.gateway(store);
        if gateway.is_none() {
            tokio::time::sleep(FAILURE_PAUSE).await;
        }
        gateway
    }

    /// Draws how the next transaction reads, which may write.
    pub(crate) fn plan_writer(&mut self) -> Plan {
        Plan::of_writer(&mut self.rng, self.surface.0, self.token)
    }

    /// Draws how the next transaction reads, which does nothing else. `any`: also without a proof.
    pub(crate) fn plan_reader(&mut self, any: bool) -> Plan {
        Plan::of_reader(&mut self.rng, self.surface, self.token, any)
    }

    /// A transaction of this plan has read. Checks its snapshot against what the session has seen before.
    pub(crate) fn saw(&mut self, plan: &Plan, seen: Seen) {
        let mut book = self.book.borrow_mut();
        for kind in plan.kinds(seen) {
            *book.kinds.entry(kind).or_default() += 1;
        }
        if let Err(what) = plan.check(seen) {
            book.violation.get_or_insert(what);
        }
        if plan.is_proven() {
            self.token = self.token.max(seen.start_ts);
        }
    }

    /// The session knows that it has committed.
    pub(crate) fn committed(&mut self, commit_ts: Timestamp) {
        self.token = self.token.max(commit_ts);
    }

    /// Where the session notes what it reads.
    pub(crate) fn reads(&self) -> ReadLog {
        self.book.borrow().reads.clone()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.book.borrow().is_closed
    }

    /// Runs `work` at a gateway until it ends, or the session leaves. `None` if that came first: the outcome is
    /// unknown.
    pub(crate) async fn at<T>(&mut self, gateway: &Gateway, work: impl Future<Output = T>) -> Option<T> {
        let leaves = self.rng.random_bool(self.cancels).then(|| self.rng.random_range(0..CANCEL_MS));
        let leaving = async {
            match leaves {
                Some(ms) if !self.is_closed() => tokio::time::sleep(Duration::from_millis(ms)).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = gateway.ended.cancelled() => None,
            done = work => Some(done),
            () = leaving => None,
        }
    }

    /// Counts an outcome. `None`: the session left before it knew it. Pauses after a failure.
    pub(crate) async fn judge(&mut self, outcome: Option<Result<(), TxnError>>) -> Known {
        self.nodes.note(format!("{}: {outcome:?}", self.name));
        let (known, pauses) = {
            let mut book = self.book.borrow_mut();
            match outcome {
                Some(Ok(())) => (Known::Committed, false),
                None => {
                    book.counts.left += 1;
                    (Known::Unknown, true)
                }
                Some(Err(TxnError::Conflict(_))) => {
                    book.counts.conflicts += 1;
                    (Known::Aborted, false)
                }
                Some(Err(TxnError::Deadlock { .. })) => {
                    book.counts.deadlocks += 1;
                    (Known::Aborted, false)
                }
                Some(Err(TxnError::LockTimeout { .. } | TxnError::NotAvailable { .. })) => {
                    book.counts.not_available += 1;
                    (Known::Aborted, false)
                }
                // A session knows the oracle's time only about, so what it takes for the past may not be.
                Some(Err(TxnError::InFuture(_))) => (Known::Aborted, false),
                // Of the past, or of a replica that lags. The safe point passes no other: `collection::holder`.
                Some(Err(TxnError::SnapshotTooOld(_))) => {
                    book.counts.too_old += 1;
                    (Known::Aborted, false)
                }
                Some(Err(TxnError::Undetermined { .. })) => {
                    book.counts.unknown += 1;
                    (Known::Unknown, true)
                }
                Some(Err(TxnError::Unavailable(_) | TxnError::Overloaded(_))) => {
                    book.counts.unavailable += 1;
                    (Known::Aborted, true)
                }
                Some(Err(error)) => {
                    book.violation.get_or_insert_with(|| format!("a transaction failed: {error}"));
                    (Known::Aborted, true)
                }
            }
        };
        if pauses {
            tokio::time::sleep(FAILURE_PAUSE).await;
        }
        known
    }
}
