//! The gRPC adapter of the server.
//!
//! A malformed message is refused with INVALID_ARGUMENT. Every error that the client reacts to is in the response, not
//! in the gRPC status.

use prost::Message;
use tonic::{Request, Response, Status};

use crate::api::ServerError;
use crate::proto::{MalformedMessage, pb};
use crate::region_store::RegionStore;
use crate::server::KvServer;
use crate::size::MESSAGE_BYTES_MAX;

/// Serves `proto/kv.proto` by calling a [`KvServer`].
///
/// tonic drops the future of a call when its client cancels; [`KvServer::handle`] says what then happens to a write.
pub struct KvService<H: RegionStore> {
    server: KvServer<H>,
}

/// The gRPC service of `server`, with message sizes limited to [`MESSAGE_BYTES_MAX`] in both directions.
pub fn kv_service<H: RegionStore>(server: KvServer<H>) -> pb::kv_server::KvServer<KvService<H>> {
    pb::kv_server::KvServer::new(KvService { server })
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX)
}

#[tonic::async_trait]
impl<H: RegionStore> pb::kv_server::Kv for KvService<H> {
    async fn call(&self, request: Request<pb::Request>) -> Result<Response<pb::Response>, Status> {
        let request = request.into_inner().try_into().map_err(invalid)?;
        let response = self.server.handle(request).await.into();
        Ok(Response::new(limit_size(response)))
    }

    async fn locate(&self, request: Request<pb::LocateRequest>) -> Result<Response<pb::LocateResponse>, Status> {
        Ok(Response::new(self.server.locate(&request.into_inner().key).into()))
    }
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

fn invalid(error: MalformedMessage) -> Status {
    Status::invalid_argument(error.to_string())
}
