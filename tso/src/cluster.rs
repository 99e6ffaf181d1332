//! The cluster id in every call between nodes: attached by the client, checked by the server before the request is
//! decoded.
//!
//! Addresses are configuration and can be wrong. A node that dials a node of another cluster must get neither its data
//! nor its timestamps. The client's interceptor ([`AttachCluster`]) writes the id into the request's metadata. The
//! server's interceptor ([`CheckCluster`]) rejects any other id with FAILED_PRECONDITION. The module is here, and not
//! in `kv` or the node, because both of them use it too.

use tonic::metadata::errors::InvalidMetadataValue;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// The metadata key.
const KEY: &str = "cortado-cluster";

/// A cluster id, encoded as a metadata value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterTag(MetadataValue<Ascii>);

impl ClusterTag {
    /// The tag of the cluster with this id. Fails unless `id` is ASCII.
    pub fn new(id: &str) -> Result<ClusterTag, InvalidMetadataValue> {
        MetadataValue::try_from(id).map(ClusterTag)
    }

    /// The server's interceptor: it rejects every request that does not carry this tag.
    pub fn check(&self) -> CheckCluster {
        CheckCluster(self.clone())
    }
}

/// The client's interceptor: attaches the tag to each request. Does nothing without a tag.
#[derive(Clone, Debug, Default)]
pub struct AttachCluster(pub Option<ClusterTag>);

impl Interceptor for AttachCluster {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(ClusterTag(id)) = &self.0 {
            request.metadata_mut().insert(KEY, id.clone());
        }
        Ok(request)
    }
}

/// The server's interceptor: rejects requests with another cluster's tag or with none.
#[derive(Clone, Debug)]
pub struct CheckCluster(ClusterTag);

impl Interceptor for CheckCluster {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let ClusterTag(ours) = &self.0;
        match request.metadata().get(KEY) {
            Some(theirs) if theirs == ours => Ok(request),
            Some(theirs) => Err(Status::failed_precondition(format!(
                "this node belongs to cluster {}, the request to cluster {}",
                text(ours),
                text(theirs)
            ))),
            None => Err(Status::failed_precondition("the request does not say which cluster it belongs to")),
        }
    }
}

fn text(id: &MetadataValue<Ascii>) -> &str {
    id.to_str().unwrap_or("(unreadable)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_other_clusters_are_rejected() {
        let tag = |id: &str| ClusterTag::new(id).unwrap();
        let check = |from: Option<ClusterTag>| {
            let request = AttachCluster(from).call(Request::new(())).unwrap();
            tag("0a").check().call(request).map(|_| ()).map_err(|status| (status.code(), status.message().to_owned()))
        };
        assert_eq!(check(Some(tag("0a"))), Ok(()));
        let rejected = |why: &str| Err((tonic::Code::FailedPrecondition, why.to_owned()));
        assert_eq!(check(Some(tag("0b"))), rejected("this node belongs to cluster 0a, the request to cluster 0b"));
        assert_eq!(check(None), rejected("the request does not say which cluster it belongs to"));
        assert!(ClusterTag::new("a\nb").is_err());
    }
}
