//! How sessions read, as SQL lets them: which snapshot, which replicas, which proof, with hedges or without. And what
//! a session must see: the order of its own snapshots and commits.

use std::sync::Arc;
use std::time::Duration;

use kv::api::ReadPath;
use kv::client::{HedgePolicy, ProofPolicy, ReadOptions, ReadTrace, ReplicaPolicy};
use rand::Rng;
use rand::rngs::StdRng;
use tso::Timestamp;
use txn::{Database, Transaction, TxnError};

/// The oldest snapshot that a session asks for.
const AGE_MAX_MS: u64 = 2_000;

/// Which snapshot a transaction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A fresh one of its own. Only such a transaction writes.
    Own,
    /// A fresh one, which the replica of its first read takes.
    Shared,
    /// The newest that a replica can prove, not below what the session has seen.
    Session,
    /// One of this age, in milliseconds.
    Exact(u64),
    /// The newest that a replica can prove, of this age at most.
    AtMost(u64),
    /// What a replica has applied, without a proof.
    Unproven,
}

/// How a transaction reads.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) moment: Moment,
    /// `None`: leaders serve it, and nobody counts.
    reads: Option<Choice>,
    /// What the session has seen or committed.
    token: Timestamp,
}

/// The settings of a session.
#[derive(Clone, Copy, Debug)]
struct Choice {
    replica: ReplicaPolicy,
    proof: ProofPolicy,
    hedge: HedgePolicy,
    patience: Duration,
}

/// A transaction that has read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) start_ts: Timestamp,
    /// The least snapshot that it might have.
    floor: Option<Timestamp>,
    /// The proof of its last request.
    path: Option<ReadPath>,
}

impl Plan {
    /// A plan that reads at leaders.
    fn plain() -> Plan {
        Plan { moment: Moment::Own, reads: None, token: Timestamp::ZERO }
    }

    /// Draws how a transaction reads that may write.
    pub(crate) fn of_writer(rng: &mut StdRng, chance: f64, token: Timestamp) -> Plan {
        let reads = rng.random_bool(chance).then(|| Choice::draw(rng));
        Plan { moment: Moment::Own, reads, token }
    }

    /// Draws how a transaction reads that only reads. `any`: also without a proof.
    pub(crate) fn of_reader(rng: &mut StdRng, (chance, ages): (f64, bool), token: Timestamp, any: bool) -> Plan {
        if !rng.random_bool(chance) {
            return Plan::plain();
        }
        let age = rng.random_range(1..=AGE_MAX_MS);
        let moment = match rng.random_range(0..20) {
            0..3 => Moment::Own,
            3..8 => Moment::Shared,
            8..14 => Moment::Session,
            14..16 if ages => Moment::Exact(age),
            16..19 if ages => Moment::AtMost(age),
            _ if any => Moment::Unproven,
            _ => Moment::Session,
        };
        let mut choice = Choice::draw(rng);
        if moment == Moment::Unproven {
            choice.proof = ProofPolicy::Unproven;
        }
        Plan { moment, reads: Some(choice), token }
    }

