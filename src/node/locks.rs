//! The row locks of the cluster, as `cortado locks` shows them: each node lists those in its memory and the sessions of
//! its transactions, and the node that is asked puts them together.

use std::net::IpAddr;
use std::time::Duration;

use futures::future::join_all;
use kv::api::LockMode;
use kv::locks::RowLockStatus;
use raftstore::StoreId;
use tonic::Status;

use super::state::NodeState;
use crate::client;
use crate::config::HostPort;
use crate::data_dir::Ident;
use crate::proto::{LockingSession, LocksRequest, LocksResponse, RowLock};

/// How long a node may take to list its locks.
const LIMIT: Duration = Duration::from_secs(2);

/// Those of this node.
pub(super) fn own(state: &NodeState, store: StoreId) -> Result<LocksResponse, Status> {
    let (Some(kv), Some(database), Some(sql)) = (state.kv.get(), state.database.get(), state.sql.get()) else {
        return Err(Status::unavailable("the node does not serve yet"));
    };
    let message = |status: RowLockStatus| {
        let (table, row) = sql.row_name(&status.key).unwrap_or_default();
        RowLock {
            region_id: status.region.get(),
            key: status.key.as_bytes().to_vec(),
            table,
            row,
            start_ts: status.start_ts.raw(),
            mode: mode_name(status.mode).to_owned(),
            waits_ms: status.wait.as_ref().map(|wait| u64::try_from(wait.time.as_millis()).unwrap_or(u64::MAX)),
            behind: status.wait.iter().flat_map(|wait| &wait.behind).map(|ts| ts.raw()).collect(),
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
    // Stable: the waiters of a row keep their order. Each region is in the memory of one node.
    all.locks.sort_by(|a, b| (a.region_id, &a.key).cmp(&(b.region_id, &b.key)));
    Ok(all)
}

async fn ask(address: &str, from: Option<IpAddr>, request: LocksRequest) -> Option<LocksResponse> {
    let host: HostPort = address.parse().ok()?;
    let mut node = client::connect(&host, from).await.ok()?;
    Some(node.locks(request).await.ok()?.into_inner())
}

fn mode_name(mode: LockMode) -> &'static str {
    match mode {
        LockMode::KeyShare => "KEY SHARE",
        LockMode::Share => "SHARE",
        LockMode::NoKeyUpdate => "NO KEY UPDATE",
        LockMode::Update => "UPDATE",
    }
}
