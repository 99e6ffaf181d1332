//! The server's adapter to links.
//!
//! A malformed message is refused as such. Every error that the client reacts to is in the response.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use link::{Answer, Kind, Reason, Refused, Service};
use prost::Message;

use crate::api::{Request, ServerError};
use crate::grant::{AskGrants, PushGrants};
use crate::proto::{ASK_GRANTS, LOCATE, PUSH_GRANTS, REQUEST, pb};
use crate::region_store::RegionStore;
use crate::server::KvServer;
use crate::size::MESSAGE_BYTES_MAX;

/// The services over `server`, by the kind of their requests.
pub fn link_services<H: RegionStore>(server: KvServer<H>) -> [(Kind, Arc<dyn Service>); 4] {
    let server = Arc::new(server);
    [
        (REQUEST, Arc::new(RequestService(server.clone()))),
        (LOCATE, Arc::new(LocateService(server.clone()))),
        (ASK_GRANTS, Arc::new(AskService(server.clone()))),
        (PUSH_GRANTS, Arc::new(PushService(server))),
    ]
}

/// Executes [`REQUEST`].
///
/// The link drops the future of a request whose client is gone; [`KvServer::handle`] says what then happens to a write.
struct RequestService<H: RegionStore>(Arc<KvServer<H>>);

impl<H: RegionStore> Service for RequestService<H> {
    fn call(&self, payload: Bytes) -> Answer {
        let request = match decode_request(payload) {
            Ok(request) => request,
            Err(refused) => return Answer::Ready(Err(refused)),
        };
        let server = Arc::clone(&self.0);
        let handled = async move { Ok(encode(&limit_size(server.handle(request).await.into()))) };
        Answer::Later(handled.boxed())
    }
}

/// Executes [`LOCATE`].
struct LocateService<H: RegionStore>(Arc<KvServer<H>>);

impl<H: RegionStore> Service for LocateService<H> {
    fn call(&self, payload: Bytes) -> Answer {
        let located = pb::LocateRequest::decode(payload).map(|request| {
            let response = pb::LocateResponse::from(self.0.locate(&request.key));
            encode(&response)
        });
        Answer::Ready(located.map_err(malformed))
    }
}

/// Answers [`ASK_GRANTS`].
struct AskService<H: RegionStore>(Arc<KvServer<H>>);

impl<H: RegionStore> Service for AskService<H> {
    fn call(&self, payload: Bytes) -> Answer {
        let ask = pb::AskGrants::decode(payload).map_err(malformed);
        let ask = match ask.and_then(|ask| AskGrants::try_from(ask).map_err(malformed)) {
            Ok(ask) => ask,
            Err(refused) => return Answer::Ready(Err(refused)),
        };
        let server = Arc::clone(&self.0);
        Answer::Later(async move { Ok(encode(&pb::GivenGrants::from(server.grants().give(ask).await))) }.boxed())
    }
}

/// Takes [`PUSH_GRANTS`].
struct PushService<H: RegionStore>(Arc<KvServer<H>>);

impl<H: RegionStore> Service for PushService<H> {
    fn call(&self, payload: Bytes) -> Answer {
        let push = pb::PushGrants::decode(payload).map_err(malformed);
        let taken = push.and_then(|push| PushGrants::try_from(push).map_err(malformed));
        Answer::Ready(taken.map(|push| encode(&pb::PushAnswer::from(self.0.grants().take(&push)))))
    }
}

fn decode_request(payload: Bytes) -> Result<Request, Refused> {
    let request = pb::Request::decode(payload).map_err(malformed)?;
    Request::try_from(request).map_err(malformed)
}

/// Replaces a response that is too large for a message by an error: the caller must ask for less.
fn limit_size(response: pb::Response) -> pb::Response {
    let size = response.encoded_len();
    if size <= MESSAGE_BYTES_MAX {
        return response;
    }
    let why = format!("the answer has {size} bytes, more than the {MESSAGE_BYTES_MAX} of a message");
    Err(ServerError::Invalid(why)).into()
}

fn encode(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

fn malformed(error: impl std::error::Error) -> Refused {
    Refused { reason: Reason::Malformed, why: error.to_string() }
}
