//! The row locks of the cluster, as `cortado locks` shows them: each node lists those in its memory and the sessions of
//! its transactions, and the node that is asked puts them together. What holds an advisory lock is its record, which
//! that node reads; the memory of a leader has the queue. A listing is bounded, whatever there is: rows that somebody
//! waits for come first, and the number of all is told.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use futures::future::join_all;
use kv::Key;
use kv::api::LockMode;
use kv::locks::RowLockStatus;
use raftstore::StoreId;
use sql::error::SqlError;
use sql::lock_name::LockName;
use sql::server::AdvisoryHolder;
use tonic::Status;
use tso::Timestamp;

use super::state::NodeState;
use crate::client;
use crate::config::HostPort;
use crate::data_dir::Ident;
use crate::proto::{LockingSession, LocksRequest, LocksResponse, RowLock};

/// What stands in the place of a table.
const ADVISORY: &str = "advisory lock";
/// The region of all advisory locks.
const SYSTEM_REGION: u64 = 1;

/// How long a node may take to list its locks.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// How many locks are listed if the request does not say, and at most.
const LISTED: usize = 1_000;
const LISTED_MAX: usize = 10_000;
/// Bytes of a key, and characters of a row's name, that are told.
const KEY_MAX: usize = 512;
const NAME_MAX: usize = 256;
/// How many transactions are named that a waiter is behind.
const BEHIND_MAX: usize = 8;

/// How many locks a request wants.
pub(super) fn limit(request: &LocksRequest) -> usize {
    match usize::try_from(request.limit).unwrap_or(LISTED_MAX) {
        0 => LISTED,
        limit => limit.min(LISTED_MAX),
    }
}

/// Those of this node.
pub(super) fn own(state: &NodeState, store: StoreId, limit: usize) -> Result<LocksResponse, Status> {
    let (Some(kv), Some(sql)) = (state.kv.get(), state.sql.get()) else {
        return Err(Status::unavailable("the node does not serve yet"));
    };
    let message = |status: RowLockStatus| {
        let advisory = LockName::of_key(&status.key);
        let (table, row) = match advisory {
            Some(lock) => (ADVISORY.to_owned(), lock.to_text()),
            None => sql.row_name(&status.key).unwrap_or_default(),
        };
        let behind = status.wait.as_ref().map_or(&[][..], |wait| &wait.behind);
        RowLock {
            region_id: status.region.get(),
            key: status.key.as_bytes().iter().copied().take(KEY_MAX).collect(),
            table,
            row: shortened(row),
            start_ts: status.start_ts.raw(),
            mode: mode_name(status.mode, advisory.is_some()).to_owned(),
            waits_ms: status.wait.as_ref().map(|wait| u64::try_from(wait.time.as_millis()).unwrap_or(u64::MAX)),
            behind: behind.iter().take(BEHIND_MAX).map(|ts| ts.raw()).collect(),
            more_behind: u32::try_from(behind.len().saturating_sub(BEHIND_MAX)).unwrap_or(u32::MAX),
            held_ms: None,
            is_awaited: status.is_awaited,
        }
    };
    let session = |(owner, pid): (Timestamp, i32)| LockingSession {
        start_ts: owner.raw(),
        store_id: store.get(),
        session: pid.cast_unsigned(),
    };
    let (locks, total) = kv.row_locks(limit);
    let locks = locks.into_iter().map(message).collect();
    let sessions = sql.lock_owners().into_iter().map(session).collect();
    Ok(LocksResponse { locks, sessions, silent: Vec::new(), total: total as u64 })
}

