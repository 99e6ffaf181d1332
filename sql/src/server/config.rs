//! Settings of the front end: given once at start, checked before a socket is opened.

use std::time::Duration;

/// The smallest `max_message_bytes`: below it not even ordinary statements fit.
const MIN_MESSAGE_BYTES: usize = 16 * 1024;

/// The largest `max_message_bytes`: the codec reads no longer message.
const MAX_MESSAGE_BYTES: usize = 1 << 29;

/// Settings of the front end.
#[derive(Clone, Debug)]
pub struct SqlConfig {
    /// Connections at once; one more is refused with 53300. Default 1000, at least 1.
    pub max_connections: usize,
    /// Connections that have not finished their startup; one more is closed unheard. Default 1000, at least 1.
    pub max_handshakes: usize,
    /// Largest message a client may send, in bytes; more closes the connection. Default 64 MiB, 16 KiB to 512 MiB.
    pub max_message_bytes: usize,
    /// How long a client may take over its startup. Default 60 s, more than zero.
    pub authentication_timeout: Duration,
    /// Replies are written to the socket at Sync, Flush and the end of a simple query, and before when this many bytes wait.
    /// Default 64 KiB, at least 1 KiB.
    pub reply_buffer_bytes: usize,
    /// The name of the one database; a client that asks for another gets 3D000. Default `postgres`.
    pub database: String,
    /// This node's number; modulo 2048 it is part of the process ids in BackendKeyData, which are then told apart between nodes.
    pub node_id: u64,
}

impl Default for SqlConfig {
    fn default() -> SqlConfig {
        SqlConfig {
            max_connections: 1000,
            max_handshakes: 1000,
            max_message_bytes: 64 << 20,
            authentication_timeout: Duration::from_secs(60),
            reply_buffer_bytes: 64 << 10,
            database: "postgres".to_owned(),
            node_id: 0,
        }
    }
}

impl SqlConfig {
    /// Refuses values out of range, naming the setting.
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
        if self.database.is_empty() || self.database.len() > 63 || self.database.contains('\0') {
            return Err("database must be a name of 1 to 63 bytes".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_zeros_are_not() {
        assert_eq!(SqlConfig::default().validate(), Ok(()));
        let bad = [
            SqlConfig { max_connections: 0, ..SqlConfig::default() },
            SqlConfig { max_handshakes: 0, ..SqlConfig::default() },
            SqlConfig { max_message_bytes: 100, ..SqlConfig::default() },
            SqlConfig { max_message_bytes: usize::MAX, ..SqlConfig::default() },
            SqlConfig { authentication_timeout: Duration::ZERO, ..SqlConfig::default() },
            SqlConfig { reply_buffer_bytes: 0, ..SqlConfig::default() },
            SqlConfig { database: String::new(), ..SqlConfig::default() },
        ];
        for config in bad {
            assert!(config.validate().is_err(), "{config:?}");
        }
    }
}
