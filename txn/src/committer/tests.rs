//! Golden scripts of the committer: events in, effects out. `UPDATE_GOLDENFILES=1` rewrites the expected output.

use std::error::Error;
use std::fmt::Write as _;

use bytes::Bytes;
use goldenscript::Context;
use kv::api::LockMode;

use super::*;

type Outcome = Result<String, Box<dyn Error>>;

#[derive(goldenscript::Command)]
enum Command {
    /// Begins a commit: begin 100 put=a insert=b delete=c lock=d share=f check=e batch=KEYS in_flight=BATCHES
    /// protocol=one_phase|any greatest=TS. In two phases without a protocol.
    Begin {
        start_ts: u64,
        #[arg(key)]
        protocol: Option<String>,
        #[arg(key)]
        greatest: Option<u64>,
        #[arg(key)]
        batch: Option<usize>,
        #[arg(key)]
        in_flight: Option<usize>,
        #[arg(key, many)]
        ops: Vec<(String, String)>,
    },
    /// The answer to a prewrite: prewritten 0 ok
    Prewritten {
        batch: usize,
        result: String,
        #[arg(key)]
        key: Option<String>,
    },
    /// The answer to an attempt: tried committed|async|locked ts=TS, or tried ERROR key=KEY. FLAGS are `split` and
    /// `unanswered`.
    Tried {
        result: String,
        #[arg(pos, many, optional)]
        flags: Vec<String>,
        #[arg(key)]
        ts: Option<u64>,
        #[arg(key)]
        key: Option<String>,
    },
    /// The answer of the keys of an asynchronous commit: settled locked|committed|missing|two_phase|rolled_back TS
    Settled { result: String, ts: Option<u64> },
    /// The answer to a lock resolution: resolved 0 HOLDERS... after=MS
    Resolved {
        batch: usize,
        #[arg(pos, many, optional)]
        holders: Vec<u64>,
        #[arg(key)]
        after: Option<u64>,
    },
    /// A failed lock resolution.
    Unresolved(usize),
    /// The answer of the oracle; without a timestamp a failure.
    CommitTs(Option<u64>),
    /// The answer to the commit of the primary: committed ok REMAINING...
    Committed {
        result: String,
        #[arg(pos, many, optional)]
        left: Vec<String>,
    },
    /// The answer to the rollback of the primary.
    PrimaryRolledBack(String),
}

struct Runner {
    committer: Option<Committer>,
}

fn ts(raw: u64) -> Timestamp {
    Timestamp::from_raw(raw)
}

fn key(text: &str) -> Key {
    Key::new(text.to_owned())
}

fn error(name: &str, at: &Key, start_ts: Timestamp) -> Result<ClientError, Box<dyn Error>> {
    let key = at.clone();
    Ok(match name {
        "blocked" | "locked" => {
            let primary = key.clone();
            KeyError::Locked(vec![LockInfo { key, primary, start_ts: ts(90), ttl_ms: 3 }]).into()
        }
        "conflict" => {
            let (conflict_start_ts, conflict_commit_ts) = (ts(101), ts(102));
            KeyError::WriteConflict { key, start_ts, conflict_start_ts, conflict_commit_ts }.into()
        }
        "exists" => KeyError::AlreadyExists { key }.into(),
        "rolled_back" => KeyError::RolledBack { start_ts }.into(),
        "committed" => KeyError::Committed { start_ts, commit_ts: ts(777) }.into(),
        "not_found" => KeyError::LockNotFound { start_ts, key }.into(),
        "too_early" => KeyError::CommitTsTooEarly { commit_ts: ts(1), min_commit_ts: ts(2) }.into(),
        "unavailable" => ClientError::Unavailable { waited: Duration::from_secs(20), last: "no leader".to_owned() },
        "undetermined" => ClientError::Undetermined(Default::default()),
        "too_large" => ClientError::TooLarge { bytes: 9, limit: 8 },
        "invalid" => ClientError::Invalid("two of one key".to_owned()),
        "failed" => ClientError::Failed("poisoned".to_owned()),
        other => return Err(format!("unknown result {other}").into()),
    })
}

