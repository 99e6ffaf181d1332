//! The gRPC adapter of the server.
//!
//! A message that cannot be decoded, or lacks something, is INVALID_ARGUMENT; everything that a caller reacts to is in the response.

use prost::Message;
use tonic::{Request, Response, Status};

use crate::api::ServerError;
use crate::port::RegionStore;
use crate::proto::{MalformedMessage, pb};
use crate::server::KvServer;
use crate::size::MESSAGE_BYTES_MAX;

/// Serves the wire protocol.
pub struct KvService<H: RegionStore> {
    server: KvServer<H>,
}

/// The service to add to a gRPC server, with its limits set.
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
        Ok(Response::new(within_limit(response)))
    }

    async fn locate(&self, request: Request<pb::LocateRequest>) -> Result<Response<pb::LocateResponse>, Status> {
        Ok(Response::new(self.server.locate(&request.into_inner().key).into()))
    }
}

/// The response, or an error in its place if the caller could not receive it: it must ask for less.
fn within_limit(response: pb::Response) -> pb::Response {
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
