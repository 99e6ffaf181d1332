//! Golden scripts of the Percolator actions and of reads: request histories, with the records that each step writes.
//! Every script runs on the in-memory store and on RocksDB, with the same output.
//!
//! Timestamps are in milliseconds (`10`), optionally with a counter (`10.1`). The value `long` is too long to be
//! inline. `UPDATE_GOLDENFILES=1` rewrites the expected output; review the diff.
//!
//! ```text
//! prewrite START primary=KEY [ttl=MS] [put=KEY/VALUE] [insert=KEY/VALUE] [delete=KEY] [lock=KEY] [absent=KEY] ...
//!          [key_share=KEY] [share=KEY] [no_key_update=KEY] [seen=TS]  shared locks, and what is seen of their rows
//!          [commit=TS]  in one phase;  [async=TS [secondary=KEY] ...]  with the async flag
//! commit START COMMIT KEY ...        rollback START KEY ...
//! resolve START KEY ... [at=COMMIT]  heartbeat START KEY ttl=MS
//! status START KEY now=TS [rollback_if_missing] [reader=TS] [fell_back]
//! check_locks START KEY ... [reader=TS] [mark]
//! get TS KEY ... [pass=START]
//! scan TS [FROM [TO]] [limit=N] [bytes=N] [steps=N] [reverse] [keys_only] [pass=START]
//! dump
//! ```

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

use bytes::Bytes;
use engine::store::memory::MemoryStore;
use engine::store::rocks::{RocksOptions, RocksStore};
use engine::store::{Reader, Store};
use engine::{Cf, Op};
use goldenscript::{Argument, Command, Context};
use kv::Key;
use kv::api::{
    CheckLocksRequest, CheckTxnStatusRequest, LockMode, LocksStatus, Mutation, MutationOp, PrewriteRequest,
    RequestBody, Response, ScanRequest, TxnStatus,
};
use kv::error::ActionError;
use kv::key::split_ts;
use kv::mvcc::mark::is_mark;
use kv::mvcc::{LockRecord, LockRow, SharedLock, WriteKind, WriteRecord, reader};
use kv::percolator::{self, PrewriteAction};
use tso::Timestamp;

use super::page::scan;

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Runner<S> {
    store: S,
}

impl<S: Store> goldenscript::Runner for Runner<S> {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &Context) -> Outcome<String> {
        let args = Args::new(command)?;
        match command.name.as_str() {
            "prewrite" => {
                let secondaries: Vec<Key> = args.values("secondary").map(key).collect();
                let action = match (args.value("commit"), args.value("async")) {
                    (Some(commit_ts), _) => PrewriteAction::Commit(ts(commit_ts)?),
                    (_, Some(min)) => PrewriteAction::AsyncLock { min_commit_ts: ts(min)?, secondaries: &secondaries },
                    (None, None) => PrewriteAction::Lock,
                };
                self.act_with(prewrite(&args)?, action)
            }
            "commit" => {
                let [start_ts, commit_ts] = [args.ts(0)?, args.ts(1)?];
                self.act(RequestBody::Commit { keys: args.keys(2), start_ts, commit_ts })
            }
            "rollback" => self.act(RequestBody::Rollback { keys: args.keys(1), start_ts: args.ts(0)? }),
            "resolve" => {
                let commit_ts = args.value("at").map(ts).transpose()?;
                self.act(RequestBody::ResolveLock { keys: args.keys(1), start_ts: args.ts(0)?, commit_ts })
            }
            "heartbeat" => {
                let ttl_ms = args.value("ttl").ok_or("ttl=MS")?.parse()?;
                self.act(RequestBody::Heartbeat { primary: args.key(1)?, start_ts: args.ts(0)?, ttl_ms })
            }
            "status" => self.act(RequestBody::CheckTxnStatus(CheckTxnStatusRequest {
                primary: args.key(1)?,
                lock_ts: args.ts(0)?,
                current_ts: ts(args.value("now").ok_or("now=TS")?)?,
                rollback_if_missing: args.has("rollback_if_missing"),
                reader_ts: args.value("reader").map_or(Ok(Timestamp::ZERO), ts)?,
                fell_back: args.has("fell_back"),
            })),
            "check_locks" => self.act(RequestBody::CheckLocks(CheckLocksRequest {
                keys: args.keys(1),
                lock_ts: args.ts(0)?,
                reader_ts: args.value("reader").map_or(Ok(Timestamp::ZERO), ts)?,
                mark_missing: args.has("mark"),
            })),
            "get" => self.get(&args),
            "scan" => self.scan(&args),
            "dump" => self.dump(),
            other => Err(format!("unknown command {other}").into()),
        }
    }
}

