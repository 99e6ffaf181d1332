//! Settings of the client.

use std::time::Duration;

use super::locality::Locality;

/// Settings of the client. The defaults suit a cluster within one continent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// How long a request is retried, counted from its first failure. Default 20 s, minimum 1 ms.
    pub deadline: Duration,
    /// The most regions in the cache. Default 65,536 (about 20 MiB), minimum 1.
    pub cached_regions: usize,
    /// The most requests that one operation has in flight. Default 32, minimum 1.
    pub fan_out: usize,
    /// The most keys in one request. Default 1,024, minimum 1. An operation on more keys sends several requests.
    pub batch_keys: usize,
    /// About the most bytes of one request, or of the proposal that a region makes of it. Default 2 MiB, minimum 1. An
    /// operation on more sends several requests. It must stay below the stores' `max_proposal_bytes` (8 MiB by
    /// default). A single key with its value is never split and must fit there too.
    pub batch_bytes: usize,
    /// Bytes of keys and values after which a page of a scan or of a batch get ends. Default 1 MiB, minimum 1. The
    /// transport refuses messages above 16 MiB.
    pub page_bytes: u32,
    /// Seed of the jitter between retries. Default `None`: drawn from the system.
    pub seed: Option<u64>,
    /// Where this node is. Default: nobody knows. Only reads that choose among replicas use it.
    pub locality: Locality,
}

impl Default for ClientConfig {
    fn default() -> ClientConfig {
        ClientConfig {
            deadline: Duration::from_secs(20),
            cached_regions: 65_536,
            fan_out: 32,
            batch_keys: 1_024,
            batch_bytes: 2 << 20,
            page_bytes: 1 << 20,
            seed: None,
            locality: Locality::default(),
        }
    }
}

impl ClientConfig {
    /// Checks every setting against its minimum.
    ///
    /// # Errors
    ///
    /// A message that names the first setting below its minimum.
    pub fn validate(&self) -> Result<(), String> {
        let minimums = [
            ("deadline", self.deadline >= Duration::from_millis(1)),
            ("cached_regions", self.cached_regions >= 1),
            ("fan_out", self.fan_out >= 1),
            ("batch_keys", self.batch_keys >= 1),
            ("batch_bytes", self.batch_bytes >= 1),
            ("page_bytes", self.page_bytes >= 1),
        ];
        match minimums.iter().find(|(_, valid)| !valid) {
            Some((name, _)) => Err(format!("client.{name} is below its minimum")),
            None => Ok(()),
        }
    }
}
