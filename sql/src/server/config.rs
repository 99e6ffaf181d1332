//! Configuration of the front end, validated before a socket is opened.

use std::time::Duration;

use crate::advisory::AdvisoryConfig;
use crate::catalog::CatalogConfig;

/// The smallest `max_message_bytes`: ordinary statements need that much.
const MIN_MESSAGE_BYTES: usize = 16 * 1024;

/// The largest `max_message_bytes`: the codec's own limit.
const MAX_MESSAGE_BYTES: usize = 1 << 29;

/// Configuration of the front end.
#[derive(Clone, Debug)]
pub struct SqlConfig {
    /// Concurrent sessions. One more is refused with 53300. Default 1000, at least 1.
    pub max_connections: usize,
    /// Concurrent connections in their startup. One more is closed without an answer. Default 1000, at least 1.
    pub max_handshakes: usize,
    /// Largest message of a client, in bytes. A larger one closes the connection. Default 64 MiB, 16 KiB to 512 MiB.
    pub max_message_bytes: usize,
    /// Time limit of the startup. Default 60 s, more than zero.
    pub authentication_timeout: Duration,
    /// Size of the reply buffer, in bytes. Replies are written at Sync, Flush and the end of a simple query, and
    /// whenever the buffer is full. Default 64 KiB, at least 1 KiB.
    pub reply_buffer_bytes: usize,
    /// The lease on the catalog, and schema changes.
    pub catalog: CatalogConfig,
    /// Advisory locks.
    pub advisory: AdvisoryConfig,
    /// This node's number, different from that of every other node. Modulo 2048 it is part of the process ids in
    /// BackendKeyData, which makes them distinct between nodes.
    pub node_id: u64,
    /// Where `cortado txn status` finds this node, for the errors of unknown outcomes. None if not known.
    pub status_host: Option<String>,
}

impl Default for SqlConfig {
    fn default() -> SqlConfig {
        SqlConfig {
            max_connections: 1000,
            max_handshakes: 1000,
            max_message_bytes: 64 << 20,
            authentication_timeout: Duration::from_secs(60),
            reply_buffer_bytes: 64 << 10,
            catalog: CatalogConfig::default(),
            advisory: AdvisoryConfig::default(),
            node_id: 0,
            status_host: None,
        }
    }
}

impl SqlConfig {
    /// Checks the ranges. The error names the setting.
    pub fn validate(&self) -> Result<(), String> {
        if self.max_connections == 0 {
            return Err("max_connections must be at least 1".to_owned());
        }
        if self.max_handshakes == 0 {
            return Err("max_handshakes must be at least 1".to_owned());
        }
        if !(MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES).contains(&self.max_message_bytes) {
            return Err(format!(
                "max_message_bytes must be between {MIN_MESSAGE_BYTES} and {MAX_MESSAGE_BYTES}, not {}",
                self.max_message_bytes
            ));
        }
        if self.authentication_timeout.is_zero() {
            return Err("authentication_timeout must be more than zero".to_owned());
        }
        if self.reply_buffer_bytes < 1024 {
            return Err(format!("reply_buffer_bytes must be at least 1024, not {}", self.reply_buffer_bytes));
        }
        self.catalog.validate()?;
        self.advisory.validate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_zeros_are_not() {
        assert_eq!(SqlConfig::default().validate(), Ok(()));
        let short = |lease| CatalogConfig { lease, ..CatalogConfig::default() };
        let bad = [
            SqlConfig { max_connections: 0, ..SqlConfig::default() },
            SqlConfig { max_handshakes: 0, ..SqlConfig::default() },
            SqlConfig { max_message_bytes: 100, ..SqlConfig::default() },
            SqlConfig { max_message_bytes: usize::MAX, ..SqlConfig::default() },
            SqlConfig { authentication_timeout: Duration::ZERO, ..SqlConfig::default() },
            SqlConfig { reply_buffer_bytes: 0, ..SqlConfig::default() },
            SqlConfig { catalog: short(Duration::from_millis(9)), ..SqlConfig::default() },
            SqlConfig { catalog: short(Duration::ZERO), ..SqlConfig::default() },
            SqlConfig {
                advisory: AdvisoryConfig { lease: Duration::ZERO, ..AdvisoryConfig::default() },
                ..SqlConfig::default()
            },
        ];
        for config in bad {
            assert!(config.validate().is_err(), "{config:?}");
        }
    }
}
