//! Settings of the client.

use std::time::Duration;

/// Settings of the client. Each has a default that suits a cluster within one continent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// How long a request is retried, counted from its first failure. Default 20 s, at least 1 ms.
    pub deadline: Duration,
    /// Regions remembered. Default 65,536 (about 20 MiB), at least 1.
    pub cached_regions: usize,
    /// Requests that one call of the client has under way at once. Default 32, at least 1.
    pub fan_out: usize,
    /// Keys in one request; more are sent as several. Default 1,024, at least 1.
    pub batch_keys: usize,
    /// About the most bytes of one request, or of the proposal that a region makes of it; more are sent as several.
    /// Default 2 MiB, at least 1. Stores take proposals of up to `max_proposal_bytes` (8 MiB unless told), and one key
    /// with its value, which always goes in one request, must fit there too.
    pub batch_bytes: usize,
    /// About the most bytes of a page of a scan or of point gets. Default 1 MiB, at least 1; the transport refuses messages of more than
    /// 16 MiB.
    pub page_bytes: u32,
    /// Seed of the jitter between retries; drawn from the system when absent.
    pub seed: Option<u64>,
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
        }
    }
}

impl ClientConfig {
    /// Says which setting is below its minimum.
    pub fn validate(&self) -> Result<(), String> {
        let least = [
            ("deadline", self.deadline >= Duration::from_millis(1)),
            ("cached_regions", self.cached_regions >= 1),
            ("fan_out", self.fan_out >= 1),
            ("batch_keys", self.batch_keys >= 1),
            ("batch_bytes", self.batch_bytes >= 1),
            ("page_bytes", self.page_bytes >= 1),
        ];
        match least.iter().find(|(_, fine)| !fine) {
            Some((name, _)) => Err(format!("client.{name} is below its minimum")),
            None => Ok(()),
        }
    }
}
