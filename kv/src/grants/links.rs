//! The other stores over links.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use link::{Kind, Links};
use prost::Message;
use raftstore::StoreId;

use super::peers::{NoAnswer, Peers};
use crate::grant::{AskGrants, GivenGrants, PushAnswer, PushGrants};
use crate::proto::{ASK_GRANTS, PUSH_GRANTS, pb};

/// How long an answer is waited for. Whoever wants a grant asks again then.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Where to find the address of a store's node.
pub type Addresses = Arc<dyn Fn(StoreId) -> Option<String> + Send + Sync>;

/// The other stores, by the addresses of their nodes.
pub struct LinkPeers {
    links: Arc<Links>,
    addresses: Addresses,
}

impl LinkPeers {
    /// Shares `links` with whatever else talks to the same nodes.
    pub fn new(links: Arc<Links>, addresses: Addresses) -> LinkPeers {
        LinkPeers { links, addresses }
    }

    /// Sends a message. Its answer is bytes.
    fn send(&self, to: StoreId, kind: Kind, message: &impl Message) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let payload = Bytes::from(message.encode_to_vec());
        let peer = (self.addresses)(to).map(|address| self.links.peer(&address).map_err(|error| error.to_string()));
        let peer = peer.unwrap_or_else(|| Err(format!("the address of store {to} is not known")));
        async move {
            let answer = peer.map_err(NoAnswer)?.call(kind, payload, TIMEOUT).await;
            answer.map_err(|error| NoAnswer(error.to_string()))
        }
        .boxed()
    }
}

fn malformed(error: impl std::error::Error) -> NoAnswer {
    NoAnswer(error.to_string())
}

impl Peers for LinkPeers {
    fn ask(&self, to: StoreId, ask: AskGrants) -> BoxFuture<'static, Result<GivenGrants, NoAnswer>> {
        let answer = self.send(to, ASK_GRANTS, &pb::AskGrants::from(ask));
        async move { pb::GivenGrants::decode(answer.await?).map_err(malformed)?.try_into().map_err(malformed) }.boxed()
    }

    fn push(&self, to: StoreId, push: PushGrants) -> BoxFuture<'static, Result<PushAnswer, NoAnswer>> {
        let answer = self.send(to, PUSH_GRANTS, &pb::PushGrants::from(push));
        async move { Ok(pb::PushAnswer::decode(answer.await?).map_err(malformed)?.into()) }.boxed()
    }
}
