//! The node service over gRPC: identity, initialisation, membership, heartbeats and status. Served in every state of
//! the node.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{join_all, try_join_all};
use futures::stream::FuturesUnordered;
use kv::Key;
use kv::placement::InstanceId;
use raftstore::transport::ClusterId;
use raftstore::{RegionId, StoreId};
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use tso::Timestamp;
use txn::TxnOutcome;

use super::placement::{Placement, PlacementError};
use super::state::{NodeState, new_cluster_id};
use super::{check, locks, sessions};
use crate::client;
use crate::config::{HostPort, Membership};
use crate::data_dir::{DataDirError, Ident};
use crate::plan::{self, Plan};
use crate::proto::node_client::NodeClient;
use crate::proto::node_server::Node;
use crate::proto::txn_status_response::State;
use crate::proto::{
    BootstrapRequest, BootstrapResponse, CheckTablesRequest, HeartbeatRequest, HeartbeatResponse, InfoRequest,
    InfoResponse, InitRequest, InitResponse, LocksRequest, LocksResponse, Plan as PlanMessage, RegisterRequest,
    RegisterResponse, RenewLeaseRequest, RenewLeaseResponse, SessionsRequest, SessionsResponse, SignalRequest,
    SignalResponse, StatusRequest, StatusResponse, StoreAddress, TransferLeaderRequest, TransferLeaderResponse,
    TxnStatusRequest, TxnStatusResponse,
};

/// How often a plan is sent to a node whose connection breaks, and the pause between.
const PLAN_ATTEMPTS: usize = 10;
const PLAN_PAUSE: Duration = Duration::from_millis(100);

/// The node service; see the module documentation.
#[derive(Clone)]
pub(crate) struct NodeService {
    state: Arc<NodeState>,
}

impl NodeService {
    /// The service over the state of the node.
    pub(crate) fn new(state: Arc<NodeState>) -> NodeService {
        NodeService { state }
    }

    fn placement(&self) -> Result<&Placement<engine::store::rocks::RocksStore>, Status> {
        self.state.placement.get().ok_or_else(|| Status::unavailable("the node does not serve yet"))
    }

    fn check_cluster(&self, theirs: u64) -> Result<ClusterId, Status> {
        match self.state.ident() {
            Some(ident) if ident.cluster_id.get() == theirs => Ok(ident.cluster_id),
            Some(ident) => Err(Status::failed_precondition(format!(
                "this node belongs to cluster {}, not to {}",
                ident.cluster_id,
                ClusterId::new(theirs)
            ))),
            None => Err(Status::unavailable("the node is not initialised")),
        }
    }

    /// Sends `call` to all other nodes at once. Only the leader of the system region answers it.
    async fn forward_to_leader<T, F>(&self, call: impl Fn(NodeClient<Channel>) -> F) -> Result<Response<T>, Status>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let own = self.state.ident().map(|ident| ident.store_id);
        let others = self.state.members.all().into_iter().filter(|(store, _)| Some(*store) != own);
        let call = &call;
        let mut answers: FuturesUnordered<_> =
            others.map(|(_, address)| async move { call(self.dial(&address).await?).await }).collect();
        while let Some(answer) = answers.next().await {
            match answer {
                // Down, or not the leader: another node may be.
                Err(status) if [Code::Unavailable, Code::FailedPrecondition].contains(&status.code()) => {}
                decided => return decided,
            }
        }
        Err(Status::unavailable("no node leads the system region: fewer than a majority of its replicas are up"))
    }

    /// Sends a plan to all its nodes in two rounds: first the plan, then the confirmation that every node has taken it.
    async fn distribute_plan(&self, plan: &Plan) -> Result<(), Status> {
        for complete in [false, true] {
            let rounds = plan.stores.iter().map(|store| async move {
                let request = BootstrapRequest { plan: Some(PlanMessage::from(plan)), store_id: store.id, complete };
                self.send_plan(&store.address, request).await
            });
            try_join_all(rounds).await?;
        }
        Ok(())
    }

    /// Sends a plan to a node, which may receive it twice. With its identity the node replaces the server of its port,
    /// and a connection that the old one has just accepted breaks.
    async fn send_plan(&self, address: &str, request: BootstrapRequest) -> Result<(), Status> {
        let mut attempt = 1;
        loop {
            let mut node = self.dial(address).await?;
            match node.bootstrap(request.clone()).await {
                Ok(_) => return Ok(()),
                Err(status) if is_broken(&status) && attempt < PLAN_ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(PLAN_PAUSE).await;
                }
                Err(status) => return Err(Status::aborted(format!("{address}: {}", status.message()))),
            }
        }
    }

    /// Connects to the node at a known address.
    async fn dial(&self, address: &str) -> Result<NodeClient<Channel>, Status> {
        dial(address, self.state.config.connect_from).await
    }
}

