//! Which cluster a request belongs to, said with every call between nodes and checked before it is looked at.
//!
//! Addresses are configuration and can be wrong. A node that dials a stranger must get neither data nor timestamps of the stranger's
//! cluster: the client's interceptor ([`Attach`]) puts the id into the request's metadata, the server's ([`Check`]) refuses every other with
//! FAILED_PRECONDITION. Like the timestamps themselves, this is for all services above: it is here because `kv` and the node use it too.

use tonic::metadata::errors::InvalidMetadataValue;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// The name of the metadata.
const KEY: &str = "cortado-cluster";

/// The id of a cluster, as it travels with requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterTag(MetadataValue<Ascii>);

impl ClusterTag {
    /// Of the cluster whose id is written as `id`, which must be ASCII.
    pub fn new(id: &str) -> Result<ClusterTag, InvalidMetadataValue> {
        MetadataValue::try_from(id).map(ClusterTag)
    }

    /// For the server of this cluster: refuses every request that is not the cluster's own.
    pub fn check(&self) -> Check {
        Check(self.clone())
    }
}

/// Puts the cluster into requests; without one, leaves them as they are.
#[derive(Clone, Debug, Default)]
pub struct Attach(pub Option<ClusterTag>);

impl Interceptor for Attach {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(ClusterTag(id)) = &self.0 {
            request.metadata_mut().insert(KEY, id.clone());
        }
        Ok(request)
    }
}

/// Refuses requests of other clusters, and those that do not say whose they are.
#[derive(Clone, Debug)]
pub struct Check(ClusterTag);

impl Interceptor for Check {
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
    fn requests_of_other_clusters_are_refused() {
        let tag = |id: &str| ClusterTag::new(id).unwrap();
        let asked = |from: Option<ClusterTag>| {
            let request = Attach(from).call(Request::new(())).unwrap();
            tag("0a").check().call(request).map(|_| ()).map_err(|status| (status.code(), status.message().to_owned()))
        };
        assert_eq!(asked(Some(tag("0a"))), Ok(()));
        let refused = |why: &str| Err((tonic::Code::FailedPrecondition, why.to_owned()));
        assert_eq!(asked(Some(tag("0b"))), refused("this node belongs to cluster 0a, the request to cluster 0b"));
        assert_eq!(asked(None), refused("the request does not say which cluster it belongs to"));
        assert!(ClusterTag::new("a\nb").is_err());
    }
}