fn shown(keys: impl IntoIterator<Item = Key>) -> String {
    keys.into_iter().map(|key| key.as_bytes().escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
}

fn raw(ts: Timestamp) -> u64 {
    ts.raw()
}

fn show(effect: Effect) -> String {
    match effect {
        Effect::Prewrite { batch, mutations, attempt } => {
            let op = |mutation: Mutation| format!("{}:{:?}", mutation.key.as_bytes().escape_ascii(), mutation.op);
            let ops: Vec<String> = mutations.into_iter().map(op).collect();
            format!("prewrite {} attempt {attempt}: {}", batch.0, ops.join(" "))
        }
        Effect::TryCommit { mutations, attempt, async_commit } => {
            let keys = shown(mutations.into_iter().map(|mutation| mutation.key));
            format!("try attempt {attempt}, async {async_commit}: {keys}")
        }
        Effect::Settle { keys } => format!("settle {}", shown(keys)),
        Effect::Resolve { batch, locks } => format!("resolve {}: {}", batch.0, shown(locks.into_iter().map(|l| l.key))),
        Effect::FetchCommitTs => "fetch commit_ts".to_owned(),
        Effect::CommitPrimary { commit_ts, others } => {
            format!("commit primary at {}, others {}", raw(commit_ts), shown(others))
        }
        Effect::RollbackPrimary => "roll back primary".to_owned(),
        Effect::Finish(Ok(None)) => "FINISH nothing to commit".to_owned(),
        Effect::Finish(Ok(Some(commit_ts))) => format!("FINISH committed at {}", raw(commit_ts)),
        Effect::Finish(Err(TxnError::Undetermined { .. })) => "FINISH Undetermined".to_owned(),
        Effect::Finish(Err(error)) => format!("FINISH {error:?}"),
        Effect::CommitSecondaries { keys, shared, commit_ts } if shared.is_empty() => {
            format!("then commit at {}: {}", raw(commit_ts), shown(keys))
        }
        Effect::CommitSecondaries { keys, shared, commit_ts } => {
            format!("then commit at {}: {}, and resolve {}", raw(commit_ts), shown(keys), shown(shared))
        }
        Effect::Rollback { keys } => format!("then roll back {}", shown(keys)),
    }
}

impl Runner {
    fn begin(&mut self, command: &Command) -> Result<Vec<Effect>, Box<dyn Error>> {
        let Command::Begin { start_ts, protocol, greatest, batch, in_flight, ops } = command else {
            return Err("not a begin".into());
        };
        let mutation = |(op, at): &(String, String)| {
            let value = || Bytes::from_static(b"v");
            let op = match op.as_str() {
                "put" => MutationOp::Put(value()),
                "insert" => MutationOp::Insert(value()),
                "delete" => MutationOp::Delete,
                "lock" => MutationOp::Lock,
                "share" => MutationOp::Shared(LockMode::Share),
                "check" => MutationOp::CheckNotExists,
                other => return Err(format!("unknown change {other}")),
            };
            Ok(Mutation::new(key(at), op))
        };
        let mutations = ops.iter().map(mutation).collect::<Result<Vec<_>, _>>()?;
        let limits = CommitLimits {
            batch_keys: batch.unwrap_or(100),
            batches_in_flight: in_flight.unwrap_or(100),
            commit_ts_retries: 2,
            one_phase: protocol.is_some(),
            async_keys: if protocol.as_deref() == Some("any") { 3 } else { 0 },
            ..CommitLimits::default()
        };
        let bound = greatest.map(|greatest| CommitBound::new(ts(greatest)));
        let mut committer = Committer::new(mutations, bound, limits);
        let effects = committer.start(ts(*start_ts));
        self.committer = Some(committer);
        Ok(effects)
    }

    fn event(&self, command: &Command, start_ts: Timestamp, primary: &Key) -> Result<Event, Box<dyn Error>> {
        Ok(match command {
            Command::Begin { .. } => return Err("not an answer".into()),
            Command::Prewritten { batch, result, key: at } => {
                let at = at.as_deref().map_or_else(|| primary.clone(), key);
                let result = if result == "ok" { Ok(()) } else { Err(error(result, &at, start_ts)?) };
                Event::Prewritten(BatchId(*batch), result)
            }
            Command::Tried { result, flags, ts: at, key: named } => {
                let commit_ts = at.map_or(Timestamp::ZERO, ts);
                let named = named.as_deref().map_or_else(|| primary.clone(), key);
                let result = match result.as_str() {
                    "committed" => Ok(Prewritten::Committed { commit_ts }),
                    "async" => Ok(Prewritten::AsyncLocked { commit_ts }),
                    "locked" => Ok(Prewritten::Locked),
                    other => Err(error(other, &named, start_ts)?),
                };
                let has = |flag: &str| flags.iter().any(|given| given == flag);
                let (is_whole, unanswered) = (!has("split"), has("unanswered"));
                Event::Tried(CommitAttempted { result, is_whole, unanswered })
            }
            Command::Settled { result, ts: at } => {
                let commit_ts = at.map_or(Timestamp::ZERO, ts);
                Event::Settled(match result.as_str() {
                    "locked" => Ok(LocksStatus::Locked { min_commit_ts: commit_ts }),
                    "committed" => Ok(LocksStatus::Committed { commit_ts }),
                    "missing" => Ok(LocksStatus::Missing),
                    "two_phase" => Ok(LocksStatus::TwoPhase),
                    "rolled_back" => Ok(LocksStatus::RolledBack),
                    other => Err(error(other, primary, start_ts)?),
                })
            }
            Command::Resolved { batch, holders, .. } => {
                Event::Resolved(BatchId(*batch), Ok(holders.iter().copied().map(ts).collect()))
            }
            Command::Unresolved(batch) => {
                Event::Resolved(BatchId(*batch), Err(TxnError::Unavailable("no leader".to_owned())))
            }
            Command::CommitTs(Some(raw)) => Event::CommitTs(Ok(ts(*raw))),
            Command::CommitTs(None) => Event::CommitTs(Err(TsoError::Unavailable("no oracle".to_owned()))),
            Command::Committed { result, left } if result == "ok" => {
                Event::PrimaryCommitted(Ok(left.iter().map(|at| key(at)).collect()))
            }
            Command::Committed { result, .. } => Event::PrimaryCommitted(Err(error(result, primary, start_ts)?)),
            Command::PrimaryRolledBack(result) if result == "ok" => Event::PrimaryRolledBack(Ok(())),
            Command::PrimaryRolledBack(result) => Event::PrimaryRolledBack(Err(error(result, primary, start_ts)?)),
        })
    }
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Outcome {
        let effects = if let Command::Begin { .. } = command {
            self.begin(command)?
        } else {
            let committer = self.committer.as_ref().ok_or("no commit was begun")?;
            let (start_ts, primary) = (committer.start_ts, committer.primary().clone());
            let event = self.event(command, start_ts, &primary)?;
            let elapsed = match command {
                Command::Resolved { after: Some(ms), .. } => Duration::from_millis(*ms),
                _ => Duration::ZERO,
            };
            let committer = self.committer.as_mut().ok_or("no commit was begun")?;
            committer.step(event, elapsed)
        };
        let mut output = String::new();
        for effect in effects {
            writeln!(output, "{}", show(effect))?;
        }
        Ok(output)
    }
}

fn script(name: &str) {
    let path = format!("{}/tests/scripts/committer/{name}", env!("CARGO_MANIFEST_DIR"));
    goldenscript::run(&mut Runner { committer: None }, path).expect("script runs");
}

#[test]
fn shared_locks() {
    script("shared_locks");
}

#[test]
fn commits() {
    script("commits");
}

#[test]
fn refused_prewrites() {
    script("refused_prewrites");
}

#[test]
fn locks_in_the_way() {
    script("locks_in_the_way");
}

#[test]
fn commit_point() {
    script("commit_point");
}

#[test]
fn one_phase() {
    script("one_phase");
}

#[test]
fn async_commit() {
    script("async_commit");
}

#[test]
fn batches_are_bounded_by_bytes() {
    let sizes = |mutations: Vec<Mutation>, batch_bytes: usize| -> Vec<usize> {
        let limits = CommitLimits { batch_bytes, ..CommitLimits::default() };
        let mut committer = Committer::new(mutations, None, limits);
        let len = |effect: Effect| match effect {
            Effect::Prewrite { mutations, .. } => mutations.len(),
            other => panic!("{other:?}"),
        };
        committer.start(ts(1)).into_iter().map(len).collect()
    };
    let put = |n: u8| Mutation::new(Key::new(vec![n]), MutationOp::Put(Bytes::from(vec![n; 1_000])));
    assert_eq!(sizes((0..10).map(put).collect(), 2_500), vec![2; 5]);
    // Every lock contains the primary's key: 16 KiB for each of the small mutations after it.
    let primary = Mutation::new(Key::new(vec![0; 16 << 10]), MutationOp::Delete);
    let small = (1..=100).map(|n| Mutation::new(Key::new(vec![n]), MutationOp::Lock));
    let sizes = sizes([primary].into_iter().chain(small).collect(), 400 << 10);
    assert!(sizes.len() > 3 && sizes.iter().all(|len| *len <= 26), "{sizes:?}");
}

/// The bound counts when the commit_ts arrives, and before the primary is committed.
#[test]
fn a_commit_ts_above_the_bound_is_a_conflict() {
    for (greatest, raised, commits) in [(20, 20, true), (19, 19, false), (19, 20, true)] {
        let bound = CommitBound::new(ts(greatest));
        let mutation = Mutation::new(key("a"), MutationOp::Delete);
        let limits = CommitLimits { one_phase: false, async_keys: 0, ..CommitLimits::default() };
        let mut committer = Committer::new(vec![mutation], Some(bound.clone()), limits);
        committer.start(ts(10));
        committer.step(Event::Prewritten(BatchId(0), Ok(())), Duration::ZERO);
        bound.raise(ts(raised));
        let effects = committer.step(Event::CommitTs(Ok(ts(20))), Duration::ZERO);
        match &effects[..] {
            [Effect::CommitPrimary { .. }] => assert!(commits, "{greatest}"),
            [Effect::Finish(Err(TxnError::Conflict(_))), Effect::Rollback { .. }] => assert!(!commits, "{greatest}"),
            other => panic!("{other:?}"),
        }
    }
}