/// Whether the connection failed. What the node itself answers has no source.
fn is_broken(status: &Status) -> bool {
    std::error::Error::source(status).is_some()
}

/// Connects to the node at a known address.
async fn dial(address: &str, from: Option<IpAddr>) -> Result<NodeClient<Channel>, Status> {
    let host: HostPort = address.parse().map_err(Status::unavailable)?;
    client::connect(&host, from).await.map_err(|e| Status::unavailable(e.to_string()))
}

fn address_of((store, address): (StoreId, String)) -> StoreAddress {
    StoreAddress { store_id: store.get(), address, locality: String::new() }
}

fn storage_error(error: DataDirError) -> Status {
    Status::internal(error.to_string())
}

impl From<PlacementError> for Status {
    fn from(error: PlacementError) -> Status {
        match &error {
            PlacementError::NotLeader | PlacementError::NotLeaderOf(_) => {
                Status::failed_precondition(error.to_string())
            }
            PlacementError::NoVoter { .. } => Status::invalid_argument(error.to_string()),
            PlacementError::AddressTaken { .. } => Status::already_exists(error.to_string()),
            PlacementError::Region(_) | PlacementError::Propose(_) | PlacementError::NotTransferred { .. } => {
                Status::unavailable(error.to_string())
            }
            PlacementError::Registry(_) => Status::internal(error.to_string()),
        }
    }
}

/// The error of an identity change: a status.
struct IdentChangeError(Status);

impl From<DataDirError> for IdentChangeError {
    fn from(error: DataDirError) -> IdentChangeError {
        IdentChangeError(storage_error(error))
    }
}

#[tonic::async_trait]
impl Node for NodeService {
    async fn info(&self, _: Request<InfoRequest>) -> Result<Response<InfoResponse>, Status> {
        let ident = self.state.ident();
        Ok(Response::new(InfoResponse {
            cluster_id: ident.as_ref().map_or(0, |i| i.cluster_id.get()),
            store_id: ident.as_ref().map_or(0, |i| i.store_id.get()),
            plan: ident.as_ref().and_then(|i| i.plan.as_ref()).map(PlanMessage::from),
            address: self.state.config.advertise.to_string(),
            complete: ident.is_some_and(|i| i.complete),
            stores: self.state.members.all().into_iter().map(address_of).collect(),
            wanted_cluster_id: self.state.config.cluster_id.map_or(0, ClusterId::get),
        }))
    }

    async fn init(&self, _: Request<InitRequest>) -> Result<Response<InitResponse>, Status> {
        let Membership::Join(join) = &self.state.config.membership else {
            return Err(Status::failed_precondition("a single node initialises itself"));
        };
        let from = self.state.config.connect_from;
        let answers = join_all(join.iter().map(|host| client::info(host, from))).await;
        let mut candidates = Vec::new();
        for answer in answers {
            // Every node must answer: an initial store cannot be added to a plan later.
            candidates.push(answer.map_err(|e| Status::unavailable(format!("{e}; start all nodes of --join first")))?);
        }
        let plan =
            plan::decide(&candidates, new_cluster_id()).map_err(|e| Status::failed_precondition(e.to_string()))?;
        self.distribute_plan(&plan).await?;
        Ok(Response::new(InitResponse { cluster_id: plan.cluster_id.get(), nodes: plan.stores.len() as u32 }))
    }