impl<S: Store> Runner<S> {
    /// Evaluates a request and writes its batch. Prints the response and the changes.
    fn act(&mut self, body: RequestBody) -> Outcome<String> {
        self.act_with(body, PrewriteAction::Lock)
    }

    fn act_with(&mut self, body: RequestBody, action: PrewriteAction<'_>) -> Outcome<String> {
        let (batch, response) = match percolator::evaluate(&self.store.snapshot(), &body, action) {
            Ok(effects) => effects,
            Err(error) => return Ok(format!("{error}\n")),
        };
        let mut out = match response {
            Response::Status(TxnStatus::Alive { ttl_ms, min_commit_ts }) => {
                format!("alive for {ttl_ms} ms, commits at {} or later\n", show_ts(min_commit_ts))
            }
            Response::Status(TxnStatus::Async { ttl_ms, min_commit_ts, secondaries }) => {
                format!("async for {ttl_ms} ms, at {} or later, with {secondaries:?}\n", show_ts(min_commit_ts))
            }
            Response::AsyncLocked { min_commit_ts: ts } => format!("async, at {} or later\n", show_ts(ts)),
            Response::Locks(LocksStatus::Locked { min_commit_ts: ts }) => format!("all locked, at {}\n", show_ts(ts)),
            Response::Locks(LocksStatus::Committed { commit_ts: ts }) | Response::Committed { commit_ts: ts } => {
                format!("the transaction committed at {}\n", show_ts(ts))
            }
            Response::Status(TxnStatus::Committed { commit_ts }) => format!("committed at {}\n", show_ts(commit_ts)),
            Response::Status(status) => format!("{status:?}\n"),
            Response::Ttl(ttl) => format!("ttl {ttl} ms\n"),
            other => format!("{other:?}\n"),
        };
        for op in batch.iter() {
            match op {
                Op::Put { cf, key, value } => writeln!(out, "  put    {}", show(cf, key, value)?)?,
                Op::Delete { cf, key } => writeln!(out, "  delete {} {}", cf.name(), show_key(cf, key)?)?,
                Op::DeleteRange { .. } => return Err("no action deletes a range".into()),
            }
        }
        self.store.write(&batch)?;
        Ok(out)
    }

    fn get(&self, args: &Args<'_>) -> Outcome<String> {
        let (at, keys) = (args.ts(0)?, args.keys(1));
        let pass = args.values("pass").map(ts).collect::<Outcome<Vec<_>>>()?;
        if let [key] = keys.as_slice() {
            return Ok(match reader::get(&self.store.snapshot(), key, at, &pass) {
                Ok(Some(value)) => format!("{}\n", show_value(&value)),
                Ok(None) => "nothing\n".to_owned(),
                Err(error) => format!("{error}\n"),
            });
        }
        show_pairs(reader::batch_get(&self.store.snapshot(), &keys, (at, &pass), usize::MAX).map(|page| page.pairs))
    }

    fn scan(&self, args: &Args<'_>) -> Outcome<String> {
        let number = |name: &str, default: u32| args.value(name).map_or(Ok(default), str::parse);
        let request = ScanRequest {
            start: args.key(1).unwrap_or_default(),
            end: args.key(2).unwrap_or_default(),
            start_ts: args.ts(0)?,
            limit: number("limit", 100)?,
            max_bytes: number("bytes", 10_000)?,
            reverse: args.has("reverse"),
            keys_only: args.has("keys_only"),
            pass: args.values("pass").map(ts).collect::<Outcome<_>>()?,
        };
        let page = scan(&self.store.snapshot(), &request, number("steps", 10_000)? as usize);
        match page {
            Ok(page) => {
                let mut out = show_pairs(Ok(page.pairs))?;
                let resume = page.resume.map_or(String::new(), |key| format!(", resume at {key:?}"));
                writeln!(out, "ended by {:?}{resume}", page.end)?;
                Ok(out)
            }
            Err(error) => Ok(format!("{error}\n")),
        }
    }

