//! The oracle over gRPC: the server's adapter and the client's source. Generated types are confined to this file.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};

use crate::cluster::{AttachCluster, ClusterTag};
use crate::leap::{SURVEY_LIMIT, TimeReport};
use crate::service::TsoService;
use crate::source::{AllocateError, Connect, OracleNode, TsoError, TsoSource};
use crate::timestamp::{MAX_COUNT, Timestamp, TsRange};
use proto::allocate_response::Result as Outcome;
use proto::tso_client::TsoClient as Stub;
use proto::tso_server::{Tso, TsoServer};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::too_many_lines, reason = "generated from tso.proto")]
mod proto {
    tonic::include_proto!("cortado.tso.v1");
}

const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause between two questions for the time of a node that does not answer.
const ASK_INTERVAL: Duration = Duration::from_millis(200);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// HTTP/2 keep-alive detects a peer whose machine vanished without closing the connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The gRPC service for the node's server.
pub fn server(service: TsoService) -> TsoServer<impl Tso> {
    TsoServer::new(Adapter { service })
}

struct Adapter {
    service: TsoService,
}

#[tonic::async_trait]
impl Tso for Adapter {
    async fn allocate(
        &self,
        request: Request<proto::AllocateRequest>,
    ) -> Result<Response<proto::AllocateResponse>, Status> {
        let outcome = match self.service.allocate(request.into_inner().count).await {
            Ok(range) => Outcome::Range(proto::Range { last: range.last.raw(), count: range.count }),
            Err(AllocateError::NotLeader { hint }) => {
                Outcome::NotLeader(proto::NotLeader { leader: hint.unwrap_or_default() })
            }
            Err(AllocateError::Unavailable(reason)) => Outcome::Unavailable(proto::Unavailable { reason }),
            Err(error @ AllocateError::InvalidCount(_)) => return Err(Status::invalid_argument(error.to_string())),
        };
        Ok(Response::new(proto::AllocateResponse { result: Some(outcome) }))
    }

    async fn report_time(
        &self,
        _request: Request<proto::ReportTimeRequest>,
    ) -> Result<Response<proto::ReportTimeResponse>, Status> {
        let TimeReport { wall_ms, quiet } = self.service.time_report();
        let quiet_ms = (quiet != Duration::MAX).then(|| u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX));
        Ok(Response::new(proto::ReportTimeResponse { wall_ms, quiet_ms }))
    }
}

/// Connects a router to the oracles of other nodes. Their requests carry `cluster`, if given.
pub(crate) fn connector(cluster: Option<ClusterTag>) -> Box<Connect> {
    Box::new(move |address| {
        let remote = RemoteSource::new(address)?;
        Ok(Arc::new(RemoteSource { cluster: AttachCluster(cluster.clone()), ..remote }))
    })
}

/// Asks a node for its time until it answers. `find` returns its address, if that is known by now.
///
/// # Panics
/// Outside of a tokio runtime.
pub async fn ask_time(find: impl Fn() -> Option<String>, cluster: &ClusterTag) -> TimeReport {
    loop {
        if let Some(address) = find()
            && let Some(report) = report_of(&address, cluster).await
        {
            return report;
        }
        tokio::time::sleep(ASK_INTERVAL).await;
    }
}

/// Asks once. A slow node has as much time as a leader waits for it.
async fn report_of(address: &str, cluster: &ClusterTag) -> Option<TimeReport> {
    let remote = RemoteSource::new(address).ok()?.with_cluster(cluster.clone());
    let mut stub = Stub::with_interceptor(remote.channel, remote.cluster);
    let answer = tokio::time::timeout(SURVEY_LIMIT, stub.report_time(proto::ReportTimeRequest {})).await;
    let report = answer.ok()?.inspect_err(|status| tracing::debug!(address, %status, "no report of the time")).ok()?;
    let proto::ReportTimeResponse { wall_ms, quiet_ms } = report.into_inner();
    Some(TimeReport { wall_ms, quiet: quiet_ms.map_or(Duration::MAX, Duration::from_millis) })
}

/// The oracle of another node. Connects on first use and reconnects after a failure.
#[derive(Clone, Debug)]
pub struct RemoteSource {
    channel: Channel,
    cluster: AttachCluster,
}

