//! A node: every role of Cortado in one process, and the order in which they start and stop.
//!
//! Start: ports are taken before anything is written, so that a taken one leaves no trace; the data directory is locked; the node
//! finds out which store of which cluster it is ([`join`]), and takes back what it created if it is refused; then the layers start from the
//! bottom ([`serving`]), and PostgreSQL clients are let in once both regions answer ([`probe`]); until then they are told to come again. Stop
//! goes the other way: no new statements, running ones finish, commits under way end, leadership is handed away, the store flushes. A
//! stop that is asked for during the start is carried out at its end.

pub(crate) mod proto;

mod heartbeat;
mod join;
mod members;
mod oracle;
mod placement;
mod ports;
mod probe;
mod reclaim;
mod service;
mod serving;
mod state;
mod storage;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use prometheus::Registry;
use tokio_util::sync::CancellationToken;

use self::join::JoinError;
use self::ports::{PortError, Ports};
use self::service::NodeService;
use self::serving::{Serving, ServingError};
use self::state::NodeState;
use crate::config::NodeConfig;
use crate::data_dir::{DataDir, DataDirError, Ident};
use crate::http::{self, Health};

/// Why a node does not start or go on; printed as one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    /// A port cannot be had.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The cluster cannot be joined.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A layer failed to start, or failed for good.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// The gRPC server ended by itself.
    #[error("the server for other nodes failed: {0}")]
    Grpc(#[from] tonic::transport::Error),
}

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
        state.data().undo();
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
    let mut stopping = false;
    let mut starting = pin!(Serving::start(state.clone(), ident, ports, registry));
    let started = tokio::select! {
        started = &mut starting => started,
        () = &mut *stop => {
            tracing::info!("stopping once the start is done");
            stopping = true;
            starting.await
        }
    };
    let mut serving = started?;
    let failed = if stopping {
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

/// Finds out which store this is, while answering the nodes that want to know or tell.
async fn find_identity(state: &Arc<NodeState>, ports: &Ports) -> Result<Ident, NodeError> {
    let done = CancellationToken::new();
    let service = proto::node_server::NodeServer::new(NodeService::new(state.clone()));
    let server = tonic::transport::Server::builder()
        .add_service(service)
        .serve_with_incoming_shutdown(ports.listen()?, done.clone().cancelled_owned());
    let mut server = tokio::spawn(server);
    let ident = tokio::select! {
        ident = join::identify(state) => ident?,
        ended = &mut server => match ended {
            Ok(Err(error)) => return Err(error.into()),
            // It ends only when it is told to, or with the runtime.
            _ => std::future::pending().await,
        },
    };
    // It answers what it has begun (the very `init` that made this node known, perhaps) and takes no more connections: those wait for
    // the server with all the services.
    done.cancel();
    Ok(ident)
}
