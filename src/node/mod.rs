//! A node: all roles of Cortado in one process, and the order in which they start and stop.
//!
//! Start:
//! 1. The ports are bound before anything is written, so that a port in use leaves no files behind.
//! 2. The data directory is locked.
//! 3. The node determines its identity, a store of a cluster ([`join`]). If the cluster rejects it, it removes the
//!    files that it created.
//! 4. The layers start from the bottom ([`serving`]).
//! 5. PostgreSQL clients are accepted once both regions answer ([`probe`]). Until then they get SQLSTATE 57P03.
//!
//! Stop, in the opposite order: no new statements, running ones finish, commits in progress end, leadership moves away,
//! the store flushes. A stop signal during the start takes effect at the end of the start.
//!
//! # Layers
//!
//! 1. `collect`, `members`, `placement`, `ports`, `incoming`, `probe`: the thread that collects old versions, the
//!    address book, the placement role, the sockets, the connections of other nodes, the health probe
//! 2. `gateways`, `oracle`, `state`: the other nodes' SQL gateways, the timestamp oracle over the system region, the
//!    state of the node
//! 3. `background`, `check`, `join`, `locks`, `rounds`: background tasks, comparison of tables with their indexes,
//!    identity, the row locks of the cluster, the protocol of garbage collection
//! 4. `sessions`: the SQL sessions of the other nodes
//! 5. `service`: the node service
//! 6. `error`: the errors that end a node
//! 7. `storage`: opens the storage
//! 8. `serving`: builds, runs and stops the layers

mod background;
mod check;
mod collect;
mod error;
mod gateways;
mod incoming;
mod join;
mod locks;
mod members;
mod oracle;
mod placement;
mod ports;
mod probe;
mod rounds;
mod service;
mod serving;
mod sessions;
mod state;
mod storage;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use prometheus::Registry;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpIncoming;

use self::error::NodeError;
use self::ports::Ports;
use self::service::NodeService;
use self::serving::Serving;
use self::state::NodeState;
use crate::config::NodeConfig;
use crate::data_dir::{DataDir, Ident};
use crate::http::{self, Health};
use crate::proto;

/// Runs a node until `stop` ends, or until it fails for good.
pub(crate) async fn run(mut config: NodeConfig, stop: impl Future<Output = ()>) -> Result<(), NodeError> {
    let ports = Ports::bind(&mut config)?;
    let (data, ident) = DataDir::open(&config.data)?;
    let registry = Registry::new();
    let health = Health::starting();
    let state = Arc::new(NodeState::new(config, data, ident));
    let stop_http = CancellationToken::new();
    if let Some(listener) = ports.http()? {
        tokio::spawn(http::serve(listener, registry.clone(), health.clone(), stop_http.clone()));
    }
    tokio::pin!(stop);
    let outcome = serve(&state, &ports, &registry, &health, &mut stop).await;
    stop_http.cancel();
    if let Err(NodeError::Join(_)) = &outcome {
        state.data().remove_created();
    }
    outcome
}

async fn serve(
    state: &Arc<NodeState>,
    ports: &Ports,
    registry: &Registry,
    health: &Health,
    stop: &mut (impl Future<Output = ()> + Unpin),
) -> Result<(), NodeError> {
    health.not_serving("not part of a cluster yet");
    let ident = tokio::select! {
        ident = find_identity(state, ports) => ident?,
        () = &mut *stop => return Ok(()),
    };
    let config = &state.config;
    tracing::info!(
        cluster = %ident.cluster_id, store = %ident.store_id, data = %config.data.display(), listen = %config.listen,
        pg = %config.pg, "starting"
    );
    health.not_serving("starting");
    let mut stop_requested = false;
    let mut starting = pin!(Serving::start(state.clone(), ident, ports, registry));
    let started = tokio::select! {
        started = &mut starting => started,
        () = &mut *stop => {
            tracing::info!("stopping once the start is done");
            stop_requested = true;
            starting.await
        }
    };
    let mut serving = started?;
    let failed = if stop_requested {
        None
    } else {
        tokio::select! {
            error = serving.run(ports, health) => Some(error),
            () = &mut *stop => None,
        }
    };
    health.not_serving("stopping");
    tracing::info!("stopping");
    let stopped = serving.stop().await;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(stopped?),
    }
}

/// Determines the identity of this node. Meanwhile it serves the node service, through which `init` reaches it.
async fn find_identity(state: &Arc<NodeState>, ports: &Ports) -> Result<Ident, NodeError> {
    let done = CancellationToken::new();
    let service = proto::node_server::NodeServer::new(NodeService::new(state.clone()));
    let incoming = TcpIncoming::from(ports.listen()?).with_nodelay(Some(true));
    let server = tonic::transport::Server::builder()
        .add_service(service)
        .serve_with_incoming_shutdown(incoming, done.clone().cancelled_owned());
    let mut server = tokio::spawn(server);
    let ident = tokio::select! {
        ident = join::identify(state) => ident?,
        ended = &mut server => match ended {
            Ok(Err(error)) => return Err(error.into()),
            // The server ends without an error only on `done`, or with the runtime.
            _ => std::future::pending().await,
        },
    };
    // The server completes the requests in progress, perhaps the `init` that gave this node its identity. New
    // connections wait for the server with all services.
    done.cancel();
    Ok(ident)
}