impl RemoteSource {
    /// The oracle at an address such as `10.0.0.1:7000` or `http://10.0.0.1:7000`. Does not connect yet.
    ///
    /// # Errors
    /// [`AllocateError::Unavailable`] if the address is malformed.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(address: &str) -> Result<RemoteSource, AllocateError> {
        let uri = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
        let endpoint = Endpoint::from_shared(uri)
            .map_err(|error| AllocateError::Unavailable(format!("address {address}: {error}")))?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .tcp_nodelay(true);
        Ok(RemoteSource { channel: endpoint.connect_lazy(), cluster: AttachCluster::default() })
    }

    /// Attaches a cluster tag to each request, so that the oracle of another cluster rejects it.
    pub fn with_cluster(self, cluster: ClusterTag) -> RemoteSource {
        RemoteSource { cluster: AttachCluster(Some(cluster)), ..self }
    }

    async fn request(&self, count: u32) -> Result<TsRange, AllocateError> {
        let mut stub = Stub::with_interceptor(self.channel.clone(), self.cluster.clone());
        let response = tokio::time::timeout(REQUEST_TIMEOUT, stub.allocate(proto::AllocateRequest { count })).await;
        let response = response.map_err(|_| AllocateError::Unavailable("no answer in time".to_owned()))?;
        let response = response.map_err(|status| match status.code() {
            Code::InvalidArgument => AllocateError::InvalidCount(count),
            _ => AllocateError::Unavailable(status.to_string()),
        })?;
        match response.into_inner().result {
            Some(Outcome::Range(range)) => validate_range(range, count),
            Some(Outcome::NotLeader(proto::NotLeader { leader })) => {
                Err(AllocateError::NotLeader { hint: Some(leader).filter(|leader| !leader.is_empty()) })
            }
            Some(Outcome::Unavailable(proto::Unavailable { reason })) => Err(AllocateError::Unavailable(reason)),
            None => Err(AllocateError::Unavailable("an empty answer".to_owned())),
        }
    }
}

/// Checks that a range has the requested count and contains neither [`Timestamp::ZERO`] nor [`Timestamp::MAX`].
fn validate_range(range: proto::Range, count: u32) -> Result<TsRange, AllocateError> {
    let is_valid = range.count == count && range.last > u64::from(MAX_COUNT) && range.last < u64::MAX;
    if !is_valid {
        return Err(AllocateError::Unavailable(format!("a malformed answer: {range:?}")));
    }
    Ok(TsRange { last: Timestamp::from_raw(range.last), count: range.count })
}

impl OracleNode for RemoteSource {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, AllocateError>> {
        self.request(count).boxed()
    }
}

impl TsoSource for RemoteSource {
    fn allocate(&self, count: u32) -> BoxFuture<'_, Result<TsRange, TsoError>> {
        self.request(count).map(|result| result.map_err(TsoError::from)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use tonic::service::interceptor::InterceptedService;

    use super::*;

    /// Pins the encoding of the messages.
    #[test]
    fn golden_bytes() {
        let answer = |result| proto::AllocateResponse { result: Some(result) }.encode_to_vec();
        assert_eq!(proto::AllocateRequest { count: 300 }.encode_to_vec(), b"\x08\xac\x02");
        let range = proto::Range { last: 0x0102_0304_0506_0708, count: 2 };
        assert_eq!(answer(Outcome::Range(range)), b"\x0a\x0b\x09\x08\x07\x06\x05\x04\x03\x02\x01\x10\x02");
        assert_eq!(answer(Outcome::NotLeader(proto::NotLeader { leader: "a:1".into() })), b"\x12\x05\x0a\x03a:1");
        assert_eq!(answer(Outcome::Unavailable(proto::Unavailable { reason: "x".into() })), b"\x1a\x03\x0a\x01x");
        let report = |quiet_ms| proto::ReportTimeResponse { wall_ms: 0x0102_0304, quiet_ms }.encode_to_vec();
        assert_eq!(report(None), b"\x09\x04\x03\x02\x01\x00\x00\x00\x00");
        assert_eq!(report(Some(0)), b"\x09\x04\x03\x02\x01\x00\x00\x00\x00\x10\x00");
    }

    /// An oracle that always answers.
    struct AlwaysServes;

    #[tonic::async_trait]
    impl Tso for AlwaysServes {
        async fn allocate(
            &self,
            request: Request<proto::AllocateRequest>,
        ) -> Result<Response<proto::AllocateResponse>, Status> {
            let range = proto::Range { last: 1 << 40, count: request.into_inner().count };
            Ok(Response::new(proto::AllocateResponse { result: Some(Outcome::Range(range)) }))
        }

        async fn report_time(
            &self,
            _request: Request<proto::ReportTimeRequest>,
        ) -> Result<Response<proto::ReportTimeResponse>, Status> {
            Ok(Response::new(proto::ReportTimeResponse { wall_ms: 7, quiet_ms: Some(8) }))
        }
    }

    #[tokio::test]
    async fn another_cluster_gets_no_timestamps() {
        let tag = |id: &str| ClusterTag::new(id).unwrap();
        let service = InterceptedService::new(TsoServer::new(AlwaysServes), tag("0a").check());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
        tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
        let remote = || RemoteSource::new(&address).unwrap();
        assert_eq!(remote().with_cluster(tag("0a")).request(1).await.map(|range| range.count), Ok(1));
        for foreign in [remote().with_cluster(tag("0b")), remote()] {
            let error = foreign.request(1).await.unwrap_err().to_string();
            assert!(error.contains("cluster"), "{error}");
        }
        let report = TimeReport { wall_ms: 7, quiet: Duration::from_millis(8) };
        assert_eq!(report_of(&address, &tag("0a")).await, Some(report));
        assert_eq!(report_of(&address, &tag("0b")).await, None);
    }

    #[test]
    fn malformed_ranges_are_refused() {
        for (last, count) in [(1 << 40, 2), (0, 1), (u64::MAX, 1), (5, 1)] {
            assert!(validate_range(proto::Range { last, count }, 1).is_err(), "{last} {count}");
        }
        assert!(validate_range(proto::Range { last: 1 << 40, count: 1 }, 1).is_ok());
    }
}