    fn dump(&self) -> Outcome<String> {
        let mut out = String::new();
        let snapshot = self.store.snapshot();
        for cf in Cf::DATA {
            let mut cursor = snapshot.cursor(cf, b"", b"")?;
            let mut found = cursor.seek_to_first()?;
            while found {
                writeln!(out, "{}", show(cf, cursor.key(), cursor.value())?)?;
                found = cursor.next()?;
            }
        }
        Ok(if out.is_empty() { "empty\n".to_owned() } else { out })
    }
}

/// The arguments of a command. Named ones may repeat.
struct Args<'a> {
    positional: Vec<&'a str>,
    named: Vec<(&'a str, &'a str)>,
}

impl<'a> Args<'a> {
    /// Positional words that are flags.
    const FLAGS: [&'static str; 5] = ["reverse", "keys_only", "rollback_if_missing", "fell_back", "mark"];

    fn new(command: &'a Command) -> Outcome<Args<'a>> {
        let mut args = Args { positional: Vec::new(), named: Vec::new() };
        for arg in &command.args {
            match arg {
                Argument::Positional(value) if Args::FLAGS.contains(&value.as_str()) => args.named.push((value, "")),
                Argument::Positional(value) => args.positional.push(value),
                Argument::KeyValue(key, value) => args.named.push((key, value)),
                other => return Err(format!("unknown argument {other}").into()),
            }
        }
        Ok(args)
    }

    fn ts(&self, at: usize) -> Outcome<Timestamp> {
        ts(self.positional.get(at).ok_or("a timestamp is missing")?)
    }

    fn key(&self, at: usize) -> Outcome<Key> {
        Ok(key(self.positional.get(at).ok_or("a key is missing")?))
    }

    fn keys(&self, from: usize) -> Vec<Key> {
        self.positional.iter().skip(from).map(|word| key(word)).collect()
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        self.named.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.named.iter().filter(move |(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }
}

fn prewrite(args: &Args<'_>) -> Outcome<RequestBody> {
    let mut mutations = Vec::new();
    for (name, arg) in &args.named {
        let (word, value) = arg.split_once('/').unwrap_or((arg, ""));
        let value = if value == "long" { Bytes::from(vec![b'v'; 300]) } else { Bytes::from(value.to_owned()) };
        let op = match *name {
            "put" => MutationOp::Put(value),
            "insert" => MutationOp::Insert(value),
            "delete" => MutationOp::Delete,
            "lock" => MutationOp::Lock,
            "key_share" => MutationOp::Shared(LockMode::KeyShare),
            "share" => MutationOp::Shared(LockMode::Share),
            "no_key_update" => MutationOp::Shared(LockMode::NoKeyUpdate),
            "absent" => MutationOp::CheckNotExists,
            "primary" | "ttl" | "commit" | "async" | "secondary" | "seen" => continue,
            other => return Err(format!("unknown mutation {other}").into()),
        };
        let is_shared = matches!(op, MutationOp::Shared(_));
        let seen_ts = args.value("seen").filter(|_| is_shared).map(ts).transpose()?;
        mutations.push(Mutation { seen_ts, ..Mutation::new(key(word), op) });
    }
    Ok(RequestBody::Prewrite(PrewriteRequest {
        mutations,
        primary: key(args.value("primary").ok_or("primary=KEY")?),
        start_ts: args.ts(0)?,
        ttl_ms: args.value("ttl").map_or(Ok(100), str::parse)?,
        commit: kv::api::CommitMode::TwoPhase,
        locker: None,
    }))
}

fn key(word: &str) -> Key {
    Key::new(word.to_owned())
}

fn ts(word: &str) -> Outcome<Timestamp> {
    let (ms, counter) = word.split_once('.').unwrap_or((word, "0"));
    Ok(if word == "max" { Timestamp::MAX } else { Timestamp::new(ms.parse()?, counter.parse()?) })
}

fn show_ts(ts: Timestamp) -> String {
    if ts.counter() == 0 { ts.physical_ms().to_string() } else { ts.to_string() }
}

fn show_value(value: &[u8]) -> String {
    if value.len() > 20 { format!("{} bytes", value.len()) } else { format!("\"{}\"", value.escape_ascii()) }
}

fn show_pairs(pairs: Result<Vec<(Key, Bytes)>, ActionError>) -> Outcome<String> {
    let mut out = String::new();
    match pairs {
        Ok(pairs) => {
            for (key, value) in pairs {
                writeln!(out, "{key:?} = {}", show_value(&value))?;
            }
        }
        Err(error) => writeln!(out, "{error}")?,
    }
    Ok(out)
}

fn show_key(cf: Cf, key: &[u8]) -> Outcome<String> {
    if cf == Cf::Lock {
        return Ok(match LockRow::of(key)? {
            LockRow::Lock(storage) => format!("{:?}", Key::from_storage(storage)?),
            LockRow::Counter(storage) => format!("{:?}#", Key::from_storage(storage)?),
            LockRow::Shared(storage, start_ts) => format!("{:?}@{}", Key::from_storage(storage)?, show_ts(start_ts)),
        });
    }
    let (storage, ts) = split_ts(key)?;
    Ok(format!("{:?}@{}", Key::from_storage(storage)?, show_ts(ts)))
}

/// A readable form of a record.
fn show(cf: Cf, key: &[u8], value: &[u8]) -> Outcome<String> {
    let head = format!("{} {}:", cf.name(), show_key(cf, key)?);
    let inline = |value: Option<&[u8]>| value.map_or(String::new(), |v| format!(" {}", show_value(v)));
    Ok(match cf {
        Cf::Lock if matches!(LockRow::of(key), Ok(LockRow::Counter(_))) => format!("{head} {} shared", value[4]),
        Cf::Lock if matches!(LockRow::of(key), Ok(LockRow::Shared(..))) => {
            let SharedLock { mode, primary, ttl_ms, .. } = SharedLock::decode(Timestamp::ZERO, value)?;
            format!("{head} {mode:?}, primary {primary:?}, ttl {ttl_ms}")
        }
        Cf::Lock => {
            let lock = LockRecord::decode(value)?;
            let value = inline(lock.short_value.as_deref());
            let [start, min_commit] = [show_ts(lock.start_ts), show_ts(lock.min_commit_ts)];
            let (kind, primary, ttl) = (lock.kind, lock.primary, lock.ttl_ms);
            format!("{head} {kind:?} of {start}{value}, primary {primary:?}, ttl {ttl}, min_commit {min_commit}")
        }
        Cf::Write => {
            let write = WriteRecord::decode(value)?;
            let kind = match write.kind {
                WriteKind::Put => "Put".to_owned(),
                WriteKind::Delete => "Delete".to_owned(),
                WriteKind::Lock { last_data: None } => "Lock above nothing,".to_owned(),
                WriteKind::Lock { last_data: Some(at) } => format!("Lock above {},", show_ts(at)),
            };
            format!("{head} {kind} of {}{}", show_ts(write.start_ts), inline(write.short_value))
        }
        _ if is_mark(value)? => format!("{head} rollback mark"),
        _ => format!("{head} {}", show_value(value)),
    })
}

fn scripts() -> Vec<PathBuf> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts/percolator");
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

#[test]
fn scripts_on_the_memory_store() {
    for path in scripts() {
        println!("{}", path.display());
        goldenscript::run(&mut Runner { store: MemoryStore::new() }, &path).unwrap();
    }
}

#[test]
fn scripts_on_rocksdb() {
    for path in scripts() {
        println!("{}", path.display());
        let dir = tempfile::tempdir().unwrap();
        let store = RocksStore::open(dir.path(), &RocksOptions::default()).unwrap();
        goldenscript::run(&mut Runner { store }, &path).unwrap();
    }
}