    /// Whether it sees every commit that was acknowledged before.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self.moment, Moment::Own | Moment::Shared)
    }

    pub(crate) fn is_proven(&self) -> bool {
        self.moment != Moment::Unproven
    }

    /// Whether what it sees is never older than what its session saw before.
    pub(crate) fn is_ordered(&self) -> bool {
        self.is_fresh() || self.moment == Moment::Session
    }

    /// Sets how a transaction with a snapshot of its own reads, as a session does before each statement.
    pub(crate) fn set(&self, txn: &mut Transaction, read_only: bool) {
        txn.set_reads(self.reads.map(|reads| reads.options(None, read_only)));
    }

    /// Begins a transaction that only reads, as a session does for its statement.
    pub(crate) async fn begin(&self, db: &Database) -> Result<(Transaction, Option<Timestamp>), TxnError> {
        let mut is_issued = true;
        let floor = match self.moment {
            Moment::Own => {
                let mut txn = db.begin_deferred();
                self.set(&mut txn, true);
                return Ok((txn, None));
            }
            Moment::Exact(age) => {
                let mut txn = db.begin_at(before(db.now().await?, age)).await?;
                self.set(&mut txn, true);
                return Ok((txn, None));
            }
            Moment::Shared => None,
            Moment::Unproven => Some(Timestamp::ZERO),
            Moment::AtMost(age) => {
                let floor = before(db.now().await?, age);
                is_issued = match db.check_issued(floor).await {
                    // A session knows the oracle's time only about. Then a fresh snapshot is new enough.
                    Err(TxnError::InFuture(_)) => false,
                    checked => checked.map(|()| true)?,
                };
                Some(floor)
            }
            Moment::Session => {
                // The session may have come from another gateway.
                db.check_issued(self.token).await?;
                Some(self.token)
            }
        };
        let mut txn = db.begin_shared();
        txn.set_reads(self.reads.map(|reads| reads.options(floor, true)));
        Ok((txn, floor.filter(|_| is_issued && self.is_proven())))
    }

    /// What is known of a transaction of this plan that has read.
    pub(crate) fn seen(txn: &Transaction, floor: Option<Timestamp>) -> Seen {
        let last = txn.reads().and_then(|reads| reads.trace.last());
        Seen { start_ts: txn.start_ts(), floor, path: last.map(|report| report.path) }
    }

    /// What is wrong with the snapshot that it got.
    pub(crate) fn check(&self, seen: Seen) -> Result<(), String> {
        let Seen { start_ts, floor, .. } = seen;
        match self.moment {
            Moment::Session if start_ts < self.token => {
                Err(format!("a session snapshot at {start_ts} is below the session's {}", self.token))
            }
            _ if floor.is_some_and(|floor| start_ts < floor) => {
                Err(format!("a bounded read at {start_ts} is below its floor {floor:?}"))
            }
            _ => Ok(()),
        }
    }

    /// What it is counted as.
    pub(crate) fn kinds(&self, seen: Seen) -> Vec<&'static str> {
        let Some(Choice { replica, proof, .. }) = self.reads else { return Vec::new() };
        let mut kinds = vec![match replica {
            ReplicaPolicy::Leader => "policy leader",
            ReplicaPolicy::Follower => "policy follower",
            ReplicaPolicy::Closest => "policy closest",
            ReplicaPolicy::Any => "policy any",
            ReplicaPolicy::Learner => "policy learner",
        }];
        kinds.extend((proof == ProofPolicy::ReadIndex).then_some("proof read index"));
        kinds.push(match self.moment {
            Moment::Own => "own snapshot",
            Moment::Shared if matches!(seen.path, Some(ReadPath::Grant | ReadPath::ReadIndex)) => {
                "shared at a follower"
            }
            Moment::Shared => "shared at a leader",
            Moment::Session => "session snapshot",
            Moment::Exact(_) => "exact age",
            Moment::AtMost(_) => "bounded age",
            Moment::Unproven => "unproven",
        });
        kinds
    }
}

impl Choice {
    fn draw(rng: &mut StdRng) -> Choice {
        let replica = match rng.random_range(0..10) {
            0 => ReplicaPolicy::Leader,
            1..4 => ReplicaPolicy::Follower,
            4..7 => ReplicaPolicy::Closest,
            7..9 => ReplicaPolicy::Any,
            _ => ReplicaPolicy::Learner,
        };
        let proof = if rng.random_bool(0.2) { ProofPolicy::ReadIndex } else { ProofPolicy::Grants };
        let hedge = match rng.random_range(0..3) {
            0 => HedgePolicy::Off,
            1 => HedgePolicy::Auto,
            _ => HedgePolicy::After(Duration::from_millis(rng.random_range(0..20))),
        };
        let ms = if rng.random_bool(0.5) { 5_000 } else { rng.random_range(20..1_000) };
        Choice { replica, proof, hedge, patience: Duration::from_millis(ms) }
    }

    fn options(self, floor: Option<Timestamp>, read_only: bool) -> Arc<ReadOptions> {
        let Choice { replica, proof, hedge, patience } = self;
        Arc::new(ReadOptions { replica, proof, hedge, floor, read_only, patience, trace: ReadTrace::default() })
    }
}

/// A timestamp of this age. Not zero, which stands for none.
fn before(now: Timestamp, age_ms: u64) -> Timestamp {
    Timestamp::new(now.physical_ms().saturating_sub(age_ms).max(1), 0)
}