/// Those of the whole cluster. Nodes that do not answer are named.
pub(super) async fn all(state: &NodeState, ident: &Ident, limit: usize) -> Result<LocksResponse, Status> {
    let mut all = own(state, ident.store_id, limit)?;
    let others = state.members.all().into_iter().filter(|(store, _)| *store != ident.store_id);
    let wanted = u32::try_from(limit).unwrap_or(u32::MAX);
    let request = LocksRequest { forwarded: true, cluster_id: ident.cluster_id.get(), limit: wanted };
    let answers = others.map(|(store, address)| async move {
        let asked = tokio::time::timeout(TIME_LIMIT, ask(&address, state.config.connect_from, request)).await;
        (store, asked.unwrap_or_else(|_| Err("no answer in time".to_owned())))
    });
    for (store, answer) in join_all(answers).await {
        match answer {
            Ok(answer) => {
                all.locks.extend(answer.locks);
                all.sessions.extend(answer.sessions);
                all.total += answer.total;
            }
            Err(why) => {
                tracing::warn!(node = %store, why, "the locks of a node are not listed");
                all.silent.push(store.get());
            }
        }
    }
    let (Some(database), Some(sql)) = (state.database.get(), state.sql.get()) else { return Ok(all) };
    let holders = async { Ok::<_, SqlError>((sql.advisory_locks().await?, database.now().await?)) };
    match tokio::time::timeout(TIME_LIMIT, holders).await {
        Ok(Ok((holders, now))) => add_holders(&mut all, &holders, now),
        Ok(Err(error)) => return Err(Status::unavailable(error.to_string())),
        Err(_) => return Err(Status::unavailable("the records of advisory locks are not read in time")),
    }
    // Stable: the waiters of a row keep their order. Each region is in the memory of one node.
    if all.locks.len() > limit {
        all.locks.sort_by_key(|lock| !lock.is_awaited);
        all.locks.truncate(limit);
    }
    all.locks.sort_by(|a, b| (a.region_id, &a.key).cmp(&(b.region_id, &b.key)));
    Ok(all)
}

/// Adds the holders of advisory locks, as their records name them, in place of their own places in the queues. Who has
/// the first place in a queue, and not the lock, waits for them.
fn add_holders(all: &mut LocksResponse, holders: &[AdvisoryHolder], now: Timestamp) {
    let known: HashSet<u64> = all.sessions.iter().map(|session| session.start_ts).collect();
    let mut of_key: HashMap<Key, Vec<&AdvisoryHolder>> = HashMap::new();
    for holder in holders {
        of_key.entry(holder.lock.queue_key()).or_default().push(holder);
        if !known.contains(&holder.name.raw()) {
            let (node, session) = holder.session;
            all.sessions.push(LockingSession { start_ts: holder.name.raw(), store_id: node.0, session });
        }
    }
    let (in_memory, mut waiting) = (all.locks.len(), Vec::new());
    for mut lock in std::mem::take(&mut all.locks) {
        let key = Key::new(lock.key.clone());
        if lock.table != ADVISORY || lock.waits_ms.is_some() {
            waiting.push(lock);
        } else if let Some(holders) = of_key.get(&key).filter(|of| of.iter().all(|h| h.name.raw() != lock.start_ts)) {
            (lock.waits_ms, lock.behind) = (Some(0), holders.iter().map(|holder| holder.name.raw()).collect());
            lock.is_awaited = true;
            waiting.push(lock);
        }
    }
    let awaited: HashSet<Vec<u8>> = waiting.iter().map(|lock| lock.key.clone()).collect();
    all.total = all.total + holders.len() as u64 - (in_memory - waiting.len()) as u64;
    all.locks = holders.iter().map(|holder| held(holder, now)).collect();
    all.locks.iter_mut().for_each(|lock| lock.is_awaited = awaited.contains(&lock.key));
    all.locks.append(&mut waiting);
}

fn held(holder: &AdvisoryHolder, now: Timestamp) -> RowLock {
    RowLock {
        region_id: SYSTEM_REGION,
        key: holder.lock.queue_key().as_bytes().to_vec(),
        table: ADVISORY.to_owned(),
        row: holder.lock.to_text(),
        start_ts: holder.name.raw(),
        mode: mode_name(holder.mode.queue(), true).to_owned(),
        waits_ms: None,
        behind: Vec::new(),
        more_behind: 0,
        is_awaited: false,
        held_ms: Some(now.physical_ms().saturating_sub(holder.since.physical_ms())),
    }
}

async fn ask(address: &str, from: Option<IpAddr>, request: LocksRequest) -> Result<LocksResponse, String> {
    let host: HostPort = address.parse()?;
    let mut node = client::connect(&host, from).await.map_err(|error| error.to_string())?;
    let answer = node.locks(request).await.map_err(|status| status.message().to_owned())?;
    Ok(answer.into_inner())
}

/// The first characters of the name of a row.
fn shortened(mut name: String) -> String {
    if let Some((end, _)) = name.char_indices().nth(NAME_MAX) {
        name.truncate(end);
        name.push('…');
    }
    name
}

fn mode_name(mode: LockMode, is_advisory: bool) -> &'static str {
    match mode {
        LockMode::Update if is_advisory => "EXCLUSIVE",
        LockMode::KeyShare => "KEY SHARE",
        LockMode::Share => "SHARE",
        LockMode::NoKeyUpdate => "NO KEY UPDATE",
        LockMode::Update => "UPDATE",
    }
}