    async fn bootstrap(&self, request: Request<BootstrapRequest>) -> Result<Response<BootstrapResponse>, Status> {
        let request = request.into_inner();
        let plan = Plan::try_from(request.plan.unwrap_or_default())?;
        let own = self.state.config.advertise.as_str();
        let Some(store) = plan.store_at(own).filter(|store| store.get() == request.store_id) else {
            return Err(Status::failed_precondition(format!(
                "the plan does not name {own} as node {}",
                request.store_id
            )));
        };
        if self.state.config.cluster_id.is_some_and(|id| id != plan.cluster_id) {
            return Err(Status::failed_precondition("the node was started with another --cluster-id"));
        }
        let state = self.state.clone();
        let change = move || {
            state.update_ident(|present| match present {
                None => Ok(Some(Ident::new(plan.cluster_id, store, Some(plan)))),
                Some(ident) if ident.cluster_id != plan.cluster_id || ident.store_id != store => Err(IdentChangeError(
                    Status::failed_precondition(format!("the node already belongs to cluster {}", ident.cluster_id)),
                )),
                Some(ident) if request.complete && !ident.complete => {
                    Ok(Some(Ident { complete: true, ..ident.clone() }))
                }
                Some(_) => Ok(None),
            })
        };
        let done = tokio::task::spawn_blocking(change).await.map_err(|e| Status::internal(e.to_string()))?;
        done.map_err(|IdentChangeError(status)| status)?;
        Ok(Response::new(BootstrapResponse {}))
    }

    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<RegisterResponse>, Status> {
        let request = request.into_inner();
        self.check_cluster(request.cluster_id)?;
        let Some(instance) = InstanceId::new(request.instance) else {
            return Err(Status::invalid_argument("a registration names the instance that asks"));
        };
        match self.placement()?.register(&request.address, &request.locality, instance, self.state.uptime()).await {
            Ok(store) => return Ok(Response::new(RegisterResponse { store_id: store.get() })),
            Err(PlacementError::NotLeader) if !request.forwarded => {}
            Err(error) => return Err(error.into()),
        }
        let request = RegisterRequest { forwarded: true, ..request };
        self.forward_to_leader(|mut node| {
            let request = request.clone();
            async move { node.register(request).await }
        })
        .await
    }

    async fn heartbeat(&self, request: Request<HeartbeatRequest>) -> Result<Response<HeartbeatResponse>, Status> {
        let request = request.into_inner();
        self.check_cluster(request.cluster_id)?;
        let stores = self.placement()?.heartbeat(request.into(), self.state.uptime()).await?;
        let stores = stores.into_iter();
        let stores = stores.map(|s| StoreAddress { locality: s.locality, ..address_of((s.id, s.address)) }).collect();
        Ok(Response::new(HeartbeatResponse { stores }))
    }

    async fn renew_lease(&self, request: Request<RenewLeaseRequest>) -> Result<Response<RenewLeaseResponse>, Status> {
        self.check_cluster(request.into_inner().cluster_id)?;
        let sql = self.state.sql.get().ok_or_else(|| Status::unavailable("the node does not serve yet"))?;
        sql.renew_lease().await.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(Response::new(RenewLeaseResponse {}))
    }

    async fn transfer_leader(
        &self,
        request: Request<TransferLeaderRequest>,
    ) -> Result<Response<TransferLeaderResponse>, Status> {
        let TransferLeaderRequest { cluster_id, region_id, store_id } = request.into_inner();
        self.check_cluster(cluster_id)?;
        self.placement()?.transfer_leader(RegionId::new(region_id), StoreId::new(store_id)).await?;
        Ok(Response::new(TransferLeaderResponse {}))
    }

    async fn txn_status(&self, request: Request<TxnStatusRequest>) -> Result<Response<TxnStatusResponse>, Status> {
        let TxnStatusRequest { start_ts, primary } = request.into_inner();
        let database = self.state.database.get().ok_or_else(|| Status::unavailable("the node does not serve yet"))?;
        let start_ts = Timestamp::from_raw(start_ts);
        check_asked(start_ts, &primary, database.latest())?;
        let outcome = database.outcome(start_ts, &Key::new(primary)).await;
        let (state, commit_ts) = match outcome.map_err(|error| Status::unavailable(error.to_string()))? {
            TxnOutcome::Committed(commit_ts) => (State::Committed, commit_ts),
            TxnOutcome::RolledBack => (State::RolledBack, Timestamp::ZERO),
            TxnOutcome::Undecided => (State::Undecided, Timestamp::ZERO),
            TxnOutcome::Missing => (State::Missing, Timestamp::ZERO),
            TxnOutcome::Collected => (State::Collected, Timestamp::ZERO),
        };
        Ok(Response::new(TxnStatusResponse { state: state.into(), commit_ts: commit_ts.raw() }))
    }

