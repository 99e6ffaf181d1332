//! The row locks of the cluster, as `cortado locks` shows them: each node lists those in its memory and the sessions of
//! its transactions, and the node that is asked puts them together. What holds an advisory lock is its record, which
//! that node reads; the memory of a leader has the queue.

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
const LIMIT: Duration = Duration::from_secs(2);

/// Those of this node.
pub(super) fn own(state: &NodeState, store: StoreId) -> Result<LocksResponse, Status> {
    let (Some(kv), Some(database), Some(sql)) = (state.kv.get(), state.database.get(), state.sql.get()) else {
        return Err(Status::unavailable("the node does not serve yet"));
    };
    let message = |status: RowLockStatus| {
        let advisory = LockName::of_key(&status.key);
        let (table, row) = match advisory {
            Some(lock) => (ADVISORY.to_owned(), lock.to_text()),
            None => sql.row_name(&status.key).unwrap_or_default(),
        };
        RowLock {
            region_id: status.region.get(),
            key: status.key.as_bytes().to_vec(),
            table,
            row,
            start_ts: status.start_ts.raw(),
            mode: mode_name(status.mode, advisory.is_some()).to_owned(),
            waits_ms: status.wait.as_ref().map(|wait| u64::try_from(wait.time.as_millis()).unwrap_or(u64::MAX)),
            behind: status.wait.iter().flat_map(|wait| &wait.behind).map(|ts| ts.raw()).collect(),
            held_ms: None,
        }
    };
    let session = |(start_ts, session): (tso::Timestamp, u32)| LockingSession {
        start_ts: start_ts.raw(),
        store_id: store.get(),
        session,
    };
    let locks = kv.row_locks().into_iter().map(message).collect();
    let sessions = database.row_lockers().into_iter().map(session).collect();
    Ok(LocksResponse { locks, sessions, silent: Vec::new() })
}

/// Those of the whole cluster. Nodes that do not answer are named.
pub(super) async fn all(state: &NodeState, ident: &Ident) -> Result<LocksResponse, Status> {
    let mut all = own(state, ident.store_id)?;
    let others = state.members.all().into_iter().filter(|(store, _)| *store != ident.store_id);
    let request = LocksRequest { forwarded: true, cluster_id: ident.cluster_id.get() };
    let answers = others.map(|(store, address)| async move {
        let asked = tokio::time::timeout(LIMIT, ask(&address, state.config.connect_from, request)).await;
        (store, asked.ok().flatten())
    });
    for (store, answer) in join_all(answers).await {
        match answer {
            Some(answer) => {
                all.locks.extend(answer.locks);
                all.sessions.extend(answer.sessions);
            }
            None => all.silent.push(store.get()),
        }
    }
    let (Some(database), Some(sql)) = (state.database.get(), state.sql.get()) else { return Ok(all) };
    let holders = async { Ok::<_, SqlError>((sql.advisory_locks().await?, database.now().await?)) };
    match tokio::time::timeout(LIMIT, holders).await {
        Ok(Ok((holders, now))) => add_holders(&mut all, &holders, now),
        Ok(Err(error)) => return Err(Status::unavailable(error.to_string())),
        Err(_) => return Err(Status::unavailable("the records of advisory locks are not read in time")),
    }
    // Stable: the waiters of a row keep their order. Each region is in the memory of one node.
    all.locks.sort_by(|a, b| (a.region_id, &a.key).cmp(&(b.region_id, &b.key)));
    Ok(all)
}

/// Adds the holders of advisory locks, as their records name them. Who has the first place in a queue, and not the
/// lock, waits for them.
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
    let mut waiting = Vec::new();
    for mut lock in std::mem::take(&mut all.locks) {
        let key = Key::new(lock.key.clone());
        if lock.table != ADVISORY || lock.waits_ms.is_some() {
            waiting.push(lock);
        } else if let Some(holders) = of_key.get(&key).filter(|of| of.iter().all(|h| h.name.raw() != lock.start_ts)) {
            (lock.waits_ms, lock.behind) = (Some(0), holders.iter().map(|holder| holder.name.raw()).collect());
            waiting.push(lock);
        }
    }
    all.locks = holders.iter().map(|holder| held(holder, now)).collect();
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
        held_ms: Some(now.physical_ms().saturating_sub(holder.since.physical_ms())),
    }
}

async fn ask(address: &str, from: Option<IpAddr>, request: LocksRequest) -> Option<LocksResponse> {
    let host: HostPort = address.parse().ok()?;
    let mut node = client::connect(&host, from).await.ok()?;
    Some(node.locks(request).await.ok()?.into_inner())
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
