//! The oracle of another node, over a link: the service's adapter and the client's source. Generated types are confined
//! to this file.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use link::{Answer, CallError, Kind, Links, Peer, Reason, Refused, Reply, Service};
use prost::Message;

use crate::leap::{SURVEY_LIMIT, TimeReport};
use crate::service::TsoService;
use crate::source::{AllocateError, Connect, OracleNode, TsoError, TsoSource};
use crate::timestamp::{MAX_COUNT, Timestamp, TsRange};
use proto::allocate_response::Result as Outcome;

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::too_many_lines, reason = "generated from tso.proto")]
mod proto {
    include!(concat!(env!("OUT_DIR"), "/cortado.tso.v1.rs"));
}

/// An `AllocateRequest`, answered by an `AllocateResponse`.
pub const TIMESTAMPS: Kind = Kind::new(16);
/// A `ReportTimeRequest`, answered by a `ReportTimeResponse`.
pub const TIME_REPORT: Kind = Kind::new(17);

const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause between two questions for the time of a node that does not answer.
const ASK_INTERVAL: Duration = Duration::from_millis(200);

/// The services over `service`, by the kind of their requests.
pub fn link_services(service: TsoService) -> [(Kind, Arc<dyn Service>); 2] {
    [(TIMESTAMPS, Arc::new(Timestamps(service.clone()))), (TIME_REPORT, Arc::new(TimeReports(service)))]
}

/// Executes [`TIMESTAMPS`].
struct Timestamps(TsoService);

impl Service for Timestamps {
    fn call(&self, payload: Bytes) -> Answer {
        let count = match proto::AllocateRequest::decode(payload) {
            Ok(request) => request.count,
            Err(error) => return Answer::Ready(Err(malformed(error.to_string()))),
        };
        // The common case does not wait. Timestamps of a future that is dropped are never used.
        if let Some(result) = self.0.allocate(count).now_or_never() {
            return Answer::Ready(encode_result(result));
        }
        let service = self.0.clone();
        Answer::Later(async move { encode_result(service.allocate(count).await) }.boxed())
    }
}

fn encode_result(result: Result<TsRange, AllocateError>) -> Reply {
    let outcome = match result {
        Ok(range) => Outcome::Range(proto::Range { last: range.last.raw(), count: range.count }),
        Err(AllocateError::NotLeader { hint }) => {
            Outcome::NotLeader(proto::NotLeader { leader: hint.unwrap_or_default() })
        }
        Err(AllocateError::Unavailable(reason)) => Outcome::Unavailable(proto::Unavailable { reason }),
        Err(error @ AllocateError::InvalidCount(_)) => return Err(malformed(error.to_string())),
    };
    Ok(proto::AllocateResponse { result: Some(outcome) }.encode_to_vec().into())
}

fn malformed(why: String) -> Refused {
    Refused { reason: Reason::Malformed, why }
}

/// Executes [`TIME_REPORT`].
struct TimeReports(TsoService);

impl Service for TimeReports {
    fn call(&self, _payload: Bytes) -> Answer {
        let TimeReport { wall_ms, quiet } = self.0.time_report();
        let quiet_ms = (quiet != Duration::MAX).then(|| u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX));
        Answer::Ready(Ok(proto::ReportTimeResponse { wall_ms, quiet_ms }.encode_to_vec().into()))
    }
}

/// Finds the oracles of other nodes for a router, over `links`. Whether a node has a link is known to `links` alone: an
/// address that was closed there begins anew.
pub(crate) fn connector(links: Arc<Links>) -> Box<Connect> {
    Box::new(move |address| {
        let peer = links.peer(address).map_err(|error| AllocateError::Unavailable(error.to_string()))?;
        Ok(Arc::new(RemoteSource::new(peer)))
    })
}

/// Asks a node for its time until it answers. `find` returns its address, if that is known by now.
///
/// # Panics
/// Outside of a tokio runtime.
pub async fn ask_time(find: impl Fn() -> Option<String>, links: &Links) -> TimeReport {
    loop {
        if let Some(address) = find()
            && let Some(report) = report_of(&address, links).await
        {
            return report;
        }
        tokio::time::sleep(ASK_INTERVAL).await;
    }
}

/// Asks once. A slow node has as much time as a leader waits for it.
async fn report_of(address: &str, links: &Links) -> Option<TimeReport> {
    let request = proto::ReportTimeRequest {}.encode_to_vec().into();
    let answer = links.peer(address).ok()?.call(TIME_REPORT, request, SURVEY_LIMIT).await;
    let answer = answer.inspect_err(|error| tracing::debug!(address, %error, "no report of the time")).ok()?;
    let proto::ReportTimeResponse { wall_ms, quiet_ms } = proto::ReportTimeResponse::decode(answer).ok()?;
    Some(TimeReport { wall_ms, quiet: quiet_ms.map_or(Duration::MAX, Duration::from_millis) })
}

/// The oracle of another node.
#[derive(Clone, Debug)]
pub struct RemoteSource {
    peer: Peer,
}

impl RemoteSource {
    /// The oracle of this node. Does not connect yet.
    pub fn new(peer: Peer) -> RemoteSource {
        RemoteSource { peer }
    }

    async fn request(&self, count: u32) -> Result<TsRange, AllocateError> {
        let request = proto::AllocateRequest { count }.encode_to_vec().into();
        let answer = self.peer.call(TIMESTAMPS, request, REQUEST_TIMEOUT).await.map_err(|error| match error {
            CallError::Invalid(_) => AllocateError::InvalidCount(count),
            error => AllocateError::Unavailable(error.to_string()),
        })?;
        let unreadable = |error: prost::DecodeError| AllocateError::Unavailable(error.to_string());
        match proto::AllocateResponse::decode(answer).map_err(unreadable)?.result {
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

    #[test]
    fn malformed_ranges_are_refused() {
        for (last, count) in [(1 << 40, 2), (0, 1), (u64::MAX, 1), (5, 1)] {
            assert!(validate_range(proto::Range { last, count }, 1).is_err(), "{last} {count}");
        }
        assert!(validate_range(proto::Range { last: 1 << 40, count: 1 }, 1).is_ok());
    }
}