    async fn locks(&self, request: Request<LocksRequest>) -> Result<Response<LocksResponse>, Status> {
        let Some(ident) = self.state.ident() else { return Err(uninitialised()) };
        let request = request.into_inner();
        let limit = locks::limit(&request);
        if !request.forwarded {
            return locks::all(&self.state, &ident, limit).await.map(Response::new);
        }
        self.check_cluster(request.cluster_id)?;
        locks::own(&self.state, ident.store_id, limit).map(Response::new)
    }

    type CheckTablesStream = check::Checked;

    async fn check_tables(
        &self,
        request: Request<CheckTablesRequest>,
    ) -> Result<Response<Self::CheckTablesStream>, Status> {
        let Some(sql) = self.state.sql.get() else {
            return Err(Status::unavailable("the node does not serve yet"));
        };
        Ok(Response::new(check::begin(Arc::clone(sql), request.into_inner())))
    }

    async fn sessions(&self, request: Request<SessionsRequest>) -> Result<Response<SessionsResponse>, Status> {
        self.check_cluster(request.into_inner().cluster_id)?;
        let sql = self.state.sql.get().ok_or_else(|| Status::unavailable("the node does not serve yet"))?;
        Ok(Response::new(SessionsResponse { sessions: sessions::messages(sql.sessions()) }))
    }

    async fn signal(&self, request: Request<SignalRequest>) -> Result<Response<SignalResponse>, Status> {
        let request = request.into_inner();
        self.check_cluster(request.cluster_id)?;
        let sql = self.state.sql.get().ok_or_else(|| Status::unavailable("the node does not serve yet"))?;
        Ok(Response::new(SignalResponse { found: sql.signal(request.pid, sessions::signal_of(&request)) }))
    }

    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        let Some(ident) = self.state.ident() else { return Err(uninitialised()) };
        let StatusRequest { forwarded, cluster_id } = request.into_inner();
        if forwarded {
            self.check_cluster(cluster_id)?;
        }
        match self.placement()?.status(ident.cluster_id, self.state.uptime()) {
            Ok(status) => return Ok(Response::new(status)),
            Err(PlacementError::NotLeader) if !forwarded => {}
            Err(error) => return Err(error.into()),
        }
        let request = StatusRequest { forwarded: true, cluster_id: ident.cluster_id.get() };
        self.forward_to_leader(|mut node| async move { node.status(request).await }).await
    }
}

fn uninitialised() -> Status {
    Status::failed_precondition("the cluster is not initialised; run: cortado init")
}

/// Whether a transaction can have started at `start_ts` and have this primary key. `latest`: a timestamp that the
/// oracle has not passed.
fn check_asked(start_ts: Timestamp, primary: &[u8], latest: Timestamp) -> Result<(), Status> {
    if start_ts == Timestamp::ZERO {
        return Err(Status::invalid_argument("no transaction starts at 0"));
    }
    if primary.is_empty() {
        return Err(Status::invalid_argument("no transaction has an empty primary key"));
    }
    if start_ts > latest {
        return Err(Status::invalid_argument(format!("no transaction has started at {start_ts} yet")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn only_transactions_that_can_exist_are_asked_for() {
        let at = |ms| Timestamp::new(ms, 0);
        assert!(check_asked(at(5), b"t", at(5)).is_ok() && check_asked(at(5), b"t", Timestamp::MAX).is_ok());
        let refused = [(Timestamp::ZERO, "t", "at 0"), (at(5), "", "empty"), (at(6), "t", "at 6.0 yet")];
        for (start_ts, primary, why) in refused {
            let status = check_asked(start_ts, primary.as_bytes(), at(5)).unwrap_err();
            assert!(status.code() == tonic::Code::InvalidArgument && status.message().contains(why), "{status}");
        }
    }

    /// `cortado init` failed where a node closed a connection while it replaced the server of its port.
    #[tokio::test]
    async fn a_broken_connection_is_not_an_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let closing = tokio::spawn(async move {
            loop {
                drop(listener.accept().await.unwrap());
            }
        });
        let mut node = dial(&address, None).await.unwrap();
        let broken = node.bootstrap(BootstrapRequest::default()).await.unwrap_err();
        assert!(is_broken(&broken), "{broken:?}");
        assert!(!is_broken(&Status::failed_precondition("the node already belongs to cluster 7")));
        closing.abort();
    }
}
